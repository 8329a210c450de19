"""Algorithm 1 as the benchmark runs it, against finite differences, and the benchmark itself."""

import numpy as np
import pytest
import tensorflow as tf

from adjoint_lib import models
from benchmarks import __main__ as bench
from benchmarks import algorithm_1, worker

MODES = ["RM1", "RM2", "RM3", "RM4"]


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


def test_folded_vgg7_computes_what_the_model_computes():
    model = models.randomise(models.vgg7(final_activation=False), seed=2)
    image = np.random.default_rng(1).random((32, 32, 3), dtype=np.float32)
    b, layers = algorithm_1.equivalent_vgg7(model)
    assert b.shape == (384,)
    assert [layer.name for layer in layers] == ["conv1", "conv2", "conv3", "conv4", "conv5", "fc"]
    scores = algorithm_1.activations(tf.constant(image), b, layers[-1])
    np.testing.assert_allclose(scores, model(image[None])[0], atol=1e-5)


def test_whole_benchmark_on_a_small_image(capsys):
    assert bench.main(["--size", "4", "--repeats", "1"]) == 0
    printed = capsys.readouterr().out
    assert "Algorithm 1 takes" in printed and "latest.json" not in printed
    assert all(name in printed for name in ("conv1", "conv5", "fc"))


def test_comparison_notices_what_is_wrong():
    checks = worker.Checks(np.arange(1.0, 9.0, dtype=np.float32))
    rows = np.random.default_rng(0).normal(size=(8, 3, 5)).astype(np.float32)
    checks.add("conv1", np.arange(6), rows[:6])
    checks.add("conv1", np.arange(6, 8), rows[6:])
    true = np.tensordot(np.arange(1.0, 9.0), rows.astype(float), 1).ravel()
    reference = {**checks.arrays, "conv1/true": true}
    assert max(bench.agreement(reference, checks.arrays)["conv1"].values()) < 1e-3
    for what, key in [
        ("columns", "entries of H"),
        ("reconstruction", "activations, library"),
    ]:
        for wrong in (1e-2, np.nan):
            other = {k: v.copy() for k, v in checks.arrays.items()}
            other[f"conv1/{what}"][..., 2] += wrong
            assert bench.agreement(reference, other)["conv1"][key] > bench.TOLERANCE


@pytest.mark.parametrize(
    "arguments", [["--size", "33"], ["--repeats", "0"], ["--parallel-iterations", "1"]]
)
def test_bad_options_are_refused(arguments, capsys):
    with pytest.raises(SystemExit) as stop:
        bench.main(arguments)
    assert stop.value.code == 2 and arguments[0] in capsys.readouterr().err


def test_too_little_memory_is_noticed_before_starting(monkeypatch):
    monkeypatch.setattr(bench, "_available_gb", lambda: 4.0)
    with pytest.raises(SystemExit, match=r"18 GB.*4\.0 GB.*--parallel-iterations"):
        bench.main([])
