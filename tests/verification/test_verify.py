"""Verification: counts by hand, merging, files, and that a wrong unit is found out."""

import json
import signal
import threading
import time

import keras
import numpy as np
import pytest
import tensorflow as tf

import adjoint_lib as al
from adjoint_lib.core import primitives
from adjoint_lib.core.error_bounds import bound, rounding_scale, roundings, roundings_back
from adjoint_lib.experiments import runs
from adjoint_lib.verification import verify as verification
from adjoint_lib.verification.intervals import wilson
from adjoint_lib.verification.report import EDGES, LEVELS, LayerReport, Report
from adjoint_lib.verification.verify import SMALLEST, relative_error
from reference import image_of, random_model, small_net

MODEL, NET = small_net()
IMAGES = np.stack([image_of(NET, seed) for seed in range(4)])
SINGLE = NET.astype("float32")


@pytest.fixture(scope="module")
def report():
    return al.verify(SINGLE, IMAGES)


def test_counts_against_the_dense_hypersurfaces(report):
    """c_hat by NumPy from the dense H, every error counted by hand."""
    for name in ("second", "out"):
        v = [np.concatenate([x.reshape(-1), NET.x_b]).astype(np.float32) for x in IMAGES]
        H = [np.asarray(SINGLE.hypersurface(x, name)) for x in IMAGES]
        found = np.stack([np.tensordot(a, b, 1) for a, b in zip(v, H, strict=True)])
        c = SINGLE.value(IMAGES)[name].numpy()
        error = np.abs(found.astype(float) - c) / np.abs(c)
        layer = report.layers[name]
        assert layer.units == c.size
        # other summation orders round differently, so only errors well below a level must agree
        for level in LEVELS:
            assert np.count_nonzero(error <= level / 2) <= layer.within[LEVELS.index(level)]


@pytest.mark.parametrize("method", ["hypersurface", "tangent"])
def test_reconstruct_gives_the_units_that_are_verified(method):
    found = verification.reconstruct(NET, IMAGES[1], "all", method=method)
    for name, c_hat in found.items():
        H = np.asarray(NET.hypersurface(IMAGES[1], name))
        by_hand = np.tensordot(np.concatenate([IMAGES[1].reshape(-1), NET.x_b]), H, 1)
        np.testing.assert_allclose(c_hat, by_hand, rtol=0, atol=1e-12 * np.abs(by_hand).max())
    rough = verification.reconstruct(NET, IMAGES[1], method=method, weights_rounded="bfloat16")
    for name, c_hat in rough.items():
        away = np.abs(c_hat - found[name]).max() / np.abs(found[name]).max()
        assert 1e-6 < away < 0.2
    with pytest.raises(al.InputError, match="one image, got 4"):
        verification.reconstruct(NET, IMAGES)


def test_the_first_layer_is_left_out_unless_asked_for(report):
    assert list(report.layers) == ["second", "out"]
    assert list(al.verify(SINGLE, IMAGES[0], layers="all").layers) == ["first", "second", "out"]
    assert list(al.verify(SINGLE, IMAGES[0], layers=["first"]).layers) == ["first"]
    assert list(al.verify(SINGLE, IMAGES[0], mode="RM2").layers) == ["second"]
    assert list(al.verify(SINGLE, IMAGES[0], mode="RM0").layers) == ["out"]


@pytest.mark.parametrize("method", ["hypersurface", "tangent"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_every_unit_is_within_the_rigorous_bound(method, dtype):
    found = al.verify(NET, IMAGES, layers="all", method=method, dtype=dtype)
    assert found.passed and found.about["dtype"] == dtype and found.images == 4
    assert all(layer.share() > 0.99 for layer in found.layers.values())
    if dtype == "float64":
        assert all(layer.within[-1] == layer.units for layer in found.layers.values())


def test_a_wrong_reading_is_found_out(monkeypatch):
    """Here, pushes and pulls that forget the leak."""

    def forgetful(honest):
        def reading(self, pattern, *tangents):
            slope, weights = pattern
            return honest(self, (tf.cast(slope > 0.5, slope.dtype), weights), *tangents)

        return reading

    for name in ("push", "pull"):
        honest = getattr(primitives.Activation, name)
        monkeypatch.setattr(primitives.Activation, name, forgetful(honest))
    for method in ("hypersurface", "tangent"):
        found = al.verify(SINGLE, IMAGES[:1], method=method)
        assert not found.layers["out"].passed and not found.passed
        assert "BEYOND" in repr(found)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_wrong_value_is_found_out_at_any_depth(monkeypatch, dtype):
    """In deep layers A is so large that even c_hat = 0 is within u A; the second limit sees it."""
    net = al.equivalent(random_model(al.models.resnet20))
    honest = verification.Plan.reconstructed

    def nothing(*args):
        return ((layer, 0 * found) for layer, found in honest(*args))

    monkeypatch.setattr(verification.Plan, "reconstructed", nothing)
    x = np.random.default_rng(0).random((1, 32, 32, 3))
    found = al.verify(net, x, layers="all", method="tangent", dtype=dtype)
    assert not any(layer.passed for layer in found.layers.values())
    assert found.layers["conv18"].worst < found.layers["conv18"].bound  # by A alone it would pass


def test_roundings_of_a_pull_by_hand():
    """The longest way back leads through the branch; at its end the shortcut is added."""

    def build():
        x = keras.Input((5, 5, 2))
        h = keras.layers.Conv2D(4, 3, padding="same", use_bias=False)(x)
        branch = keras.layers.ReLU()(keras.layers.Conv2D(4, 3, padding="same")(h))
        h = keras.layers.GlobalAveragePooling2D()(keras.layers.Add()([h, branch]))
        return keras.Model(x, keras.layers.Dense(7, use_bias=False, name="out")(h))

    net = al.equivalent(random_model(build))
    layer = net.layer("out")
    dense, mean, add, relu, bias, conv, meeting = 7, 5 * 5 + 1, 1, 1, 5 * 5, 3 * 3 * 4, 1
    back = dense + mean + add + relu + bias + conv + meeting + conv
    assert roundings_back(net, layer) == back
    m = roundings(net, layer) + max(roundings(net, layer), back) + net.d_in
    assert bound(net, layer, "hypersurface") == pytest.approx(m)


def closing_pair(k: float) -> np.ndarray:
    """x[0] > x[1], whose products with k round to the same float32."""
    below = 1.5 + np.arange(64, dtype=np.float32) * np.float32(2**-23)
    above = np.nextafter(below, np.float32(2))
    found = np.stack([above, below], -1)
    return found[np.float32(k) * above == np.float32(k) * below][0]


def kinks(kind: str) -> keras.Model:
    """Units that are on one piece at [x; x_b], by rounding alone, and on another at [x; x_b]/10."""
    image = h = keras.Input((2,))
    difference, last = keras.layers.Dense(1), keras.layers.Dense(1, use_bias=False)
    if kind == "max-pool":
        h = keras.layers.Reshape((3, 1))(keras.layers.Dense(3, use_bias=False)(image))
        model = keras.Model(image, last(keras.layers.GlobalMaxPooling1D()(h)))
        model.set_weights([np.float32([[0, 1, 0], [0, -1, 0]]), np.ones((1, 1))])
        return model
    activation = keras.layers.Activation(kind)
    model = keras.Model(image, last(activation(difference(h))))
    two, one = np.float32([[2**24], [-(2**24)]]), np.ones(1)  # 2^24 x is +2 or 0, less 1
    model.set_weights([two, -one if kind == "hard_tanh" else 0 * one, np.ones((1, 1))])
    return model


@pytest.mark.parametrize("method", ["hypersurface", "tangent"])
@pytest.mark.parametrize("kind", ["relu", "hard_tanh", "max-pool"])
def test_a_pattern_that_rounding_changes_at_another_k_is_within_the_bound(kind, method):
    """A ReLU or a maximum that opens at one k only; a hard tanh at its other end."""
    net = al.equivalent(kinks(kind))
    x = closing_pair(net.pattern_at(0.1))
    name = net.layers[-1].name
    c = net.value(x)[name].numpy().item()
    c_hat = verification.reconstruct(net, x, "all", method=method, k=0.1)[name].item()
    assert c > 0 >= c_hat
    layer = al.verify(net, x, "all", method=method, k=0.1, progress=False).layers[name]
    assert layer.worst <= layer.bound
    assert al.verify(net, x, "all", method=method, progress=False).passed


def test_a_rounding_scale_that_overflows_is_refused():
    """The two products of the second layer cancel, but not their absolute values."""
    policy = keras.config.dtype_policy()
    keras.config.set_dtype_policy("float64")
    try:
        layers = [keras.layers.Dense(1, use_bias=False) for _ in range(2)]
        model = keras.Sequential([keras.Input((2,), dtype="float64"), *layers])
    finally:
        keras.config.set_dtype_policy(policy)
    model.set_weights([np.full((2, 1), 1e77), np.full((1, 1), 1e77)])
    with pytest.raises(al.AdjointError, match="A that overflows"):
        al.verify(al.equivalent(model), np.array([1e155, -1e155]), method="tangent")


@pytest.mark.parametrize("budget", [1, 20_000, 2**28])
def test_dense_layers_are_pulled_alike_in_any_groups_of_images_and_units(budget):
    """One unit at a time, some, or several images at a time: by the dense H of each image."""
    plan = verification.Plan(NET, mode="RM0", max_bytes=budget)
    ((layer, found),) = plan.reconstructed(NET.freeze(IMAGES))
    assert found.shape == (len(IMAGES), *layer.shape)
    for x, c_hat in zip(IMAGES, found, strict=True):
        H = np.asarray(NET.hypersurface(x, layer.name))
        by_hand = np.tensordot(np.concatenate([x.reshape(-1), NET.x_b]), H, 1)
        np.testing.assert_allclose(c_hat, by_hand, rtol=0, atol=1e-12 * np.abs(by_hand).max())


def test_rounding_scale_by_hand():
    """A = sum over paths of |products|: for the first layer, |x| * |w|; it bounds |c|."""
    x = IMAGES[0]
    frozen = NET.freeze(x)
    A = rounding_scale(frozen, NET.layers)
    kernel = np.abs(np.asarray(MODEL.get_layer("first").kernel))
    expected = tf.nn.conv2d(np.abs(x)[None], kernel, 1, "SAME")
    np.testing.assert_allclose(A["first"], expected, rtol=1e-13)
    for layer in NET.layers:
        H = np.asarray(NET.hypersurface(x, layer.name))
        v = np.concatenate([x.reshape(-1), NET.x_b])
        middle = np.tensordot(np.abs(v), np.abs(H), 1)
        c = np.abs(NET.value(x)[layer.name][0])
        assert np.all(c <= middle * (1 + 1e-12)) and np.all(
            middle <= A[layer.name][0] * (1 + 1e-12)
        )


def test_scales_that_are_folded_into_one_keep_the_rounding_scale_positive():
    """Two numbers multiplied are a NumPy scalar, which must lose its sign like any array."""
    x = keras.Input((3, 4, 2))
    h = keras.layers.Rescaling(-0.3)(keras.layers.Rescaling(2.0)(x))
    net = al.equivalent(keras.Model(x, keras.layers.Conv2D(2, 1, name="conv")(h)))
    image = image_of(net)
    A = rounding_scale(net.freeze(image), net.layers)["conv"][0]
    kernel = np.abs(net.graph.nodes[net.layer("conv").number].primitive.kernel[0, 0])
    np.testing.assert_allclose(A, 0.6 * np.abs(image) @ kernel, rtol=1e-6)


def test_relative_error_follows_the_paper():
    c = np.array([2.0, -4.0, 0.0, 0.0], np.float32)
    found = np.array([2.02, -4.0, 0.0, 1e-3], np.float32)
    epsilon = relative_error(c, found)
    np.testing.assert_allclose(epsilon, [0.01, 0, 0, 1e-3 / SMALLEST], rtol=1e-5)
    assert np.float32(SMALLEST) == np.finfo(np.float32).tiny


def test_the_histogram_counts_every_unit_once():
    epsilon = np.array([-2e-4, -1e-4, -5e-5, 0, 0, 3e-7, 1e-4, 1.1e-4, 0.5, 1e30])
    layer = LayerReport.of(epsilon, 1.0, 1.0, 2.0)
    assert (layer.under, layer.over, layer.exact) == (1, 3, 2)
    assert layer.histogram.sum() + layer.under + layer.over == layer.units == 10
    assert layer.histogram[0] == 1 and layer.histogram[-1] == 1
    assert layer.magnitudes.sum() + layer.exact == 10
    assert layer.within.tolist() == [8, 8, 6]
    assert EDGES[0] == -1e-4 and EDGES[-1] == 1e-4


def test_quantiles_are_upper_limits_within_a_bin():
    epsilon = 10 ** np.random.default_rng(0).uniform(-9, -1, 10001)
    layer = LayerReport.of(epsilon, 0.0, 0.0, 0.0)
    for q in (0.01, 0.5, 0.999, 1.0):
        exact = np.quantile(epsilon, q, method="inverted_cdf")
        assert exact <= layer.quantile(q) <= exact * 1.1221
    assert LayerReport.of(np.zeros(5), 0.0, 0.0, 0.0).quantile(0.9) == 0
    with pytest.raises(al.InputError, match="q between 0 and 1"):
        layer.quantile(2)


def test_reports_add_in_any_order(report):
    parts = [al.verify(SINGLE, IMAGES[n : n + 1]) for n in (2, 0, 3, 1)]
    assert parts[0] + parts[1] + parts[2] + parts[3] == report
    assert (parts[3] + parts[2]) + (parts[1] + parts[0]) == report


def test_only_like_reports_add(report):
    with pytest.raises(al.InputError, match="dtype: 'float32' and 'float64'"):
        report + al.verify(SINGLE, IMAGES[:1], dtype="float64")
    with pytest.raises(al.InputError, match="method"):
        report + al.verify(SINGLE, IMAGES[:1], method="tangent")


def test_a_report_survives_its_file(report, tmp_path):
    path = tmp_path / "report.json"
    report.save(path)
    loaded = al.Report.load(path)
    assert loaded == report and (loaded + report).images == 8
    assert [f.name for f in tmp_path.iterdir()] == ["report.json"]
    stored = json.loads(path.read_text())
    stored["format"] = 99
    path.write_text(json.dumps(stored))
    with pytest.raises(al.DataError, match="format 2"):
        al.Report.load(path)
    path.write_text("{")
    with pytest.raises(al.DataError, match="expected a report"):
        al.Report.load(path)


def test_a_failed_save_leaves_the_old_file(report, tmp_path, monkeypatch):
    path = tmp_path / "report.json"
    report.save(path)
    before = path.read_text()
    monkeypatch.setattr("os.replace", lambda *_: (_ for _ in ()).throw(OSError("disk full")))
    with pytest.raises(OSError, match="disk full"):
        report.save(path)
    assert path.read_text() == before
    assert [f.name for f in tmp_path.iterdir()] == ["report.json"]


def test_the_table_reads_like_the_papers(report):
    lines = repr(report.table()).splitlines()
    assert lines[0].split()[:3] == ["layer", "mode", "units"]
    assert lines[2].split()[:2] == ["second", "RM2"] and lines[3].split()[:2] == ["out", "RM0"]
    counts, edges = report.histogram("second")
    assert counts.sum() <= report.layers["second"].units and len(edges) == len(counts) + 1
    with pytest.raises(al.InputError, match="no layer 'seocnd'"):
        report.histogram("seocnd")


def test_a_small_memory_budget_changes_nothing_but_the_pace():
    small = al.verify(NET, IMAGES[:1], max_bytes=1)
    large = al.verify(NET, IMAGES[:1])
    assert small.layers["out"].units == large.layers["out"].units and small.passed


def test_overflow_is_an_error_not_a_result():
    with pytest.raises(al.AdjointError, match="overflows float32"):
        al.verify(SINGLE, 1e38 * IMAGES[:1])


def run(net, images):
    return runs.run(verification.Plan(net), images)


@pytest.mark.parametrize("verified", [al.verify, run])
def test_an_interrupt_does_not_break_into_the_work_on_an_image(verified, monkeypatch):
    report, ended = verification.Plan.report, threading.Event()

    def interrupted(plan, batch, *rest):
        time.sleep(0.1)  # until the main thread waits
        signal.raise_signal(signal.SIGINT)
        found = report(plan, batch)
        ended.set()
        return found

    monkeypatch.setattr(verification.Plan, "report", interrupted)
    with pytest.raises(KeyboardInterrupt):
        verified(SINGLE, IMAGES)
    assert ended.wait(timeout=60)


# ------------------------------------------------------------------ a sample of units


@pytest.mark.parametrize("method", ["hypersurface", "tangent"])
@pytest.mark.parametrize("rough", [None, "bfloat16"])
def test_a_sample_compares_the_units_it_draws_and_no_others(method, rough):
    """Against the statistics of the same entries of the whole reconstruction."""
    net = NET.astype("float64")
    options = {"method": method, "weights_rounded": rough, "layers": "all"}
    plan = verification.Plan(net, units=7, seed=3, **options)
    x = IMAGES[:1].astype(float)
    report = plan.report(x)
    whole = verification.reconstruct(net, x[0], **options)
    some = verification.reconstruct(net, x[0], units=7, seed=3, **options)
    for layer in net.layers:
        chosen = plan.sample[layer.name]
        assert len(chosen) == len(set(chosen)) == min(7, int(np.prod(layer.shape)))
        expected = whole[layer.name].reshape(-1)[chosen]
        scale = np.abs(whole[layer.name]).max()
        np.testing.assert_allclose(some[layer.name], expected, atol=1e-12 * scale)
        assert report.layers[layer.name].units == len(chosen)
        assert report.layers[layer.name].bound >= bound(net, layer, method, rough)
    assert report.passed


def test_a_sample_depends_on_the_seed_alone_and_says_what_it_is():
    reports = [al.verify(NET, IMAGES[:2], units=5, seed=s, progress=False) for s in (0, 0, 1)]
    assert reports[0] == reports[1] != reports[2]
    assert Report.from_dict(reports[0].to_dict()) == reports[0]
    assert "5 units of each layer (seed 0)" in reports[0].text()
    for other in (reports[2], al.verify(NET, IMAGES[:2], progress=False)):
        with pytest.raises(al.InputError, match=r"seed|units"):
            _ = reports[0] + other
    column = reports[0].table().header.index("95 % interval")
    for name, row in zip(reports[0].layers, reports[0].table().rows, strict=True):
        r = reports[0].layers[name]
        low, high = wilson(r.share(), r.units)
        assert row[column] == f"{100 * low:.4f} to {100 * high:.4f}"
    for wrong in (0, 1.5, True, "all"):
        with pytest.raises(al.InputError, match="units"):
            al.verify(NET, IMAGES[:1], units=wrong)


@pytest.mark.parametrize("way", ["pull_units", "pull_rows"])
def test_a_wrong_hypersurface_is_found_in_a_sample(way, monkeypatch):
    """Of dense layers, and of maps, where a unit is pulled within its receptive field."""
    from adjoint_lib.verification import reconstruction

    honest = getattr(reconstruction, way)
    monkeypatch.setattr(reconstruction, way, lambda *a: honest(*a) * 1.01)
    assert not al.verify(NET, IMAGES[:1], units=5, progress=False).passed


@pytest.mark.parametrize("options", [{}, {"units": 9}, {"mode": "RM0"}, {"method": "tangent"}])
def test_the_bar_moves_within_an_image_and_ends_full(options):
    plan = verification.Plan(NET, layers="all" if "mode" not in options else None, **options)
    shares = []
    for part in plan.reports(IMAGES[:1], lambda images: shares.append):
        assert part.images == 1
    assert all(share >= 0 for share in shares) and sum(shares) <= 1 + 1e-9
    assert sum(shares) > 0.5 or options.get("method") == "tangent"


def test_no_time_is_told_from_the_first_thousandth_of_an_image(monkeypatch, capsys):
    from adjoint_lib.verification import progress

    clock = iter([0.0, 40.0, 43.0, 44.0])  # 40 seconds to freeze the image
    monkeypatch.setattr(progress.time, "monotonic", lambda: next(clock))
    with progress.Progress(1, "Do this instead.") as bar:
        advance = bar.batch(1)
        for share in (0.0, 0.001, 0.2):
            advance(share)
    assert capsys.readouterr().err.count("This takes") == 0  # 20 seconds

    clock = iter([0.0, 1.0, 3.0, 5.0])
    with progress.Progress(3, "Do this instead.", done=2) as bar:
        for share in (0.0, 0.001, 0.02):
            bar.batch(1)(share)
    assert "about 3 minutes" in capsys.readouterr().err


def test_what_takes_more_than_a_minute_is_said_once_with_what_is_cheaper(monkeypatch, capsys):
    from adjoint_lib.verification import progress

    clock = iter([0.0, 1.0, 3.0, 4.0, 5.0])
    monkeypatch.setattr(progress.time, "monotonic", lambda: next(clock))
    with progress.Progress(100, "Do this instead.") as bar:
        advance = bar.batch(1)
        for _ in range(4):
            advance(0.25)
    said = capsys.readouterr().err
    assert said.count("This takes about 10 minutes. Do this instead.") == 1
    assert [progress.duration(s) for s in (61, 600, 5500)] == [
        "61 seconds",
        "10 minutes",
        "1.5 hours",
    ]
