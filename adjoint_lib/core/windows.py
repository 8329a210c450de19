"""Windows: the tangent of a pixel is zero outside its receptive field, so only that is computed.

A push of all pixels goes tile by tile: the pixels of a tile share one window of each map, which
grows from layer to layer by receptive-field arithmetic. `Patch` holds the tangents within the
window; `push` knows how a window passes through convolutions, pooling, activations and sums.
Whatever it does not know, and a window that has grown to almost its whole map, is made dense.

Nothing is approximated: an entry that is left out is zero.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, singledispatch
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import tensorflow as tf

from adjoint_lib.core import primitives as p

TILE = 8  # pixels along a side: with three colours, 192 directions at a time
DENSE = 0.9  # a window this large, compared with its map, is not worth its bookkeeping


@dataclass(frozen=True)
class Patch:
    """Tangents that are zero outside one window of their maps.

    Attributes:
        values: (n, h, w, c), the window.
        origin: (y, x) of the window's first entry.
        size: (H, W) of the maps; the window lies inside.
    """

    values: tf.Tensor
    origin: tuple[int, int]
    size: tuple[int, int]

    @property
    def where(self) -> tuple[slice, slice]:
        """The window as slices of H and W."""
        y, x = self.origin
        return slice(y, y + self.values.shape[1]), slice(x, x + self.values.shape[2])

    def cut(self, maps: tf.Tensor) -> tf.Tensor:
        """The window of other maps (1, H, W, c)."""
        _, h, w, _ = self.values.shape
        return tf.slice(maps, np.array((0, *self.origin, 0)), np.array((1, h, w, maps.shape[-1])))

    def dense(self) -> tf.Tensor:
        """The tangents on whole maps: (n, H, W, c)."""
        return self.within((0, 0), self.size)

    def within(self, first: tuple[int, int], last: tuple[int, int]) -> tf.Tensor:
        """The tangents in the window that begins at `first` and ends before `last`."""
        bounds = zip(self.where, first, last, strict=True)
        margins = [(w.start - a, b - w.stop) for w, a, b in bounds]
        if not any(map(any, margins)):
            return self.values
        return tf.pad(self.values, ((0, 0), *margins, (0, 0)))

    def settled(self) -> Patch | tf.Tensor:
        """Itself, or dense if the window is almost the whole map."""
        share = math.prod(self.values.shape[1:3]) / math.prod(self.size)
        return self.dense() if share >= DENSE else self


def tiles(shape: tuple[int, int, int], rows: int) -> Iterator[tuple[slice, slice]]:
    """The tiles of an image of this shape, as slices of its rows and columns.

    Args:
        rows: how many directions a tile may hold, at least the number of channels.
    """
    height, width, channels = shape
    side = min(TILE, math.isqrt(rows // channels))
    for y in range(0, height, side):
        for x in range(0, width, side):
            yield slice(y, min(y + side, height)), slice(x, min(x + side, width))


def seeds(tile: tuple[slice, slice], shape: tuple[int, int, int], dtype: tf.DType) -> Patch:
    """The unit directions of a tile's pixels."""
    rows, columns = tile
    window = rows.stop - rows.start, columns.stop - columns.start, shape[2]
    eye = tf.eye(math.prod(window), dtype=dtype)
    return Patch(tf.reshape(eye, (-1, *window)), (rows.start, columns.start), shape[:2])


# ------------------------------------------------------------------ receptive-field arithmetic


class Reach(NamedTuple):
    """What a window becomes along one axis, and the padding that gives it.

    Negative padding cuts entries off, which happens where a stride skips them.
    """

    first: int
    before: int
    after: int


def reach(
    first: int, size: int, taps: int, stride: int, padding: int, outputs: int
) -> Reach | None:
    """The outputs that inputs first .. first + size - 1 can reach; None if there is none.

    Args:
        taps: how many neighbouring inputs an output reads.
        padding: zeros before the first input.
        outputs: the size of the output map.
    """
    start = max(0, -((taps - 1 - first - padding) // stride))
    last = min(outputs - 1, (first + size - 1 + padding) // stride)
    if last < start:
        return None
    before = first - (stride * start - padding)
    return Reach(start, before, (last - start) * stride + taps - before - size)


class Passage(NamedTuple):
    """How a window passes through a sliding operation."""

    y: Reach
    x: Reach
    size: tuple[int, int]

    @property
    def padding(self) -> tuple[tuple[int, int], ...]:
        """Zeros around the window, for each axis of (n, h, w, c)."""
        pairs = ((reach.before, reach.after) for reach in (self.y, self.x))
        return ((0, 0), *((max(0, b), max(0, a)) for b, a in pairs), (0, 0))

    def trimmed(self, values: tf.Tensor) -> tf.Tensor:
        """The window without the entries that no output reads."""
        y, x = self.y, self.x
        if min(y.before, y.after, x.before, x.after) >= 0:
            return values
        h, w = values.shape[1:3]
        rows = slice(max(0, -y.before), h - max(0, -y.after))
        return values[:, rows, max(0, -x.before) : w - max(0, -x.after)]

    def patch(self, values: tf.Tensor) -> Patch:
        """The window of the outputs, with these values."""
        return Patch(values, (self.y.first, self.x.first), self.size)


def passage(patch: Patch, taps: Sequence[int], strides: Sequence[int], kind: str) -> Passage | None:
    """The passage of a window through an operation with these taps and strides."""
    reaches, size = [], []
    for axis in (0, 1):
        before, outputs = p.padding_of(patch.size[axis], taps[axis], strides[axis], kind)
        first, length = patch.origin[axis], patch.values.shape[1 + axis]
        reaches.append(reach(first, length, taps[axis], strides[axis], before, outputs))
        size.append(outputs)
    y, x = reaches
    return None if y is None or x is None else Passage(y, x, (size[0], size[1]))


# ------------------------------------------------------------------ primitives on windows


Inputs: TypeAlias = Sequence[Any]  # a `Patch` each, or None for zero; at least one `Patch`


@singledispatch
def push(primitive: p.Primitive, pattern: p.Pattern, inputs: Inputs) -> Patch | tf.Tensor | None:
    """The frozen primitive on windows: a `Patch` or dense; None if it takes dense inputs only."""
    return None


@push.register
def _(primitive: p.Conv, pattern: p.Pattern, inputs: Inputs) -> Patch | tf.Tensor | None:
    (patch,) = inputs
    window, dilation = primitive.kernel.shape[:-2], primitive.dilation
    taps = [(r - 1) * d + 1 for r, d in zip(window, dilation, strict=True)]
    through = passage(patch, taps, primitive.strides, primitive.padding)
    if primitive.groups > 1 or through is None:
        return None
    strides = primitive.strides
    values, kernel = p.two_channels(through.trimmed(patch.values), primitive.kernel, strides)
    return through.patch(tf.nn.conv2d(values, kernel, strides, through.padding, dilations=dilation))


@push.register
def _(primitive: p.AveragePool, pattern: p.Pattern, inputs: Inputs) -> Patch | tf.Tensor | None:
    (patch,) = inputs
    through = passage(patch, primitive.window, primitive.strides, primitive.padding)
    if through is None or len(set(primitive.strides)) > 1:
        return None
    values = through.trimmed(patch.values)
    sums = tf.raw_ops.DepthwiseConv2dNative(  # its strides must be equal
        input=values,
        filter=tf.ones((*primitive.window, values.shape[-1], 1), values.dtype),
        strides=(1, *primitive.strides, 1),
        padding="EXPLICIT",
        explicit_paddings=[zeros for pair in through.padding for zeros in pair],
    )
    weights = pooling_weights(primitive.window, primitive.strides, primitive.padding, patch.size)
    found = through.patch(sums)
    return replace(found, values=sums * found.cut(tf.constant(weights, values.dtype)))


@lru_cache
def pooling_weights(
    window: tuple[int, int], strides: tuple[int, int], padding: str, size: tuple[int, int]
) -> np.ndarray:
    """One over how many entries of a pooling window lie inside the map: (1, H, W, 1)."""
    counts = []
    for length, taps, stride in zip(size, window, strides, strict=True):
        before, outputs = p.padding_of(length, taps, stride, padding)
        first = np.arange(outputs) * stride - before
        counts.append(np.minimum(first + taps, length) - np.maximum(first, 0))
    return (1 / np.outer(*counts))[None, :, :, None]


@push.register
def _(primitive: p.Mean, pattern: p.Pattern, inputs: Inputs) -> Patch | tf.Tensor | None:
    (patch,) = inputs
    if primitive.axes != (0, 1):
        return None
    return tf.reduce_sum(patch.values, (1, 2)) / math.prod(patch.size)


@push.register
def _(primitive: p.Activation, pattern: p.Pattern, inputs: Inputs) -> Patch | tf.Tensor | None:
    patch, *constants = inputs
    slope, _ = pattern
    if patch is None or any(c is not None for c in constants):
        return None
    return replace(patch, values=patch.values * patch.cut(slope))


@push.register
def _(primitive: p.Scale, pattern: p.Pattern, inputs: Inputs) -> Patch | tf.Tensor | None:
    (patch,) = inputs
    if math.prod(primitive.factor.shape[:-1]) > 1:
        return None
    return replace(patch, values=patch.values * tf.reshape(primitive.factor, (-1,)))


@push.register
def _(primitive: p.Sum, pattern: p.Pattern, inputs: Inputs) -> Patch | tf.Tensor | None:
    known = [i for i, x in enumerate(inputs) if x is not None]
    if any(primitive.shapes[i] != primitive.output_shape for i in known):
        return None
    found = aligned([inputs[i] for i in known])
    pairs = zip(known, found, strict=True)
    terms = [p.times(primitive.coefficients[i], x.values) for i, x in pairs]
    return replace(found[0], values=sum(terms[1:], terms[0]))


@push.register
def _(primitive: p.Concatenate, pattern: p.Pattern, inputs: Inputs) -> Patch | tf.Tensor | None:
    if primitive.axis != 2 or None in inputs:
        return None
    found = aligned(inputs)
    return replace(found[0], values=tf.concat([x.values for x in found], -1))


@push.register
def _(primitive: p.Pad, pattern: p.Pattern, inputs: Inputs) -> Patch | tf.Tensor | None:
    (patch,) = inputs
    (top, bottom), (left, right), channels = primitive.margins
    y, x = patch.origin
    height, width = patch.size
    return Patch(
        tf.pad(patch.values, ((0, 0), (0, 0), (0, 0), channels)),
        (y + top, x + left),
        (height + top + bottom, width + left + right),
    )


def aligned(patches: Sequence[Patch]) -> list[Patch]:
    """The same tangents in the smallest window that holds them all."""
    y, x = zip(*(patch.where for patch in patches), strict=True)
    first = (min(w.start for w in y), min(w.start for w in x))
    last = (max(w.stop for w in y), max(w.stop for w in x))
    return [Patch(patch.within(first, last), first, patch.size) for patch in patches]
