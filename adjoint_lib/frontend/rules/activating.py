"""Activations, as layers of their own or inside another layer."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from adjoint_lib.errors import UnsupportedLayer
from adjoint_lib.frontend import activations
from adjoint_lib.frontend.rules.call import Call, operator, rule, weight

L = keras.layers


def activate(call: Call, h: int, function: Callable[..., Any] | None) -> int:
    """The activation of a layer; a function of one's own is traced."""
    name = activation_name(function)
    if function is None or name == "linear" or call.drops:
        return h
    if name in activations.PIECEWISE:
        return call.add_activation(h, activations.PIECEWISE[name]())
    return call.write(function, h, f"{call.name}/activation")


@rule(L.Activation)
def activation(call: Call) -> int:
    return activate(call, call.inputs[0], call.layer.activation)


@operator("Relu", "Relu6", "HardTanh", "HardSigmoid", "SparseSigmoid")
def by_name(call: Call) -> int:
    name = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", type(call.layer).__name__).lower()
    return call.add_activation(call.inputs[0], activations.PIECEWISE[name]())


@operator("SoftShrink")
def soft_shrink(call: Call) -> int:
    if call.layer.threshold < 0:
        raise UnsupportedLayer(
            f"operation '{call.name}' has a threshold of {call.layer.threshold}; "
            "expected at least 0."
        )
    return call.add_activation(call.inputs[0], activations.soft_shrink(call.layer.threshold))


@operator("Absolute", "Abs")
def absolute(call: Call) -> int:
    return call.add_activation(call.inputs[0], activations.absolute())


@operator("Clip")
def clip(call: Call) -> int:
    low, high = call.layer.x_min, call.layer.x_max
    if not (np.ndim(low) == np.ndim(high) == 0 and -np.inf < low <= high < np.inf):
        raise UnsupportedLayer(
            f"operation '{call.name}' clips to [{low}, {high}]; expected two finite numbers in "
            "order. Write it by keras.ops.maximum and keras.ops.minimum."
        )
    return call.add_activation(call.inputs[0], activations.hard_tanh(float(low), float(high)))


@operator("ReLU")
@rule(L.ReLU)
def relu(call: Call) -> int:
    layer = call.layer
    below = layer.threshold < 0 and (layer.max_value is not None or layer.negative_slope)
    if below or (layer.max_value or 0) < 0:
        raise UnsupportedLayer(
            f"operation '{call.name}' has a threshold of {layer.threshold}, a ceiling of "
            f"{layer.max_value} and a leak of {layer.negative_slope}; expected a ceiling of at "
            "least 0, and no ceiling or leak with a threshold below 0."
        )
    lowered = activations.relu(layer.negative_slope, layer.max_value, layer.threshold)
    return call.add_activation(call.inputs[0], lowered)


@operator("LeakyRelu")
@rule(L.LeakyReLU)
def leaky_relu(call: Call) -> int:
    return call.add_activation(call.inputs[0], activations.leaky_relu(call.layer.negative_slope))


@rule(L.PReLU)
def prelu(call: Call) -> int:
    return call.add_activation(call.inputs[0], activations.prelu(weight(call.layer.alpha)))


def activation_name(function: Callable[..., Any] | None) -> str:
    """The Keras name of an activation function; a function of one's own has none."""
    if function is None:
        return "linear"
    name = getattr(function, "__name__", type(function).__name__)
    known = any(getattr(home, name, None) is function for home in (keras.activations, tf.nn))
    return name if known else f"{name} (not one of keras.activations)"
