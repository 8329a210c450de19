"""More pieces of diagrams: nodes, stacks of feature maps, slices of vectors.

Colours mean the same in the whole book: blue is the image, orange a bias, green a kernel,
vermilion what an adjoint carries back.
"""

from __future__ import annotations

import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Circle, Rectangle

from adjoint_book.figures.drawing import blank, tint
from adjoint_book.figures.style import GREY, INK

Point = tuple[float, float]

RADIUS = 0.2  # of a node
PLUS = 0.14  # radius of a circled plus


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
