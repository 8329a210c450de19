"""Settings that Keras rounds to float32 inside a float64 model: the equivalent network must too."""

import keras
import numpy as np
import pytest

import adjoint_lib as al


@pytest.fixture(autouse=True)
def float64():
    policy = keras.config.dtype_policy()
    keras.config.set_dtype_policy("float64")
    yield
    keras.config.set_dtype_policy(policy)


@pytest.mark.parametrize("max_value", [None, 0.3, 1.0])
@pytest.mark.parametrize("threshold", [0.0, 0.2, 0.7])
@pytest.mark.parametrize("leak", [0.0, 0.1])
def test_ceiling_and_threshold_of_a_relu(max_value, threshold, leak):
    """0.3 becomes 0.300000012 where Keras clips, and 0.7 becomes 0.699999988 where it compares."""
    inputs = keras.Input((40,), dtype="float64")
    relu = keras.layers.ReLU(max_value, leak, threshold)
    x = relu(keras.layers.Dense(40, use_bias=False)(inputs))
    model = keras.Model(inputs, x)
    dense = model.layers[1]
    dense.kernel.assign(np.eye(40))

    near = np.repeat([threshold, 0.3, 1.0, 0.0], 10)
    steps = np.tile([-2.0, -1.3, -0.7, -1e-9, 1e-9, -3e-9, 3e-9, 0.7, 1.3, 2.0], 4)
    image = (near + steps)[None]
    expected = np.asarray(model(image))
    between = abs(float(np.float32(threshold)) - threshold)  # Keras's two pieces overlap or gape
    assert np.abs(al.equivalent(model)(image) - expected).max() <= 1e-15 + leak * between
