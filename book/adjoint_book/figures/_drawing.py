"""Pieces of drawn diagrams: boxes, arrows, words, nodes, stacks, on axes measured in inches.

Colours mean the same in the whole book: blue is the image, orange a bias, green a kernel,
vermilion what an adjoint carries back.
"""

from __future__ import annotations

import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.patches import Circle, FancyArrowPatch, FancyBboxPatch, Rectangle

from adjoint_book.figures._style import GREY, INK

Point = tuple[float, float]

RADIUS = 0.2  # of a node
PLUS = 0.14  # radius of a circled plus


def blank(drawn: Figure, width: float, height: float) -> Axes:
    """Axes without any frame over the whole figure, one unit to the inch."""
    ax = drawn.add_axes((0, 0, 1, 1))
    ax.set(xlim=(0, width), ylim=(0, height))
    ax.axis("off")
    return ax


def box(
    ax: Axes,
    centre: tuple[float, float],
    size: tuple[float, float],
    text: str,
    edge: str,
    fill: str | tuple[float, ...] = "white",
    fontsize: float = 13,
) -> None:
    """A rounded box with its text in the middle."""
    (x, y), (width, height) = centre, size
    ax.add_patch(
        FancyBboxPatch(
            (x - width / 2, y - height / 2),
            width,
            height,
            boxstyle="round,pad=0,rounding_size=0.09",
            facecolor=fill,
            edgecolor=edge,
            linewidth=1.8,
        )
    )
    ax.text(x, y, text, ha="center", va="center", fontsize=fontsize, color=INK, linespacing=1.45)


def arrow(
    ax: Axes,
    start: tuple[float, float],
    end: tuple[float, float],
    colour: str,
    before: float = 0,
    after: float = 0,
    head: float = 12,
    style: str | tuple = "-",
) -> None:
    """An arrow that begins `before` inches after its start and ends `after` before its end."""
    ax.add_patch(
        FancyArrowPatch(
            start,
            end,
            arrowstyle="-|>",
            mutation_scale=head,
            linewidth=1.8,
            linestyle=style,
            color=colour,
            shrinkA=72 * before,
            shrinkB=72 * after,
        )
    )


def tint(colour: str, share: float = 0.18) -> tuple[float, ...]:
    """The colour mixed with white."""
    return tuple(1 - share * (1 - channel) for channel in to_rgb(colour))


def canvas(width: float, height: float) -> tuple[Figure, Axes]:
    """A figure with one bare axes that fills it; coordinates are inches."""
    figure = plt.figure(figsize=(width, height), layout="none")
    return figure, blank(figure, width, height)


def write(ax: Axes, at: Point, text: str, size: float = 13, **options) -> None:
    """Text centred at a point."""
    settings = {"ha": "center", "va": "center", "color": INK, **options}
    ax.text(*at, text, fontsize=size, zorder=5, **settings)


def heading(ax: Axes, at: Point, text: str, colour: str = INK) -> None:
    """The name of a part of the diagram, in bold, beginning at a point."""
    write(ax, at, text, 12, ha="left", weight="bold", color=colour)


def node(ax: Axes, at: Point, text: str, edge: str, fill: str = "white") -> None:
    """A circle with a symbol in it."""
    ax.add_patch(Circle(at, RADIUS, facecolor=fill, edgecolor=edge, linewidth=1.8, zorder=3))
    write(ax, at, text)


def plus(ax: Axes, at: Point) -> None:
    """A circled plus: what comes in is added up."""
    ax.add_patch(Circle(at, PLUS, facecolor="white", edgecolor=INK, linewidth=1.4, zorder=3))
    for dx, dy in ((0.08, 0), (0, 0.08)):
        ax.plot([at[0] - dx, at[0] + dx], [at[1] - dy, at[1] + dy], color=INK, lw=1.4, zorder=4)


def slab(ax: Axes, left: float, right: float, y: float, height: float, edge: str) -> None:
    """A tinted rectangle: a vector, or a slice of one."""
    corner = left, y - height / 2
    ax.add_patch(
        Rectangle(
            corner, right - left, height, facecolor=_paper(edge), edgecolor=edge, linewidth=1.6
        )
    )


def stack(ax: Axes, at: Point, size: float, sheets: int, edge: str, text: str = "") -> None:
    """A pile of square sheets, the nearest at a point: the channels of an image or a map."""
    for sheet in reversed(range(sheets)):
        corner = (at[0] - size / 2 + 0.05 * sheet, at[1] - size / 2 + 0.05 * sheet)
        ax.add_patch(
            Rectangle(corner, size, size, facecolor=_paper(edge), edgecolor=edge, linewidth=1.3)
        )
    write(ax, at, text, 15)


def rule(ax: Axes, start: Point, end: Point) -> None:
    """A thin grey line between parts of a diagram."""
    ax.plot(*zip(start, end, strict=True), color=GREY, linewidth=0.8, alpha=0.6)


def _paper(edge: str) -> tuple[float, ...]:
    """The pale filling that goes with the colour of an edge."""
    return tint(edge, 0.05 if edge == INK else 0.13)
