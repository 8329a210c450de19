"""A network whose weights have fewer digits: what its hypersurfaces still reproduce.

Float64 leaves no unit with a relative error above 1 %; weights rounded to bfloat16 bring such units
back, and many more of them than float32 has. What is compared, in `verify(weights_rounded=)`:

- c, as ever, is the network's own value, from its full weights;
- the hypersurfaces come from the same network, frozen at the same activation pattern, with every
  folded kernel, scale and bias rounded to bfloat16's eight significant bits. All computing stays
  in the net's dtype, best float64, so that nothing but the weights is rounded.

The pattern is that of the full weights on purpose. Each path's product then changes by one factor
1 + d, |d| <= u = 2^-8, for each weight on it, so the theory of the rounding scale A holds to the
letter: |c_hat - c| <= ((1 + u)^L - 1) A for at most L weights on a path. The errors are explained,
unit by unit, exactly as those of float32 are, with another u.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from adjoint_lib.core.equivalent_net import EquivalentNet
from adjoint_lib.core.error_bounds import SIGNIFICANT_BITS, weights_field
from adjoint_lib.core.graph import Graph, Node
from adjoint_lib.errors import InputError


def check_format(name: str | None) -> str | None:
    """The name of a format that weights can be rounded to, or None; anything else is an error."""
    if name is not None and name not in SIGNIFICANT_BITS:
        raise InputError(
            f"expected weights rounded to one of {', '.join(SIGNIFICANT_BITS)}, or None, got "
            f"{name!r}."
        )
    return name


def rounded(net: EquivalentNet, name: str) -> EquivalentNet:
    """The same network with its folded kernels, scales and biases rounded to a format."""
    check_format(name)
    bits = SIGNIFICANT_BITS[name]
    nodes = [_rounded_node(node, bits) for node in net.graph.nodes]
    return EquivalentNet(net.name, Graph(nodes, net.graph.outputs), net.dtype.name)


def round_to(values: np.ndarray, bits: int) -> np.ndarray:
    """The nearest numbers with so many significant bits, ties to even; the exponent is free."""
    mantissas, exponents = np.frexp(np.asarray(values, float))
    return np.ldexp(np.round(mantissas * 2.0**bits), exponents - bits)


def _rounded_node(node: Node, bits: int) -> Node:
    if node.is_bias:
        return replace(node, source=replace(node.bias, values=round_to(node.bias.values, bits)))
    name = weights_field(node)
    if name is None:
        return node
    primitive = node.operation
    values = round_to(getattr(primitive, name), bits)
    return replace(node, primitive=replace(primitive, **{name: values}))
