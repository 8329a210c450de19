"""The paper's Algorithm 1, as printed, in plain TensorFlow.

This is the yardstick for speed and an independent check of the values, so it shares no code with
``adjoint_lib``: it reads nothing but the numbers in a Keras model's weights.

A deep layer of ResNet20 would take it minutes, all of them an hour. Of such a layer a pass takes a
few windows of the feature maps, and says how many others each of them stands for. That is a low
estimate: so few rows of a Jacobian at a time are quicker than many (conv2: 31 s against 50 s).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
import tensorflow as tf

from benchmarks.contender import Pass, Piece, sample
from benchmarks.network import Network, counts
from benchmarks.tf_operations import TensorFlow

WHOLE = 7e11
"""How many floating-point operations a layer's Jacobian may take to be computed whole."""

WINDOWS = 4
"""How many windows are taken of a layer that is not."""


def adjoint_back_map_v2(
    x: tf.Tensor,
    b: tf.Tensor,
    z: Callable[[tf.Tensor], tf.Tensor],
    F: Callable[[tf.Tensor, tf.Tensor], tf.Tensor],
    w: tf.Tensor,
    s: int,
    M: str,
    parallel_iterations: int | None = None,
) -> tuple[tf.Tensor, tf.Tensor]:
    """AdjointBackMapV2: the effective hypersurfaces of all units of one layer, in one mode.

    x: the image, (H, W, C), with d1 = H W C entries. b: all biases of the network, (d2,).
    z: the scaling of [x; b], here by 1/8.
    F: from (x, b) to the in-channel feature maps of the layer, (h, w, c_in), or (c_in,) for an FC.
    w: the layer's kernel, (r1, r2, c_in, c_out), or (c_in, labels) for an FC.
    s: the stride of the convolution. M: "RM0" (FC) or "RM1" to "RM4" (convolution).
    parallel_iterations: not the paper's; how many rows of the Jacobian ``tf.GradientTape`` computes
        at a time. All of them by default, which takes much memory: see ``python -m benchmarks``.

    Returns (H_I, H_b), whose first axis is d1 and d2, and whose others are, with (h', w') the size
    of the layer's output: RM4 (c_in, h', w', c_out); RM3 (c_in, c_out); RM2 (h', w', c_out);
    RM1 (c_out,); RM0 (labels,).
    """
    d1 = tf.size(x)
    z0 = z(tf.concat([tf.reshape(x, [-1]), b], axis=0))
    x0, b0 = tf.reshape(z0[:d1], x.shape), z0[d1:]
    # In parts, the gradient is traced more than once; a tape that forgets would give zeros.
    with tf.GradientTape(persistent=parallel_iterations is not None) as tape:
        tape.watch((x0, b0))
        maps = F(x0, b0)
    J_x, J_b = tape.jacobian(
        maps,
        (x0, b0),
        unconnected_gradients="zero",
        parallel_iterations=parallel_iterations,
    )
    J_x, J_b = _input_first(J_x, maps.shape), _input_first(J_b, maps.shape)

    if M == "RM0":
        return tf.matmul(J_x, w), tf.matmul(J_b, w)
    if M in ("RM4", "RM3"):
        w_j = tf.unstack(w, axis=2)
        J_x, J_b = tf.unstack(J_x, axis=-1), tf.unstack(J_b, axis=-1)
        R_x, R_b = [], []
        for j in range(len(w_j)):
            kernel = tf.expand_dims(w_j[j], axis=2)
            R_x.append(tf.nn.conv2d(tf.expand_dims(J_x[j], axis=-1), kernel, s, "SAME"))
            R_b.append(tf.nn.conv2d(tf.expand_dims(J_b[j], axis=-1), kernel, s, "SAME"))
        H_I, H_b = tf.stack(R_x, axis=1), tf.stack(R_b, axis=1)
        if M == "RM3":
            return tf.reduce_sum(H_I, axis=(2, 3)), tf.reduce_sum(H_b, axis=(2, 3))
        return H_I, H_b
    if M in ("RM2", "RM1"):
        H_I, H_b = tf.nn.conv2d(J_x, w, s, "SAME"), tf.nn.conv2d(J_b, w, s, "SAME")
        if M == "RM1":
            return tf.reduce_sum(H_I, axis=(1, 2)), tf.reduce_sum(H_b, axis=(1, 2))
        return H_I, H_b
    raise ValueError(f"M should be one of RM0, RM1, RM2, RM3, RM4, but is {M!r}.")


class Layer(NamedTuple):
    """What Algorithm 1 is given for one layer, and what that costs.

    maps, units: the shapes of the in-channel feature maps and of the layer's output.
    flop: floating-point operations of the Jacobian: a pass through the convolutions below for each
        entry of the maps.
    """

    name: str
    F: Callable[[tf.Tensor, tf.Tensor], tf.Tensor]
    w: tf.Tensor
    s: int
    M: str
    maps: tuple[int, ...]
    units: tuple[int, ...]
    flop: float


def prepare(network: Network, parallel_iterations: int | None = None, whole: float = WHOLE) -> Pass:
    """All layers in turn, at [x; b]/8.

    parallel_iterations: see `adjoint_back_map_v2`. whole: see `WHOLE`.
    """
    x, b = tf.constant(network.image), tf.constant(network.b)

    def surfaces():
        for layer in layers(network):
            if layer.flop <= whole:
                yield from _all_units(layer, x, b, parallel_iterations)
            else:
                yield from _some_units(layer, x, b)

    return surfaces


def layers(network: Network) -> list[Layer]:
    """The layers of a network as Algorithm 1 takes them: RM2, or RM0 for a dense one."""

    def in_channels(number: int):
        return lambda x, b: network.run(TensorFlow(), x[tf.newaxis], b, number)[number][0]

    values = network.run(TensorFlow(), tf.constant(network.image[np.newaxis]), network.b)
    shapes = [tuple(value.shape[1:]) for value in values]
    found, below = [], 0.0
    for number in network.layers:
        node, maps, units = network.nodes[number], network.nodes[number].inputs[0], shapes[number]
        s, M = (1, "RM0") if node.op == "dense" else (node.options["stride"], "RM2")
        F, w, flop = in_channels(maps), tf.constant(node.kernel), math.prod(shapes[maps]) * below
        found.append(Layer(node.name, F, w, s, M, shapes[maps], units, flop))
        below += 2.0 * math.prod(units) * math.prod(node.kernel.shape[:-1])
    return found


def _scaled(v: tf.Tensor) -> tf.Tensor:
    return v / 8


def _all_units(
    layer: Layer, x: tf.Tensor, b: tf.Tensor, parallel_iterations: int | None
) -> Iterator[Piece]:
    """The layer as it is."""
    found = adjoint_back_map_v2(
        x, b, _scaled, layer.F, layer.w, layer.s, layer.M, parallel_iterations
    )
    d1, d2 = (H.shape[0] for H in found)
    for rows, H in zip(np.split(np.arange(d1 + d2), [d1]), found, strict=True):
        yield Piece(layer.name, rows, H.numpy)


def _some_units(layer: Layer, x: tf.Tensor, b: tf.Tensor) -> Iterator[Piece]:
    """Algorithm 1 on windows of the maps, each of which is all that a random unit reads.

    The convolution of a window has as many positions as the window, and its middle one is that of
    the unit. The first window, which ``tf.function`` is traced for, stands for itself alone.
    """
    r1, r2, c_in, _ = layer.w.shape
    margins = [counts(size, r, layer.s)[:2] for size, r in zip(layer.maps, (r1, r2), strict=False)]

    @tf.function
    def of_window(corner: tf.Tensor):
        def F(x, b):
            return tf.slice(tf.pad(layer.F(x, b), (*margins, (0, 0))), corner, (r1, r2, c_in))

        return adjoint_back_map_v2(x, b, _scaled, F, layer.w, 1, layer.M)

    windows = math.prod(layer.maps) / (r1 * r2 * c_in)
    for order, unit in enumerate(sample(layer.name, math.prod(layer.units), WINDOWS)):
        i, j, channel = np.unravel_index(unit, layer.units)
        found = of_window(tf.constant([i * layer.s, j * layer.s, 0], tf.int32))
        column = [H[:, r1 // 2, r2 // 2, channel] for H in found]
        stands_for = (windows - 1) / (WINDOWS - 1) if order else 1.0
        yield Piece(
            layer.name,
            slice(None),
            lambda column=column: np.concatenate(column),
            int(unit),
            stands_for,
        )


def _input_first(J: tf.Tensor, maps: tf.TensorShape) -> tf.Tensor:
    """From the tape's (*maps, *inputs) to (d, *maps), d the number of inputs."""
    return tf.reshape(tf.transpose(tf.reshape(J, [maps.num_elements(), -1])), [-1, *maps])
