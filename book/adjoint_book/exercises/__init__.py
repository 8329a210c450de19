"""The checks of the book's exercises: `al.exercises.check_...(answer)` prints what it thinks of it.

Each module of this package has those of one chapter, as functions whose names begin with `check_`;
they compute the truth and hand it to `checking.compare`. TensorFlow, and what needs it, is imported
inside the functions.
"""

from __future__ import annotations

import difflib
import importlib
import pkgutil
from collections.abc import Callable
from typing import Any


def checks() -> dict[str, Callable[[Any], None]]:
    """All checks by name."""
    found: dict[str, Callable[[Any], None]] = {}
    for info in pkgutil.iter_modules(__path__):
        module = importlib.import_module(f"{__name__}.{info.name}")
        own = [name for name in vars(module) if name.startswith("check_")]
        found.update((name, getattr(module, name)) for name in own)
    return found


def __getattr__(name: str) -> Callable[[Any], None]:
    if name.startswith("check_"):
        known = checks()
        if name in known:
            return known[name]
        near = difflib.get_close_matches(name, known, 1)
        hint = f" Did you mean {near[0]!r}?" if near else ""
        raise AttributeError(f"there is no exercise check called {name!r}.{hint}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *checks()})
