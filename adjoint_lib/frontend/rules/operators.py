"""Operators on symbolic tensors: x + y, x - y, and products with constants."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np

from adjoint_lib.core import primitives as p
from adjoint_lib.core.graph import Shape
from adjoint_lib.errors import UnsupportedLayer
from adjoint_lib.frontend import activations
from adjoint_lib.frontend.rules.call import Call, Ref, constant, one_tensor, operator
from adjoint_lib.frontend.rules.merging import extremum, weighted_sum

Operand: TypeAlias = "Ref | np.ndarray | float"


@operator("Add")
def plus(call: Call) -> int:
    return _combine(call, 1.0)


@operator("Subtract")
def minus(call: Call) -> int:
    return _combine(call, -1.0)


def _combine(call: Call, sign: float) -> int:
    """x + y and x - y, where one of the two may be a constant: an entry of x_b then."""
    return weighted_sum(call, (1.0, sign), [_operand(call, a) for a in call.args[:2]])


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
    return _extremum(call, 1)


@operator("Minimum")
def minimum(call: Call) -> int:
    return _extremum(call, -1)


def _extremum(call: Call, sign: int) -> int:
    x, y = call.args[:2]
    if isinstance(x, Ref) and isinstance(y, Ref):
        return extremum(call, sign, [call.inputs[a.index] for a in (x, y)])
    return bounded(call, call.inputs[0], sign, y if isinstance(x, Ref) else x, call.shape)


def bounded(call: Call, h: int, sign: int, limit: Any, shape: Shape) -> int:
    """A node, of this shape when it is broadcast, and a constant: the larger or smaller of them."""
    values = constant(call, limit)
    if not values.ndim:
        lowered = activations.at_least if sign > 0 else activations.at_most
        return call.add_activation(h, lowered(float(values)))
    c = call.graph.source(call.name, f"constant of {call.name}", call.graph.aligned(values, h))
    return extremum(call, sign, [_repeated(call, n, shape) for n in (h, c)])


def _repeated(call: Call, h: int, shape: Shape) -> int:
    """A node repeated along the axes in which it has one entry and the shape has more."""
    own = call.graph.nodes[h].shape
    for axis, (has, wanted) in enumerate(zip(own, shape, strict=True)):
        if has != wanted:
            own = (*own[:axis], wanted, *own[axis + 1 :])
            h = call.add(p.AlongAxis(np.ones((1, wanted)), axis + 1), [h], own)
    return h


@operator("Cast", "ConvertToTensor")
def cast(call: Call) -> int:
    """Nothing, where the tensor has this dtype already."""
    has, wanted = call.node.input_tensors[0].dtype, call.layer.dtype
    if wanted not in (None, has):
        raise UnsupportedLayer(
            f"operation '{call.name}' casts from {has} to {wanted}; expected one dtype throughout. "
            "Leave the cast out."
        )
    return call.inputs[0]
