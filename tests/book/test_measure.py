"""What is stored for the chapter "What it is good for" is what the same command gives again."""

import functools
import json

import numpy as np
import pytest

import adjoint_lib as al
from adjoint_book import attributions, boundary, decisions, measure
from adjoint_lib.experiments import runs
from adjoint_lib.experiments.weights import provenance
from repository import ROOT

network = functools.cache(measure.network)
STORED = [
    *(("decisions", m, d) for m in al.models.MODELS for d in ("cifar10", "cifar100")),
    *((what, m, "cifar10") for what in ("boundary", "attributions") for m in ("vgg7", "resnet20")),
]


def prepared(model, dataset):
    images, labels = al.data.sample(dataset)
    return al.models.preprocess(model, images), labels


# ---- decisions


def test_the_parts_of_the_scores_are_those_of_the_sources():
    net = al.equivalent(al.models.randomise(al.models.vgg7())).astype("float64")
    images, _ = prepared("vgg7", "cifar10")
    image, biases = decisions.split(net, images[:3])
    each = net.contributions(images[:3], "fc")["fc"]
    np.testing.assert_allclose(image, each.image, atol=1e-12)
    np.testing.assert_allclose(biases, each.bias, atol=1e-12)


def test_decisions_are_written_as_digits_and_read_again():
    rng = np.random.default_rng(0)
    image, biases = rng.normal(size=(2, 50, 3))
    found = decisions.decisions(image, biases, labels := rng.integers(3, size=50))
    for n in range(50):
        whole = (image + biases)[n].argmax()
        expected = whole == labels[n], image[n].argmax() == whole, image[n].argmax() == labels[n]
        assert (found.right[n], found.same[n], found.image_right[n]) == expected
        assert found.biases_same[n] == (biases[n].argmax() == whole)
    again = decisions.from_digits(found.digits)
    assert all((a == b).all() for a, b in zip(found, again, strict=True))


# ---- the command


def command(folder, *more):
    chosen = ["decisions", "--model", "vgg7", "--dataset", "cifar10", "--sample"]
    return measure.main([*chosen, "--output", str(folder), *more])


def test_a_measurement_that_was_stopped_goes_on(tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(measure.BATCHES, "decisions", 2)
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    assert command(whole, "--images", "5") == 0
    original, calls = measure.MEASURES["decisions"], []

    def interrupted(*arguments):
        calls.append(arguments)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return original(*arguments)

    monkeypatch.setitem(measure.MEASURES, "decisions", interrupted)
    with pytest.raises(KeyboardInterrupt):
        command(parts, "--images", "5")
    (path,) = parts.iterdir()
    assert json.loads(path.read_text())["images"] == 2
    assert command(parts, "--images", "5") == 0 and len(calls) == 4
    found, expected = (json.loads((f / path.name).read_text()) for f in (parts, whole))
    for each in (found, expected):
        assert each["provenance"].pop("cpu_seconds") > 0
    assert found == expected and found["images"] == 5
    assert command(parts, "--images", "4") == 2  # a file of other images
    assert "expected the same command, images" in capsys.readouterr().err


def test_what_cannot_be_measured_is_refused(tmp_path, capsys):
    assert command(tmp_path, "--images", "301") == 2
    assert "expected 1 to 300" in capsys.readouterr().err
    fixup = ["boundary", "--model", "resnet20-fixup", "--dataset", "cifar10", "--sample"]
    assert measure.main([*fixup, "--output", str(tmp_path)]) == 2
    assert "expected a network that takes images" in capsys.readouterr().err


# ---- what is stored


@pytest.mark.parametrize(("what", "model", "dataset"), STORED)
def test_a_stored_measurement_says_where_it_comes_from(what, model, dataset):
    found = measure.load(what, model, dataset)
    origin, weights = found["provenance"], ROOT / "data/weights" / f"{model}-{dataset}.npz"
    assert origin["weights"]["sha256"] == provenance(weights)["sha256"]
    assert origin["weights"]["network_sha256"] == network(model, dataset).digest
    assert origin["command"].startswith(
        f"python -m adjoint_book.measure {what} --model {model} --dataset {dataset} --images "
    )
    assert found["images"] == origin["images"]["count"] == int(origin["command"].split()[-1])
    assert all(len(column) == found["images"] for column in found["columns"].values())
    if what == "decisions":
        assert found["images"] == 10_000
        right = decisions.from_digits(found["columns"]["digits"]).right.sum()
        assert abs(right - provenance(weights)["accuracy"]["test"]["correct"]) <= 2  # near ties
    else:
        images, _ = prepared(model, dataset)
        assert runs.images_digest(images[: found["images"]]) == origin["images"]["sha256"]


@pytest.mark.parametrize("dataset", ["cifar10", "cifar100"])
@pytest.mark.parametrize("model", list(al.models.MODELS))
def test_stored_decisions_are_found_again(model, dataset):
    images, labels = prepared(model, dataset)
    few = slice(0, 60 if model == "vgg7" else 15)
    net = network(model, dataset)
    found = decisions.decisions(*decisions.split(net, images[few]), labels[few]).digits
    assert found == measure.load("decisions", model, dataset)["columns"]["digits"][: len(found)]


@pytest.mark.parametrize("model", ["vgg7", "resnet20"])
def test_stored_distances_are_found_again(model):
    columns = measure.load("boundary", model, "cifar10")["columns"]
    images, _ = prepared(model, "cifar10")
    net = network(model, "cifar10").astype("float64")
    few = images[:3].astype(float)
    walk = boundary.walk(net, few, net.value(few)["fc"].numpy().argmax(1))
    np.testing.assert_allclose(walk.distances, columns["one H a step"][:3], rtol=1e-4)
    assert walk.steps.tolist() == columns["steps"][:3]


def test_stored_distances_by_gradient_and_by_deepfool_are_found_again():
    columns = measure.load("boundary", "vgg7", "cifar10")["columns"]
    images, labels = prepared("vgg7", "cifar10")
    found = measure.boundary(network("vgg7", "cifar10"), images[:2], labels[:2])
    np.testing.assert_allclose(found["DeepFool"], columns["DeepFool"][:2], rtol=1e-4)
    ball = columns["projected gradient"][:2]
    np.testing.assert_allclose(found["projected gradient"], ball, rtol=0.05)


@pytest.mark.parametrize("model", ["vgg7", "resnet20"])
def test_stored_attributions_are_found_again(model):
    columns = measure.load("attributions", model, "cifar10")["columns"]
    images, _ = prepared(model, "cifar10")
    net, few = network(model, "cifar10"), images[:3]
    classes = net.value(few)["fc"].numpy().argmax(1)
    scores, found = attributions.attribute(net, few, classes)
    np.testing.assert_allclose(scores, columns["score"][:3], rtol=1e-4)
    for name, each in found.items():
        stored = columns[f"{name}: pixels"][:3], columns[f"{name}: biases"][:3]
        atol = 1e-3 * np.abs(scores).max()
        np.testing.assert_allclose(each.total - each.biases, stored[0], atol=atol)
        np.testing.assert_allclose(each.biases, stored[1], atol=atol)


def test_stored_deletions_are_found_again():
    columns = measure.load("attributions", "vgg7", "cifar10")["columns"]
    images, _ = prepared("vgg7", "cifar10")
    net, few = network("vgg7", "cifar10"), images[:4]
    classes = net.value(few)["fc"].numpy().argmax(1)
    for name in measure.DELETED:
        maps = measure.order(net, few, classes, name)
        kept = attributions.deletion(net, few, classes, maps, measure.grey())
        stored = [[bit == "1" for bit in row] for row in columns[f"{name}: kept"][:4]]
        assert np.mean(kept == stored) >= 0.95, name  # pixels that tie may go in another order
