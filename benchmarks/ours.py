"""The library: ``net.freeze(image).hypersurfaces()``, all layers streamed in one pass."""

from __future__ import annotations

import math

import numpy as np

import adjoint_lib as al
from benchmarks.contender import Pass, Piece
from benchmarks.network import Network
from benchmarks.problem import keras_model


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
