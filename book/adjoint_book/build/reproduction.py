"""What the paper shows, row by row: its value and ours, on what, and what the comparison comes to.

Nothing is typed from a result. The paper's numbers are read from `data/paper`; ours come from the
live models, the trained weights (`data/weights`), the full verifications (`data/results`), the
figures as drawn, and the checks of the equations.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

import adjoint_lib as al
from adjoint_book import equations, figures, paper_runs, paper_tables, tables
from adjoint_book.build import verdicts
from adjoint_book.figures.ch14_feature_maps import FEATURE_MAPS, paper_maps
from adjoint_book.paper_tables import NAMES
from adjoint_lib.experiments import paper
from adjoint_lib.verification.report import EDGES, LayerReport

DATASETS = {"cifar10": "CIFAR-10", "cifar100": "CIFAR-100"}
PAIRS = [(model, dataset) for dataset in DATASETS for model in NAMES]
TRAINING = {"vgg7": "09-vgg7", "resnet20": "10-resnet20", "resnet20-fixup": "11-fixup"}
VERIFICATION = {"cifar10": "12-verification-cifar10", "cifar100": "13-verification-cifar100"}


@dataclass(frozen=True)
class Cells:
    """What a row says: the paper's value, ours, on which images by which recipe, the verdict."""

    paper: str
    ours: str
    on: str
    verdict: str


@dataclass(frozen=True)
class Row:
    """One thing the paper shows, and the commands that do it again; `cells` compares the two."""

    kind: str  # "figure", "table", "equation"
    title: str
    chapter: str
    commands: tuple[str, ...]
    cells: Callable[[], Cells]


def _recipe(model: str, dataset: str) -> str:
    """The recipe that trained the shipped weights, with its epochs."""
    return _named(al.models.trained(model)[dataset])


def _named(record: dict) -> str:
    return f"{record['recipe']['name']}, {record['recipe']['epochs']} epochs"


@functools.cache
def _layers(model: str, dataset: str) -> dict[str, LayerReport]:
    return tables.every_layer(model, dataset)


def _images(model: str, dataset: str) -> str:
    """On how many images each layer was verified: the convolutions, and the dense layer."""
    counts = {name: layer.images for name, layer in _layers(model, dataset).items()}
    convolutions = {count for name, count in counts.items() if name != "fc"}
    text = " and ".join(f"{count:,}" for count in sorted(convolutions))
    return f"{text} images (fc {counts['fc']:,}); weights by {_recipe(model, dataset)}"


# ------------------------------------------------------------------ figures


def _figures() -> list[dict[str, str]]:
    return paper.table("figures")


DIAGRAMS = {  # the figure's number: what it shows, chapter, and our figure
    "1": ("one neuron, three ways", "02-one-neuron", "one-neuron"),
    "2": ("a CNN and its equivalent", "03-equivalent-topology", "equivalent-cnn"),
    "3": ("the adjoint blueprint", "06-five-modes", "adjoint-blueprint"),
    "4": ("batch normalisation reduced", "04-folding", "batch-norm"),
    "5": ("two factors make the modes", "06-five-modes", "two-factors"),
}


def panels_of(name: str) -> int:
    """How many panels a drawn diagram has: each has its name in bold."""
    drawn = figures.get(name)()
    return sum(text.get_fontweight() == "bold" for ax in drawn.axes for text in ax.texts)


def _diagram(row: dict[str, str]) -> Row:
    about, chapter, name = DIAGRAMS[row["number"]]

    def cells() -> Cells:
        ours, theirs = panels_of(name), int(row["panels"])
        verdict = verdicts.of_count(ours, theirs, "panels")
        return Cells(f"{theirs} panels", f"{ours} panels", "no images: a diagram", verdict)

    return Row("figure", f"Fig. {row['number']}: {about}", chapter, (f"figure {name}",), cells)


def _histograms(row: dict[str, str]) -> Row:
    model, dataset = row["model"].replace("_", "-"), row["dataset"]
    name = f"histograms-{model}-{dataset}"

    def cells() -> Cells:
        drawn = figures.get(name)()
        panels = sum(bool(ax.get_visible() and ax.patches) for ax in drawn.axes)
        stated = paper.statement("images"), paper.statement("histogram_end")
        images = min(layer.images for layer in _layers(model, dataset).values())
        verdict = verdicts.of_histograms(
            panels, int(row["panels"]), float(EDGES[-1]), stated[1], images, int(stated[0])
        )
        theirs = f"{row['panels']} panels, {stated[0]:,.0f} images, to ±{stated[1]:g}"
        ours = f"{panels} panels, {images:,} images, to ±{EDGES[-1]:g}"
        return Cells(theirs, ours, _images(model, dataset), verdict)

    about = f"Fig. {row['number']}: relative errors, {NAMES[model]} on {DATASETS[dataset]}"
    return Row("figure", about, VERIFICATION[dataset], (f"figure {name}",), cells)


def _maps(row: dict[str, str]) -> Row:
    model, dataset, layer = row["model"].replace("_", "-"), row["dataset"], row["layer"]
    name = f"feature-maps-{model}-{dataset}"

    def cells() -> Cells:
        maps = paper_maps(model, dataset)
        drawn = figures.get(name)()
        count = maps.c.shape[-1]
        pictures = [ax for ax in drawn.axes if ax.images and "$c" in ax.get_title()]
        pictures += [ax for ax in drawn.axes if ax.images and "hat" in ax.get_title()]
        width = pictures[0].get_xlim()[1] + 0.5  # in units, with a line between the maps
        across = round((width + 1) / (maps.c.shape[1] + 1))
        shown = len(pictures), count, across
        stated = int(row["panels"]), int(row["maps"]), int(row["maps_a_row"])
        size = float(np.max(abs(maps.difference)) / np.max(abs(maps.c)))
        bound = _layers(model, dataset)[layer].bound * maps.u * maps.A
        worst = float(np.max(abs(maps.difference) / bound))
        about = paper.statement("normalised_difference")
        verdict = verdicts.of_maps(shown, stated, size, about, worst)
        theirs = f"{stated[0]} pictures of {stated[1]} maps, {stated[2]} a row; about {about:.0e}"
        ours = f"{shown[0]} pictures of {shown[1]} maps, {shown[2]} a row; {size:.0e}"
        on = f"1 image of the test set; weights by {_recipe(model, dataset)}"
        return Cells(theirs, ours, on, verdict)

    if FEATURE_MAPS[model, dataset] != layer:
        raise AssertionError(f"expected {layer} of {model} on {dataset}, as the paper has it")
    about = f"appendix fig. {row['number']}: maps of {layer}, {NAMES[model]} on {DATASETS[dataset]}"
    return Row("figure", about, "14-feature-maps", (f"figure {name}",), cells)


# ------------------------------------------------------------------ tables


def _schedule(number: int, model: str, dataset: str) -> Row:
    def cells() -> Cells:
        rows = [row for row in paper_tables.schedule_table(dataset) if row[0] == NAMES[model]]
        theirs, ours = (row[2:] for row in rows)
        same = sum(a == b for a, b in zip(theirs, ours, strict=True))
        verdict = verdicts.of_entries(same, len(theirs), ["the recipe's"])
        # "0.01, [0, 299]" is 0.01 to epoch 299.
        said, found = (
            "; ".join(re.sub(r", \[\d+, (\d+)\]", r" to \1", stage) for stage in row[:-1])
            for row in (theirs, ours)
        )
        return Cells(said, found, "no images: the recipe `paper`", verdict)

    title = f"Table {number}: learning rates of {NAMES[model]}, {DATASETS[dataset]}"
    command = f"python -m adjoint_book.paper_tables schedules {dataset}"
    return Row("table", title, TRAINING[model], (command,), cells)


def _accuracy(number: int, model: str, dataset: str) -> Row:
    record = paper_runs.judged(model, dataset)

    def cells() -> Cells:
        test = record["accuracy"]["test"]
        low, high = (100 * end for end in test["interval_95"])
        theirs = paper.accuracy(model, dataset)
        epochs = paper.training(model, dataset)["total_epochs"]
        recipe = record["recipe"]["name"]
        verdict = verdicts.of_number(theirs, (low, high), recipe)
        return Cells(
            f"{theirs:.1f} % after {epochs} epochs",
            f"{100 * test['value']:.1f} % ({low:.1f} to {high:.1f})",
            f"{test['count']:,} images; {_named(record)}",
            verdict,
        )

    title = f"Table {number}: test accuracy of {NAMES[model]}, {DATASETS[dataset]}"
    command = f"train --model {model} --dataset {dataset} --recipe {record['recipe']['name']}"
    return Row("table", title, TRAINING[model], (command,), cells)


def _shares(number: int, model: str, dataset: str) -> Row:
    def cells() -> Cells:
        theirs, ours = paper.percentages(model, dataset), _layers(model, dataset)
        column = [100 * layer.share() for layer in ours.values()]
        verdict = verdicts.of_shares(ours, theirs, paper.statement("share_percent"))
        return Cells(
            f"{min(theirs.values()):.4f} to {max(theirs.values()):.4f} %",
            f"{min(column):.4f} to {max(column):.4f} %",
            _images(model, dataset),
            verdict,
        )

    title = f"Table {number}: units within 1 %, {NAMES[model]} on {DATASETS[dataset]}"
    words = f"verify --model {model} --weights {dataset} --full"
    counts = {m: al.results.load(model, dataset, mode=m).report.images for m in ("RM2", "RM0")}
    commands = tuple(f"{words} --mode {mode} --images {n}" for mode, n in counts.items())
    return Row("table", title, VERIFICATION[dataset], commands, cells)


def _parameters(number: int, model: str) -> Row:
    def cells() -> Cells:
        same, stated = paper_tables.agreement(model)
        differing = [
            f"{getattr(pair.ours, name)}, not {getattr(pair.theirs, name)} ({name})"
            for pair in paper_tables.pairs(model)
            for name in pair.differing()
        ]
        verdict = verdicts.of_entries(same, stated, differing)
        return Cells(f"{stated} entries", f"{same} the same", "no images: the live model", verdict)

    title = f"appendix table {number}: parameters of {NAMES[model]}"
    command = f"python -m adjoint_book.paper_tables parameters {model}"
    return Row("table", title, TRAINING[model], (command,), cells)


def _dimensions(number: int, model: str) -> Row:
    def cells() -> Cells:
        entries = [entry for entry in paper_tables.dimension_entries(model) if entry[2]]
        biases, _ = paper_tables.papers_biases(model)
        ours = paper_tables.network(model).x_b.size
        same = sum(theirs == computed for _, _, theirs, computed in entries) + (biases == ours)
        slip = f"$x_b$ has {ours:,} entries, not {biases:,}"
        verdict = verdicts.of_entries(same, len(entries) + 1, [slip])
        theirs = f"{len(entries)} entries; $x_b$ of {biases:,}"
        found = f"{same} of {len(entries) + 1} the same; $x_b$ of {ours:,}"
        return Cells(theirs, found, "no images: the live model", verdict)

    title = f"appendix table {number}: dimensions of H, {NAMES[model]}"
    command = f"python -m adjoint_book.paper_tables dimensions {model}"
    return Row("table", title, "06-five-modes", (command,), cells)


# ------------------------------------------------------------------ algorithm and equations


def _equation(one: equations.Equation) -> Row:
    def cells() -> Cells:
        on = f"{one.check().values:,} {one.on}"
        return Cells(one.said, one.ours(), on, one.verdict())

    command = f"python -m adjoint_book.equations {one.number}"
    return Row("equation", f"{one.title}: {one.about}", one.chapter, (command,), cells)


KINDS = {"histograms": _histograms, "maps": _maps}

ROWS: list[Row] = [
    *(KINDS.get(row["shows"], _diagram)(row) for row in _figures()),
    *(_schedule(n, m, d) for n, d in ((1, "cifar10"), (2, "cifar100")) for m in NAMES),
    *(_accuracy(n, m, d) for n, d in ((1, "cifar10"), (2, "cifar100")) for m in NAMES),
    *(_shares(n, m, d) for n, d in ((3, "cifar10"), (4, "cifar100")) for m in NAMES),
    *(_parameters(n, m) for n, m in ((1, "vgg7"), (3, "resnet20"), (4, "resnet20-fixup"))),
    *(_dimensions(n, m) for n, m in ((2, "vgg7"), (5, "resnet20"), (5, "resnet20-fixup"))),
    *(_equation(one) for one in sorted(equations.EQUATIONS.values(), key=lambda e: e.order)),
]
