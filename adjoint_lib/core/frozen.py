"""The frozen network: at a fixed activation pattern the whole network is one linear operator J.

In the paper, J is J_F(z([x; x_b])) of Eq. (3), and its adjoint J* that of Eq. (4) and (5).

`Frozen.push` reads J as a tangent (all layers at once), `Frozen.pull` reads it as an adjoint (from
one layer back to [x; x_b]). Everything else in the library, the five modes and the verification,
is written in terms of these two, and `blocks` streams all of J through `push`.

A tangent that is zero for all rows is never computed: it is ``None``, so a bias direction costs
nothing before its own layer. One that is zero outside a window is a `Patch`: see `windows`.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, TypeAlias

import numpy as np
import tensorflow as tf

from adjoint_lib._registry import method_from
from adjoint_lib.core import windows
from adjoint_lib.core._threads import interleave
from adjoint_lib.core.graph import IMAGE, Node, Shape
from adjoint_lib.core.network import Layer, Network, Nodes
from adjoint_lib.core.primitives import Pattern, Sum, is_float_array, map_pattern
from adjoint_lib.core.strategy import batch_rows, pulled_layers
from adjoint_lib.core.windows import Patch
from adjoint_lib.errors import InputError

SMALL = 16  # biases with fewer entries than this share a push with their neighbours

Tangent: TypeAlias = "tf.Tensor | Patch | None"  # (n, *shape); a window of it; or zero
Start: TypeAlias = tuple[np.ndarray, dict[int, Tangent]]  # entries of [x; x_b], their directions


def dense(tangent: Tangent) -> tf.Tensor:
    """A tangent on the whole node."""
    return tangent.dense() if isinstance(tangent, Patch) else tangent


def _as_rows(image: tf.Tensor, bias: tf.Tensor) -> tf.Tensor:
    """The parts of J* g as rows over [x; x_b], the image first."""
    return tf.concat([tf.reshape(image, (image.shape[0], -1)), bias], 1)


class Block(NamedTuple):
    """Some rows of J, that is directions of [x; x_b], at one node.

    Attributes:
        number: the node.
        rows: (n,) which entries of [x; x_b].
        values: (n, *shape of the node), or `Patch` where most of that is zero.
    """

    number: int
    rows: np.ndarray
    values: tf.Tensor | Patch

    def dense(self) -> tf.Tensor:
        """The rows on the whole node: (n, *shape)."""
        return dense(self.values)

    def accumulate(self, v: np.ndarray, into: np.ndarray) -> None:
        """Add <v | H>, as far as these rows go, to `into`, which has the node's shape."""
        patch = isinstance(self.values, Patch)
        where, values = (self.values.where, self.values.values) if patch else ((), self.values)
        into[where] += tf.tensordot(v[self.rows], values, 1).numpy()


class Frozen:
    """J of an equivalent network at k [x; x_b], for one image or a batch of them.

    Attributes:
        net: the network.
        images: (P, *input_shape), the images x.
        patterns: one pattern for each node (None where the node is linear anyway).
        single: whether it is of one image, not of a batch.
    """

    def __init__(self, net: Network, images: tf.Tensor, patterns: list[Pattern], nodes: Nodes):
        self.net = net
        self.images = images
        self.patterns = patterns
        self.nodes = nodes
        self.single = images.shape[0] == 1

    hypersurface = method_from("adjoint_lib.core.hypersurface", "of_frozen")

    def part(self, first: int, stop: int) -> Frozen:
        """The operators of images first .. stop - 1 of the batch."""
        if self.images.shape[0] == 1:
            return self
        patterns = map_pattern(lambda p: p[first:stop], self.patterns)
        return Frozen(self.net, self.images[first:stop], patterns, self.nodes)

    def of(self, images: Sequence[int]) -> Frozen:
        """The operators of these images of the batch."""
        if list(images) == list(range(self.images.shape[0])):
            return self
        patterns = map_pattern(lambda p: tf.gather(p, images), self.patterns)
        return Frozen(self.net, tf.gather(self.images, images), patterns, self.nodes)

    # -------------------------------------------------------------- the two linear readings

    def push(
        self, starts: dict[int, Tangent], wanted: Iterable[int]
    ) -> Iterator[tuple[int, Tangent]]:
        """Tangent reading: J dv at the `wanted` nodes, in their order in the graph.

        Args:
            starts: tangents (n, *shape) of some sources; the others are zero.
            wanted: node numbers.

        Yields:
            (node number, tangent). It is None where it is zero, and may be a `Patch` if one of the
            starts is.
        """
        wanted = set(wanted)
        plan = self.net.plan(frozenset(wanted))
        tangents: dict[int, Tangent] = {}
        for number, finished in plan:
            node = self.nodes[number]
            if node.primitive is None:
                tangents[number] = starts.get(number)
            else:
                tangents[number] = self._push_node(number, node, [tangents[i] for i in node.inputs])
            del node  # of |weights| it may be the only reference
            if number in wanted:
                yield number, tangents[number]
            for old in finished:
                del tangents[old]

    def _push_node(self, number: int, node: Node, inputs: list[Tangent]) -> Tangent:
        """One node's tangent from those of its inputs: on windows if all come so, else dense."""
        known = [t for t in inputs if t is not None]
        if not known:
            return None
        if all(isinstance(t, Patch) for t in known):
            found = windows.push(node.operation, self.patterns[number], inputs)
            if found is not None:
                return found.settled() if isinstance(found, Patch) else found
        whole = [dense(t) for t in inputs]
        if not isinstance(node.operation, Sum) and len(known) < len(inputs):
            rows = tf.shape(dense(known[0]))[0]
            pairs = zip(whole, (self.net.nodes[i].shape for i in node.inputs), strict=True)
            zeros = functools.partial(tf.zeros, dtype=self.net.dtype)
            whole = [zeros((rows, *shape)) if t is None else t for t, shape in pairs]
        return node.operation.push(self.patterns[number], *whole)

    def tangents(
        self, dx: tf.Tensor, dx_b: tf.Tensor, wanted: Iterable[int]
    ) -> dict[int, tf.Tensor]:
        """J [dx; dx_b] at the `wanted` nodes, by number: (n, *shape); see `along`."""
        return {n: dense(t) for n, t in self.push(self.along(dx, dx_b), wanted)}

    def pull(self, number: int, cotangent: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """Adjoint reading: J* g from one node back to the input.

        Args:
            number: the node whose value g weighs.
            cotangent: g, shape (n, *shape); n is a multiple of the number of images, and the rows
                of each image follow one another.

        Returns:
            (n, *input_shape) and (n, d_b): the parts of J* g in the image and in x_b.
        """
        cotangents: dict[int, tf.Tensor] = {number: cotangent}
        found: dict[int, tf.Tensor] = {}
        for at in range(number, -1, -1):
            if at not in cotangents:
                continue
            g, node = cotangents.pop(at), self.nodes[at]
            if node.primitive is None:
                found[at] = g
                continue
            pattern = self._repeated(self.patterns[at], g.shape[0])
            for i, part in zip(node.inputs, node.primitive.pull(pattern, g), strict=True):
                cotangents[i] = cotangents[i] + part if i in cotangents else part
        return self._gather(found, cotangent.shape[0])

    def pull_rows(self, number: int, cotangent: tf.Tensor) -> tf.Tensor:
        """J* g as rows over [x; x_b], the image first: (n, d_in) for cotangents g (n, *shape)."""
        return _as_rows(*self.pull(number, cotangent))

    def rows(self, found: dict[int, tf.Tensor], count: int) -> tf.Tensor:
        """The cotangents of the sources, by node, as rows over [x; x_b]: (count, d_in)."""
        return _as_rows(*self._gather(found, count))

    def _repeated(self, pattern: Pattern, rows: int) -> Pattern:
        """The patterns of several images, each for its share of the rows; one serves them all."""
        images = self.images.shape[0]
        if images in (1, rows):
            return pattern
        return map_pattern(lambda p: tf.repeat(p, rows // images, axis=0), pattern)

    def _gather(self, found: dict[int, tf.Tensor], rows: int) -> tuple[tf.Tensor, tf.Tensor]:
        """The cotangents of the sources as (image, x_b); a source not reached gets zeros."""

        def part(number: int, *shape: int) -> tf.Tensor:
            if number not in found:
                return tf.zeros((rows, *shape), self.net.dtype)
            return tf.reshape(found[number], (rows, *shape))

        biases = [part(s.node, s.size) for s in self.net.sources] or [part(-1, 0)]
        return part(IMAGE, *self.net.input_shape), tf.concat(biases, 1)

    # -------------------------------------------------------------- directions

    def along(self, dx: tf.Tensor, dx_b: tf.Tensor) -> dict[int, tf.Tensor]:
        """Tangents of the sources for directions dx (n, *input_shape) and dx_b (n, d_b)."""
        starts = {IMAGE: dx}
        for s in self.net.sources:
            starts[s.node] = tf.reshape(dx_b[:, s.start : s.stop], (-1, *s.shape))
        return starts

    def basis(self, start: int, stop: int) -> dict[int, tf.Tensor]:
        """Unit directions start..stop-1 of [x; x_b], as tangents of the sources they touch."""
        size, found = math.prod(self.net.input_shape), {}
        parts = [(IMAGE, 0, size, self.net.input_shape)]
        parts += [(s.node, size + s.start, s.size, s.shape) for s in self.net.sources]
        for node, first, length, shape in parts:
            if first < stop and start < first + length:
                rows = tf.one_hot(tf.range(start, stop) - first, length, dtype=self.net.dtype)
                found[node] = tf.reshape(rows, (-1, *shape))
        return found

    def blocks(self, wanted: Iterable[int], rows: int) -> Iterator[Block]:
        """J at the `wanted` nodes, some rows after the other: two pushes run at a time."""
        self._check_single()
        wanted = frozenset(wanted)

        def pushed(entries: np.ndarray, starts: dict[int, Tangent]) -> Iterator[Block]:
            for number, tangent in self.push(starts, wanted):
                if tangent is not None:
                    yield Block(number, entries, tangent)

        starts = itertools.chain(self._pixels(rows), self._biases(max(wanted), rows))
        return interleave(pushed(*some) for some in starts)

    def _pixels(self, rows: int) -> Iterator[Start]:
        """The unit directions of the pixels: of maps by tiles, of anything else one by one."""
        shape = self.net.input_shape
        if len(shape) != 3 or shape[-1] > rows:
            yield from self._units(0, math.prod(shape), rows)
            return
        index = np.arange(math.prod(shape)).reshape(shape)
        for tile in windows.tiles(shape, rows):
            seeds = windows.seeds(tile, shape, self.net.dtype)
            yield index[tile].reshape(-1), {IMAGE: seeds}

    def _biases(self, until: int, rows: int) -> Iterator[Start]:
        """The unit directions of x_b that can reach a node: by source, small ones together."""
        pixels = math.prod(self.net.input_shape)
        reached = [s for s in self.net.sources if s.node < until]
        start = 0
        for s, following in itertools.zip_longest(reached, reached[1:]):
            if following is None or s.stop - start >= SMALL or following.size >= SMALL:
                yield from self._units(pixels + start, pixels + s.stop, rows)
                start = s.stop

    def _units(self, first: int, last: int, rows: int) -> Iterator[Start]:
        """Unit directions first..last-1 of [x; x_b], `rows` at a time."""
        for start in range(first, last, rows):
            stop = min(start + rows, last)
            yield np.arange(start, stop), self.basis(start, stop)

    def hypersurfaces(
        self, layers: Iterable[Layer] | None = None, rows: int | None = None
    ) -> Iterator[tuple[Layer, Block]]:
        """Stream the hypersurfaces H of all units of these layers (RM2; RM0 for dense layers).

        A layer of few units, such as the class scores, is pulled where that is cheaper, and a block
        of it is not too large; see `strategy`.

        Yields:
            (layer, block): ``H[block.rows] = block.dense()``, where H has shape
            (d_in, *layer.shape). Rows that are never yielded are zero.
        """
        self._check_single()
        by_number = {layer.number: layer for layer in (layers or self.net.layers)}
        rows = rows or batch_rows(self.net, by_number)
        rest = set(by_number)
        for layer in pulled_layers(self.net, by_number.values()):
            if layer.shape[0] <= rows:
                H = tf.transpose(self.pull_units(layer.number)[0])
                yield layer, Block(layer.number, np.arange(H.shape[0]), H)
                rest.remove(layer.number)
        for block in self.blocks(rest, rows) if rest else ():
            yield by_number[block.number], block

    def pull_units(self, number: int, units: slice = slice(None)) -> tf.Tensor:
        """H of some entries of a node for each image: (P, units, d_in)."""
        shape, images = self.nodes[number].shape, self.images.shape[0]
        chosen = tf.reshape(tf.eye(math.prod(shape), dtype=self.net.dtype)[units], (-1, *shape))
        H = self.pull_rows(number, tf.tile(chosen, (images, *(1 for _ in shape))))
        return tf.reshape(H, (images, chosen.shape[0], -1))

    def at(self, layer: Layer | str) -> Jacobian:
        """J of one image at the units of a layer, given by its name too, as a linear operator."""
        self._check_single()
        return Jacobian(self, layer if isinstance(layer, Layer) else self.net.layer(layer))

    def _check_single(self) -> None:
        """Refuse several images, each of which has a J of its own."""
        if (count := self.images.shape[0]) != 1:
            raise InputError(
                f"expected one frozen image, got {count}. Take them one by one: part(0, 1), ..."
            )

    @property
    def v(self) -> tuple[tf.Tensor, tf.Tensor]:
        """[x; x_b] itself: images (P, *input_shape) and x_b (P, d_b)."""
        x_b = tf.constant(self.net.x_b, self.net.dtype)
        return self.images, tf.tile(x_b[None], (self.images.shape[0], 1))


@dataclass(frozen=True)
class Jacobian:
    """J at the units of a layer: ``J @ dv`` pushes, ``J.T @ g`` pulls; columns are vectors."""

    frozen: Frozen
    layer: Layer
    adjoint: bool = False

    @property
    def shape(self) -> tuple[int, int]:
        """(units, d_in), or (d_in, units) of the adjoint."""
        shape = math.prod(self.layer.shape), self.frozen.net.d_in
        return shape[::-1] if self.adjoint else shape

    @property
    def T(self) -> Jacobian:
        """The adjoint, J*."""
        return replace(self, adjoint=not self.adjoint)

    def __matmul__(self, columns: np.ndarray) -> np.ndarray:
        """The product with a vector (n,) or with columns (n, m)."""
        if np.shape(columns)[:1] != self.shape[1:] or np.ndim(columns) > 2:
            raise InputError(f"expected ({self.shape[1]}, …) vectors, got {np.shape(columns)}.")
        net, number = self.frozen.net, self.layer.number
        rows = np.reshape(columns, (self.shape[1], -1)).T
        rows = vectors("vectors", rows, (self.shape[1],), net.dtype)
        if self.adjoint:
            found = self.frozen.pull_rows(number, tf.reshape(rows, (-1, *self.layer.shape)))
        else:
            dx, dx_b = tf.split(rows, [net.d_in - net.x_b.size, net.x_b.size], 1)
            dx = tf.reshape(dx, (-1, *net.input_shape))
            found = self.frozen.tangents(dx, dx_b, [number])[number]
        check_range("the product", [found])
        return found.numpy().reshape(len(rows), -1).T.reshape(-1, *np.shape(columns)[1:])


def vectors(name: str, given: np.ndarray, shape: Shape, dtype: tf.DType) -> tf.Tensor:
    """Directions or cotangents (n, *shape) as a tensor, or an error."""
    try:
        real = np.asarray(given)
    except ValueError as error:
        raise InputError(f"expected {name} of shape {(1, *shape)}, got: {error}.") from error
    if real.dtype.kind not in "biuf" and not is_float_array(real):
        raise InputError(f"expected {name} of real numbers, got {real.dtype}.")
    with np.errstate(over="ignore"):
        found = real.astype(dtype.as_numpy_dtype)
    expected = (*(found.shape[:1] or (1,)), *shape)
    if found.shape != expected:
        raise InputError(f"expected {name} of shape {expected}, got {found.shape}.")
    if not np.isfinite(found).all():
        raise InputError(f"expected finite {name} in {dtype.name}, got NaN or infinite entries.")
    return tf.constant(found)


def is_finite(tensors: Iterable[tf.Tensor]) -> bool:
    """Whether no entry is NaN or infinite."""
    return all(bool(tf.reduce_all(tf.math.is_finite(x))) for x in tensors)


def check_range(what: str, found: Iterable[tf.Tensor]) -> None:
    """Refuse products that overflow."""
    found = list(found)
    if not is_finite(found):
        raise InputError(
            f"{what} overflows {found[0].dtype.name}. Expected smaller vectors; scale them, since "
            "the product is linear, or compute in float64."
        )
