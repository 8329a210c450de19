"""Operators on symbolic tensors: x + y, x - y, and products with constants."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np

from adjoint_lib.core import primitives as p
from adjoint_lib.errors import UnsupportedLayer
from adjoint_lib.frontend import activations
from adjoint_lib.frontend.rules.call import (
    Call,
    Ref,
    constant,
    one_tensor,
    operator,
    refuse_ranks,
    reshaped,
)
from adjoint_lib.frontend.rules.merging import extremum

Operand: TypeAlias = "Ref | np.ndarray | float"


@operator("Add")
def plus(call: Call) -> int:
    return _combine(call, 1.0)


@operator("Subtract")
def minus(call: Call) -> int:
    return _combine(call, -1.0)


def _combine(call: Call, sign: float) -> int:
    """x + y and x - y, where one of the two may be a constant: an entry of x_b then."""
    x, y = (_operand(call, a) for a in call.args[:2])
    refuse_ranks(call, [call.graph.nodes[n].shape for n in (x, y)])
    shapes = tuple(call.graph.nodes[n].shape for n in (x, y))
    shape = tuple(np.broadcast_shapes(*shapes))
    return call.add(p.Sum((1.0, sign), shapes), (x, y), shape)


def _operand(call: Call, argument: Operand) -> int:
    if isinstance(argument, Ref):
        return call.inputs[argument.index]
    values = call.graph.aligned(constant(call, argument), call.inputs[0])
    return call.graph.source(call.name, f"constant of {call.name}", values)


@operator("Multiply")
def times(call: Call) -> int:
    return _scaled(call, one_tensor(call)[0])


@operator("Divide", "TrueDivide")
def divided(call: Call) -> int:
    return _scaled(call, 1 / one_tensor(call, first=True)[0])


def _scaled(call: Call, factor: np.ndarray) -> int:
    shape = call.input_shapes[0]
    factor = constant(call, factor)
    if np.broadcast_shapes(shape, factor.shape) != shape:
        raise UnsupportedLayer(
            f"operation '{call.name}' multiplies {shape} by a constant of shape {factor.shape}, "
            "which changes the shape. Repeat the tensor first."
        )
    return call.add(p.Scale(factor), shape=shape)


@operator("Negative")
def negative(call: Call) -> int:
    shape = call.input_shapes[0]
    return call.add(p.Scale(np.array(-1.0)), shape=shape)


@operator("Maximum")
def maximum(call: Call) -> int:
    return _extremum(call, 1.0)


@operator("Minimum")
def minimum(call: Call) -> int:
    return _extremum(call, -1.0)


def _extremum(call: Call, sign: float) -> int:
    """Of two tensors; of x and a constant c as c + relu(x - c), or c - relu(c - x)."""
    x, y = call.args[:2]
    if isinstance(x, Ref) and isinstance(y, Ref):
        pair = [call.inputs[a.index] for a in (x, y)]
        return extremum(call, int(sign), pair)
    h, c = call.inputs[0], _operand(call, y if isinstance(x, Ref) else x)
    shapes = (call.graph.nodes[h].shape, call.graph.nodes[c].shape)
    h = call.add(p.Sum((sign, -sign), shapes), [h, c])
    h = call.add_activation(h, activations.relu())
    return call.add(p.Sum((sign, 1.0), (call.shape, shapes[1])), [h, c])


@operator("Cast", "ConvertToTensor")
def cast(call: Call) -> int:
    """Nothing, where the tensor has this dtype already."""
    has, wanted = call.node.input_tensors[0].dtype, call.layer.dtype
    if wanted not in (None, has):
        raise UnsupportedLayer(
            f"operation '{call.name}' casts from {has} to {wanted}, which rounds; expected one "
            "dtype. Leave the cast out."
        )
    return call.inputs[0]


@operator("Stack")
def stack(call: Call) -> int:
    axis = call.layer.axis % (len(call.shape) + 1)
    shape = (*call.shape[: axis - 1], 1, *call.shape[axis:])
    parts = [reshaped(call, h, shape) for h in call.inputs]
    return call.add(p.Concatenate(axis - 1, (1,) * len(parts)), parts)
