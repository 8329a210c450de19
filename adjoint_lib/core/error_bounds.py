"""All rounding theory: how far a reconstructed unit may be from the unit, and why no further.

A unit c and its reconstruction c_hat are both sums of products along paths through the frozen
network. Let A be the unit's rounding scale: the same sums with every term replaced by its absolute
value, |v| through |weights|. If a product meets at most m rounded operations, each of relative
error u, then by the standard analysis

    |c_hat - c| <= gamma A,    gamma = m u / (1 - m u).

The relative error of a unit is large only where |c| is far below A: a near-perfect cancellation.
Primitives count their own operations (`Primitive.roundings`); here they are added up along paths.
"""

from __future__ import annotations

import copy
import functools
from collections import Counter
from collections.abc import Callable, Sequence

import numpy as np
import tensorflow as tf

from adjoint_lib.core.frozen import Frozen
from adjoint_lib.core.graph import Node
from adjoint_lib.core.network import Layer, Network
from adjoint_lib.core.primitives import Activation, Kernel, Scale, is_float_array, map_pattern

SIGNIFICANT_BITS = {"bfloat16": 8}  # of the formats that weights can be rounded to


def unit_roundoff(dtype: str | tf.DType) -> float:
    """u: the largest relative error of rounding to this dtype or format of `SIGNIFICANT_BITS`."""
    if dtype in SIGNIFICANT_BITS:
        return 2.0 ** -SIGNIFICANT_BITS[dtype]
    return float(np.finfo(tf.as_dtype(dtype).as_numpy_dtype).eps) / 2


def rounding_scale(
    frozen: Frozen, layers: Sequence[Layer], other: Frozen | None = None
) -> dict[str, np.ndarray]:
    """A of every unit of these layers, in float64: by name, (P, *layer.shape) for P images.

    Args:
        other: the same network and images, frozen at another k; A is then through either pattern.
    """
    unsigned, numbers = absolute(frozen), [layer.number for layer in layers]
    dx, dx_b = (tf.abs(part) for part in unsigned.v)
    if other is None:
        pushed = unsigned.tangents(dx, dx_b, numbers)
    else:
        pushed = _through_either(unsigned, absolute(other), unsigned.along(dx, dx_b), numbers)
    return {layer.name: pushed[layer.number].numpy() for layer in layers}


def largest_ratio(error: np.ndarray, scale: np.ndarray) -> float:
    """max error / scale; an error where the scale is zero counts as infinite."""
    scale = np.broadcast_to(scale, error.shape)
    ratio = np.divide(error, scale, out=np.zeros_like(error), where=scale > 0)
    return float(np.where((scale == 0) & (error > 0), np.inf, ratio).max())


def _through_either(
    first: Frozen, second: Frozen, starts: dict[int, tf.Tensor], wanted: Sequence[int]
) -> dict[int, tf.Tensor]:
    """What two frozen networks without signs make of these tangents, the larger at each entry."""
    found: dict[int, tf.Tensor] = {}
    for number, _ in first.net.plan(frozenset(wanted)):
        node = first.nodes[number]
        if node.primitive is None:
            found[number] = starts[number]
            continue
        inputs = [found[i] for i in node.inputs]
        one, two = first.patterns[number], second.patterns[number]
        found[number] = node.primitive.push(one, *inputs)
        if one is not None:
            found[number] = tf.maximum(found[number], node.primitive.push(two, *inputs))
        if isinstance(node.primitive, Activation):
            steepest = tf.reduce_max(node.primitive.slopes, 0)
            changed = functools.reduce(
                tf.logical_or, map(tf.not_equal, tf.nest.flatten(one), tf.nest.flatten(two))
            )
            between = tf.where(changed, steepest * inputs[0], 0)
            found[number] = tf.maximum(found[number], between)
    return {number: found[number] for number in wanted}


def absolute(frozen: Frozen) -> Frozen:
    """The frozen network with |weights| and |slopes|, in float64: pushed along |v|, it gives A."""
    wide = copy.copy(frozen.net)  # the same sources and wiring; its own nodes are not read
    wide.dtype = tf.float64
    patterns = map_pattern(
        lambda p: tf.abs(tf.cast(p, tf.float64)) if is_float_array(p) else p, frozen.patterns
    )
    return Frozen(wide, tf.cast(frozen.images, tf.float64), patterns, frozen.net.absolute_nodes)


def bound(
    net: Network,
    layer: Layer,
    method: str,
    weights_rounded: str | None = None,
    pulled: bool = False,
    rescaled: bool = False,
) -> float:
    """The rigorous limit of |c_hat - c| / (u A) for the units of a layer.

    Each product meets at most n roundings on its way to c, and as many to c_hat (another number
    where H is pulled, as that of a dense layer may be); the inner product with H adds at most d_in.

    Args:
        method: "hypersurface" or "tangent", see `verification.verify`.
        weights_rounded: a format that the weights of c_hat are rounded to; u is then that format's,
            which dwarfs the rest.
        pulled: whether H is pulled though the layer has maps.
        rescaled: whether the pattern is that of a pass of its own, at a k that rounds k [x; x_b].
    """
    n = roundings(net, layer)
    m = 2 * n
    if method == "hypersurface":
        back = roundings_back(net, layer) if pulled or layer.default_mode == "RM0" else 0
        m = n + max(n, back) + net.d_in
    if rescaled:  # from c to that pass: n in each, and one for k [x; x_b]
        m += 2 * n + 1
    u = unit_roundoff(net.dtype)
    if weights_rounded is None:
        return m / (1 - m * u)
    coarse = unit_roundoff(weights_rounded)
    spread = (1 + coarse) ** rounded_weights(net, layer)
    return (spread * (1 + m * u / (1 - m * u)) - 1) / coarse


def roundings(net: Network, layer: Layer) -> int:
    """How many rounded operations a product meets on the longest path to one of its units."""
    return _longest_path(net, layer, lambda n: 0 if n.primitive is None else n.primitive.roundings)


def rounded_weights(net: Network, layer: Layer) -> int:
    """L: how many weights there are at most on a path to the layer's units."""
    return _longest_path(net, layer, lambda n: weights_field(n) is not None or n.is_bias)


def _longest_path(net: Network, layer: Layer, count: Callable[[Node], int]) -> int:
    """The largest sum of what the nodes on a path to the layer count, its own node included."""
    longest: list[int] = []
    for node in net.graph.nodes[: layer.number + 1]:
        longest.append(count(node) + max((longest[i] for i in node.inputs), default=0))
    return longest[layer.number]


def roundings_back(net: Network, layer: Layer) -> int:
    """How many rounded operations a product meets when the unit is pulled back to [x; x_b].

    A pull adds the cotangents of all nodes that read a node, one after the other.
    """
    longest = {layer.number: 0}
    readers: Counter[int] = Counter()
    for number in range(layer.number, -1, -1):
        node = net.nodes[number]
        if number not in longest or node.primitive is None:
            continue
        adding = max(0, readers[number] - 1)
        here = longest[number] + adding + node.primitive.roundings_back(node.shape)
        for i in node.inputs:
            longest[i] = max(longest.get(i, 0), here)
            readers[i] += 1
    sources = [i for i in longest if net.nodes[i].primitive is None]
    return max(longest[i] + max(0, readers[i] - 1) for i in sources)


def weights_field(node: Node) -> str | None:
    """The field of the node's primitive that holds its weights, if it has any."""
    if isinstance(node.primitive, Kernel):
        return "kernel"
    return "factor" if isinstance(node.primitive, Scale) else None
