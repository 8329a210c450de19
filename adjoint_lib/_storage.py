"""Files: read whatever is in them, written whole or not at all, locked for one process at a time.

A file may be damaged, of another kind, or made to do harm. Its sizes are looked at before anything
is decompressed, no pickle is loaded, and whatever fails becomes a `DataError` that says what was
expected, what came and what to do.
"""

from __future__ import annotations

import errno
import io
import json
import math
import os
import sys
import warnings
import zipfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np
from filelock import FileLock, SoftFileLock, Timeout

from adjoint_lib.errors import AdjointError, DataError

MAX_JSON = 64 << 20  # bytes
MAX_PARTS = 2_000_000  # of a JSON object: brackets and commas; each takes up to 72 bytes
MAX_MEMBERS = 10_000  # arrays in one file
MAX_HEADER = 1 << 14  # bytes that say the shape and type of an array
_NO_LOCKS = {errno.ENOLCK, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP}


class Header(NamedTuple):
    """What an array's first bytes say of it."""

    shape: tuple[int, ...]
    dtype: np.dtype

    @property
    def nbytes(self) -> int:
        return math.prod(self.shape) * self.dtype.itemsize


@contextmanager
def decoding(path: str | Path, expected: str, remedy: str) -> Iterator[None]:
    """Turn whatever fails while a `with` block reads a file into one `DataError` in words.

    Errors of this library pass. `expected` is what the file should be, such as "a report of
    adjoint_lib", and `remedy` ends the message.
    """
    try:
        yield
    except AdjointError:
        raise
    except FileNotFoundError as error:
        raise DataError(f"{path}: expected {expected}, found none. {remedy}") from error
    except Exception as error:  # decoders fail in any way: zlib.error, MemoryError, ...
        reason = " ".join(str(error).split())[:200]
        raise DataError(
            f"{path}: expected {expected}, got something unreadable ({type(error).__name__}: "
            f"{reason}). {remedy}"
        ) from error


def read_json(path: str | Path, expected: str, remedy: str) -> dict[str, Any]:
    """The JSON object in a file of at most `MAX_JSON` bytes; the arguments are `decoding`'s."""
    with decoding(path, expected, remedy):
        return parse_json(ordinary(path, MAX_JSON).read_bytes())


def parse_json(content: bytes) -> dict[str, Any]:
    """The JSON object that these bytes are, if its parts do not take far more memory than they."""
    if (parts := sum(map(content.count, (b"[", b"{", b",")))) > MAX_PARTS:
        raise ValueError(f"{parts} parts, more than {MAX_PARTS}")
    return require(json.loads(content), dict, "a JSON object")


def require(value: Any, kind: type, what: str) -> Any:
    """The value, if it is of this type; an error for `decoding` otherwise."""
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise ValueError(f"expected {what}, found {repr(value)[:60]}")
    return value


def read_arrays(
    path: Path, expected: str, remedy: str, accept: Callable[[Mapping[str, Header]], None]
) -> dict[str, np.ndarray]:
    """The arrays of numbers in an `.npz` file; the first three arguments are those of `decoding`.

    Args:
        accept: raises an error for arrays that are not to be read. It gets the shape and type of
            each before any is decompressed, so what it lets through bounds the memory that is used.
    """
    with decoding(path, expected, remedy), zipfile.ZipFile(ordinary(path)) as archive:
        members = archive.infolist()
        if len(members) > MAX_MEMBERS:
            raise ValueError(f"{len(members)} arrays, more than {MAX_MEMBERS}")
        names = {member.filename.removesuffix(".npy"): member for member in members}
        if len(names) < len(members):
            raise ValueError("several arrays of one name")
        accept({name: _header(archive, member) for name, member in names.items()})
        return {name: _array(archive, member) for name, member in names.items()}


def read_array(path: Path, name: str, expected: str, remedy: str, max_bytes: int) -> np.ndarray:
    """One array of an `.npz` file, of at most `max_bytes`; the rest of the file stays unread."""
    with decoding(path, expected, remedy), zipfile.ZipFile(ordinary(path)) as archive:
        member = archive.getinfo(f"{name}.npy")
        if (size := _header(archive, member).nbytes) > max_bytes:
            raise ValueError(f"{name} has {size} bytes, more than {max_bytes}")
        return _array(archive, member)


def read_npy(path: str | Path, expected: str, remedy: str) -> np.ndarray:
    """The array of numbers in an `.npy` file; the arguments are `decoding`'s."""
    with decoding(path, expected, remedy), open(ordinary(path), "rb") as file:
        size = Path(path).stat().st_size
        _header_in(file.read(MAX_HEADER), size, Path(path).name)
        file.seek(0)
        return np.asarray(np.lib.format.read_array(file))


def ordinary(path: str | Path, most: int | None = None) -> Path:
    """The path, if it is of an ordinary file: reading a device may never end."""
    path = Path(path)
    size = path.stat().st_size
    if not path.is_file():
        raise ValueError("not an ordinary file")
    if most is not None and size > most:
        raise ValueError(f"{size} bytes, more than {most}")
    return path


def _header(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> Header:
    """The shape and type of an array, if it is one of plain numbers that fills its member."""
    if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise ValueError(f"{member.filename} is compressed in an unusual way")
    with archive.open(member) as file:
        return _header_in(file.read(MAX_HEADER), member.file_size, member.filename)


def _header_in(first: bytes, size: int, name: str) -> Header:
    """The shape and type of an array from its first bytes, if its data fill the rest of `size`."""
    start = io.BytesIO(first)
    formats = np.lib.format
    readers = {(1, 0): formats.read_array_header_1_0, (2, 0): formats.read_array_header_2_0}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of headers that are valid, but written by Python 2
        shape, _, dtype = readers[formats.read_magic(start)](start)
    found = Header(shape, dtype)
    if dtype.kind not in "fiub" or any(size < 0 for size in shape):
        raise ValueError(f"{name} is not one of the plain arrays of numbers: {dtype}")
    if start.tell() + found.nbytes != size:
        raise ValueError(f"{name} is truncated, or longer than its shape {shape} says")
    return found


def _array(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> np.ndarray:
    """The array whose header was found in order; its checksum is compared at its end."""
    with archive.open(member) as file, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return np.asarray(np.lib.format.read_array(file))  # of plain numbers, as its header said


# ------------------------------------------------------------------ writing and locking


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
    except OSError as error:
        if error.filename == str(partial):  # which nobody has asked for
            raise OSError(error.errno, error.strerror, str(path)) from error
        raise
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
    stays: removing it while others wait for it would let two of them in. Without file locks, there
    is a `DataError`.
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
