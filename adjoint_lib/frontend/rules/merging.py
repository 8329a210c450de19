"""Several inputs into one: sums, extrema, concatenation."""

from __future__ import annotations

import keras

from adjoint_lib.core import primitives as p
from adjoint_lib.errors import UnsupportedLayer
from adjoint_lib.frontend.rules.call import Call, refuse_ranks, rule

L = keras.layers


@rule(L.Add)
def add(call: Call) -> int:
    return _sum(call, [1.0] * len(call.inputs))


@rule(L.Subtract)
def subtract(call: Call) -> int:
    return _sum(call, [1.0, -1.0])


@rule(L.Average)
def average(call: Call) -> int:
    return _sum(call, [1 / len(call.inputs)] * len(call.inputs))


@rule(L.Maximum)
def maximum(call: Call) -> int:
    return _extremum(call, 1)


@rule(L.Minimum)
def minimum(call: Call) -> int:
    return _extremum(call, -1)


def _sum(call: Call, coefficients: list[float]) -> int:
    refuse_ranks(call, call.input_shapes)
    return call.add(p.Sum(tuple(coefficients), tuple(call.input_shapes)))


def _extremum(call: Call, sign: int) -> int:
    if len(set(call.input_shapes)) > 1:
        raise UnsupportedLayer(
            f"layer '{call.name}' ({type(call.layer).__name__}) compares tensors of shapes "
            f"{call.input_shapes}; expected equal shapes. Repeat the smaller one first."
        )
    return call.add(p.Extremum(sign))


@rule(L.Concatenate)
def concatenate(call: Call) -> int:
    axis = call.layer.axis
    axis = axis - 1 if axis > 0 else axis + len(call.shape)
    return call.add(p.Concatenate(axis, tuple(s[axis] for s in call.input_shapes)))
