"""The paper's Algorithm 1, as printed, in plain TensorFlow; and VGG7 in the form that it needs.

This is the yardstick for speed and an independent check of the values, so it shares no code with
``adjoint_lib``: it reads nothing but the numbers in a Keras model's weights.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import keras
import tensorflow as tf


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


def equivalent_vgg7(model: keras.Model) -> tuple[tf.Tensor, list[Layer]]:
    """VGG7 as the network of [x; b] that computes the same: its b, (384,), and its layers.

    Folds each batch normalisation into the kernel and a bias (the paper's reduced form:
    w' = gamma w / sqrt(var + eps), b' = beta - gamma mean / sqrt(var + eps)). Conv0 is left out, as
    in the paper: its in-channels are the image itself.
    """
    kernels, biases = [], []
    for i in range(6):
        bn = model.get_layer(f"bn{i}")
        gamma, beta, mean, var = (tf.convert_to_tensor(v) for v in bn.weights)
        scale = gamma / tf.sqrt(var + bn.epsilon)
        kernels.append(tf.convert_to_tensor(model.get_layer(f"conv{i}").kernel) * scale)
        biases.append(beta - mean * scale)
    sizes = [bias.shape[0] for bias in biases]

    def in_channels(layer: int):
        def F(x, b):
            b_per_layer = tf.split(b, sizes)
            maps = x[tf.newaxis]
            for i in range(layer):
                maps = tf.nn.conv2d(maps, kernels[i], 1, "SAME") + b_per_layer[i]
                maps = tf.nn.relu(maps)
                if i in (1, 3):
                    maps = tf.nn.avg_pool2d(maps, 3, 2, "SAME")
            if layer == 6:
                maps = tf.reduce_mean(maps, axis=(1, 2))
            return maps[0]

        return F

    layers = [Layer(f"conv{i}", in_channels(i), kernels[i], 1, "RM2") for i in range(1, 6)]
    fc = tf.convert_to_tensor(model.get_layer("fc").kernel)
    return tf.concat(biases, axis=0), [*layers, Layer("fc", in_channels(6), fc, 1, "RM0")]


def hypersurfaces(
    x: tf.Tensor, b: tf.Tensor, layers: list[Layer], parallel_iterations: int | None = None
) -> Iterator[tuple[Layer, tf.Tensor, tf.Tensor]]:
    """(layer, H_I, H_b) for each layer in turn, by Algorithm 1 at [x; b]/8."""
    for layer in layers:
        yield (
            layer,
            *adjoint_back_map_v2(
                x, b, lambda v: v / 8, layer.F, layer.w, layer.s, layer.M, parallel_iterations
            ),
        )


def activations(x: tf.Tensor, b: tf.Tensor, layer: Layer) -> tf.Tensor:
    """The layer's true output at [x; b], before its own bias: (h', w', c_out), or (labels,)."""
    maps = layer.F(x, b)[tf.newaxis]
    if layer.M == "RM0":
        return tf.matmul(maps, layer.w)[0]
    return tf.nn.conv2d(maps, layer.w, layer.s, "SAME")[0]


def _input_first(J: tf.Tensor, maps: tf.TensorShape) -> tf.Tensor:
    """From the tape's (*maps, *inputs) to (d, *maps), d the number of inputs."""
    return tf.reshape(tf.transpose(tf.reshape(J, [maps.num_elements(), -1])), [-1, *maps])
