"""CIFAR-10 and CIFAR-100: small samples that come with the library, the full sets on request.

    images, labels = sample("cifar10")           # embedded, no network
    images, labels = load("cifar10", "test")     # the full split, fetched once if need be

Images are float32 in [0, 1] of shape (N, 32, 32, 3), labels int64 of shape (N,); of CIFAR-100 the
fine labels. `CLASS_NAMES[name][label]` names a class.

A full set is looked for, in order, in the folder ADJOINT_DATA, in the cache (ADJOINT_CACHE, by
default adjoint_lib in the user's cache folder), and in the official archive: a file in
ADJOINT_DATA, else a download (from ADJOINT_MIRROR, if that is set). Whatever the source, what is
read are the official binary files, and every byte of them is checked against a digest.
"""

import io
import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from adjoint_lib._registry import did_you_mean
from adjoint_lib._storage import exclusive, remove_partials
from adjoint_lib.errors import DataError, InputError
from adjoint_lib.experiments import resources
from adjoint_lib.experiments.data.checked import KnownFile, part_of, problem, read
from adjoint_lib.experiments.data.cifar import CHANNELS, DATASETS, DataSet
from adjoint_lib.experiments.data.sources import from_archive, from_web

CLASS_NAMES = {name: dataset.classes for name, dataset in DATASETS.items()}


def load(name: str, split: str = "test") -> tuple[np.ndarray, np.ndarray]:
    """All images and labels of "cifar10" or "cifar100", split "train" or "test".

    What is not on this machine yet is fetched first, see `fetch`. Files are checked in full on
    every call.

    Returns:
        Images, float32 in [0, 1] of shape (N, 32, 32, 3), and labels, int64 of shape (N,).

    Raises:
        DataError: if a file is damaged, or cannot be fetched.
    """
    dataset = _choose(DATASETS, name, "data set")
    files = _choose(dataset.splits, split, "split")
    folder = _folder_holding(dataset, files) or fetch(name)
    rows = sum(file.size for file in files) // dataset.row_bytes
    images = np.empty((rows, 32, 32, CHANNELS), np.float32)
    labels = np.empty(rows, np.int64)
    start = 0
    for file in files:
        content = read(folder / file.name, file, _remedy(dataset, folder))
        table = np.frombuffer(content, np.uint8).reshape(-1, dataset.row_bytes)
        part = slice(start, start + len(table))
        pixels = table[:, dataset.label_bytes :].reshape(-1, CHANNELS, 32, 32)
        images[part] = pixels.transpose(0, 2, 3, 1)
        labels[part] = table[:, dataset.label_bytes - 1]
        start += len(table)
    images /= 255
    return images, labels


def sample(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Return the embedded images: the first 300 of CIFAR-10's test split, 20 of CIFAR-100's."""
    dataset = _choose(DATASETS, name, "data set")
    path = resources.path(dataset.sample.name)
    content = read(path, dataset.sample, "Install adjoint_lib again, or restore its data/ folder.")
    with np.load(io.BytesIO(content)) as arrays:
        return arrays["images"].astype(np.float32) / 255, arrays["labels"].astype(np.int64)


def fetch(name: str, progress: bool = True) -> Path:
    """Make sure that all files of a data set are here and sound; returns their folder.

    Missing or damaged files of the cache are replaced. Those in ADJOINT_DATA are the user's: they
    are never written to, and a damaged one raises DataError. Several processes may call this at
    the same time; one works, the others wait.
    """
    dataset = _choose(DATASETS, name, "data set")
    folder = _folder_holding(dataset, dataset.files)
    if folder is not None:
        wrong = _first_problem(folder, dataset.files)
        if wrong is None:
            return folder
        if folder != _cache_folder(dataset):
            raise DataError(f"{wrong}. {_remedy(dataset, folder)}")
    try:
        return _fill_cache(dataset, progress)
    except DataError:
        raise
    except OSError as error:
        raise DataError(
            f"{_cache()}: expected to be able to write here, got: {error}. Make room, or set "
            "ADJOINT_CACHE to a writable folder."
        ) from error


@dataclass(frozen=True)
class Status:
    """What is here of one split; `source` is "embedded", "ADJOINT_DATA", "cache" or "missing"."""

    name: str
    split: str
    source: str
    path: str
    bytes: int
    ok: bool
    problem: str | None


def status() -> list[Status]:
    """Look, without fetching, what is here of each split of each data set, and check it."""
    records = []
    for dataset in DATASETS.values():
        records.append(_sample_status(dataset))
        for split, files in dataset.splits.items():
            records.append(_split_status(dataset, split, files))
    return records


def _sample_status(dataset: DataSet) -> Status:
    try:
        path = resources.path(dataset.sample.name)
    except DataError as error:
        return Status(dataset.name, "sample", "missing", "", 0, False, str(error))
    wrong = problem(path, dataset.sample)
    size = path.stat().st_size
    return Status(dataset.name, "sample", "embedded", str(path), size, wrong is None, wrong)


def _split_status(dataset: DataSet, split: str, files: tuple[KnownFile, ...]) -> Status:
    cache = _cache_folder(dataset)
    folder = _folder_holding(dataset, files)
    source = {None: "missing", cache: "cache"}.get(folder, "ADJOINT_DATA")
    folder = folder or cache
    paths = [folder / file.name for file in files]
    size = sum(path.stat().st_size for path in paths if path.is_file())
    wrong = _first_problem(folder, files)
    return Status(dataset.name, split, source, str(folder), size, wrong is None, wrong)


def _fill_cache(dataset: DataSet, progress: bool) -> Path:
    folder = _cache_folder(dataset)
    folder.mkdir(parents=True, exist_ok=True)
    with exclusive(folder.with_name(f".{dataset.folder}.lock")):
        if _first_problem(folder, dataset.files) is None:  # another process was faster
            return folder
        remove_partials(folder)
        own = _own_archive(dataset)
        if own is not None:
            from_archive(dataset, own, folder, progress)
        else:
            _fill_from_web(dataset, folder, progress)
        archive = folder.with_name(dataset.archive.name)
        for leftover in (archive, part_of(archive)):
            leftover.unlink(missing_ok=True)
    return folder


def _fill_from_web(dataset: DataSet, folder: Path, progress: bool) -> None:
    try:
        from_web(dataset, folder, progress)
    except DataError as error:
        raise DataError(
            f"{dataset.name}: expected a download of its official archive, got: {error} Otherwise "
            f"get {dataset.archive.name} by other means, put it into a folder and name that folder "
            "in ADJOINT_DATA; or name in ADJOINT_MIRROR another site that has it."
        ) from error


def _folder_holding(dataset: DataSet, files: tuple[KnownFile, ...]) -> Path | None:
    """The first folder that has all these files, sound or not: the user's own, then the cache."""
    own = _own_folder()
    places = [own / dataset.folder, own] if own else []
    for folder in [*places, _cache_folder(dataset)]:
        if all((folder / file.name).is_file() for file in files):
            return folder
    return None


def _own_archive(dataset: DataSet) -> Path | None:
    own = _own_folder()
    if own is None:
        return None
    stem = dataset.archive.name.removesuffix(".tar.gz")
    names = (f"{stem}.tar.gz", f"{stem}.tar.xz")
    return next((own / name for name in names if (own / name).is_file()), None)


def _own_folder() -> Path | None:
    value = os.environ.get("ADJOINT_DATA")
    if not value:
        return None
    folder = Path(value).expanduser()
    if not folder.is_dir():
        raise DataError(
            f"ADJOINT_DATA: expected an existing folder, got {value!r}. Correct or unset it."
        )
    return folder


def _cache() -> Path:
    value = os.environ.get("ADJOINT_CACHE")
    if value:
        return Path(value).expanduser()
    base = Path(os.environ.get("XDG_CACHE_HOME", ""))
    return (base if base.is_absolute() else Path.home() / ".cache") / "adjoint_lib"


def _cache_folder(dataset: DataSet) -> Path:
    return _cache() / dataset.folder


def _first_problem(folder: Path, files: tuple[KnownFile, ...]) -> str | None:
    return next(filter(None, (problem(folder / file.name, file) for file in files)), None)


def _remedy(dataset: DataSet, folder: Path) -> str:
    if folder == _cache_folder(dataset):
        return f"Repair the cache with `python -m adjoint_lib data {dataset.name}`."
    return "Replace the file, or unset ADJOINT_DATA to use the cache or a download."


def _choose(choices: dict, key: str, what: str):
    if isinstance(key, str) and key in choices:
        return choices[key]
    raise InputError(
        f"{what}: expected one of {', '.join(map(repr, choices))}, got {key!r}."
        + did_you_mean(key, choices)
    )
