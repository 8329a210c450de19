"""The five reconstruction modes RM0 ... RM4: lazy, indexable hypersurfaces H = J* w.

The modes differ only in the cotangent they hand to the same J*. For a layer with kernel
w[r1, r2, j, i] (in-channel j, out-channel i) and window positions s = (y, x):

    RM4   one position s, one in-channel j, one out-channel i        H[y, x, j, i]
    RM3   RM4 summed over s                                          H[j, i]
    RM2   RM4 summed over j: the unit c[s, i]                        H[y, x, i]
    RM1   RM4 summed over s and j                                    H[i]
    RM0   a column of a dense layer                                  H[i]

These are the paper's Eq. (8) and (10) to (13); its Algorithm 1 computes the same through a dense
Jacobian.
"""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import tensorflow as tf
from numpy.typing import DTypeLike

from adjoint_lib.core._threads import interleave
from adjoint_lib.core.compiled import FEW, MAX_BATCH, patterns_below, traced
from adjoint_lib.core.frozen import Frozen
from adjoint_lib.core.network import Layer
from adjoint_lib.core.primitives import Conv, map_pattern
from adjoint_lib.core.strategy import batch_rows, itemsize, prefers_pull
from adjoint_lib.core.units import Units
from adjoint_lib.errors import InputError, TooLarge, check_whole

Index: TypeAlias = Any  # an int, a slice, an Ellipsis, or a tuple of these


@dataclass(frozen=True)
class Mode:
    """Which of the paper's two sums a mode takes: over in-channels (merge), positions (pool)."""

    name: str
    merge: bool
    pool: bool

    def shape(self, layer: Layer) -> tuple[int, ...]:
        """The axes of the mode's units: (y, x, j, i) without those that are summed."""
        *positions, out = layer.shape
        return (*(() if self.pool else positions), *(() if self.merge else (layer.channels,)), out)


MODES = {
    "RM0": Mode("RM0", merge=True, pool=False),
    "RM1": Mode("RM1", merge=True, pool=True),
    "RM2": Mode("RM2", merge=True, pool=False),
    "RM3": Mode("RM3", merge=False, pool=True),
    "RM4": Mode("RM4", merge=False, pool=False),
}


def mode_of(layer: Layer, name: str | None) -> Mode:
    """The mode of this name, RM2 or RM0 by default, if it fits the layer."""
    if name is None:
        return MODES[layer.default_mode]
    if not isinstance(name, str) or name not in MODES:
        raise InputError(f"unknown mode {name!r}; expected one of {', '.join(MODES)}.")
    if name not in layer.modes:
        raise InputError(
            f"mode {name} does not fit layer '{layer.name}' ({layer.kind}, units {layer.shape}); "
            f"expected {' or '.join(layer.modes)}: RM0 is for dense layers, RM1 to RM4 for "
            "convolutions."
        )
    return MODES[name]


class Hypersurface:
    """All hypersurfaces of one layer in one mode; computed when indexed.

    ``H[index]`` takes ints and slices over the unit axes (for a batch, over the images first); the
    d_in axis always stays whole. ``numpy.asarray(H)`` is the dense array of shape ``H.shape``.
    """

    def __init__(
        self,
        net: Any,
        images: tf.Tensor,
        k: float,
        layer: Layer,
        mode: Mode,
        single: bool,
        max_bytes: int,
    ):
        self.net = net
        self.images = images
        self.layer = layer
        self.mode = mode
        self.single = single
        self.max_bytes = check_whole("max_bytes", max_bytes, 1)
        self._k = k
        self._indexed = False

    @functools.cached_property
    def frozen(self) -> Frozen:
        """What the layer reads, frozen at the images; deeper layers are not."""
        found: Frozen = self.net.frozen_below(self.images, self._k, [self.layer.reads])
        return found

    @property
    def shape(self) -> tuple[int, ...]:
        """(d_in, *unit axes); a batch of N images has N in front."""
        images = () if self.single else (self.images.shape[0],)
        return (*images, self.net.d_in, *self.mode.shape(self.layer))

    @property
    def nbytes(self) -> int:
        """The size of the dense array; nothing is allocated."""
        return math.prod(self.shape) * itemsize(self.net.dtype)

    def __getitem__(self, index: Index) -> Units:
        images, axes, kept = self._select(index)
        count = len(images) * math.prod(len(a) for a in axes)
        self._check_budget(count)
        units = np.stack(np.meshgrid(*axes, indexing="ij"), -1).reshape(-1, len(axes))
        pulled = prefers_pull(self.net, self.layer, len(units))
        return self._units(images, units, kept, None if pulled else axes)

    def at(self, units: np.ndarray) -> Units:
        """Scattered units, of each image.

        Args:
            units: (m, axes), an index tuple in each row; for a dense layer plain numbers will do.
        """
        units = checked_units(units, self.mode.shape(self.layer))
        images = list(range(self.images.shape[0]))
        self._check_budget(len(images) * len(units))
        kept = (len(units),) if self.single else (len(images), len(units))
        return self._units(images, units, kept)

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> np.ndarray:
        units = self[...]
        dense = np.moveaxis(units.H, -1, 0 if self.single else 1)
        return dense if dtype is None else dense.astype(dtype)

    def __repr__(self) -> str:
        shape = " x ".join(map(str, self.shape))
        return (
            f"<Hypersurface {self.mode.name} of '{self.layer.name}' in '{self.net.name}': {shape}, "
            f"{readable(self.nbytes)} if dense; index it to compute>"
        )

    # -------------------------------------------------------------- computing

    def _units(
        self,
        images: list[int],
        units: np.ndarray,
        kept: tuple[int, ...],
        axes: list[np.ndarray] | None = None,
    ) -> Units:
        """H of these units of each image, pulled; with `axes`, whose grid they are, pushed."""
        parts = (self.frozen.part(n, n + 1) for n in images)
        if axes is not None:
            rows = np.concatenate([self._by_push(part, axes, len(units)) for part in parts])
        elif len(units) > FEW:
            rows = np.concatenate([self._by_pull(part, units) for part in parts])
        else:
            rows = self._few(images, units)
        x, numbers = self.images.numpy()[images], None if self.single else images
        return Units(self.net, self.layer.name, self.mode.name, rows, x, kept, units, numbers)

    def _few(self, images: list[int], units: np.ndarray) -> np.ndarray:
        """Pull few units of each of these images, many images at a time: (images * units, d_in).

        The first time freezing is part of the same graph, and its patterns are not kept.
        """
        most = max(1, min(MAX_BATCH, batch_rows(self.net, [self.layer.number]) // len(units)))
        size = math.ceil(len(images) / math.ceil(len(images) / most))
        padded = images + images[-1:] * (-len(images) % size)  # parts of one size, for one trace
        parts = [padded[i : i + size] for i in range(0, len(padded), size)]
        first = "frozen" not in vars(self) and self._k == 1 and not self._indexed
        self._indexed = True
        read = self._at_once if first else self._of_frozen

        def pulled(some: list[int]) -> Iterator[np.ndarray]:
            yield read(some, units)

        pulls = list(interleave(map(pulled, parts)))
        rows: np.ndarray = np.concatenate(pulls) if len(pulls) > 1 else pulls[0]
        return rows[: len(images) * len(units)]

    def _at_once(self, images: list[int], units: np.ndarray) -> np.ndarray:
        """Freeze these images and pull in one graph."""
        net, layer, mode, once = self.net, self.layer, self.mode, len(units) == 1

        def read(x: tf.Tensor, units: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
            patterns, finite = patterns_below(net, x, [layer.reads], once)
            return pull_units(Frozen(net, x, patterns, net.nodes), layer, mode, units), finite

        key = "read", layer.number, mode.name, len(images), len(units)
        x = self.images if len(images) == len(self.images) else tf.gather(self.images, images)
        H, finite = traced(net, key, read)(x, tf.constant(units, tf.int32))
        return H.numpy() if finite else self._of_frozen(images, units)

    def _of_frozen(self, images: list[int], units: np.ndarray) -> np.ndarray:
        """Pull from these images, frozen before."""
        net, layer, mode, frozen = self.net, self.layer, self.mode, self.frozen.of(images)
        if frozen.nodes is not net.nodes:
            return pull_units(frozen, layer, mode, units).numpy()
        held = {n: p for n, p in enumerate(frozen.patterns[: layer.reads + 1]) if p is not None}
        structure = map_pattern(lambda p: True, held)

        def pull(x: tf.Tensor, units: tf.Tensor, *flat: tf.Tensor) -> tf.Tensor:
            held = tf.nest.pack_sequence_as(structure, flat)
            patterns = [held.get(n) for n in range(layer.reads + 1)]
            return pull_units(Frozen(net, x, patterns, net.nodes), layer, mode, units)

        flat = tf.nest.flatten(held)  # as one structure they would cost TensorFlow a millisecond
        key = "pull", layer.number, mode.name, len(images), len(units)
        H = traced(net, key, pull)(frozen.images, tf.constant(units, tf.int32), *flat)
        return H.numpy()

    def _by_pull(self, frozen: Frozen, units: np.ndarray) -> np.ndarray:
        """Pull the cotangent of each unit, a row of `units`, back to [x; x_b]."""
        H = np.empty((len(units), self.net.d_in), self.net.dtype.as_numpy_dtype)
        size = batch_rows(self.net, [self.layer.number])

        def pulled(some: slice) -> Iterator[tuple[slice, np.ndarray]]:
            yield some, pull_units(frozen, self.layer, self.mode, units[some]).numpy()

        parts = (slice(i, i + size) for i in range(0, len(units), size))
        for some, rows in interleave(map(pulled, parts)):
            H[some] = rows
        return H

    def _by_push(self, frozen: Frozen, axes: list[np.ndarray], count: int) -> np.ndarray:
        """Push the unit directions of [x; x_b] forward and read off the chosen units."""
        H = np.zeros((count, self.net.d_in), self.net.dtype.as_numpy_dtype)
        reads = self.layer.reads
        for block in frozen.blocks([reads], batch_rows(self.net, [self.layer.number])):
            read = self._read_off(frozen, block.dense(), axes)
            H[:, block.rows] = read.reshape(len(block.rows), count).T
        return H

    def _read_off(self, frozen: Frozen, tangent: tf.Tensor, axes: list[np.ndarray]) -> np.ndarray:
        """The chosen units' response to tangents of F(v): (n, *(len(a) for a in axes))."""
        if self.mode.merge:
            return self._respond(frozen, tangent, axes)
        primitive = frozen.nodes[self.layer.number].operation
        if isinstance(primitive, Conv) and primitive.groups == 1:
            return self._by_taps(primitive, tangent, axes)
        *places, channels, out = axes
        masked = (tangent * only(np.array([j]), self.layer, tangent) for j in channels)
        blocks = [self._respond(frozen, part, [*places, out]) for part in masked]
        return np.stack(blocks, axis=-2)

    def _by_taps(self, conv: Conv, tangent: tf.Tensor, axes: list[np.ndarray]) -> np.ndarray:
        """Reads the response per in-channel by shifting and weighting, without a convolution."""
        *places, channels, out = axes
        kernel = np.asarray(conv.kernel)
        found = np.zeros((), kernel.dtype)
        for tap, read in conv.taps(tf.gather(tangent, channels, axis=-1)):
            if self.mode.pool:
                read = tf.reduce_sum(read, axis=range(1, len(read.shape) - 1)).numpy()
            else:
                read = read.numpy()[np.ix_(np.arange(read.shape[0]), *places)]
            found = found + read[..., None] * kernel[tap][np.ix_(channels, out)]
        return found

    def _respond(self, frozen: Frozen, tangent: tf.Tensor, axes: list[np.ndarray]) -> np.ndarray:
        out = frozen.nodes[self.layer.number].operation.push(None, tangent)
        if self.mode.pool:
            out = tf.reduce_sum(out, axis=range(1, len(out.shape) - 1))
        return out.numpy()[np.ix_(np.arange(out.shape[0]), *axes)]

    # -------------------------------------------------------------- indices and budget

    def _select(self, index: Index) -> tuple[list[int], list[np.ndarray], tuple[int, ...]]:
        """The chosen images, the chosen entries of each unit axis, and the shape of the result."""
        shape = self.mode.shape(self.layer)
        names = [f"axis {a}" for a in range(len(shape))]
        if not self.single:
            shape, names = (self.images.shape[0], *shape), ["image", *names]
        chosen = list(_expand(index, shape))
        picks = [
            _entries(i, size, name) for i, size, name in zip(chosen, shape, names, strict=True)
        ]
        kept = tuple(len(e) for e, i in zip(picks, chosen, strict=True) if isinstance(i, slice))
        images = [0] if self.single else picks.pop(0).tolist()
        return images, picks, kept

    def _check_budget(self, count: int) -> None:
        size = count * self.net.d_in * itemsize(self.net.dtype)
        if size > self.max_bytes:
            raise TooLarge(
                f"{self.mode.name} of '{self.layer.name}' asks for {count:,} hypersurfaces of "
                f"{self.net.d_in:,} entries: {readable(size)}, above the budget of "
                f"{readable(self.max_bytes)}. Index fewer units, stream them "
                "(net.freeze(image).hypersurfaces()), or raise max_bytes."
            )


def of_frozen(
    frozen: Frozen, layer: str, mode: str | None = None, max_bytes: int = 2**30
) -> Hypersurface:
    """The effective hypersurfaces of a layer's units at images that are frozen already.

    The arguments are those of `EquivalentNet.hypersurface`.
    """
    found, net = frozen.net.layer(layer), frozen.net
    chosen = mode_of(found, mode)
    H = Hypersurface(net, frozen.images, 1.0, found, chosen, frozen.single, max_bytes)
    H.frozen = frozen
    return H


def pull_units(
    frozen: Frozen, layer: Layer, mode: Mode, units: np.ndarray | tf.Tensor
) -> tf.Tensor:
    """H of these units, rows (n, axes), for each image in turn: (images * n, d_in)."""
    shape = layer.shape
    if mode.pool:
        channel = tf.one_hot(units[:, -1], shape[-1], dtype=frozen.net.dtype)
        channel = tf.reshape(channel, (-1, *(1,) * (len(shape) - 1), shape[-1]))
        selector = tf.broadcast_to(channel, (units.shape[0], *shape))
    else:
        strides = [math.prod(shape[a + 1 :]) for a in range(len(shape))]
        strides[-1:-1] = [] if mode.merge else [0]  # an in-channel is no part of a unit's place
        flat = tf.reduce_sum(units * np.array(strides, units.dtype.name), 1)
        one_hot = tf.one_hot(flat, math.prod(shape), dtype=frozen.net.dtype)
        selector = tf.reshape(one_hot, (-1, *shape))
    (g,) = frozen.nodes[layer.number].operation.pull(None, selector)
    g = g if mode.merge else g * only(units[:, -2], layer, g)
    images = frozen.images.shape[0]
    g = g if images == 1 else tf.tile(g, (images, *(1,) * (len(g.shape) - 1)))
    return frozen.pull_rows(layer.reads, g)


def only(channels: np.ndarray | tf.Tensor, layer: Layer, maps: tf.Tensor) -> tf.Tensor:
    """A mask over maps that keeps one in-channel for each row: (n, 1, ..., 1, c_in)."""
    mask = tf.one_hot(channels, layer.channels, dtype=maps.dtype)
    return tf.reshape(mask, (-1, *(1,) * (len(maps.shape) - 2), layer.channels))


def checked_units(units: np.ndarray | Any, shape: tuple[int, ...]) -> np.ndarray:
    """Units as index tuples, one in each row (m, axes); with one axis, plain numbers will do."""
    wanted = f"expected units as rows of {len(shape)} integers"
    try:
        found = np.asarray(units)
    except ValueError as error:  # ragged
        raise InputError(f"{wanted}, got: {error}") from error
    if len(shape) == found.ndim == 1:
        found = found[:, None]
    if found.dtype.kind not in "iu" or found.ndim != 2 or found.shape[1] != len(shape):
        raise InputError(
            f"{wanted}, one for each axis of {shape}, got {found.dtype} of shape {found.shape}."
        )
    if not len(found):
        raise InputError("expected at least one unit, got none.")
    outside = (found < 0) | (found >= shape)
    if outside.any():
        raise InputError(f"units {found[outside.any(1)][0]} are out of range for axes {shape}.")
    return found


def _expand(index: Index, shape: tuple[int, ...]) -> Iterator[int | slice]:
    """One int or slice for each axis; a missing one, or an Ellipsis, stands for whole axes."""
    parts = list(index) if isinstance(index, tuple) else [index]
    if any(isinstance(part, (list, range)) or getattr(part, "ndim", 0) for part in parts):
        raise InputError(
            "expected ints and slices as index, got a list, an array or a mask. For scattered "
            "units use .at(units), one index tuple in each row; for a mask .at(np.argwhere(mask))."
        )
    dots = sum(part is Ellipsis for part in parts)
    if dots > 1 or len(parts) - dots > len(shape):
        raise InputError(
            f"expected at most {len(shape)} indices for units of shape {shape}, and one '...', got "
            f"{len(parts) - dots} and {dots}."
        )
    missing = [slice(None)] * (len(shape) - len(parts) + dots)
    where = next((at for at, part in enumerate(parts) if part is Ellipsis), len(parts))
    return iter([*parts[:where], *missing, *parts[where + 1 :]])


def _entries(index: int | slice, size: int, name: str) -> np.ndarray:
    """The entries of one axis that an int or a slice chooses."""
    if isinstance(index, slice):
        try:
            chosen = np.arange(size)[index]
        except (TypeError, ValueError) as error:  # a step of zero, ends that are no ints
            raise InputError(f"slice {index} of {name}: {error}.") from error
        if not chosen.size:
            raise InputError(f"slice {index} chooses nothing of {name}, which has size {size}.")
        return chosen
    text = f"expected an int or a slice as index of {name}, got {index!r}."
    if isinstance(index, (bool, np.bool_)):
        raise InputError(text)
    try:
        number = operator.index(index)
    except TypeError as error:  # of arrays too that hold no integer
        raise InputError(text) from error
    if not -size <= number < size:
        raise InputError(f"index {number} is out of range for {name}, which has size {size}.")
    return np.array([number % size])


def readable(size: int) -> str:
    """A number of bytes as text: 13.5 GiB."""
    power = min(4, max(0, (size.bit_length() - 1) // 10))
    return f"{size / 1024**power:.3g} {('bytes', 'KiB', 'MiB', 'GiB', 'TiB')[power]}"
