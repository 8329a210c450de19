"""c_hat of every unit of some layers at once: the reconstruction that a verification compares.

Two methods, which prove different things:

- ``"hypersurface"`` materialises H = J* w for every unit, streamed, and takes
  c_hat = <x | H_I> + <x_b | H_b>. This is the paper's claim itself: each unit's own hypersurface
  reproduces its activation.
- ``"tangent"`` pushes [x; x_b] once through the frozen network, which gives <v | J* w> = <J v, w>
  for all units at the cost of a forward pass. It proves that the network frozen at k [x; x_b] is
  linear without remainder; that the individual H are right it proves only through adjointness. It
  repeats the network's own operations, so with k a power of two it usually agrees to the last bit.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import tensorflow as tf

from adjoint_lib.core._threads import interleave
from adjoint_lib.core.fields import Fields, entries, fields_of, live_entries, pull_rows
from adjoint_lib.core.frozen import Frozen
from adjoint_lib.core.hypersurface import MODES, pull_units
from adjoint_lib.core.network import Layer, Network
from adjoint_lib.core.strategy import (
    WORKSPACE,
    batch_rows,
    entries_below,
    pulled_layers,
    reaching,
    rows_within,
)
from adjoint_lib.verification.progress import Advance, ignore

PASSES = 10  # how often a unit's H goes through memory, beside the pull itself
METHODS = ("hypersurface", "tangent")

Reconstructed = Iterator[tuple[Layer, np.ndarray]]  # c_hat of every unit: (P, *layer.shape)


def reconstruct(
    frozen: Frozen,
    layers: Sequence[Layer],
    method: str,
    max_bytes: int = WORKSPACE,
    advance: Advance = ignore,
) -> Reconstructed:
    """Yield c_hat of every unit, layer by layer: (P, *layer.shape) for P frozen images.

    `frozen` is of one image, or of several where `takes_batches`; `max_bytes` is for the tensors of
    one push or pull, of which two run at a time; `advance` is told of each share that is done.
    """
    if method == "tangent":
        return _by_tangent(frozen, layers)
    if takes_batches(frozen.net, layers, method):
        return _by_pull(frozen, layers, max_bytes, advance)
    return _by_push(frozen, layers, max_bytes, advance)


def reconstruct_some(
    frozen: Frozen,
    layers: Sequence[Layer],
    sample: Mapping[str, np.ndarray],
    method: str,
    max_bytes: int = WORKSPACE,
    advance: Advance = ignore,
) -> Reconstructed:
    """Yield c_hat of the units of a sample, flat indices by layer: (P, units).

    The hypersurface method pulls each, for one image.
    """
    if method == "tangent":
        for layer, found in _by_tangent(frozen, layers):
            yield layer, found.reshape(len(found), -1)[:, sample[layer.name]]
        return
    x, x_b = frozen.v
    v = tf.concat([tf.reshape(x, (1, -1)), x_b], 1)[0]
    draws = [Draw.of(frozen, layer, sample[layer.name]) for layer in layers]
    total = sum(len(draw.units) * draw.cost for draw in draws)
    for draw in draws:
        c_hat = []

        def pull(some: np.ndarray, draw: Draw = draw) -> Iterator[np.ndarray]:
            yield tf.linalg.matvec(draw.pull(some), v).numpy()

        for found in interleave(map(pull, draw.parts(max_bytes))):
            c_hat.append(found)
            advance(len(found) * draw.cost / total)
        yield draw.layer, np.concatenate(c_hat)[None]


@dataclass(frozen=True)
class Draw:
    """Some units of a layer, to be pulled each by itself.

    Attributes:
        frozen: the network, frozen at one image.
        units: (n, axes), one index in each row.
        fields: the layer's receptive fields; empty where its units have no positions.
    """

    frozen: Frozen
    layer: Layer
    units: np.ndarray
    fields: Fields

    @classmethod
    def of(cls, frozen: Frozen, layer: Layer, flat: np.ndarray) -> Draw:
        """The units with these flat indices."""
        units = np.stack(np.unravel_index(flat, layer.shape), -1)
        return cls(frozen, layer, units, fields_of(frozen.net, layer.number))

    @property
    def cost(self) -> int:
        """What a pull of one unit passes: the entries on its way, and H, more than once."""
        net = self.frozen.net
        below = entries(net, self.fields) if self.fields else entries_below(net, self.layer.number)
        return below + PASSES * net.d_in

    def parts(self, max_bytes: int) -> list[np.ndarray]:
        """The units as parts of almost one size, each pulled within so many bytes."""
        net = self.frozen.net
        if self.fields:
            live = max(live_entries(net, self.fields), 2 * net.d_in)
            rows = rows_within(net, live, max_bytes)
        else:
            rows = batch_rows(net, [self.layer.number], max_bytes)
        return np.array_split(self.units, math.ceil(len(self.units) / rows))

    def pull(self, units: np.ndarray) -> tf.Tensor:
        """H of some of the units: (n, d_in)."""
        if self.fields:
            return pull_rows(self.frozen, self.layer.number, self.fields, units)
        return pull_units(self.frozen, self.layer, MODES[self.layer.default_mode], units)


def takes_batches(net: Network, layers: Sequence[Layer], method: str) -> bool:
    """Whether several images can be frozen in one pass: no unit direction is pushed."""
    return method == "tangent" or len(pulled_layers(net, layers)) == len(layers)


def _by_tangent(frozen: Frozen, layers: Sequence[Layer]) -> Reconstructed:
    """<J v, w>: one pass along v."""
    pushed = frozen.tangents(*frozen.v, [layer.number for layer in layers])
    yield from ((layer, pushed[layer.number].numpy()) for layer in layers)


def _by_push(
    frozen: Frozen, layers: Sequence[Layer], max_bytes: int, advance: Advance
) -> Reconstructed:
    """<v | H>, with all of H streamed by its rows, for one image."""
    v = tf.concat([tf.reshape(part, (-1,)) for part in frozen.v], 0).numpy()
    totals = {layer.number: np.zeros(layer.shape, v.dtype) for layer in layers}
    rows = batch_rows(frozen.net, totals, max_bytes)
    directions = {number: reaching(frozen.net, number) for number in totals}
    with np.errstate(over="ignore", invalid="ignore"):  # what overflows is infinite, and refused
        for layer, block in frozen.hypersurfaces(layers, rows):
            block.accumulate(v, totals[layer.number])
            done = min(len(block.rows), directions[layer.number])  # zero rows may be among them
            advance(done / sum(directions.values()))
    yield from ((layer, totals[layer.number][None]) for layer in layers)


def _by_pull(
    frozen: Frozen, layers: Sequence[Layer], max_bytes: int, advance: Advance
) -> Reconstructed:
    """<v | H>, with H of every unit pulled: several images at a time if they have few units."""
    x, x_b = frozen.v
    v = tf.concat([tf.reshape(x, (x.shape[0], -1)), x_b], 1)
    for layer in layers:
        (units,) = layer.shape
        rows = batch_rows(frozen.net, [layer.number], max_bytes)
        images = max(1, rows // units)
        found = np.empty((len(v), units), v.dtype.as_numpy_dtype)

        def pulls(
            some: slice, layer: Layer = layer, units: int = units, rows: int = rows
        ) -> Iterator[tuple[tuple[slice, slice], np.ndarray]]:
            part = frozen.part(some.start, some.stop)
            for j in range(0, units, rows):
                H = part.pull_units(layer.number, slice(j, j + rows))
                yield (some, slice(j, j + rows)), tf.linalg.matvec(H, v[some]).numpy()

        parts = (slice(i, i + images) for i in range(0, len(v), images))
        for where, c_hat in interleave(map(pulls, parts)):
            found[where] = c_hat
            advance(c_hat.size / found.size / len(layers))
        yield layer, found
