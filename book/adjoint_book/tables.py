"""Our results beside the paper's, in tables: what the chapters show of stored runs.

book.tables.accuracies("vgg7")             # test accuracies beside the paper's
book.tables.compared("vgg7", "cifar10")    # percentages of units within 1 %
book.tables.formats("vgg7", "cifar10")     # misses in float32, float64 and bfloat16
book.tables.ingredients()                  # what each ingredient of the fast recipe is worth
book.tables.colours()                      # mean and deviation of each colour, of both data sets
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np

from adjoint_lib._storage import read_json
from adjoint_lib.core.tables import Table
from adjoint_lib.errors import DataError
from adjoint_lib.experiments import data, paper, resources, results
from adjoint_lib.experiments.models import trained
from adjoint_lib.verification.intervals import wilson
from adjoint_lib.verification.report import LayerReport, percentages


def accuracies(model: str) -> Table:
    """The test accuracy of the trained weights of `model` beside the paper's, by data set."""
    rows = []
    for dataset, record in trained(model).items():
        ours, theirs = record["accuracy"]["test"], paper.training(model, dataset)
        rows.append(
            [
                dataset,
                in_percent(ours["value"], ours["count"]),
                str(record["recipe"]["epochs"]),
                f"{paper.accuracy(model, dataset):.1f} %",
                theirs["total_epochs"],
            ]
        )
    return Table(["data set", "ours (95 % interval)", "epochs", "the paper's", "epochs"], rows)


def materialised(model: str, dataset: str) -> dict[str, results.Result]:
    """The results through each unit's own hypersurface, by layer, as far as they are stored."""
    found: dict[str, results.Result] = {}
    for mode in ("RM2", "RM0"):
        try:
            result = results.load(model, dataset, "hypersurface", mode)
        except DataError:
            continue
        found |= dict.fromkeys(result.report.layers, result)
    return found


def every_layer(model: str, dataset: str) -> dict[str, LayerReport]:
    """The reports through each unit's own hypersurface, of every layer in the paper's table.

    Raises:
        DataError: if the result of a layer is not stored.
    """
    modes = [results.load(model, dataset, "hypersurface", mode) for mode in ("RM2", "RM0")]
    found = {name: layer for result in modes for name, layer in result.report.layers.items()}
    return {name: found[name] for name in paper.percentages(model, dataset)}


def compared(model: str, dataset: str) -> Table:
    """The paper's percentages of units within 1 % and ours, with 95 % intervals.

    Ours through each unit's own hypersurface, then in one pass along [x; x_b]. The intervals speak
    of all images like those of the test set, and allow for the units of one image being correlated.
    """
    own = materialised(model, dataset)
    try:
        tangent = results.load(model, dataset, "tangent")
        one_pass = dict.fromkeys(tangent.report.layers, tangent)
    except DataError:
        one_pass = {}
    if not own and not one_pass:
        results.load(model, dataset, "hypersurface", "RM2")  # its error says what to do
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
    fine = results.load(model, dataset, dtype="float64").report.layers
    coarse = results.load(model, dataset, dtype="float64", weights_rounded="bfloat16").report.layers
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


def _cells(results: dict[str, results.Result], layer: str) -> list[str]:
    if layer not in results:
        return ["", "", ""]
    found = results[layer].report.layers[layer]
    return [f"{100 * found.share():.4f}", percentages(found.interval()), f"{found.images:,}"]


def ingredients(dataset: str = "cifar10", epochs: int = 5, path: Path | None = None) -> Table:
    """What each ingredient of the fast recipe is worth: runs with it and without it.

    The images of all seeds count together; what the recipe gains over a variant on the validation
    images is given for each seed, in percentage points. Training images have a column if every run
    has counted them.

    Args:
        dataset: of the runs of VGG7 that come with the library.
        epochs: of these runs.
        path: of another result of ``python -m benchmarks.ingredients``, in their place.
    """
    path = path or resources.path(f"results/ingredients-vgg7-{dataset}-{epochs}.json")
    variants: dict[str, list[dict]] = {}
    found = read_json(path, "runs of benchmarks.ingredients", "Run it again.")
    for run in found["runs"]:
        variants.setdefault(run["recipe"]["name"], []).append(run)
    fast = variants.get("fast", [])
    splits = ["validation"]
    if all("train" in run for runs in variants.values() for run in runs):
        splits = ["train", "validation"]
    rows = [
        [
            name,
            str(runs[0]["recipe"]["epochs"]),
            *(_pooled(runs, split) for split in splits),
            _gains(fast, runs),
        ]
        for name, runs in variants.items()
    ]
    titles = {"train": "training images", "validation": "validation images (95 % interval)"}
    return Table(["recipe", "epochs", *(titles[split] for split in splits), "fast gains"], rows)


def applications() -> Table:
    """One network of each family of keras.applications: exact, or the layer it is refused by."""
    path = resources.path("applications.json")
    found = read_json(path, "networks of keras.applications", "Restore it from the repository.")
    rows = [
        [
            row["model"],
            f"refused: {row['why']}" if row["refused"] else "exact",
            row["refused"].rpartition("/")[2] or str(row["layers"]),
        ]
        for row in found["rows"]
    ]
    return Table(["network", "outcome", "layers with a kernel, or the layer"], rows)


def colours() -> Table:
    """Mean and standard deviation of each colour in each split of both data sets, as stored.

    Those of the samples are computed anew, and those of the full sets where ADJOINT_FULL is 1.

    Raises:
        DataError: if a number that is computed anew is not the stored one.
    """
    rows = []
    for dataset, splits in stored_colours().items():
        for split, kept in splits.items():
            if split == "sample" or os.environ.get("ADJOINT_FULL") == "1":
                _compare_colours(dataset, split, kept)
            cells = [" ".join(f"{value:.4f}" for value in kept[what]) for what in ("mean", "std")]
            rows.append([dataset, split, str(kept["images"]), *cells])
    return Table(["data set", "split", "images", "mean", "deviation"], rows)


def stored_colours() -> dict[str, dict[str, dict[str, Any]]]:
    """What is stored of the colours: by data set and split, the images, their mean and std."""
    path = resources.path("results/data-statistics.json")
    return read_json(path, "the statistics of the data sets", "Restore it from the repository.")


def _compare_colours(dataset: str, split: str, kept: dict[str, Any]) -> None:
    images, _ = data.sample(dataset) if split == "sample" else data.load(dataset, split)
    flat = images.reshape(-1, 3).astype("float64")
    found = {"mean": flat.mean(0), "std": flat.std(0)}
    for what, numbers in found.items():
        if not np.allclose(numbers, kept[what], atol=1e-5):
            raise DataError(
                f"{dataset}, {split}: expected the stored {what} {kept[what]}, found {numbers}."
            )


def _pooled(runs: list[dict], split: str) -> str:
    """The accuracy of one variant on the images of one split, those of all its seeds."""
    if any("diverged" in run for run in runs):
        return "diverged"
    correct, count = (sum(run[split][key] for run in runs) for key in ("correct", "count"))
    share = correct / count
    return f"{100 * share:.1f} %" if split == "train" else in_percent(share, count)


def _gains(fast: list[dict], runs: list[dict]) -> str:
    """By how many percentage points the recipe is ahead of another, seed by seed."""
    if runs is fast:
        return ""
    ours, theirs = (
        {run["seed"]: 100 * run["validation"]["value"] for run in each if "validation" in run}
        for each in (fast, runs)
    )
    return ", ".join(f"{ours[seed] - theirs[seed]:+.1f}" for seed in ours if seed in theirs)


def in_percent(share: float, count: float) -> str:
    """A share and its 95 % interval as text: "89.5 % (88.9 to 90.1)"."""
    low, high = wilson(share, count)
    return f"{100 * share:.1f} % ({100 * low:.1f} to {100 * high:.1f})"
