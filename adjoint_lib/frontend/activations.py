"""Keras activations as piecewise-linear primitives, and the constants they put into x_b.

An activation with intercepts (ReLU6, hard tanh, hard sigmoid, a ReLU with a threshold) is not
homogeneous in its pre-activation h alone: sigma(kh) != k sigma(h). It is homogeneous in h *and* its
constants taken together, so the constants become inputs of their own, and the identity
F(v) = J(v) v holds again. `PIECEWISE` maps the name of a Keras activation to such a primitive.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import tensorflow as tf

from adjoint_lib.core.primitives import Activation

Constants = tuple[float, ...]
Lowered = tuple[Activation, Constants]  # the primitive, and its constants: entries of x_b


def relu(
    negative_slope: float = 0.0, max_value: float | None = None, threshold: float = 0.0
) -> Lowered:
    """The ReLU family of `keras.layers.ReLU`: leak, ceiling and threshold in any combination.

    Keras rounds the ceiling, and the threshold where it compares, to float32 even for float64
    tensors: a ceiling of 0.3 is 0.300000012. Where it subtracts the threshold it does not round it;
    between the two thresholds its two pieces overlap or gape by leak * 1e-8, which is left out.
    """
    if max_value is None and threshold == 0:
        return leaky_relu(negative_slope)
    edge = in_float32(threshold)
    below = threshold / edge if edge else 1.0
    if max_value is None:
        return thresholded_relu(negative_slope, edge, below)
    return clipped_relu(negative_slope, in_float32(max_value), edge, below)


def leaky_relu(negative_slope: float = 0.2) -> Lowered:
    """max(h, 0) + a min(h, 0); a = 0 is the plain ReLU.

    TensorFlow keeps the leak as a float32 attribute even for float64 tensors: 0.1 is 0.100000001.
    """
    leak = in_float32(negative_slope)
    function = tf.nn.relu if leak == 0 else lambda h: tf.nn.leaky_relu(h, leak)
    return Activation(function, np.array([leak, 1.0])), ()


def prelu(alpha: np.ndarray) -> Lowered:
    """A leak learned for each channel or entry; alpha broadcasts against h."""
    alpha = np.asarray(alpha, float)

    def function(h: tf.Tensor) -> tf.Tensor:
        return tf.nn.relu(h) - tf.cast(alpha, h.dtype) * tf.nn.relu(-h)

    return Activation(function, np.stack([alpha, np.ones_like(alpha)])), ()


def thresholded_relu(leak: float, threshold: float, below: float) -> Lowered:
    """h above the threshold t, and leak * (h - below * t) up to it; constant: t."""

    def function(h: tf.Tensor, t: tf.Tensor) -> tf.Tensor:
        return tf.where(h > t, h, leak * (h - below * t))

    levels = ((-leak * below,), (0.0,))
    return Activation(function, np.array([leak, 1.0]), ((1.0,),), levels), (threshold,)


def clipped_relu(leak: float, ceiling: float, threshold: float, below: float) -> Lowered:
    """A thresholded ReLU with a ceiling; ReLU6 is (0, 6, 0). Constants: ceiling, threshold t.

    At a threshold that is not below the ceiling it jumps from the leak to the ceiling.
    """
    if threshold == 0 < ceiling:

        def clipped(h: tf.Tensor, top: tf.Tensor) -> tf.Tensor:
            above = tf.minimum(tf.nn.relu(h), top)
            return above - leak * tf.nn.relu(-h) if leak else above

        slopes = np.array([leak, 1.0, 0.0])
        return Activation(clipped, slopes, *_clipping((0.0,), (1.0,))), (ceiling,)

    def function(h: tf.Tensor, top: tf.Tensor, t: tf.Tensor) -> tf.Tensor:
        return tf.where(h > t, tf.minimum(h, top), leak * (h - below * t))

    low, top = (0.0, -leak * below), (1.0, 0.0)
    if threshold < ceiling:
        slopes, edges = np.array([leak, 1.0, 0.0]), ((0.0, 1.0), (1.0, 0.0))
        return Activation(function, slopes, edges, (low, (0.0, 0.0), top)), (ceiling, threshold)
    slopes = np.array([leak, 0.0])
    return Activation(function, slopes, ((0.0, 1.0),), (low, top)), (ceiling, threshold)


def absolute() -> Lowered:
    """|h|."""
    return Activation(tf.abs, np.array([-1.0, 1.0])), ()


def hard_tanh(low: float = -1.0, high: float = 1.0) -> Lowered:
    """h clipped to [low, high], by default [-1, 1]; constants: these two."""
    pieces = _clipping((1.0, 0.0), (0.0, 1.0))
    return Activation(tf.clip_by_value, np.array([0.0, 1.0, 0.0]), *pieces), (low, high)


def at_least(low: float) -> Lowered:
    """max(h, low); constant: low."""
    return Activation(tf.maximum, np.array([0.0, 1.0]), ((1.0,),), ((1.0,), (0.0,))), (low,)


def at_most(high: float) -> Lowered:
    """min(h, high); constant: high."""
    return Activation(tf.minimum, np.array([1.0, 0.0]), ((1.0,),), ((0.0,), (1.0,))), (high,)


def ramp_to_one(slope: float) -> Lowered:
    """slope * h + 1/2 clipped to [0, 1]; constant: 1/2."""

    def function(h: tf.Tensor, half: tf.Tensor) -> tf.Tensor:
        return tf.clip_by_value(slope * h + half, tf.zeros_like(half), 2 * half)

    edge = 1 / slope  # slope * h = +-1/2 at h = +-edge * (the constant 1/2)
    pieces = ((-edge,), (edge,)), ((0.0,), (1.0,), (2.0,))
    return Activation(function, np.array([0.0, slope, 0.0]), *pieces), (0.5,)


def soft_shrink(threshold: float = 0.5) -> Lowered:
    """h moved towards 0 by t, and 0 within [-t, t]; constant: t."""

    def function(h: tf.Tensor, t: tf.Tensor) -> tf.Tensor:
        return tf.nn.relu(h - t) - tf.nn.relu(-h - t)

    pieces = ((-1.0,), (1.0,)), ((1.0,), (0.0,), (-1.0,))
    return Activation(function, np.array([1.0, 0.0, 1.0]), *pieces), (threshold,)


def _clipping(low: Constants, high: Constants) -> tuple[tuple[Constants, ...], ...]:
    """Breakpoints and intercepts of a function that is level below `low` and above `high`."""
    return (low, high), (low, (0.0,) * len(low), high)


def in_float32(value: float) -> float:
    """A setting of a Keras layer as TensorFlow computes with it: rounded to float32."""
    return float(np.float32(value))


PIECEWISE: dict[str, Callable[[], Lowered]] = {
    "relu": relu,
    "relu6": lambda: relu(max_value=6.0),
    "leaky_relu": leaky_relu,
    "hard_tanh": hard_tanh,
    "hard_sigmoid": lambda: ramp_to_one(1 / 6),
    "sparse_sigmoid": lambda: ramp_to_one(1 / 2),
    "soft_shrink": soft_shrink,
}
