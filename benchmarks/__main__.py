"""All hypersurfaces of all units of all layers for one image: the library against its peers.

The contenders, with the same weights and the same image, in float32:

  adjoint_lib         the library
  algorithm_1         the paper's algorithm as printed: GradientTape.jacobian, then conv2d; of deep
                      layers of the ResNets a random sample, scaled to all units
  jax                 jax.linearize and vmap over the unit directions in batches, jitted
  pytorch             torch.func.linearize and vmap in batches
  one_unit_at_a_time  a gradient tape for each unit; a random sample, scaled to all units

The networks have random weights, whose ReLUs are open at half of their entries. VGG7 and Fixup are
also run with trained weights, whose ReLUs are shut at most, by the library, JAX and PyTorch.

Each run has a process of its own and the contenders take turns. The clock is on the computing
alone: not on imports, folding, or the comparison. JAX and PyTorch first try which batches (and
layout) are quickest for them. The values of all are compared with the library's, in multiples of
the unit roundoff u = 2^-24. Then the library's other times are taken: one unit, one layer in each
mode, how the time grows, and what it would take to leave out what ReLUs have shut.

``python -m benchmarks uses`` times what one does most often: one score of 64 images, one unit.

Every measurement is written as soon as it is there; contenders that do not run keep what an
earlier run on the same machine has written.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections import defaultdict
from pathlib import Path
from time import perf_counter

import numpy as np
from tqdm import tqdm

from benchmarks import report as reports
from benchmarks.agreement import against_truth, agreement
from benchmarks.contender import CONTENDERS

MODELS = ["vgg7", "resnet20", "resnet20_fixup"]
TRAINED = ["vgg7_trained", "resnet20_fixup_trained"]
BY_ALL = ["adjoint_lib", "jax", "pytorch"]
"""The contenders that take every network."""

EXTRAS = ["one_unit", "modes", "growth", "open_entries"]
ROOT = Path(__file__).resolve().parent.parent
LATEST = ROOT / "benchmarks" / "latest.json"
FOR_THE_BOOK = ROOT / "data" / "results" / "benchmark.json"
PACKAGES = {"jax": "jax", "pytorch": "torch"}
FULL_SIZE, QUICK_SIZE = 32, 8
ENOUGH = 100.0
"""No further process for a contender that has taken this many seconds with a model."""

LITERAL_GB = {"vgg7": 20, "resnet20": 40, "resnet20_fixup": 40}
"""About how much memory Algorithm 1 needs as printed; with less free, it works in parts."""

PARALLEL_ITERATIONS = 2048
"""How many rows of a Jacobian are then computed at a time."""


def main(arguments: list[str] | None = None) -> int:
    given = sys.argv[1:] if arguments is None else arguments
    if given[:1] == ["uses"]:
        from benchmarks import uses

        return uses.main(given[1:])
    options = _options(arguments)
    path = options.output or (None if options.quick else LATEST)
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(options, Path(folder), path)
        try:
            bench.run()
        except KeyboardInterrupt:
            print("\nInterrupted.", file=sys.stderr)
            return 130
        finally:
            bench.bar.close()
            print(reports.table(bench.report, options.models))
    if path:
        print(f"Written to {os.path.relpath(path)}")
    for failure in bench.failures:
        print(failure, file=sys.stderr)
    return 1 if bench.failures else 0


class Bench:
    """One run of the whole benchmark.

    Attributes:
        report: what is written, see `report`.
        failures: what went wrong, one sentence each; the other measurements go on.
    """

    def __init__(self, options: argparse.Namespace, folder: Path, path: Path | None):
        self.options = options
        self.folder = folder
        self.path = path
        self.size = QUICK_SIZE if options.quick else FULL_SIZE
        self.report = _report_so_far(path, self.size)
        self.failures: list[str] = []
        self.runs: dict[tuple[str, str], list[dict]] = defaultdict(list)
        self.settings: dict[tuple[str, str], dict] = {}
        self.checks: dict[str, dict[str, np.ndarray]] = {}
        self.spent: dict[tuple[str, str], float] = defaultdict(float)
        self.kept = set() if options.ours else {m for m in options.models if self.has_ours(m)}
        pairs = sum(
            model not in TRAINED or contender in BY_ALL
            for model in options.models
            for contender in options.contenders
        )
        steps = len(options.models) + options.repeats * pairs + len(options.extras) + 1
        self.bar = tqdm(total=steps, unit="run")
        self.started = False

    def run(self) -> None:
        models, options = self.options.models, self.options
        load = _load()
        if not self.kept:
            self.report["load_at_start"] = load
        if load is not None and load > 0.5:
            self.bar.write(f"Other programs keep {load:.1f} cores busy: times will be too long.")
        for model in models:
            self.step(f"{model}: the problem")
            self.pose(model)
        self.step("convolution rate")
        rate = None if self.kept else self.extra("convolution_rate", models[0])
        if rate:
            self.report["convolution_rate"] = rate
        for turn in range(options.repeats):
            for model in models:
                for contender in options.contenders:
                    if model in TRAINED and contender not in BY_ALL:
                        continue
                    self.step(f"{model}: {contender}")
                    self.turn(model, contender, turn)
        last = "resnet20" if "resnet20" in models else models[0]
        for name in options.extras:
            self.step(name.replace("_", " "))
            found = self.extra(name, last)
            if found:
                self.report[name] = {"model": last, **found} if name == "one_unit" else found
            self.save()

    def has_ours(self, model: str) -> bool:
        """Whether an earlier run has written the library's time."""
        return "adjoint_lib" in self.report.get(model, {}).get("seconds", {})

    def turn(self, model: str, contender: str, turn: int) -> None:
        """One process of one contender, unless it has had enough time or has failed before."""
        key = model, contender
        if (turn and not self.runs[key]) or self.spent[key] > ENOUGH:
            return
        entry = self.report.setdefault(model, {})
        kept = contender == "adjoint_lib" and model in self.kept
        if not turn:
            self.settings[key] = self.choose(model, contender)
            if contender == "adjoint_lib" and not kept:
                for name in ("profile",) if model in TRAINED else ("flop", "profile"):
                    found = self.extra(name, model)
                    entry.update({name: found} if found else {})
        start = perf_counter()
        command = ["--settings", json.dumps(self.settings[key])]
        command += [] if turn else ["--check"]
        found = self.worker(model, contender, command)
        self.spent[key] += perf_counter() - start
        if found is None:
            return
        run, arrays = found
        if not kept:
            self.runs[key].append(run)
            reports.record(entry, contender, self.runs[key], self.settings[key])
            rate = self.report.get("convolution_rate", {}).get("best")
            reports.finish(entry, rate)
        if not turn:
            self.compare(model, contender, arrays)
        self.save()

    def choose(self, model: str, contender: str) -> dict:
        """The settings that a contender runs with."""
        if contender == "algorithm_1":
            needed = LITERAL_GB[model] * (self.size / FULL_SIZE) ** 4
            free = _available_gb()
            literal = free is None or free > needed
            return {} if literal else {"parallel_iterations": PARALLEL_ITERATIONS}
        if contender not in PACKAGES:
            return {}
        found = self.worker(model, contender, ["--tune"])
        tried = found[0]["tried"] if found else []
        self.report[model].setdefault("tried_settings", {})[contender] = tried
        best = min(tried, key=lambda t: t["microseconds_per_direction"], default={})
        return {k: v for k, v in best.items() if k != "microseconds_per_direction"}

    def compare(self, model: str, contender: str, arrays: dict[str, np.ndarray]) -> None:
        """Compare a contender's values with the library's, and the library's with the network's."""
        if contender == "adjoint_lib":
            self.checks[model] = arrays
            with np.load(self.true(model)) as file:
                found = against_truth(arrays, {layer: file[layer] for layer in file.files})
        elif model not in self.checks:  # the library's run has failed, which is noted
            return
        else:
            found = agreement(self.checks[model], arrays)
        entry = self.report[model]
        reports.record_agreement(entry, contender, found)
        if not entry["equal"][contender]:
            self.failures.append(
                f"{model}: the values of {contender} differ by "
                f"{entry['largest_difference_in_u'][contender]:g} u, more than rounding explains."
            )

    # -------------------------------------------------------------- processes

    def network(self, model: str) -> Path:
        return self.folder / f"{model}.npz"

    def true(self, model: str) -> Path:
        return self.folder / f"{model}-true.npz"

    def pose(self, model: str) -> None:
        """Write the network that all contenders read, and the true values of its units."""
        files = ["--out", str(self.network(model)), "--true", str(self.true(model))]
        command = [model.replace("_", "-"), "--size", str(self.size), *files]
        if not self.start("benchmarks.problem", command):
            raise SystemExit(self.failures[-1])

    def worker(
        self, model: str, contender: str, command: list[str]
    ) -> tuple[dict, dict[str, np.ndarray]] | None:
        """What `benchmarks.worker` has found, and the arrays it has kept."""
        out = self.folder / "run.npz"
        command = [contender, "--network", str(self.network(model)), "--out", str(out), *command]
        if not self.start("benchmarks.worker", command):
            return None
        with np.load(out) as file:
            arrays = {key: file[key] for key in file.files}
        return json.loads(str(arrays.pop("found"))), arrays

    def extra(self, name: str, model: str) -> dict | None:
        """What `benchmarks.extras` has found."""
        out = self.folder / "extra.json"
        command = [name, "--network", str(self.network(model)), "--out", str(out)]
        command += ["--quick"] if self.options.quick else []
        return json.loads(out.read_text()) if self.start("benchmarks.extras", command) else None

    def start(self, module: str, command: list[str]) -> bool:
        """Run a module in a process of its own. If it ends badly, note that and return False."""
        done = subprocess.run(
            [sys.executable, "-m", module, *command],
            capture_output=True,
            text=True,
            cwd=ROOT,
            env={"TF_CPP_MIN_LOG_LEVEL": "2", **os.environ},
        )
        if done.returncode:
            cause = " (killed, perhaps for lack of memory)" if done.returncode < 0 else ""
            self.failures.append(
                f"{module} {command[0]} ended with code {done.returncode}{cause}:\n"
                + done.stderr[-2000:]
            )
        return not done.returncode

    def step(self, what: str) -> None:
        """Show what begins now."""
        if self.started:
            self.bar.update()
        self.started = True
        self.bar.set_description(what)

    def save(self) -> None:
        """Write the report as it is, in one move."""
        if self.path:
            part = self.path.with_suffix(".part")
            part.write_text(json.dumps(self.report, indent=2) + "\n")
            part.replace(self.path)
        if self.path == LATEST:
            FOR_THE_BOOK.parent.mkdir(exist_ok=True)
            shutil.copyfile(LATEST, FOR_THE_BOOK)


def _report_so_far(path: Path | None, size: int) -> dict:
    """What an earlier run has written, if it was on this machine, with these versions.

    The rows of `uses` stay in any case: each says itself on what machine it was measured.
    """
    fresh = {"machine": reports.machine(), "image_size": size}
    if path is None or not path.exists():
        return fresh
    found = json.loads(path.read_text())
    if all(found.get(key) == value for key, value in fresh.items()):
        return found
    return fresh | ({"uses": found["uses"]} if "uses" in found else {})


def _options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--models",
        nargs="+",
        choices=[*MODELS, *TRAINED],
        default=[*MODELS, *TRAINED],
        metavar="MODEL",
        help=f"which models: {', '.join([*MODELS, *TRAINED])} (default all)",
    )
    parser.add_argument(
        "--contenders",
        nargs="+",
        choices=CONTENDERS,
        default=list(CONTENDERS),
        metavar="NAME",
        help="which contenders (default all); adjoint_lib always runs, for the comparison, but "
        "keeps its earlier times where it has some and is not among these",
    )
    parser.add_argument(
        "--extras",
        nargs="*",
        choices=EXTRAS,
        default=EXTRAS,
        metavar="NAME",
        help=f"which of the library's other times: {', '.join(EXTRAS)} (default all)",
    )
    parser.add_argument(
        "--repeats",
        type=int,
        default=3,
        help="processes of each contender (default 3); fewer for one that takes very long",
    )
    parser.add_argument(
        "--quick",
        action="store_true",
        help=f"images of {QUICK_SIZE}x{QUICK_SIZE} and one process each, for a look at whether "
        "everything works; printed, not written",
    )
    parser.add_argument(
        "--output",
        type=Path,
        metavar="FILE",
        help=f"where to write (default {LATEST.relative_to(ROOT)})",
    )
    options = parser.parse_args(arguments)
    if options.repeats < 1:
        parser.error(f"--repeats should be at least 1, but is {options.repeats}")
    if options.output and not options.output.parent.is_dir():
        parser.error(f"--output should be in an existing folder, but is {options.output}")
    missing = [c for c in options.contenders if not _is_installed(c)]
    if missing:
        print(
            f"Left out, since not installed: {', '.join(missing)}. "
            "For all: pip install -r benchmarks/requirements.txt",
            file=sys.stderr,
        )
    wanted = [c for c in options.contenders if c not in (*missing, "adjoint_lib")]
    options.ours = "adjoint_lib" in options.contenders
    options.contenders = ["adjoint_lib", *wanted]
    options.repeats = 1 if options.quick else options.repeats
    return options


def _is_installed(contender: str) -> bool:
    package = PACKAGES.get(contender)
    return package is None or importlib.util.find_spec(package) is not None


def _load() -> float | None:
    """How many cores other programs have kept busy in the last minute, where that is known."""
    return round(os.getloadavg()[0], 2) if hasattr(os, "getloadavg") else None


def _available_gb() -> float | None:
    info = Path("/proc/meminfo")
    if not info.exists():
        return None
    line = next(x for x in info.read_text().splitlines() if x.startswith("MemAvailable"))
    return int(line.split()[1]) * 1024 / 1e9


if __name__ == "__main__":
    sys.exit(main())
