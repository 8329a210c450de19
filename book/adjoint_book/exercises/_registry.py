"""The list of all checks: each is registered under its own name by the decorator `exercise`."""

from __future__ import annotations

from collections.abc import Callable

from adjoint_lib._registry import Registry
from adjoint_lib.errors import InputError

Check = Callable[..., None]

CHECKS: Registry[str, Check] = Registry("exercise", "adjoint_book.exercises")


def exercise(check: Check) -> Check:
    """Register a function that checks an answer, under its own name, `check_...`.

    It takes the answer as its first argument, and no other argument without a default. It prints
    what it thinks of the answer, and raises on none, however wrong.
    """
    if not check.__name__.startswith("check_"):
        raise InputError(
            f"exercise {check.__name__!r}: expected a function whose name begins with 'check_'. "
            "Rename it."
        )
    return CHECKS.register(check.__name__)(check)
