"""Weights rounded to bfloat16: what is rounded, and that the theory explains every unit."""

import keras
import numpy as np
import pytest
import tensorflow as tf

import adjoint_lib as al
from adjoint_lib.core.error_bounds import rounded_weights, unit_roundoff
from adjoint_lib.verification.coarse_weights import round_to, rounded
from reference import image_of, random_model, small_net

MODEL, NET = small_net()
IMAGES = np.stack([image_of(NET, seed) for seed in range(6)])


def test_rounding_is_that_of_bfloat16():
    values = np.random.default_rng(0).normal(size=10_000).astype(np.float32)
    values[:4] = 0, 1, -1.00390625, 1.01171875  # the last two lie halfway between neighbours
    expected = tf.cast(tf.cast(values, tf.bfloat16), tf.float64).numpy()
    np.testing.assert_array_equal(round_to(values, 8), expected)
    assert np.all(np.abs(round_to(values, 8) - values) <= unit_roundoff("bfloat16") * abs(values))


def test_the_rounded_network_has_rounded_weights_and_nothing_else_changed():
    coarse = rounded(NET, "bfloat16")
    np.testing.assert_array_equal(coarse.x_b, round_to(NET.x_b, 8))
    assert np.any(coarse.x_b != NET.x_b) and coarse.digest != NET.digest
    for before, after in zip(NET.graph.nodes, coarse.graph.nodes, strict=True):
        if hasattr(before.primitive, "kernel"):
            expected = round_to(before.primitive.kernel, 8)
            np.testing.assert_array_equal(after.primitive.kernel, expected)
        assert (before.name, before.inputs) == (after.name, after.inputs)


def test_weights_on_the_longest_path_are_counted():
    """Kernels of first, second, out; a bias is read beside a kernel before it, so adds nothing."""
    assert [rounded_weights(NET, layer) for layer in NET.layers] == [1, 2, 3]
    x = keras.Input((4, 4, 2))
    scaled = keras.layers.BatchNormalization(name="alone")(keras.layers.ReLU()(x))
    model = keras.Model(x, keras.layers.Conv2D(2, 1, name="conv")(scaled))
    net = al.equivalent(al.models.randomise(model))
    folded = not any(type(n.primitive).__name__ == "Scale" for n in net.graph.nodes)
    assert rounded_weights(net, net.layer("conv")) == (1 if folded else 2)


@pytest.mark.parametrize("method", ["hypersurface", "tangent"])
def test_float64_has_no_miss_and_bfloat16_brings_them_back_within_its_bound(method):
    fine = al.verify(NET, IMAGES, method=method)
    coarse = al.verify(NET, IMAGES, method=method, weights_rounded="bfloat16")
    assert fine.passed and coarse.passed
    for name, layer in coarse.layers.items():
        assert fine.layers[name].share() == 1 > layer.share()
        assert 0.01 < layer.worst <= layer.bound < 4
    assert "rounded to bfloat16" in repr(coarse)
    with pytest.raises(al.InputError, match="weights_rounded"):
        fine + coarse


def test_the_bound_holds_in_a_deep_network_and_a_broken_weight_is_found_out(monkeypatch):
    net = al.equivalent(random_model(al.models.resnet20))
    image = al.data.sample("cifar10")[0][:1].astype(float)
    options = {"method": "tangent", "weights_rounded": "bfloat16", "layers": "all"}
    assert al.verify(net, image, **options).passed
    rounded = "adjoint_lib.verification.coarse_weights.round_to"
    monkeypatch.setattr(rounded, lambda values, bits: 1.1 * values)
    assert not al.verify(net, image, **options).passed


def test_other_formats_are_refused():
    with pytest.raises(al.InputError, match="bfloat16"):
        al.verify(NET, IMAGES, weights_rounded="float8")
