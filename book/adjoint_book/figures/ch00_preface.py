"""The figures of the first pages: the identity at a glance, and a map of the chapters."""

from __future__ import annotations

from typing import TYPE_CHECKING

from adjoint_book.figures._drawing import arrow, blank, box, heading, tint
from adjoint_book.figures._registry import figure
from adjoint_book.figures._style import BLUE, GREEN, INK, ORANGE, PALE, PURPLE, VERMILION

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@figure("overview")
def overview() -> Figure:
    """Forward through the frozen network to a unit, and back by the adjoint to H."""
    import matplotlib.pyplot as plt

    width, height = 10.0, 4.9
    # Drawn smaller than it is laid out, so that its words stay legible on a phone.
    drawn = plt.figure(figsize=(0.72 * width, 0.72 * height), layout="none")
    ax = blank(drawn, width, height)

    top, bottom, split = 3.72, 1.88, 0.31

    heading(ax, (0.36, top + 0.86), "Forward: the unit's value")
    box(ax, (1.45, top + split), (2.2, 0.56), r"image  $x$", BLUE)
    box(ax, (1.45, top - split), (2.2, 0.56), r"all biases  $x_b$", ORANGE)
    arrow(ax, (2.6, top), (3.7, top), INK, head=16)
    ax.text(3.13, top + 0.2, r"$v=[x;\,x_b]$", ha="center", fontsize=12, color=INK)
    box(ax, (4.95, top), (2.5, 1.18), "frozen network\n" + r"$F(v)=J\,v$", INK, PALE)
    arrow(ax, (6.2, top), (7.15, top), INK, head=16)
    ax.text(6.65, top + 0.2, r"$J\,v$", ha="center", fontsize=12, color=INK)
    box(ax, (8.4, top), (2.5, 1.18), "unit\n" + r"$c=\langle J\,v,\ w\rangle$", GREEN)
    arrow(ax, (8.4, top - 0.59), (8.4, bottom + 0.59), GREEN, head=16, style=(0, (3, 2)))
    ax.text(8.52, (top + bottom) / 2, "its kernel", fontsize=11, color=INK, va="center")

    heading(ax, (0.36, bottom + 0.86), "Backward: the adjoint", VERMILION)
    box(ax, (8.4, bottom), (2.5, 1.18), r"kernel  $w$", GREEN)
    arrow(ax, (7.15, bottom), (6.2, bottom), VERMILION, head=16)
    ax.text(6.68, bottom + 0.2, "$w$", ha="center", fontsize=12, color=INK)
    box(ax, (4.95, bottom), (2.5, 1.18), r"adjoint  $J^{*}$", VERMILION, PALE)
    arrow(ax, (3.7, bottom), (2.6, bottom), VERMILION, head=16)
    ax.text(3.18, bottom + 0.2, r"$H=J^{*}w$", ha="center", fontsize=12, color=INK)
    box(ax, (1.45, bottom + split), (2.2, 0.56), r"image part  $H_I$", BLUE)
    box(ax, (1.45, bottom - split), (2.2, 0.56), r"bias part  $H_b$", ORANGE)

    # The identity, with an underline in the colour of the boxes each term multiplies.
    ax.text(3.0, 0.66, r"$c\;\;=$", ha="center", va="center", fontsize=19, color=INK)
    for x, term, colour in (
        (4.35, r"$\langle\, x \,|\, H_I \,\rangle$", BLUE),
        (6.45, r"$\langle\, x_b \,|\, H_b \,\rangle$", ORANGE),
    ):
        ax.text(x, 0.66, term, ha="center", va="center", fontsize=19, color=INK)
        ax.plot([x - 0.75, x + 0.75], [0.36, 0.36], color=colour, linewidth=3.5)
    ax.text(5.4, 0.66, "$+$", ha="center", va="center", fontsize=19, color=INK)
    return drawn


# Number, what it is about, and whether it is on the short way through the book.
PARTS = [
    (
        "The idea",
        BLUE,
        [
            (1, "Adjoints", True),
            (2, "One neuron,\nthree ways", True),
            (3, "Equivalent\ntopology", True),
            (4, "Folding", False),
            (5, "The proof", True),
        ],
    ),
    ("The method", GREEN, [(6, "Five modes", True), (7, "Computing\nit fast", False)]),
    (
        "Experiments",
        ORANGE,
        [
            (8, "Data", False),
            (9, "VGG7", False),
            (10, "ResNet20", False),
            (11, "Fixup", False),
            (12, "Verified:\nCIFAR-10", True),
            (13, "Verified:\nCIFAR-100", False),
            (14, "Feature\nmaps", False),
        ],
    ),
    (
        "Understanding",
        VERMILION,
        [(15, "Rounding", False), (16, "What H\nshows", True), (17, "What it is\ngood for", False)],
    ),
    ("Onwards", PURPLE, [(18, "Your own\nmodel", True), (19, "Teaching", False)]),
]


@figure("chapter-map")
def chapter_map() -> Figure:
    """The chapters in their five parts; the short way through the book is filled."""
    import matplotlib.pyplot as plt

    width, title, line, in_line = 6.4, 0.23, 0.72, 5
    box_width, box_height = 1.17, 0.62
    lines = [-(-len(chapters) // in_line) for _, _, chapters in PARTS]
    height = title * len(PARTS) + line * sum(lines) + 0.1
    drawn = plt.figure(figsize=(width, height), layout="none")
    ax = blank(drawn, width, height)
    top = height - 0.05
    for (name, colour, chapters), rows in zip(PARTS, lines, strict=True):
        ax.text(0.06, top - 0.1, name, fontsize=11, weight="bold", color=colour, va="center")
        for place, (number, about, short) in enumerate(chapters):
            down, along = divmod(place, in_line)
            x = 0.06 + box_width / 2 + along * (box_width + 0.1)
            y = top - title - down * line - box_height / 2
            fill = tint(colour) if short else "white"
            box(ax, (x, y), (box_width, box_height), f"{number}  {about}", colour, fill, 10)
        top -= title + rows * line
    return drawn
