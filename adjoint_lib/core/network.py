"""The network over v = [x; x_b]: its nodes in one precision, its layers, its sources, its values.

Everything that is known before an image is frozen. `frozen.Frozen` adds the activation pattern of
an image, `equivalent_net.EquivalentNet` what a user asks for.
"""

from __future__ import annotations

import functools
import hashlib
import math
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol, TypeVar

import numpy as np
import tensorflow as tf

from adjoint_lib._registry import did_you_mean
from adjoint_lib.core.graph import IMAGE, Graph, Node, Order, Shape
from adjoint_lib.core.primitives import (
    Activation,
    Dense,
    Kernel,
    Pattern,
    Primitive,
    Sum,
    is_float_array,
    times,
)
from adjoint_lib.core.tables import Table
from adjoint_lib.errors import InputError

Net = TypeVar("Net", bound="Network")

SMALL_NODE = 2**24  # bytes of |parameters| that are kept from one image to the next
DIGESTED = 2**24  # bytes that go into a digest at once


@dataclass(frozen=True)
class Layer:
    """A layer with a kernel, whose units are reconstructed.

    Attributes:
        name: the Keras layer's name ('inner/conv' inside a nested model, 'conv#2' at its second
            use).
        kind: Conv, DepthwiseConv, ConvTranspose or Dense.
        kernel: shape of the folded kernel.
        strides: empty for a dense layer.
        shape: (h, w, c_out), or (c_out,): the shape of its units c, before the bias.
        channels: c_in.
        bias: the part of x_b that is added to c, if any.
        number: the node that computes c.
        reads: the node F(v) that it reads.
    """

    name: str
    kind: str
    kernel: Shape
    strides: Shape
    shape: Shape
    channels: int
    bias: slice | None
    number: int
    reads: int

    @property
    def modes(self) -> tuple[str, ...]:
        """The reconstruction modes that fit the layer."""
        return ("RM0",) if len(self.shape) == 1 else ("RM1", "RM2", "RM3", "RM4")

    @property
    def default_mode(self) -> str:
        """The mode whose units are the layer's own units: RM0 of a dense layer, else RM2."""
        return "RM0" if "RM0" in self.modes else "RM2"


@dataclass(frozen=True)
class BiasSource:
    """A slice of x_b and where it comes from."""

    name: str
    origin: str
    start: int
    stop: int
    shape: Shape
    node: int

    @property
    def size(self) -> int:
        """How many entries of x_b it is."""
        return self.stop - self.start

    @property
    def slice(self) -> slice:
        """Its place in x_b."""
        return slice(self.start, self.stop)


class Network:
    """A network over v = [x; x_b]: folded kernels, every bias an input.

    Attributes:
        name, dtype, input_shape, x_b, sources, layers: as `EquivalentNet` explains them.
        graph: the nodes as folded, in float64; kernels that nothing was folded into in their own
            dtype, which may be float32.
        nodes: the same nodes with their parameters as tensors of `dtype`.
    """

    def __init__(self, name: str, graph: Graph, dtype: str):
        self.name = name
        self.graph = graph
        self.dtype = tf.as_dtype(dtype)
        self.input_shape: Shape = graph.nodes[IMAGE].shape
        self.nodes = [_cast(node, self.dtype) for node in graph.nodes]
        _check_product(self.nodes, self.dtype)
        self.sources = _sources(graph)
        values = [graph.nodes[s.node].bias.values.reshape(-1) for s in self.sources]
        self.x_b = np.concatenate(values) if values else np.zeros(0)
        for s in self.sources:
            _check_finite(s.name, self.x_b[s.slice], self.dtype)
        self.layers = _layers(graph, self.sources)
        self._broadcast = _broadcast(graph)
        self._plans: dict[frozenset[int], Order] = {}
        self.traces: dict[Hashable, Callable[..., Any]] = {}  # see `compiled.traced`
        self._casts: dict[tf.DType, Any] = {self.dtype: self}

    def astype(self: Net, dtype: str | tf.DType) -> Net:
        """The same network computing in another dtype (float32 or float64)."""
        names = {"float32": tf.float32, "float64": tf.float64}
        wanted = dtype if isinstance(dtype, tf.DType) else names.get(dtype)
        if wanted is None or wanted.name not in names:
            raise InputError(f"expected dtype float32 or float64, got {dtype!r}.")
        if wanted not in self._casts:
            self._casts[wanted] = type(self)(self.name, self.graph, wanted.name)
        return self._casts[wanted]

    @property
    def d_in(self) -> int:
        """Entries of [x; x_b]."""
        return math.prod(self.input_shape) + self.x_b.size

    def layer(self, name: str) -> Layer:
        """The layer of this name; an unknown name is answered with the nearest one."""
        for layer in self.layers:
            if layer.name == name:
                return layer
        if any(node.name == name for node in self.nodes):
            raise InputError(
                f"layer '{name}' has no kernel, so it has no units of its own to reconstruct. "
                f"Layers with a kernel: {', '.join(x.name for x in self.layers)}."
            )
        names = [x.name for x in self.layers]
        hint = did_you_mean(name, names, cutoff=0)
        raise InputError(f"unknown layer {name!r}.{hint} Layers: {', '.join(names)}.")

    def named(self, names: Sequence[str] | str) -> list[Layer]:
        """The layers of these names: one, or several in a list."""
        listed = [names] if isinstance(names, str) else names
        if not isinstance(listed, Sequence) or not listed:
            raise InputError(f"expected layers as names in a list, or None, got {names!r}.")
        return [self.layer(name) for name in listed]

    def check_images(self, images: np.ndarray) -> tf.Tensor:
        """The images as a batch (N, *input_shape) in the net's dtype, or an error."""
        expected = " x ".join(map(str, self.input_shape))
        if np.ma.is_masked(images):
            raise InputError(
                "expected images without a mask, got a masked array: what stands behind its mask "
                "would count. Fill it first, images.filled(0.0)."
            )
        try:
            found = np.asarray(images)
        except ValueError as error:
            raise InputError(f"expected images of shape {expected} each, got {error}") from error
        if found.dtype.kind != "f" and is_float_array(found):  # bfloat16 and the like
            found = found.astype(np.float32)
        if found.dtype.kind != "f":
            raise InputError(
                f"expected floating-point images, got {found.dtype}. Scale them as in training, "
                "for instance images / 255 for pixels in [0, 1]."
            )
        if found.shape == self.input_shape:
            found = found[None]
        if found.shape[1:] != self.input_shape or not found.shape[0]:
            raise InputError(
                f"expected an image of shape {expected} or a batch N x {expected}, got shape "
                f"{np.shape(images)}."
            )
        if not np.isfinite(found).all():
            bad = int(np.count_nonzero(~np.isfinite(found)))
            raise InputError(f"expected finite images, got {bad} entries that are NaN or infinite.")
        source = self.graph.nodes[IMAGE].source
        rounds = source.rounds if source is not None else None
        given = self.dtype if rounds is None else tf.as_dtype(rounds)
        with np.errstate(over="ignore", under="ignore"):
            cast = found.astype(given.as_numpy_dtype)
        if not np.isfinite(cast).all() or (found.any() and np.abs(cast).max() < smallest(given)):
            raise InputError(
                f"expected images in the range of {given.name}, got entries up to "
                f"{np.abs(found).max():.3g}. Scale them as in training."
            )
        return tf.constant(cast.astype(self.dtype.as_numpy_dtype))

    def plan(self, wanted: frozenset[int]) -> Order:
        """The nodes that `wanted` depend on, each with those that nothing reads after it."""
        if wanted not in self._plans:
            self._plans[wanted] = self.graph.plan(wanted)
        return self._plans[wanted]

    @functools.cached_property
    def absolute_nodes(self) -> AbsoluteNodes:
        """The nodes with |weights| in float64, for the rounding scale A."""
        return AbsoluteNodes(self.graph.nodes)

    @functools.cached_property
    def digest(self) -> str:
        """SHA-256 of every node, its wiring and its numbers: what a result was computed from."""
        sha = hashlib.sha256()
        for node in self.graph.nodes:
            held = {} if node.primitive is None else node.primitive.held
            if node.is_bias:
                held = {"values": node.bias.values}
            kind = type(node.primitive).__name__
            sha.update(repr((node.name, node.shape, node.inputs, kind)).encode())
            for name, value in held.items():
                for part in _bytes_of(name, value):
                    sha.update(part)
        return sha.hexdigest()

    def values_at(self, images: tf.Tensor, k: float, wanted: Iterable[int]) -> dict[int, tf.Tensor]:
        """The values of these nodes at k [x; x_b]."""
        wanted = frozenset(wanted)
        return {n: value for n, _, value in self.evaluate(images, k, wanted) if n in wanted}

    def evaluate(
        self, images: tf.Tensor, k: float, wanted: Iterable[int]
    ) -> Iterator[tuple[int, list[tf.Tensor], tf.Tensor]]:
        """The value reading at k [x; x_b] of all that these nodes depend on, see `evaluate`."""
        starts = {IMAGE: times(k, images)}
        for s in self.sources:
            part = tf.constant((k * self.x_b[s.slice]).reshape(1, *s.shape), self.dtype)
            shared = s.node in self._broadcast
            starts[s.node] = part if shared else tf.repeat(part, images.shape[0], 0)
        return evaluate(self.nodes, starts, self.plan(frozenset(wanted)))


def evaluate(
    nodes: list[Node], starts: dict[int, tf.Tensor], plan: Order
) -> Iterator[tuple[int, list[tf.Tensor], tf.Tensor]]:
    """The value reading: (node, its inputs, its value) in turn, by TensorFlow's own layers.

    A value is let go when nothing reads it later.

    Args:
        starts: the values of the sources.
        plan: which nodes, see `EquivalentNet.plan`.
    """
    values: dict[int, tf.Tensor] = {}
    for number, finished in plan:
        node = nodes[number]
        inputs = [values[i] for i in node.inputs]
        source = node.primitive is None
        value = starts[number] if source else node.operation.value(*inputs)
        if isinstance(node.primitive, Sum) and not tf.executing_eagerly():
            value = tf.raw_ops.Snapshot(input=value)  # or TensorFlow fuses it, and rounds otherwise
        values[number] = value
        yield number, inputs, values[number]
        for old in finished:
            del values[old]


def _broadcast(graph: Graph) -> set[int]:
    """The sources of which one row does for all images: they are only added to what has more."""
    kept = {number for number, node in enumerate(graph.nodes) if node.is_bias}
    for node in graph.nodes:
        alone = all(graph.nodes[i].is_bias for i in node.inputs)
        if alone or not isinstance(node.primitive, (Sum, Activation)):
            kept -= set(node.inputs)
    return kept


class Nodes(Protocol):
    """Nodes by their numbers."""

    def __getitem__(self, number: int, /) -> Node: ...


class AbsoluteNodes:
    """Nodes with |parameters| in float64, made when they are read; only small ones are kept.

    All of them would take several times the memory of the network itself.
    """

    def __init__(self, nodes: list[Node]):
        self._nodes = nodes
        self._small: dict[int, Node] = {}

    def __getitem__(self, number: int) -> Node:
        if number in self._small:
            return self._small[number]
        found, size = _absolute(self._nodes[number])
        if size <= SMALL_NODE:
            self._small[number] = found
        return found


def _absolute(node: Node) -> tuple[Node, int]:
    """The node with |parameters| in float64, and how many bytes these take."""
    if node.primitive is None:
        return node, 0
    primitive = node.primitive
    size = sum(8 * np.size(value) for value in primitive.held.values() if is_float_array(value))
    if size > SMALL_NODE and isinstance(primitive, Dense):
        return replace(node, primitive=_AbsoluteDense(np.asarray(primitive.kernel))), 0
    return replace(node, primitive=primitive.cast(tf.float64).absolute()), size


@dataclass(frozen=True, eq=False)
class _AbsoluteDense(Primitive):
    """A product with |kernel| in float64, of which only some rows are made at a time."""

    kernel: np.ndarray

    def push(self, pattern: Pattern, x: tf.Tensor) -> tf.Tensor:
        rows = max(1, SMALL_NODE // (8 * self.kernel.shape[1]))
        starts = range(0, len(self.kernel), rows)
        kernels = (np.abs(self.kernel[i : i + rows], dtype=float) for i in starts)
        pairs = zip(starts, kernels, strict=True)
        return sum(tf.tensordot(x[..., i : i + rows], part, 1) for i, part in pairs)


def _bytes_of(name: str, value: object) -> Iterator[bytes]:
    """A primitive's field as bytes, kernels in float64; the other fields identify a function."""
    if isinstance(value, (np.ndarray, np.generic)):
        array = np.ascontiguousarray(value)
        dtype = np.dtype(float) if name == "kernel" else array.dtype
        yield f"{name}: {dtype} {array.shape} ".encode()
        for part in np.array_split(array, 1 + array.nbytes // DIGESTED) if array.ndim else [array]:
            yield part.astype(dtype).tobytes()
    else:
        yield f"{name}: {'' if callable(value) else value!r}".encode()


def _cast(node: Node, dtype: tf.DType) -> Node:
    if node.primitive is None:
        return node
    primitive = node.primitive.cast(dtype)
    for value in primitive.held.values():
        if is_float_array(value):
            _check_finite(node.name, value, dtype)
    return replace(node, primitive=primitive)


def _check_finite(name: str, values: Any, dtype: tf.DType) -> None:
    """Refuse parameters that are not finite, or not in this dtype."""
    if not bool(tf.reduce_all(tf.math.is_finite(tf.cast(values, dtype)))):
        raise InputError(
            f"layer '{name}' has weights or statistics that are NaN or infinite in {dtype.name}; "
            "expected finite ones. Train it again, or compute in float64."
        )


def smallest(dtype: tf.DType) -> float:
    """What a number has to exceed for its rounding to be relative: below, digits underflow."""
    limits = np.finfo(dtype.as_numpy_dtype)
    return float(limits.tiny / limits.eps)


def _check_product(nodes: list[Node], dtype: tf.DType) -> None:
    """Refuse weights whose product along a path is too small for this dtype: H would be zero."""
    lowest: list[float] = []  # log2 of the least product along paths that end here
    for node in nodes:
        held = [] if node.primitive is None else node.primitive.held.values()
        sizes = [float(tf.reduce_max(tf.abs(value))) for value in held if is_float_array(value)]
        gain = sum(math.log2(size * max(1, node.operation.roundings)) for size in sizes if size)
        lowest.append(min([0.0, *(lowest[i] for i in node.inputs)]) + gain)
        if lowest[-1] < math.log2(smallest(dtype)):
            raise InputError(
                f"layer '{node.name}' and those before it have weights whose product underflows "
                f"{dtype.name}. Rescale them, or build the model in float64."
            )


def _sources(graph: Graph) -> Table[BiasSource]:
    rows, start = [], 0
    for number, node in enumerate(graph.nodes):
        if node.is_bias:
            stop = start + node.bias.values.size
            rows.append(BiasSource(node.name, node.bias.origin, start, stop, node.shape, number))
            start = stop
    return Table(
        ["name", "slice", "shape", "origin"],
        rows,
        lambda s: [s.name, f"{s.start}:{s.stop}", str(s.shape), s.origin],
    )


def _layers(graph: Graph, sources: Sequence[BiasSource]) -> Table[Layer]:
    slices = {s.node: s.slice for s in sources}
    biases = {
        node.inputs[0]: slices[node.inputs[1]]
        for number, node in enumerate(graph.nodes)
        if graph.bias_of(number) is not None
    }
    rows = []
    for number, node in enumerate(graph.nodes):
        if isinstance(primitive := node.primitive, Kernel):
            (reads,) = node.inputs
            kernel, strides = tuple(primitive.kernel.shape), getattr(primitive, "strides", ())
            kind, channels = type(primitive).__name__, graph.nodes[reads].shape[-1]
            places = biases.get(number), number, reads
            rows.append(Layer(node.name, kind, kernel, strides, node.shape, channels, *places))
    return Table(["name", "kind", "kernel", "stride", "output", "bias slice"], rows, _layer_cells)


def _layer_cells(layer: Layer) -> list[str]:
    sizes = ["x".join(map(str, s)) for s in (layer.kernel, layer.strides, layer.shape)]
    bias = "" if layer.bias is None else f"{layer.bias.start}:{layer.bias.stop}"
    return [layer.name, layer.kind, *sizes, bias]
