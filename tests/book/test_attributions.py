"""Each method is what its paper defines, found another way: in loops, by gradients of Keras."""

import keras
import numpy as np
import pytest
import tensorflow as tf

import adjoint_lib as al
from adjoint_book import attributions

L = keras.layers


@pytest.fixture(scope="module")
def made():
    """A small float64 network with every kind of node of the three networks, images and classes."""
    keras.config.set_dtype_policy("float64")
    try:
        image = keras.Input((8, 8, 3), dtype="float64")
        x = L.ReLU()(L.BatchNormalization(name="bn")(L.Conv2D(4, 3, use_bias=False)(image)))
        x = L.AveragePooling2D(2)(x)
        branch = L.Conv2D(4, 3, padding="same", name="conv")(x)
        x = L.LeakyReLU(negative_slope=0.1, name="last")(L.Add()([x, branch]))
        scores = L.Dense(5, use_bias=False, name="fc")(L.GlobalAveragePooling2D()(x))
        model = al.models.randomise(keras.Model(image, scores), seed=3)
    finally:
        keras.config.set_dtype_policy("float32")
    images = np.random.default_rng(0).random((4, 8, 8, 3))
    net = al.equivalent(model)
    assert net.dtype == tf.float64
    return model, net, images, model(images).numpy().argmax(1)


def chosen(scores, classes):
    return tf.gather(scores, classes, batch_dims=1)


def gradient(model, images, classes):
    """The gradient of the chosen scores by the pixels, as TensorFlow has it of the Keras model."""
    x = tf.constant(images)
    with tf.GradientTape() as tape:
        tape.watch(x)
        scores = chosen(model(x), classes)
    return tape.gradient(scores, x).numpy()


def gradients_inside(model, images, classes, name):
    """A layer's output, and the gradient of the chosen scores by it."""
    both = keras.Model(model.input, [model.get_layer(name).output, model.output])
    with tf.GradientTape() as tape:
        inside, scores = both(tf.constant(images))
        tape.watch(inside)
        total = chosen(scores, classes)
    return inside.numpy(), tape.gradient(total, inside).numpy()


def test_gradient_times_input(made):
    model, net, images, classes = made
    found = attributions.gradient_times_input(net, images, classes)
    np.testing.assert_allclose(found.pixels, images * gradient(model, images, classes), atol=1e-12)
    assert not found.biases.any()


def test_the_hypersurface_is_complete(made):
    _, net, images, classes = made
    scores, found = attributions.attribute(net, images, classes, ["H"])
    np.testing.assert_allclose(found["H"].total, scores, rtol=1e-12)


def test_integrated_gradients_are_the_mean_along_the_way(made):
    model, net, images, classes = made
    found = attributions.integrated_gradients(net, images, classes, steps=5)
    points = [gradient(model, images * t, classes) for t in (0.1, 0.3, 0.5, 0.7, 0.9)]
    np.testing.assert_allclose(found.pixels, images * np.mean(points, 0), atol=1e-12)


def test_integrated_gradients_are_complete_in_the_limit(made):
    model, net, images, classes = made
    ends = [chosen(model(x), classes).numpy() for x in (images, 0 * images)]
    errors = [
        np.abs(
            attributions.integrated_gradients(net, images, classes, steps).total - ends[0] + ends[1]
        )
        for steps in (4, 64, 1024)
    ]
    few, more, many = (error.max() for error in errors)
    assert many < more < few and many < 2e-3 * np.abs(ends[0]).max()


def test_full_gradient_is_complete_and_its_biases_are_those_of_keras(made):
    model, net, images, classes = made
    scores, found = attributions.attribute(net, images, classes, ["FullGrad"])
    np.testing.assert_allclose(found["FullGrad"].total, scores, rtol=1e-12)
    expected = np.zeros(len(images))
    for name, source in zip(("bn", "conv"), net.sources, strict=True):
        _, g = gradients_inside(model, images, classes, name)
        expected += (g * net.x_b[source.slice]).sum((1, 2, 3))
    np.testing.assert_allclose(found["FullGrad"].biases, expected, atol=1e-12)


def test_grad_cam(made):
    model, net, images, classes = made
    maps, g = gradients_inside(model, images, classes, "last")
    expected = np.maximum((g.mean((1, 2), keepdims=True) * maps).sum(-1), 0)
    found = attributions.grad_cam(net, images, classes)
    np.testing.assert_allclose(found.pixels, expected, atol=1e-12)


def test_lrp_without_epsilon_is_gradient_times_input_and_complete(made):
    _, net, images, classes = made
    scores, found = attributions.attribute(net, images, classes, ["gradient × input"])
    plain = attributions.lrp_epsilon(net, images, classes, epsilon=0.0)
    scale = np.abs(plain.pixels).max()
    np.testing.assert_allclose(plain.pixels, found["gradient × input"].pixels, atol=1e-9 * scale)
    np.testing.assert_allclose(plain.total, scores, rtol=1e-9)


def test_lrp_with_epsilon_is_the_papers_rule_in_loops():
    rng = np.random.default_rng(1)
    W, V, b = rng.normal(size=(3, 4)), rng.normal(size=(4, 2)), rng.normal(size=4)
    model = keras.Sequential(
        [keras.Input((3,)), L.Dense(4, activation="relu"), L.Dense(2, use_bias=False, name="fc")]
    )
    model.set_weights([W, b, V])
    net, x, e = al.equivalent(model).astype("float64"), rng.normal(size=3), 0.25
    (W, b, V) = (np.float32(w).astype(float) for w in (W, b, V))
    z = x @ W + b
    a = np.maximum(z, 0)
    score = a @ V[:, 1]
    pixels, bias = np.zeros(3), 0.0
    for k in range(4):
        R = a[k] * V[k, 1] / (score + e * np.sign(score)) * score
        h = x @ W[:, k]
        R_h = h / (z[k] + e * np.sign(z[k])) * R  # the bias is added in a node of its own
        bias += b[k] / (z[k] + e * np.sign(z[k])) * R
        for j in range(3):
            pixels[j] += x[j] * W[j, k] / (h + e * np.sign(h)) * R_h
    found = attributions.lrp_epsilon(net, x[None], np.array([1]), epsilon=e)
    np.testing.assert_allclose(found.pixels[0], pixels, rtol=1e-10)
    np.testing.assert_allclose(found.biases[0], bias, rtol=1e-10)


def test_deletion_takes_the_largest_first(made):
    model, net, images, classes = made
    maps = np.random.default_rng(2).random((4, 8, 8))
    fractions = np.array([0, 0.25, 0.9])
    found = attributions.deletion(net, images, classes, maps, np.array([0.1, 0.2, 0.3]), fractions)
    assert found[:, 0].all()
    for n, image in enumerate(images):
        for i, fraction in enumerate(fractions):
            changed = image.copy()
            for at in sorted(np.ndindex(8, 8), key=lambda at: -maps[n][at])[: round(fraction * 64)]:
                changed[at] = 0.1, 0.2, 0.3
            assert found[n, i] == (model(changed[None]).numpy().argmax() == classes[n])


def test_maps_have_the_size_of_the_image(made):
    _, net, images, classes = made
    for name in attributions.METHODS:
        shown = attributions.shown(net, images, classes, name)
        assert shown.shape == (4, 8, 8) and np.isfinite(shown).all() and np.ptp(shown) > 0


def test_a_lead_is_the_area_between_two_curves_with_its_interval():
    kept, control = np.zeros((8, 4), bool), np.zeros((8, 4), bool)
    kept[:, 0], control[:, :3] = True, True
    assert attributions.lead(kept, control) == (0.5, 0.0)
    control[:4] = kept[:4]
    ahead, reach = attributions.lead(kept, control)
    spread = np.std([0, 0.5] * 4, ddof=1)
    assert ahead == 0.25 and np.isclose(reach, 1.96 * spread / 8**0.5, rtol=1e-4)


def test_what_is_missing_is_counted():
    table = attributions.accounts(np.array([2.0, 4.0]), {"a": (np.array([1.0, 2.0]), np.zeros(2))})
    assert "50 %  " in str(table) and str(table).count("50 %") == 2 and "0 %" in str(table)
