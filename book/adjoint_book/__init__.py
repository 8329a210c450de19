"""What the book's chapters use beyond the library: figures, exercises, widgets, the course.

    import adjoint_book as book

    book.figures.one_neuron()                  # every figure, by name
    book.exercises.check_shared_bias(answer)   # what a check thinks of an answer
    book.inside.Conv                           # what a chapter looks at inside the library
    book.pieces.piece()                        # compares a function with that in minimal.py
    book.gap(ours, theirs)                     # how far two arrays are apart

Each part is imported when it is first used.
"""

import importlib
from typing import Any

_PARTS = (
    "course",
    "exercises",
    "figures",
    "inside",
    "minimal",
    "pieces",
    "recompute",
    "tables",
    "timings",
    "tiny",
    "widgets",
)

_MAGNITUDES = ("below", "gap")

__all__ = [*_PARTS, *_MAGNITUDES]


def __getattr__(name: str) -> Any:
    if name in _PARTS:
        return importlib.import_module(f"{__name__}.{name}")
    if name in _MAGNITUDES:
        return getattr(importlib.import_module(f"{__name__}.magnitudes"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
