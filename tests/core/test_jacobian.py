"""J as a linear operator: its products against an explicit Jacobian, by TensorFlow's tape."""

import numpy as np
import pytest
import tensorflow as tf

import adjoint_lib as al
from reference import image_of, small_net

MODEL, NET = small_net()
IMAGE = image_of(NET)
FROZEN = NET.freeze(IMAGE)


@pytest.mark.parametrize("layer", NET.layers, ids=lambda layer: layer.name)
def test_products_are_those_of_the_matrix(layer):
    J = FROZEN.at(layer)
    matrix = J @ np.eye(NET.d_in)
    assert matrix.shape == J.shape == J.T.T.shape == J.T.shape[::-1]
    rng = np.random.default_rng(0)
    v, g = rng.normal(size=NET.d_in), rng.normal(size=(J.shape[0], 3))
    np.testing.assert_allclose(J @ v, matrix @ v, atol=1e-12)
    np.testing.assert_allclose(J.T @ g, matrix.T @ g, atol=1e-12)


def test_the_image_part_is_the_gradient_of_the_model():
    """Of the last layer's units, whose values are the model's outputs less its last bias."""
    x = tf.constant(IMAGE[None])
    with tf.GradientTape() as tape:
        tape.watch(x)
        outputs = MODEL(x, training=False)
    expected = tape.jacobian(outputs, x).numpy().reshape(outputs.shape[-1], -1)
    layer = next(found for found in NET.layers if found.shape == outputs.shape[1:])
    found = FROZEN.at(layer) @ np.eye(NET.d_in)[:, : IMAGE.size]
    np.testing.assert_allclose(found, expected, atol=1e-12)


def test_wrong_shapes_and_batches_are_refused():
    J = FROZEN.at(NET.layers[0])
    for wrong in (np.ones(3), np.ones((NET.d_in, 2, 2)), np.array(1.0)):
        with pytest.raises(al.InputError, match=f"expected .{NET.d_in}, "):
            _ = J @ wrong
    with pytest.raises(al.InputError, match="expected one frozen image, got 2"):
        NET.freeze(np.stack([IMAGE, IMAGE])).at(NET.layers[0])
