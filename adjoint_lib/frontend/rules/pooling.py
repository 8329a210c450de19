"""Pooling: the largest or the mean of some entries."""

from __future__ import annotations

import keras

from adjoint_lib.core import primitives as p
from adjoint_lib.frontend.rules.call import Call, rule

L = keras.layers


@rule(L.MaxPooling1D, L.MaxPooling2D)
def max_pool(call: Call) -> int:
    return _pool(call, p.MaxPool)


@rule(L.AveragePooling1D, L.AveragePooling2D)
def average_pool(call: Call) -> int:
    return _pool(call, p.AveragePool)


def _pool(call: Call, primitive: type[p.MaxPool] | type[p.AveragePool]) -> int:
    """Pooling over two axes; a sequence is pooled as an image one pixel high."""
    layer, shape = call.layer, call.input_shapes[0]
    window, strides, padding = layer.pool_size, layer.strides, layer.padding.upper()
    if len(shape) == 3:
        return call.add(primitive(tuple(window), tuple(strides), padding, shape))
    flat, out = (1, *shape), (1, *call.shape)
    h = call.add(p.Reshape(shape, flat), shape=flat)
    h = call.add(primitive((1, window[0]), (1, strides[0]), padding, flat), [h], out)
    return call.add(p.Reshape(out, call.shape), [h])


@rule(L.GlobalAveragePooling1D, L.GlobalAveragePooling2D, L.GlobalAveragePooling3D)
def global_average(call: Call) -> int:
    shape = call.input_shapes[0]
    h = call.add(p.Mean(tuple(range(len(shape) - 1)), shape), shape=shape[-1:])
    return _keepdims(call, h)


@rule(L.GlobalMaxPooling1D, L.GlobalMaxPooling2D, L.GlobalMaxPooling3D)
def global_max(call: Call) -> int:
    shape = call.input_shapes[0]
    return _keepdims(call, call.add(p.GlobalMax(shape), shape=shape[-1:]))


def _keepdims(call: Call, h: int) -> int:
    if not call.layer.keepdims:
        return h
    return call.add(p.Reshape(call.graph.nodes[h].shape, call.shape), [h])
