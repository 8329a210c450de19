"""The step to a tie is exact in its region; the other searches find what they claim."""

import keras
import numpy as np
import pytest

import adjoint_lib as al
from adjoint_book import boundary

L = keras.layers


def made(activation):
    """A small network with random weights in float64, and images with the classes it chooses."""
    model = keras.Sequential(
        [
            keras.Input((6, 6, 3)),
            L.Conv2D(8, 3, activation=activation),
            L.Conv2D(8, 3, activation=activation),
            L.GlobalAveragePooling2D(),
            L.Dense(4, use_bias=False, name="fc"),
        ]
    )
    net = al.equivalent(al.models.randomise(model, seed=5)).astype("float64")
    images = np.random.default_rng(5).random((6, 6, 6, 3))
    return net, images, net.value(images)["fc"].numpy().argmax(1)


def test_the_normal_is_the_difference_of_two_hypersurfaces():
    net, images, classes = made("relu")
    found = boundary.margin(net, images, classes)
    for n, image in enumerate(images):
        units = net.hypersurface(image, "fc")[:]
        a, b = np.argsort(units.value)[::-1][:2]
        assert (a, b) == (classes[n], found.other[n])
        np.testing.assert_allclose(found.value[n], units.value[a] - units.value[b], rtol=1e-10)
        np.testing.assert_allclose(found.normal[n], units.image[a] - units.image[b], atol=1e-12)


def test_one_step_is_exact_where_the_network_is_linear():
    net, images, classes = made(None)
    at = boundary.nearest_margin(net, images, classes)
    scores = net.value(images + at.step)["fc"].numpy()
    rows = np.arange(len(images))
    assert np.abs(scores[rows, classes] - scores[rows, at.other]).max() < 1e-13
    walk = boundary.walk(net, images, classes, nearest=True)
    assert (walk.steps == 1).all()
    lengths = np.abs(at.value) / np.sqrt(np.sum(at.normal**2, (1, 2, 3)))
    np.testing.assert_allclose(walk.distances, boundary.CROSSING * lengths, rtol=1e-10)


def test_no_search_beats_the_distance_to_the_tie_of_a_linear_network():
    net, images, classes = made(None)
    at = boundary.nearest_margin(net, images, classes)
    least = np.abs(at.value) / np.sqrt(np.sum(at.normal**2, (1, 2, 3)))
    ball = boundary.smallest_ball(net, images, classes, np.full(6, 0.5))
    assert (ball > least * (1 - 1e-9)).all() and np.median(ball / least) < 1.3
    # It goes for the runner-up of the moment, which is not always the class that is nearest.


@pytest.mark.parametrize("nearest", [False, True])
def test_a_walk_ends_at_another_class_and_says_how_far_it_went(nearest):
    net, images, classes = made("relu")
    walk = boundary.walk(net, images, classes, nearest=nearest)
    assert (net.value(walk.images)["fc"].numpy().argmax(1) != classes).all()
    lengths = [np.linalg.norm(a - b) for a, b in zip(walk.images, images, strict=True)]
    np.testing.assert_allclose(walk.distances, lengths)


def test_a_walk_that_goes_on_arrives_at_a_tie():
    net, images, classes = made("relu")
    walk = boundary.walk(net, images, classes, most=12, stop=False)
    assert walk.margins.shape == (13, 6)
    assert (np.abs(walk.margins[-1]) < 1e-12 * walk.margins[0]).sum() >= 5


def test_an_image_that_keeps_its_class_is_infinitely_far():
    net, images, classes = made("relu")
    walk = boundary.walk(net, images, classes, most=0)
    assert np.isinf(walk.distances).all() and (walk.steps == 0).all()


def test_changes_of_the_pattern_are_counted():
    net, images, _ = made("relu")
    changed, units = boundary.pattern_changes(net, images[0], images[1])
    assert units == 4 * 4 * 8 + 2 * 2 * 8
    assert 0 < changed < units
    assert boundary.pattern_changes(net, images[0], images[0]) == (0, units)
