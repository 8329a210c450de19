"""What else is measured of the library, each in a process of its own: ``python -m
benchmarks.extras NAME --network FILE --out FILE``, started by ``python -m benchmarks``.
"""

from __future__ import annotations

import argparse
import json
import statistics
from collections.abc import Callable
from pathlib import Path
from time import perf_counter

import keras
import numpy as np
import tensorflow as tf

import adjoint_lib as al
from benchmarks import network as networks
from benchmarks.ours import equivalent, flops, profile
from benchmarks.problem import keras_model
from benchmarks.report import machine

GROWTH = {
    "depth": [2, 4, 8, 16],
    "width": [8, 16, 32, 64],
    "size": [8, 16, 32, 64],
    "images": [1, 2, 4, 8],
}
"""What is varied, one at a time; the rest stays as in `every_surface`."""

SHARES = [0.5, 0.25, 0.125]
"""How much is open in front of the convolution of `open_entries`."""


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.extras", description=__doc__)
    parser.add_argument("name", choices=EXTRAS)
    parser.add_argument("--network", type=Path, required=True)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args(arguments)
    found = EXTRAS[options.name](networks.load(options.network), options.quick)
    options.out.write_text(json.dumps(found))


def convolution_rate(network: networks.Network, quick: bool) -> dict:
    """How fast this machine convolves in float32: 3x3, 192 rows, at the sizes of the networks."""
    found = {}
    for size, channels in ((32, 32), (16, 64), (8, 96)):
        x = tf.random.stateless_normal((8 if quick else 192, size, size, channels), (0, 0))
        w = tf.random.stateless_normal((3, 3, channels, channels), (0, 1))
        seconds = median_time(lambda x=x, w=w: tf.nn.conv2d(x, w, 1, "SAME"), 3 if quick else 15)
        work = 2 * np.prod(x.shape) * np.prod(w.shape[:-1])
        found[f"{size}x{size}x{channels}"] = round(float(work) / seconds / 1e9, 1)
    return {"gflop_per_second": found, "best": max(found.values())}


def one_unit(network: networks.Network, quick: bool) -> dict:
    """One unit of the last convolution, from the call to NumPy arrays; and one forward and one
    backward pass of the Keras model at batch 1, to the image, for comparison."""
    net, _ = equivalent(network)
    layer = [layer for layer in net.layers if layer.kind == "Conv"][-1]
    unit = tuple(size // 2 for size in layer.shape)
    model, x = keras_model(network.name, network.image.shape[0]), tf.constant(network.image[None])

    def click():
        found = net.hypersurface(network.image, layer.name)[unit]
        return found.image, found.bias, found.value

    def passes():
        with tf.GradientTape() as tape:
            tape.watch(x)
            score = model(x, training=False)[0, 0]
        return tape.gradient(score, x)

    compiled = tf.function(passes)
    repeats = 3 if quick else 30
    seconds = {
        "call_to_arrays": median_time(click, repeats),
        "forward_and_backward": median_time(lambda: passes().numpy(), repeats),
        "forward_and_backward_compiled": median_time(lambda: compiled().numpy(), repeats),
    }
    return {
        "layer": layer.name,
        "unit": unit,
        "seconds": {what: round(value, 5) for what, value in seconds.items()},
        "ratio": round(seconds["call_to_arrays"] / seconds["forward_and_backward"], 2),
        "ratio_compiled": round(
            seconds["call_to_arrays"] / seconds["forward_and_backward_compiled"], 2
        ),
    }


def where_time_goes(network: networks.Network, quick: bool) -> dict:
    """The share of each kind of operation in a pass, and on which processor."""
    shares = profile(network, passes=1 if quick else 5)
    return {"processor": machine()["processor"], "shares": shares}


def modes(network: networks.Network, quick: bool) -> dict:
    """All units of one layer in each mode, from the call to one array. RM4 is of one position."""
    net, _ = equivalent(network)
    middle = net.layers[len(net.layers) // 2]
    place = tuple(size // 2 for size in middle.shape[:-1])
    wanted = {
        "RM1": (middle.name, ...),
        "RM2": (middle.name, ...),
        "RM3": (middle.name, ...),
        "RM4 at one position": (middle.name, place),
        "RM0": (net.layers[-1].name, ...),
    }
    found = {}
    for what, (layer, index) in wanted.items():

        def compute(layer=layer, mode=what[:3], index=index):
            return net.hypersurface(network.image, layer, mode)[index].H

        H = compute()
        found[what] = {
            "layer": layer,
            "units": H.size // net.d_in,
            "seconds": round(median_time(compute, 1 if quick else 3), 4),
        }
    return found


def growth(network: networks.Network, quick: bool) -> dict:
    """How the time of all hypersurfaces of all layers grows with one number at a time."""
    found = {}
    for what, values in GROWTH.items():
        points = []
        for value in values[: 2 if quick else None]:
            rest = {"depth": 2, "size": 8} if quick else {}
            seconds = median_time(every_surface(**{**rest, what: value}), 3)
            points.append([value, round(seconds, 4)])
        x, y = np.log(np.array(points, float).T)
        found[what] = {"points": points, "exponent": round(float(np.polyfit(x, y, 1)[0]), 2)}
    return found


def every_surface(
    depth: int = 6, width: int = 32, size: int = 32, images: int = 1
) -> Callable[[], None]:
    """A pass over all hypersurfaces of a plain network: `depth` convolutions 3x3 of `width`
    channels with biases and ReLU, then a dense layer, at images of (size, size, 3)."""
    layers = [keras.Input((size, size, 3))]
    for _ in range(depth):
        layers.append(keras.layers.Conv2D(width, 3, padding="same", activation="relu"))
    layers += [keras.layers.GlobalAveragePooling2D(), keras.layers.Dense(10)]
    net = al.equivalent(al.models.randomise(keras.Sequential(layers), seed=0))
    x = np.random.default_rng(0).random((images, size, size, 3), dtype=np.float32)

    def run():
        for image in x:
            for _ in net.freeze(image).hypersurfaces():
                pass

    return run


def open_entries(network: networks.Network, quick: bool) -> dict:
    """How long products of open entries alone take, beside the convolution they could replace.

    Behind a ReLU that is shut a tangent is zero, so a convolution could multiply only what is open:
    gathered for each position, by NumPy, in one product for all directions. Here the convolution
    is 3x3, of 96 channels on 8x8 maps, as the networks have it, and so much is open at random.
    """
    directions = 8 if quick else 192
    layers = [_Shut(share, directions) for share in SHARES]
    for layer in layers:
        np.testing.assert_allclose(layer.gathered(), layer.convolved(), atol=1e-3)
    repeats = 3 if quick else 30  # NumPy's threads linger, so TensorFlow's turn is first
    convolved = [median_time(layer.convolved, repeats) for layer in layers]
    gathered = [median_time(layer.gathered, repeats) for layer in layers]
    rows = zip(SHARES, convolved, gathered, strict=True)
    return {"rows": [[share, round(c, 6), round(g, 6)] for share, c, g in rows]}


class _Shut:
    """Tangents in front of a convolution, and which of their entries are open."""

    def __init__(self, share: float, directions: int, size: int = 8, channels: int = 96):
        rng, maps = np.random.default_rng(0), (size, size, channels)
        open_ = rng.random(maps) < share
        self.x = tf.constant(rng.normal(size=(directions, *maps)), tf.float32)
        self.slope = tf.constant(open_[None], tf.float32)
        self.kernel = tf.constant(rng.normal(size=(3, 3, channels, channels)), tf.float32)
        places = np.where(open_, np.arange(open_.size).reshape(maps), -1)
        places = np.pad(places, ((1, 1), (1, 1), (0, 0)), constant_values=-1)
        windows = (places[y : y + 3, x : x + 3].reshape(-1) for y, x in np.ndindex(size, size))
        self.read = [(window[window >= 0], np.flatnonzero(window >= 0)) for window in windows]

    def convolved(self) -> tf.Tensor:
        """The whole convolution, after the slopes."""
        return tf.nn.conv2d(self.x * self.slope, self.kernel, 1, "SAME")

    def gathered(self) -> np.ndarray:
        """At each position what is open in its window, times its rows of the kernel."""
        directions, *maps = self.x.shape
        columns = np.asarray(memoryview(tf.transpose(tf.reshape(self.x, (directions, -1)))))
        weights = tf.reshape(self.kernel, (-1, maps[-1])).numpy()
        most = max(len(entries) for entries, _ in self.read)
        x, w = (np.empty((most, n), np.float32) for n in (directions, maps[-1]))
        found = np.empty((directions, len(self.read), maps[-1]), np.float32)
        for i, (entries, taps) in enumerate(self.read):
            some = slice(len(entries))
            np.take(columns, entries, axis=0, out=x[some], mode="clip")  # "raise" would copy
            np.take(weights, taps, axis=0, out=w[some], mode="clip")
            np.matmul(x[some].T, w[some], out=found[:, i])
        return found.reshape(directions, *maps)


def median_time(function: Callable, repeats: int, enough: float = 3.0) -> float:
    """The median of several calls after a first one; fewer once `enough` seconds have passed."""
    function()
    seconds: list[float] = []
    while len(seconds) < repeats and sum(seconds) < enough:
        start = perf_counter()
        function()
        seconds.append(perf_counter() - start)
    return statistics.median(seconds)


EXTRAS: dict[str, Callable[[networks.Network, bool], dict]] = {
    "convolution_rate": convolution_rate,
    "flop": lambda network, quick: flops(network),
    "profile": where_time_goes,
    "one_unit": one_unit,
    "modes": modes,
    "growth": growth,
    "open_entries": open_entries,
}


if __name__ == "__main__":
    main()
