"""The equivalent network as a graph: sources (the image, slices of x_b) and frozen-linear nodes."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace

import numpy as np

from adjoint_lib.core.primitives import Primitive, Sum

Shape = tuple[int, ...]
Order = list[tuple[int, list[int]]]  # nodes, each with those that nothing reads after it
IMAGE = 0  # the image is always the first node


@dataclass(frozen=True, kw_only=True)
class Source:
    """A part of v = [x; x_b]: the image itself, or a `Bias`.

    Attributes:
        origin: where it comes from.
        rounds: a dtype that the image is rounded to before it is read, if the model does so.
    """

    origin: str
    rounds: str | None = None


@dataclass(frozen=True, kw_only=True)
class Bias(Source):
    """A part of x_b: a bias, or constants of an activation.

    Attributes:
        values: the numbers.
        size: the sum of |terms| that each was added up from, at least |values|.
    """

    values: np.ndarray
    size: np.ndarray


@dataclass(frozen=True)
class Node:
    """A source, or a primitive applied to earlier nodes. `shape` is that of one row.

    `holds` names the outputs of the model's layers that are the node's value.
    """

    name: str
    shape: Shape
    inputs: tuple[int, ...] = ()
    primitive: Primitive | None = None
    source: Source | None = None
    holds: tuple[str, ...] = ()

    @property
    def operation(self) -> Primitive:
        """The primitive of a node that is no source."""
        if self.primitive is None:
            raise AssertionError(f"node '{self.name}' is a source and computes nothing.")
        return self.primitive

    @property
    def is_bias(self) -> bool:
        """Whether it is a part of x_b."""
        return isinstance(self.source, Bias)

    @property
    def bias(self) -> Bias:
        """The source of a node that is a part of x_b."""
        if not isinstance(self.source, Bias):
            raise AssertionError(f"node '{self.name}' is no part of x_b.")
        return self.source


@dataclass
class Graph:
    """Nodes in an order in which each comes after its inputs, and which of them are outputs."""

    nodes: list[Node] = field(default_factory=list)
    outputs: list[int] = field(default_factory=list)

    def image(self, shape: Shape, rounds: str | None = None) -> int:
        """Add the image; it must be the first node."""
        return self._append(
            Node("image", shape, source=Source(origin="the input x", rounds=rounds))
        )

    def add(self, name: str, primitive: Primitive, inputs: Iterable[int], shape: Shape) -> int:
        """Add a primitive; returns the new node's number."""
        return self._append(Node(name, tuple(shape), tuple(inputs), primitive))

    def source(
        self, name: str, origin: str, values: np.ndarray, size: np.ndarray | None = None
    ) -> int:
        """Add a slice of x_b with these values, of any shape that broadcasts where it is read."""
        values = np.asarray(values, float)
        size = np.abs(values) if size is None else size
        bias = Bias(origin=origin, values=values, size=size)
        return self._append(Node(name, values.shape, source=bias))

    def bias(
        self, name: str, h: int, values: np.ndarray, origin: str, size: np.ndarray | None = None
    ) -> int:
        """Add h + b, with b a new slice of x_b; its values broadcast against one row of h."""
        shape = self.nodes[h].shape
        size = None if size is None else self.aligned(size, h)
        b = self.source(name, origin, self.aligned(values, h), size)
        total = Sum((1.0, 1.0), (shape, self.nodes[b].shape))
        return self.add(name, total, (h, b), shape)

    def aligned(self, values: np.ndarray, h: int) -> np.ndarray:
        """The values with as many axes as node h, so that rows do not mix with entries."""
        values = np.asarray(values, float)
        return values.reshape((1,) * (len(self.nodes[h].shape) - values.ndim) + values.shape)

    def bias_of(self, number: int) -> Node | None:
        """The source b if this node is h + b, otherwise None."""
        node = self.nodes[number]
        if not isinstance(node.primitive, Sum) or node.primitive.coefficients != (1.0, 1.0):
            return None
        h, b = (self.nodes[i] for i in node.inputs)
        return b if b.is_bias and node.shape == h.shape else None

    def hold(self, number: int, *names: str) -> int:
        """Note that the node's value is also what these layers of the model give."""
        node = self.nodes[number]
        self.nodes[number] = replace(node, holds=(*node.holds, *names))
        return number

    @contextlib.contextmanager
    def holding_nothing(self) -> Iterator[None]:
        """While this lasts, no node is noted to be what a layer gives."""
        before = {number: node.holds for number, node in enumerate(self.nodes)}
        yield
        self.nodes = [replace(n, holds=before.get(i, ())) for i, n in enumerate(self.nodes)]

    def consumers(self) -> Counter[int]:
        """How many times each node is read, counting the outputs."""
        counts = Counter(self.outputs)
        for node in self.nodes:
            counts.update(node.inputs)
        return counts

    def pruned(self) -> Graph:
        """The same graph without the nodes that no output needs; the image always stays."""
        needed = {IMAGE, *self.outputs}
        for number in reversed(range(len(self.nodes))):
            if number in needed:
                needed.update(self.nodes[number].inputs)
        order = sorted(needed)
        renamed = {old: new for new, old in enumerate(order)}
        nodes = [
            replace(self.nodes[old], inputs=tuple(renamed[i] for i in self.nodes[old].inputs))
            for old in order
        ]
        return Graph(nodes, [renamed[o] for o in self.outputs])

    def plan(self, wanted: frozenset[int]) -> Order:
        """The nodes that `wanted` depend on, each with those that nothing reads after it."""
        needed = set(wanted)
        for number in range(max(wanted), -1, -1):
            if number in needed:
                needed.update(self.nodes[number].inputs)
        order = sorted(needed)
        last = {i: number for number in order for i in (number, *self.nodes[number].inputs)}
        return [(n, [i for i, reader in last.items() if reader == n]) for n in order]

    def _append(self, node: Node) -> int:
        self.nodes.append(node)
        return len(self.nodes) - 1
