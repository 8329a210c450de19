"""Pooling: the largest or the mean of some entries."""

from __future__ import annotations

import math
from typing import Any

import keras
import numpy as np

from adjoint_lib.core import primitives as p
from adjoint_lib.frontend.rules.call import Call, axes_of, each_axis, operator, reshaped, rule
from adjoint_lib.frontend.rules.operators import bounded

L = keras.layers


@operator("MaxPool")
@rule(L.MaxPooling1D, L.MaxPooling2D, L.MaxPooling3D)
def max_pool(call: Call) -> int:
    return _pool(call, p.MaxPool)


@operator("AveragePool")
@rule(L.AveragePooling1D, L.AveragePooling2D, L.AveragePooling3D)
def average_pool(call: Call) -> int:
    return _pool(call, p.AveragePool)


def _pool(call: Call, primitive: type[p.MaxPool] | type[p.AveragePool]) -> int:
    """Pooling over two axes; a sequence is an image one pixel high.

    A volume is pooled along its first two axes, with the third among the channels, then along it.
    """
    (h,), (shape,), out = call.inputs, call.input_shapes, call.shape
    layer, rank = call.layer, len(shape) - 1
    passes: list[Any]  # (window, strides), shape before, shape after
    window = each_axis(layer.pool_size, rank)
    strides = window if layer.strides is None else each_axis(layer.strides, rank)
    last = (1, window[-1]), (1, strides[-1])
    first = (window[0], window[rank > 1]), (strides[0], strides[rank > 1])
    if rank == 1:
        passes = [(last, (1, *shape), (1, *out))]
    elif rank == 2:
        passes = [(first, shape, out)]
    else:
        (depth, height, width, channels), (d, n, m, _) = shape, out
        between = [(depth, height, width * channels), (d, n, width * channels)]
        passes = [(first, *between), (last, (d * n, width, channels), (d * n, m, channels))]
    for (taps, steps), before, after in passes:
        pool = primitive(taps, steps, layer.padding.upper(), before)
        h = call.add(pool, [reshaped(call, h, before)], after)
    return reshaped(call, h, out)


@rule(L.GlobalAveragePooling1D, L.GlobalAveragePooling2D, L.GlobalAveragePooling3D)
def global_average(call: Call) -> int:
    shape = call.input_shapes[0]
    h = call.add(p.Mean(tuple(range(len(shape) - 1)), shape), shape=shape[-1:])
    return reshaped(call, h, call.shape)


@rule(L.GlobalMaxPooling1D, L.GlobalMaxPooling2D, L.GlobalMaxPooling3D)
def global_max(call: Call) -> int:
    shape = call.input_shapes[0]
    return reshaped(call, call.add(p.GlobalMax(shape), shape=shape[-1:]), call.shape)


@operator("Mean")
def mean(call: Call) -> int:
    shape, axes = call.input_shapes[0], axes_of(call)
    left = tuple(n for a, n in enumerate(shape) if a not in axes)
    return reshaped(call, call.add(p.Mean(axes, shape), shape=left), call.shape)


@operator("Sum")
def total(call: Call) -> int:
    h, shape = call.inputs[0], list(call.input_shapes[0])
    for axis in axes_of(call):
        ones, shape[axis] = np.ones((shape[axis], 1)), 1
        h = call.add(p.AlongAxis(ones, axis + 1), [h], tuple(shape))
    return reshaped(call, h, call.shape)


@operator("Max", "Amax")
def largest(call: Call) -> int:
    return _extreme(call, 1.0)


@operator("Min", "Amin")
def smallest(call: Call) -> int:
    return _extreme(call, -1.0)


def _extreme(call: Call, sign: float) -> int:
    """The largest entry along some axes; the smallest is less the largest of the negative."""
    shape, axes = call.input_shapes[0], axes_of(call)
    kept = [a for a in range(len(shape)) if a not in axes]
    order = (*axes, *kept)
    moved = tuple(shape[a] for a in order)
    flat = (math.prod(shape[a] for a in axes), math.prod(shape[a] for a in kept))
    h = call.add(p.Permute(order), shape=moved)
    h = h if sign > 0 else call.add(p.Scale(np.array(sign)), [h], moved)
    h = call.add(p.GlobalMax(flat), [call.add(p.Reshape(moved, flat), [h], flat)], flat[1:])
    h = h if sign > 0 else call.add(p.Scale(np.array(sign)), [h], flat[1:])
    h = reshaped(call, h, call.shape)
    limit = getattr(call.layer, "initial", None)
    return h if limit is None else bounded(call, h, int(sign), limit, call.shape)
