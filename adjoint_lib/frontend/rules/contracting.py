"""Products of a tensor with a constant, summed over some axes: einsum, matmul and their layers."""

from __future__ import annotations

import math
import string

import keras
import numpy as np

from adjoint_lib.core import primitives as p
from adjoint_lib.core.graph import Shape
from adjoint_lib.errors import UnsupportedLayer
from adjoint_lib.frontend.rules.activating import activate
from adjoint_lib.frontend.rules.call import (
    Call,
    before_activation,
    one_tensor,
    operator,
    refuse_mistaken_bias,
    reshaped,
    rule,
    weight,
)


@rule(keras.layers.EinsumDense)
def einsum_dense(call: Call) -> int:
    layer = call.layer
    h = _contract(call, weight(layer.kernel), *_terms(call, layer.equation, True))
    if layer.bias is not None:
        refuse_mistaken_bias(call, call.shape, call.graph.aligned(layer.bias, h).shape)
        h = call.add_bias(h, weight(layer.bias))
    call.graph.hold(h, before_activation(call.name))
    return activate(call, h, layer.activation)


@operator("Einsum")
def einsum(call: Call) -> int:
    """keras.ops.einsum of one tensor and one constant."""
    kernel, comes_first = one_tensor(call)
    return _contract(call, kernel, *_terms(call, call.layer.subscripts, comes_first))


@operator("Matmul")
def matmul(call: Call) -> int:
    """keras.ops.matmul of a tensor and a constant, on either side."""
    kernel, comes_first = one_tensor(call)
    own = string.ascii_lowercase[: len(call.input_shapes[0])]  # of the tensor's axes
    while kernel.ndim > 2 and len(kernel) == 1 and kernel.ndim <= len(own) + 1:
        kernel = kernel[0]  # one matrix for all
    if kernel.ndim > max(2, len(own)) or (len(own) == 1 and not comes_first):
        raise UnsupportedLayer(
            f"operation '{call.name}' multiplies rows of shape {call.input_shapes[0]} by a "
            f"constant of shape {kernel.shape} over the images, or changes their axis. Expected a "
            "matrix."
        )
    *rest, rows, columns = ("", *own) if len(own) > 1 else ("", "", own)
    before = "".join(rest)
    new = "z" if kernel.ndim > 1 else ""
    shared = before[len(before) - kernel.ndim + 2 :] if kernel.ndim > 2 else ""
    if comes_first:
        return _contract(call, kernel, own, f"{shared}{columns}{new}", f"{before}{rows}{new}")
    return _contract(call, kernel, own, f"{shared}{new}{rows}", f"{before}{new}{columns}")


def _terms(call: Call, equation: str, comes_first: bool) -> tuple[str, str, str]:
    """The letters of (tensor, constant, result), without that of the batch."""
    given, arrow, out = equation.replace(" ", "").partition("->")
    own, _, its = given.partition(",")
    own, its = (own, its) if comes_first else (its, own)
    spare = [a for a in string.ascii_uppercase if a not in equation]
    dots = "".join(spare[: len(call.input_shapes[0]) + 1 - len(own.replace("...", ""))])
    own, out = own.replace("...", dots), out.replace("...", dots)
    plain = arrow and "." not in its and out[:1] == own[:1] and own[:1] not in its
    if not plain or any(len(set(term)) < len(term) for term in (own, its, out)):
        raise UnsupportedLayer(
            f"layer '{call.name}' has the equation '{equation}'; expected one with '->' that keeps "
            "the batch first, and no letter twice in one term."
        )
    return own[1:], its, out[1:]


def _contract(call: Call, kernel: np.ndarray, own: str, its: str, out: str) -> int:
    """The sum of tensor times kernel over the letters that `out` has not, as a layer with a kernel.

    Args:
        own, its, out: the axes of tensor, kernel and result, a letter each.
    """
    h, sizes = call.inputs[0], dict(zip(own, call.input_shapes[0], strict=True))
    alone = tuple(i for i, c in enumerate(its) if c not in own and c not in out)
    kernel, its = kernel.sum(alone), "".join(c for c in its if c in own or c in out)
    for letter, size in zip(its, kernel.shape, strict=True):
        if sizes.setdefault(letter, size) != size:
            raise UnsupportedLayer(
                f"operation '{call.name}' repeats a constant of shape {kernel.shape}, or rows of "
                f"shape {call.input_shapes[0]}, along an axis. Repeat them before."
            )
    free = "".join(c for c in out if c in own and c not in its)
    groups = "".join(c for c in out if c in own and c in its)  # each with a kernel of its own
    summed = "".join(c for c in own if c not in out)
    new = "".join(c for c in out if c not in own)

    def shape(letters: str) -> Shape:
        return tuple(sizes[c] for c in letters)

    letters = groups + summed + new
    kernel = kernel.transpose([its.index(c) for c in letters if c in its])
    kernel = kernel.reshape([sizes[c] if c in its else 1 for c in letters])
    kernel = np.broadcast_to(kernel, shape(letters))
    h = _arranged(call, h, own, free + groups + summed)
    if not summed and not new:
        h = call.add(p.Scale(np.array(kernel)), [h], shape(free + groups))
        return _arranged(call, h, free + groups, out)
    rows, (g, k, o) = shape(free), (math.prod(shape(part)) for part in (groups, summed, new))
    flat: Shape
    found: Shape
    if groups:
        flat, found = (math.prod(rows), g * k), (math.prod(rows), g * o)
        kernel = kernel.reshape(g, k, o).swapaxes(0, 1).reshape(1, k, g * o)
        layer: p.Primitive = p.Conv(kernel, (1,), "VALID", (1,), g, flat)
    else:
        flat, found = (*rows, k), (*rows, o)
        layer = p.Dense(kernel.reshape(k, o))
    h = call.add(layer, [reshaped(call, h, flat)], found)
    return _arranged(call, reshaped(call, h, shape(free + groups + new)), free + groups + new, out)


def _arranged(call: Call, h: int, own: str, out: str) -> int:
    """The node with its axes in another order."""
    if own == out:
        return h
    order = tuple(own.index(c) for c in out)
    return call.add(p.Permute(order), [h], tuple(call.graph.nodes[h].shape[a] for a in order))
