"""What a rule is: a function that takes one use of a layer and writes it in primitives.

A rule takes a `Call`, appends primitives to the graph and returns the node that holds the layer's
output. It stands under the decorator `rule` with the layers that it serves. Layers are matched by
their exact type, because a subclass may compute something else. `operator` does the same for what
Python's operators do to symbolic tensors.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import keras
import numpy as np

from adjoint_lib._registry import Registry
from adjoint_lib.core import primitives as p
from adjoint_lib.core.graph import Graph, Shape
from adjoint_lib.errors import UnsupportedLayer
from adjoint_lib.frontend import activations


@dataclass
class Call:
    """One use of a Keras layer: what a handler needs to write it down."""

    graph: Graph
    layer: keras.layers.Layer
    name: str
    inputs: list[int]  # node numbers
    args: tuple[Any, ...]  # positional arguments, node numbers as `Ref`
    drops_softmax: bool = False

    @property
    def input_shapes(self) -> list[Shape]:
        return [self.graph.nodes[i].shape for i in self.inputs]

    @functools.cached_property
    def shape(self) -> Shape:
        """The shape of one row of the layer's output."""
        batched = [(None, *s) for s in self.input_shapes]
        return tuple(
            self.layer.compute_output_shape(batched[0] if len(batched) == 1 else batched)[1:]
        )

    def add(
        self,
        primitive: p.Primitive,
        inputs: Sequence[int] | None = None,
        shape: Shape | None = None,
    ) -> int:
        """Append a primitive; by default on the call's inputs and with the layer's output shape."""
        inputs = self.inputs if inputs is None else inputs
        return self.graph.add(self.name, primitive, inputs, self.shape if shape is None else shape)

    def add_bias(
        self, h: int, values: np.ndarray, origin: str = "bias", size: np.ndarray | None = None
    ) -> int:
        return self.graph.bias(self.name, h, values, f"{origin} of {self.name}", size)

    def add_activation(self, h: int, lowered: activations.Lowered) -> int:
        """Append an activation with its constants as entries of x_b."""
        primitive, constants = lowered
        shape = self.graph.nodes[h].shape
        scalar = (1,) * len(shape)
        sources = [
            self.graph.source(self.name, f"constant {c:g} of {self.name}", np.reshape(c, scalar))
            for c in constants
        ]
        return self.add(primitive, [h, *sources], shape)


@dataclass(frozen=True)
class Ref:
    """The place of a tensor among the arguments of a call: an index into its inputs."""

    index: int


def before_activation(name: str) -> str:
    """What a layer gives before its own activation, as nodes note it in `holds`."""
    return f"{name}, before its activation"


Rule = Callable[[Call], int]
RULES: Registry[type, Rule] = Registry("layer", package=__package__)
OPERATORS: Registry[str, Rule] = Registry("operator", package=__package__)

rule = RULES.register
operator = OPERATORS.register


def weight(variable: keras.Variable) -> np.ndarray:
    """A variable's value in float64: folding is done in float64 whatever the model's dtype."""
    return np.asarray(keras.ops.convert_to_numpy(variable), float)


def refuse_ranks(call: Call, shapes: Sequence[Shape]) -> None:
    if len({len(shape) for shape in shapes}) > 1:
        raise UnsupportedLayer(
            f"layer '{call.name}' combines tensors with different numbers of axes, {list(shapes)}; "
            "expected the same number. Reshape them first."
        )
