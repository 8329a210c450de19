"""Pieces of drawn diagrams: boxes, arrows, words, on axes measured in inches."""

from __future__ import annotations

from typing import TYPE_CHECKING

from matplotlib.colors import to_rgb
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch

from adjoint_book.figures.style import INK

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


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
    fill: str = "white",
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
