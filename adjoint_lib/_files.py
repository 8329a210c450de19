"""Writing a file so that it appears whole or not at all."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO


@contextmanager
def replacing(path: str | Path) -> Iterator[BinaryIO]:
    """A binary file that takes the name `path` when the block ends without an error.

    Until then it is a neighbour `<path>.<process>.partial`; an error or an interrupt removes it and
    leaves whatever was at `path` as it was. A killed process leaves it: see `remove_partials`.
    """
    path = Path(path)
    partial = path.with_name(f"{path.name}.{os.getpid()}.partial")
    try:
        with open(partial, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(partial, path)
    finally:
        partial.unlink(missing_ok=True)


def remove_partials(folder: Path) -> None:
    """Remove what killed processes left half written in `folder`, where no other writes now."""
    for leftover in folder.glob("*.partial"):
        leftover.unlink()
