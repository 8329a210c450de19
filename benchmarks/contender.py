"""What every contender is: a function that prepares a pass over all hypersurfaces of all layers.

A contender is a module with ``prepare(network, **settings)``, which is not timed and returns a
pass. Calling the pass gives an iterator of `Piece`; it runs as often as it is called, and what it
yields has been computed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

CONTENDERS = {
    "adjoint_lib": "benchmarks.ours",
    "algorithm_1": "benchmarks.algorithm_1",
    "jax": "benchmarks.jax_peer",
    "pytorch": "benchmarks.pytorch_peer",
    "one_unit_at_a_time": "benchmarks.one_unit",
}
"""The module of each contender."""


@dataclass(frozen=True)
class Piece:
    """Some entries of the hypersurfaces H, (d, units), of one layer.

    Attributes:
        rows: which rows, entries of [x; b], as an index of the first axis.
        values: what converts to an array (n, ...), the units flat or not, channels last; or, with
            `unit`, to (d,).
        unit: the one unit (a flat index) that this is the whole H of; None for all units.
        stands_for: how many pieces like this one there are in a whole pass; the clock counts its
            time so many times. 1, except where a pass is sampled.
    """

    layer: str
    rows: Any
    values: Callable[[], np.ndarray]
    unit: int | None = None
    stands_for: float = 1.0


Pass = Callable[[], Iterator[Piece]]


def sample(layer: str, units: int, most: int) -> np.ndarray:
    """A random few of a layer's units, the same in every process: flat indices."""
    seed = [units, *layer.encode()]
    return np.random.default_rng(seed).permutation(units)[:most]
