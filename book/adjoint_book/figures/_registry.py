"""The list of all figures: each is registered under a name by the decorator `figure`."""

from __future__ import annotations

import difflib
import functools
import importlib
import pkgutil
from collections.abc import Callable
from typing import TYPE_CHECKING

from adjoint_lib.errors import InputError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Draw = Callable[..., "Figure"]

_FIGURES: dict[str, Draw] = {}
_OWN = {"_drawing", "_networks", "_registry", "_style"}  # modules of this package without figures


def figure(name: str) -> Callable[[Draw], Draw]:
    """Register a function that draws a figure, under `name`, e.g. `@figure("one-neuron")`.

    The function is called as the name with underscores, `one_neuron`. Every argument has a default,
    so that the name alone draws it, and the first line of its docstring says what is to be seen.
    The figure is drawn in the book's style, and handed over rather than shown: as the last line of
    a cell it appears once.
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
        if name in _FIGURES and _FIGURES[name].__module__ != draw.__module__:
            raise InputError(
                f"figure {name!r}: expected a new name, but {_FIGURES[name].__module__} has it "
                "already. Choose another."
            )

        @functools.wraps(draw)
        def styled(*args, **kwargs) -> Figure:
            import matplotlib.pyplot as plt

            from adjoint_book.figures._style import STYLE

            with plt.rc_context(STYLE):
                drawn = draw(*args, **kwargs)
            plt.close(drawn)
            return drawn

        _FIGURES[name] = styled
        return styled

    return register


def names() -> list[str]:
    """The names of all figures, in alphabetical order."""
    return sorted(_all())


def get(name: str) -> Draw:
    """The function that draws the figure of this name; dashes and underscores are the same."""
    figures = _all()
    wanted = name.replace("_", "-")
    if wanted not in figures:
        near = difflib.get_close_matches(wanted, figures, 1)
        hint = f" Did you mean {near[0]!r}?" if near else ""
        raise InputError(
            f"expected the name of a figure, got {name!r}.{hint} "
            "`python -m adjoint_lib figure` lists them all."
        )
    return figures[wanted]


def about(name: str) -> str:
    """What is to be seen on the figure: the first line of its function's docstring."""
    return (get(name).__doc__ or "").strip().partition("\n")[0].rstrip(".")


def _all() -> dict[str, Draw]:
    """All figures: each module of this package is imported, and registers its own."""
    package = importlib.import_module("adjoint_book.figures")
    for module in pkgutil.iter_modules(package.__path__):
        if module.name not in _OWN:
            importlib.import_module(f"{package.__name__}.{module.name}")
    return _FIGURES
