"""One way to register things under a name, and one way to answer a name that is not there.

Layer rules, commands, figures and exercises are functions that a decorator enters in a `Registry`;
a new one is a new function, and nothing else has to be told of it.
"""

from __future__ import annotations

import difflib
import importlib
import inspect
import pkgutil
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from typing import Any, TypeVar

from adjoint_lib.errors import InputError

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")


class Registry(Mapping[Key, Value]):
    """What was registered, by key.

    Args:
        what: the kind of thing, for messages, such as "figure".
        package: its modules are imported at the first look, so that each registers its own; by
            default the modules that register are imported by someone else.
    """

    def __init__(self, what: str, package: str | None = None):
        self.what = what
        self._package = package
        self._found: dict[Key, Value] = {}

    def register(self, *keys: Key) -> Callable[[Value], Value]:
        """A decorator that enters a function under these keys; a key is taken only once."""

        def enter(value: Value) -> Value:
            for key in keys:
                if key in self._found and not _same_definition(self._found[key], value):
                    home = getattr(self._found[key], "__module__", "another module")
                    raise InputError(
                        f"{self.what} {key!r}: expected a new name, but {home} has it already. "
                        "Choose another."
                    )
                self._found[key] = value
            return value

        return enter

    def __getitem__(self, key: Key) -> Value:
        return self._all()[key]

    def __iter__(self) -> Iterator[Key]:
        return iter(self._all())

    def __len__(self) -> int:
        return len(self._all())

    def _all(self) -> dict[Key, Value]:
        if self._package is not None:
            for module in pkgutil.iter_modules(importlib.import_module(self._package).__path__):
                importlib.import_module(f"{self._package}.{module.name}")
            self._package = None  # once all are in: an import that failed is tried again
        return self._found


def method_from(module: str, name: str) -> Callable[..., Any]:
    """A method whose function is in another module, imported by name when it is first called.

    So a class offers what stands above it (`net.export`), and its own module imports nothing of it.
    """

    def method(self: Any, *args: Any, **options: Any) -> Any:
        return getattr(importlib.import_module(module), name)(self, *args, **options)

    method.__name__ = name
    method.__doc__ = f"See `{module}.{name}`."
    return method


def did_you_mean(name: object, known: Iterable[str], cutoff: float = 0.4) -> str:
    """The known name nearest to this one, as in " Did you mean 'x'?"; empty if none is near."""
    spelled = str(name).lower().replace("_", "-")
    by_spelling = {each.lower().replace("_", "-"): each for each in known}
    near = difflib.get_close_matches(spelled, by_spelling, 1, cutoff)
    return f" Did you mean {by_spelling[near[0]]!r}?" if near else ""


def _same_definition(one: object, other: object) -> bool:
    """Whether both are one function, maybe of a module that was imported again."""
    one, other = inspect.unwrap(one), inspect.unwrap(other)  # type: ignore[arg-type]
    if not inspect.isfunction(one) or not inspect.isfunction(other):
        return False
    places = [(f.__module__, f.__qualname__, f.__code__.co_firstlineno) for f in (one, other)]
    return places[0] == places[1]
