"""One timed run in a process of its own, so that time and peak memory are that run's alone.

``python -m benchmarks.worker {algorithm-1,library} --size N --out FILE.npz``; started by
``python -m benchmarks``, which compares what the two write.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from time import perf_counter

import keras
import numpy as np
import tensorflow as tf

import adjoint_lib as al
from benchmarks import algorithm_1

COLUMNS = 64
"""Units per layer whose whole hypersurface is kept for the comparison."""


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.worker", description=__doc__)
    parser.add_argument("method", choices=["algorithm-1", "library"])
    parser.add_argument("--size", type=int, required=True)
    parser.add_argument("--parallel-iterations", type=int)
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    model, image = vgg7(options.size)
    if options.method == "algorithm-1":
        results = run_algorithm_1(model, image, options.parallel_iterations)
    else:
        results = run_library(model, image)
    versions = {"tensorflow": tf.__version__, "keras": keras.__version__, "numpy": np.__version__}
    np.savez(options.out, peak_bytes=peak_bytes(), **versions, **results)


def vgg7(size: int) -> tuple[keras.Model, np.ndarray]:
    """VGG7 with random weights for images of (size, size, 3), and one random image."""
    model = al.models.randomise(al.models.vgg7(), seed=0)
    if size != 32:
        smaller = keras.models.clone_model(model, input_tensors=keras.Input((size, size, 3)))
        smaller.set_weights(model.get_weights())
        model = smaller
    return model, np.random.default_rng(0).random((size, size, 3), dtype=np.float32)


def run_algorithm_1(model: keras.Model, image: np.ndarray, parallel_iterations: int | None) -> dict:
    """All layers by Algorithm 1. The clock runs from the folded network to the last layer's H."""
    x = tf.constant(image)
    b, layers = algorithm_1.equivalent_vgg7(model)
    clock, checks = Stopwatch(), Checks(np.concatenate([image.ravel(), b.numpy()]))
    surfaces = algorithm_1.hypersurfaces(x, b, layers, parallel_iterations)
    for layer, H_I, H_b in clock.over(surfaces):
        checks.add(layer.name, np.arange(image.size), H_I.numpy())
        checks.add(layer.name, np.arange(image.size, len(checks.v)), H_b.numpy())
        del H_I, H_b
        checks.arrays[f"{layer.name}/true"] = algorithm_1.activations(x, b, layer).numpy().ravel()
    return {"seconds": clock.seconds, **checks.arrays}


def run_library(model: keras.Model, image: np.ndarray) -> dict:
    """All layers by the library, streamed, Conv0 too. The clock runs as for Algorithm 1."""
    net = al.equivalent(model)
    clock, checks = Stopwatch(), Checks(np.concatenate([image.ravel(), net.x_b]))

    def surfaces():
        yield from net.freeze(image[None]).hypersurfaces()

    for layer, block in clock.over(surfaces()):
        checks.add(layer.name, block.rows, block.dense().numpy())
    return {"seconds": clock.seconds, **checks.arrays}


class Stopwatch:
    """Adds up the time that an iterator takes, and not the time of what is done with its items."""

    def __init__(self):
        self.seconds = 0.0

    def over(self, items: Iterable) -> Iterator:
        iterator, end = iter(items), object()
        while True:
            start = perf_counter()
            item = next(iterator, end)
            self.seconds += perf_counter() - start
            if item is end:
                return
            yield item


class Checks:
    """What is kept of the rows of H for the comparison, by "layer/what":

    reconstruction (units,): sum over i of v_i H_i, for all units; scale (units,): the same sum of
    absolute values; columns (d, COLUMNS): the whole hypersurface of a random few units. Rows that
    never come count as zero. All in float64, so that the comparison itself does not round.
    """

    def __init__(self, v: np.ndarray):
        self.v = v.astype(np.float64)
        self.arrays: dict[str, np.ndarray] = {}
        self._units: dict[str, np.ndarray] = {}

    def add(self, layer: str, index: np.ndarray, rows: np.ndarray, chunk: int = 256) -> None:
        """``rows``, (n, ...), are the rows ``index``, (n,), of the layer's H."""
        rows = rows.reshape(len(rows), -1)
        if layer not in self._units:
            count = rows.shape[1]
            rng = np.random.default_rng(count)
            self._units[layer] = rng.choice(count, min(COLUMNS, count), replace=False)
            self.arrays[f"{layer}/reconstruction"] = np.zeros(count)
            self.arrays[f"{layer}/scale"] = np.zeros(count)
            self.arrays[f"{layer}/columns"] = np.zeros((len(self.v), len(self._units[layer])))
        for i in range(0, len(rows), chunk):
            part = rows[i : i + chunk].astype(np.float64)
            where = index[i : i + chunk]
            self.arrays[f"{layer}/reconstruction"] += self.v[where] @ part
            self.arrays[f"{layer}/scale"] += np.abs(self.v[where]) @ np.abs(part)
            self.arrays[f"{layer}/columns"][where] = part[:, self._units[layer]]


def peak_bytes() -> int:
    """The most memory this process has held so far."""
    status = Path("/proc/self/status")
    if status.exists():  # unlike ru_maxrss, this does not start from the parent's peak
        line = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM"))
        return int(line.split()[1]) * 1024
    import resource

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


if __name__ == "__main__":
    main()
