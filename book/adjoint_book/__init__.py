"""What the book's chapters use beyond the library: figures, exercises, widgets, the course.

    import adjoint_book as book

    book.figures.one_neuron()                  # every figure, by name
    book.exercises.check_shared_bias(answer)   # what a check thinks of an answer
    book.inside.Conv                           # what a chapter looks at inside the library
    book.pieces.piece()                        # compares a function with that in minimal.py

Each part is imported when it is first used.
"""

import importlib
from types import ModuleType

_PARTS = (
    "course",
    "exercises",
    "figures",
    "inside",
    "minimal",
    "pieces",
    "tables",
    "timings",
    "widgets",
)

__all__ = list(_PARTS)


def __getattr__(name: str) -> ModuleType:
    if name in _PARTS:
        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_PARTS})
