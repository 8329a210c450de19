"""`@al.supports`: layers of one's own that TensorFlow computes, written in primitives."""

import keras
import numpy as np
import pytest
import tensorflow as tf

import adjoint_lib as al
from adjoint_lib.frontend.rules.call import RULES
from reference import explicit_jacobian, random_model

L, p = keras.layers, al.primitives


class Blocks(L.Layer):
    """Blocks of 2 x 2 pixels as channels, by TensorFlow itself, which cannot be traced."""

    def call(self, x):
        return tf.nn.space_to_depth(x, 2)

    def compute_output_shape(self, shape):
        return (shape[0], shape[1] // 2, shape[2] // 2, 4 * shape[3])


def blocks(call):
    height, width, channels = call.input_shapes[0]
    split = (height // 2, 2, width // 2, 2, channels)
    h = call.add(p.Reshape((height, width, channels), split), shape=split)
    moved = tuple(split[a] for a in (0, 2, 1, 3, 4))
    h = call.add(p.Permute((0, 2, 1, 3, 4)), [h], moved)
    return call.add(p.Reshape(moved, call.shape), [h])


class Affine(L.Layer):
    """A dense layer with a leak, by TensorFlow itself."""

    def build(self, shape):
        self.matrix = self.add_weight(name="kernel", shape=(shape[-1], 3))
        self.shift = self.add_weight(name="shift", shape=(3,))

    def call(self, x):
        return tf.nn.leaky_relu(tf.tensordot(x, self.matrix.value, 1) + self.shift.value, 0.25)

    def compute_output_shape(self, shape):
        return (*shape[:-1], 3)


def affine(call):
    h = call.add(p.Dense(call.weight("matrix")))
    h = call.add_bias(h, call.weight("shift"))
    leaky = p.Activation(lambda h: tf.nn.leaky_relu(h, 0.25), np.array([0.25, 1.0]))
    return call.add(leaky, [h])


@pytest.fixture(autouse=True)
def rules(monkeypatch):
    """Rules of these tests are forgotten after each."""
    monkeypatch.setattr(RULES, "_found", dict(RULES))


def model() -> keras.Model:
    def build():
        layers = [L.Conv2D(2, 3, padding="same", name="conv"), Blocks(name="blocks")]
        layers += [L.Flatten(), Affine(name="affine"), L.Dense(2, name="out")]
        return keras.Sequential([keras.Input((4, 6, 2)), *layers])

    return random_model(build)


def test_a_layer_written_in_primitives_is_exact():
    al.supports(Blocks)(blocks)
    al.supports(Affine)(affine)
    found, x = model(), np.random.default_rng(0).normal(size=(4, 6, 2))
    net = al.equivalent(found)
    assert [layer.name for layer in net.layers] == ["conv", "affine", "out"]
    biases = [found.get_layer("conv").bias, found.get_layer("affine").shift]
    J, *J_biases = explicit_jacobian(found, x, biases)
    H = net.hypersurface(x, "out")[...]
    np.testing.assert_allclose(H.image, J[:, 0], atol=1e-13)
    for name, expected in zip(("conv", "affine"), J_biases, strict=True):
        np.testing.assert_allclose(H.bias[:, net.layer(name).bias], expected, atol=1e-13)
    c = found(x[None])[0] - found.get_layer("out").bias
    np.testing.assert_allclose(H.value, c, atol=1e-13)
    assert al.verify(net, x, model=found, layers="all", progress=False).passed


def test_a_wrong_rule_gives_no_network():
    @al.supports(Blocks)
    def transposed(call):
        height, width, channels = call.input_shapes[0]
        return call.add(p.Reshape((height, width, channels), call.shape))

    al.supports(Affine)(affine)
    with pytest.raises(al.AdjointError, match="differs from the model at layer 'blocks'"):
        al.equivalent(model())


def test_a_wrong_slope_gives_no_network():
    @al.supports(Affine)
    def steeper(call):
        h = call.add_bias(call.add(p.Dense(call.weight("matrix"))), call.weight("shift"))
        leaky = p.Activation(lambda h: tf.nn.leaky_relu(h, 0.2501), np.array([0.2501, 1.0]))
        return call.add(leaky, [h])

    al.supports(Blocks)(blocks)
    with pytest.raises(al.AdjointError, match="differs from the model at layer 'affine'"):
        al.equivalent(model())


def test_without_a_rule_the_refusal_names_the_hook():
    with pytest.raises(al.UnsupportedLayer, match=r"'blocks' \(Blocks\).*al\.supports"):
        al.equivalent(model())


def test_a_layer_has_one_rule():
    al.supports(Blocks)(blocks)
    with pytest.raises(al.InputError, match="has it already"):
        al.supports(Blocks)(affine)
    with pytest.raises(al.InputError, match="has it already"):
        al.supports(L.Dense)(affine)
    with pytest.raises(al.InputError, match=r"class of a Keras layer.*got 'Blocks'"):
        al.supports("Blocks")
