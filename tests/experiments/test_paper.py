"""The paper's tables, and what is reproduced of them, within stated tolerances."""

from __future__ import annotations

import numpy as np
import pytest

from adjoint_book import tables
from adjoint_lib import data
from adjoint_lib.core.tables import Table
from adjoint_lib.errors import InputError
from adjoint_lib.experiments import models, paper
from adjoint_lib.frontend.equivalent import equivalent
from adjoint_lib.verification.verify import reconstruct, relative_error

POINTS = 0.02  # of percent: how far our shares may be from the paper's, of other weights
MORE_MISSES = {("resnet20", "cifar100"): ["conv3", "conv4"]}  # chapter 13 says why
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
    stored = tables.materialised(model, dataset)
    if not stored:
        pytest.skip(f"no stored result of {model} on {dataset} yet")
    theirs = paper.percentages(model, dataset)
    ours = {name: 100 * found.report.layers[name].share() for name, found in stored.items()}
    more = [n for n in ours if ours[n] < 99.97 or abs(ours[n] - theirs[n]) > POINTS]
    assert more == MORE_MISSES.get((model, dataset), [])


@pytest.mark.parametrize(("model", "dataset"), MORE_MISSES)
def test_where_more_units_miss_one_percent_it_is_by_rounding(model, dataset):
    """In float64 every unit is a hundred times nearer than 1 %; in float32 some are not."""
    net = equivalent(models.build(model, weights=dataset))
    image = models.preprocess(model, data.sample(dataset)[0])[0]
    names = MORE_MISSES[model, dataset]
    for dtype, nearer in (("float64", True), ("float32", False)):
        c = net.astype(dtype).value(image)
        for name, c_hat in reconstruct(net, image, names, dtype=dtype).items():
            epsilon = relative_error(c[name].numpy()[0], c_hat)
            assert (np.abs(epsilon).max() < 1e-4) == nearer, name


def test_accuracies_stand_beside_the_papers():
    for model in models.MODELS:
        rows = list(tables.accuracies(model))
        assert [row[0] for row in rows] == list(models.trained(model))
        for dataset, _, _, theirs, _ in rows:
            assert theirs == f"{paper.accuracy(model, dataset):.1f} %"


def test_a_slice_of_a_table_is_a_table():
    table = Table(["n", "square"], range(5), lambda n: [str(n), str(n * n)])
    assert repr(table[3:]) == "n  square\n-  ------\n3  9\n4  16"
    assert table[2] == 2
