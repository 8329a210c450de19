"""One run of one contender in a process of its own, so that time and peak memory are its alone.

``python -m benchmarks.worker CONTENDER --network FILE --out FILE``; started by ``python -m
benchmarks``. Imports and preparing the network are not timed. The first pass is: it includes what a
library compiles or traces when it meets a network. So are the later ones, the warm passes.
"""

from __future__ import annotations

import argparse
import importlib
import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from time import perf_counter

import numpy as np

from benchmarks import network as networks
from benchmarks.contender import CONTENDERS, Pass, Piece, sample

COLUMNS = 64
"""Units per layer whose whole hypersurface is kept for the comparison."""

LONG = 90.0
"""A first pass of more seconds than this is the only one."""

WARM_SECONDS, WARM_PASSES = 8.0, 3
"""No further warm pass once this is reached; one is always made."""

TUNING_DIRECTIONS = 256
"""How many directions each choice of settings is tried on."""


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.worker", description=__doc__)
    parser.add_argument("contender", choices=CONTENDERS)
    parser.add_argument("--network", type=Path, required=True)
    parser.add_argument("--settings", type=json.loads, default={})
    parser.add_argument("--tune", action="store_true", help="find the quickest settings instead")
    parser.add_argument("--check", action="store_true", help="keep values for the comparison")
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args(arguments)
    network = networks.load(options.network)
    contender = importlib.import_module(CONTENDERS[options.contender])
    if options.tune:
        found = {"tried": tune(contender, network)}
        arrays = {}
    else:
        checks = Checks(network.v) if options.check else None
        early = options.contender == "algorithm_1"  # too slow for another pass, and much larger
        found = measure(contender.prepare(network, **options.settings), checks, early)
        arrays = checks.arrays if checks else {}
    np.savez(options.out, found=json.dumps(found), **arrays)


def measure(surfaces: Pass, checks: Checks | None = None, early: bool = False) -> dict:
    """Seconds of the first pass and of warm ones, which layers are sampled, the peak memory in MB.

    Values are kept, into `checks`, during a last pass that is not timed, so that the peak is the
    contender's own; or, if `early`, during the first, off the clock.
    """
    before, start = peak_mb(), perf_counter()
    clock = Stopwatch()
    first = clock.whole(surfaces, checks if early else None)
    warm: list[float] = []
    if perf_counter() - start < LONG:
        start = perf_counter()
        while len(warm) < WARM_PASSES and perf_counter() - start < WARM_SECONDS:
            warm.append(Stopwatch().whole(surfaces, None))
    memory = {"peak_mb": peak_mb(), "peak_mb_before": before}
    found = {"first": first, "warm": warm, "sampled": sorted(clock.sampled), **memory}
    if checks is not None and not early:
        Stopwatch().whole(surfaces, checks)
    return found


def tune(contender, network: networks.Network) -> list[dict]:
    """Microseconds per direction of each choice of settings, tracing and compiling left out."""
    tried = []
    for settings in contender.CHOICES:
        surfaces = contender.prepare(network, **settings, directions=TUNING_DIRECTIONS)
        Stopwatch().whole(surfaces, None)
        seconds = min(Stopwatch().whole(surfaces, None) for _ in range(2))
        each = seconds / min(TUNING_DIRECTIONS, network.v.size)
        tried.append({**settings, "microseconds_per_direction": round(1e6 * each, 1)})
    return tried


class Stopwatch:
    """Adds up the time that an iterator takes, and not the time of what is done with its items.

    Attributes:
        seconds: so far; a piece that stands for others counts for them too.
        sampled: the layers that have such pieces.
    """

    def __init__(self, clock: Callable[[], float] = perf_counter):
        self.clock = clock
        self.seconds = 0.0
        self.sampled: set[str] = set()

    def whole(self, surfaces: Pass, checks: Checks | None) -> float:
        """The seconds of a whole pass."""
        for piece in self.over(surfaces()):
            if checks is not None:
                checks.add(piece)
        return self.seconds

    def over(self, pieces: Iterator[Piece]) -> Iterator[Piece]:
        end = Piece("", None, lambda: np.zeros(0))
        while True:
            start = self.clock()
            piece = next(pieces, end)
            self.seconds += piece.stands_for * (self.clock() - start)
            if piece.stands_for != 1:
                self.sampled.add(piece.layer)
            if piece is end:
                return
            yield piece


class Checks:
    """What is kept of the hypersurfaces for the comparison, by "layer/what":

    reconstruction (units,): sum over i of v_i H_i, for all units; scale (units,): the same sum of
    absolute values; columns (d, COLUMNS): the whole hypersurface of a random few units, the same
    for every contender, NaN where one has not been computed. Rows that never come count as zero.
    All in float64, so that the comparison itself does not round.
    """

    def __init__(self, v: np.ndarray):
        self.v = v.astype(np.float64)
        self.arrays: dict[str, np.ndarray] = {}

    def add(self, piece: Piece) -> None:
        values = np.asarray(piece.values())
        if piece.unit is None:
            self._add_rows(piece.layer, piece.rows, values.reshape(len(values), -1))
        else:
            self._add_column(piece.layer, values)

    def _add_rows(self, layer: str, index: np.ndarray, rows: np.ndarray, chunk: int = 64) -> None:
        count = rows.shape[1]
        units = sample(layer, count, COLUMNS)
        total = self._array(layer, "reconstruction", count)
        scale = self._array(layer, "scale", count)
        columns = self._array(layer, "columns", (self.v.size, len(units)))
        for i in range(0, len(rows), chunk):
            part = rows[i : i + chunk].astype(np.float64)
            where = index[i : i + chunk]
            total += self.v[where] @ part
            scale += np.abs(self.v[where]) @ np.abs(part)
            columns[where] = part[:, units]

    def _add_column(self, layer: str, H: np.ndarray) -> None:
        """The units of a sampled pass are the first of the chosen ones, in the same order."""
        before = self.arrays.get(f"{layer}/columns", np.zeros((H.size, 0)))
        self.arrays[f"{layer}/columns"] = np.column_stack([before, H.astype(np.float64)])

    def _array(self, layer: str, what: str, shape: int | tuple[int, ...]) -> np.ndarray:
        return self.arrays.setdefault(f"{layer}/{what}", np.zeros(shape))


def peak_mb() -> float:
    """The most memory this process has held so far."""
    status = Path("/proc/self/status")
    if status.exists():  # unlike ru_maxrss, this does not start from the parent's peak
        line = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM"))
        return int(line.split()[1]) * 1024 / 1e6
    import resource

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return (peak if sys.platform == "darwin" else peak * 1024) / 1e6


if __name__ == "__main__":
    main()
