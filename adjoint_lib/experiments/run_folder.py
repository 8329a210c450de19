"""The folder of a run that may be stopped at any moment and taken up again.

    with RunFolder.claimed("runs/mine", kept="Finished shards are kept") as folder:
        folder.require_same(stored_facts, facts)
        folder.write("result.json", content)

Verification runs and training runs both live in such a folder. One process at a time works in it,
what a killed process left half written is removed, the folder of another run is refused, and every
file appears whole or not at all.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from adjoint_lib._storage import exclusive, remove_partials, replacing
from adjoint_lib.errors import DataError, InputError

LISTED = 8  # differences that a message names, at most
_ABSENT = object()


class RunFolder:
    """A folder that this process has for itself; made by `claimed`.

    Attributes:
        path: of the folder.
    """

    def __init__(self, path: Path, kept: str):
        self.path = path
        self._kept = kept

    @classmethod
    @contextmanager
    def claimed(cls, folder: str | Path, kept: str) -> Iterator[RunFolder]:
        """Make the folder if need be, and hold its lock for the length of a `with` block.

        `kept` says what is not lost if a file cannot be written, for the error message, such as
        "Finished shards are kept". A folder that cannot be made or written to is an `InputError`.
        """
        folder = Path(folder)
        try:
            folder.mkdir(parents=True, exist_ok=True)
            problem = "" if os.access(folder, os.W_OK) else "no permission"
        except OSError as error:
            problem = str(error)
        if problem:
            raise InputError(
                f"{folder}: expected a folder for the run that can be made and written to, got: "
                f"{problem}. Name another."
            )
        with exclusive(folder / ".lock"):
            remove_partials(folder)
            yield cls(folder, kept)

    def require_same(self, before: dict[str, Any], now: dict[str, Any]) -> None:
        """Refuse to go on with another run: an `InputError` that lists what differs.

        Args:
            before: the facts that decide the result of the run in this folder, as JSON gave them.
            now: the facts of the present run; keys that only `before` has do not count.
        """
        now = json.loads(json.dumps(now))  # with lists for tuples, as in `before`
        differing = list(_differences({key: before.get(key) for key in now}, now))
        if differing:
            more = len(differing) - LISTED
            raise InputError(
                f"{self.path} holds another run: "
                + "; ".join(differing[:LISTED] + [f"and {more} more"] * (more > 0))
                + ". Name another folder for this one, or remove that."
            )

    def write(self, name: str, content: bytes) -> None:
        """Put a file into the folder, in place of one of that name; whole or not at all."""
        with self.saving(name), replacing(self.path / name) as file:
            file.write(content)

    @contextmanager
    def saving(self, name: str) -> Iterator[None]:
        """Turn an error of the disk, while a `with` block writes a file, into a `DataError`."""
        try:
            yield
        except DataError:
            raise
        except OSError as error:
            raise DataError(
                f"{self.path / name}: could not be written ({error}). {self._kept}: make room, and "
                "the same command goes on."
            ) from error


def _differences(before: dict[str, Any], now: dict[str, Any], within: str = "") -> Iterator[str]:
    """Name each value that differs, those in dictionaries by themselves."""
    for key in {**now, **before}:
        old, new = before.get(key, _ABSENT), now.get(key, _ABSENT)
        if isinstance(old, dict) and isinstance(new, dict):
            yield from _differences(old, new, f"{within}{key} ")
        elif old != new:
            yield f"{within}{key} {_short(old)} there, {_short(new)} now"


def _short(value: object) -> str:
    text = "absent" if value is _ABSENT else repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
