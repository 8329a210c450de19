"""Draws the overview: forward through the frozen network, and back by its adjoint.

Run it as a script; it writes overview.svg and overview.png beside itself. The drawing sits on a
white card of its own, so it reads the same on a light page and on a dark one.
"""

from pathlib import Path

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch

# The Okabe-Ito palette, which colour-blind readers can tell apart.
BLUE, ORANGE, GREEN, VERMILION = "#0072B2", "#E69F00", "#009E73", "#D55E00"
INK, PALE = "#222222", "#F4F4F4"
WIDTH, HEIGHT = 10.0, 4.9


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


def heading(ax: Axes, y: float, text: str, colour: str) -> None:
    """The name of a row, above its left end."""
    ax.text(0.36, y, text, fontsize=12.5, color=colour, weight="bold", va="center")


def arrow(
    ax: Axes, start: tuple[float, float], end: tuple[float, float], colour: str, style: str = "-"
) -> None:
    """An arrow from `start` to `end`."""
    ax.add_patch(
        FancyArrowPatch(
            start,
            end,
            arrowstyle="-|>",
            mutation_scale=16,
            linewidth=2,
            linestyle=style,
            color=colour,
            shrinkA=0,
            shrinkB=0,
        )
    )


def draw() -> plt.Figure:
    """The whole picture: value row above, adjoint row below, the identity under both."""
    figure = plt.figure(figsize=(WIDTH, HEIGHT))
    ax = figure.add_axes((0, 0, 1, 1))
    ax.set(xlim=(0, WIDTH), ylim=(0, HEIGHT))
    ax.axis("off")
    ax.add_patch(
        FancyBboxPatch(
            (0.05, 0.05),
            WIDTH - 0.1,
            HEIGHT - 0.1,
            boxstyle="round,pad=0,rounding_size=0.2",
            facecolor="white",
            edgecolor="#C8C8C8",
            linewidth=1,
        )
    )

    top, bottom, split = 3.72, 1.88, 0.31

    heading(ax, top + 0.86, "Forward: the unit's value", INK)
    box(ax, (1.45, top + split), (2.2, 0.56), r"image  $x$", BLUE)
    box(ax, (1.45, top - split), (2.2, 0.56), r"all biases  $x_b$", ORANGE)
    arrow(ax, (2.6, top), (3.7, top), INK)
    ax.text(3.13, top + 0.2, r"$v=[x;\,x_b]$", ha="center", fontsize=12, color=INK)
    box(ax, (4.95, top), (2.5, 1.18), "frozen network\n" + r"$F(v)=J\,v$", INK, PALE)
    arrow(ax, (6.2, top), (7.15, top), INK)
    ax.text(6.65, top + 0.2, r"$J\,v$", ha="center", fontsize=12, color=INK)
    box(ax, (8.4, top), (2.5, 1.18), "unit\n" + r"$c=\langle J\,v,\ w\rangle$", GREEN)
    arrow(ax, (8.4, top - 0.59), (8.4, bottom + 0.59), GREEN, (0, (3, 2)))
    ax.text(8.52, (top + bottom) / 2, "its kernel", fontsize=11, color=INK, va="center")

    heading(ax, bottom + 0.86, "Backward: the adjoint", VERMILION)
    box(ax, (8.4, bottom), (2.5, 1.18), r"kernel  $w$", GREEN)
    arrow(ax, (7.15, bottom), (6.2, bottom), VERMILION)
    ax.text(6.68, bottom + 0.2, "$w$", ha="center", fontsize=12, color=INK)
    box(ax, (4.95, bottom), (2.5, 1.18), r"adjoint  $J^{*}$", VERMILION, PALE)
    arrow(ax, (3.7, bottom), (2.6, bottom), VERMILION)
    ax.text(3.18, bottom + 0.2, r"$H=J^{*}w$", ha="center", fontsize=12, color=INK)
    box(ax, (1.45, bottom + split), (2.2, 0.56), r"$H_I$,  like the image", BLUE)
    box(ax, (1.45, bottom - split), (2.2, 0.56), r"$H_b$,  like the biases", ORANGE)

    # The identity, with an underline in the colour of the boxes each term multiplies.
    ax.text(3.0, 0.66, r"$c\;\;=$", ha="center", va="center", fontsize=19, color=INK)
    for x, term, colour in (
        (4.35, r"$\langle\, x \,|\, H_I \,\rangle$", BLUE),
        (6.45, r"$\langle\, x_b \,|\, H_b \,\rangle$", ORANGE),
    ):
        ax.text(x, 0.66, term, ha="center", va="center", fontsize=19, color=INK)
        ax.plot([x - 0.75, x + 0.75], [0.36, 0.36], color=colour, linewidth=3.5)
    ax.text(5.4, 0.66, "$+$", ha="center", va="center", fontsize=19, color=INK)
    return figure


def main() -> None:
    # The fixed salt and the missing date keep the file the same from run to run.
    plt.rcParams.update({"mathtext.fontset": "cm", "svg.hashsalt": "overview"})
    figure = draw()
    here = Path(__file__).resolve().parent
    figure.savefig(here / "overview.svg", transparent=True, metadata={"Date": None})
    figure.savefig(here / "overview.png", transparent=True, dpi=160)


if __name__ == "__main__":
    main()
