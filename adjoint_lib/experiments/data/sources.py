"""Fill a folder with the official binary files of a data set, from an archive or the web.

Both ways end in `checked.store`, so a file is in the folder either with the right digest or not at
all. Callers hold the lock of the cache.
"""

import lzma
import os
import tarfile
import zlib
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath

from tqdm import tqdm

from adjoint_lib.errors import DataError
from adjoint_lib.experiments.data.checked import CHUNK, store
from adjoint_lib.experiments.data.cifar import DataSet
from adjoint_lib.experiments.data.download import download

OFFICIAL = "https://www.cs.toronto.edu/~kriz"


def from_web(dataset: DataSet, folder: Path, progress: bool) -> None:
    """Download the official archive beside `folder` and unpack it into `folder`.

    ADJOINT_MIRROR replaces the address of the official site; the digests stay the same.
    """
    base = os.environ.get("ADJOINT_MIRROR") or OFFICIAL
    archive = folder.parent / dataset.archive.name
    download(f"{base.rstrip('/')}/{archive.name}", archive, dataset.archive, progress)
    from_archive(dataset, archive, folder, progress)


def from_archive(dataset: DataSet, archive: Path, folder: Path, progress: bool) -> None:
    """Copy the known files of a tar archive (gzip or xz) into `folder`.

    Nothing is extracted by the archive's own word: members are recognised by their last name
    component, must be regular files, are read no further than their known length and written under
    names of ours. What decides is the digest of each file, not that of the archive, which may have
    been packed anew.
    """
    missing = {file.name: file for file in dataset.files}
    remedy = "This is not the official archive: replace it."
    with _bar(dataset, f"unpacking {archive.name}", progress) as bar:
        for name, chunks in _members(archive, missing):
            known = missing.pop(name)
            store(_counted(chunks, bar), folder / name, known, str(archive), remedy)
            if not missing:
                return
    raise DataError(
        f"{archive}: expected the regular files {', '.join(f.name for f in dataset.files)}, found "
        f"no {', '.join(missing)}. {remedy}"
    )


def _members(archive: Path, wanted: Collection[str]) -> Iterator[tuple[str, Iterator[bytes]]]:
    """Yield (last name component, content) of the regular members whose name is wanted."""
    with _reading(archive):
        tar = tarfile.open(archive, "r:*")  # noqa: SIM115 (closed below)
    with tar:
        while True:
            with _reading(archive):
                member = tar.next()
            if member is None:
                return
            name = PurePosixPath(member.name).name
            if name in wanted and member.isreg():
                yield name, _content(archive, tar, member)


def _content(archive: Path, tar: tarfile.TarFile, member: tarfile.TarInfo) -> Iterator[bytes]:
    stream = tar.extractfile(member)
    if stream is None:
        raise DataError(f"{archive}: expected a regular file, got {member.name}.")
    while True:
        with _reading(archive):
            chunk = stream.read(CHUNK)
        if not chunk:
            return
        yield chunk


@contextmanager
def _reading(archive: Path) -> Iterator[None]:
    """Turn what tarfile and its decompressors raise on damaged input into a DataError."""
    try:
        yield
    except (tarfile.TarError, zlib.error, lzma.LZMAError, EOFError, OSError) as error:
        raise DataError(
            f"{archive}: expected a sound tar archive, got: {str(error) or repr(error)}. "
            "It is truncated or damaged: replace it."
        ) from error


def _bar(dataset: DataSet, what: str, progress: bool) -> tqdm:
    total = sum(file.size for file in dataset.files)
    return tqdm(total=total, desc=what, unit="B", unit_scale=True, disable=not progress)


def _counted(chunks: Iterable[bytes], bar: tqdm) -> Iterator[bytes]:
    for chunk in chunks:
        yield chunk
        bar.update(len(chunk))
