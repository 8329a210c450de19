"""Lowering: a Keras model, any wiring, written as a graph of primitives over the image and x_b.

`lower(model)` walks a built model, the models nested in it, and, by tracing, the calls of layers
and models of one's own. A layer that is not supported raises `UnsupportedLayer` (see `refusals`).
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar

import keras

from adjoint_lib.core.graph import IMAGE, Graph, Shape
from adjoint_lib.errors import InputError
from adjoint_lib.frontend._keras_graph import Node, arguments, calls, has_entries
from adjoint_lib.frontend.refusals import (
    check_activation,
    check_call,
    check_inputs,
    check_precision,
    check_reads,
    check_width,
    ending_of,
    expansion_of,
    has_rule,
    readable,
    rule_for,
    traced,
)
from adjoint_lib.frontend.rules.call import Call, Ref

Value = TypeVar("Value")
MONOTONE = "softmax log_softmax sigmoid tanh softplus softsign log_sigmoid elu".split()


def lower(model: keras.Model, dtype: str) -> Graph:
    """The model, which computes in `dtype`, as a graph over the image and x_b, before folding.

    An activation that ends the model and is not piecewise linear is dropped, with a warning.
    """
    found = readable(model, model.name)
    (given,) = found.inputs
    writer = _Writer(dtype, given.dtype)
    rounds = given.dtype if dtype == "float64" != given.dtype else None
    image = writer.graph.image(tuple(given.shape[1:]), rounds)
    assert image == IMAGE
    writer.graph.outputs = writer.run(found, [image], "", [True] * len(found.outputs))
    if set(writer.graph.outputs) == {IMAGE}:
        raise InputError(
            f"model '{model.name}' gives back the image; expected one that computes something."
        )
    for name, activation in writer.dropped:
        order = ", which have the same order" if activation in MONOTONE else ""
        warnings.warn(
            f"the final {activation} of '{name}' is dropped: the equivalent network gives the "
            f"values before it{order}.",
            stacklevel=3,  # the caller of al.equivalent
        )
    return writer.graph


class Walk(Generic[Value]):
    """Goes through the calls of a model, of the models nested in it, and of traced layers."""

    def __init__(self) -> None:
        self.uses: dict[str, int] = {}
        self.names: set[str] = set()

    def apply(self, node: Node, name: str, inputs: list[Value], last: bool) -> Value:
        """What one call of a layer makes of these inputs.

        Args:
            last: it is an output of the model, and nothing else reads it.
        """
        raise NotImplementedError

    def shape_of(self, value: Value) -> Shape:
        """The shape of one row of a value."""
        raise NotImplementedError

    def enter(self, model: keras.Model, name: str) -> None:
        """A nested model, as a functional one, is about to be run."""

    def leave(self, node: Node, name: str, inputs: list[Value], found: list[Value]) -> list[Value]:
        """What a traced layer gives, after its operations have been run."""
        return found

    def run(
        self, model: keras.Model, inputs: list[Value], prefix: str, last: Sequence[bool]
    ) -> list[Value]:
        """One use of a functional model on these inputs; returns its outputs that have entries.

        Args:
            last: which of all its outputs nothing else reads.
        """
        where = {id(t): n for t, n in zip(model.inputs, inputs, strict=True)}
        read = {id(t) for node in calls(model) for t in node.input_tensors}
        ends = {id(t) for t, end in zip(model.outputs, last, strict=True) if end} - read
        for node in calls(model):
            if not any(map(has_entries, node.outputs)):
                continue
            check_reads(node, prefix)
            found = [where[id(t)] for t in node.input_tensors]
            ending = [id(t) in ends for t in node.outputs]
            values = self._visit(node, found, prefix, ending)
            given = filter(has_entries, node.outputs)
            where.update((id(t), v) for t, v in zip(given, values, strict=True))
        return [where[id(t)] for t in filter(has_entries, model.outputs)]

    def _visit(
        self, node: Node, inputs: list[Value], prefix: str, last: Sequence[bool]
    ) -> list[Value]:
        name = self._unique(prefix + node.operation.name)
        check_call(node, name)
        if isinstance(node.operation, keras.Model):
            shapes = [self.shape_of(x) for x in inputs]
            inner = readable(node.operation, name, shapes, _called(node))
            self.enter(inner, name)
            return self.run(inner, inputs, f"{name}/", last)
        if not ending_of(node.operation) and rule_for(node.operation, name) is None:
            inner = self._inside(node, name, inputs)
            return self.leave(node, name, inputs, self.run(inner, inputs, f"{name}/", last))
        return [self.apply(node, name, inputs, last[0])]

    def _inside(self, node: Node, name: str, inputs: list[Value]) -> keras.Model:
        """The operations that a layer calls, as a model of the tensors that it reads."""
        layer = node.operation
        dtype = getattr(layer, "compute_dtype", node.input_tensors[0].dtype)
        return traced(_called(node), [self.shape_of(x) for x in inputs], dtype, name, layer)

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


def _called(node: Node) -> Callable[..., Any]:
    """What a call computes of the tensors that it reads, its other arguments as they are."""
    expand = expansion_of(node.operation)

    def function(*tensors: Any) -> Any:
        args, kwargs = arguments(node, list(tensors))
        return expand(*args, **kwargs)

    return function


class _Writer(Walk[int]):
    """Writes each call into a graph."""

    def __init__(self, dtype: str, given: str):
        super().__init__()
        self.graph = Graph()
        self.dtype, self.given = dtype, given  # of the layers, and of the images as they come in
        self.dropped: list[tuple[str, str]] = []  # (layer, its final activation)

    def shape_of(self, value: int) -> Shape:
        return self.graph.nodes[value].shape

    def enter(self, model: keras.Model, name: str) -> None:
        check_inputs(
            model, name, ("float64",) if self.dtype == "float64" else ("float32", "float64")
        )

    def leave(self, node: Node, name: str, inputs: list[int], found: list[int]) -> list[int]:
        inside = any(layer.startswith(f"{name}/") for layer, _ in self.dropped)
        if len(found) == 1 and not inside:
            self.graph.hold(found[0], name)
        return found

    def apply(self, node: Node, name: str, inputs: list[int], last: bool) -> int:
        """Write one call; returns the node of its output."""
        operation, ending = node.operation, ending_of(node.operation)
        if isinstance(operation, keras.Layer):  # one that a function calls is in no model's list
            check_precision(operation, self.dtype)
        drops = last and bool(ending)
        if drops:
            self.dropped.append((name, ending))
            if not has_rule(operation):
                return inputs[0]
        elif ending:
            check_activation(operation, ending, name)
        check_width(node, name, self.given, self.dtype)
        rule = rule_for(operation, name)
        assert rule is not None  # or it would have been traced
        places = {id(t): Ref(i) for i, t in enumerate(node.input_tensors)}
        given = (*node.arguments.args, *node.arguments.kwargs.values())
        args = tuple(places.get(id(a), a) for a in given)
        out = rule(Call(self.graph, node, name, inputs, args, drops, self._write))
        return out if drops else self.graph.hold(out, name)

    def _write(self, function: Callable[..., Any], h: int, name: str) -> int:
        """A function of a symbolic tensor, traced and written on this node."""
        inner = traced(function, [self.shape_of(h)], self.dtype, name, function)
        with self.graph.holding_nothing():
            (out,) = self.run(inner, [h], f"{name}/", [False])
        return out
