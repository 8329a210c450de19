"""What the chapters compute again is compared with what is stored, and refused if it is another."""

import numpy as np
import pytest

import adjoint_lib as al
from adjoint_book import recompute
from adjoint_lib.experiments import data, models


@pytest.fixture(scope="module")
def images():
    return al.data.sample("cifar10")


@pytest.fixture
def partly(monkeypatch):
    monkeypatch.delenv("ADJOINT_FULL", raising=False)


@pytest.fixture
def fully(monkeypatch, images):
    """All that is stored, on a test set of twenty images."""
    monkeypatch.setenv("ADJOINT_FULL", "1")
    few = images[0][:20], images[1][:20]
    monkeypatch.setattr(data, "load", lambda *_: few)
    return few


def test_a_few_images_are_compared_with_the_stored_run(partly, images, capsys):
    net = al.equivalent(al.models.vgg7(weights="cifar10"))
    recompute.verification("vgg7", "cifar10", net, images[0][:3])
    printed = capsys.readouterr().out
    assert "3 images: the stored network" in printed
    assert printed.count("below 0.01 of its rounding bound") == 2


def test_another_network_is_not_taken_for_the_stored_one(partly, images):
    net = al.equivalent(al.models.randomise(al.models.vgg7()))
    with pytest.raises(al.DataError, match="Load the stored weights"):
        recompute.verification("vgg7", "cifar10", net, images[0][:1])


def test_the_stored_count_is_printed_and_nothing_is_computed(partly, capsys):
    recompute.evaluation("vgg7", None, None)  # type: ignore[arg-type]
    stored = models.trained("vgg7")["cifar10"]["accuracy"]["test"]
    assert f"{stored['correct']:,} of {stored['count']:,}" in capsys.readouterr().out


@pytest.mark.parametrize("off", [0, 5])
def test_images_are_counted_anew_and_a_wrong_count_is_refused(fully, monkeypatch, capsys, off):
    images, labels = fully
    trained = al.models.vgg7(weights="cifar10", final_activation=False)
    right = int(np.sum(np.argmax(trained(images, training=False), -1) == labels))
    stored = {"accuracy": {"test": {"correct": right - off, "count": len(labels)}}}
    monkeypatch.setattr(models, "trained", lambda _: {"cifar10": stored})
    net = al.equivalent(trained)
    if off:
        with pytest.raises(al.DataError, match=f"expected {right - off} images right"):
            recompute.evaluation("vgg7", trained, net)
    else:
        recompute.evaluation("vgg7", trained, net)
        assert f"counted: {right}" in capsys.readouterr().out
