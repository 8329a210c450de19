"""Verification runs: many images, divided into shards, each saved as soon as it is done.

    plan = Plan(net, method="tangent")
    run(plan, images, "runs/mine").report

A run's folder holds ``run.json``, which says what decides the result (network, images, method,
precision, ...), and a file for each finished shard with the digest of its content. However a run
was stopped, the same call goes on with it. A folder of another run is refused, and a damaged shard
is computed again. Reports hold integer counts and maxima, so the merged one does not depend on the
order of the shards; and shards begin where batches do, so it does not depend on their number.

By default the shards are computed here, one after the other; `cluster` has them computed by Dask.
"""

from __future__ import annotations

import hashlib
import json
import re
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from tqdm.auto import tqdm

from adjoint_lib._storage import read_json
from adjoint_lib.errors import AdjointError, InputError
from adjoint_lib.experiments import machine
from adjoint_lib.experiments.run_folder import RunFolder
from adjoint_lib.verification.progress import Progress
from adjoint_lib.verification.report import FORMAT as REPORT_FORMAT
from adjoint_lib.verification.report import Report
from adjoint_lib.verification.verify import Plan

FORMAT = 1
MANIFEST = "run.json"
DECIDING = ("adjoint_lib", "tensorflow", "numpy")  # versions that could change a rounding

Pieces = Iterator[tuple[int, np.ndarray]]  # first image of a shard, its images
Records = Iterator[tuple[int, dict[str, Any]]]  # first image of a shard, what `measured` gave
Compute = Callable[[Plan, Pieces, Progress], Records]


@dataclass(frozen=True)
class Outcome:
    """What a run found, and what it took.

    Attributes:
        report: of all images.
        shards: how many there were.
        seconds: of computing, summed over the shards.
        cores: of the machines that computed them.
        processor: what `machine.processor` says of them; None if shards of an earlier version do
            not say it.
    """

    report: Report
    shards: int
    seconds: float
    cores: list[int]
    processor: dict[str, str] | None


def run(
    plan: Plan,
    images: np.ndarray,
    folder: str | Path | None = None,
    compute: Compute | None = None,
    shard: int | None = None,
    progress: bool = True,
) -> Outcome:
    """Verify all images, or go on with a run that was stopped.

    The report is the same to the bit whatever `compute` and `shard`, on machines alike with the
    same `machine.threads()`.

    Args:
        folder: of the run; None keeps nothing.
        compute: what computes the shards; by default `here`, otherwise see `cluster`.
        shard: images in each, a multiple of `plan.batch_size`; by default `shard_size(plan)`.

    Raises:
        InputError: for a folder that holds another run, or one whose shards were computed on a
            processor that rounds differently, or shards that batches do not fill.
        DataError: if a file of the run cannot be written.
    """
    digest = images_digest(images)
    images = plan.net.check_images(images).numpy()
    shard = shard or shard_size(plan)
    if shard < 1 or shard % plan.batch_size:
        raise InputError(
            f"expected shards of a multiple of {plan.batch_size} images, so many as go through the "
            f"network at once, got {shard}."
        )
    facts = _facts(plan, len(images), digest, shard)
    with ExitStack() as held:
        shards = None
        if folder is not None:
            claimed = held.enter_context(RunFolder.claimed(folder, kept="Finished shards are kept"))
            shards = _Shards(claimed, facts)
        firsts = range(0, len(images), shard)
        before = {first: shards and shards.read(first, progress) for first in firsts}
        done = {first: record for first, record in before.items() if record}
        missing = [first for first in firsts if first not in done]
        if done and missing:
            _check_processor(folder, _processor(done.values()), compute)
        if done and missing and progress:
            _note(f"{len(done)} of {len(firsts)} shards were done before: going on with the rest")
        pieces = ((first, images[first : first + shard]) for first in missing)
        at_first = sum(record["images"] for record in done.values())
        with Progress(len(images), plan.cheaper, not progress, at_first) as bar:
            for first, record in (compute or here)(plan, pieces, bar):
                _check_versions(record, facts)
                done[first] = record
                if _processor(done.values()) is None:
                    raise _rounds_otherwise(folder, record["processor"]["name"])
                if shards:
                    shards.write(first, record)
    return _merged(plan, [done[first] for first in firsts])


def shard_size(plan: Plan) -> int:
    """Images in a shard that takes at most a few minutes, by what is done to each."""
    if plan.method == "tangent":
        return 512
    return 128 if plan.takes_batches else 8


def default_folder(plan: Plan, images: np.ndarray) -> Path:
    """``runs/verify-NET-METHOD-DIGEST``, with a digest of all that decides the result."""
    facts = _facts(plan, len(images), images_digest(images), shard_size(plan))
    name = re.sub(r"[^\w.-]+", "_", f"verify-{plan.net.name}-{plan.method}")
    return Path("runs") / f"{name}-{_digest(facts)[:12]}"


def images_digest(images: np.ndarray) -> str:
    """SHA-256 of images as they go into the network: their dtype, shape and numbers."""
    images = np.ascontiguousarray(images)
    sha = hashlib.sha256(f"{images.dtype} {images.shape} ".encode())
    sha.update(images.data)
    return sha.hexdigest()


def here(plan: Plan, pieces: Pieces, step: Progress) -> Records:
    """Compute the shards in this process, one after the other; `step` is told of what is done."""
    for first, images in pieces:
        yield first, measured(plan, images, step)


def measured(plan: Plan, images: np.ndarray, step: Progress | None = None) -> dict[str, Any]:
    """The report of one shard's images and what it took, in plain numbers and lists."""
    started = time.perf_counter()
    report = plan.empty()
    for part in plan.reports(images, step.batch) if step else plan.reports(images):
        report += part
        if step:
            step(part.images)
    return {
        "images": len(images),
        "seconds": round(time.perf_counter() - started, 3),
        "cores": machine.cores(),
        "versions": machine.versions(),
        "processor": machine.processor(),
        "report": report.to_dict(),
    }


# ------------------------------------------------------------------ the folder of a run


def _facts(plan: Plan, count: int, digest: str, shard: int) -> dict[str, Any]:
    """All that decides the result, in plain numbers and text."""
    versions = machine.versions()
    return {
        "format": [FORMAT, REPORT_FORMAT],
        **plan.empty().about,
        "images": count,
        "images_sha256": digest,
        "shard": shard,
        "together": plan.batch_size,
        "max_bytes": plan.max_bytes,
        "threads": machine.threads(),
        **{f"version of {name}": versions[name] for name in DECIDING},
    }


class _Shards:
    """The shards in the folder of one run."""

    def __init__(self, folder: RunFolder, facts: dict[str, Any]):
        self.folder, self.run = folder, _digest(facts)
        path = folder.path / MANIFEST
        if path.exists():
            what = "what a run of adjoint_lib has noted"
            before = read_json(path, what, "Name another folder, or remove this one.")
            folder.require_same(before, facts)
        else:
            folder.write(MANIFEST, _json(facts))

    def read(self, first: int, progress: bool) -> dict[str, Any] | None:
        """The record of a shard; None if it is to be computed, or computed again."""
        path = self.folder.path / _shard_name(first)
        if not path.exists():
            return None
        try:
            stored = read_json(path, "a shard of a run", "It is computed again.")
            sound = stored.pop("sha256") == _digest(stored)
            if sound and (stored["run"], stored["first"]) == (self.run, first):
                record = stored["record"]
                Report.from_dict(record["report"])
                return record
        except (AdjointError, KeyError, TypeError):
            sound = False
        if progress:
            _note(f"{path} is {'of another run' if sound else 'damaged'}: computing it again")
        return None

    def write(self, first: int, record: dict[str, Any]) -> None:
        content = {"run": self.run, "first": first, "record": record}
        self.folder.write(_shard_name(first), _json({"sha256": _digest(content), **content}))


def _shard_name(first: int) -> str:
    return f"shard-{first:06}.json"


def _json(content: dict[str, Any]) -> bytes:
    return json.dumps(content, indent=1).encode()


def _digest(content: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


# ------------------------------------------------------------------ merging


def _check_versions(record: dict[str, Any], facts: dict[str, Any]) -> None:
    for name in DECIDING:
        expected, found = facts[f"version of {name}"], record["versions"][name]
        if found != expected:
            raise AdjointError(
                f"a shard was computed with {name} {found}, the run is one of {name} {expected}: "
                "their roundings may differ. Have the same version everywhere."
            )


def _processor(records: Iterable[dict[str, Any]]) -> dict[str, str] | None:
    """The processor that rounded all these shards alike; None if they differ, or do not say."""
    found = [record.get("processor") for record in records]
    alike = None not in found and len({each["rounding"] for each in found if each}) == 1
    return found[0] if alike else None


def _check_processor(
    folder: str | Path | None, known: dict[str, str] | None, compute: Compute | None
) -> None:
    """Refuse to go on with shards that were rounded in another way, or may have been."""
    if known is None:
        raise InputError(
            f"{folder}: expected shards that say how the processor rounds that computed them, but "
            "those of earlier versions do not. So nothing can be added to them: name another "
            "folder to compute all images. (One that has all its shards can be read.)"
        )
    if compute is None and (here := machine.processor())["rounding"] != known["rounding"]:
        raise _rounds_otherwise(folder, here["name"])


def _rounds_otherwise(folder: str | Path | None, name: str) -> InputError:
    return InputError(
        f"{folder or 'this run'}: its shards were computed on a processor that rounds TensorFlow's "
        f"sums differently than this one ({name}), so that no report of both is right to the bit. "
        "Go on there, or name another folder. (The same processor rounds differently with other "
        "settings such as ONEDNN_MAX_CPU_ISA or TF_ENABLE_ONEDNN_OPTS.)"
    )


def _merged(plan: Plan, records: list[dict[str, Any]]) -> Outcome:
    report = plan.empty()
    for record in records:
        report += Report.from_dict(record["report"])
    return Outcome(
        report,
        len(records),
        round(sum(record["seconds"] for record in records), 3),
        sorted({record["cores"] for record in records}),
        _processor(records),
    )


def _note(message: str) -> None:
    tqdm.write(message, file=sys.stderr)
