"""The paper's tables, and what is reproduced of them, within stated tolerances."""

from __future__ import annotations

import pytest

from adjoint_lib import models, paper, results
from adjoint_lib.errors import InputError
from adjoint_lib.tables import Table

POINTS = 0.02  # of percent: how far our shares may be from the paper's, of other weights
PAIRS = [(model, dataset) for model in models.MODELS for dataset in ("cifar10", "cifar100")]


@pytest.mark.parametrize(("model", "dataset"), PAIRS)
def test_tables_have_every_network(model, dataset):
    shares = paper.percentages(model, dataset)
    assert len(shares) == (6 if model == "vgg7" else 19)
    assert all(99 < share <= 100 for share in shares.values())
    assert 60 < paper.accuracy(model, dataset) < 95


def test_values_are_those_of_the_tables():
    shares = paper.percentages("vgg7", "cifar10")
    assert (shares["conv1"], shares["conv2"], shares["fc"]) == (99.9987, 99.9978, 99.991)
    assert paper.accuracy("resnet20-fixup", "cifar100") == 64.0
    assert paper.training("vgg7", "cifar100")["total_epochs"] == "701"


def test_unknown_network():
    with pytest.raises(InputError, match="no schedule for model 'vgg16'"):
        paper.training("vgg16", "cifar10")


@pytest.mark.parametrize(("model", "dataset"), PAIRS)
def test_trained_weights_reach_the_papers_accuracy(model, dataset):
    record = models.trained(model)[dataset]
    assert 100 * record["accuracy"]["test"]["value"] >= paper.accuracy(model, dataset)


@pytest.mark.parametrize(("model", "dataset"), PAIRS)
def test_shares_within_one_percent_are_the_papers(model, dataset):
    stored = results.materialised(model, dataset)
    if not stored:
        pytest.skip(f"no stored result of {model} on {dataset} yet")
    theirs = paper.percentages(model, dataset)
    for name, found in stored.items():
        ours = 100 * found.report.layers[name].share()
        assert ours >= 99.97, name
        assert ours == pytest.approx(theirs[name], abs=POINTS), name


def test_accuracies_stand_beside_the_papers():
    for model in models.MODELS:
        rows = list(paper.accuracies(model))
        assert [row[0] for row in rows] == list(models.trained(model))
        for dataset, _, _, theirs, _ in rows:
            assert theirs == f"{paper.accuracy(model, dataset):.1f} %"


def test_a_slice_of_a_table_is_a_table():
    table = Table(["n", "square"], range(5), lambda n: [str(n), str(n * n)])
    assert repr(table[3:]) == "n  square\n-  ------\n3  9\n4  16"
    assert table[2] == 2
