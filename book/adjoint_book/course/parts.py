"""The parts of the course material: each is one function in one module of this package.

    @part("slides", "a deck of slides for each chapter that is lectured on")
    def slides(build: Build) -> None:
        ...

The function writes below `build.students(...)` what students get, and below `build.lecturer(...)`
what is for the lecturer alone; it reads the chapters in `build.book`, so that nothing can drift.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from adjoint_lib._registry import Registry, did_you_mean
from adjoint_lib.errors import InputError


@dataclass(frozen=True)
class Build:
    """Where the chapters are, and where the material goes.

    Attributes:
        book: the folder of the notebooks.
        output: the folder of the material.
    """

    book: Path
    output: Path

    def students(self, *names: str) -> Path:
        """A folder of what students get; it is made if need be."""
        return _made(self.output.joinpath("students", *names))

    def lecturer(self, *names: str) -> Path:
        """A folder of what only the lecturer gets; it is made if need be."""
        return _made(self.output.joinpath("lecturer", *names))

    def say(self, message: str) -> None:
        """One line of progress, on stderr."""
        print(message, file=sys.stderr, flush=True)


class Part(NamedTuple):
    """A part of the material: what it is, how it is made, and whether `course` alone makes it."""

    about: str
    make: Callable[[Build], None]
    default: bool


PARTS: Registry[str, Part] = Registry("part of the course", "adjoint_book.course")


def part(
    name: str, about: str, default: bool = True
) -> Callable[[Callable[[Build], None]], Callable[[Build], None]]:
    """Register a function that writes a part of the material.

    Args:
        name: what `--part` calls it.
        about: what it is, for the help.
        default: whether it is made when no part is named.
    """

    def register(make: Callable[[Build], None]) -> Callable[[Build], None]:
        PARTS.register(name)(Part(about, make, default))
        return make

    return register


def make(build: Build, names: Iterable[str] = ()) -> None:
    """Write the parts with these names, or all that are made by default, and say how it goes."""
    chosen = list(names) or sorted(name for name, part in PARTS.items() if part.default)
    for name in chosen:
        if name not in PARTS:
            known = ", ".join(sorted(PARTS))
            raise InputError(
                f"expected a part of the course, one of {known}; got {name!r}."
                f"{did_you_mean(name, PARTS)}"
            )
    for number, name in enumerate(chosen, 1):
        started = time.monotonic()
        build.say(f"{number} of {len(chosen)}: {name}, {PARTS[name].about}")
        PARTS[name].make(build)
        build.say(f"        done in {time.monotonic() - started:.0f} s")


def _made(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    return folder
