"""The command line: what it prints where, its exit codes, and what an interrupt leaves behind."""

import dataclasses
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time
import zipfile
from pathlib import Path

import keras
import numpy as np
import pytest
import tensorflow as tf

import adjoint_lib as al
from adjoint_lib.cli import data, explore, info, verify
from adjoint_lib.cli.images import read_images
from adjoint_lib.cli.main import main, parser
from adjoint_lib.cli.options import DATASETS, MODELS
from adjoint_lib.core.equivalent_net import K
from adjoint_lib.experiments import results, runs, weights
from adjoint_lib.verification import verify as verification

ROOT = Path(__file__).resolve().parents[2]
COMMANDS = ("data", "info", "verify", "explore")


@pytest.fixture(autouse=True)
def no_full_sets(tmp_path, monkeypatch):
    """An empty cache: only the embedded samples are here, whatever this machine has."""
    monkeypatch.setenv("ADJOINT_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("ADJOINT_DATA", raising=False)


@pytest.fixture
def run(capsys):
    """Call `main`; returns the exit code, stdout and stderr."""

    def call(*arguments) -> tuple[int, str, str]:
        code = main([str(a) for a in arguments])
        return code, *capsys.readouterr()

    return call


@pytest.fixture(scope="module")
def tiny(tmp_path_factory) -> Path:
    """A small network for CIFAR images, saved with random weights."""
    path = tmp_path_factory.mktemp("models") / "tiny.keras"
    al.models.randomise(tiny_model(), seed=3).save(path)
    return path


def tiny_model() -> keras.Model:
    return sequential(
        keras.layers.Conv2D(2, 3, 4, name="c1"),
        keras.layers.BatchNormalization(name="bn"),
        keras.layers.ReLU(name="relu"),
        keras.layers.Conv2D(3, 3, 2, name="c2"),
        keras.layers.ReLU(name="relu2"),
        keras.layers.Flatten(name="flatten"),
        keras.layers.Dense(4, name="fc"),
    )


def sequential(*stack, shape=(32, 32, 3)) -> keras.Model:
    return keras.Sequential([keras.Input(shape), *stack], name="tiny")


def saved(folder: Path, model: keras.Model) -> Path:
    model.save(folder / "model.keras")
    return folder / "model.keras"


def start(*arguments, flags=(), **options) -> subprocess.Popen:
    """The real command, in a process of its own."""
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, **options}
    command = [sys.executable, *flags, "-m", "adjoint_lib", *map(str, arguments)]
    return subprocess.Popen(command, cwd=ROOT, **pipes)


def files_in(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir() if path.is_file()}


# ---- help and usage


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["--help"], 0, "data|info|verify"),
        (["--version"], 0, f"adjoint_lib {al.__version__}"),
        (["verify", "--help"], 0, "--method"),
        (["info"], 2, "--model"),
        (["verify", "--model", "vgg8"], 2, "Did you mean 'vgg7'?"),
        (["verify", "--model", "vgg7", "--weights", "cifar10", "--seed", "1"], 2, "--seed"),
        (["data"], 0, "embedded"),
    ],
)
def test_what_needs_no_network_does_not_wait_for_tensorflow(arguments, code, said):
    out, err = (process := start(*arguments, flags=["-X", "importtime"])).communicate()
    imported = {line.split("|")[-1].strip() for line in err.splitlines() if "|" in line}
    assert process.returncode == code
    assert said in out + err
    assert "adjoint_lib.errors" in imported  # so the listing is one
    assert not imported & {"tensorflow", "keras"}


def test_every_help_has_examples_that_parse(capsys):
    for arguments in ([], *([name] for name in COMMANDS)):
        assert main([*arguments, "--help"]) == 0
        shown = capsys.readouterr().out
        examples = re.findall(r"^  python -m adjoint_lib (.*)$", shown, re.M)
        assert examples
        for example in examples:
            options = parser().parse_args(shlex.split(example))
            assert options.command in (data.data, info.info, verify.verify, explore.explore)


def test_the_options_offer_what_the_library_has():
    options = parser().parse_args(["verify", "--model", "vgg7"])
    assert tuple(al.models.MODELS) == MODELS
    assert tuple(al.data.CLASS_NAMES) == DATASETS
    assert options.k == K
    for method in verification.METHODS:
        parser().parse_args(["verify", "--model", "vgg7", "--method", method])


# ---- the package, whose parts are imported when they are asked for


def test_a_file_that_is_not_there_is_refused_before_tensorflow_is_imported():
    code = (
        "import sys\n"
        "from adjoint_lib.cli.main import main\n"
        "assert main(['info', '--file', 'missing.keras']) == 2\n"
        "assert 'tensorflow' not in sys.modules and 'keras' not in sys.modules"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "found no file" in done.stderr


# ---- data


def test_data_shows_what_is_here(run):
    code, out, _ = run("data", "--json")
    assert code == 0
    assert json.loads(out) == [dataclasses.asdict(s) for s in al.data.status()]
    code, out, err = run("data")
    assert (code, err) == (0, "")  # full sets that are not here are no failure
    assert re.search(r"cifar10 +sample +embedded +[\d,]+ +yes", out)
    assert re.search(r"cifar100 +test +missing +0", out)


def test_a_damaged_file_of_the_cache_fails_the_check(run, tmp_path):
    damaged = tmp_path / "cache" / "cifar-10-batches-bin" / "test_batch.bin"
    damaged.parent.mkdir(parents=True)
    damaged.write_bytes(b"not images")
    code, out, err = run("data")
    assert code == 1
    assert re.search(r"cifar10 +test +cache +10 +NO", out)
    assert str(damaged) in err


def test_data_fetches_what_is_named(run, monkeypatch):
    fetched = []
    monkeypatch.setattr(al.data, "fetch", fetched.append)
    code, out, _ = run("data", "cifar100", "--json")
    assert (code, fetched) == (0, ["cifar100"])
    assert {record["name"] for record in json.loads(out)} == {"cifar100"}


def test_a_failed_fetch_is_one_line(run, monkeypatch):
    def fail(name):
        raise al.DataError("cifar10: expected a source, got:\n- none\n- none")

    monkeypatch.setattr(al.data, "fetch", fail)
    code, out, err = run("data", "cifar10")
    assert (code, out) == (2, "")
    assert err == "python -m adjoint_lib: cifar10: expected a source, got: - none - none\n"


# ---- info


def test_info_shows_a_model_of_the_paper(run):
    code, out, _ = run("info", "--model", "resnet20-fixup", "--classes", 100)
    assert code == 0
    assert "d_in = 3072 + 37 = 3109" in out
    assert "(3109, 16, 16, 64)" in out  # RM2 of conv10
    assert "(3109, 100)" in out  # RM0 of fc
    assert "bias of b36" in out


def test_info_as_json_holds_the_tables_of_the_network(run, tiny):
    code, out, err = run("info", "--file", tiny, "--json")
    found = json.loads(out)
    assert (code, err) == (0, "")
    assert (found["name"], found["input"]) == ("tiny", [32, 32, 3])
    assert (found["d_b"], found["d_in"]) == (2 + 3 + 4, 3072 + 9)
    by_name = {layer["name"]: layer for layer in found["layers"]}
    assert list(by_name) == ["c1", "c2", "fc"]
    assert by_name["c2"] == {
        "name": "c2",
        "kind": "Conv",
        "kernel": [3, 3, 2, 3],
        "strides": [2, 2],
        "output": [3, 3, 3],
        "bias": [2, 5],
        "H": {
            "RM1": [3081, 3],
            "RM2": [3081, 3, 3, 3],
            "RM3": [3081, 2, 3],
            "RM4": [3081, 3, 3, 2, 3],
        },
    }
    assert by_name["fc"]["H"] == {"RM0": [3081, 4]}
    assert [s["slice"] for s in found["sources"]] == [[0, 2], [2, 5], [5, 9]]


def test_a_layer_without_bias_has_none(run, tmp_path):
    path = saved(tmp_path, sequential(keras.layers.Conv2D(2, 3, 8, use_bias=False, name="c")))
    _, out, _ = run("info", "--file", path, "--json")
    assert [layer["bias"] for layer in json.loads(out)["layers"]] == [None]


def test_a_dropped_softmax_is_said_on_stderr(run, tmp_path):
    path = saved(
        tmp_path,
        sequential(keras.layers.Flatten(), keras.layers.Dense(2, activation="softmax", name="fc")),
    )
    code, out, err = run("info", "--file", path)
    assert code == 0
    assert "softmax of 'fc' is dropped" in err and "softmax" not in out
    assert "Warning" not in err


def test_json_is_all_there_is_on_stdout_and_tensorflow_is_silent(tiny):
    environment = {k: v for k, v in os.environ.items() if k != "TF_CPP_MIN_LOG_LEVEL"}
    out, err = start("info", "--file", tiny, "--json", env=environment).communicate()
    assert json.loads(out)["name"] == "tiny"
    assert err == ""


# ---- verify


def test_the_report_printed_written_and_returned_is_the_same(run, tiny, tmp_path):
    output = tmp_path / "report.json"
    code, out, err = run("verify", "--file", tiny, "--json", "--output", output)
    assert code == 0
    assert "the first 2 of the embedded sample of cifar10" in err
    net = al.equivalent(keras.saving.load_model(tiny))
    images, _ = al.data.sample("cifar10")
    expected = al.verify(net, images[:2])
    assert json.loads(out) == al.Report.load(output).to_dict() == expected.to_dict()
    assert expected.images == 2 and set(expected.layers) == {"c2", "fc"}


def test_every_option_reaches_the_verification(run, tiny):
    code, out, err = run(
        *("verify", "--file", tiny, "--dataset", "cifar100", "--images", 3, "--k", 0.5, "--json"),
        *("--layers", "c1, c2", "--mode", "RM2", "--method", "tangent", "--dtype", "float64"),
    )
    found = json.loads(out)
    assert code == 0
    assert "the first 3 of the embedded sample of cifar100" in err
    assert (found["images"], found["about"]["k"]) == (3, 0.5)
    assert (found["about"]["method"], found["about"]["dtype"]) == ("tangent", "float64")
    assert found["about"]["modes"] == {"c1": "RM2", "c2": "RM2"}


def test_a_sample_of_units_is_verified_and_said(run, tiny, tmp_path):
    output = tmp_path / "r.json"
    code, out, _ = run("verify", "--file", tiny, "--units", 4, "--output", output)
    assert code == 0 and "4 units of each layer (seed 0)" in out and "95 % interval" in out
    result = results.read(output)
    assert {layer.units for layer in result.report.layers.values()} == {8}  # of two images
    assert "--units 4" in result.provenance["command"]


def test_all_layers_are_listed_in_the_table(run, tiny):
    code, out, _ = run("verify", "--file", tiny, "--layers", "all", "--method", "tangent")
    assert code == 0
    assert [line.split()[0] for line in out.splitlines()[3:6]] == ["c1", "c2", "fc"]
    assert out.splitlines()[-1] == "every unit within its rounding bound"


def test_fixup_gets_normalised_images(run):
    options = ["--images", 1, "--layers", "conv0", "--seed", 5, "--json"]
    code, out, err = run("verify", "--model", "resnet20-fixup", *options)
    net = al.equivalent(al.models.randomise(al.models.resnet20_fixup(), seed=5))
    images = al.data.sample("cifar10")[0][:1]
    expected = al.verify(net, al.models.normalise(images), layers=["conv0"])
    assert code == 0
    assert "weights: random, seed 5" in err
    assert json.loads(out) == expected.to_dict()
    assert expected != al.verify(net, images, layers=["conv0"])


def test_weights_come_from_the_file_a_seed_or_an_archive(run, tiny, tmp_path):
    other = al.models.randomise(keras.saving.load_model(tiny), seed=8)
    weights.save_weights(other, tmp_path / "other.npz")

    def digest(*options) -> str:
        quick = ["--images", 1, "--method", "tangent", "--json"]
        code, out, _ = run("verify", "--file", tiny, *quick, *options)
        assert code == 0
        return json.loads(out)["about"]["digest"]

    own = al.equivalent(keras.saving.load_model(tiny)).digest
    assert digest() == digest("--weights", "random", "--seed", 3) == own
    assert digest("--weights", "random") != own
    assert digest("--weights", tmp_path / "other.npz") == al.equivalent(other).digest != own


def test_random_weights_fit_the_classes_of_the_data_set(run):
    quick = ["--images", 1, "--method", "tangent", "--layers", "fc", "--json"]
    code, out, _ = run("verify", "--model", "vgg7", "--dataset", "cifar100", *quick)
    assert (code, json.loads(out)["layers"]["fc"]["units"]) == (0, 100)


def pretend_full_set(monkeypatch, here: bool) -> list[str]:
    """A full test set of 400 grey images, here or to be fetched; returns the list of fetches."""
    fetched = []
    record = al.data.Status("cifar10", "test", "cache" if here else "missing", "", 0, here, None)
    grey = np.full((400, 32, 32, 3), 0.5, np.float32), np.zeros(400, np.int64)
    monkeypatch.setattr(al.data, "status", lambda: [record])
    monkeypatch.setattr(al.data, "fetch", fetched.append)
    monkeypatch.setattr(al.data, "load", lambda name, split: grey)
    return fetched


def test_the_full_test_set_is_used_if_it_is_here(run, tiny, monkeypatch):
    fetched = pretend_full_set(monkeypatch, here=True)
    code, _, err = run("verify", "--file", tiny, "--images", 350, "--method", "tangent")
    assert (code, fetched) == (0, [])
    assert "the first 350 of the full test set of cifar10" in err


def test_the_full_test_set_is_fetched_only_if_asked_for(run, tiny, monkeypatch):
    fetched = pretend_full_set(monkeypatch, here=False)
    quick = ["verify", "--file", tiny, "--method", "tangent"]
    assert "embedded sample" in run(*quick)[2] and fetched == []
    code, _, err = run(*quick, "--full", "--images", 301)
    assert (code, fetched) == (0, ["cifar10"])
    assert "the first 301 of the full test set of cifar10" in err


def test_a_damaged_full_set_is_said_and_left_aside(run, tiny, tmp_path):
    damaged = tmp_path / "cache" / "cifar-10-batches-bin" / "test_batch.bin"
    damaged.parent.mkdir(parents=True)
    damaged.write_bytes(b"not images")
    code, _, err = run("verify", "--file", tiny, "--method", "tangent")
    assert code == 0
    assert "embedded sample" in err and str(damaged) in err


# ---- images of one's own


@pytest.fixture(scope="module")
def photographic(tmp_path_factory) -> Path:
    """A network whose images are not those of a data set: 6 x 5, three channels."""
    path = tmp_path_factory.mktemp("models") / "photographic.keras"
    layers = [keras.Input((6, 5, 3)), keras.layers.Conv2D(2, 3, activation="relu", name="c1")]
    layers += [keras.layers.Flatten(), keras.layers.Dense(3, name="d")]
    al.models.randomise(keras.Sequential(layers), seed=1).save(path)
    return path


def test_images_of_ones_own_are_verified_as_from_python(run, photographic, tmp_path):
    pixels = np.random.default_rng(0).integers(0, 256, (4, 6, 5, 3), np.uint8)
    np.save(tmp_path / "photos.npy", pixels)
    given = ["verify", "--file", photographic, "--data", tmp_path / "photos.npy"]
    code, out, err = run(*given, "--images", 3, "--json", "--output", tmp_path / "r.json")
    assert code == 0 and "the first 3 of" in err
    net = al.equivalent(al.load_model(photographic))
    assert json.loads(out) == al.verify(net, pixels[:3] / 255, progress=False).to_dict()
    origin = results.read(tmp_path / "r.json").provenance
    assert origin["dataset"] == "photos.npy" and origin["images"]["split"] == "own"
    assert origin["images"]["files"].keys() == {"photos.npy"}
    assert "--data photos.npy --images 3" in origin["command"]
    code, out, _ = run(*given, "--json")
    assert code == 0 and json.loads(out)["images"] == 2


def test_a_folder_of_arrays_and_pictures_is_read_in_the_order_of_names(photographic, tmp_path):
    pixels = np.random.default_rng(0).integers(0, 256, (5, 6, 5, 3), np.uint8)
    np.save(tmp_path / "b.npy", pixels[1:4])
    np.save(tmp_path / "c.npy", pixels[4].astype("float32"))
    (tmp_path / "a.png").write_bytes(tf.io.encode_png(pixels[0]).numpy())
    (tmp_path / "notes.txt").write_text("no image")
    found, files = read_images("--data", str(tmp_path), (6, 5, 3))
    np.testing.assert_array_equal(found[:4], pixels[:4] / 255)
    np.testing.assert_array_equal(found[4], pixels[4])  # numbers stay as they are
    assert list(files) == ["a.png", "b.npy", "c.npy"]
    found, files = read_images("--data", str(tmp_path), (6, 5, 3), most=2)
    assert len(found) == 2 and list(files) == ["a.png", "b.npy"]


def test_images_that_do_not_fit_are_refused_with_what_was_expected(run, photographic, tmp_path):
    def told(*options):
        code, _, err = run("verify", "--file", photographic, *options)
        assert code == 2
        return err.splitlines()[-1]

    empty = tmp_path / "empty"
    empty.mkdir()
    assert "folder with .npy files or pictures" in told("--data", empty)
    assert "expected an array of images" in told("--data", tmp_path / "none.npy")
    np.save(tmp_path / "wrong.npy", np.zeros((2, 5, 6, 3)))
    assert "(6, 5, 3), as the network takes" in told("--data", tmp_path / "wrong.npy")
    np.save(tmp_path / "one.npy", np.zeros((6, 5, 3)))
    assert "at most 1" in told("--data", tmp_path / "one.npy", "--images", 2)
    assert "leave out --dataset" in told("--data", tmp_path / "one.npy", "--full")
    (tmp_path / "broken.png").write_bytes(b"no picture")
    assert "expected a picture" in told("--data", tmp_path / "broken.png")
    assert "--data FILE.npy" in told()


# ---- exit code 1: units beyond the bound


def test_a_wrong_reconstruction_exits_1_and_names_its_layer(run, tiny, tmp_path, monkeypatch):
    honest = verification.Plan.reconstructed

    def wrong_in_fc(*arguments):
        for layer, found in honest(*arguments):
            yield layer, 2 * found if layer.name == "fc" else found

    monkeypatch.setattr(verification.Plan, "reconstructed", wrong_in_fc)
    output = tmp_path / "report.json"
    code, out, err = run("verify", "--file", tiny, "--output", output)
    assert code == 1
    message = err.splitlines()[-1]
    assert "beyond the rounding bound" in message and "fc (worst" in message
    assert "c2" not in message
    assert "UNITS BEYOND THE ROUNDING BOUND" in out
    assert not al.Report.load(output).passed  # the evidence is kept


def test_a_network_that_is_not_the_models_is_found_by_the_model(run, tiny, monkeypatch):
    """Held against its own values it would pass."""
    honest = verify.equivalent_of

    def of_a_model_that_changes_then(model):
        net = honest(model)
        kernel = model.get_layer("c2").kernel
        kernel.assign(1.001 * kernel)
        return net

    monkeypatch.setattr(verify, "equivalent_of", of_a_model_that_changes_then)
    code, out, err = run("verify", "--file", tiny)
    assert code == 1 and not out
    assert "differs from the model at layer" in err


# ---- exit code 2: wrong usage and bad input

VERIFY = ["verify", "--file", "TINY"]
BAD_INPUT = {
    "no command": ([], "data|info|verify"),
    "unknown command": (["check"], "check"),
    "unknown data set": (["data", "cifar11"], "cifar100"),
    "neither model nor file": (["verify"], "--model"),
    "model and file": ([*VERIFY, "--model", "vgg7"], "not allowed with"),
    "unknown model": (["info", "--model", "resnet-20"], "Did you mean 'resnet20'?"),
    "abbreviated option": ([*VERIFY, "--lay", "c2"], "--lay"),
    "classes of a file": (["info", "--file", "TINY", "--classes", "10"], "--classes"),
    "odd classes": (["info", "--model", "vgg7", "--classes", "7"], "100"),
    "missing file": (["info", "--file", "nowhere.keras"], "nowhere.keras: expected a .keras file"),
    "unknown layer": ([*VERIFY, "--layers", "cc2"], "Did you mean 'c2'?"),
    "layer without kernel": ([*VERIFY, "--layers", "relu"], "has no kernel"),
    "empty layers": ([*VERIFY, "--layers", ""], "unknown layer ''"),
    "mode of another layer": ([*VERIFY, "--layers", "fc", "--mode", "RM2"], "does not fit"),
    "mode not verified": ([*VERIFY, "--mode", "RM4"], "RM2"),
    "unknown method": ([*VERIFY, "--method", "guess"], "tangent"),
    "unknown dtype": ([*VERIFY, "--dtype", "float16"], "float64"),
    "k zero": ([*VERIFY, "--k", "0"], "above 0"),
    "k negative": ([*VERIFY, "--k=-1"], "above 0"),
    "k infinite": ([*VERIFY, "--k", "inf"], "finite"),
    "k no number": ([*VERIFY, "--k", "1/8"], "'1/8'"),
    "no images": ([*VERIFY, "--images", "0"], "at least 1"),
    "half an image": ([*VERIFY, "--images", "0.5"], "at least 1"),
    "more than the sample": ([*VERIFY, "--images", "301"], "--full"),
    "seed below 0": ([*VERIFY, "--weights", "random", "--seed", "-1"], "--seed"),
    "seed without chance": ([*VERIFY, "--seed", "1"], "--weights random"),
    "trained weights of a file": ([*VERIFY, "--weights", "cifar10"], "file's own"),
    "weights of no format": ([*VERIFY, "--weights", "cifra10"], ".npz"),
    "weights not there": ([*VERIFY, "--weights", "nowhere.npz"], "nowhere.npz"),
    "no workers": ([*VERIFY, "--workers", "0"], "at least 1"),
    "two clusters": ([*VERIFY, "--workers", "1", "--scheduler", "tcp://x:1"], "not allowed with"),
    "no scheduler": ([*VERIFY, "--scheduler", ""], "--scheduler: expected an address"),
    "a blank scheduler": ([*VERIFY, "--scheduler", " "], "--scheduler: expected an address"),
    "scheduler of no kind": ([*VERIFY, "--scheduler", "nonsense://x"], "Dask scheduler"),
    "weights without name": ([*VERIFY, "--weights", ""], ".npz"),
    "file without name": (["info", "--file", ""], "--file: expected a path"),
    "output without name": ([*VERIFY, "--output", ""], "--output"),
    "onto without name": ([*VERIFY, "--onto", ""], "expected a report"),
    "no threads": ([*VERIFY, "--threads", "0"], "at least 1"),
    "other threads than began": ([*VERIFY, "--threads", "1000"], "start afresh"),
    "weights in other formats": ([*VERIFY, "--weights-rounded", "float8"], "bfloat16"),
    "folder without name": ([*VERIFY, "--folder", ""], "--folder: expected a path"),
    "folder of the run a file": ([*VERIFY, "--folder", os.devnull], "Name another"),
    "output nowhere": ([*VERIFY, "--output", "nowhere/r.json"], "nowhere"),
    "output a folder": ([*VERIFY, "--output", "."], "folder"),
    "output a device": ([*VERIFY, "--output", os.devnull], "device"),
}


@pytest.mark.parametrize(("arguments", "said"), BAD_INPUT.values(), ids=BAD_INPUT)
def test_bad_input_exits_2_with_a_message(run, tiny, tmp_path, monkeypatch, arguments, said):
    monkeypatch.chdir(tmp_path)
    code, out, err = run(*(tiny if a == "TINY" else a for a in arguments))
    assert (code, out) == (2, "")
    message = err.splitlines()[-1]  # argparse shows the usage above it
    assert message.startswith("python -m adjoint_lib") and said in message
    assert files_in(tmp_path) == set()


def test_a_data_folder_that_is_not_there_exits_2(run, tmp_path, monkeypatch):
    monkeypatch.setenv("ADJOINT_DATA", str(tmp_path / "nowhere"))
    code, _, err = run("data")
    assert code == 2 and "ADJOINT_DATA" in err


def test_weights_of_other_shapes_exit_2_in_one_line(run, tiny, tmp_path):
    inputs = keras.Input((32, 32, 3))
    other = keras.Model(inputs, keras.layers.Conv2D(1, 1, name="c1")(inputs))
    weights.save_weights(other, tmp_path / "w.npz")
    code, _, err = run("verify", "--file", tiny, "--weights", tmp_path / "w.npz")
    assert code == 2
    (message,) = (line for line in err.splitlines() if line.startswith("python -m adjoint_lib"))
    assert "missing: fc/kernel" in message and "wrong shape: c1/kernel" in message


def test_a_network_for_other_images_is_refused(run, tmp_path):
    path = saved(tmp_path, sequential(keras.layers.Conv2D(1, 2), shape=(8, 8, 1)))
    code, _, err = run("verify", "--file", path)
    assert code == 2 and "(8, 8, 1)" in err and "(32, 32, 3)" in err


def test_an_unsupported_layer_is_named(run, tmp_path):
    smooth = keras.layers.Conv2D(1, 2, activation="gelu", name="smooth")
    path = saved(tmp_path, sequential(smooth, keras.layers.Conv2D(1, 2)))
    code, _, err = run("info", "--file", path)
    assert code == 2 and "smooth" in err and "gelu" in err


@pytest.mark.parametrize("name", ["model.h5", "model.hdf5", "model.pkl", "model.pickle", "model"])
def test_formats_that_may_run_code_are_refused_unread(run, tmp_path, name):
    (tmp_path / name).write_bytes(b"anything")
    code, _, err = run("info", "--file", tmp_path / name)
    assert code == 2 and "can run code" in err and ".keras" in err


def test_a_lambda_layer_is_not_run(run, tmp_path):
    model = sequential(keras.layers.Lambda(lambda x: 2 * x, output_shape=(32, 32, 3), name="code"))
    code, _, err = run("info", "--file", saved(tmp_path, model))
    assert code == 2 and "safe mode" in err and len(err.splitlines()) == 1


@pytest.mark.parametrize("damage", ["text", "truncated", "other archive"])
def test_a_file_that_is_no_model_is_refused(run, tiny, tmp_path, damage):
    path = tmp_path / "model.keras"
    if damage == "other archive":
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("config.json", "{}")
    else:
        path.write_bytes(b"text" if damage == "text" else tiny.read_bytes()[:-500])
    code, _, err = run("info", "--file", path)
    assert code == 2 and str(path) in err and len(err.splitlines()) == 1


def test_a_report_that_cannot_be_written_is_still_printed(run, tiny, tmp_path, monkeypatch):
    def full(path, result):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(results, "write", full)
    output = tmp_path / "report.json"
    code, out, err = run("verify", "--file", tiny, "--json", "--output", output)
    assert code == 2 and "No space left" in err
    assert json.loads(out)["images"] == 2


def test_what_is_unforeseen_keeps_its_traceback(run, tiny, monkeypatch):
    def broken(*arguments):
        raise ZeroDivisionError

    monkeypatch.setattr(verification.Plan, "report", broken)
    code, out, err = run("verify", "--file", tiny)
    assert (code, out) == (3, "")  # not 1: no check has failed
    assert "Traceback" in err and "ZeroDivisionError" in err


def test_what_the_system_refuses_is_said_in_one_line(run, tiny, monkeypatch):
    def refused(*arguments, **options):
        raise OSError(28, "No space left on device", "somewhere")

    monkeypatch.setattr(runs, "run", refused)
    code, out, err = run("verify", "--file", tiny)
    assert (code, out) == (3, "")
    assert "No space left on device: 'somewhere'" in err and "Traceback" not in err


# ---- interrupts and closed pipes


def test_an_interrupt_leaves_the_old_report_and_nothing_else(tiny, tmp_path):
    output = tmp_path / "report.json"
    output.write_text("an earlier one")
    many = ["--images", 300, "--folder", tmp_path / "run"]
    process = start("verify", "--file", tiny, *many, "--output", output)
    try:
        for line in process.stderr:
            if line.startswith("verifying"):
                break
        time.sleep(0.5)  # into the computing, which takes much longer
        assert process.poll() is None
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode == 130
    assert out == "" and "interrupted" in err and "Traceback" not in err
    assert files_in(tmp_path) == {"report.json"}
    assert output.read_text() == "an earlier one"


def test_an_interrupt_while_the_report_is_written_leaves_no_part_of_it(
    run, tiny, tmp_path, monkeypatch
):
    def interrupted(*arguments):
        signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(os, "replace", interrupted)
    code, _, err = run("verify", "--file", tiny, "--output", tmp_path / "report.json")
    assert code == 130 and "interrupted" in err
    assert files_in(tmp_path) == set()


def test_an_interrupt_that_was_turned_into_another_error_is_still_one(run, tiny, monkeypatch):
    def turned(*arguments):
        try:
            signal.raise_signal(signal.SIGINT)
        except KeyboardInterrupt as error:
            raise TypeError("as TensorFlow does here and there") from error

    monkeypatch.setattr(runs, "run", turned)
    code, _, err = run("verify", "--file", tiny)
    assert code == 130 and "interrupted" in err
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler  # as it was


@pytest.mark.skipif(sys.platform == "win32", reason="needs pipes as on POSIX")
@pytest.mark.parametrize(
    ("arguments", "codes"),
    [(["data"], {141}), (["--help"], {0, 141})],  # argparse may look away
)
def test_a_reader_that_goes_away_is_no_error_worth_a_traceback(arguments, codes):
    reader, writer = os.pipe()
    os.close(reader)
    process = start(*arguments, stdout=writer)
    os.close(writer)
    _, err = process.communicate()
    assert process.returncode in codes
    assert err == ""


# ---- outputs and disks that refuse


def limited(size):
    """For `preexec_fn`: no file may grow beyond so many bytes, as on a disk that is full."""

    def limit():
        import resource

        resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))

    return limit


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
@pytest.mark.parametrize("arguments", [["data"], ["data", "--json"], ["--help"]])
@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_a_standard_output_that_is_full_exits_3_in_one_line(arguments, unbuffered):
    environment = {**os.environ, "PYTHONUNBUFFERED": unbuffered}
    with open("/dev/full", "w") as full:
        process = start(*arguments, stdout=full, env=environment)
        _, err = process.communicate()
    assert process.returncode == 3
    assert "standard output could not be written" in err and len(err.splitlines()) == 1


@pytest.mark.parametrize("closed, code", [(">&-", 3), ("2>&-", 0), ("<&-", 0), ("<&- >&- 2>&-", 3)])
def test_closed_streams(closed, code):
    command = shlex.join([sys.executable, "-m", "adjoint_lib", "data", "--json"])
    done = subprocess.run(
        f"{command} {closed}", shell=True, cwd=ROOT, capture_output=True, text=True
    )
    assert done.returncode == code
    assert "Traceback" not in done.stderr
    if code == 0:
        assert len(json.loads(done.stdout)) == 6
    elif "2>" not in closed:
        assert "expected it open" in done.stderr


@pytest.mark.skipif(sys.platform == "win32", reason="needs limits as on POSIX")
def test_a_full_disk_stops_a_training_in_one_line(tmp_path):
    command = ["train", "--model", "vgg7", "--dataset", "cifar10", "--sample", "--epochs", "1"]
    options = {"preexec_fn": limited(100_000)}  # not enough for a checkpoint
    process = start(*command, "--folder", tmp_path / "run", **options)
    out, err = process.communicate()
    assert (process.returncode, out) == (2, "")
    assert "checkpoint.npz: could not be written" in err.splitlines()[-1]
    assert "Traceback" not in err
    assert files_in(tmp_path / "run") == {".lock"}


@pytest.mark.skipif(sys.platform == "win32", reason="needs limits as on POSIX")
def test_a_full_disk_leaves_no_half_written_report(tiny, tmp_path):
    output = tmp_path / "report.json"
    command = ["verify", "--file", tiny, "--json", "--output", output]
    process = start(*command, preexec_fn=limited(2000))
    out, err = process.communicate()
    assert process.returncode == 2 and "could not be written" in err
    assert json.loads(out)["images"] == 2  # the report is not lost
    assert files_in(tmp_path) == set()


@pytest.mark.parametrize("folder", ["/proc/nowhere", "/dev/null/run", os.devnull])
def test_a_folder_that_cannot_be_written_to_is_refused_before_training(run, folder):
    command = ["train", "--model", "vgg7", "--dataset", "cifar10", "--sample", "--epochs", "1"]
    code, out, err = run(*command, "--folder", folder)
    assert (code, out) == (2, "")
    assert "expected a folder for the run that can be made and written to" in err
