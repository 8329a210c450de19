"""The paper's diagrams of the theory: one neuron three ways, the equivalent CNN, and folding."""

from __future__ import annotations

from itertools import pairwise

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from adjoint_book.figures.drawing import arrow, box
from adjoint_book.figures.pieces import (
    PLUS,
    RADIUS,
    Point,
    canvas,
    heading,
    node,
    plus,
    rule,
    slab,
    stack,
    write,
)
from adjoint_book.figures.registry import figure
from adjoint_book.figures.style import BLUE, GREEN, INK, ORANGE, PALE, VERMILION, WIDTH


@figure("two-ways")
def two_ways() -> Figure:
    """A cost found twice: the order goes forward to the prices, or the prices go back to it."""
    drawing, ax = canvas(WIDTH, 2.75)
    left, right, top, bottom, size = 1.25, 5.15, 2.3, 1.2, (2.3, 0.62)
    box(ax, (left, top), size, "order $u$\ncakes, loaves", BLUE, fontsize=11)
    box(ax, (right, top), size, "ingredients $Au$\neggs, flour, sugar", INK, fontsize=11)
    box(ax, (right, bottom), size, "their prices $w$", GREEN, fontsize=11)
    box(ax, (left, bottom), size, "prices of products $A^{*}w$", VERMILION, fontsize=11)
    arrow(ax, (left + 1.15, top), (right - 1.15, top), INK, 0.06, 0.04)
    write(ax, ((left + right) / 2, top + 0.18), "$A$", 14)
    arrow(ax, (right - 1.15, bottom), (left + 1.15, bottom), VERMILION, 0.06, 0.04)
    write(ax, ((left + right) / 2, bottom + 0.18), "$A^{*}$", 14)
    for x, text in (
        (left, r"$\langle u \mid A^{*}w \rangle$"),
        (right, r"$\langle Au \mid w \rangle$"),
    ):
        write(ax, (x, (top + bottom) / 2), "times", 11)
        write(ax, (x, 0.35), text, 15)
    write(ax, ((left + right) / 2, 0.35), "=  11  =", 15)
    return drawing


# ------------------------------------------------------------------ the paper's Fig. 1


@figure("one-neuron")
def one_neuron() -> Figure:
    """The paper's Fig. 1: a neuron with its bias as a shift, as a weight, and as an input."""
    drawing, ax = canvas(WIDTH, 2.6)
    third = WIDTH / 3
    for i, draw in enumerate((_shift, _weight, _input)):
        s = (i * third + 1.25, 1.25)
        draw(ax, s)
        for j, y in enumerate((2.0, 1.25)):
            x = (i * third + 0.3, y)
            _weighted(ax, x, s, f"$w_{j}$", GREEN, (0.06, 0.2 - 0.06 * j))
            node(ax, x, f"$x_{j}$", BLUE)
        n = (s[0] + 0.62, s[1])
        arrow(ax, s, n, INK, RADIUS, RADIUS)
        node(ax, s, "$s$", INK, PALE)
        node(ax, n, "$n$", INK, PALE)
    for i, kind in enumerate(("a shift", "a weight", "an input")):
        write(ax, ((i + 0.5) * third, 2.44), f"bias as {kind}", 11.5)
    for x in (third, 2 * third):
        rule(ax, (x, 0.15), (x, 2.55))
    return drawing


def _shift(ax: Axes, s: Point) -> None:
    at = s[0], 0.42
    arrow(ax, at, s, ORANGE, RADIUS, RADIUS)
    node(ax, at, "$b$", ORANGE)


def _weight(ax: Axes, s: Point) -> None:
    at = s[0] - 0.95, 0.42
    _weighted(ax, at, s, "$w_2=b$", ORANGE, (0.44, -0.16))
    node(ax, at, "$1$", INK)


def _input(ax: Axes, s: Point) -> None:
    at = s[0] - 0.95, 0.42
    _weighted(ax, at, s, "$w_2=1$", INK, (0.44, -0.16))
    node(ax, at, "$b$", ORANGE)


def _weighted(ax: Axes, start: Point, end: Point, text: str, colour: str, offset: Point) -> None:
    """An arrow between two nodes with a weight beside its middle."""
    arrow(ax, start, end, colour, RADIUS, RADIUS)
    middle = (start[0] + end[0]) / 2 + offset[0], (start[1] + end[1]) / 2 + offset[1]
    write(ax, middle, text, color=colour)


# ------------------------------------------------------------------ the paper's Fig. 2


@figure("equivalent-cnn")
def equivalent_cnn() -> Figure:
    """The paper's Fig. 2: a CNN with four biases, and its equivalent over [x; x_b]."""
    drawing, ax = canvas(WIDTH, 4.9)
    top, bottom = 3.55, 1.4
    heading(ax, (0.08, 4.75), "trained network")
    heading(ax, (0.08, 2.25), "equivalent network")
    rule(ax, (0.08, 2.5), (WIDTH - 0.08, 2.5))
    for i, x in enumerate(_cnn(ax, top)):
        arrow(ax, (x, top + 0.78), (x, top), ORANGE, RADIUS, PLUS)
        node(ax, (x, top + 0.78), f"$b_{i}$", ORANGE)
    _biases(ax, 0.28, bottom, _cnn(ax, bottom))
    return drawing


def _cnn(ax: Axes, y: float) -> list[float]:
    """Image, three convolutions, pool, dense layer at height y; returns where biases are added."""
    sums: list[float] = []
    stack(ax, (0.36, y), 0.5, 3, BLUE, "$x$")
    at = 0.74
    for i, (size, sheets) in enumerate(((0.42, 3), (0.34, 4), (0.24, 5))):
        at = _layer(ax, at, y, f"$w_{i}$", sums)
        stack(ax, (at + size / 2, y), size, sheets, INK)
        at += size + 0.05 * (sheets - 1)
    arrow(ax, (at - 0.03, y), (at + 0.2, y), INK)
    _column(ax, at + 0.2, y, 0.6, "pool")
    at = _layer(ax, at + 0.32, y, "$w_3$", sums)
    _column(ax, at, y, 0.44, "scores")
    return sums


def _layer(ax: Axes, start: float, y: float, kernel: str, sums: list[float]) -> float:
    """Kernel, circled plus, activation, from x = start on; returns where the last arrow ends."""
    middle = start + 0.45
    arrow(ax, (start, y), (middle, y), GREEN, 0, PLUS)
    write(ax, (start + 0.16, y + 0.16), kernel, color=GREEN)
    plus(ax, (middle, y))
    arrow(ax, (middle, y), (middle + 0.41, y), INK, PLUS)
    write(ax, (middle + 0.24, y + 0.14), r"$\sigma$")
    sums.append(middle)
    return middle + 0.41


def _column(ax: Axes, x: float, y: float, height: float, text: str) -> None:
    """A vector, drawn upright with its name below."""
    slab(ax, x, x + 0.12, y, height, INK)
    write(ax, (x + 0.06, y - 0.46), text, 10.5)


def _biases(ax: Axes, y: float, row: float, sums: list[float]) -> None:
    """x_b below the equivalent network, with a lead from each slice up to its layer."""
    between = [(a + b) / 2 + 0.1 for a, b in pairwise(sums)]
    edges = [0.74, *between, WIDTH - 0.08]
    for i, x in enumerate(sums):
        slab(ax, edges[i], edges[i + 1], y, 0.38, ORANGE)
        write(ax, (x, y), f"$b_{i}$")
        arrow(ax, (x, y + 0.19), (x, row), ORANGE, 0, PLUS)
        write(ax, (x + 0.05, y + 0.38), f"$x_b[b_{i}]$", 11, ha="left")
    write(ax, (0.36, y), "$x_b$", 15)
    write(ax, (0.36, (row + y) / 2 + 0.02), "$v=$\n$[x;\\,x_b]$", 12)


# ------------------------------------------------------------------ the paper's Fig. 4


@figure("batch-norm")
def batch_norm() -> Figure:
    """The paper's Fig. 4: batch normalisation in five steps, and folded into kernel and bias."""
    drawing, ax = canvas(WIDTH, 3.1)
    top, bottom, end = 2.25, 0.75, 0.72
    heading(ax, (0.08, top + 0.66), "as trained, Eq. (6)")
    heading(ax, (0.08, bottom + 0.66), "folded, Eq. (7)")
    box(ax, (0.4, top), (0.64, 0.5), "$x_{l-1}$", INK)
    for x, width, text, colour in (
        (1.36, 0.72, r"$\circledast\, w$", GREEN),
        (2.34, 0.68, r"$-\,\mu$", ORANGE),
        (3.48, 1.12, r"$\div\sqrt{\sigma^2+\epsilon}$", GREEN),
        (4.6, 0.68, r"$\times\,\gamma$", GREEN),
        (5.5, 0.68, r"$+\,\beta$", ORANGE),
    ):
        arrow(ax, (end, top), (x - width / 2, top), INK)
        box(ax, (x, top), (width, 0.5), text, colour)
        end = x + width / 2
    arrow(ax, (end, top), (WIDTH - 0.08, top), INK)
    box(ax, (0.4, bottom), (0.64, 0.5), "$x_{l-1}$", INK)
    arrow(ax, (0.72, bottom), (1.3, bottom), INK)
    w = r"$\circledast\;\;\dfrac{\gamma\, w}{\sqrt{\sigma^2+\epsilon}}$"
    b = r"$+\;\beta-\dfrac{\gamma\,\mu}{\sqrt{\sigma^2+\epsilon}}$"
    box(ax, (2.2, bottom), (1.8, 0.68), w, GREEN)
    arrow(ax, (3.1, bottom), (3.62, bottom), INK)
    box(ax, (4.7, bottom), (2.16, 0.68), b, ORANGE)
    arrow(ax, (5.78, bottom), (WIDTH - 0.08, bottom), INK)
    write(ax, (2.2, 0.2), "the new kernel $w'$", 11)
    write(ax, (4.7, 0.2), "$b'$, a slice of $x_b$", 11)
    return drawing
