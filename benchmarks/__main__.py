"""All RM2 hypersurfaces of all layers of VGG7 for one image: the library against Algorithm 1.

Algorithm 1 is the paper's, as printed: GradientTape.jacobian of each layer's in-channel feature
maps, then conv2d with the layer's kernel (a matmul for FC). Each run has a process of its own, the
two methods take turns, and the clock is on the computing alone: not on imports, folding, or the
comparison. At every run the values are compared too, in multiples of the unit roundoff u = 2^-24.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
from datetime import date
from pathlib import Path

import numpy as np
from tqdm import tqdm

METHODS = {"algorithm-1": "Algorithm 1", "library": "adjoint_lib"}
LATEST = Path(__file__).with_name("latest.json")
FULL_SIZE = 32
GB_AT_FULL_SIZE = 18
UNIT_ROUNDOFF = 2.0**-24
TOLERANCE = 256
"""How many unit roundoffs of their scale two values may differ by and still count as equal."""


def main(arguments: list[str] | None = None) -> int:
    options = _options(arguments)
    _check_memory(options)
    runs = {method: [] for method in METHODS}
    with tempfile.TemporaryDirectory() as folder:
        for number in tqdm(range(2 * options.repeats), desc="runs", unit="run"):
            method = list(METHODS)[number % 2]
            out = Path(folder) / f"{number}.npz"
            runs[method].append(_run(method, options, out))
    report = summarise(runs, options)
    print(table(report))
    if options.size == FULL_SIZE:
        LATEST.write_text(json.dumps(report, indent=2) + "\n")
        print(f"Written to {os.path.relpath(LATEST)}")
    if not report["equal"]:
        print("The values differ by more than rounding explains.", file=sys.stderr)
        return 1
    return 0


def summarise(runs: dict[str, list[dict]], options: argparse.Namespace) -> dict:
    """Medians, peaks, their ratio, and the largest differences of any run, by layer."""
    report = {
        "date": date.today().isoformat(),
        "machine": _machine(runs["library"][0]),
        "image_size": options.size,
        "parallel_iterations": options.parallel_iterations,
        "methods": {},
    }
    for method, results in runs.items():
        seconds = [round(float(r["seconds"]), 3) for r in results]
        report["methods"][method] = {
            "seconds": seconds,
            "median_seconds": statistics.median(seconds),
            "peak_gb": round(max(int(r["peak_bytes"]) for r in results) / 1e9, 2),
        }
    slow, fast = (report["methods"][m]["median_seconds"] for m in METHODS)
    report["ratio"] = round(slow / fast, 1)
    pairs = [agreement(a, b) for a, b in zip(*runs.values(), strict=True)]
    report["largest_differences_in_u"] = {
        layer: {what: round(max(p[layer][what] for p in pairs), 1) for what in pairs[0][layer]}
        for layer in pairs[0]
    }
    report["tolerance_in_u"] = TOLERANCE
    report["equal"] = all(
        value <= TOLERANCE
        for layer in report["largest_differences_in_u"].values()
        for value in layer.values()
    )
    return report


def agreement(algorithm_1: dict, library: dict) -> dict[str, dict[str, float]]:
    """The largest differences between two runs, by layer, in unit roundoffs of their scale.

    For a reconstructed activation, sum of v_i H_i, the scale is the sum of |v_i H_i|; for an entry
    of H, the largest entry of the same unit's H. NaN counts as infinitely different.
    """
    found = {}
    for layer in [key.split("/")[0] for key in algorithm_1 if key.endswith("/true")]:
        ours, theirs = (
            {what: run[f"{layer}/{what}"] for what in ("reconstruction", "columns")}
            for run in (library, algorithm_1)
        )
        true, scale = algorithm_1[f"{layer}/true"], algorithm_1[f"{layer}/scale"]
        largest = np.abs(theirs["columns"]).max(axis=0)
        found[layer] = {
            "entries of H": _in_u(ours["columns"] - theirs["columns"], largest),
            "activations, library": _in_u(ours["reconstruction"] - true, scale),
            "activations, Algorithm 1": _in_u(theirs["reconstruction"] - true, scale),
        }
    return found


def table(report: dict) -> str:
    """The report as text."""
    lines = [f"VGG7, one image of {report['image_size']}x{report['image_size']}, float32"]
    lines.append(f"{'':24}{'median':>10}{'fastest':>10}{'slowest':>10}{'peak memory':>14}")
    for method, title in METHODS.items():
        m = report["methods"][method]
        times = [m["median_seconds"], min(m["seconds"]), max(m["seconds"])]
        cells = "".join(f"{t:>8.2f} s" for t in times)
        lines.append(f"{title:24}{cells}{m['peak_gb']:>11.2f} GB")
    lines += [f"Algorithm 1 takes {report['ratio']} times as long.", ""]
    lines.append(f"Largest differences, in u = 2^-24 of their scale (tolerance {TOLERANCE}):")
    for layer, row in report["largest_differences_in_u"].items():
        cells = ", ".join(f"{what} {value:g}" for what, value in row.items())
        lines.append(f"  {layer:6}{cells}")
    return "\n".join(lines)


def _options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--repeats", type=int, default=3, help="runs of each method (default 3)")
    parser.add_argument(
        "--size",
        type=int,
        default=FULL_SIZE,
        help="side of the image; below 32, the paper's, for a quick look that is printed and not "
        f"written to {LATEST.name}",
    )
    parser.add_argument(
        "--parallel-iterations",
        type=int,
        metavar="N",
        help="let Algorithm 1 compute N rows of a Jacobian at a time, to save memory; by default "
        f"all, for which it needs about {GB_AT_FULL_SIZE} GB",
    )
    options = parser.parse_args(arguments)
    if options.repeats < 1:
        parser.error(f"--repeats should be at least 1, but is {options.repeats}")
    if not 1 <= options.size <= FULL_SIZE:
        parser.error(f"--size should be between 1 and {FULL_SIZE}, but is {options.size}")
    if options.parallel_iterations is not None and options.parallel_iterations < 2:
        parser.error("--parallel-iterations should be at least 2")
    return options


def _check_memory(options: argparse.Namespace) -> None:
    """Stops before Algorithm 1 takes the machine down."""
    needed = GB_AT_FULL_SIZE * (options.size / FULL_SIZE) ** 4
    available = _available_gb()
    if options.parallel_iterations is None and available is not None and available < needed:
        raise SystemExit(
            f"Algorithm 1 needs about {needed:.0f} GB of memory at this size, and {available:.1f} "
            "GB are free. Close other programs, or let it work in parts: "
            "--parallel-iterations 4096."
        )


def _run(method: str, options: argparse.Namespace, out: Path) -> dict:
    command = [sys.executable, "-m", "benchmarks.worker", method]
    command += ["--size", str(options.size), "--out", str(out)]
    if options.parallel_iterations is not None:
        command += ["--parallel-iterations", str(options.parallel_iterations)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=LATEST.parent.parent)
    if done.returncode:
        cause = "" if done.returncode > 0 else " (killed, perhaps for lack of memory)"
        raise SystemExit(
            f"The run of {METHODS[method]} ended with code {done.returncode}{cause}:\n"
            + done.stderr[-2000:]
        )
    with np.load(out) as file:
        return {key: file[key] for key in file.files}


def _in_u(difference: np.ndarray, scale: np.ndarray) -> float:
    """The largest |difference| / (u scale); 0/0 is 0."""
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(difference == 0, 0, np.abs(difference) / (UNIT_ROUNDOFF * scale))
    return float(np.nan_to_num(ratio, nan=np.inf).max())


def _machine(run: dict) -> dict:
    info = Path("/proc/cpuinfo")
    names = (
        [
            line.split(":")[1].strip()
            for line in info.read_text().splitlines()
            if line.startswith("model name")
        ]
        if info.exists()
        else []
    )
    return {
        "processor": names[0] if names else platform.processor() or platform.machine(),
        "cores": os.cpu_count(),
        "system": platform.system(),
        "python": platform.python_version(),
        **{package: str(run[package]) for package in ("tensorflow", "keras", "numpy")},
    }


def _available_gb() -> float | None:
    info = Path("/proc/meminfo")
    if not info.exists():
        return None
    line = next(x for x in info.read_text().splitlines() if x.startswith("MemAvailable"))
    return int(line.split()[1]) * 1024 / 1e9


if __name__ == "__main__":
    sys.exit(main())
