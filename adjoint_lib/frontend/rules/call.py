"""What a rule is: a function that takes one use of a layer and writes it in primitives.

A rule takes a `Call`, appends primitives to the graph and returns the node that holds the layer's
output. It stands under the decorator `rule` with the layers that it serves. Layers are matched by
their exact type, because a subclass may compute something else. `operator` does the same for what
Python's operators do to symbolic tensors.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import keras
import numpy as np

from adjoint_lib._registry import Registry
from adjoint_lib.core import primitives as p
from adjoint_lib.core.graph import Graph, Shape
from adjoint_lib.errors import AdjointError, InputError, UnsupportedLayer, in_one_line
from adjoint_lib.frontend import activations
from adjoint_lib.frontend._keras_graph import Node, arguments


@dataclass
class Call:
    """One use of a Keras layer: what a rule needs to write it down.

    Attributes:
        inputs: the nodes that it reads; their shapes, of one row, are `input_shapes`.
        args: its arguments, tensors among them as `Ref`.
        drops: whether its activation ends the network and is left out.
        write: (function, node, name) traces a function of symbolic tensors and writes it.
    """

    graph: Graph
    node: Node
    name: str
    inputs: list[int]
    args: tuple[Any, ...]
    drops: bool
    write: Callable[[Callable[..., Any], int, str], int]

    @property
    def layer(self) -> Any:
        """The Keras layer, or operation."""
        return self.node.operation

    @property
    def input_shapes(self) -> list[Shape]:
        """The shapes of one row of each input."""
        return [self.graph.nodes[i].shape for i in self.inputs]

    @functools.cached_property
    def shape(self) -> Shape:
        """The shape of one row of the layer's output."""
        batched = [(None, *s) for s in self.input_shapes]
        if isinstance(self.layer, keras.Layer):
            several = batched[0] if len(batched) == 1 else batched
            return tuple(self.layer.compute_output_shape(several)[1:])
        tensors = [keras.KerasTensor(shape) for shape in batched]
        args, kwargs = arguments(self.node, tensors)
        return tuple(self.layer.compute_output_spec(*args, **kwargs).shape[1:])

    def weight(self, name: str) -> np.ndarray:
        """A weight of the layer, by its attribute's name, in float64."""
        return weight(getattr(self.layer, name))

    def evaluate(self, x: np.ndarray) -> np.ndarray:
        """What the layer itself makes of a batch."""
        args, kwargs = arguments(self.node, [keras.ops.convert_to_tensor(x)])
        with running(self.name):
            return np.asarray(self.layer(*args, **kwargs))

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
        """Append h + b, with b a new slice of x_b; see `Graph.bias`."""
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


@contextlib.contextmanager
def running(name: str) -> Iterator[None]:
    """Says which layer of the model it was that could not be run."""
    try:
        yield
    except AdjointError:
        raise
    except Exception as error:
        raise InputError(
            f"layer '{name}' cannot be run: {in_one_line(error)} Expected a model that "
            "model(images, training=False) computes."
        ) from error


def before_activation(name: str) -> str:
    """What a layer gives before its own activation, as nodes note it in `holds`."""
    return f"{name}/before its activation"  # no name of a layer has a slash


Rule = Callable[[Call], int]
RULES: Registry[type, Rule] = Registry("layer", package=__package__)
OPERATORS: Registry[str, Rule] = Registry("operator", package=__package__)
EXPANSIONS: Registry[type | str, Callable[..., Any]] = Registry("expansion", package=__package__)

rule = RULES.register
operator = OPERATORS.register
expands = EXPANSIONS.register


def supports(*kinds: type[keras.Layer]) -> Callable[[Rule], Rule]:
    """A decorator for the rule that writes layers of one's own, of these exact classes.

    The rule takes a `Call`, appends primitives to the graph by `call.add`, `call.add_bias` and
    `call.add_activation`, and returns the node with the layer's output. `equivalent` compares what
    it computes with the layer, so a wrong rule gives an error and no network. A layer that is
    written in Keras layers and `keras.ops` needs none.
    """
    for kind in kinds:
        if not (isinstance(kind, type) and issubclass(kind, keras.Layer)):
            raise InputError(
                f"expected the class of a Keras layer, as in @al.supports(MyLayer), got {kind!r}."
            )
    return RULES.register(*kinds)


def weight(variable: keras.Variable) -> np.ndarray:
    """A variable's value in float64: folding is done in float64 whatever the model's dtype."""
    return np.asarray(keras.ops.convert_to_numpy(variable), float)


def kernel(variable: keras.Variable) -> np.ndarray:
    """A kernel in its own dtype: folding makes float64 of it, and only then are digits needed."""
    return np.array(keras.ops.convert_to_numpy(variable))


def each_axis(value: int | Sequence[int], rank: int) -> tuple[int, ...]:
    """A setting for each axis, where one number stands for all."""
    return (value,) * rank if isinstance(value, int) else tuple(value)


def numbers(call: Call, argument: Any) -> np.ndarray:
    """A constant argument in float64."""
    values = np.asarray(argument)
    if values.dtype.kind not in "biu" and not p.is_float_array(values):
        raise UnsupportedLayer(
            f"operation '{call.name}' has a constant of {values.dtype}; expected real numbers."
        )
    return values.astype(float)


def constant(call: Call, argument: Any) -> np.ndarray:
    """A constant argument in float64, for one row."""
    values, rank = numbers(call, argument), len(call.input_shapes[0])
    if values.ndim > rank and values.shape[0] == 1:
        values = values[0]
    if values.ndim > rank:
        raise UnsupportedLayer(
            f"operation '{call.name}' has a constant of shape {values.shape} beside rows of shape "
            f"{call.input_shapes[0]}; expected at most as many axes. Reshape it."
        )
    return values


def one_tensor(call: Call, first: bool = False) -> tuple[np.ndarray, bool]:
    """(the constant, whether the tensor comes first) of an operation on one of each.

    Args:
        first: the tensor has to.
    """
    if len(call.args) != 2:
        raise UnsupportedLayer(
            f"operation '{call.name}' takes {len(call.args)} operands; expected one tensor and one "
            "constant. Write it in several steps."
        )
    x, y = call.args
    if isinstance(x, Ref) == isinstance(y, Ref) or (first and isinstance(y, Ref)):
        raise UnsupportedLayer(
            f"operation '{call.name}' multiplies activations by each other, or divides by them, "
            "which is not piecewise linear. Only products with constants are supported."
        )
    return numbers(call, y if isinstance(x, Ref) else x), isinstance(x, Ref)


def reshaped(call: Call, h: int, shape: Shape) -> int:
    """The node in another shape."""
    before = call.graph.nodes[h].shape
    return h if before == shape else call.add(p.Reshape(before, shape), [h], shape)


def refuse_ranks(call: Call, shapes: Sequence[Shape]) -> None:
    """Refuse tensors with different numbers of axes."""
    if len({len(shape) for shape in shapes}) > 1:
        raise UnsupportedLayer(
            f"layer '{call.name}' combines tensors with different numbers of axes, {list(shapes)}; "
            "expected the same number. Reshape them first."
        )


def refuse_mistaken_bias(call: Call, shape: Shape, added: Shape) -> None:
    """Refuse a sum in which Keras takes what it adds for a bias, and so adds it along another axis.

    Keras does so with a constant or one image, where `added` has a single axis longer than 1, as
    long as the last or the first axis of what it is added to.
    """
    long = [axis for axis, size in enumerate(added) if size > 1]
    if len(long) != 1 or added[long[0]] not in (shape[0], shape[-1]):
        return
    along = len(shape) - 1 if shape[-1] == added[long[0]] else 0
    if along != long[0]:
        raise UnsupportedLayer(
            f"layer '{call.name}' adds a tensor of shape {added} to one of shape {shape}, which "
            "Keras takes for a bias and adds along another axis. Expected equal shapes. Repeat it "
            "first."
        )


def axes_of(call: Call) -> tuple[int, ...]:
    """The axes that a reduction goes over, counted without that of the batch."""
    rank, axes = len(call.input_shapes[0]) + 1, call.layer.axis
    given = range(rank) if axes is None else (axes,) if isinstance(axes, int) else axes
    found = sorted({a % rank for a in given})
    if 0 in found:
        raise UnsupportedLayer(
            f"operation '{call.name}' goes over the images of a batch; expected axes from 1 on, "
            f"got axis={axes}."
        )
    return tuple(a - 1 for a in found)
