"""A Keras model as the graph it is: the only file that touches Keras's private attributes.

Keras keeps how a functional model is wired in attributes that begin with an underscore. Whoever
updates Keras looks here.
"""

from __future__ import annotations

import contextlib
import inspect
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import keras
from keras.src.backend.common.masking import get_keras_mask
from keras.src.models.functional import Functional

Node = Any  # keras.src.ops.node.Node: one call of an operation
RUNS = {"call", "__call__", "__getattribute__", "inputs", "outputs", "operations", "layers"}


def functional(model: keras.Model) -> keras.Model:
    """The functional model behind a Sequential one; any other model itself."""
    return getattr(model, "_functional", None) or model


def is_graph(model: keras.Model) -> bool:
    """Whether the model's wiring can be read; that of a subclass is Python code."""
    return hasattr(functional(model), "_nodes_by_depth")


def computes_its_graph(model: keras.Model) -> bool:
    """Whether calling the model runs its graph: a subclass may do it in a way of its own."""
    known = {*keras.Sequential.__mro__, *Functional.__mro__}
    own = {name for kind in type(model).__mro__ if kind not in known for name in vars(kind)}
    private = {n for n in own if n.startswith("_") and not n.endswith("__")}
    return not own & RUNS and not any(hasattr(Functional, name) for name in private)


def replaced_methods(operation: keras.Operation) -> list[str]:
    """Methods that were set on the instance; those that Keras wraps itself are left out."""
    wrapped = {"build", "quantize", "loss"}
    kind = type(operation)
    return [n for n in vars(operation) if n not in wrapped and callable(getattr(kind, n, None))]


def calls(model: keras.Model) -> Iterator[Node]:
    """The calls of a functional model, each after those it depends on."""
    by_depth = model._nodes_by_depth
    for depth in sorted(by_depth, reverse=True):
        yield from (node for node in by_depth[depth] if not node.is_input)


def has_entries(tensor: Any) -> bool:
    """Whether a tensor has at least one entry for each image."""
    return 0 not in tensor.shape[1:]


def trace(function: Callable[..., Any], inputs: Sequence[Any]) -> keras.Model:
    """What a function makes of symbolic tensors, as a functional model.

    Its operations are named by their kind, so that each trace gives the same names.
    """
    with _variables_first():
        model = keras.Model(list(inputs), function(*inputs))
    for operation in model.operations:
        if is_keras_operator(operation):
            operation.name = re.sub(r"_\d+$", "", operation.name)
    return model


@contextlib.contextmanager
def _variables_first() -> Iterator[None]:
    """Lets `variable * symbolic tensor` be what `symbolic tensor * variable` is, while it lasts."""

    def deferring(method: Callable[..., Any]) -> Callable[..., Any]:
        return lambda v, x: NotImplemented if isinstance(x, keras.KerasTensor) else method(v, x)

    kind = keras.Variable
    names = [f"__{n}__" for n in ("add", "sub", "mul", "truediv", "matmul")]
    changed = {n: deferring(getattr(kind, n)) for n in names if n not in vars(kind)}
    for name, method in changed.items():
        setattr(kind, name, method)
    try:
        yield
    finally:
        for name in changed:
            delattr(kind, name)


def call_of(layer: keras.Layer) -> Callable[..., Any]:
    """What a layer or model of one's own computes at inference, as a function to be traced."""
    inference = (
        {"training": False} if "training" in inspect.signature(layer.call).parameters else {}
    )
    return lambda *args, **kwargs: layer.call(*args, **{**kwargs, **inference})


def leaves(model: keras.Model) -> Iterator[keras.Layer]:
    """Every layer within a model, however deep, without models and inputs."""
    for layer in model._flatten_layers(include_self=False):
        if not isinstance(layer, (keras.Model, keras.layers.InputLayer)):
            yield layer


def is_kerass_own(operation: keras.Operation) -> bool:
    """Whether its class is one of Keras's layers or operations."""
    module = type(operation).__module__
    return module.startswith("keras.") and not module.startswith("keras.src.applications")


def has_code_of_its_own(model: keras.Model) -> bool:
    """Whether a layer, model or activation within it is not Keras's, or is a function."""
    known = ("keras.", "adjoint_lib.")
    return any(
        isinstance(layer, keras.layers.Lambda)
        or not type(layer).__module__.startswith(known)
        or not getattr(getattr(layer, "activation", None), "__module__", "keras.").startswith(known)
        for layer in model._flatten_layers()
    )


def carries_mask(value: Any) -> bool:
    """Whether Keras has put a mask on a tensor, which the next layer may heed."""
    return get_keras_mask(value) is not None


def is_keras_operator(operation: keras.Operation) -> bool:
    """Whether it is an operation of keras.ops, as Python's operators on tensors make them."""
    return type(operation).__module__.startswith(("keras.src.ops", "keras.src.activations"))


def arguments(node: Node, inputs: list[Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """(args, kwargs) of a call at inference, with these inputs for its symbolic tensors."""
    places = {id(t): x for t, x in zip(node.input_tensors, inputs, strict=True)}
    args, kwargs = node.arguments.fill_in(places)
    asks = "training" in inspect.signature(node.operation.call).parameters
    return args, {**kwargs, "training": False} if asks else kwargs


def asks_for_training(node: Node) -> bool:
    """Whether a call says training=True; augmentation layers do so by default."""
    return bool(node.arguments.kwargs.get("training")) and not trains_by_default(node.operation)


def trains_by_default(operation: keras.Operation) -> bool:
    """Whether a call that does not say otherwise is one for training, as of augmentation layers.

    Keras notes this at a call, but not where the layer casts the tensor that it is called with.
    """
    given = inspect.signature(operation.call).parameters.get("training")
    return given is not None and given.default is True


def mask_of(node: Node) -> Any:
    """The mask that a layer is called with, by name or by its place."""
    operation, given = node.operation, node.arguments
    if not isinstance(operation, keras.Layer) or len(given.args) < 2:
        return given.kwargs.get("mask")
    signature = inspect.signature(type(operation).call)
    return signature.bind(operation, *given.args, **given.kwargs).arguments.get("mask")


def without_activation(layer: keras.layers.Layer) -> keras.layers.Layer:
    """The same layer, with the same variables, without its own activation."""
    twin = object.__new__(type(layer))
    vars(twin).update({**vars(layer), "activation": None})
    return twin
