"""Lowering: a Keras model, any wiring, written as a graph of primitives over the image and x_b.

`lower(model)` walks a built functional or Sequential model and the models nested in it. Nothing is
computed; a layer that is not supported raises `UnsupportedLayer` (see `refusals`).
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Generic, TypeVar

import keras

from adjoint_lib.core.graph import IMAGE, Graph
from adjoint_lib.errors import InputError
from adjoint_lib.frontend._keras_graph import Node, calls, count_of_calls, functional, made_by
from adjoint_lib.frontend.refusals import (
    check_call,
    check_inputs,
    check_readable,
    check_softmax,
    is_softmax,
    rule_for,
)
from adjoint_lib.frontend.rules.call import Call, Ref

Value = TypeVar("Value")


def lower(model: keras.Model, dtype: str) -> Graph:
    """The model, which computes in `dtype`, as a graph over the image and x_b, before folding."""
    for operation, name in _operations(functional(model), "", dtype):
        rule_for(operation, name)
    dropped = _final_softmaxes(functional(model))
    writer = _Writer(dropped)
    (given,) = model.inputs
    rounds = given.dtype if dtype == "float64" != given.dtype else None
    image = writer.graph.image(tuple(given.shape[1:]), rounds)
    assert image == IMAGE
    writer.graph.outputs = writer.run(functional(model), [image], prefix="")
    return writer.graph


def _operations(
    model: keras.Model, prefix: str, dtype: str
) -> Iterator[tuple[keras.Operation, str]]:
    """Every operation, with its name, of a model and of the models nested in it."""
    for node in calls(model):
        operation, name = node.operation, prefix + node.operation.name
        if isinstance(operation, keras.Model):
            check_readable(operation, name)
            check_inputs(
                operation, name, ("float64",) if dtype == "float64" else (dtype, "float64")
            )
            yield from _operations(functional(operation), f"{name}/", dtype)
        else:
            yield operation, name


def _final_softmaxes(model: keras.Model) -> set[keras.Operation]:
    """Layers that end the network with a softmax which nothing else reads; warns of each."""
    read = {id(t) for node in calls(model) for t in node.input_tensors}
    found = set()
    for tensor in model.outputs:
        operation = made_by(tensor)
        if is_softmax(operation) and id(tensor) not in read and count_of_calls(operation) == 1:
            found.add(operation)
            warnings.warn(
                f"the final softmax of '{operation.name}' is dropped: the equivalent network gives "
                "the values before it, which have the same order.",
                stacklevel=4,  # the caller of al.equivalent
            )
    return found


class Walk(Generic[Value]):
    """Goes through the calls of a functional model, and of the models nested in it."""

    def __init__(self) -> None:
        self.uses: dict[str, int] = {}
        self.names: set[str] = set()

    def apply(self, node: Node, name: str, inputs: list[Value]) -> Value:
        """What one call of a layer makes of these inputs."""
        raise NotImplementedError

    def run(self, model: keras.Model, inputs: list[Value], prefix: str) -> list[Value]:
        """One use of `model` on these inputs; returns its outputs."""
        where = {id(t): n for t, n in zip(model.inputs, inputs, strict=True)}
        for node in calls(model):
            found = [where[id(t)] for t in node.input_tensors]
            for tensor, value in zip(node.outputs, self._visit(node, found, prefix), strict=True):
                where[id(tensor)] = value
        return [where[id(t)] for t in model.outputs]

    def _visit(self, node: Node, inputs: list[Value], prefix: str) -> list[Value]:
        name = self._unique(prefix + node.operation.name)
        check_call(node, name)
        if isinstance(node.operation, keras.Model):
            return self.run(functional(node.operation), inputs, f"{name}/")
        return [self.apply(node, name, inputs)]

    def _unique(self, name: str) -> str:
        """A layer used again is named 'name#2', 'name#3', ...: each use has its own bias slice."""
        self.uses[name] = self.uses.get(name, 0) + 1
        found = name if self.uses[name] == 1 else f"{name}#{self.uses[name]}"
        if found in self.names:
            raise InputError(
                f"expected a name for each use of a layer, but two layers would be '{found}': the "
                f"second use of '{found.rpartition('#')[0]}' and the layer of that name. Rename it."
            )
        self.names.add(found)
        return found


class _Writer(Walk[int]):
    """Writes each call into a graph."""

    def __init__(self, dropped: set[keras.Operation]):
        super().__init__()
        self.graph = Graph()
        self.dropped = dropped  # layers whose softmax is left out

    def apply(self, node: Node, name: str, inputs: list[int]) -> int:
        """Write one call; returns the node of its output."""
        operation = node.operation
        drops = operation in self.dropped
        if not drops:
            check_softmax(operation, name)
        places = {id(t): Ref(i) for i, t in enumerate(node.input_tensors)}
        given = (*node.arguments.args, *node.arguments.kwargs.values())
        args = tuple(places.get(id(a), a) for a in given)
        out = rule_for(operation, name)(Call(self.graph, operation, name, inputs, args, drops))
        return out if drops else self.graph.hold(out, name)
