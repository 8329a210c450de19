"""What is supported, and why the rest is not: a refusal names the layer, reason and remedy.

An equivalent network that is only nearly right would be worse than none, so whatever is not known
to be exact is refused, before anything is computed.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Sequence
from typing import Any

import keras

from adjoint_lib.core.graph import Shape
from adjoint_lib.errors import AdjointError, InputError, UnsupportedLayer, in_one_line
from adjoint_lib.frontend._keras_graph import (
    Node,
    asks_for_training,
    call_of,
    computes_its_graph,
    functional,
    has_entries,
    is_graph,
    is_keras_operator,
    is_kerass_own,
    leaves,
    mask_of,
    replaced_methods,
    trace,
)
from adjoint_lib.frontend.activations import PIECEWISE
from adjoint_lib.frontend.rules.activating import activation_name
from adjoint_lib.frontend.rules.call import EXPANSIONS, OPERATORS, RULES, Rule

SMOOTH = "it is not piecewise linear, so no hypersurface reconstructs its units exactly"
UNREAD = "what a function of its own computes cannot be read"
STATISTIC = "it divides by a statistic of its own input, which is not piecewise linear"
PRODUCT = "it multiplies activations by each other, which is not piecewise linear"
REASONS = {
    **dict.fromkeys(("LayerNormalization", "GroupNormalization"), STATISTIC),
    **dict.fromkeys(("UnitNormalization", "RMSNormalization"), STATISTIC),
    **dict.fromkeys(("MultiHeadAttention", "GroupedQueryAttention"), PRODUCT),
    **dict.fromkeys(("Attention", "AdditiveAttention", "Multiply", "Dot"), PRODUCT),
}
ENDINGS = """ELU Softmax LogSoftmax Sigmoid LogSigmoid Tanh Softplus Softsign Exp Elu Celu Selu Gelu
    Silu HardSilu Mish SparsePlus Squareplus TanhShrink Sparsemax""".split()  # dropped, where final
WITHIN = (
    "Remedy: cut the model after this layer{}: a final activation is dropped, the units before it "
    "are kept. Or train with a piecewise-linear one in its place: {}."
)
REMEDY = (
    "Remedy: cut the model before it{}, which keeps every unit up to there, or train with a "
    "piecewise-linear layer in its place (BatchNormalization for other normalisations). A layer of "
    "your own that is piecewise linear can be written in keras.ops, or under al.supports."
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
    found = readable(model, model.name)
    if len(found.inputs) != 1:
        raise InputError(f"model '{model.name}' has {len(found.inputs)} inputs; expected one.")
    shape = tuple(found.inputs[0].shape[1:])
    if None in shape:
        raise InputError(
            f"model '{model.name}' takes inputs of shape {shape}; expected a fixed size. Call it "
            "on keras.Input((height, width, channels)) and use that model."
        )
    check_entries(found.inputs[0], f"model '{model.name}' takes")
    for tensor in found.outputs:
        check_entries(tensor, f"model '{model.name}' gives")
    check_inputs(found, model.name, ("float32", "float64"))


def check_entries(tensor: Any, begin: str) -> None:
    """Refuse a tensor without entries; the message begins with who reads or gives it."""
    if not has_entries(tensor):
        raise InputError(
            f"{begin} tensors of shape {tuple(tensor.shape[1:])}, which have no entries; expected "
            "at least one along each axis."
        )


def readable(
    model: keras.Model,
    name: str,
    shapes: Sequence[Shape] | None = None,
    call: Callable[..., Any] | None = None,
) -> keras.Model:
    """The model as a functional one; a subclass with a call of its own is traced.

    Args:
        shapes: of the inputs it is called with; by default those it was built with.
        call: what it is called by, with all but its tensors given; by default with nothing more.
    """
    check_methods(model, name)
    if is_graph(model) and computes_its_graph(model):
        return functional(model)
    check_call_method(model, name)
    if shapes is None and is_graph(model):
        shapes = [tuple(t.shape[1:]) for t in functional(model).inputs]
    if shapes is None:
        built = (model.get_build_config() or {}).get("input_shape")
        given = tuple(built) if isinstance(built, (tuple, list)) else ()
        sizes = given[1:] if given and not isinstance(given[0], (tuple, list)) else (None,)
        if not all(isinstance(n, int) for n in sizes):
            raise InputError(
                f"model '{name}' ({type(model).__name__}) is not built on one input of a fixed "
                "size, so its call cannot be read. Call it once on an image, model(images[:1])."
            )
        shapes = [sizes]
    dtype = functional(model).inputs[0].dtype if is_graph(model) else model.compute_dtype
    return traced(call or call_of(model), shapes, dtype, name, model)


def traced(
    function: Callable[..., Any], shapes: Sequence[Shape], dtype: str, name: str, what: object
) -> keras.Model:
    """What a call computes of inputs of these shapes, as a functional model of operations."""
    try:
        return trace(function, [keras.Input(shape, dtype=dtype) for shape in shapes])
    except AdjointError:
        raise
    except Exception as error:
        kind = getattr(
            type(what) if isinstance(what, keras.Layer) else what, "__name__", "function"
        )
        raise UnsupportedLayer(
            f"layer '{name}' ({kind}): {UNREAD}, because it is not made of Keras layers and "
            "keras.ops alone, each layer with a name of its own. Write it so, or say what it "
            f"computes under al.supports. Tracing ended with {in_one_line(error)}"
        ) from error


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


def check_precision(layer: keras.layers.Layer, wanted: str = "") -> None:
    """Refuse mixed precision, quantised weights, and anything below float32, or not as wanted."""
    computes, stores = layer.compute_dtype, layer.variable_dtype
    mode = getattr(layer, "quantization_mode", None)
    if mode is not None:
        computes = f"{computes}, quantised to {mode},"
    if computes != stores or computes not in ((wanted,) if wanted else ("float32", "float64")):
        raise InputError(
            f"layer '{layer.name}' computes in {computes} with {stores} weights; expected "
            f"{wanted or 'float32 or float64'} throughout. Rebuild the model under "
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


def check_width(node: Node, name: str, given: str, dtype: str) -> None:
    """Refuse an operation in the dtype of the images, where the layers cast them to another."""
    kind = type(node.operation)
    computes = not issubclass(kind, keras.Layer) and kind.__name__ != "ConvertToTensor"
    if computes and given != dtype and any(t.dtype == given for t in node.input_tensors):
        raise InputError(
            f"operation '{name}' computes in {given}, as images come in, but layers in {dtype}; "
            f"expected one dtype. Build the model on keras.Input(shape, dtype='{dtype}')."
        )


def rule_for(operation: keras.Operation, name: str) -> Rule | None:
    """The function that writes this layer down; None if its call is to be traced.

    Raises:
        UnsupportedLayer: there is neither.
    """
    kind = type(operation)
    check_methods(operation, name)
    if kind in RULES:
        check_data_format(operation, name)
        return RULES[kind]
    if kind.__name__ in OPERATORS and is_keras_operator(operation):
        check_data_format(operation, name)
        return OPERATORS[kind.__name__]
    if _key(operation) in EXPANSIONS or not is_kerass_own(operation):
        check_call_method(operation, name)
        return None
    unknown = "its exact equivalent is not known"
    reason = unknown if is_keras_operator(operation) else REASONS.get(kind.__name__, unknown)
    remedy = REMEDY.format(_cut(operation, name, "input"))
    supported = ", ".join(sorted(known.__name__ for known in RULES))
    raise UnsupportedLayer(
        f"layer '{name}' ({kind.__name__}) is not supported: {reason}. {remedy} "
        f"Supported: {supported}."
    )


def _cut(operation: keras.Operation, name: str, side: str) -> str:
    """How to cut the model at this side of a layer, if `get_layer` finds it."""
    if not isinstance(operation, keras.Layer) or operation.name != name:  # nested, or used again
        return ""
    return f", keras.Model(model.input, model.get_layer('{name}').{side})"


def has_rule(operation: keras.Operation) -> bool:
    """Whether it is written by a rule of its own."""
    return type(operation) in RULES


def expansion_of(operation: keras.Operation) -> Callable[..., Any]:
    """What an operation that has no rule computes, in other layers and operations."""
    if _key(operation) in EXPANSIONS:
        return functools.partial(EXPANSIONS[_key(operation)], operation)
    return call_of(operation)


def _key(operation: keras.Operation) -> type | str:
    return type(operation).__name__ if is_keras_operator(operation) else type(operation)


def check_methods(operation: keras.Operation, name: str) -> None:
    """Refuse a layer or model with another method in place of its class's."""
    if replaced := replaced_methods(operation):
        raise UnsupportedLayer(
            f"layer '{name}' ({type(operation).__name__}) has a method of its own, {replaced[0]}, "
            "that was replaced on the instance: what it computes cannot be read. Expected the "
            "methods of its class; delete the attribute."
        )


def check_call_method(operation: keras.Operation, name: str) -> None:
    """Refuse a layer or model that computes by another method than `call`, which is traced."""
    if isinstance(operation, keras.Layer) and type(operation).__call__ is not keras.Layer.__call__:
        kind = "model" if isinstance(operation, keras.Model) else "layer"
        raise UnsupportedLayer(
            f"{kind} '{name}' ({type(operation).__name__}) has a __call__ of its own, which cannot "
            "be read. Expected one that computes by its method call."
        )


def check_data_format(layer: keras.Operation, name: str) -> None:
    """Refuse channels first, which TensorFlow itself does not compute on a CPU."""
    if not hasattr(layer, "data_format"):
        return
    found = layer.data_format or keras.config.image_data_format()
    if found != "channels_last":
        raise UnsupportedLayer(
            f"layer '{name}' ({type(layer).__name__}) has data_format='{found}'; expected "
            "'channels_last'. Rebuild the model with channels last."
        )


def ending_of(operation: keras.Operation) -> str:
    """The activation that an operation applies at its end, if it is not known as piecewise linear.

    Where that ends the network, it is dropped.
    """
    kind = type(operation)
    if kind.__name__ in ENDINGS and is_kerass_own(operation):
        return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", kind.__name__).lower()
    if kind not in RULES or not hasattr(operation, "activation"):
        return ""
    name = activation_name(operation.activation)
    return "" if name in {*PIECEWISE, "linear"} else name


def check_activation(operation: keras.Operation, activation: str, name: str) -> None:
    """Refuse an activation of Keras's that is not piecewise linear, inside the network."""
    if hasattr(keras.activations, activation) or not hasattr(operation, "activation"):
        remedy = WITHIN.format(_cut(operation, name, "output"), ", ".join(sorted(PIECEWISE)))
        raise UnsupportedLayer(
            f"layer '{name}' ({type(operation).__name__}) has the activation '{activation}' inside "
            f"the network: {SMOOTH}. {remedy}"
        )


def check_reads(node: Node, prefix: str) -> None:
    """Refuse a call that reads a tensor without entries; one that nothing reads does no harm."""
    for tensor in node.input_tensors:
        check_entries(tensor, f"layer '{prefix}{node.operation.name}' reads")


def check_call(node: Node, name: str) -> None:
    """Refuse a call that asks for training behaviour or masks entries."""
    if mask_of(node) is not None:
        raise UnsupportedLayer(
            f"layer '{name}' is called with a mask, which multiplies activations by each other. "
            "Call it without."
        )
    if asks_for_training(node):
        raise UnsupportedLayer(
            f"layer '{name}' is called with training=True inside the model, so its output depends "
            "on the batch. Call it without, so that inference uses its stored statistics."
        )
