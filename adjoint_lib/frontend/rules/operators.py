"""Operators on symbolic tensors: x + y, x - y, and products with constants."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np

from adjoint_lib.core import primitives as p
from adjoint_lib.errors import UnsupportedLayer
from adjoint_lib.frontend.rules.call import Call, Ref, operator, refuse_ranks

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
    values = call.graph.aligned(np.asarray(argument), call.inputs[0])
    return call.graph.source(call.name, f"constant of {call.name}", values)


@operator("Multiply")
def times(call: Call) -> int:
    return _scale_by_constant(call, *call.args[:2])


@operator("Divide", "TrueDivide")
def divided(call: Call) -> int:
    x, divisor = call.args[:2]
    if isinstance(divisor, Ref):
        raise product_of_activations(call.name)
    return _scale_by_constant(call, x, 1 / np.asarray(divisor, float))


def _scale_by_constant(call: Call, a: Operand, b: Operand) -> int:
    if isinstance(a, Ref) == isinstance(b, Ref):
        raise product_of_activations(call.name)
    ref, constant = (a, b) if isinstance(a, Ref) else (b, a)
    assert isinstance(ref, Ref)
    x, factor = call.inputs[ref.index], np.asarray(constant, float)
    shape = tuple(np.broadcast_shapes(call.graph.nodes[x].shape, factor.shape))
    if shape != call.graph.nodes[x].shape:
        raise UnsupportedLayer(
            f"operation '{call.name}' multiplies {call.graph.nodes[x].shape} by a "
            f"constant of shape {factor.shape}, which changes the shape."
        )
    return call.add(p.Scale(factor), [x], shape)


@operator("Negative")
def negative(call: Call) -> int:
    shape = call.input_shapes[0]
    return call.add(p.Scale(np.array(-1.0)), shape=shape)


def product_of_activations(name: str) -> UnsupportedLayer:
    return UnsupportedLayer(
        f"operation '{name}' multiplies or divides activations by each other, which is not "
        "piecewise linear. Only products with constants are supported."
    )
