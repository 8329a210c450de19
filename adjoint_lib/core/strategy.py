"""Push or pull, and how much at a time: decided here, once, for all of the library.

H of some units can be had in two ways: pull the units' kernels back, one pass down the network for
each unit, or push the unit directions of [x; x_b] forward, one pass up for each direction that
reaches the units. What counts is how many entries go through memory.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np
import tensorflow as tf

from adjoint_lib.core.graph import Node, Order
from adjoint_lib.core.network import Layer, Network

BATCH_ROWS = 192  # directions in one push, cotangents in one pull: enough to fill the cores
WORKSPACE = 2**28  # bytes of live tensors for one push or pull (two may run at a time)


def prefers_pull(net: Network, layer: Layer, units: int, pushed: Iterable[Layer] = ()) -> bool:
    """Whether H of so many units of a layer is cheaper to pull than to push.

    Args:
        units: how many.
        pushed: layers that are pushed in any case; their nodes cost a further push nothing.
    """
    below = _on_the_way(net, [layer.number])
    alone = below - _on_the_way(net, [other.number for other in pushed])
    return units * _entries(net, below) <= reaching(net, layer.number) * _entries(net, alone)


def pulled_layers(net: Network, layers: Iterable[Layer]) -> list[Layer]:
    """Those of the layers that are pulled when H of all their units is wanted.

    Maps are pushed: there a push computes only windows. A dense layer is pulled if that is cheaper
    than to push to it, beside the maps.
    """
    layers = list(layers)
    maps = [layer for layer in layers if len(layer.shape) > 1]
    dense = [layer for layer in layers if len(layer.shape) == 1]
    return [layer for layer in dense if prefers_pull(net, layer, layer.shape[0], maps)]


def reaching(net: Network, number: int) -> int:
    """How many directions of [x; x_b] can reach a node."""
    sizes = [s.size for s in net.sources if s.node < number]
    return math.prod(net.input_shape) + sum(sizes)


def batch_rows(net: Network, wanted: Iterable[int], max_bytes: int = WORKSPACE) -> int:
    """How many directions one push to the wanted nodes takes within so many bytes."""
    return rows_within(net, live_entries(net.nodes, net.plan(frozenset(wanted))), max_bytes)


def rows_within(net: Network, live: int, max_bytes: int) -> int:
    """How many rows of so many live entries go through the network within so many bytes."""
    return max(1, min(BATCH_ROWS, max_bytes // (2 * live * itemsize(net.dtype))))


def entries_below(net: Network, number: int) -> int:
    """How many entries all nodes have that a node depends on: what a pull from it passes."""
    return _entries(net, _on_the_way(net, [number]))


def live_entries(nodes: list[Node], plan: Order) -> int:
    """The largest number of entries a push holds at once for each row."""
    held, most = 0, 1
    for number, finished in plan:
        held += math.prod(nodes[number].shape)
        most = max(most, held)
        held -= sum(math.prod(nodes[old].shape) for old in finished)
    return most


def itemsize(dtype: tf.DType) -> int:
    """Bytes of one number."""
    return np.dtype(dtype.as_numpy_dtype).itemsize


def _on_the_way(net: Network, wanted: list[int]) -> set[int]:
    return {number for number, _ in net.plan(frozenset(wanted))} if wanted else set()


def _entries(net: Network, numbers: Iterable[int]) -> int:
    return sum(math.prod(net.nodes[number].shape) for number in numbers)
