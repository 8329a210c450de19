"""Stored results: verifications at full scale, each with what made it, in `data/results`.

    al.results.load("vgg7", "cifar10", mode="RM2").report.table()
    al.results.compared("vgg7", "cifar10")        # our percentages beside the paper's
    al.results.formats("vgg7", "cifar10")         # misses in float32, float64 and bfloat16

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

from adjoint_lib._files import replacing
from adjoint_lib._reading import decoding, read_json, require
from adjoint_lib.core.tables import Table
from adjoint_lib.errors import DataError
from adjoint_lib.experiments import paper, resources
from adjoint_lib.verification.report import LayerReport, Report, percentages


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
    dtype: str = "float32",
    weights_rounded: str | None = None,
) -> str:
    """The name of a run's file, such as ``vgg7-cifar10-hypersurface-RM2.json``.

    The arguments are those of `load`; float32 and unrounded weights are not part of the name.
    """
    parts = [model, dataset, method, mode, None if dtype == "float32" else dtype, weights_rounded]
    return "-".join(part for part in parts if part) + ".json"


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


def materialised(model: str, dataset: str) -> dict[str, Result]:
    """The results through each unit's own hypersurface, by layer, as far as they are stored."""
    found: dict[str, Result] = {}
    for mode in ("RM2", "RM0"):
        try:
            result = load(model, dataset, "hypersurface", mode)
        except DataError:
            continue
        found |= dict.fromkeys(result.report.layers, result)
    return found


def every_layer(model: str, dataset: str) -> dict[str, LayerReport]:
    """The reports through each unit's own hypersurface, of every layer in the paper's table.

    Returns:
        Reports by layer, in the order of the table.

    Raises:
        DataError: if the result of a layer is not stored.
    """
    modes = [load(model, dataset, "hypersurface", mode) for mode in ("RM2", "RM0")]
    found = {name: layer for result in modes for name, layer in result.report.layers.items()}
    return {name: found[name] for name in paper.percentages(model, dataset)}


def compared(model: str, dataset: str) -> Table:
    """The paper's percentages of units within 1 % and ours, with 95 % intervals.

    Ours through each unit's own hypersurface, then in one pass along [x; x_b]. The intervals speak
    of all images like those of the test set, and allow for the units of one image being correlated.
    """
    own = materialised(model, dataset)
    try:
        tangent = load(model, dataset, "tangent")
        one_pass = dict.fromkeys(tangent.report.layers, tangent)
    except DataError:
        one_pass = {}
    if not own and not one_pass:
        load(model, dataset, "hypersurface", "RM2")  # its error says what to do
    header = ["layer", "the paper's", "through H", "95 % interval", "images"]
    header += ["in one pass", "95 % interval", "images"]
    rows = [
        [layer, f"{theirs:.4f}", *_cells(own, layer), *_cells(one_pass, layer)]
        for layer, theirs in paper.percentages(model, dataset).items()
    ]
    return Table(header, rows)


def formats(model: str, dataset: str) -> Table:
    """How many of a million units miss 1 %, by layer: in float32, in float64, in bfloat16.

    bfloat16: H from weights rounded to it, against the units of the full ones, all in float64. Each
    column says how many images it is from.
    """
    own = materialised(model, dataset)
    fine = load(model, dataset, dtype="float64").report.layers
    coarse = load(model, dataset, dtype="float64", weights_rounded="bfloat16").report.layers
    columns = {
        "float32": {layer: result.report.layers[layer] for layer, result in own.items()},
        "float64": fine,
        "weights in bfloat16": coarse,
    }
    header = ["layer"]
    for name in columns:
        header += [name, "images"]
    rows = [
        [layer, *(cell for found in columns.values() for cell in _misses(found, layer))]
        for layer in fine
    ]
    return Table(header, rows)


def _misses(found: dict[str, LayerReport], layer: str) -> list[str]:
    if layer not in found:
        return ["", ""]
    missed = 1e6 * (1 - found[layer].share())
    return [f"{missed:,.3g}" if missed < 1000 else f"{missed:,.0f}", f"{found[layer].images:,}"]


def _cells(results: dict[str, Result], layer: str) -> list[str]:
    if layer not in results:
        return ["", "", ""]
    found = results[layer].report.layers[layer]
    return [f"{100 * found.share():.4f}", percentages(found.interval()), f"{found.images:,}"]
