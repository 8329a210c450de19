"""Stored results: what the files say, how they are read, and those that come with the library."""

import json
import shutil

import numpy as np
import pytest

import adjoint_lib as al
from adjoint_book import tables
from adjoint_book.misses import expected_misses
from adjoint_lib import data
from adjoint_lib.cli.main import main
from adjoint_lib.experiments import machine, models, paper, resources, results, runs, weights
from adjoint_lib.verification import verify as verification
from adjoint_lib.verification.intervals import Z95


@pytest.fixture(autouse=True)
def no_full_sets(tmp_path, monkeypatch):
    """An empty cache: only the embedded samples are here, whatever this machine has."""
    monkeypatch.setenv("ADJOINT_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("ADJOINT_DATA", raising=False)


@pytest.fixture(scope="module")
def clone(tmp_path_factory):
    """A data folder as in a clone, with weights of VGG7 on CIFAR-10 and a folder for results."""
    root = tmp_path_factory.mktemp("data")
    for part in ("samples", "paper"):
        shutil.copytree(resources.path(part), root / part)
    (root / "weights").mkdir()
    (root / "results").mkdir()
    model = models.randomise(models.vgg7(), seed=2)
    weights.save_weights(model, root / "weights" / "vgg7-cifar10.npz", {"recipe": {}})
    return root


@pytest.fixture
def here(clone, monkeypatch):
    def path(name):
        if not (clone / name).exists():
            raise al.DataError(f"no {name}")
        return clone / name

    monkeypatch.setattr(resources, "path", path)
    return clone


def verify(here, *options) -> int:
    command = ["verify", "--model", "vgg7", *options, "--output", str(here / "results")]
    return main(command)


def test_the_trained_weights_are_taken_and_the_result_is_read_back(here, capsys):
    """By default those that come with the library, once they do; the paper's numbers beside."""
    assert verify(here, "--method", "tangent", "--images", "32") == 0
    out, err = capsys.readouterr()
    assert "weights: those trained on cifar10" in err
    lines = out.splitlines()
    assert "95 % interval  " in lines[1] and " paper " in lines[1]
    assert "99.9987" in lines[3] and "99.9910" in lines[8]  # conv1 and fc in the paper's table

    found = results.load("vgg7", "cifar10", "tangent")
    images = al.data.sample("cifar10")[0][:32]
    net = al.equivalent(models.vgg7(weights=here / "weights" / "vgg7-cifar10.npz"))
    assert found.report == al.verify(net, images, method="tangent", progress=False)
    origin = found.provenance
    assert (origin["model"], origin["dataset"]) == ("vgg7", "cifar10")
    file = weights.provenance(here / "weights" / "vgg7-cifar10.npz")
    assert origin["weights"] == {
        "file": "vgg7-cifar10.npz",
        "sha256": file["sha256"],
        "network_sha256": net.digest,
    }
    assert (origin["images"]["first"], origin["images"]["count"]) == (0, 32)
    assert origin["images"]["sha256"] == runs.images_digest(images)
    assert origin["time"]["seconds"] > 0 and origin["time"]["cores"] == [machine.cores()]
    assert origin["versions"]["tensorflow"]
    stored = json.loads((here / "results" / "vgg7-cifar10-tangent.json").read_text())
    assert stored["passed"] is True and set(stored["layers"]) == set(found.report.layers)


def test_the_command_of_a_result_gives_the_same_result(here, capsys, tmp_path):
    path = tmp_path / "again.json"
    first = ["--method", "tangent", "--images", "16", "--layers", "fc", "--k", "0.5"]
    first += ["--dtype", "float64", "--weights-rounded", "bfloat16", "--output", str(path)]
    assert main(["verify", "--model", "vgg7", *first]) == 0
    found = results.read(path)
    program, *words = found.provenance["command"].split()
    assert [program, *words[:3]] == ["python", "-m", "adjoint_lib", "verify"]
    assert str(tmp_path) not in found.provenance["command"]
    capsys.readouterr()
    assert main([*words[2:], "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == found.report.to_dict()


def test_a_run_goes_on_from_the_result_of_fewer_images(here, capsys, monkeypatch):
    """The report is that of one run over all images; what was computed before is not again."""
    options = ["--method", "tangent", "--mode", "RM0"]
    assert verify(here, *options, "--images", "40") == 0
    name = results.name("vgg7", "cifar10", "tangent", "RM0")
    path = here / "results" / name
    whole = results.read(path)
    assert verify(here, *options, "--images", "32") == 0
    part, computed = results.read(path), []
    report = verification.Plan.report

    def counted(plan, batch, *rest):
        computed.append(len(batch))
        return report(plan, batch, *rest)

    monkeypatch.setattr(verification.Plan, "report", counted)
    assert verify(here, *options, "--images", "40", "--onto", str(path)) == 0
    assert f"the first 32 images are in {path}" in capsys.readouterr().err
    assert computed == [8]
    found = results.read(path)
    assert found.report == whole.report and found.provenance["continues"] == part.provenance
    for key in ("command", "images", "weights"):
        assert found.provenance[key] == whole.provenance[key]


def test_a_run_goes_on_from_nothing_else(here, capsys, tmp_path):
    path = tmp_path / "part.json"
    fc = ["--method", "tangent", "--mode", "RM0"]
    assert main(["verify", "--model", "vgg7", *fc, "--images", "24", "--output", str(path)]) == 0
    capsys.readouterr()
    for options, problem in (
        ([*fc, "--images", "40"], "ends at image 24, amid 16 that are computed together"),
        ([*fc, "--images", "24"], "has all 24 images"),
        ([*fc, "--images", "40", "--k", "0.5"], "another network, method, precision"),
        ([*fc, "--images", "40", "--weights", "random"], "another network, method, precision"),
        ([*fc, "--images", "16"], "its 24 images are not the first of these 16"),
        (["--method", "tangent", "--images", "40"], "choice of layers"),
    ):
        assert main(["verify", "--model", "vgg7", *options, "--onto", str(path)]) == 2
        err = capsys.readouterr().err
        assert problem in err and "Leave --onto out" in err
    for odd, said in (
        (tmp_path / "none.json", "found none"),
        (tmp_path, "not an ordinary file"),
    ):
        assert main(["verify", "--model", "vgg7", *fc, "--onto", str(odd)]) == 2
        assert said in capsys.readouterr().err


def test_results_of_processors_that_round_differently_are_not_merged(here, capsys, tmp_path):
    path = tmp_path / "part.json"
    fc = ["verify", "--model", "vgg7", "--method", "tangent", "--mode", "RM0"]
    assert main([*fc, "--images", "16", "--output", str(path)]) == 0
    stored = json.loads(path.read_text())
    assert stored["provenance"]["processor"] == machine.processor()
    for record, problem in (
        ({"name": "another", "rounding": "0123456789ab"}, "(another) that rounds TensorFlow's"),
        (None, "does not say how the processor rounds"),
    ):
        stored["provenance"]["processor"] = record
        path.write_text(json.dumps(stored))
        assert main([*fc, "--images", "32", "--onto", str(path)]) == 2
        assert problem in capsys.readouterr().err


def test_names_tell_runs_apart():
    assert results.name("vgg7", "cifar10", mode="RM2") == "vgg7-cifar10-hypersurface-RM2.json"
    assert results.name("vgg7", "cifar10", "tangent") == "vgg7-cifar10-tangent.json"
    fine = results.name("resnet20", "cifar100", mode="RM2", dtype="float64")
    assert fine == "resnet20-cifar100-hypersurface-RM2-float64.json"
    rough = results.name("vgg7", "cifar10", "tangent", None, "float64", "bfloat16")
    assert rough == "vgg7-cifar10-tangent-float64-bfloat16.json"


def test_a_result_that_is_not_there_or_not_what_its_name_says_is_an_error(here):
    with pytest.raises(al.DataError, match="python -m adjoint_lib verify --model vgg7"):
        results.load("vgg7", "cifar100")
    assert verify(here, "--method", "tangent", "--images", "16", "--mode", "RM0") == 0
    folder = here / "results"
    sound = folder / results.name("vgg7", "cifar10", "tangent", "RM0")
    wrong = folder / results.name("vgg7", "cifar10", "tangent", "RM0", "float64")
    shutil.copy(sound, wrong)
    with pytest.raises(al.DataError, match=r"float64.*found that of.*float32"):
        results.load("vgg7", "cifar10", "tangent", "RM0", "float64")
    results.load("vgg7", "cifar10", "tangent", "RM0").report.save(wrong)  # without provenance
    with pytest.raises(al.DataError, match="provenance"):
        results.read(wrong)
    wrong.unlink()


def test_ours_stand_beside_the_papers(here):
    """Materialised results of some layers, one pass over all; what is not there stays empty."""
    assert verify(here, "--images", "2", "--mode", "RM0") == 0
    assert verify(here, "--images", "32", "--method", "tangent") == 0
    table = tables.compared("vgg7", "cifar10")
    assert [row[0] for row in table] == ["conv1", "conv2", "conv3", "conv4", "conv5", "fc"]
    expected = [f"{value:.4f}" for value in paper.percentages("vgg7", "cifar10").values()]
    assert [row[1] for row in table] == expected
    conv1, fc = table[0], table[-1]
    assert conv1[2:5] == ["", "", ""] and fc[4] == "2" and fc[3] == ""
    assert conv1[5] == "100.0000" and " to 100.0000" in conv1[6] and conv1[7] == "32"
    with pytest.raises(al.DataError, match="no stored result"):
        tables.compared("vgg7", "cifar100")
    with pytest.raises(al.DataError, match=r"no stored result .*RM2"):
        tables.every_layer("vgg7", "cifar10")


def test_formats_stand_side_by_side(here):
    """float64 has no miss; those of the rounded weights are counted as `verify` counts them."""
    with pytest.raises(al.DataError, match="no stored result"):
        tables.formats("vgg7", "cifar10")
    assert verify(here, "--images", "1", "--mode", "RM0") == 0
    assert verify(here, "--images", "1", "--dtype", "float64") == 0
    rounded = ["--dtype", "float64", "--weights-rounded", "bfloat16"]
    assert verify(here, "--images", "1", *rounded) == 0
    table = tables.formats("vgg7", "cifar10")
    assert [row[0] for row in table] == ["conv1", "conv2", "conv3", "conv4", "conv5", "fc"]
    assert all(row[3:5] == ["0", "1"] for row in table)
    assert table[0][1:3] == ["", ""] and table[-1][2] == "1"
    net = al.equivalent(models.vgg7(weights=here / "weights" / "vgg7-cifar10.npz"))
    image = al.data.sample("cifar10")[0][0]
    c = net.astype("float64").value(image[None])["conv3"].numpy()[0]
    options = {"dtype": "float64", "weights_rounded": "bfloat16"}
    c_hat = verification.reconstruct(net, image, ["conv3"], **options)["conv3"]
    share = np.mean(np.abs(verification.relative_error(c, c_hat)) > 0.01)
    assert table[2][5:] == [f"{1e6 * share:,.0f}", "1"] and share > 0.01


@pytest.mark.parametrize("model", models.MODELS)
def test_the_papers_numbers_have_the_names_of_our_layers(model):
    net = al.equivalent(models.build(model))
    for dataset in ("cifar10", "cifar100"):
        named = paper.percentages(model, dataset)
        assert list(named) == [layer.name for layer in net.layers][1:]


def test_a_folder_will_not_do_for_random_weights_or_some_layers(here, capsys):
    for options in (["--weights", "random"], ["--layers", "fc"], ["--dataset", "cifar100"]):
        assert verify(here, "--images", "1", *options) == 2
        assert "expected a new or an ordinary file, found a folder" in capsys.readouterr().err


# ---- the results that come with the library


def stored(ending: str = "") -> list:
    """The files that `results.load` could be asked for; other things are stored there too."""
    folder = resources.path("samples").parent / "results"
    pairs = [f"{model}-{dataset}-*" for model in models.MODELS for dataset in data.CLASS_NAMES]
    return sorted(path for pair in pairs for path in folder.glob(f"{pair}{ending}.json"))


@pytest.mark.parametrize("path", stored(), ids=lambda path: path.name)
def test_a_stored_result_is_of_the_stored_weights_and_passed(path):
    found = results.read(path)
    about, origin = found.report.about, found.provenance
    modes = set(about["modes"].values())
    mode = modes.pop() if len(modes) == 1 else None
    name = (origin["model"], origin["dataset"], about["method"], mode, about["dtype"])
    assert path.name == results.name(*name, about["weights_rounded"])
    assert found.report.passed and json.loads(path.read_text())["passed"]
    file = resources.path(f"weights/{origin['weights']['file']}")
    assert origin["weights"]["sha256"] == weights.provenance(file)["sha256"]
    net = al.equivalent(models.build(origin["model"], weights=origin["dataset"]))
    assert about["digest"] == origin["weights"]["network_sha256"] == net.digest
    sizes = {layer.name: int(np.prod(layer.shape)) for layer in net.layers}
    for name, layer in found.report.layers.items():
        assert layer.images == found.report.images == origin["images"]["count"]
        assert layer.units == layer.images * sizes[name]
        assert layer.histogram.sum() + layer.under + layer.over == layer.units


@pytest.mark.parametrize("path", stored("-RM[02]"), ids=lambda path: path.name)
def test_stored_misses_are_in_proportion_to_the_inverse_of_the_limit(path):
    """Values have some density at zero, so a hundred times the limit leaves a hundredth beyond.

    Up to sampling: four standard deviations, which allow for the units of an image being alike.
    """
    for name, layer in results.read(path).report.layers.items():
        expected = (1 - layer.share(1e-4)) / 100
        low, high = layer.interval()
        deviation = (high - low) / (2 * Z95)
        assert abs(1 - layer.share() - expected) < 4 * deviation, name


@pytest.mark.parametrize("path", stored("-RM2"), ids=lambda path: path.name)
def test_a_few_images_give_the_stored_share_of_misses(path):
    """Recomputed from hypersurfaces of sample images.

    Another machine adds in another order, with errors of another size. How much larger is counted
    beyond 0.01 %; the misses of 1 % that the library foretells must have grown as much.
    """
    found = results.read(path)
    model, dataset = found.provenance["model"], found.provenance["dataset"]
    net = al.equivalent(models.build(model, weights=dataset))
    images = models.preprocess(model, data.sample(dataset)[0])[:8]
    values = net.value(images)
    c_hat = [verification.reconstruct(net, image, mode="RM2") for image in images]
    for name, layer in found.report.layers.items():
        c, both = values[name].numpy(), np.stack([one[name] for one in c_hat])
        beyond = np.mean(np.abs(verification.relative_error(c, both)) > 1e-4)
        larger = beyond / (1 - layer.share(1e-4))
        expected = expected_misses(c, both) / (1 - layer.share())
        assert 1 / 1.2 < expected / larger < 1.2, name
        assert 1 / 4 < larger < 4, name


def test_the_seconds_of_a_result_count_what_it_goes_on_from():
    earlier = {"time": {"seconds": 2.0}}
    later = {"time": {"seconds": 3.5}, "continues": earlier}
    stored = results.load("vgg7", "cifar10", mode="RM2")
    assert results.Result(stored.report, later).seconds == 5.5
    assert stored.seconds >= stored.provenance["time"]["seconds"] > 0
