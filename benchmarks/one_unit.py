"""One unit at a time: TensorFlow's gradient of a single unit with respect to [x; b].

All units would take an hour or so, so a pass takes a random few of each layer, in proportion to
its units, and says how many others each of them stands for. The first unit of a layer, which is
also the one that ``tf.function`` is traced for, stands for itself alone.
"""

from __future__ import annotations

import numpy as np
import tensorflow as tf

from benchmarks.contender import Pass, Piece, sample
from benchmarks.network import Network
from benchmarks.tf_operations import TensorFlow

UNITS = 192
"""About how many units a pass takes."""


def prepare(network: Network) -> Pass:
    x, b = tf.constant(network.image[None]), tf.constant(network.b)
    gradients = {number: _gradient(network, number, x, b) for number in network.layers}
    shapes = network.units(TensorFlow(), x, b)
    sizes = {number: int(tf.size(shapes[network.nodes[number].name])) for number in network.layers}

    def surfaces():
        for number, size in sizes.items():
            name = network.nodes[number].name
            chosen = sample(name, size, max(2, round(UNITS * size / sum(sizes.values()))))
            for order, unit in enumerate(chosen):
                dx, db = gradients[number](tf.constant(unit))
                yield Piece(
                    name,
                    slice(None),
                    lambda dx=dx, db=db: np.concatenate([tf.reshape(dx, -1), db]),
                    int(unit),
                    (size - 1) / (len(chosen) - 1) if order else 1.0,
                )

    return surfaces


def _gradient(network: Network, number: int, x: tf.Tensor, b: tf.Tensor):
    """From a flat index of a unit of a layer to its gradient, compiled for that layer."""

    @tf.function
    def gradient(unit):
        with tf.GradientTape() as tape:
            tape.watch((x, b))
            units = network.run(TensorFlow(), x, b, number)[number]
            c = tf.reshape(units, [-1])[unit]
        return tape.gradient(c, (x, b), unconnected_gradients="zero")

    return gradient
