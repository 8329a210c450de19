"""Normalisation and scaling: a factor, and a bias that is an entry of x_b."""

from __future__ import annotations

import keras
import numpy as np

from adjoint_lib.core import folding
from adjoint_lib.core import primitives as p
from adjoint_lib.frontend import layers
from adjoint_lib.frontend.rules.call import Call, rule, weight

L = keras.layers


@rule(L.BatchNormalization)
def batch_norm(call: Call) -> int:
    layer = call.layer
    mean, variance = weight(layer.moving_mean), weight(layer.moving_variance)
    gamma = weight(layer.gamma) if layer.scale else np.ones_like(mean)
    beta = weight(layer.beta) if layer.center else np.zeros_like(mean)
    scale, bias = folding.batch_norm(gamma, beta, mean, variance, layer.epsilon)
    axis = layer.axis if layer.axis < 0 else layer.axis - len(call.shape) - 1
    size = np.abs(beta) + np.abs(scale * mean)
    origin = "beta - gamma mean / sqrt(variance + epsilon)"
    return _affine(call, along(scale, axis), along(bias, axis), origin, along(size, axis))


@rule(L.Rescaling)
def rescaling(call: Call) -> int:
    """Keras casts plain numbers through float32, even in a float64 model: so do we."""
    layer = call.layer
    cast = [keras.ops.cast(value, layer.compute_dtype) for value in (layer.scale, layer.offset)]
    scale, offset = (weight(value) for value in cast)
    return _affine(call, scale, offset, "offset") if offset.any() else call.add(p.Scale(scale))


@rule(L.Normalization)
def normalization(call: Call) -> int:
    layer = call.layer
    rank = len(call.shape)
    mean, variance = (np.asarray(m, float) for m in (layer.mean, layer.variance))
    mean, variance = (
        m.reshape(m.shape[m.ndim - rank :]) if m.ndim > rank else m for m in (mean, variance)
    )
    deviation = np.maximum(np.sqrt(variance), keras.config.epsilon())
    if layer.invert:
        return _affine(call, deviation, mean, "mean")
    return _affine(call, 1 / deviation, -mean / deviation, "- mean / deviation")


@rule(layers.Multiplier)
def multiplier(call: Call) -> int:
    return call.add(p.Scale(weight(call.layer.multiplier)))


@rule(layers.Bias)
def scalar_bias(call: Call) -> int:
    return call.add_bias(call.inputs[0], weight(call.layer.bias))


def _affine(
    call: Call, scale: np.ndarray, bias: np.ndarray, origin: str, size: np.ndarray | None = None
) -> int:
    return call.add_bias(call.add(p.Scale(scale)), bias, origin, size)


def along(values: np.ndarray, axis: int) -> np.ndarray:
    """A vector shaped to broadcast along `axis` (negative, from the end)."""
    return np.reshape(values, (-1, *(1,) * (-axis - 1)))
