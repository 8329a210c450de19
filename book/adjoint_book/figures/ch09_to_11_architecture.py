"""The paper's three networks block by block, drawn from their equivalent networks.

The graph of the equivalent network is followed from its output to the image: convolutions,
activations and pools make the path, each bias enters it at a plus, and each shortcut leaves it and
comes back at a sum.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from adjoint_book.figures._drawing import arrow, blank, box, plus, tint, write
from adjoint_book.figures._registry import figure
from adjoint_book.figures._style import BLUE, GREEN, GREY, INK, ORANGE, PURPLE, SMALL, WIDTH

if TYPE_CHECKING:
    from adjoint_lib.core.graph import Graph

LINE = 1.2  # inches from one line of the picture to the next
BELOW = 0.42  # from the path down to the biases
ABOVE = 0.4  # from the path up to a shortcut
START, END = 0.3, 5.35  # where a line of the path begins and ends
WIDTHS = {"conv": 0.94, "dense": 0.94, "slope": 0.5, "pool": 0.94, "bias": 0.34, "sum": 0.34}


@dataclass
class Piece:
    """A piece of the path: what it is, what is written on it, and the bias that enters there."""

    kind: str  # a key of WIDTHS
    text: str
    number: int  # of its node
    bias: str = ""
    skip_from: int = -1  # of a sum: the node its shortcut comes from
    on_skip: str = ""  # and what happens on the way


@dataclass
class Row:
    """A line of the picture, and the shape at its end."""

    pieces: list[Piece] = field(default_factory=list)
    shape: tuple[int, ...] = ()


@figure("architecture-vgg7")
def architecture_vgg7() -> Figure:
    """VGG7 from the live model: convolutions, pools, and where each bias enters."""
    return _drawn("vgg7")


@figure("architecture-resnet20")
def architecture_resnet20() -> Figure:
    """ResNet20 from the live model: nine blocks with shortcuts, and where each bias enters."""
    return _drawn("resnet20")


@figure("architecture-resnet20-fixup")
def architecture_resnet20_fixup() -> Figure:
    """ResNet20-Fixup from the live model: nine blocks, and where its 37 scalars enter."""
    return _drawn("resnet20-fixup")


def _drawn(model: str) -> Figure:
    import matplotlib.pyplot as plt

    from adjoint_lib.experiments import models
    from adjoint_lib.frontend.equivalent import equivalent

    net = equivalent(models.build(model))
    slices = {source.node: f"{source.start}:{source.stop}" for source in net.sources}
    rows = rows_of(net.graph, slices)
    height = LINE * len(rows) + 0.2
    drawing = plt.figure(figsize=(WIDTH, height), layout="none")
    ax = blank(drawing, WIDTH, height)
    sizes = " × ".join(map(str, net.input_shape))
    write(ax, (START - 0.15, height - 0.16), f"image $x$, {sizes}", SMALL, ha="left", color=BLUE)
    biases = f"orange: biases, the {net.x_b.size:,} entries of $x_b$"
    write(ax, (WIDTH - 0.1, height - 0.16), biases, SMALL, ha="right")
    blocks = 0
    for n, row in enumerate(rows):
        y = height - 0.82 - LINE * n
        has_sum = any(piece.kind == "sum" for piece in row.pieces)
        _row(ax, row, y, f"block {blocks}" if has_sum else "")
        blocks += has_sum
        if n + 1 < len(rows):
            _turn(ax, y)
    arrow(ax, (START - 0.15, height - 0.26), (START - 0.15, height - 0.82), BLUE, head=0.1)
    return drawing


# ------------------------------------------------------------------ from the graph


def rows_of(graph: Graph, slices: dict[int, str]) -> list[Row]:
    """The path through a network in lines: one for each block, or up to each pool.

    Args:
        graph: of the equivalent network, with one output.
        slices: of x_b, by the node of each source.
    """
    path = _path(graph)
    pieces = [_piece(graph, number, slices) for number in path]
    origins = {piece.skip_from for piece in pieces if piece.kind == "sum"}
    rows, before = [Row()], ""
    for piece in pieces:
        node = graph.nodes[piece.number]
        if piece.text == "mean":
            rows.append(Row())
        rows[-1].pieces.append(piece)
        rows[-1].shape = node.shape
        ends = piece.kind == "slope" and (before == "sum" or piece.number in origins)
        if ends or (piece.kind == "pool" and piece.text != "mean"):
            rows.append(Row())
        before = piece.kind
    return [row for row in rows if row.pieces]


def _path(graph: Graph) -> list[int]:
    """From the image's first reader to the output, along the first input of each node."""
    (number,) = graph.outputs
    path = []
    while graph.nodes[number].inputs:
        path.append(number)
        number = graph.nodes[number].inputs[0]
    return path[::-1]


def _piece(graph: Graph, number: int, slices: dict[int, str]) -> Piece:
    from adjoint_lib.core import primitives

    node = graph.nodes[number]
    operation = node.operation
    if graph.bias_of(number):
        source = node.inputs[1]
        name = graph.nodes[source].name
        return Piece("bias", "+", number, f"{_named(name, 'b')} [{slices[source]}]")
    if isinstance(operation, primitives.Sum):
        origin, words = _skip(graph, node.inputs[1])
        return Piece("sum", "+", number, skip_from=origin, on_skip=words)
    if isinstance(operation, primitives.Conv):
        rows, columns, before, after = operation.kernel.shape
        by = f", /{operation.strides[0]}" if operation.strides[0] > 1 else ""
        times = next((name for name in node.holds if name.startswith("m")), "")
        named = f"{_named(node.name, 'conv')} · {times}" if times else _named(node.name, "conv")
        return Piece("conv", f"{named}\n{rows}×{columns}{by}\n{before} → {after}", number)
    if isinstance(operation, primitives.Dense):
        before, after = operation.kernel.shape
        return Piece("dense", f"{node.name}\n{before} → {after}", number)
    if isinstance(operation, primitives.Activation):
        return Piece("slope", "leaky\nReLU" if operation.slopes[0] else "ReLU", number)
    if isinstance(operation, primitives.AveragePool):
        window, step = operation.window[0], operation.strides[0]
        return Piece("pool", f"avg-pool\n{window}×{window}, /{step}", number)
    if isinstance(operation, primitives.Mean):
        return Piece("pool", "mean", number)
    raise AssertionError(f"no picture for {type(operation).__name__} '{node.name}'")


def _named(name: str, kind: str) -> str:
    """The name by its number: conv3, b3; a batch normalisation's bias has its layer's number."""
    digits = "".join(filter(str.isdigit, name))
    return f"{kind}{digits}" if digits else name


def _skip(graph: Graph, number: int) -> tuple[int, str]:
    """Where a shortcut leaves the path, and what happens on it."""
    from adjoint_lib.core import primitives

    words = []
    path = set(_path(graph))
    while number not in path:
        node = graph.nodes[number]
        if isinstance(node.operation, primitives.AveragePool):
            window, step = node.operation.window[0], node.operation.strides[0]
            words.append(f"avg-pool {window}×{window}, /{step}")
        elif isinstance(node.operation, primitives.Pad):
            added = sum(map(sum, node.operation.margins))
            words.append(f"{added} zero channels")
        else:
            words.append(type(node.operation).__name__.lower())
        number = node.inputs[0]
    return number, ", ".join(reversed(words)) or "identity"


# ------------------------------------------------------------------ on the page


def _row(ax: Axes, row: Row, y: float, block: str) -> None:
    sizes = [WIDTHS[piece.kind] for piece in row.pieces]
    room = END - START - 0.15 - sum(sizes)
    gap = min(0.26, room / len(sizes))
    x = START
    ends: dict[int, float] = {}  # of each node's piece
    ax.plot([START - 0.15, START], [y, y], color=INK, lw=1.4)
    for piece, size in zip(row.pieces, sizes, strict=True):
        x += gap
        centre = x + size / 2
        arrow(ax, (x - gap, y), (x if size > 0.4 else centre - 0.14, y), INK, head=7)
        if piece.kind in ("bias", "sum"):
            plus(ax, (centre, y))
            ax.plot([centre + 0.14, x + size], [y, y], color=INK, lw=1.4)
        if piece.kind == "bias":
            arrow(ax, (centre, y - BELOW + 0.09), (centre, y - 0.14), ORANGE, head=7)
            write(ax, (centre, y - BELOW), piece.bias, SMALL)
        if piece.kind == "sum":
            _shortcut(ax, piece, ends.get(piece.skip_from, START), centre, y, block)
        if size > 0.4:
            edge = {"conv": GREEN, "dense": GREEN, "slope": INK, "pool": PURPLE}[piece.kind]
            words = "global\nmean" if piece.text == "mean" else piece.text
            tall = 0.6 if piece.kind == "conv" else 0.4
            box(ax, (centre, y), (size, tall), words, edge, tint(edge, 0.1), SMALL)
        x += size
        ends[piece.number] = x
    ax.plot([x, END], [y, y], color=INK, lw=1.4)
    write(ax, (WIDTH - 0.1, y), _shape(row.shape), SMALL, ha="right")


def _shape(shape: tuple[int, ...]) -> str:
    if len(shape) == 1:
        return f"{shape[0]} classes"
    return "×".join(map(str, shape))


def _shortcut(ax: Axes, piece: Piece, start: float, end: float, y: float, block: str) -> None:
    """From where it leaves the path, over the block, into the sum."""
    top = y + ABOVE
    ax.plot([start, start, end], [y, top, top], color=GREY, lw=1.4)
    arrow(ax, (end, top), (end, y + 0.14), GREY, head=7)
    words = f"{block}: {piece.on_skip}"
    write(ax, (START, top + 0.1), words, SMALL, ha="left", color=INK)


def _turn(ax: Axes, y: float) -> None:
    """The way from the end of a line to the beginning of the next."""
    middle, left, below = y - BELOW - 0.13, START - 0.15, y - LINE
    ax.plot([END, END, left, left], [y, middle, middle, below], color=INK, lw=1.4)
