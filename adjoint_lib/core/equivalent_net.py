"""The equivalent network over v = [x; x_b]: the paper's Fig. 2, bottom.

Every bias, and every constant of an activation with intercepts, is an entry of x_b.
"""

from __future__ import annotations

import collections
import difflib
import functools
import hashlib
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import tensorflow as tf

from adjoint_lib.core.frozen import ROWS, WORKSPACE, Frozen, evaluate, itemsize, live_entries
from adjoint_lib.core.graph import IMAGE, Graph, Node, Order, Shape
from adjoint_lib.core.hypersurface import MODES, Hypersurface, mode_of
from adjoint_lib.core.primitives import (
    Conv,
    ConvTranspose,
    Dense,
    DepthwiseConv,
    Kernel,
    Pattern,
)
from adjoint_lib.core.tables import Table
from adjoint_lib.errors import InputError

K = 1 / 8  # the paper's z = k [x; x_b]; a power of two, so the scaling commutes with rounding


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
        return self.stop - self.start

    @property
    def slice(self) -> slice:
        return slice(self.start, self.stop)


class EquivalentNet:
    """A network over v = [x; x_b]: folded kernels, every bias an input.

    Attributes:
        name: the model's name.
        dtype: the dtype of all computing, tf.float32 or tf.float64; `astype` gives the other.
        input_shape: shape of x.
        x_b: (d_b,) float64, all biases and constants in the order of `sources`.
        sources: where each part of x_b comes from.
        layers: the layers with a kernel.
    """

    def __init__(self, name: str, graph: Graph, dtype: str):
        self.name = name
        self.graph = graph
        self.dtype = tf.as_dtype(dtype)
        self.input_shape: Shape = graph.nodes[IMAGE].shape
        self.nodes = [_cast(node, self.dtype) for node in graph.nodes]
        self.sources = _sources(graph)
        values = [graph.nodes[s.node].source.values.reshape(-1) for s in self.sources]
        self.x_b = np.concatenate(values) if values else np.zeros(0)
        self.layers = _layers(graph, self.sources)
        self._plans: dict[frozenset[int], Order] = {}
        self._casts = {self.dtype: self}

    def astype(self, dtype: str | tf.DType) -> EquivalentNet:
        """The same network computing in another dtype (float32 or float64)."""
        wanted = tf.as_dtype(dtype)
        if wanted not in (tf.float32, tf.float64):
            raise InputError(f"expected dtype float32 or float64, got {wanted.name}.")
        if wanted not in self._casts:
            self._casts[wanted] = EquivalentNet(self.name, self.graph, wanted.name)
        return self._casts[wanted]

    @property
    def d_in(self) -> int:
        """Entries of [x; x_b]."""
        return math.prod(self.input_shape) + self.x_b.size

    # -------------------------------------------------------------- readings

    def __call__(self, images: np.ndarray) -> tf.Tensor | list[tf.Tensor]:
        """The model's output (a list if it has several), before any final softmax."""
        found = self._values(self.check_images(images), 1.0, self.graph.outputs)
        outputs = [found[o] for o in self.graph.outputs]
        return outputs[0] if len(outputs) == 1 else outputs

    def value(self, images: np.ndarray, k: float = 1.0) -> dict[str, tf.Tensor]:
        """Value reading: c of every unit at k [x; x_b], by layer name; each (N, *layer.shape).

        c is the unit's value before its own bias is added, computed by TensorFlow's own layers.
        """
        wanted = [layer.number for layer in self.layers]
        found = self._values(self.check_images(images), check_k(k), wanted)
        return {layer.name: found[layer.number] for layer in self.layers}

    def tangent(
        self, images: np.ndarray, dx: np.ndarray, dx_b: np.ndarray, k: float = K
    ) -> dict[str, tf.Tensor]:
        """Tangent reading: J(k[x; x_b]) [dx; dx_b] at every layer, by name.

        One image takes any number n of directions; a batch of P images takes one direction each.

        Args:
            dx: (n, *input_shape).
            dx_b: (n, d_b).
        """
        frozen = self.freeze(images, k)
        dx, dx_b = tf.convert_to_tensor(dx, self.dtype), tf.convert_to_tensor(dx_b, self.dtype)
        rows, images_in = dx.shape[0], frozen.images.shape[0]
        _expect_shape("dx", dx, (rows, *self.input_shape))
        _expect_shape("dx_b", dx_b, (rows, self.x_b.size))
        if images_in not in (1, rows):
            raise InputError(f"expected one direction for each of {images_in} images, got {rows}.")
        pushed = dict(frozen.push(frozen.along(dx, dx_b), [layer.number for layer in self.layers]))
        return {layer.name: pushed[layer.number] for layer in self.layers}

    def adjoint(
        self, images: np.ndarray, layer: str, cotangent: np.ndarray, k: float = K
    ) -> tuple[tf.Tensor, tf.Tensor]:
        """Adjoint reading: J* g for cotangents g (n, *layer.shape) on the layer's units.

        Returns:
            (n, *input_shape) and (n, d_b).
        """
        frozen, found = self.freeze(images, k), self.layer(layer)
        g = tf.convert_to_tensor(cotangent, self.dtype)
        _expect_shape("cotangent", g, (g.shape[0], *found.shape))
        if frozen.images.shape[0] not in (1, g.shape[0]):
            raise InputError(
                f"expected one cotangent for each of {frozen.images.shape[0]} images, got "
                f"{g.shape[0]}."
            )
        return frozen.pull(found.number, g)

    def freeze(self, images: np.ndarray, k: float = K) -> Frozen:
        """The network frozen at the pattern of k [x; x_b]: one linear operator J per image."""
        images = self.check_images(images)
        patterns: list[Pattern] = [None] * len(self.nodes)
        for number, inputs, _ in self._evaluate(images, check_k(k), range(len(self.nodes))):
            primitive = self.nodes[number].primitive
            patterns[number] = None if primitive is None else primitive.freeze(*inputs)
        return Frozen(self, images, patterns, self.nodes)

    def hypersurface(
        self,
        image: np.ndarray,
        layer: str,
        mode: str | None = None,
        k: float = K,
        max_bytes: int = 2**30,
    ) -> Hypersurface:
        """The effective hypersurfaces H = J* w of a layer's units: lazy, computed when indexed.

        Args:
            image: x, shape `input_shape`, or a batch (N, *input_shape).
            layer: a name of `net.layers`.
            mode: "RM0" (dense layers) or "RM1" ... "RM4"; by default RM0 or RM2.
            k: J is taken at k [x; x_b]; any k > 0.
            max_bytes: the largest result that one index may ask for.
        """
        found = self.layer(layer)
        mode = mode_of(found, mode)
        single = np.ndim(image) == len(self.input_shape)
        return Hypersurface(self.freeze(image, k), found, mode, single, max_bytes)

    # -------------------------------------------------------------- looking things up

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
        near = difflib.get_close_matches(str(name), [x.name for x in self.layers], 1, 0)
        hint = f"Did you mean '{near[0]}'? " if near else ""
        raise InputError(
            f"unknown layer {name!r}. {hint}Layers: {', '.join(x.name for x in self.layers)}."
        )

    def dimensions(self) -> Table:
        """The shape of H for every layer in every mode that fits: the paper's dimension tables."""
        rows = [
            [
                layer.name,
                *(
                    str((self.d_in, *MODES[m].shape(layer))) if m in layer.modes else ""
                    for m in MODES
                ),
            ]
            for layer in self.layers
        ]
        return Table(["layer", *MODES], rows)

    def __repr__(self) -> str:
        entries = " x ".join(map(str, self.input_shape))
        return (
            f"<EquivalentNet '{self.name}': x {entries}, x_b {self.x_b.size} from "
            f"{len(self.sources)} sources, {len(self.layers)} layers with a kernel, "
            f"{self.dtype.name}>"
        )

    # -------------------------------------------------------------- for the readings

    def check_images(self, images: np.ndarray) -> tf.Tensor:
        """The images as a batch (N, *input_shape) in the net's dtype, or an error."""
        found = np.asarray(images)
        expected = " x ".join(map(str, self.input_shape))
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
        return tf.constant(found, self.dtype)

    def plan(self, wanted: frozenset[int]) -> Order:
        """The nodes that `wanted` depend on, each with those that nothing reads after it."""
        if wanted not in self._plans:
            self._plans[wanted] = self.graph.plan(wanted)
        return self._plans[wanted]

    @functools.cached_property
    def absolute_nodes(self) -> list[Node]:
        """The nodes with |weights|, for the rounding scale A."""
        return [
            n if n.primitive is None else replace(n, primitive=n.primitive.absolute())
            for n in self.nodes
        ]

    def rows(self, wanted: frozenset[int], max_bytes: int = WORKSPACE) -> int:
        """How many directions one push takes within the workspace."""
        width = live_entries(self.nodes, self.plan(wanted)) * itemsize(self.dtype)
        return max(1, min(ROWS, max_bytes // (2 * width)))

    def roundings(self, layer: Layer) -> int:
        """How many rounded operations a product meets on the longest path to one of its units."""
        longest: list[int] = []
        for node in self.nodes[: layer.number + 1]:
            before = max((longest[i] for i in node.inputs), default=0)
            longest.append(before + (0 if node.primitive is None else node.primitive.roundings))
        return longest[layer.number]

    def roundings_back(self, layer: Layer) -> int:
        """The same when the unit is pulled back to [x; x_b].

        A pull adds the cotangents of all nodes that read a node, one after the other.
        """
        longest, readers = {layer.number: 0}, collections.Counter()
        for number in range(layer.number, -1, -1):
            node = self.nodes[number]
            if number not in longest or node.primitive is None:
                continue
            adding = max(0, readers[number] - 1)
            here = longest[number] + adding + node.primitive.roundings_back(node.shape)
            for i in node.inputs:
                longest[i] = max(longest.get(i, 0), here)
                readers[i] += 1
        sources = [i for i in longest if self.nodes[i].primitive is None]
        return max(longest[i] + max(0, readers[i] - 1) for i in sources)

    @functools.cached_property
    def digest(self) -> str:
        """SHA-256 of every node, its wiring and its numbers: what a result was computed from."""
        sha = hashlib.sha256()
        for node in self.graph.nodes:
            held = {} if node.primitive is None else node.primitive.held
            if node.source is not None and node.source.values is not None:
                held = {"values": node.source.values}
            kind = type(node.primitive).__name__
            sha.update(repr((node.name, node.shape, node.inputs, kind)).encode())
            for name, value in held.items():
                sha.update(_bytes_of(name, value))
        return sha.hexdigest()

    def _values(self, images: tf.Tensor, k: float, wanted: Iterable[int]) -> dict[int, tf.Tensor]:
        """The values of these nodes at k [x; x_b]."""
        wanted = frozenset(wanted)
        return {n: value for n, _, value in self._evaluate(images, k, wanted) if n in wanted}

    def _evaluate(
        self, images: tf.Tensor, k: float, wanted: Iterable[int]
    ) -> Iterator[tuple[int, list[tf.Tensor], tf.Tensor]]:
        """The value reading at k [x; x_b] of all that these nodes depend on, see `evaluate`."""
        starts = {IMAGE: k * images}
        for s in self.sources:
            part = (k * self.x_b[s.slice]).reshape(s.shape)
            starts[s.node] = tf.constant(np.stack([part] * images.shape[0]), self.dtype)
        return evaluate(self.nodes, starts, self.plan(frozenset(wanted)))


def _bytes_of(name: str, value: object) -> bytes:
    """A primitive's field for the digest; a function is told by its slopes and breakpoints."""
    if isinstance(value, (np.ndarray, np.generic)):
        array = np.ascontiguousarray(value)
        return f"{name}: {array.dtype} {array.shape} ".encode() + array.tobytes()
    return f"{name}: {'' if callable(value) else value!r}".encode()


def check_k(k: float) -> float:
    """k as a float, or an error: the identity holds for k > 0."""
    if not isinstance(k, (int, float, np.floating, np.integer)) or not 0 < k < math.inf:
        raise InputError(f"expected a finite k > 0 in z = k [x; x_b], got {k!r}.")
    return float(k)


def _expect_shape(name: str, found: tf.Tensor, expected: Shape) -> None:
    if tuple(found.shape) != tuple(expected):
        raise InputError(f"expected {name} of shape {tuple(expected)}, got {tuple(found.shape)}.")


def _cast(node: Node, dtype: tf.DType) -> Node:
    if node.primitive is None:
        return node
    return replace(node, primitive=node.primitive.cast(dtype))


def _sources(graph: Graph) -> Table:
    rows, start = [], 0
    for number, node in enumerate(graph.nodes):
        if node.source is not None and node.source.values is not None:
            stop = start + node.source.values.size
            rows.append(BiasSource(node.name, node.source.origin, start, stop, node.shape, number))
            start = stop
    return Table(["name", "slice", "shape", "origin"], rows, _source_cells)


def _source_cells(s: BiasSource) -> list[str]:
    return [s.name, f"{s.start}:{s.stop}", str(s.shape), s.origin]


def _layers(graph: Graph, sources: Sequence[BiasSource]) -> Table:
    slices = {s.node: s.slice for s in sources}
    biases = {}
    for number, node in enumerate(graph.nodes):
        if graph.bias_of(number) is not None:
            biases[node.inputs[0]] = slices[node.inputs[1]]
    rows = [
        _layer(graph, number, biases.get(number))
        for number, node in enumerate(graph.nodes)
        if isinstance(node.primitive, Kernel)
    ]
    return Table(["name", "kind", "kernel", "stride", "output", "bias slice"], rows, _layer_cells)


def _layer(graph: Graph, number: int, bias: slice | None) -> Layer:
    node = graph.nodes[number]
    reads = node.inputs[0]
    return Layer(
        node.name,
        KINDS[type(node.primitive)],
        tuple(node.primitive.kernel.shape),
        getattr(node.primitive, "strides", ()),
        node.shape,
        graph.nodes[reads].shape[-1],
        bias,
        number,
        reads,
    )


KINDS = {
    Conv: "Conv",
    DepthwiseConv: "DepthwiseConv",
    ConvTranspose: "ConvTranspose",
    Dense: "Dense",
}


def _layer_cells(layer: Layer) -> list[str]:
    bias = "" if layer.bias is None else f"{layer.bias.start}:{layer.bias.stop}"
    return [
        layer.name,
        layer.kind,
        "x".join(map(str, layer.kernel)),
        "x".join(map(str, layer.strides)),
        "x".join(map(str, layer.shape)),
        bias,
    ]
