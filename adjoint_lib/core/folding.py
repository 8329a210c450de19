"""Folding: batch normalisation and multipliers disappear into kernels and biases.

`batch_norm` is the paper's Eq. (7): BN is a scale followed by a bias. `fold` then moves
every scale into the kernel before it, where nothing else reads that kernel's output:

    conv -> scale          becomes  conv with w' = w * scale
    (h + b) -> scale       becomes  scale * h + b' with b' = b * scale
    scale -> scale         becomes  one scale
    (h + b1) + b2          becomes  h + (b1 + b2)
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from adjoint_lib.core.graph import Graph, Node
from adjoint_lib.core.primitives import Kernel, Primitive, Scale


def batch_norm(
    gamma: np.ndarray, beta: np.ndarray, mean: np.ndarray, variance: np.ndarray, epsilon: float
) -> tuple[np.ndarray, np.ndarray]:
    """BN(c) = scale * c + bias: returns (scale, bias), computed in float64.

    scale = gamma / sqrt(variance + epsilon), bias = beta - scale * mean.
    """
    gamma, beta, mean, variance = (np.asarray(p, float) for p in (gamma, beta, mean, variance))
    scale = gamma / np.sqrt(variance + epsilon)
    return scale, beta - scale * mean


def fold(graph: Graph) -> Graph:
    """The graph with every scale moved into the kernel before it, neighbouring biases merged."""
    readers = graph.consumers()
    folded = Graph()
    moved: dict[int, int] = {}
    private: set[int] = set()  # nodes of `folded` that have a single reader, so they may be changed
    for number, node in enumerate(graph.nodes):
        inputs = tuple(moved[i] for i in node.inputs)
        new = _emit(folded, replace(node, inputs=inputs), private)
        moved[number] = new
        if readers[number] == 1:
            private.add(new)
        else:
            private.discard(new)
    folded.outputs = [moved[o] for o in graph.outputs]
    return folded.pruned()


def _emit(graph: Graph, node: Node, private: set[int]) -> int:
    """Append `node`, or change what is before it to the same effect; returns where its value is."""
    if isinstance(node.primitive, Scale) and node.inputs[0] in private:
        return _emit_scale(graph, node, node.primitive, private)
    graph.nodes.append(node)
    last = len(graph.nodes) - 1
    if graph.bias_of(last) is not None and node.inputs[0] in private:
        return _merge_biases(graph, last)
    return last


def _emit_scale(graph: Graph, node: Node, scale: Scale, private: set[int]) -> int:
    """Append a scale whose input nobody else reads."""
    before = node.inputs[0]
    factor = scale.factor
    earlier = graph.nodes[before]
    merged: Primitive | None = None
    if isinstance(earlier.primitive, Kernel) and _is_per_channel(factor):
        merged = earlier.primitive.scaled(factor.reshape(-1))
    elif isinstance(earlier.primitive, Scale):
        merged = Scale(np.asarray(earlier.primitive.factor * factor))
    if merged is not None:
        graph.nodes[before] = replace(earlier, primitive=merged, holds=node.holds)
        return before
    bias = graph.bias_of(before)
    if bias is not None:
        h = _emit(graph, replace(node, inputs=earlier.inputs[:1], holds=()), private)
        b, size = bias.bias, bias.bias.size * np.abs(factor)
        total = graph.bias(bias.name, h, b.values * factor, b.origin, size)
        return graph.hold(total, *node.holds)
    graph.nodes.append(node)
    return len(graph.nodes) - 1


def _merge_biases(graph: Graph, last: int) -> int:
    """(h + b1) + b2, just appended, as h + (b1 + b2); anything else stays."""
    before = graph.nodes[last].inputs[0]
    first, second = graph.bias_of(before), graph.bias_of(last)
    if first is None or second is None:
        return last
    name = f"{first.name}+{second.name}"
    origin = f"{first.bias.origin}; {second.bias.origin}"
    h, size = graph.nodes[before].inputs[0], first.bias.size + second.bias.size
    total = graph.bias(name, h, first.bias.values + second.bias.values, origin, size)
    return graph.hold(total, *graph.nodes[last].holds)


def _is_per_channel(factor: np.ndarray) -> bool:
    """Whether the factor differs at most along the last axis, the channels."""
    return factor.size == 1 or factor.size == factor.shape[-1]
