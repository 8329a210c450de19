"""The library: ``net.freeze(image).hypersurfaces()``, all layers streamed in one pass."""

from __future__ import annotations

import math
from collections import Counter
from time import perf_counter
from unittest.mock import patch

import numpy as np

import adjoint_lib as al
from adjoint_lib.core import primitives as p
from adjoint_lib.core.frozen import Frozen
from benchmarks.contender import Pass, Piece
from benchmarks.network import Network
from benchmarks.problem import keras_model

KINDS = {p.Conv: "convolutions", p.Activation: "slopes", p.Sum: "sums", p.AveragePool: "pooling"}
"""What the profile tells apart; all else, pulls and Python among it, is the rest."""


def prepare(network: Network) -> Pass:
    net, order = equivalent(network)

    def surfaces():
        for layer, block in net.freeze(network.image).hypersurfaces():
            yield Piece(layer.name, order[block.rows], lambda block=block: block.dense().numpy())

    return surfaces


def flops(network: Network) -> dict[str, float]:
    """Floating-point operations of the convolutions and products of one pass.

    "pushed" is counted from the blocks that the engine yields, window by window; a window that has
    grown to nearly its whole map counts as the map, so this may be up to a tenth too many; a layer
    that is pulled counts as if it were pushed. "dense" is what all directions on whole maps take.
    """
    net, _ = equivalent(network)
    pushed = 0.0
    for layer, block in net.freeze(network.image).hypersurfaces():
        window = getattr(block.values, "values", block.values)
        pushed += 2.0 * math.prod(window.shape) * math.prod(layer.kernel[:-1])
    dense = sum(2.0 * math.prod(x.shape) * math.prod(x.kernel[:-1]) for x in net.layers)
    return {"pushed": pushed, "dense": dense * net.d_in}


def profile(network: Network, passes: int) -> dict[str, float]:
    """Where the time of a pass goes: the share of each kind of operation, with one push at a time.

    Two side by side, as otherwise, could not be told apart.
    """
    net, _ = equivalent(network)
    seconds, start = Counter(), perf_counter()
    with patch("adjoint_lib.core._threads.MAX_STREAMS", 1):
        for turn in range(1 + passes):
            if turn == 1:  # the first pass is not counted
                seconds, start = Counter(), perf_counter()
            for _ in Timed(net.freeze(network.image), seconds).hypersurfaces():
                pass
    whole = perf_counter() - start
    shares = {kind: round(seconds[kind] / whole, 3) for kind in KINDS.values()}
    return {**shares, "rest": round(1 - sum(shares.values()), 3)}


class Timed(Frozen):
    """A frozen network that adds up the `seconds` of each kind of operation that it pushes."""

    def __init__(self, frozen: Frozen, seconds: Counter):
        super().__init__(frozen.net, frozen.images, frozen.patterns, frozen.nodes)
        self.seconds = seconds

    def _push_node(self, number, node, inputs):
        start = perf_counter()
        found = super()._push_node(number, node, inputs)
        kind = KINDS.get(type(node.primitive))
        if kind:
            self.seconds[kind] += perf_counter() - start
        return found


def equivalent(network: Network) -> tuple[al.EquivalentNet, np.ndarray]:
    """The library's own network of the same model, and the place of its [x; x_b] in [x; b].

    The two put the biases in an order of their own; a source has the name of its Keras layer.
    """
    net = al.equivalent(keras_model(network.name, network.image.shape[0]))
    pixels = network.image.size
    places = {
        node.name.removesuffix("/bias"): np.arange(node.options["start"], node.options["stop"])
        for node in network.nodes
        if node.op == "bias"
    }
    order = np.concatenate([places[source.name] for source in net.sources])
    return net, np.concatenate([np.arange(pixels), pixels + order])
