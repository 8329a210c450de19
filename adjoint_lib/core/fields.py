"""Receptive fields: a unit's cotangent is zero outside of them, so only there is it pulled.

The twin of `windows` for the other direction. The field of a unit at position s of its maps begins
at ``stride * s + offset`` of a node's maps and has the same extent for every s: so units at
different positions are pulled together, each within a window of its own. A field may reach beyond
the map's border; what stands there counts for nothing. Patterns are read where the windows lie.

How a field passes a primitive is known here, as geometry in `before` and as numbers in `pull`.
Whatever does not know fields, and a field that is almost the whole map, is pulled on whole maps.

Nothing is approximated: an entry that is left out is zero.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import singledispatch
from typing import TypeAlias

import numpy as np
import tensorflow as tf

from adjoint_lib.core import primitives as p
from adjoint_lib.core.frozen import Frozen
from adjoint_lib.core.graph import Node
from adjoint_lib.core.network import Network
from adjoint_lib.core.windows import pooling_weights

DENSE = 0.8  # a field this large, compared with its map, is not worth its bookkeeping


@dataclass(frozen=True)
class Field:
    """Where the cotangents of units lie in some maps; each pair is (of rows, of columns).

    Attributes:
        stride: how far a field moves when its unit moves by one.
        offset: where the field of the unit at (0, 0) begins.
        extent: the size of a field.
        size: the size of the maps.
        clean: whether entries beyond the maps' borders are zero.
    """

    stride: tuple[int, int]
    offset: tuple[int, int]
    extent: tuple[int, int]
    size: tuple[int, int]
    clean: bool = True

    @classmethod
    def of_unit(cls, node: Node) -> Field:
        """Of a unit in its own maps."""
        height, width, _ = node.shape
        return cls((1, 1), (0, 0), (1, 1), (height, width))

    def spread(
        self,
        taps: Sequence[int],
        strides: Sequence[int],
        padding: str,
        size: Sequence[int],
    ) -> Field:
        """The field in the input of a sliding operation, from that in its output.

        Args:
            taps: how many neighbouring inputs an output reads, of rows and of columns.
            strides: of the operation.
            padding: "SAME" or "VALID".
            size: of the input.
        """
        axes = []
        for axis, (t, s) in enumerate(zip(taps, strides, strict=True)):
            before, _ = p.padding_of(size[axis], t, s, padding)
            first, length = self.offset[axis] * s - before, (self.extent[axis] - 1) * s + t
            axes.append((self.stride[axis] * s, first, length))
        stride, offset, extent = zip(*axes, strict=True)
        clean = self.clean and set(taps) == {1}
        return Field(stride, offset, extent, (size[0], size[1]), clean)

    def moved(self, by: tuple[int, int], size: Sequence[int], clean: bool) -> Field:
        """The same entries in maps that begin elsewhere."""
        offset = self.offset[0] + by[0], self.offset[1] + by[1]
        return replace(self, offset=offset, size=(size[0], size[1]), clean=clean)

    def union(self, other: Field | None) -> Field | None:
        """The smallest field that holds both; None if there is none that moves like both."""
        if other is None or other.stride != self.stride:
            return None
        pairs = [
            (min(a, b), max(a + m, b + n))
            for a, m, b, n in zip(self.offset, self.extent, other.offset, other.extent, strict=True)
        ]
        (top, bottom), (left, right) = pairs
        clean = self.clean and other.clean
        return Field(self.stride, (top, left), (bottom - top, right - left), self.size, clean)

    @property
    def settled(self) -> Field | None:
        """Itself, or None if it is almost the whole map."""
        return None if math.prod(self.extent) >= DENSE * math.prod(self.size) else self


class Places:
    """The windows of some units, a row each: which entries of the maps they hold.

    Attributes:
        units: (n, 2), the positions of the units in their own maps.
    """

    def __init__(self, units: np.ndarray):
        self.units = units
        self._found: dict[Field, tf.Tensor] = {}

    def inside(self, field: Field) -> tf.Tensor:
        """Which entries of the windows lie on the map: (n, h, w)."""
        return self.flat(field) < math.prod(field.size)

    def flat(self, field: Field) -> tf.Tensor:
        """Positions in the maps, row by row, of the windows' entries: (n, h, w).

        Beyond the border it is the number of positions.
        """
        field = replace(field, clean=True)
        if field not in self._found:
            (y, inside_y), (x, inside_x) = (self._along(field, axis) for axis in (0, 1))
            flat = y[:, :, None] * field.size[1] + x[:, None, :]
            inside = inside_y[:, :, None] & inside_x[:, None, :]
            flat = np.where(inside, flat, math.prod(field.size))
            self._found[field] = tf.constant(flat, tf.int32)
        return self._found[field]

    def cut(self, maps: tf.Tensor, field: Field, beyond: float = 0) -> tf.Tensor:
        """The windows of maps (1, H, W, c), `beyond` where they lie beyond the border."""
        channels = maps.shape[-1]
        flat = tf.reshape(maps, (-1, channels))
        last = tf.fill((1, channels), tf.cast(beyond, maps.dtype))
        return tf.gather(tf.concat([flat, last], 0), self.flat(field))

    def whole(self, values: tf.Tensor, field: Field) -> tf.Tensor:
        """Windows (n, h, w, c) on whole maps: (n, H, W, c)."""
        rows, h, w, channels = values.shape
        (y, x), beyond = (self._back(field, axis) for axis in (0, 1)), h * w
        inside = ((y >= 0) & (y < h))[:, :, None] & ((x >= 0) & (x < w))[:, None, :]
        places = np.where(inside, y[:, :, None] * w + x[:, None, :], beyond).astype(np.int32)
        flat = tf.pad(tf.reshape(values, (rows, h * w, channels)), ((0, 0), (0, 1), (0, 0)))
        return tf.gather(flat, places, axis=1, batch_dims=1)

    def origins(self, field: Field) -> tuple[np.ndarray, np.ndarray]:
        """Where the windows begin, rows and columns, to be broadcast: (n, 1, 1, 1) each."""
        y, x = (self._origins(field, axis)[:, None, None, None] for axis in (0, 1))
        return y, x

    def _origins(self, field: Field, axis: int) -> np.ndarray:
        return self.units[:, axis] * field.stride[axis] + field.offset[axis]

    def _along(self, field: Field, axis: int) -> tuple[np.ndarray, np.ndarray]:
        """The windows' entries along an axis, and whether they lie on the map: (n, extent)."""
        at = self._origins(field, axis)[:, None] + np.arange(field.extent[axis])
        return at, (at >= 0) & (at < field.size[axis])

    def _back(self, field: Field, axis: int) -> np.ndarray:
        """Where the map's entries along an axis stand in the windows: (n, size)."""
        return np.arange(field.size[axis]) - self._origins(field, axis)[:, None]


@dataclass(frozen=True)
class Cotangent:
    """Cotangents of units in windows of their own.

    Attributes:
        values: (n, h, w, c).
        field: where the windows lie.
        places: of the units.
    """

    values: tf.Tensor
    field: Field
    places: Places

    def cut(self, maps: tf.Tensor) -> tf.Tensor:
        """The windows of other maps, zero beyond their borders."""
        return self.places.cut(maps, self.field)

    def cleaned(self) -> tf.Tensor:
        """The values, zero beyond the maps' borders."""
        if self.field.clean:
            return self.values
        inside = tf.cast(self.places.inside(self.field), self.values.dtype)
        return self.values * inside[..., None]

    def whole(self) -> tf.Tensor:
        """On whole maps: (n, H, W, c)."""
        return self.places.whole(self.values, self.field)

    def within(self, field: Field) -> tf.Tensor:
        """The values in a larger field that moves alike."""
        margins = [
            (a - b, b + n - a - m)
            for a, m, b, n in zip(
                self.field.offset, self.field.extent, field.offset, field.extent, strict=True
            )
        ]
        if not any(map(any, margins)):
            return self.values
        return tf.pad(self.values, ((0, 0), *margins, (0, 0)))


# ------------------------------------------------------------------ a whole pull

Fields: TypeAlias = dict[int, Field | None]  # by node: None stands for whole maps


def fields_of(net: Network, number: int) -> Fields:
    """The field of a single unit of a node in every node that it depends on.

    Empty if a unit has no position: then there is nothing to gain.
    """
    if len(net.nodes[number].shape) != 3:
        return {}
    parts: dict[int, list[Field | None]] = defaultdict(list)
    parts[number] = [Field.of_unit(net.nodes[number])]
    found: Fields = {}
    for at in range(number, -1, -1):
        if at not in parts:
            continue
        node = net.nodes[at]
        field = found[at] = _united(parts[at])
        if node.primitive is not None:
            known = None if field is None else before(node.primitive, field)
            for i, part in zip(node.inputs, known or [None] * len(node.inputs), strict=True):
                parts[i].append(part)
    return found


def _united(parts: Sequence[Field | None]) -> Field | None:
    first, *rest = parts
    for other in rest:
        first = None if first is None else first.union(other)
    return None if first is None else first.settled


def entries(net: Network, fields: Fields) -> int:
    """How many entries all nodes have within these fields."""
    return sum(entries_of(net.nodes[number], field) for number, field in fields.items())


def live_entries(net: Network, fields: Fields) -> int:
    """The largest number of entries a pull within these fields holds at once for each unit."""
    sizes = {number: entries_of(net.nodes[number], field) for number, field in fields.items()}
    reached, held, most = {max(fields)}, sizes[max(fields)], 1
    for number, size in sizes.items():
        new = set(net.nodes[number].inputs) - reached
        reached |= new
        held += sum(sizes[i] for i in new)
        most = max(most, held)
        held -= size
    return most


def entries_of(node: Node, field: Field | None) -> int:
    """How many entries a node has within a field."""
    if field is None:
        return math.prod(node.shape)
    return math.prod(field.extent) * math.prod(node.shape[2:])


def pull_rows(frozen: Frozen, number: int, fields: Fields, units: np.ndarray) -> tf.Tensor:
    """H of single units of one frozen image, pulled within their fields: (n, d_in).

    Args:
        number: the units' node.
        fields: `fields_of` it.
        units: (n, 3), their positions and channels.
    """
    places, net = Places(units[:, :2]), frozen.net
    one = tf.one_hot(units[:, 2], net.nodes[number].shape[2], dtype=net.dtype)[:, None, None]
    unit = Field.of_unit(net.nodes[number])
    parts: dict[int, list[tf.Tensor | Cotangent]] = defaultdict(list)
    parts[number] = [Cotangent(one, unit, places)]
    found: dict[int, tf.Tensor] = {}
    for at, field in fields.items():
        node, pattern = frozen.nodes[at], frozen.patterns[at]
        g = _summed(parts.pop(at), field, places)
        if node.primitive is None:
            found[at] = _whole(g)
            continue
        known = before(node.primitive, g.field) if isinstance(g, Cotangent) else None
        pulled: Sequence[tf.Tensor]
        if known is None:
            known, pulled = [None] * len(node.inputs), node.primitive.pull(pattern, _whole(g))
        else:
            pulled = pull(node.primitive, pattern, g)
        for i, part, of in zip(node.inputs, pulled, known, strict=True):
            parts[i].append(part if of is None else Cotangent(part, of, places))
    return frozen.rows(found, len(units))


def _whole(g: tf.Tensor | Cotangent) -> tf.Tensor:
    return g.whole() if isinstance(g, Cotangent) else g


def _summed(
    parts: list[tf.Tensor | Cotangent], field: Field | None, places: Places
) -> tf.Tensor | Cotangent:
    """The sum of a node's cotangents: within the field, or on whole maps if that is None."""
    if field is None:
        total, *rest = map(_whole, parts)
    else:
        total, *rest = (part.within(field) for part in parts if isinstance(part, Cotangent))
    for part in rest:
        total = total + part
    return total if field is None else Cotangent(total, field, places)


# ------------------------------------------------------------------ primitives on fields


@singledispatch
def before(primitive: p.Primitive, field: Field) -> Sequence[Field | None] | None:
    """The fields of a primitive's inputs from that of its output; see `pull`.

    An input may have whole maps, None. It is None in all if the primitive does not know fields.
    """
    return None


@singledispatch
def pull(primitive: p.Primitive, pattern: p.Pattern, g: Cotangent) -> Sequence[tf.Tensor]:
    """The adjoint of the frozen primitive within fields: the cotangents in those of `before`."""
    raise NotImplementedError(type(primitive).__name__)


def _taps(primitive: p.Conv | p.DepthwiseConv) -> list[int]:
    """How many neighbouring inputs an output reads, dilated taps counted with those between."""
    window = primitive.kernel.shape[:2]
    return [(r - 1) * d + 1 for r, d in zip(window, primitive.dilation, strict=True)]


def _slid_back(g: Cotangent, taps: Sequence[int], strides: Sequence[int]) -> list[int]:
    """The extent of the field in the input of a sliding operation."""
    return [(e - 1) * s + t for e, s, t in zip(g.field.extent, strides, taps, strict=True)]


@before.register(p.Conv)
@before.register(p.DepthwiseConv)
def _(primitive: p.Conv | p.DepthwiseConv, field: Field) -> Sequence[Field | None] | None:
    size, strides = primitive.input_shape, primitive.strides
    return [field.spread(_taps(primitive), strides, primitive.padding, size)]


@pull.register
def _(primitive: p.Conv, pattern: p.Pattern, g: Cotangent) -> Sequence[tf.Tensor]:
    taps = _taps(primitive)
    size = *_slid_back(g, taps, primitive.strides), primitive.input_shape[2]
    alone = replace(primitive, padding="VALID", input_shape=size)
    return alone.pull(None, g.values if set(taps) == {1} else g.cleaned())


@pull.register
def _(primitive: p.DepthwiseConv, pattern: p.Pattern, g: Cotangent) -> Sequence[tf.Tensor]:
    size = *_slid_back(g, _taps(primitive), primitive.strides), primitive.input_shape[2]
    alone = replace(primitive, padding="VALID", input_shape=size)
    return alone.pull(None, g.cleaned())


@before.register(p.AveragePool)
@before.register(p.MaxPool)
def _(primitive: p.AveragePool | p.MaxPool, field: Field) -> Sequence[Field | None] | None:
    if isinstance(primitive, p.AveragePool) and len(set(primitive.strides)) > 1:
        return None  # a depthwise convolution's strides must be equal
    return [_pooled(primitive, field)]


def _pooled(primitive: p.AveragePool | p.MaxPool, field: Field) -> Field:
    window, strides = primitive.window, primitive.strides
    return field.spread(window, strides, primitive.padding, primitive.input_shape)


@pull.register
def _(primitive: p.AveragePool, pattern: p.Pattern, g: Cotangent) -> Sequence[tf.Tensor]:
    window, strides, padding = primitive.window, primitive.strides, primitive.padding
    channels = primitive.input_shape[2]
    weights = pooling_weights(window, strides, padding, primitive.input_shape[:2])
    shares = g.values * g.cut(tf.constant(weights, g.values.dtype))
    size = *_slid_back(g, window, strides), channels
    ones = tf.ones((*window, channels, 1), shares.dtype)
    return p.DepthwiseConv(ones, strides, "VALID", (1, 1), size).pull(None, shares)


@pull.register
def _(primitive: p.MaxPool, pattern: p.Pattern, g: Cotangent) -> Sequence[tf.Tensor]:
    _, width, channels = primitive.input_shape
    field = _pooled(primitive, g.field)
    chosen = g.places.cut(pattern, g.field, -1)  # beyond the border nothing is chosen
    y, x = g.places.origins(field)
    h, w = field.extent
    at = (chosen // (width * channels) - y) * w + chosen // channels % width - x
    rows = len(y)
    first = h * w * np.arange(rows)[:, None, None, None]
    flat = tf.where(chosen < 0, chosen, (first + at) * channels + chosen % channels)
    summed = tf.math.unsorted_segment_sum(g.values, flat, rows * h * w * channels)
    return (tf.reshape(summed, (rows, h, w, channels)),)


@before.register
def _(primitive: p.Activation, field: Field) -> Sequence[Field | None] | None:
    return [replace(field, clean=True), *(None for _ in primitive.intercepts[0])]


@pull.register
def _(primitive: p.Activation, pattern: p.Pattern, g: Cotangent) -> Sequence[tf.Tensor]:
    slope, weights = pattern
    return primitive.pull((g.cut(slope), [g.cut(each) for each in weights]), g.values)


@before.register
def _(primitive: p.Dense, field: Field) -> Sequence[Field | None] | None:
    return [field]


@before.register
def _(primitive: p.Scale, field: Field) -> Sequence[Field | None] | None:
    return [field] if math.prod(primitive.factor.shape[:-1]) == 1 else None


@pull.register(p.Dense)
@pull.register(p.Scale)
def _(primitive: p.Primitive, pattern: p.Pattern, g: Cotangent) -> Sequence[tf.Tensor]:
    return primitive.pull(None, g.values)


@before.register
def _(primitive: p.Sum, field: Field) -> Sequence[Field | None] | None:
    rank = len(primitive.output_shape)
    padded = [(1,) * (rank - len(shape)) + tuple(shape) for shape in primitive.shapes]
    if all(shape == primitive.output_shape or shape[:2] == (1, 1) for shape in padded):
        return [field if shape == primitive.output_shape else None for shape in primitive.shapes]
    return None


@pull.register
def _(primitive: p.Sum, pattern: p.Pattern, g: Cotangent) -> Sequence[tf.Tensor]:
    found = []
    for coefficient, shape in zip(primitive.coefficients, primitive.shapes, strict=True):
        if shape == primitive.output_shape:
            found.append(p.times(coefficient, g.values))
        else:
            found.append(p.unbroadcast(p.times(coefficient, g.cleaned()), shape))
    return found


@before.register
def _(primitive: p.Concatenate, field: Field) -> Sequence[Field | None] | None:
    return [field] * len(primitive.sizes) if primitive.axis == 2 else None


@pull.register
def _(primitive: p.Concatenate, pattern: p.Pattern, g: Cotangent) -> Sequence[tf.Tensor]:
    return primitive.pull(None, g.values)


@before.register
def _(primitive: p.Pad, field: Field) -> Sequence[Field | None] | None:
    (top, bottom), (left, right), _ = primitive.margins
    size = field.size[0] - top - bottom, field.size[1] - left - right
    return [field.moved((-top, -left), size, clean=False)]


@before.register
def _(primitive: p.Crop, field: Field) -> Sequence[Field | None] | None:
    (top, bottom), (left, right), _ = primitive.margins
    size = field.size[0] + top + bottom, field.size[1] + left + right
    return [field.moved((top, left), size, clean=True)]


@pull.register
def _(primitive: p.Pad, pattern: p.Pattern, g: Cotangent) -> Sequence[tf.Tensor]:
    margins = (0, 0), (0, 0), primitive.margins[2]
    return replace(primitive, margins=margins).pull(None, g.values)


@pull.register
def _(primitive: p.Crop, pattern: p.Pattern, g: Cotangent) -> Sequence[tf.Tensor]:
    margins = (0, 0), (0, 0), primitive.margins[2]
    return replace(primitive, margins=margins).pull(None, g.cleaned())
