"""LRP with known answers: LRP-0 is gradient x input, and every share is accounted for."""

import keras
import numpy as np
import pytest

import adjoint_lib as al
from adjoint_book.relevance import lrp
from adjoint_book.tiny import W0, W1, b0, b1, w, x


@pytest.fixture(scope="module")
def net():
    layers = keras.layers
    model = keras.Sequential(
        [
            keras.Input((2,)),
            layers.Dense(3, activation="relu"),
            layers.Dense(2, activation="relu"),
            layers.Dense(1, use_bias=False, name="unit"),
        ]
    )
    model.set_weights([W0.T, b0, W1.T, b1, w[:, None]])
    return al.equivalent(model).astype("float64")


def test_lrp_0_is_gradient_x_input(net):
    pixels, biases = lrp(net, x, 0, layer="unit")
    H = net.hypersurface(x, "unit")[0]
    assert np.allclose(pixels, x * H.image)
    assert biases == pytest.approx(net.x_b @ H.bias)


def test_without_a_share_for_the_biases_the_pixels_get_all(net):
    pixels, biases = lrp(net, x, 0, bias_shares=False, layer="unit")
    assert np.allclose(pixels, [8, 0]) and biases == pytest.approx(0)  # by hand: exercise 16.3


def test_epsilon_takes_something_away(net):
    pixels, biases = lrp(net, x, 0, epsilon=0.25, layer="unit")
    assert pixels.sum() + biases < 8
