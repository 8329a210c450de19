"""The benchmark: its contenders compute the same, its clock counts what it says, its report adds
up."""

import importlib
import json
import shlex
import subprocess
from dataclasses import asdict
from itertools import count

import keras
import numpy as np
import pytest
import tensorflow as tf

from adjoint_book import figures, tables, timings
from adjoint_lib.core.frozen import Frozen
from adjoint_lib.errors import InputError
from adjoint_lib.experiments import models, resources
from adjoint_lib.experiments.training.recipes import Recipe, recipe
from adjoint_lib.frontend.layers import Bias, Multiplier, PadChannels
from adjoint_lib.verification.intervals import wilson
from benchmarks import __main__ as bench
from benchmarks import algorithm_1, extras, ingredients, ours, problem, report, uses, worker
from benchmarks import network as networks
from benchmarks.agreement import TOLERANCE, agreement, in_u, largest
from benchmarks.contender import CONTENDERS, Piece, sample
from benchmarks.tf_operations import TensorFlow

MODES = ["RM1", "RM2", "RM3", "RM4"]


# ---- Algorithm 1


@pytest.fixture(scope="module")
def tiny():
    """A float64 network of one biased ReLU convolution below the layer that is reconstructed."""
    rng = np.random.default_rng(3)
    x, b = tf.constant(rng.random((5, 6, 2))), tf.constant(rng.normal(size=3))
    below, w = (
        tf.constant(rng.normal(size=(3, 3, 2, 3))),
        tf.constant(rng.normal(size=(3, 3, 3, 4))),
    )

    def F(x, b):
        return tf.nn.relu(tf.nn.conv2d(x[None], below, 1, "SAME") + b)[0]

    return x, b, F, w


def run(tiny, mode, stride=2, parts=None):
    x, b, F, w = tiny
    found = algorithm_1.adjoint_back_map_v2(x, b, lambda v: v / 8, F, w, stride, mode, parts)
    return [h.numpy() for h in found]


def test_rm2_is_the_derivative_of_every_unit(tiny):
    x, b, F, w = tiny
    H_I, H_b = run(tiny, "RM2")

    def units(v):
        image, bias = tf.reshape(v[:60], (5, 6, 2)), tf.constant(v[60:])
        return tf.nn.conv2d(F(image, bias)[None], w, 2, "SAME")[0].numpy()

    v = np.concatenate([x.numpy().ravel(), b.numpy()])
    step = 1e-6  # the network is linear near v, so the quotient is exact up to rounding
    for i, H_i in enumerate(np.concatenate([H_I, H_b])):
        e = step * np.eye(63)[i]
        np.testing.assert_allclose(H_i, (units(v + e) - units(v - e)) / (2 * step), atol=1e-8)
    np.testing.assert_allclose(np.tensordot(v, np.concatenate([H_I, H_b]), 1), units(v), rtol=1e-12)


def test_modes_are_sums_of_rm4(tiny):
    rm1, rm2, rm3, rm4 = (run(tiny, mode) for mode in MODES)
    for part, d in enumerate((60, 3)):
        assert rm4[part].shape == (d, 3, 3, 3, 4)  # (d, c_in, h', w', c_out)
        np.testing.assert_allclose(rm4[part].sum(axis=1), rm2[part], atol=1e-12)
        np.testing.assert_allclose(rm4[part].sum(axis=(2, 3)), rm3[part], atol=1e-12)
        np.testing.assert_allclose(rm4[part].sum(axis=(1, 2, 3)), rm1[part], atol=1e-12)


def test_working_in_parts_changes_nothing(tiny):
    for whole, parts in zip(run(tiny, "RM2"), run(tiny, "RM2", parts=7), strict=True):
        assert np.abs(whole).max() > 0.1
        np.testing.assert_allclose(parts, whole, atol=1e-12)


def test_first_layer_is_its_kernel_in_place(tiny):
    x, b, _, _ = tiny
    w = tf.constant(np.random.default_rng(0).normal(size=(3, 3, 2, 4)))
    H_I, H_b = algorithm_1.adjoint_back_map_v2(x, b, lambda v: v / 8, lambda x, b: x, w, 1, "RM2")
    np.testing.assert_allclose(
        H_I.numpy().reshape(5, 6, 2, 5, 6, 4)[1:4, 2:5, :, 2, 3], w.numpy(), atol=1e-15
    )
    assert not H_b.numpy().any() and H_b.shape == (3, 5, 6, 4)


def test_unknown_mode(tiny):
    with pytest.raises(ValueError, match="RM7"):
        run(tiny, "RM7")


# ---- the network that all contenders read


@pytest.mark.parametrize(
    ("name", "biases", "layers"),
    [("vgg7", 384, 7), ("resnet20", 1184, 20), ("resnet20-fixup", 37, 20)],
)
def test_folded_network_computes_what_the_model_computes(name, biases, layers):
    model = models.randomise(models.build(name, final_activation=False), seed=2)
    image = np.random.default_rng(1).random((32, 32, 3), dtype=np.float32)
    network = networks.read_keras(model, image)
    assert network.b.shape == (biases,) and len(network.layers) == layers
    assert network.nodes[network.layers[-1]].name == "fc"
    scores = network.units(TensorFlow(), image[None], network.b)["fc"][0]
    expected = model(image[None])[0]
    np.testing.assert_allclose(scores, expected, atol=2e-5 * np.abs(expected).max())


def test_a_network_survives_its_file(tmp_path):
    network = problem.pose("resnet20-fixup", size=4)
    networks.save(network, tmp_path / "n.npz")
    again = networks.load(tmp_path / "n.npz")
    assert again.name == network.name
    for one, two in zip(network.nodes, again.nodes, strict=True):
        assert (one.name, one.op, one.inputs, one.options) == (
            two.name,
            two.op,
            two.inputs,
            two.options,
        )
        np.testing.assert_array_equal(one.kernel, two.kernel)
    np.testing.assert_array_equal(network.v, again.v)


@pytest.mark.parametrize(("size", "window", "stride"), [(8, 3, 2), (7, 3, 2), (5, 3, 1), (6, 1, 2)])
def test_padding_is_tensorflows(size, window, stride):
    before, after, inside = networks.counts(size, window, stride)
    ones = tf.ones((1, size, 1, 1))
    kernel = tf.ones((window, 1, 1, 1))
    found = tf.nn.conv2d(ones, kernel, (stride, 1), "SAME")[0, :, 0, 0]
    np.testing.assert_array_equal(found, inside)
    assert (size + before + after - window) // stride + 1 == len(inside)


def test_no_activation_of_the_problem_is_in_doubt():
    network = problem.pose("vgg7", size=8)
    values = network.run(TensorFlow(), network.image[None], network.b)
    h = [values[node.inputs[0]].numpy() for node in network.nodes if node.op == "leaky_relu"]
    assert min(np.abs(x).min() / np.abs(x).max() for x in h) > 100 * 2.0**-24


def test_a_layer_that_is_not_known_is_named():
    model = keras.Sequential([keras.Input((4, 4, 3)), keras.layers.UpSampling2D()])
    with pytest.raises(ValueError, match="UpSampling2D"):
        networks.read_keras(model, np.zeros((4, 4, 3), np.float32))


# ---- the contenders


def small_model() -> keras.Model:
    """Every kind of layer of the three models, on 6x5 pixels."""
    L = keras.layers
    x = inputs = keras.Input((6, 5, 3))
    x = L.BatchNormalization(name="bn0")(
        L.Conv2D(4, 3, padding="same", use_bias=False, name="conv0")(x)
    )
    x = L.AveragePooling2D(3, 2, padding="same")(L.LeakyReLU(negative_slope=0.1)(x))
    branch = L.Conv2D(6, 3, 2, padding="same", use_bias=False, name="conv1")(x)
    branch = Bias(name="b1")(Multiplier()(branch))
    x = L.Add()([branch, PadChannels(6)(L.AveragePooling2D(1, 2)(x))])
    x = L.Conv2D(5, 3, padding="same", name="conv2")(L.ReLU()(x))
    x = L.Dense(3, use_bias=False, name="fc")(L.GlobalAveragePooling2D()(L.ReLU()(x)))
    return models.randomise(keras.Model(inputs, x, name="small"), seed=1)


@pytest.fixture(scope="module")
def small():
    """(the model, its network at an image)."""
    model = small_model()
    image = np.random.default_rng(5).random((6, 5, 3), dtype=np.float32)
    return model, networks.read_keras(model, image)


@pytest.fixture(scope="module")
def expected(small):
    """What Algorithm 1, as printed, finds."""
    network = small[1]
    return kept(algorithm_1.prepare(network), network)


def kept(surfaces, network):
    checks = worker.Checks(network.v)
    worker.Stopwatch().whole(surfaces, checks)
    return checks.arrays


def contender(name, small, monkeypatch, **settings):
    package = bench.PACKAGES.get(name)
    if package:
        pytest.importorskip(package, reason=f"{package} comes with benchmarks/requirements.txt")
    model, network = small
    monkeypatch.setattr(ours, "keras_model", lambda *_: model)
    return importlib.import_module(CONTENDERS[name]).prepare(network, **settings)


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("adjoint_lib", {}),
        ("jax", {"batch": 48}),
        ("pytorch", {"batch": 48, "channels_last": False}),
        ("pytorch", {"batch": 48, "channels_last": True}),
        ("one_unit_at_a_time", {}),
        ("algorithm_1", {"parallel_iterations": 16}),
    ],
)
def test_every_contender_computes_the_same(name, settings, small, expected, monkeypatch):
    network = small[1]
    surfaces = contender(name, small, monkeypatch, **settings)
    found = agreement(expected, kept(surfaces, network))
    assert list(found) == ["conv0", "conv1", "conv2", "fc"]
    assert largest(found) < 40
    sampled = name == "one_unit_at_a_time"
    assert all(("activations" in row) is not sampled for row in found.values())
    again = agreement(expected, kept(surfaces, network))
    assert again == found, "a pass gives the same when it is repeated"


def test_a_sampled_pass_stands_for_all_units(small, monkeypatch):
    surfaces = contender("one_unit_at_a_time", small, monkeypatch)
    sizes = {"conv0": 120, "conv1": 24, "conv2": 20, "fc": 3}  # 6x5x4, 2x2x6, 2x2x5, 3
    pieces = list(surfaces())
    for layer, size in sizes.items():
        of_layer = [piece for piece in pieces if piece.layer == layer]
        assert sum(piece.stands_for for piece in of_layer) == pytest.approx(size)
        assert of_layer[0].stands_for == 1
        assert [p.unit for p in of_layer] == list(sample(layer, size, len(of_layer)))


def test_algorithm_1_takes_windows_of_layers_that_are_too_deep(small, expected):
    """Whole hypersurfaces of random units; the rows of the Jacobian add up to all of them."""
    network = small[1]
    below = {layer.name: layer.flop for layer in algorithm_1.layers(network)}
    macs = 120 * 27  # conv0's, the only convolution below conv1, whose maps are 3x3x4
    assert below["conv0"] == 0 and below["conv1"] == 2 * macs * 36
    surfaces = algorithm_1.prepare(network, whole=below["conv2"] - 1)
    clock, checks = worker.Stopwatch(), worker.Checks(network.v)
    clock.whole(surfaces, checks)
    assert clock.sampled == {"conv1", "conv2"}  # fc has no window, and few rows
    found = agreement(expected, checks.arrays)
    assert largest(found) < 40
    assert ["activations" in row for row in found.values()] == [True, False, False, True]
    for layer, rows in {"conv1": 36, "conv2": 24}.items():
        of_layer = [piece for piece in surfaces() if piece.layer == layer]
        assert checks.arrays[f"{layer}/columns"].shape[1] == len(of_layer) == algorithm_1.WINDOWS
        window = 9 * {"conv1": 4, "conv2": 6}[layer]
        assert sum(window * piece.stands_for for piece in of_layer) == pytest.approx(rows)


def test_operations_are_counted_window_by_window(small, monkeypatch):
    model, network = small
    monkeypatch.setattr(ours, "keras_model", lambda *_: model)
    found = ours.flops(network)
    d = network.v.size
    macs = 120 * 27 + 24 * 36 + 20 * 54 + 3 * 5
    assert found["dense"] == 2 * d * macs
    assert 0 < found["pushed"] < found["dense"]


def test_the_profile_is_of_one_push_at_a_time_and_has_all_of_the_time(small, monkeypatch):
    model, network = small
    monkeypatch.setattr(ours, "keras_model", lambda *_: model)
    push, abreast, most = Frozen._push_node, [], []

    def watched(*arguments):
        abreast.append(1)
        most.append(len(abreast))
        found = push(*arguments)
        abreast.pop()
        return found

    monkeypatch.setattr(Frozen, "_push_node", watched)
    found = ours.profile(network, passes=2)
    assert set(found) == {*ours.KINDS.values(), "rest"}
    assert max(most) == 1 and found["convolutions"] > 0 and found["rest"] > 0
    assert sum(found.values()) == pytest.approx(1)


# ---- the clock, what is kept, and the comparison


def test_the_clock_counts_a_pass_and_not_what_is_done_with_it():
    now = count()
    clock = worker.Stopwatch(lambda: float(next(now)))

    def surfaces():
        for stands_for in (1.0, 5.0):
            yield Piece("a", np.arange(1), lambda: np.zeros((1, 2)), stands_for=stands_for)

    for _ in clock.over(surfaces()):
        next(now)  # a second passes outside
    assert clock.seconds == 1 + 5 + 1


def test_a_long_first_pass_is_the_only_one(monkeypatch):
    calls = []

    def surfaces():
        calls.append(1)
        yield Piece("a", np.arange(1), lambda: np.ones((1, 2)))

    assert len(worker.measure(surfaces)["warm"]) == worker.WARM_PASSES == len(calls) - 1
    monkeypatch.setattr(worker, "LONG", 0.0)
    checks = worker.Checks(np.ones(1))
    found = worker.measure(surfaces, checks, early=True)
    assert found["warm"] == [] and found["first"] > 0 and found["peak_mb"] > 10
    assert checks.arrays["a/reconstruction"].tolist() == [1, 1]


def test_comparison_notices_what_is_wrong():
    checks = worker.Checks(np.arange(1.0, 9.0, dtype=np.float32))
    rows = np.random.default_rng(0).normal(size=(8, 3, 5)).astype(np.float32)
    for part in (slice(0, 6), slice(6, 8)):
        checks.add(Piece("conv1", np.arange(8)[part], lambda part=part: rows[part]))
    true = np.tensordot(np.arange(1.0, 9.0), rows.astype(float), 1).ravel()
    np.testing.assert_allclose(checks.arrays["conv1/reconstruction"], true, rtol=1e-12)
    assert largest(agreement(checks.arrays, checks.arrays)) == 0
    for what, key in [("columns", "H"), ("reconstruction", "activations")]:
        for wrong in (1e-2, np.nan):
            other = {k: v.copy() for k, v in checks.arrays.items()}
            other[f"conv1/{what}"][..., 2] += wrong
            found = agreement(checks.arrays, other)["conv1"]
            assert found[key] > TOLERANCE
            assert found[({"H", "activations"} - {key}).pop()] == 0


def test_differences_are_in_unit_roundoffs():
    assert in_u(np.array([0.0, 3 * 2.0**-24]), np.array([0.0, 2.0])) == 1.5
    assert in_u(np.array([1.0]), np.array([0.0])) > 1e300


# ---- the report


def runs(*warm: float, first: float = 9.0, peak: float = 800.4, sampled=()) -> list[dict]:
    return [{"first": first, "warm": list(warm), "peak_mb": peak, "sampled": sampled}]


def test_the_report_takes_medians_and_keeps_what_others_have():
    entry = {}
    report.record(entry, "adjoint_lib", runs(2.0, 1.0) + runs(4.0, 2.0, peak=900.0), {})
    report.record(
        entry, "algorithm_1", runs(first=60.0, sampled=["conv2"]), {"parallel_iterations": 7}
    )
    entry["flop"] = {"pushed": 1e11, "dense": 2e11}
    report.finish(entry, rate=100.0)
    assert entry["seconds"] == {"adjoint_lib": 2.0, "algorithm_1": 60.0}
    assert entry["peak_mb"] == {"adjoint_lib": 900, "algorithm_1": 800}
    assert entry["times_as_long"] == {"adjoint_lib": 1.0, "algorithm_1": 30.0}
    assert entry["flop"]["share_of_convolution_rate"] == 0.5
    first, second, third = entry["notes"]["algorithm_1"]
    assert "1 layer" in first and "7 rows" in second and "one pass only" in third
    report.record_agreement(entry, "algorithm_1", {"fc": {"H": 300.0}})
    assert entry["equal"] == {"algorithm_1": False}
    printed = report.table({"vgg7": entry}, ["vgg7", "resnet20"])
    assert "30.0" in printed and "300 u" in printed and "50%" in printed
    assert "resnet20" not in printed


def test_the_stored_results_have_the_form_that_is_promised_and_the_book_has_them():
    stored = json.loads(bench.LATEST.read_text("utf-8"))
    assert json.loads(bench.FOR_THE_BOOK.read_text("utf-8")) == stored
    found = [model for model in bench.MODELS if model in stored]
    assert found
    for entry in (stored[model] for model in found):
        assert set(entry["seconds"]) == set(entry["peak_mb"]) <= set(CONTENDERS)
        assert all(value > 0 for key in ("seconds", "peak_mb") for value in entry[key].values())
        assert all(entry["equal"].values())
    assert report.table(stored, bench.MODELS)


def test_the_figure_draws_every_contender_and_the_growth():
    names = list(CONTENDERS)
    entry = {
        "seconds": dict(zip(names, (1, 60, 7, 6, 900), strict=True)),
        "peak_mb": dict.fromkeys(names, 800),
    }
    growth = {"depth": {"points": [[2, 1.0], [4, 3.0]], "exponent": 1.6}}
    drawn = figures.get("benchmark")({"vgg7": entry, "resnet20": entry, "growth": growth})
    contest, grown = drawn.axes
    assert contest.get_xscale() == contest.get_yscale() == grown.get_xscale() == "log"
    assert len([line for line in contest.lines if len(line.get_xdata())]) == 2 * len(names)
    assert "power 1.6" in grown.get_legend().get_texts()[0].get_text()


def test_the_tables_say_who_is_how_many_times_ahead_and_why_not_more():
    def entry(seconds):
        return {
            "seconds": seconds,
            "peak_mb": dict.fromkeys(seconds, 1200),
            "flop": {
                "dense": 6e11,
                "pushed": 3e11,
                "gflop_per_second": 150.0,
                "share_of_convolution_rate": 0.75,
            },
            "profile": {"shares": {"convolutions": 0.802, "rest": 0.198}},
        }

    found = {
        "resnet20": entry({"pytorch": 6.0, "jax": 9.0, "adjoint_lib": 2.0}),
        "vgg7": entry({"algorithm_1": 2040.0, "adjoint_lib": 0.5}),
        "machine": {},
    }
    assert list(timings.compared(found)) == [
        ["VGG7", "adjoint_lib", "0.5", "1.0", "1.2 GB"],
        ["VGG7", "Algorithm 1", "2,040", "4080.0", "1.2 GB"],
        ["ResNet20", "adjoint_lib", "2", "1.0", "1.2 GB"],
        ["ResNet20", "PyTorch", "6", "3.0", "1.2 GB"],
        ["ResNet20", "JAX", "9", "4.5", "1.2 GB"],
    ]
    assert list(timings.work(found)[1]) == ["ResNet20", "600", "300", "150", "75 %"]
    assert list(timings.profile(found)[0]) == ["VGG7", "80 %", "20 %"]
    assert timings.ahead("resnet20", found) == 3
    found["one_unit"] = {
        "layer": "conv18",
        "seconds": {"call_to_arrays": 0.04, "forward_and_backward": 0.05},
    }
    found["modes"] = {"RM2": {"layer": "conv9", "units": 16384, "seconds": 2.5}}
    assert list(timings.parts(found)) == [
        ["forward and backward pass", "", "", "50"],
        ["RM2", "conv18", "1", "40"],
        ["RM2", "conv9", "16,384", "2,500"],
    ]
    assert timings.ceiling("resnet20", found) == pytest.approx(3 / 0.802)
    found["open_entries"] = {"rows": [[0.11, 0.004, 0.0031]]}
    assert list(timings.shut(found)) == [["11 %", "4", "3.1"]]
    seconds = {"adjoint_lib": 0.03, "tensorflow": 0.04, "jax": 0.0456}
    found["uses"] = {
        "batch_64_one_score/resnet20-fixup": {"seconds": seconds},
        "resnet50_224": {"seconds": seconds},
    }
    assert list(timings.uses(found)) == [
        ["one score of 64 images", "Fixup", "30", "40", "45.6", "", "", "0.75"],
        ["one score, 224 x 224", "ResNet50", "30", "40", "45.6", "", "", "0.75"],
    ]
    assert set(timings.GRADIENTS) == set(uses.CONTENDERS)
    assert {row.partition("/")[0] for row in uses.ROWS} == set(timings.USES)
    assert set(timings.CONTENDERS) == set(CONTENDERS)
    assert list(timings.NETWORKS) == bench.MODELS


# ---- the whole


@pytest.fixture
def here(monkeypatch):
    """Run the processes' modules in this one, which need not import TensorFlow again."""

    def start(self, module, command):
        importlib.import_module(module).main(command)
        return True

    monkeypatch.setattr(bench.Bench, "start", start)
    monkeypatch.setattr(bench, "QUICK_SIZE", 4)
    monkeypatch.setattr(worker, "WARM_PASSES", 0)


def test_whole_benchmark_on_a_small_image(here, tmp_path, capsys):
    out = tmp_path / "out.json"
    command = ["--quick", "--models", "vgg7", "--extras", "one_unit", "--output", str(out)]
    assert bench.main([*command, "--contenders", "algorithm_1"]) == 0
    printed = capsys.readouterr().out
    assert "algorithm_1" in printed and "One unit of conv5" in printed
    found = json.loads(out.read_text())
    assert set(found["vgg7"]["seconds"]) == {"adjoint_lib", "algorithm_1"}
    assert found["vgg7"]["equal"] == {"adjoint_lib": True, "algorithm_1": True}
    assert found["convolution_rate"]["best"] > 0 and found["image_size"] == 4
    # Another run adds to it.
    command = ["--quick", "--models", "vgg7", "--extras", "--output", str(out)]
    assert bench.main([*command, "--contenders", "adjoint_lib"]) == 0
    again = json.loads(out.read_text())
    assert set(again["vgg7"]["seconds"]) == {"adjoint_lib", "algorithm_1"}
    assert again["vgg7"]["seconds"]["algorithm_1"] == found["vgg7"]["seconds"]["algorithm_1"]
    assert "one_unit" in again
    # What is there only for the comparison keeps its times, and the rate they were measured beside.
    assert bench.main([*command, "--contenders", "algorithm_1"]) == 0
    third = json.loads(out.read_text())
    assert third["convolution_rate"] == again["convolution_rate"]
    assert third["vgg7"]["seconds"]["adjoint_lib"] == again["vgg7"]["seconds"]["adjoint_lib"]
    # But not to what another machine has written, if only its vectors are others.
    again["machine"]["vectors"] = "of two beads"
    out.write_text(json.dumps(again))
    assert bench.main([*command, "--contenders", "adjoint_lib"]) == 0
    assert set(json.loads(out.read_text())["vgg7"]["seconds"]) == {"adjoint_lib"}


def test_wrong_values_and_failed_runs_are_said_and_the_rest_goes_on(
    here, monkeypatch, tmp_path, capsys
):
    honest = bench.Bench.worker

    def wrong(self, model, contender, command):
        if contender == "one_unit_at_a_time":
            self.failures.append("it has ended with code -9")
            return None
        run, arrays = honest(self, model, "adjoint_lib", ["--check"])
        if contender == "algorithm_1":
            arrays["fc/columns"] *= 1.01
        return run, arrays

    monkeypatch.setattr(bench.Bench, "worker", wrong)
    chosen = ["--contenders", "algorithm_1", "one_unit_at_a_time"]
    out = tmp_path / "out.json"
    rest = ["--quick", "--models", "vgg7", "--extras", "--output", str(out)]
    assert bench.main([*chosen, *rest]) == 1
    said = capsys.readouterr().err
    assert "the values of algorithm_1 differ" in said and "code -9" in said
    assert set(json.loads(out.read_text())["vgg7"]["seconds"]) == {"adjoint_lib", "algorithm_1"}


def test_extras_of_a_small_network(monkeypatch, small):
    model, network = small
    monkeypatch.setattr(ours, "keras_model", lambda *_: model)
    modes = extras.modes(network, quick=True)
    assert {what[:3]: found["units"] for what, found in modes.items()} == {
        "RM1": 5,
        "RM2": 20,
        "RM3": 30,
        "RM4": 30,
        "RM0": 3,
    }
    monkeypatch.setattr(extras, "GROWTH", {"depth": [1, 2], "images": [1, 2]})
    for found in extras.growth(network, quick=True).values():
        assert [value for value, _ in found["points"]] == [1, 2]
        assert all(seconds > 0 for _, seconds in found["points"])
    shut = extras.open_entries(network, quick=True)
    assert [share for share, *_ in shut["rows"]] == extras.SHARES
    assert "With 0.5 of a layer's entries open" in report.table({"open_entries": shut}, [])


def test_algorithm_1_works_in_parts_where_memory_is_short(monkeypatch, tmp_path):
    options = bench._options(["--models", "resnet20", "--contenders", "algorithm_1"])
    run = bench.Bench(options, tmp_path, None)
    run.bar.close()
    for free, settings in [
        (20.0, {"parallel_iterations": bench.PARALLEL_ITERATIONS}),
        (500.0, {}),
        (None, {}),
    ]:
        monkeypatch.setattr(bench, "_available_gb", lambda free=free: free)
        assert run.choose("resnet20", "algorithm_1") == settings


def test_missing_peers_are_left_out_and_said(monkeypatch, capsys):
    monkeypatch.setattr(bench, "PACKAGES", {"jax": "no_such_package_at_all"})
    options = bench._options(["--contenders", "jax", "algorithm_1"])
    assert options.contenders == ["adjoint_lib", "algorithm_1"]
    assert "jax" in capsys.readouterr().err


@pytest.mark.parametrize(
    "arguments",
    [
        ["--models", "alexnet"],
        ["--contenders", "theano"],
        ["--repeats", "0"],
        ["--output", "nowhere/at/all.json"],
    ],
)
def test_bad_options_are_refused(arguments, capsys):
    with pytest.raises(SystemExit) as stop:
        bench.main(arguments)
    assert stop.value.code == 2 and arguments[0] in capsys.readouterr().err


# ---- the ingredients of the fast recipe


@pytest.mark.parametrize(
    ("model", "singly"),
    [
        ("vgg7", {"augmentation", "l2", "momentum", "kernel_rate"}),
        ("resnet20", {"augmentation", "l2", "momentum", "kernel_rate"}),
        ("resnet20-fixup", {"augmentation", "momentum"}),
    ],
)
def test_an_ingredient_is_left_out_at_a_time_and_the_cost_stays(model, singly):
    fast, *others = variants(model)
    cost = [sum((r.size(e) / 32) ** 2 for e in range(r.epochs)) for r in (fast, *others)]
    np.testing.assert_allclose(cost, cost[0], rtol=0.06)
    changed = [{k for k, v in asdict(fast).items() if asdict(o)[k] != v} - {"name"} for o in others]
    assert {"sizes", "epochs", "rates"} in changed
    assert {name for names in changed if len(names) == 1 for name in names} == singly
    if model == "resnet20-fixup":  # where steps and their decay go together
        assert {"l2", "kernel_decay"} in changed and {"kernel_rate", "kernel_decay"} in changed
    assert len(changed) == {"vgg7": 5, "resnet20": 6, "resnet20-fixup": 6}[model]


@pytest.mark.parametrize("model", ["vgg7", "resnet20", "resnet20-fixup"])
def test_every_variant_can_be_trained(model):
    from adjoint_lib.experiments.training.learner import Learner

    for variant in variants(model):
        Learner(model, 10, variant, seed=0)  # refuses what does not fit together


def test_a_variant_that_diverges_is_a_result(tmp_path, monkeypatch):
    from adjoint_lib.errors import DivergedError
    from adjoint_lib.experiments.training import run as training

    def train(*_, **__):
        raise DivergedError("the loss is nan")

    monkeypatch.setattr(training, "train", train)
    arguments = ["--sample", "--folder", str(tmp_path), "--output", str(tmp_path / "found.json")]
    assert ingredients.main(arguments) == 0
    runs = json.loads((tmp_path / "found.json").read_text())["runs"]
    assert {run["diverged"] for run in runs} == {"the loss is nan"}
    assert {tuple(row[2:]) for row in tables.ingredients(path=tmp_path / "found.json")} == {
        ("diverged", "")
    }


def test_seeds_are_added_to_a_result_and_runs_of_other_recipes_are_refused(tmp_path, monkeypatch):
    right = {("fast", 0): 60, ("no momentum", 0): 40, ("fast", 1): 64, ("no momentum", 1): 70}
    asked = []

    def run(options, variant, seed, folder):
        asked.append((variant.name, seed))
        found = {"value": right[variant.name, seed] / 100, "correct": right[variant.name, seed]}
        return {"seed": seed, "recipe": asdict(variant), "validation": {**found, "count": 100}}

    monkeypatch.setattr(ingredients, "run", run)
    output = tmp_path / "found.json"
    arguments = ["--output", str(output), "--variants", "no momentum", "fast"]
    ingredients.main(arguments[:-1])
    assert tables.ingredients(path=output)[0][3] == ""  # nothing to compare with yet
    ingredients.main(arguments)
    ingredients.main([*arguments, "--seeds", "2"])
    assert sorted(asked) == sorted(right)  # each of them once
    _, _, _, *words = shlex.split(json.loads(output.read_text())["command"])
    assert words[-5:] == ["--seeds", "2", "--variants", "fast", "no momentum"]
    table = tables.ingredients(path=output)
    assert [(row[0], row[3]) for row in table] == [("fast", ""), ("no momentum", "+20.0, -6.0")]
    low, high = wilson(0.62, 200)
    assert table[0][2] == f"62.0 % ({100 * low:.1f} to {100 * high:.1f})"
    counted = json.loads(output.read_text())
    for run in counted["runs"]:
        run["train"] = {"correct": 30 + run["seed"], "count": 40}
    (tmp_path / "counted.json").write_text(json.dumps(counted))
    assert tables.ingredients(path=tmp_path / "counted.json")[1][2] == "76.2 %"
    before = output.read_bytes()
    for others in (["--epochs", "7"], ["--model", "resnet20"], ["--variants", "no luck"]):
        with pytest.raises(InputError, match=r"other recipes|No variant"):
            ingredients.main([*arguments, *others])
    changed = json.loads(before)
    changed["runs"][0]["recipe"]["batch"] = 7
    output.write_text(json.dumps(changed))
    with pytest.raises(InputError, match="other recipes"):
        ingredients.main(arguments)


def test_the_run_of_the_stored_weights_is_not_made_again(tmp_path, monkeypatch):
    from adjoint_lib.experiments.training import run as training

    monkeypatch.setattr(training, "train", None)
    output, record = tmp_path / "found.json", models.trained("vgg7")["cifar10"]
    epochs = ["--epochs", str(recipe("fast", "vgg7", "cifar10").epochs)]
    ingredients.main([*epochs, "--variants", "fast", "--output", str(output)])
    (run,) = json.loads(output.read_text())["runs"]
    assert run["seed"] == record["seed"]
    for split in ("train", "validation"):
        assert run[split] == record["accuracy"][split]
    with pytest.raises(TypeError):  # any other run is trained
        ingredients.main([*epochs, "--variants", "no momentum", "--output", str(output)])


def variants(model: str) -> list[Recipe]:
    fast = recipe("fast", model, "cifar10").stretched(10)
    return list(ingredients.variants(fast, ingredients.normalised(model)).values())


@pytest.mark.parametrize(
    ("dataset", "epochs", "only"),
    [
        ("cifar10", 5, None),
        ("cifar10", 10, {"fast", "no crop, no flip"}),
        ("cifar10", 60, {"fast", "no crop, no flip"}),
        ("cifar100", 10, {"fast", "no crop, no flip"}),
    ],
)
def test_the_stored_comparison_is_of_the_recipe_as_it_is_now(dataset, epochs, only):
    path = resources.path(f"results/ingredients-vgg7-{dataset}-{epochs}.json")
    found = json.loads(path.read_text())
    fast = recipe("fast", found["model"], found["dataset"]).stretched(found["epochs"])
    planned = ingredients.variants(fast, normalised=True)
    chosen = {name: found[name] for name in ("model", "dataset", "epochs")}
    runs = ingredients.stored(path, chosen, planned)  # refuses those of another recipe
    assert len(runs) == len(found["runs"])
    assert (found["dataset"], found["epochs"]) == (dataset, epochs)
    assert {name for name, _ in runs} == (only or set(planned))
    for run in runs.values():
        right = run["validation"]
        assert right["count"] == 5000 and right["value"] == right["correct"] / right["count"]
        assert right["interval_95"] == pytest.approx(wilson(right["value"], 5000), abs=1e-5)
    expected = [name for name in planned if name in (only or planned)]
    assert [row[0] for row in tables.ingredients(dataset, epochs)] == expected


def test_crop_and_flip_pay_in_a_run_as_long_as_the_recipe():
    """As `recipes` says: they gain more than the 95 % intervals leave in doubt."""
    epochs = recipe("fast", "vgg7", "cifar10").epochs
    path = resources.path(f"results/ingredients-vgg7-cifar10-{epochs}.json")
    runs = {run["recipe"]["name"]: run for run in json.loads(path.read_text())["runs"]}
    without, fast = (runs[name]["validation"] for name in ("no crop, no flip", "fast"))
    assert without["interval_95"][1] < fast["interval_95"][0]


def test_networks_with_batch_normalisation_are_known():
    assert ingredients.normalised("vgg7") and ingredients.normalised("resnet20")
    assert not ingredients.normalised("resnet20-fixup")


# ---- what one does most often


def large_like(size: int = 20) -> keras.Model:
    """The kinds of layers that ResNet50 and MobileNetV2 have and the paper's networks have not."""
    layers = keras.layers
    x = keras.Input((size, size, 3))
    h = layers.ZeroPadding2D(((0, 1), (0, 1)))(x)
    h = layers.Conv2D(6, 3, strides=2, padding="valid")(h)  # with a bias, and normalised
    h = layers.Activation("relu")(layers.BatchNormalization()(h))
    h = layers.MaxPooling2D(3, strides=2)(layers.ZeroPadding2D(1)(h))
    left, right = layers.Conv2D(6, 1)(h), layers.Conv2D(6, 1)(h)  # both before their normalisation
    h = layers.Add()([layers.BatchNormalization()(left), layers.BatchNormalization()(right)])
    h = layers.DepthwiseConv2D(3, padding="same", use_bias=False)(h)
    h = layers.ReLU(6.0)(layers.BatchNormalization()(h))
    h = layers.DepthwiseConv2D(3, strides=2, padding="valid")(h)
    h = layers.GlobalAveragePooling2D()(layers.ReLU(6.0)(h))
    return models.randomise(keras.Model(x, layers.Dense(5, name="fc")(h)), seed=1)


def test_the_large_networks_layers_are_folded_for_the_peers():
    model, x = large_like(), np.random.default_rng(2).normal(size=(2, 20, 20, 3)).astype("float32")
    network = networks.read_keras(model, x[0])
    found, expected = network.run(TensorFlow(), x, network.b)[-1], model(x)
    np.testing.assert_allclose(found, expected, atol=1e-5 * np.abs(expected).max())


def test_pytorch_gives_the_scores_of_the_large_networks_layers():
    torch = pytest.importorskip("torch")
    from benchmarks.pytorch_peer import PyTorch

    model, x = large_like(), np.random.default_rng(2).normal(size=(2, 20, 20, 3)).astype("float32")
    network = networks.read_keras(model, x[0])
    rows = torch.from_numpy(x).permute(0, 3, 1, 2)
    ops = PyTorch(network, torch.channels_last)
    found, expected = network.run(ops, rows, torch.from_numpy(network.b))[-1], model(x)
    np.testing.assert_allclose(found, expected, atol=1e-5 * np.abs(expected).max())


def test_a_run_on_another_machine_keeps_the_uses_of_this_one(tmp_path):
    path = tmp_path / "latest.json"
    rows = {"resnet50_224": {"seconds": {"jax": 1.0}, "machine": {"processor": "old"}}}
    path.write_text(json.dumps({"machine": {"processor": "old"}, "vgg7": {}, "uses": rows}))
    found = bench._report_so_far(path, 32)
    assert found["uses"] == rows and "vgg7" not in found
    assert found["machine"] == report.machine()


@pytest.mark.parametrize("use", uses.USES)
def test_a_use_is_timed_compared_and_written(use, monkeypatch, tmp_path, capsys):
    model = large_like()
    monkeypatch.setattr(uses, "keras_model", lambda name: model)
    monkeypatch.setattr(uses, "images_of", lambda name, use: X[: uses.USES[use]])
    X = np.random.default_rng(2).normal(size=(64, 20, 20, 3)).astype("float32")

    def run(command, **_):
        assert uses.main(command[command.index("uses") + 1 :]) == 0
        return subprocess.CompletedProcess(command, 0)

    monkeypatch.setattr(uses.subprocess, "run", run)
    out, row = tmp_path / "out.json", f"{use}/vgg7"
    out.write_text(json.dumps({"vgg7": {"seconds": {}}}))
    arguments = ["--rows", row, "--contenders", "adjoint_lib", "tensorflow", "--output", str(out)]
    arguments += ["--seconds", "0"]
    assert uses.main(arguments) == 0
    found = json.loads(out.read_text())
    assert found["vgg7"] == {"seconds": {}}
    entry = found["uses"][row]
    for what in ("seconds", "peak_mb"):
        assert set(entry[what]) == {"adjoint_lib", "tensorflow"} and min(entry[what].values()) > 0
    assert entry["difference"]["tensorflow"] < 1e-4
    assert "tensorflow" in capsys.readouterr().out
    honest = uses.CONTENDERS["tensorflow"]
    wrong = lambda name, use: lambda: 1.1 * honest(name, use)()  # noqa: E731
    monkeypatch.setitem(uses.CONTENDERS, "tensorflow", wrong)
    assert uses.main(arguments) == 1
    assert "the gradient of tensorflow differs" in capsys.readouterr().err
