"""Stored results: verifications at full scale, each with what made it, in `data/results`.

    al.results.load("vgg7", "cifar10", mode="RM2").report.table()

A file is a report as `Report.save` writes it, with one more entry, ``provenance``: the command, the
digests of weights and images, versions, cores and seconds. One file is one run, and its name says
which (see `name`). ``python -m adjoint_lib verify ... --output data/results`` writes it there. One
that went on from an earlier result (``--onto``) has the earlier one's provenance under
``continues``; cores, seconds and versions are then those of the images that it added.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from adjoint_lib._storage import decoding, read_json, replacing, require
from adjoint_lib.errors import DataError
from adjoint_lib.experiments import resources
from adjoint_lib.verification.report import Report


@dataclass(frozen=True)
class Result:
    """A report, and where it comes from."""

    report: Report
    provenance: dict[str, Any]

    @property
    def seconds(self) -> float:
        """What its computing took in all, with the results that it goes on from."""
        total = 0.0
        record: dict[str, Any] | None = self.provenance
        while record is not None:
            total += record["time"]["seconds"]
            record = record.get("continues")
        return total


def load(
    model: str,
    dataset: str,
    method: str = "hypersurface",
    mode: str | None = None,
    dtype: str = "float32",
    weights_rounded: str | None = None,
) -> Result:
    """Load the stored result of a run.

    Args:
        model: a name in `models.MODELS`.
        dataset: "cifar10" or "cifar100".
        method: "hypersurface" or "tangent".
        mode: of every layer, such as "RM2"; None for a run over all layers.
        dtype: of the computation.
        weights_rounded: the format that the weights were rounded to, if any.

    Raises:
        DataError: with the command that computes it, if it is not stored.
    """
    file = name(model, dataset, method, mode, dtype, weights_rounded)
    try:
        path = resources.path(f"results/{file}")
    except DataError as error:
        raise DataError(
            f"no stored result {file}. Compute it: python -m adjoint_lib verify --model {model} "
            f"--weights {dataset} --full --images 10000 --method {method} ... --output FOLDER."
        ) from error
    found = read(path)
    about, origin = found.report.about, found.provenance
    expected = (model, dataset, method, dtype, weights_rounded)
    stored = (
        *(origin["model"], origin["dataset"], about["method"], about["dtype"]),
        about["weights_rounded"],
    )
    if stored != expected or (mode and set(about["modes"].values()) != {mode}):
        raise DataError(
            f"{path}: expected the result of {expected}, mode {mode}, found that of {stored}, "
            f"modes {about['modes']}. Restore the file, or compute it again."
        )
    return found


def name(
    model: str,
    dataset: str,
    method: str = "hypersurface",
    mode: str | None = None,
    dtype: str | None = None,
    weights_rounded: str | None = None,
) -> str:
    """The name of a run's file, such as ``vgg7-cifar10-hypersurface-RM2.json``.

    The arguments are those of `load`; float32 and unrounded weights are not part of the name.
    """
    parts = (model, dataset, method, mode, dtype, weights_rounded)
    return "-".join(part for part in parts if part not in (None, "float32")) + ".json"


def read(path: str | Path) -> Result:
    """The report in a file with its provenance."""
    expected = "a report with its provenance"
    remedy = "Compute it again with python -m adjoint_lib verify ... --output."
    found = read_json(path, expected, remedy)
    with decoding(path, expected, remedy):
        result = Result(
            Report.from_dict(found, path), require(found.get("provenance"), dict, expected)
        )
        origin = result.provenance
        for value in (origin["images"]["sha256"], origin["model"], origin["dataset"]):
            require(value, str, "a text")
        if not math.isfinite(result.seconds):
            raise ValueError(f"{result.seconds} seconds")
    return result


def write(path: str | Path, result: Result) -> None:
    """Write a result as JSON; the file appears whole or not at all."""
    content = {"provenance": result.provenance, **result.report.to_dict()}
    with replacing(path) as file:
        file.write(json.dumps(content, indent=1).encode() + b"\n")
