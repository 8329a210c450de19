"""The paper's Algorithm 1, as printed, in plain TensorFlow.

This is the yardstick for speed and an independent check of the values, so it shares no code with
``adjoint_lib``: it reads nothing but the numbers in a Keras model's weights.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import tensorflow as tf

from benchmarks.contender import Pass, Piece
from benchmarks.network import Network
from benchmarks.tf_operations import TensorFlow


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
    """What Algorithm 1 is given for one layer."""

    name: str
    F: Callable[[tf.Tensor, tf.Tensor], tf.Tensor]
    w: tf.Tensor
    s: int
    M: str


def prepare(network: Network, parallel_iterations: int | None = None) -> Pass:
    """All layers in turn, at [x; b]/8. parallel_iterations: see `adjoint_back_map_v2`."""
    x, b = tf.constant(network.image), tf.constant(network.b)

    def surfaces():
        for layer in layers(network):
            found = adjoint_back_map_v2(
                x, b, lambda v: v / 8, layer.F, layer.w, layer.s, layer.M, parallel_iterations
            )
            split = np.split(np.arange(network.v.size), [network.image.size])
            for rows, H in zip(split, found, strict=True):
                yield Piece(layer.name, rows, H.numpy)

    return surfaces


def layers(network: Network) -> list[Layer]:
    """The layers of a network as Algorithm 1 takes them: RM2, or RM0 for a dense one."""

    def in_channels(number: int):
        return lambda x, b: network.run(TensorFlow(), x[tf.newaxis], b, number)[number][0]

    found = []
    for node in (network.nodes[number] for number in network.layers):
        F, w = in_channels(node.inputs[0]), tf.constant(node.kernel)
        if node.op == "dense":
            found.append(Layer(node.name, F, w, 1, "RM0"))
        else:
            found.append(Layer(node.name, F, w, node.options["stride"], "RM2"))
    return found


def _input_first(J: tf.Tensor, maps: tf.TensorShape) -> tf.Tensor:
    """From the tape's (*maps, *inputs) to (d, *maps), d the number of inputs."""
    return tf.reshape(tf.transpose(tf.reshape(J, [maps.num_elements(), -1])), [-1, *maps])
