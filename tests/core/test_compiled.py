"""Traced readings: the eager ones to the bit, traced once, bounded, and only below the layer."""

import keras
import numpy as np
import pytest
import tensorflow as tf

import adjoint_lib as al
from adjoint_lib.core import compiled
from adjoint_lib.core.hypersurface import Hypersurface
from reference import image_of, random_model, small_net

L = keras.layers


def residual() -> keras.Model:
    """Each kind of layer whose pattern or rounding tracing might change."""
    x = keras.Input((9, 8, 2))
    h = L.Conv2D(5, 3, padding="same", activation="relu", name="one")(x)
    h = L.Add()([h, L.Conv2D(5, 3, padding="same", activation="leaky_relu", name="two")(h)])
    h = L.MaxPooling2D(2)(L.ReLU(max_value=6.0)(L.DepthwiseConv2D(3, name="three")(h)))
    h = L.BatchNormalization()(L.Conv2D(4, 3, strides=2, padding="same", name="four")(h))
    h = L.PReLU()(L.Concatenate()([h, L.Conv2D(3, 1, dilation_rate=1, name="five")(h)]))
    return keras.Model(x, L.Dense(3, name="out")(L.Flatten()(h)))


@pytest.fixture(scope="module")
def net():
    return al.equivalent(random_model(residual, seed=5)).astype("float32")


def image_batch(net, count):
    images = np.stack([image_of(net, seed) for seed in range(count)])
    return images.astype(net.dtype.as_numpy_dtype)


def thrice(compute):
    """What the eager call gives, the one that traces, and the one that runs the trace."""
    found = [compute() for _ in range(3)]
    for again in found[1:]:
        np.testing.assert_array_equal(found[0], again)
    return found[0]


@pytest.mark.parametrize("count", [1, 3])
def test_tracing_changes_no_bit(net, count):
    x = image_batch(net, count)
    for layer in net.layers:
        thrice(lambda: net.value(x)[layer.name])  # noqa: B023
        for mode in layer.modes if layer.name == "two" else layer.modes[1:2] or layer.modes:
            unit = (slice(None), *(n // 2 for n in net.hypersurface(x, layer.name, mode).shape[2:]))
            thrice(lambda: net.hypersurface(x, layer.name, mode)[unit].H)  # noqa: B023
            thrice(lambda: net.freeze(x).hypersurface(layer.name, mode)[unit].H)  # noqa: B023
    thrice(lambda: net(x))
    for pattern in zip(*(tf.nest.flatten(net.freeze(x).patterns) for _ in range(3)), strict=True):
        if pattern[0] is not None:
            thrice(iter(pattern).__next__)


@pytest.mark.parametrize("name", ["vgg7", "resnet20", "resnet20-fixup"])
def test_tracing_changes_no_bit_of_the_papers_networks(name):
    net = al.equivalent(random_model(al.models.MODELS[name], seed=3)).astype("float32")
    x = image_of(net).astype(np.float32)
    thrice(lambda: np.concatenate([c.numpy().ravel() for c in net.value(x).values()]))
    thrice(lambda: net.hypersurface(x, net.layers[-1].name)[3].H)


@pytest.mark.parametrize("count", [2, 33, 70])
def test_images_go_through_together_and_each_keeps_its_own(count, monkeypatch):
    """With 33 and 70, in parts that repeat the last image: no part is of another size."""
    _, net = small_net()
    x = image_batch(net, count)
    pulls = []
    original = Hypersurface._at_once
    spied = lambda self, images, units: pulls.append(len(images)) or original(self, images, units)  # noqa: E731
    monkeypatch.setattr(Hypersurface, "_at_once", spied)
    H = net.hypersurface(x, "out", "RM0")
    first = H[:, 1]
    assert len(set(pulls)) == 1 and sum(pulls) < count + len(pulls)
    assert max(pulls) <= compiled.MAX_BATCH
    alone = np.stack([np.asarray(net.freeze(each).hypersurface("out"))[:, 1] for each in x])
    np.testing.assert_allclose(first.H, alone, atol=1e-13)
    np.testing.assert_allclose(H[:, 1].H, alone, atol=1e-13)  # now from kept patterns
    np.testing.assert_allclose(H[::-3, :2].H[:, 1], alone[::-3], atol=1e-13)
    np.testing.assert_allclose(net.freeze(x).hypersurface("out")[1, 1].H, alone[1], atol=1e-13)
    np.testing.assert_allclose(first.value, net.value(x)["out"][:, 1], atol=1e-12)


def test_one_trace_for_each_layer_and_batch_size_and_few_are_kept(monkeypatch):
    _, net = small_net()
    for count in (1, 2, 1, 2, 1, 2):
        for unit in ((0, 0, 0), (1, 2, 3), (3, 3, 4)):
            net.hypersurface(image_batch(net, count), "second")[(slice(None), *unit)]
    made = [f for f in net.traces.values() if isinstance(f, compiled._Graph)]
    assert [f._function.experimental_get_tracing_count() for f in made] == [1, 1]
    monkeypatch.setattr(compiled, "MOST", 3)
    for count in range(1, 8):
        net.value(image_batch(net, count))
    assert [key[2] for key in net.traces] == [5, 6, 7]


def test_many_traces_are_no_reason_for_a_warning(caplog):
    _, net = small_net()
    for count in range(1, 9):
        for _ in range(2):
            net.freeze(image_batch(net, count))
    assert not caplog.records


def test_a_kernel_turned_while_tracing_can_be_used_afterwards():
    _, net = small_net()
    frozen, layer = net.freeze(image_of(net)), net.layer("second")
    g = tf.ones((1, *net.nodes[layer.reads].shape), tf.float64)
    first = tf.function(lambda: frozen.pull(layer.reads, g), autograph=False)()[0]
    np.testing.assert_array_equal(first, frozen.pull(layer.reads, g)[0])


def test_what_lies_above_the_layer_is_not_computed():
    """Above, the network overflows; below, each call refuses the image that overflows there."""
    layers = [L.Dense(4, name=f"d{n}", activation="relu") for n in range(3)]
    model = keras.Sequential([keras.Input((4,)), *layers])
    for n, layer in enumerate(layers):
        layer.kernel.assign(1e20 ** (n == 1) * np.eye(4))
    net = al.equivalent(model)
    x = np.full(4, 1e19, np.float32)
    for _ in range(3):
        assert net.hypersurface(x, "d1")[2].image[2] == np.float32(1e20)
        H = net.hypersurface(x, "d2")
        for _ in range(2):
            with pytest.raises(al.AdjointError, match=r"'d1'.*overflows float32"):
                H[2]
        with pytest.raises(al.AdjointError, match=r"'d1'.*overflows float32"):
            net.freeze(x)


def test_a_frozen_image_answers_for_any_layer():
    _, net = small_net()
    x = image_batch(net, 2)
    both, one = net.freeze(x), net.freeze(x[1])
    for layer in net.layers:
        for mode in layer.modes:
            expected = net.hypersurface(x, layer.name, mode)
            assert both.hypersurface(layer.name, mode).shape == expected.shape
            assert one.hypersurface(layer.name, mode).shape == expected.shape[1:]
            found = one.hypersurface(layer.name, mode)[...].H
            np.testing.assert_allclose(found, expected[1].H, atol=1e-13)
    with pytest.raises(al.InputError, match="conv9"):
        one.hypersurface("conv9")


def test_a_sum_that_overflows_though_no_term_does_is_no_overflow():
    model = keras.Sequential(
        [keras.Input((4,)), L.Dense(4, "relu", name="a"), L.Dense(1, name="b")]
    )
    model.get_layer("a").kernel.assign(np.eye(4))
    model.get_layer("b").kernel.assign(np.ones((4, 1)) / 4)
    net = al.equivalent(model)
    x = np.full(4, 2e38, np.float32)
    for _ in range(3):
        np.testing.assert_array_equal(net.hypersurface(x, "b")[0].image, np.full(4, 0.25))
        assert net.freeze(x).hypersurface("b")[0].value == pytest.approx(2e38)


def test_an_unsigned_network_is_not_read_by_the_traces_of_the_signed_one():
    from adjoint_lib.core.error_bounds import absolute

    _, net = small_net()
    frozen = absolute(net.freeze(image_of(net)))
    for _ in range(3):
        assert np.all(frozen.hypersurface("out")[1].H >= 0)
    assert np.any(net.hypersurface(image_of(net), "out")[1].H < 0)
