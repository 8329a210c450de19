"""The contributions of the sources: against H, an explicit Jacobian, and their own check."""

import keras
import numpy as np
import pytest

import adjoint_lib as al
from adjoint_lib.core import contributions as module
from adjoint_lib.core.primitives import Dense
from reference import explicit_jacobian, image_of, random_model, small_net

MODEL, NET = small_net()
IMAGES = np.stack([image_of(NET, seed) for seed in range(5)])
L = keras.layers


def branched() -> keras.Model:
    """A shortcut, an activation with constants, and a bias that not every layer depends on."""
    x = keras.Input((7, 6, 2))
    h = L.Conv2D(4, 3, padding="same", name="one")(x)
    h = L.Add()([L.ReLU(max_value=1.0, name="clip")(h), L.Conv2D(4, 1, name="side")(x)])
    h = L.MaxPooling2D(2, padding="same")(L.Conv2D(3, 3, padding="same", name="two")(h))
    return keras.Model(x, L.Dense(2, name="out")(L.Flatten()(h)))


@pytest.mark.parametrize("build", [None, branched])
def test_each_part_is_what_the_hypersurfaces_of_a_loop_say(build):
    net = NET if build is None else al.equivalent(random_model(build))
    images = np.stack([image_of(net, seed) for seed in range(3)])
    found = net.contributions(images)
    assert list(found) == [layer.name for layer in net.layers]
    for name, layer in found.items():
        for n, image in enumerate(images):
            units = net.hypersurface(image, name)[...]
            for m, source in enumerate(units.sources):
                expected = units.contributions[..., m]
                if source not in layer:
                    assert not expected.any()
                    continue
                np.testing.assert_allclose(layer[source][n], expected, atol=1e-13)
            np.testing.assert_allclose(layer.bias[n], units.bias @ net.x_b, atol=1e-13)


def test_the_parts_are_those_of_an_explicit_jacobian_of_the_keras_model():
    """The class scores: d score / d bias, times the bias, which batch normalisation shifts."""
    image = IMAGES[0]
    first, bn = MODEL.get_layer("first"), MODEL.get_layer("bn")
    J_x, J_first, J_beta = explicit_jacobian(MODEL, image, [first.bias, bn.beta])
    gamma, beta, mean, variance = (v.numpy() for v in bn.variables)
    out = NET.contributions(image, "out")["out"]
    np.testing.assert_allclose(out.image, J_x.reshape(3, -1) @ image.reshape(-1), atol=1e-12)
    np.testing.assert_allclose(out["first"], J_first @ first.bias.numpy(), atol=1e-12)
    shift = beta - gamma * mean / np.sqrt(variance + bn.epsilon)
    np.testing.assert_allclose(out["bn"], J_beta @ shift, atol=1e-12)


def test_they_add_up_to_what_the_network_computes():
    found = NET.contributions(IMAGES)
    for name, c in NET.value(IMAGES).items():
        np.testing.assert_allclose(found[name].value, c, atol=1e-13)
        np.testing.assert_allclose(found[name].image + found[name].bias, c, atol=1e-13)
        assert found[name].worst <= found[name].bound


def test_one_image_has_no_axis_of_images_and_layers_can_be_chosen():
    alone, together = NET.contributions(IMAGES[2], ["second"]), NET.contributions(IMAGES)
    assert list(alone) == ["second"] and alone["second"].sources == ["image", "first"]
    assert alone["second"].image.shape == NET.layer("second").shape
    np.testing.assert_allclose(alone["second"].parts, together["second"].parts[:, 2], atol=1e-14)
    assert "second" in repr(alone) and "2 sources" in repr(alone["second"])


def test_the_size_of_the_batches_changes_nothing(monkeypatch):
    expected = NET.contributions(IMAGES)
    monkeypatch.setattr(module, "MAX_BATCH", 2)
    for name, layer in NET.contributions(IMAGES).items():
        np.testing.assert_allclose(layer.parts, expected[name].parts, atol=1e-14)


def test_parts_that_do_not_add_up_are_an_error(monkeypatch):
    """A tangent that is wrong in one layer is noticed there, in float32 too."""
    honest = Dense.push
    monkeypatch.setattr(Dense, "push", lambda *args: 1.001 * honest(*args))
    monkeypatch.setattr(Dense, "value", lambda self, x: honest(self, None, x))
    for net in (NET, NET.astype("float32")):
        with pytest.raises(al.AdjointError, match="'out' miss"):
            net.contributions(IMAGES)


def test_a_single_score_that_nearly_cancels_is_no_error():
    """As at the decision boundary of a classifier: large parts, a sum of nearly zero."""
    hidden = L.Dense(2, activation="relu", name="hidden")
    model = keras.Sequential([keras.Input((3,)), hidden, L.Dense(1, use_bias=False, name="score")])
    hidden.set_weights([np.array([[1, 2]] * 3, np.float32), np.array([2, 1], np.float32)])
    model.get_layer("score").set_weights([np.array([[1], [-1]], np.float32)])
    found = al.equivalent(model).contributions(np.array([0.1, 0.2, 0.7], np.float32))["score"]
    assert abs(found.value[0]) < 1e-6
    np.testing.assert_allclose(found.parts[:, 0], [-1, 1], rtol=1e-6)


def test_float32_is_within_its_bound_and_the_check_has_room():
    single = NET.astype("float32")
    found = single.contributions(IMAGES.astype(np.float32))
    exact = NET.contributions(IMAGES)
    for name, layer in found.items():
        assert layer.parts.dtype == np.float32
        assert 0 <= layer.worst <= layer.bound and 0 <= layer.normwise <= layer.bound
        np.testing.assert_allclose(layer.parts, exact[name].parts, atol=1e-4)


def test_what_is_too_large_or_not_there_is_refused_in_words():
    with pytest.raises(al.TooLarge, match="Name fewer layers"):
        NET.contributions(IMAGES, max_bytes=1000)
    with pytest.raises(al.InputError, match="Did you mean 'second'"):
        NET.contributions(IMAGES, "socond")
    found = NET.contributions(IMAGES)
    with pytest.raises(al.InputError, match="Did you mean 'second'"):
        _ = found["socond"]
    with pytest.raises(al.InputError, match="image, first"):
        _ = found["second"]["out"]


def test_the_table_has_means_and_shares():
    found = NET.contributions(IMAGES)
    rows = {(layer, source): numbers for layer, source, *numbers in found.table()}
    parts = found["out"].parts
    sizes = [np.abs(part).mean() for part in parts]
    for m, source in enumerate(found["out"].sources):
        expected = parts[m].mean(), sizes[m], sizes[m] / sum(sizes)
        np.testing.assert_allclose(rows["out", source], expected)
    assert "%" in repr(found) and "<table>" in found._repr_html_()
