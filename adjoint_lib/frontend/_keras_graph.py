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
