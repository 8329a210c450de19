"""3-D convolutions with strides above the window, where TensorFlow's own gradient may be wrong."""

import keras
import numpy as np
import pytest

import adjoint_lib as al

L = keras.layers


def model_of(layer) -> keras.Model:
    inputs = keras.Input((3, 5, 3, 1))
    if isinstance(layer, L.Conv3DTranspose):
        inputs = keras.Input((1, 2, 1, 1))
    return al.models.randomise(keras.Model(inputs, layer(inputs)))


@pytest.mark.parametrize("kind", [L.Conv3D, L.Conv3DTranspose])
def test_a_negative_padding_is_refused(kind):
    """On 3 entries a window of 1 with stride 3 reads entry 1; TensorFlow's gradient goes to 0."""
    model = model_of(kind(2, (1, 2, 1), (3, 1, 1), "same", name="skips"))
    with pytest.raises(al.UnsupportedLayer, match=r"'skips'.*padding 'same'.*Use padding 'valid'"):
        al.equivalent(model)


@pytest.mark.parametrize("kind", [L.Conv3D, L.Conv3DTranspose])
@pytest.mark.parametrize(
    ("strides", "padding"), [((2, 3, 2), "same"), ((3, 3, 3), "valid"), ((2, 1, 1), "same")]
)
def test_other_strides_are_exact(kind, strides, padding):
    net = al.equivalent(model_of(kind(2, (1, 2, 1), strides, padding))).astype("float64")
    image = np.random.default_rng(0).normal(size=net.input_shape)
    (layer,) = net.layers
    units = net.hypersurface(image, layer.name)[...]
    np.testing.assert_allclose(units.value, net.value(image)[layer.name][0], atol=1e-14)
