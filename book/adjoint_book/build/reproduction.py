"""What the paper shows, row by row: where the book reproduces it, the paper's value and ours.

Values are computed from what is there: the live models, the paper's tables (data/paper), trained
weights (data/weights) and full verifications (data/results, see `adjoint_lib.experiments.results`).
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass

import adjoint_lib as al
from adjoint_book.figures.ch12_to_13_verification import NETWORKS as MODELS
from adjoint_book.figures.ch14_feature_maps import FEATURE_MAPS
from adjoint_lib.experiments import paper

DATASETS = {"cifar10": "CIFAR-10", "cifar100": "CIFAR-100"}


@dataclass(frozen=True)
class Row:
    """One thing the paper shows; `paper`, `ours` and `command` give the text of their columns."""

    kind: str
    title: str
    chapter: str
    paper: Callable[[], str]
    ours: Callable[[], str]
    command: Callable[[], str]


# ------------------------------------------------------------------ values


def _said(text: str) -> Callable[[], str]:
    return lambda: text


def _figure(name: str) -> Callable[[], str]:
    """The command that draws a figure."""
    return _said(f"`figure {name}`")


@functools.cache
def _net(model: str):
    return al.equivalent(al.models.build(model))


def _paper_range(model: str, dataset: str) -> Callable[[], str]:
    """The least and the greatest percentage in a column of the paper's table."""

    def text() -> str:
        column = paper.percentages(model, dataset).values()
        return f"{min(column):.4f} to {max(column):.4f} %"

    return text


def _our_range(model: str, dataset: str) -> Callable[[], str]:
    """Our lowest and highest percentage, through each unit's own H."""

    def text() -> str:
        layers = al.results.every_layer(model, dataset).values()
        column = [100 * layer.share() for layer in layers]
        images = sorted({f"{layer.images:,}" for layer in layers}, key=len)
        return f"{min(column):.4f} to {max(column):.4f} % ({' and '.join(images)} images)"

    return text


def _panels(model: str, dataset: str) -> Callable[[], str]:
    return lambda: f"{len(al.results.every_layer(model, dataset))} panels"


def _paper_accuracy(model: str, dataset: str) -> Callable[[], str]:
    def text() -> str:
        epochs = paper.training(model, dataset)["total_epochs"]
        return f"{paper.accuracy(model, dataset):.1f} % after {epochs} epochs"

    return text


def _our_accuracy(model: str, dataset: str) -> Callable[[], str]:
    def text() -> str:
        found = al.models.trained(model)[dataset]
        accuracy, epochs = found["accuracy"]["test"]["value"], found["recipe"]["epochs"]
        return f"{100 * accuracy:.1f} % after {epochs} epochs"

    return text


def _entries(model: str) -> Callable[[], str]:
    return lambda: f"$x_b$ has {_net(model).x_b.size:,} entries"


def _parameters(model: str) -> Callable[[], str]:
    def text() -> str:
        built = al.models.build(model)
        kernels = [w for w in built.trainable_weights if len(w.shape) > 1]
        weights = sum(math.prod(w.shape) for w in kernels)
        return f"{len(kernels)} kernels, {weights:,} weights"

    return text


# ------------------------------------------------------------------ the rows


def _diagram(number: int, about: str, chapter: str, name: str) -> Row:
    return Row(
        "figure",
        f"Fig. {number}: {about}",
        chapter,
        _said("diagram"),
        _said("drawn"),
        _figure(name),
    )


def _verify(model: str, dataset: str) -> Callable[[], str]:
    """The command that verifies as many images through H as the stored result has."""

    def command() -> str:
        images = al.results.load(model, dataset, mode="RM2").report.images
        return f"`verify --model {model} --weights {dataset} --full --images {images}`"

    return command


def _equation(number: str, about: str, chapter: str, code: str, test: str) -> Row:
    return Row(
        "equation",
        f"{number}: {about}",
        chapter,
        _said("stated"),
        _said(f"`{code}`"),
        _said(f"`pytest tests/{test}.py`"),
    )


PAIRS = [(model, dataset) for dataset in DATASETS for model in MODELS]
TRAINING = {"vgg7": "09-vgg7", "resnet20": "10-resnet20", "resnet20-fixup": "11-fixup"}
VERIFICATION = {"cifar10": "12-verification-cifar10", "cifar100": "13-verification-cifar100"}

ROWS: list[Row] = [
    _diagram(1, "one neuron, three ways", "02-one-neuron", "one-neuron"),
    _diagram(2, "a CNN and its equivalent", "03-equivalent-topology", "equivalent-cnn"),
    _diagram(3, "the adjoint blueprint", "06-five-modes", "adjoint-blueprint"),
    _diagram(4, "batch normalisation reduced", "04-folding", "batch-norm"),
    _diagram(5, "two factors make the modes", "06-five-modes", "two-factors"),
    *(
        Row(
            "figure",
            f"Histograms of the relative error: {MODELS[m]} on {DATASETS[d]}",
            VERIFICATION[d],
            _said(f"{6 if m == 'vgg7' else 19} panels"),
            _panels(m, d),
            _figure(f"histograms-{m}-{d}"),
        )
        for m, d in PAIRS
    ),
    *(
        Row(
            "figure",
            f"Feature maps: {MODELS[m]} {layer} on {DATASETS[d]}",
            "14-feature-maps",
            _said("original and reconstructed look the same"),
            _said("both and their difference"),
            _figure(f"feature-maps-{m}-{d}"),
        )
        for (m, d), layer in FEATURE_MAPS.items()
    ),
    *(
        Row(
            "table",
            f"Training of {MODELS[m]} on {DATASETS[d]}",
            TRAINING[m],
            _paper_accuracy(m, d),
            _our_accuracy(m, d),
            _said(f"`train --model {m} --dataset {d}`"),
        )
        for m, d in PAIRS
    ),
    *(
        Row(
            "table",
            f"Units within 1 %: {MODELS[m]} on {DATASETS[d]}",
            VERIFICATION[d],
            _paper_range(m, d),
            _our_range(m, d),
            _verify(m, d),
        )
        for m, d in PAIRS
    ),
    *(
        Row(
            "table",
            f"Parameters of {MODELS[m]}",
            TRAINING[m],
            _said(count),
            _parameters(m),
            _said(f"`info --model {m}`"),
        )
        for m, count in (
            ("vgg7", "7 kernels, 204,576 weights"),
            ("resnet20", "20 kernels, 729,888 weights"),
            ("resnet20-fixup", "20 kernels, 729,888 weights"),
        )
    ),
    *(
        Row(
            "table",
            f"Dimensions of H: {MODELS[m]}",
            "06-five-modes",
            _said(f"$x_b$ has {size} entries"),
            _entries(m),
            _said(f"`info --model {m}`"),
        )
        for m, size in (("vgg7", "384"), ("resnet20", "1,152"), ("resnet20-fixup", "37"))
    ),
    _equation(
        "Algorithm 1",
        "RM4 to RM0",
        "06-five-modes",
        "benchmarks/algorithm_1.py",
        "project/test_benchmarks",
    ),
    Row(
        "equation",
        "Eq. (1): gradient flow, of the tangent kernel",
        "notes-on-the-paper",
        _said("quoted as an approximation"),
        _said("not needed: the identity is exact"),
        _said("`pytest tests/core/test_exactness.py`"),
    ),
    _equation(
        "Eq. (2)",
        "the inner product",
        "01-adjoints",
        "core.units.Units.contributions",
        "core/test_hypersurface",
    ),
    _equation(
        "Eq. (3)",
        r"$c = \langle Jv, w\rangle$",
        "05-proof",
        "core.frozen.Frozen.push",
        "core/test_exactness",
    ),
    _equation(
        "Eq. (4)",
        r"$c = \langle v, J^*w\rangle$",
        "05-proof",
        "core.frozen.Frozen.pull",
        "core/test_exactness",
    ),
    _equation(
        "Eq. (5)",
        "its two parts",
        "05-proof",
        "core.units.Units.image",
        "core/test_exactness",
    ),
    _equation(
        "Eq. (6)",
        "batch normalisation",
        "04-folding",
        "core.folding.batch_norm",
        "frontend/test_equivalent",
    ),
    _equation(
        "Eq. (7)",
        "the same as $w'$ and $b'$",
        "04-folding",
        "core.folding.fold",
        "frontend/test_equivalent",
    ),
    _equation(
        "Eq. (8)",
        "RM4",
        "06-five-modes",
        "core.hypersurface.Hypersurface",
        "core/test_hypersurface",
    ),
    _equation(
        "Eq. (9)",
        "from RM4 to RM3",
        "06-five-modes",
        "core.hypersurface.MODES",
        "core/test_hypersurface",
    ),
    _equation(
        "Eq. (10)", "RM3", "06-five-modes", "core.hypersurface.MODES", "core/test_hypersurface"
    ),
    _equation(
        "Eq. (11)", "RM2", "06-five-modes", "core.hypersurface.MODES", "core/test_hypersurface"
    ),
    _equation(
        "Eq. (12)", "RM1", "06-five-modes", "core.hypersurface.MODES", "core/test_hypersurface"
    ),
    _equation(
        "Eq. (13)", "RM0", "06-five-modes", "core.hypersurface.MODES", "core/test_hypersurface"
    ),
    _equation(
        "Eq. (14)",
        "a conv unit checked",
        VERIFICATION["cifar10"],
        "verification.verify.verify",
        "verification/test_verify",
    ),
    _equation(
        "Eq. (15)",
        "an FC unit checked",
        VERIFICATION["cifar10"],
        "verification.verify.verify",
        "verification/test_verify",
    ),
    _equation(
        "Eq. (16)",
        "the relative error",
        VERIFICATION["cifar10"],
        "verification.verify.relative_error",
        "verification/test_verify",
    ),
]
