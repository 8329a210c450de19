"""Activations, as layers of their own or inside another layer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import keras

from adjoint_lib.frontend import activations
from adjoint_lib.frontend.rules.call import Call, rule, weight

L = keras.layers


def activate(call: Call, h: int, function: Callable[..., Any] | None) -> int:
    name = activation_name(function)
    if name == "linear" or (name == "softmax" and call.drops_softmax):
        return h
    return call.add_activation(h, activations.PIECEWISE[name]())


@rule(L.Activation)
def activation(call: Call) -> int:
    return activate(call, call.inputs[0], call.layer.activation)


@rule(L.ReLU)
def relu(call: Call) -> int:
    layer = call.layer
    lowered = activations.relu(layer.negative_slope, layer.max_value, layer.threshold)
    return call.add_activation(call.inputs[0], lowered)


@rule(L.LeakyReLU)
def leaky_relu(call: Call) -> int:
    return call.add_activation(call.inputs[0], activations.leaky_relu(call.layer.negative_slope))


@rule(L.PReLU)
def prelu(call: Call) -> int:
    return call.add_activation(call.inputs[0], activations.prelu(weight(call.layer.alpha)))


def activation_name(function: Callable[..., Any] | None) -> str:
    """The Keras name of an activation function; a function that is not Keras's own has none."""
    if function is None:
        return "linear"
    name = getattr(function, "__name__", type(function).__name__)
    known = getattr(keras.activations, name, None)
    return name if known is function else f"{name} (not one of keras.activations)"
