"""For teachers: which chapters need which."""

from __future__ import annotations

from typing import TYPE_CHECKING

import matplotlib.pyplot as plt
from matplotlib.figure import Figure
from matplotlib.patches import Arc

from adjoint_book.figures._drawing import tint, write
from adjoint_book.figures._registry import figure
from adjoint_book.figures._style import BLUE, GREEN, GREY, WIDTH

if TYPE_CHECKING:
    from collections.abc import Sequence

    from adjoint_book.course import Chapter


@figure("chapter-needs")
def chapter_needs(chapters: Sequence[Chapter] | None = None, goal: int = 18) -> Figure:
    """Which chapters need which, and in green all that one of them needs.

    Args:
        chapters: as `course.chapters` gives them.
        goal: the chapter whose way is marked.
    """
    from adjoint_book import course

    chapters = course.chapters() if chapters is None else chapters
    last = max(chapter.number for chapter in chapters)
    way = set(course.way_to(chapters, [goal]))
    widest = max(chapter.number - need for chapter in chapters for need in chapter.needs)
    height = 1.5 + 0.375 * widest
    drawing, ax = plt.subplots(figsize=(WIDTH, WIDTH * height / (last + 0.2)))
    for chapter in chapters:
        for need in chapter.needs:
            on_way = chapter.number in way
            middle, width = (chapter.number + need) / 2, chapter.number - need
            ax.add_patch(
                Arc(
                    (middle, 0.55),
                    width,
                    0.75 * width,
                    theta1=0,
                    theta2=180,
                    color=GREEN if on_way else GREY,
                    linewidth=2.2 if on_way else 1.1,
                    alpha=1 if on_way else 0.6,
                )
            )
    for chapter in chapters:
        place, edge = (chapter.number, 0), GREEN if chapter.number in way else BLUE
        ax.add_patch(plt.Circle(place, 0.45, facecolor=tint(edge), edgecolor=edge, linewidth=1.8))
        write(ax, place, str(chapter.number), 11)
    ax.set(xlim=(0.4, last + 0.6), ylim=(-0.6, height - 0.6), aspect="equal")
    ax.axis("off")
    return drawing
