"""Files that appear whole or not at all, and locks that let one process work at a time."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from filelock import FileLock, SoftFileLock, Timeout

from adjoint_lib.errors import DataError

_NO_LOCKS = {errno.ENOLCK, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP}


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


@contextmanager
def exclusive(path: str | Path) -> Iterator[None]:
    """Hold the lock file `path` for the length of a `with` block, waiting for other holders.

    The operating system drops the lock when its holder ends, even if it is killed. The empty file
    stays: removing it while others wait for it would let two of them in.

    Args:
        path: of the lock file, in a folder that exists.

    Raises:
        DataError: on a file system without locks.
    """
    lock = FileLock(path)
    try:
        _acquire(lock)
    except (NotImplementedError, OSError) as error:
        if isinstance(error, OSError) and error.errno not in _NO_LOCKS:
            raise
        raise DataError(
            f"{path}: expected a file system with file locks, got: {error}. "
            "Set ADJOINT_CACHE to a folder on a local disk."
        ) from error
    try:
        yield
    finally:
        lock.release()


def _acquire(lock: FileLock) -> None:
    try:
        lock.acquire(timeout=0)
    except Timeout:
        print(f"Waiting for another process to release {lock.lock_file}", file=sys.stderr)
        lock.acquire()
    if isinstance(lock, SoftFileLock):  # filelock's substitute, which outlives a killed holder
        lock.release()
        raise NotImplementedError("the file system has no locks")
