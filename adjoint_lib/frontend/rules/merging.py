"""Several inputs into one: sums, extrema, concatenation."""

from __future__ import annotations

from collections.abc import Sequence

import keras
import numpy as np
import tensorflow as tf

from adjoint_lib.core import primitives as p
from adjoint_lib.errors import UnsupportedLayer
from adjoint_lib.frontend.rules.call import (
    Call,
    operator,
    refuse_mistaken_bias,
    refuse_ranks,
    reshaped,
    rule,
)

L = keras.layers


@rule(L.Add)
def add(call: Call) -> int:
    return _join(call, [1.0] * len(call.inputs))


@rule(L.Subtract)
def subtract(call: Call) -> int:
    return _join(call, [1.0, -1.0])


@rule(L.Average)
def average(call: Call) -> int:
    return _join(call, [1 / len(call.inputs)] * len(call.inputs))


@rule(L.Maximum)
def maximum(call: Call) -> int:
    refuse_constants(call)
    return extremum(call, 1, call.inputs)


@rule(L.Minimum)
def minimum(call: Call) -> int:
    refuse_constants(call)
    return extremum(call, -1, call.inputs)


def _join(call: Call, coefficients: Sequence[float]) -> int:
    refuse_constants(call)
    return weighted_sum(call, coefficients, call.inputs)


def weighted_sum(call: Call, coefficients: Sequence[float], inputs: Sequence[int]) -> int:
    """The sum of several nodes, broadcast to one shape, each times its coefficient."""
    shapes = tuple(call.graph.nodes[n].shape for n in inputs)
    refuse_ranks(call, shapes)
    if min(coefficients) > 0:
        for number, added in enumerate(shapes[1:], start=1):
            refuse_mistaken_bias(call, np.broadcast_shapes(*shapes[:number]), added)
    shape = tuple(np.broadcast_shapes(*shapes))
    return call.add(p.Sum(tuple(coefficients), shapes), inputs, shape)


def extremum(call: Call, sign: int, inputs: Sequence[int]) -> int:
    """The largest (sign = 1) or smallest of several nodes, entry by entry."""
    shapes = [call.graph.nodes[n].shape for n in inputs]
    if len(set(shapes)) > 1:
        raise UnsupportedLayer(
            f"layer '{call.name}' ({type(call.layer).__name__}) compares tensors of shapes "
            f"{shapes}; expected equal shapes. Repeat the smaller one first."
        )
    return call.add(p.Extremum(sign), inputs)


@operator("Concatenate")
@rule(L.Concatenate)
def concatenate(call: Call) -> int:
    refuse_constants(call)
    axis = _joined_axis(call)
    return call.add(p.Concatenate(axis, tuple(s[axis] for s in call.input_shapes)))


@operator("Stack")
def stack(call: Call) -> int:
    refuse_constants(call)
    axis = _joined_axis(call)
    shape = (*call.shape[:axis], 1, *call.shape[axis + 1 :])
    parts = [reshaped(call, h, shape) for h in call.inputs]
    return call.add(p.Concatenate(axis, (1,) * len(parts)), parts)


def _joined_axis(call: Call) -> int:
    """The axis of one row that several are joined along."""
    rank = len(call.node.outputs[0].shape)
    axis = call.layer.axis % rank - 1
    if axis < 0:
        raise UnsupportedLayer(f"layer '{call.name}' joins images; expected an axis from 1 on.")
    return axis


def refuse_constants(call: Call) -> None:
    """Refuse a constant among the tensors that are joined."""
    given = tf.nest.flatten(call.node.arguments.args)
    if sum(isinstance(t, keras.KerasTensor) for t in given) < len(given):
        raise UnsupportedLayer(
            f"layer '{call.name}' ({type(call.layer).__name__}) joins a constant to its tensors, "
            "which has no axis of images. Expected tensors alone; add a constant by keras.ops.add, "
            "or pad."
        )
