"""Layer-wise relevance propagation on an equivalent network: one rule for all of its nodes."""

from __future__ import annotations

import numpy as np
import tensorflow as tf

from adjoint_lib.core.equivalent_net import EquivalentNet
from adjoint_lib.core.network import evaluate
from adjoint_lib.core.primitives import Activation, Sum


def lrp(
    net: EquivalentNet,
    image: np.ndarray,
    unit: int,
    epsilon: float = 0.0,
    bias_shares: bool = True,
    layer: str = "fc",
) -> tuple[np.ndarray, float]:
    """The relevance of each pixel for a unit, and the sum of that of all biases.

    Going back, a node hands its relevance R to its inputs a_j in proportion to their products
    a_j w_j, over z + epsilon sign(z).

    Args:
        net: the network.
        image: what it is given.
        unit: the channel of the unit in a dense layer.
        epsilon: what is added to the size of every denominator; 0 is LRP-0.
        bias_shares: whether a bias stays in z, and keeps its share; if not, the inputs get it.
        layer: the dense layer.
    """
    last = net.layer(layer)
    frozen = net.freeze(image)
    read = evaluate(net.nodes, frozen.along(*frozen.v), net.plan(frozenset([last.number])))
    values = {number: value for number, _, value in read}
    start = tf.one_hot([unit], last.shape[-1], dtype=net.dtype)
    relevance = {last.number: start * values[last.number]}
    kept = {}  # what arrives at the image (node 0) and at the biases
    for at in range(last.number, -1, -1):
        if at not in relevance:
            continue
        R, node = relevance.pop(at), net.nodes[at]
        if node.primitive is None:  # a source
            kept[at] = R
            continue
        inputs = [values[i] for i in node.inputs]
        parts = _parts(node.primitive, inputs, values[at], R, epsilon, bias_shares)
        for i, part in zip(node.inputs, parts, strict=False):  # a bias may get none
            relevance[i] = relevance[i] + part if i in relevance else part
    pixels = kept.pop(0).numpy()[0]
    return pixels, float(sum(part.numpy().sum() for part in kept.values()))


def _parts(primitive, inputs, z, R, epsilon: float, bias_shares: bool) -> list[tf.Tensor]:
    """What a node hands to its inputs; to the first alone where it is the only one to get any."""
    if isinstance(primitive, Activation):
        return [R]  # a ReLU passes relevance on as it is
    if isinstance(primitive, Sum) and not bias_shares:
        return [R]  # h + b: everything goes to h
    s = tf.math.divide_no_nan(R, z + epsilon * tf.where(z < 0, -1.0, 1.0).numpy())
    return [a * g for a, g in zip(inputs, primitive.pull(None, s), strict=True)]
