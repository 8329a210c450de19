"""The list of all figures: each is registered under a name by the decorator `figure`.

A notebook shows a figure as PNG, which every renderer takes. While the book is built, VECTOR is set
in the environment, and a figure without images shows itself as SVG besides, which the page prefers.
"""

from __future__ import annotations

import functools
import io
import os
import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from adjoint_lib._registry import Registry, did_you_mean
from adjoint_lib.errors import InputError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Draw = Callable[..., "Figure"]

VECTOR = "ADJOINT_VECTOR"  # an environment variable
MAX_POINTS = 20_000  # a figure with more of them is smaller as PNG

FIGURES: Registry[str, Draw] = Registry("figure", "adjoint_book.figures")


def figure(name: str) -> Callable[[Draw], Draw]:
    """Register a function that draws a figure, under `name`, e.g. `@figure("one-neuron")`.

    The function is called as the name with underscores, `one_neuron`. Every argument has a default,
    so that the name alone draws it, and the first line of its docstring says what is to be seen.
    The figure is drawn in the book's style, and handed over rather than shown: as the last line of
    a cell it appears once.

    Args:
        name: the name of the figure, its words joined by dashes.
    """

    def register(draw: Draw) -> Draw:
        if draw.__name__ != name.replace("-", "_"):
            raise InputError(
                f"figure {name!r}: expected a function called {name.replace('-', '_')!r}, "
                f"got {draw.__name__!r}. Give both the same name."
            )
        if draw.__module__.endswith(f".{draw.__name__}"):
            raise InputError(
                f"figure {name!r}: its module has the same name, which would hide it. Rename one."
            )

        @functools.wraps(draw)
        def styled(*args, **kwargs) -> Figure:
            import matplotlib.pyplot as plt

            from adjoint_book.figures._style import STYLE

            with plt.rc_context(STYLE):
                drawn = draw(*args, **kwargs)
            if has_photo(drawn):
                make_transparent(drawn)
            plt.close(drawn)
            if os.environ.get(VECTOR) and is_drawing(drawn):
                drawn._repr_mimebundle_ = functools.partial(as_svg, drawn)  # type: ignore[attr-defined]
            return drawn

        return FIGURES.register(name)(styled)

    return register


def has_photo(drawn: Figure) -> bool:
    """Whether a picture in its own colours is on the figure; such a one cannot be inverted."""
    arrays = [image.get_array() for ax in drawn.axes for image in ax.images]
    return any(array is not None and array.ndim == 3 for array in arrays)


def is_drawing(drawn: Figure) -> bool:
    """Whether a figure is made of lines and text alone, and not of too many of them."""
    from matplotlib.collections import Collection
    from matplotlib.lines import Line2D

    if any(ax.images for ax in drawn.axes):
        return False
    lines: list[Any] = drawn.findobj(Line2D)
    groups: list[Any] = drawn.findobj(Collection)
    points = sum(len(line.get_xydata()) for line in lines)
    points += sum(len(group.get_offsets()) for group in groups)
    points += sum(len(path.vertices) for group in groups for path in group.get_paths())
    return points <= MAX_POINTS


def as_svg(drawn: Figure, include: Any = None, exclude: Any = None) -> dict[str, str]:
    """The figure as SVG, as large as its PNG; drawn twice, it is the same to the byte."""
    import matplotlib.pyplot as plt

    from adjoint_book.figures._style import STYLE

    text = io.StringIO()
    with plt.rc_context(STYLE):
        drawn.savefig(text, format="svg", bbox_inches="tight", metadata={"Date": None})

    def in_pixels(match: re.Match) -> str:
        return f'{match[1]}="{float(match[2]) * drawn.dpi / 72:.0f}"'

    return {"image/svg+xml": re.sub(r'\b(width|height)="([\d.]+)pt"', in_pixels, text.getvalue())}


def make_transparent(drawn: Figure) -> None:
    """Let the page through, and write in a grey that is legible on white and on black.

    In the dark theme the page inverts every other figure.
    """
    from matplotlib.colors import same_color
    from matplotlib.lines import Line2D
    from matplotlib.text import Text

    from adjoint_book.figures._style import GREY, INK

    drawn.set_facecolor("none")
    for ax in drawn.axes:
        ax.set_facecolor("none")
        ax.tick_params(colors=GREY)
    for kind in (Text, Line2D):
        for artist in drawn.findobj(kind):
            if same_color(artist.get_color(), INK):  # type: ignore[attr-defined]
                artist.set_color(GREY)  # type: ignore[attr-defined]


def names() -> list[str]:
    """The names of all figures, in alphabetical order."""
    return sorted(FIGURES)


def get(name: str) -> Draw:
    """The function that draws the figure of this name; dashes and underscores are the same."""
    wanted = name.replace("_", "-")
    if wanted not in FIGURES:
        raise InputError(
            f"expected the name of a figure, got {name!r}."
            f"{did_you_mean(wanted, FIGURES, cutoff=0.6)} "
            "`python -m adjoint_lib figure` lists them all."
        )
    return FIGURES[wanted]


def about(name: str) -> str:
    """What is to be seen on the figure: the first line of its function's docstring."""
    return (get(name).__doc__ or "").strip().partition("\n")[0].rstrip(".")
