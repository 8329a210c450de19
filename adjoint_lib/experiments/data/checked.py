"""Files whose every byte is known beforehand: verify, read and write them by size and sha256."""

import hashlib
import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from adjoint_lib._storage import replacing
from adjoint_lib.errors import DataError

CHUNK = 1 << 20


@dataclass(frozen=True)
class KnownFile:
    """The name, length in bytes and sha256 (64 hex digits) a file must have to be accepted."""

    name: str
    size: int
    sha256: str


def problem(path: Path, known: KnownFile) -> str | None:
    """Say how `path` differs from `known`, or return None if it is that file, byte for byte."""
    if not path.is_file():
        return f"{path}: expected a file of {known.size} bytes, found no file"
    digest = hashlib.sha256()
    try:
        with open(path, "rb") as file:
            size = os.fstat(file.fileno()).st_size
            if size == known.size:  # a wrong length settles it: no need to read
                while chunk := file.read(CHUNK):
                    digest.update(chunk)
    except OSError as error:
        return f"{path}: expected a readable file, got: {error}"
    return _difference(str(path), known, size, digest.hexdigest())


def read(path: Path, known: KnownFile, remedy: str) -> bytes:
    """The content of a file, checked; `remedy` ends the message of an error.

    The digest is taken of the very bytes returned, on every call (0.2 s for all of CIFAR-10), so a
    file that goes bad on disk between two calls is caught as well.
    """
    try:
        with open(path, "rb") as file:
            content = file.read(known.size + 1)
            size = os.fstat(file.fileno()).st_size
    except OSError as error:
        raise DataError(f"{path}: expected a readable file, got: {error}. {remedy}") from error
    wrong = _difference(str(path), known, size, hashlib.sha256(content).hexdigest())
    if wrong:
        raise DataError(f"{wrong}. {remedy}")
    return content


def store(
    chunks: Iterable[bytes], target: Path, known: KnownFile, origin: str, remedy: str
) -> None:
    """Write `chunks` to `target` such that it either holds exactly `known` or is left untouched.

    One writer at a time: callers hold a lock. Another content is a `DataError`, which names
    `origin`.
    """
    what = f"{known.name} from {origin}"
    digest, size = hashlib.sha256(), 0
    with replacing(target) as file:
        for chunk in chunks:
            size += len(chunk)
            if size > known.size:  # refuse before it can fill the disk
                raise DataError(f"{what}: expected {known.size} bytes, found more. {remedy}")
            digest.update(chunk)
            file.write(chunk)
        wrong = _difference(what, known, size, digest.hexdigest())
        if wrong:
            raise DataError(f"{wrong}. {remedy}")


def part_of(target: Path) -> Path:
    """Name of the unfinished neighbour of `target`; same folder, so that renaming is atomic."""
    return target.with_name(target.name + ".part")


def _difference(what: str, known: KnownFile, size: int, sha256: str) -> str | None:
    if size != known.size:
        return f"{what}: expected {known.size} bytes, found {size}"
    if sha256 != known.sha256:
        return f"{what}: expected sha256 {known.sha256}, found {sha256}"
    return None
