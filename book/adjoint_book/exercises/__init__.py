"""The checks of the book's exercises: `book.exercises.check_...(answer)` says what it thinks of it.

Each module of this package has those of one chapter. A check is a function under the decorator
`exercise` whose name begins with `check_`; it computes the truth and hands it to
`checking.compare`. Under the decorator `choice` it is a multiple choice. TensorFlow, and what needs
it, is imported inside the functions.
"""

from __future__ import annotations

from adjoint_book.exercises._registry import CHECKS, Check, exercise
from adjoint_book.exercises.choices import Choice, choice
from adjoint_lib._registry import did_you_mean

__all__ = ["Choice", "checks", "choice", "exercise"]


def checks() -> dict[str, Check]:
    """All checks by name."""
    return dict(CHECKS)


def __getattr__(name: str) -> Check:
    if name.startswith("check_"):
        if name in CHECKS:
            return CHECKS[name]
        hint = did_you_mean(name, CHECKS, cutoff=0.6)
        raise AttributeError(f"there is no exercise check called {name!r}.{hint}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *checks()})
