"""A Keras model as the graph it is: the only file that touches Keras's private attributes.

Keras keeps how a functional model is wired in attributes that begin with an underscore. Whoever
updates Keras looks here.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import keras

Node = Any  # keras.src.ops.node.Node: one call of an operation


def functional(model: keras.Model) -> keras.Model:
    """The functional model behind a Sequential one; any other model itself."""
    return getattr(model, "_functional", None) or model


def is_graph(model: keras.Model) -> bool:
    """Whether the model's wiring can be read; that of a subclass is Python code."""
    return hasattr(functional(model), "_nodes_by_depth")


def computes_its_graph(model: keras.Model) -> bool:
    """Whether calling the model runs its graph: a subclass may have a call of its own."""
    known = (keras.Sequential.call, type(functional(model)).call)
    graph = functional(model)
    plain = type(graph).call.__qualname__ == "Functional.call"
    return plain and type(model).call in known and type(model).__call__ is keras.Layer.__call__


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


def made_by(tensor: keras.KerasTensor) -> keras.Operation:
    """The operation that a symbolic tensor comes from."""
    return tensor._keras_history.operation


def count_of_calls(operation: keras.Operation) -> int:
    """How many times an operation is called, in whatever models."""
    return len(operation._inbound_nodes)


def is_keras_operator(operation: keras.Operation) -> bool:
    """Whether it is an operation of keras.ops, as Python's operators on tensors make them."""
    return type(operation).__module__.startswith("keras.src.ops")


def arguments(node: Node, inputs: list[Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """(args, kwargs) of a call, with these inputs in place of its symbolic tensors."""
    return node.arguments.fill_in(
        {id(t): x for t, x in zip(node.input_tensors, inputs, strict=True)}
    )


def without_activation(layer: keras.layers.Layer) -> keras.layers.Layer:
    """The same layer, with the same variables, without its own activation."""
    twin = object.__new__(type(layer))
    vars(twin).update({**vars(layer), "activation": None})
    return twin
