"""One process at a time: a lock that the operating system drops even if its holder is killed."""

import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from adjoint_lib.errors import DataError

try:
    import fcntl

    def _lock(descriptor: int) -> None:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)

except ImportError:  # Windows
    import msvcrt

    def _lock(descriptor: int) -> None:
        msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)


POLL_SECONDS = 0.2


@contextmanager
def exclusive(path: Path) -> Iterator[None]:
    """Hold the lock file `path` for the length of a `with` block, waiting for other holders."""
    descriptor = _acquire(path)
    try:
        yield
    finally:
        # Removed before it is released: a waiter that gets the lock on the removed file notices
        # (see _acquire) and takes a new one. Windows keeps open files: there the empty file stays.
        with suppress(PermissionError):
            path.unlink(missing_ok=True)
        os.close(descriptor)


def _acquire(path: Path) -> int:
    told = False
    while True:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            locked = _try_lock(descriptor, path)
            if locked and _same_file(descriptor, path):
                return descriptor
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)
        if not locked:
            if not told:
                print(f"Waiting for another process to release {path}", file=sys.stderr)
                told = True
            time.sleep(POLL_SECONDS)


def _try_lock(descriptor: int, path: Path) -> bool:
    try:
        _lock(descriptor)
        return True
    except (BlockingIOError, PermissionError):  # held by someone else
        return False
    except OSError as error:
        raise DataError(
            f"{path}: expected a file system with file locks, got: {error}. "
            "Set ADJOINT_CACHE to a folder on a local disk."
        ) from error


def _same_file(descriptor: int, path: Path) -> bool:
    """Whether `path` still names the open file: its last holder may have removed it meanwhile."""
    with suppress(FileNotFoundError):
        return os.path.samestat(os.fstat(descriptor), path.stat())
    return False
