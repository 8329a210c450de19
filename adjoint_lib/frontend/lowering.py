"""Lowering: a Keras model, any wiring, written as a graph of primitives over the image and x_b.

`lower(model)` walks a built functional or Sequential model and the models nested in it. Nothing is
computed; a layer that is not supported raises `UnsupportedLayer` (see `refusals`).
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator

import keras

from adjoint_lib.core.graph import IMAGE, Graph
from adjoint_lib.frontend._keras_graph import Node, calls, count_of_calls, functional, made_by
from adjoint_lib.frontend.refusals import (
    check_call,
    check_model,
    check_readable,
    check_softmax,
    is_softmax,
    rule_for,
)
from adjoint_lib.frontend.rules.call import Call, Ref


def lower(model: keras.Model) -> tuple[Graph, list[int]]:
    """The model as a graph over the image and x_b, before folding.

    Returns the graph and the positions among its outputs that a softmax was dropped from.
    """
    check_model(model)
    for operation, name in _operations(functional(model), prefix=""):
        rule_for(operation, name)
    dropped = _final_softmaxes(functional(model))
    writer = _Writer(dropped)
    image = writer.graph.image(tuple(model.inputs[0].shape[1:]))
    assert image == IMAGE
    writer.graph.outputs = writer.run(functional(model), [image], prefix="")
    ends = [made_by(t) for t in functional(model).outputs]
    return writer.graph, [i for i, operation in enumerate(ends) if operation in dropped]


def _operations(model: keras.Model, prefix: str) -> Iterator[tuple[keras.Operation, str]]:
    """Every operation, with its name, of a model and of the models nested in it."""
    for node in calls(model):
        operation, name = node.operation, prefix + node.operation.name
        if isinstance(operation, keras.Model):
            check_readable(operation, name)
            yield from _operations(functional(operation), f"{name}/")
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


class _Writer:
    """Writes the calls of a functional model, and of the models nested in it, into a graph."""

    def __init__(self, dropped: set[keras.Operation]):
        self.graph = Graph()
        self.dropped = dropped  # layers whose softmax is left out
        self.uses: dict[str, int] = {}

    def run(self, model: keras.Model, inputs: list[int], prefix: str) -> list[int]:
        """Write one use of `model` on these nodes; returns the nodes of its outputs."""
        where = {id(t): n for t, n in zip(model.inputs, inputs, strict=True)}
        for node in calls(model):
            found = [where[id(t)] for t in node.input_tensors]
            for tensor, number in zip(node.outputs, self.write(node, found, prefix), strict=True):
                where[id(tensor)] = number
        return [where[id(t)] for t in model.outputs]

    def write(self, node: Node, inputs: list[int], prefix: str) -> list[int]:
        """Write one call; returns the nodes of its outputs."""
        operation = node.operation
        name = self.unique(prefix + operation.name)
        if isinstance(operation, keras.Model):
            return self.run(functional(operation), inputs, f"{name}/")
        check_call(node, name)
        drops = operation in self.dropped
        if not drops:
            check_softmax(operation, name)
        places = {id(t): Ref(i) for i, t in enumerate(node.input_tensors)}
        given = (*node.arguments.args, *node.arguments.kwargs.values())
        args = tuple(places.get(id(a), a) for a in given)
        return [rule_for(operation, name)(Call(self.graph, operation, name, inputs, args, drops))]

    def unique(self, name: str) -> str:
        """A layer used again is named 'name#2', 'name#3', ...: each use has its own bias slice."""
        self.uses[name] = self.uses.get(name, 0) + 1
        return name if self.uses[name] == 1 else f"{name}#{self.uses[name]}"
