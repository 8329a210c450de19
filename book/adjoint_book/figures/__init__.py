"""Every figure of the book, drawn by a call: `book.figures.one_neuron()`.

`names()` lists them, `save(name, path)` draws one to a file, as `python -m adjoint_lib figure NAME`
does. A new one is a function in the module of its chapter, under the decorator `figure`; a module
imports TensorFlow, and what needs it, inside the functions, so that listing the names is quick.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from adjoint_book._extras import require
from adjoint_book.figures._registry import about, figure, get, names
from adjoint_lib.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable

    from matplotlib.figure import Figure

__all__ = ["about", "figure", "get", "names", "save", "use_style"]

require("matplotlib")  # here for all modules of the package: this one is imported before them

FORMATS = ("svg", "png", "pdf")


def use_style() -> None:
    """Draw in the book's style from here on, in a notebook that draws for itself."""
    from adjoint_book.figures._style import use

    use()


def save(name: str, path: str | Path, facecolor: str = "white") -> Path:
    """Draw the figure `name` to a file, and return the path of the file.

    Args:
        name: one of `names()`; dashes and underscores are the same.
        path: a file in an existing folder; its ending, .svg, .png or .pdf, is the format.
        facecolor: of the background; "auto" leaves figures with photographs transparent.

    Raises:
        InputError: there is no such figure, format or folder.
    """
    path = Path(path)
    if path.suffix.lstrip(".") not in FORMATS:
        raise InputError(
            f"expected a file that ends in {', '.join('.' + end for end in FORMATS)}, got {path}."
        )
    draw = get(name)
    if not path.parent.is_dir():
        raise InputError(f"expected an existing folder, got {path.parent}. Make it first.")
    import matplotlib.pyplot as plt

    from adjoint_book.figures._style import STYLE

    with plt.rc_context(STYLE):
        # A date in the file would make the same figure differ from day to day.
        dated = {"svg": "Date", "pdf": "CreationDate"}.get(path.suffix.lstrip("."))
        metadata = {dated: None} if dated else None
        draw().savefig(path, bbox_inches="tight", facecolor=facecolor, metadata=metadata)
    return path


def __getattr__(name: str) -> Callable[..., Figure] | Any:
    """The function that draws the figure `name`, dashes written as underscores."""
    if name.startswith("_"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        return get(name)
    except InputError as error:
        raise AttributeError(f"module {__name__!r} has no figure {name!r}: {error}") from None


def __dir__() -> list[str]:
    return sorted({*globals(), *(name.replace("-", "_") for name in names())})
