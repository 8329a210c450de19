"""What is supported, and why the rest is not: a refusal names the layer, reason and remedy.

An equivalent network that is only nearly right would be worse than none, so whatever is not known
to be exact is refused, before anything is computed.
"""

from __future__ import annotations

from collections.abc import Iterator

import keras

from adjoint_lib.errors import InputError, UnsupportedLayer
from adjoint_lib.frontend._keras_graph import (
    Node,
    computes_its_graph,
    is_graph,
    is_keras_operator,
    replaced_methods,
)
from adjoint_lib.frontend.activations import PIECEWISE
from adjoint_lib.frontend.rules.activating import activation_name
from adjoint_lib.frontend.rules.call import OPERATORS, RULES, Rule

SMOOTH = "it is not piecewise linear, so no hypersurface reconstructs its units exactly"
UNREAD = "what a function of its own computes cannot be read; name one of Keras's instead"
STATISTIC = "it divides by a statistic of its own input, which is not piecewise linear"
PRODUCT = "it multiplies activations by each other, which is not piecewise linear"
REASONS = {
    **dict.fromkeys(("LayerNormalization", "GroupNormalization"), STATISTIC),
    **dict.fromkeys(("UnitNormalization", "RMSNormalization"), STATISTIC),
    **dict.fromkeys(("MultiHeadAttention", "GroupedQueryAttention"), PRODUCT),
    **dict.fromkeys(("Attention", "AdditiveAttention", "Multiply", "Dot"), PRODUCT),
    "ELU": SMOOTH,
}
REMEDY = (
    "Remedy: cut the model before it (keras.Model(model.input, layer.input)), or train with a "
    "piecewise-linear layer in its place (ReLU, LeakyReLU, PReLU, ReLU6, hard_tanh, hard_sigmoid; "
    "BatchNormalization for other normalisations)."
)


def check_model(model: keras.Model) -> None:
    """Refuse what is not a built model of one fixed-size input in one precision."""
    if not isinstance(model, keras.Model):
        raise InputError(f"expected a Keras 3 model, got {type(model).__name__}.")
    if isinstance(model, keras.Sequential) and not model.built:
        raise InputError(
            f"model '{model.name}' is not built, so its layers have no weights yet. Build it "
            "first: begin with keras.Input(shape), or call model.build((None, *shape))."
        )
    check_readable(model, model.name)
    if len(model.inputs) != 1:
        raise InputError(f"model '{model.name}' has {len(model.inputs)} inputs; expected one.")
    shape = tuple(model.inputs[0].shape[1:])
    if None in shape:
        raise InputError(
            f"model '{model.name}' takes inputs of shape {shape}; expected a fixed size. Call it "
            "on keras.Input((height, width, channels)) and use that model."
        )
    check_inputs(model, model.name, ("float32", "float64"))


def check_readable(model: keras.Model, name: str) -> None:
    """Refuse a model that computes by Python code of its own instead of its graph."""
    check_methods(model, name)
    if not is_graph(model) or not computes_its_graph(model):
        raise UnsupportedLayer(
            f"model '{name}' ({type(model).__name__}) is a subclass of keras.Model with a call of "
            "its own, which cannot be read as a graph. Expected a Sequential or functional model."
        )


def precision_of(model: keras.Model) -> str:
    """The one dtype that all layers compute in; refuses a mixture."""
    first: dict[str, str] = {}
    for layer in leaves(model):
        check_precision(layer)
        first.setdefault(layer.compute_dtype, layer.name)
    if len(first) > 1:
        found = ", ".join(f"'{name}' in {dtype}" for dtype, name in first.items())
        raise InputError(
            f"model '{model.name}' has layers of different precision: {found}. Expected one dtype "
            "throughout: build the whole model under one keras.config.set_dtype_policy."
        )
    return next(iter(first), model.compute_dtype)


def check_precision(layer: keras.layers.Layer) -> None:
    """Refuse mixed precision, quantised weights, and anything below float32."""
    computes, stores = layer.compute_dtype, layer.variable_dtype
    mode = getattr(layer, "quantization_mode", None)
    if mode is not None:
        computes = f"{computes}, quantised to {mode},"
    if computes != stores or computes not in ("float32", "float64"):
        raise InputError(
            f"layer '{layer.name}' computes in {computes} with {stores} weights; expected float32 "
            "or float64 throughout. Rebuild the model under "
            "keras.config.set_dtype_policy('float32') and set its weights."
        )


def check_inputs(model: keras.Model, name: str, allowed: tuple[str, ...]) -> None:
    """Refuse an input that rounds what comes in to a dtype that is not allowed."""
    for tensor in model.inputs:
        if tensor.dtype not in allowed:
            raise InputError(
                f"model '{name}' takes images in {tensor.dtype}, and casts them to it; expected "
                f"{' or '.join(allowed)}. Build it on keras.Input(shape, dtype='{allowed[0]}')."
            )


def rule_for(operation: keras.Operation, name: str) -> Rule:
    """The function that writes this layer down, or the error that says why there is none."""
    kind = type(operation)
    check_methods(operation, name)
    if kind in RULES:
        check_data_format(operation, name)
        check_activation(operation, name)
        return RULES[kind]
    if kind.__name__ in OPERATORS and is_keras_operator(operation):
        return OPERATORS[kind.__name__]
    reason = REASONS.get(kind.__name__, "its exact equivalent is not known")
    supported = ", ".join(sorted(known.__name__ for known in RULES))
    raise UnsupportedLayer(
        f"layer '{name}' ({kind.__name__}) is not supported: {reason}. {REMEDY} Supported: "
        f"{supported}."
    )


def check_methods(operation: keras.Operation, name: str) -> None:
    """Refuse a layer or model with another method in place of its class's."""
    if replaced := replaced_methods(operation):
        raise UnsupportedLayer(
            f"layer '{name}' ({type(operation).__name__}) has a method of its own, {replaced[0]}, "
            "that was replaced on the instance: what it computes cannot be read. Expected the "
            "methods of its class; delete the attribute."
        )


def check_data_format(layer: keras.layers.Layer, name: str) -> None:
    """Refuse channels first, which TensorFlow itself does not compute on a CPU."""
    found = getattr(layer, "data_format", "channels_last")
    if found != "channels_last":
        raise UnsupportedLayer(
            f"layer '{name}' ({type(layer).__name__}) has data_format='{found}'; expected "
            "'channels_last'. Rebuild the model with channels last."
        )


def check_activation(layer: keras.layers.Layer, name: str) -> None:
    """Refuse a layer whose own activation is not piecewise linear; for softmax see below."""
    found = activation_name(getattr(layer, "activation", None))
    if found not in {*PIECEWISE, "linear", "softmax"}:
        reason = SMOOTH if hasattr(keras.activations, found) else UNREAD
        raise UnsupportedLayer(
            f"layer '{name}' ({type(layer).__name__}) has the activation '{found}': {reason}. "
            f"{REMEDY} Supported activations: {', '.join(sorted(PIECEWISE))}."
        )


def check_call(node: Node, name: str) -> None:
    """Refuse a call that asks for training behaviour or masks entries."""
    if node.arguments.kwargs.get("mask") is not None:
        raise UnsupportedLayer(
            f"layer '{name}' is called with a mask, which multiplies activations by each other. "
            "Call it without."
        )
    if node.arguments.kwargs.get("training"):
        raise UnsupportedLayer(
            f"layer '{name}' is called with training=True inside the model, so its output depends "
            "on the batch. Call it without, so that inference uses its stored statistics."
        )


def check_softmax(operation: keras.Operation, name: str) -> None:
    """Refuse a softmax that does not end the network."""
    if is_softmax(operation):
        raise UnsupportedLayer(
            f"layer '{name}' ({type(operation).__name__}) applies a softmax inside the network: "
            f"{SMOOTH}. Only a softmax that ends the network is dropped. {REMEDY}"
        )


def is_softmax(operation: keras.Operation) -> bool:
    """Whether the layer ends in a softmax."""
    if type(operation) is keras.layers.Softmax:
        return True
    found = getattr(operation, "activation", None)
    return type(operation) in RULES and activation_name(found) == "softmax"


def leaves(model: keras.Model) -> Iterator[keras.layers.Layer]:
    """The layers of a model and of the models nested in it, without their inputs."""
    for layer in model.layers:
        if isinstance(layer, keras.Model):
            yield from leaves(layer)
        elif not isinstance(layer, keras.layers.InputLayer):
            yield layer
