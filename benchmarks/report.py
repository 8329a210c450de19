"""The report: what is written to latest.json, and its table.

``{model: {"seconds": {contender: ...}, "peak_mb": {contender: ...}, ...}}`` beside the machine and
what else is measured. ``seconds`` is the median of the warm passes of all processes; of the first
ones where there is no warm one. ``first_seconds``, the median of the first passes, includes what
a library compiles or traces when it meets a network.
"""

from __future__ import annotations

import os
import platform
import statistics
from datetime import date
from importlib import metadata
from pathlib import Path

from benchmarks.agreement import TOLERANCE, largest

PACKAGES = ("tensorflow", "keras", "numpy", "jax", "jaxlib", "torch")


def record(entry: dict, contender: str, runs: list[dict], settings: dict) -> None:
    """Write the runs of a contender into a model's entry; what others have there stays."""
    first = [run["first"] for run in runs]
    warm = [seconds for run in runs for seconds in run["warm"]]
    values = {
        "seconds": round(statistics.median(warm or first), 4),
        "first_seconds": round(statistics.median(first), 4),
        "peak_mb": round(max(run["peak_mb"] for run in runs)),
        "processes": len(runs),
        "warm_passes": len(warm),
        "all_warm_seconds": [round(seconds, 4) for seconds in warm],
        "all_first_seconds": [round(seconds, 4) for seconds in first],
        "settings": settings,
        "notes": _notes(runs, settings, warm),
        "date": date.today().isoformat(),
    }
    for key, value in values.items():
        entry.setdefault(key, {})[contender] = value
    finish(entry)


def record_agreement(entry: dict, contender: str, found: dict[str, dict]) -> None:
    """Write the largest differences from the library's values, by layer, in unit roundoffs."""
    entry["tolerance_in_u"] = TOLERANCE
    entry.setdefault("differences_in_u", {})[contender] = found
    entry.setdefault("largest_difference_in_u", {})[contender] = largest(found)
    entry.setdefault("equal", {})[contender] = largest(found) <= TOLERANCE


def finish(entry: dict, rate: float | None = None) -> None:
    """Compute what follows from the rest of a model's entry. rate: GFLOP/s of convolution."""
    seconds = entry.get("seconds", {})
    ours = seconds.get("adjoint_lib")
    if ours:
        entry["times_as_long"] = {c: round(s / ours, 2) for c, s in seconds.items()}
        flop = entry.get("flop")
        if flop:
            flop["gflop_per_second"] = round(flop["pushed"] / ours / 1e9, 1)
        if flop and rate:
            flop["share_of_convolution_rate"] = round(flop["gflop_per_second"] / rate, 3)


def machine() -> dict:
    """The processor and the versions; nothing is imported for it."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    names = [line.split(":")[1].strip() for line in lines if line.startswith("model name")]
    found = {
        "processor": names[0] if names else platform.processor() or platform.machine(),
        "vectors": _vectors(lines),
        "cores": os.cpu_count(),
        "system": platform.system(),
        "python": platform.python_version(),
    }
    installed = {d.metadata["Name"].lower().replace("_", "-"): d for d in metadata.distributions()}
    for package in PACKAGES:
        known = installed.get(package) or installed.get(f"{package}-cpu")
        if known:
            found[package] = known.version
    return found


def _vectors(cpuinfo: list[str]) -> str | None:
    """The widest vectors that the processor computes with, where that is known.

    Some hosts give all their processors one name; a convolution takes half as long with the wider.
    """
    flags = next((line for line in cpuinfo if line.startswith("flags")), "").split()
    known = {"avx512f": "AVX-512", "avx2": "AVX2"}
    return next((name for flag, name in known.items() if flag in flags), None)


def table(report: dict, models: list[str]) -> str:
    """The report as text."""
    lines = []
    for model in models:
        entry = report.get(model, {})
        if "seconds" not in entry:
            continue
        lines.append(f"{model}: all units of all layers, one image, float32")
        head = ["seconds", "times ours", "first pass", "peak memory", "difference"]
        lines.append(f"  {'':20}" + "".join(f"{title:>14}" for title in head))
        for contender in sorted(entry["seconds"], key=entry["seconds"].get):
            u = entry.get("largest_difference_in_u", {}).get(contender)
            cells = [
                f"{entry['seconds'][contender]:.3g} s",
                f"{entry.get('times_as_long', {}).get(contender, float('nan')):.1f}",
                f"{entry['first_seconds'][contender]:.3g} s",
                f"{entry['peak_mb'][contender]:,.0f} MB",
                "" if u is None else f"{u:g} u",
            ]
            lines.append(f"  {contender:20}" + "".join(f"{cell:>14}" for cell in cells))
            lines += [f"  {'':4}({note})" for note in entry["notes"][contender]]
        lines += [*_flop_line(entry), *_profile_line(entry), ""]
    lines += _extra_lines(report)
    return "\n".join(lines)


def _notes(runs: list[dict], settings: dict, warm: list[float]) -> list[str]:
    found = []
    sampled = len(runs[0]["sampled"])
    if sampled:
        layers = "layer" if sampled == 1 else "layers"
        found.append(f"the seconds of {sampled} {layers} are scaled from a random sample")
    if settings.get("parallel_iterations"):
        found.append(
            f"{settings['parallel_iterations']} rows of a Jacobian at a time, since all at once, "
            "as printed, do not fit into memory"
        )
    if not warm:
        found.append("one pass only: its first, which took too long to repeat")
    return found


def _flop_line(entry: dict) -> list[str]:
    flop = entry.get("flop")
    if not flop:
        return []
    share = flop.get("share_of_convolution_rate")
    return [
        f"  adjoint_lib convolves {flop['pushed'] / 1e9:.0f} GFLOP (without windows "
        f"{flop['dense'] / 1e9:.0f}) at {flop.get('gflop_per_second', float('nan')):.0f} GFLOP/s"
        + (f": {share:.0%} of the machine's rate" if share else "")
    ]


def _profile_line(entry: dict) -> list[str]:
    if "profile" not in entry:
        return []
    shares = entry["profile"]["shares"].items()
    return ["  of its time: " + ", ".join(f"{kind} {share:.0%}" for kind, share in shares)]


def _extra_lines(report: dict) -> list[str]:
    lines = []
    if "one_unit" in report:
        found = report["one_unit"]
        seconds = found["seconds"]
        lines.append(
            f"One unit of {found['layer']}, from call to arrays: "
            f"{1e3 * seconds['call_to_arrays']:.1f} ms, {found['ratio']} times a forward and a "
            f"backward pass of the model ({found['ratio_compiled']} times a compiled one)"
        )
    for what, found in report.get("modes", {}).items():
        lines.append(f"{what}, {found['layer']}: {found['units']} units, {found['seconds']:.3g} s")
    for what, found in report.get("growth", {}).items():
        points = ", ".join(f"{value}: {seconds:.3g} s" for value, seconds in found["points"])
        lines.append(f"Growth with {what}: {points}; about {what}^{found['exponent']}")
    for share, convolution, product in report.get("open_entries", {}).get("rows", []):
        lines.append(
            f"With {share:g} of a layer's entries open, products of those alone take "
            f"{product / convolution:.2f} times as long as its convolution"
        )
    return lines
