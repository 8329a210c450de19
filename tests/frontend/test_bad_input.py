"""Wrong arguments: each error says what was expected and what came, before any computing."""

import re

import keras
import numpy as np
import pytest
import tensorflow as tf

import adjoint_lib as al
from reference import image_of, small_net

L = keras.layers
MODEL, NET = small_net()
X = image_of(NET)


def hypersurface(image=X, layer="second", mode="RM2", **options):
    return NET.hypersurface(image, layer, mode, **options)


WRONG_CALLS = {
    "wrong shape": (lambda: hypersurface(X[:5]), r"8 x 7 x 2 or a batch .* got shape \(5, 7, 2\)"),
    "no images": (lambda: NET.value(X[None][:0]), "got shape"),
    "NaN": (lambda: hypersurface(np.where(X > 2, np.nan, X * np.nan)), "112 entries that are NaN"),
    "infinite": (lambda: hypersurface(X * np.inf), "NaN or infinite"),
    "integer images": (lambda: hypersurface((X * 255).astype(np.uint8)), "got uint8.*images / 255"),
    "unknown layer": (lambda: hypersurface(layer="secnod"), "Did you mean 'second'"),
    "layer of another type": (lambda: hypersurface(layer=3), "unknown layer 3"),
    "a layer without a kernel": (lambda: hypersurface(layer="relu"), "'relu' has no kernel"),
    "unknown mode": (lambda: hypersurface(mode="RM5"), "one of RM0, RM1, RM2, RM3, RM4"),
    "RM0 of a convolution": (lambda: hypersurface(mode="RM0"), "RM0 does not fit layer 'second'"),
    "RM2 of a dense layer": (lambda: hypersurface(layer="out"), "RM2 does not fit layer 'out'"),
    "index out of range": (lambda: hypersurface()[0, 4, 0], "4 is out of range for axis 1.*size 4"),
    "index below range": (lambda: hypersurface()[0, 0, -6], "-6 is out of range for axis 2"),
    "too many indices": (lambda: hypersurface()[0, 0, 0, 0], "at most 3 indices"),
    "index of another type": (lambda: hypersurface()[0, 1.5], "an int or a slice .* got 1.5"),
    "empty slice": (lambda: hypersurface()[3:3], "chooses nothing of axis 0"),
    "k = 0": (lambda: hypersurface(k=0), "k > 0"),
    "k < 0": (lambda: hypersurface(k=-1 / 8), "k > 0"),
    "k = NaN": (lambda: hypersurface(k=float("nan")), "k > 0"),
    "k = infinity": (lambda: NET.value(X, k=float("inf")), "finite k > 0"),
    "k without end": (lambda: hypersurface(k=10**400), "k > 0 .* got 1000"),
    "k as text": (lambda: hypersurface(k="1/8"), "k > 0 .* got '1/8'"),
    "dtype": (lambda: NET.astype("float16"), "float32 or float64, got 'float16'"),
    "direction of wrong shape": (
        lambda: NET.tangent(X, X[None], np.zeros((1, 5))),
        r"dx_b of shape \(1, 12\), got \(1, 5\)",
    ),
    "cotangent of wrong shape": (
        lambda: NET.adjoint(X, "out", np.ones((2, 4))),
        r"cotangent of shape \(2, 3\), got \(2, 4\)",
    ),
    "directions for other images": (
        lambda: NET.tangent(np.stack([X, X]), np.stack([X, X, X]), np.zeros((3, 12))),
        "each of 2 images, got 3",
    ),
    "a direction that is text": (
        lambda: NET.tangent(X, "up", np.zeros((1, 12))),
        "dx of real numbers, got <U2",
    ),
    "a ragged direction": (
        lambda: NET.tangent(X, [[1.0], [1.0, 2.0]], np.zeros((1, 12))),
        r"dx of shape \(1, 8, 7, 2\), got: setting an array",
    ),
    "a complex direction": (
        lambda: NET.tangent(X, 1j * X[None], np.zeros((1, 12))),
        "dx of real numbers, got complex128",
    ),
    "a complex vector": (
        lambda: NET.freeze(X).at("out") @ np.full(NET.d_in, 1j),
        "vectors of real numbers, got complex128",
    ),
    "an infinite vector": (
        lambda: NET.freeze(X).at("out") @ np.full(NET.d_in, np.inf),
        "finite vectors",
    ),
    "a product out of range": (
        lambda: NET.freeze(X).at("out") @ np.full(NET.d_in, 1e308),
        "the product overflows float64.*scale them",
    ),
    "a direction out of range": (
        lambda: NET.tangent(X, np.full((1, *X.shape), 1e308), np.zeros((1, 12))),
        r"J \[dx; dx_b\] overflows float64",
    ),
    "a cotangent out of range": (
        lambda: NET.adjoint(X, "out", np.full((1, 3), 1e308)),
        r"J\* g overflows float64",
    ),
    "dates": (lambda: NET.value(np.zeros(X.shape, "M8[s]")), "floating-point images, got datetime"),
    "J at an unknown layer": (lambda: NET.freeze(X).at("ou"), "Did you mean 'out'"),
    "a cotangent that is a number": (
        lambda: NET.adjoint(X, "out", 5.0),
        r"cotangent of shape \(1, 3\), got \(\)",
    ),
    "a cotangent that is not finite": (
        lambda: NET.adjoint(X, "out", np.full((1, 3), np.nan)),
        "finite cotangent",
    ),
    "a masked image": (
        lambda: hypersurface(np.ma.masked_array(X, mask=X > 0)),
        "without a mask.*filled",
    ),
    "no scattered units": (lambda: hypersurface().at(np.zeros((0, 3), int)), "at least one unit"),
    "modes in a list": (lambda: hypersurface(mode=["RM2"]), "unknown mode"),
    "contributions to a number": (lambda: NET.contributions(X, 5), "names in a list, or None"),
    "contributions to no layer": (lambda: NET.contributions(X, []), "names in a list, or None"),
    "verify a model": (lambda: al.verify(MODEL, X), r"al.equivalent makes it, got \w+"),
    "verify no layers": (lambda: al.verify(NET, X, layers=[]), r"or None, got \[\]"),
    "two ellipses": (lambda: hypersurface()[..., ...], "one '...', got 0 and 2"),
    "explain a number": (lambda: al.explain(NET, X, 5), "layer's name and numbers.* got 5"),
    "stream nothing": (
        lambda: list(NET.hypersurfaces(None, "out", [0])),
        "a tf.data.Dataset or another iterable, got NoneType",
    ),
    "stream ragged units": (
        lambda: list(NET.hypersurfaces(X, "second", [[0, 1], [1]])),
        "rows of 3 integers, got: setting an array",
    ),
    "verify with a seed below zero": (lambda: al.verify(NET, X, units=3, seed=-1), "seed as a"),
    "a model without a path": (lambda: al.load_model(None), "path of a .keras file, got NoneType"),
    "method": (lambda: al.verify(NET, X, method="jacobian"), "hypersurface, tangent"),
    "verify in another mode": (lambda: al.verify(NET, X, mode="RM4"), "'RM2'.*'RM0'"),
    "verify a layer in a wrong mode": (
        lambda: al.verify(NET, X, layers=["out"], mode="RM2"),
        "does not fit",
    ),
    "verify an unknown layer": (lambda: al.verify(NET, X, layers=["ou"]), "Did you mean 'out'"),
    "not a model": (lambda: al.equivalent("vgg7"), "expected a Keras 3 model, got str"),
}


@pytest.mark.parametrize("name", WRONG_CALLS)
def test_a_wrong_call_is_explained(name):
    call, message = WRONG_CALLS[name]
    with pytest.raises(al.InputError, match=message):
        call()


def model_with(*layers, shape=(8, 8, 2)):
    return keras.Sequential([keras.Input(shape), *layers])


class Raw(keras.Model):
    """Computed by TensorFlow itself, which cannot be traced."""

    def call(self, x):
        return tf.reverse(x, [1])


def own_call():
    model = Raw(name="raw")
    model(np.zeros((1, 3), np.float32))
    return model


class RawLayer(keras.layers.Layer):
    def call(self, x):
        return tf.reverse(x, [1])


def multiply():
    x = keras.Input((8, 8, 2))
    return keras.Model(x, L.Multiply(name="gate")([L.Conv2D(2, 1)(x), x]))


def product():
    x = keras.Input((8, 8, 2))
    return keras.Model(x, L.Conv2D(2, 1)(x) * x)


def attention():
    x = keras.Input((8, 4))
    return keras.Model(x, L.MultiHeadAttention(2, 4, name="mha")(x, x))


def two_softmaxes():
    x = keras.Input((8, 8, 2))
    h = L.Conv2D(2, 1, activation="softmax", name="inside")(x)
    return keras.Model(x, L.Conv2D(2, 1)(h))


def training_mode():
    x = keras.Input((8, 8, 2))
    return keras.Model(x, L.BatchNormalization(name="bn")(x, training=True))


def exponential():
    x = keras.Input((4,))
    return keras.Model(x, L.Dense(2)(keras.ops.exp(x)))


def dot():
    x = keras.Input((4,))
    return keras.Model(x, keras.ops.dot(x, np.ones((4, 2), np.float32)))


def used_again():
    x = keras.Input((4,))
    dense, last = L.Dense(4, name="d"), L.Dense(4, "tanh", name="again")
    return keras.Model(x, dense(last(dense(last(x)))))


def inside(*layers):
    """A model in which the layers are followed by another."""
    return model_with(*layers, L.ReLU())


UNSUPPORTED = {
    "tanh": (
        lambda: inside(L.Conv2D(2, 3, activation="tanh", name="c")),
        r"'c'.*'tanh' inside.*piecewise.*after this layer.*get_layer\('c'\).output",
    ),
    "sigmoid": (
        lambda: inside(L.Activation("sigmoid", name="s")),
        "'s'.*'sigmoid'.*hard_sigmoid",
    ),
    "GELU": (lambda: inside(L.Dense(2, activation="gelu", name="d")), "'d'.*'gelu'"),
    "ELU": (lambda: inside(L.ELU(name="e")), r"'e' \(ELU\).*not piecewise linear.*Remedy"),
    "a sigmoid of keras.ops": (
        lambda: inside(L.Lambda(keras.ops.sigmoid, name="gate")),
        "'gate/sigmoid'.*not piecewise linear",
    ),
    "an operation": (exponential, "'exp' .Exp.*cut the model after this layer: a final"),
    "a nested layer": (
        lambda: inside(model_with(L.Activation("tanh", name="t"), L.ReLU())),
        "/t'.*cut the model after this layer: a final",
    ),
    "a layer used again": (used_again, r"'again'.*get_layer\('again'\).output"),
    "a product with a constant": (dot, r"'dot' \(Dot\) is not supported: its exact equivalent"),
    "own function": (
        lambda: inside(L.Activation(lambda t: t * t, name="own")),
        "'own/activation/multiply' multiplies activations",
    ),
    "softmax inside": (two_softmaxes, "'inside'.*'softmax' inside the network"),
    "attention": (attention, "'mha'.*multiplies activations"),
    "LayerNorm": (
        lambda: model_with(L.LayerNormalization(name="n")),
        r"'n'.*statistic of its own.*before it.*get_layer\('n'\).input",
    ),
    "multiply": (multiply, "'gate'.*multiplies activations"),
    "product of tensors": (product, "multiplies activations by each other, or divides by them"),
    "own call": (own_call, r"'raw' \(Raw\).*Keras layers and keras.ops alone.*al.supports"),
    "own layer": (
        lambda: model_with(RawLayer(name="raw")),
        r"'raw' \(RawLayer\).*keras.ops alone.*al.supports",
    ),
    "recurrent": (lambda: model_with(L.LSTM(2, name="r"), shape=(8, 2)), r"'r' \(LSTM\)"),
    "batch statistics": (training_mode, "training=True"),
    "a batch turned around": (
        lambda: model_with(L.Lambda(lambda t: keras.ops.flip(t, 0), name="turned")),
        "'turned/flip' mixes the images",
    ),
    "a mean over the batch": (
        lambda: model_with(L.Lambda(lambda t: t - keras.ops.mean(t, 0), name="centred")),
        "'centred/mean' goes over the images of a batch",
    ),
    "padding by ones": (
        lambda: model_with(
            L.Lambda(lambda t: keras.ops.pad(t, [(0, 0)] * 3 + [(1, 1)], constant_values=1.0))
        ),
        "pads by 1.0; expected zeros",
    ),
    "clipped on one side": (
        lambda: model_with(L.Lambda(lambda t: keras.ops.clip(t, 0, np.inf))),
        "two finite numbers.*keras.ops.maximum",
    ),
    "a diagonal": (
        lambda: model_with(
            L.Lambda(lambda t: keras.ops.einsum("biic,cd->bid", t, np.ones((2, 2))))
        ),
        "no letter twice",
    ),
    "resized with bars of grey": (
        lambda: model_with(L.Resizing(4, 9, pad_to_aspect_ratio=True, fill_value=0.5)),
        "fill_value=0.5; expected 0",
    ),
}


@pytest.mark.parametrize("name", UNSUPPORTED)
def test_an_unsupported_layer_is_named_with_reason_and_remedy(name):
    """The remedy names only layers that `get_layer` finds."""
    build, message = UNSUPPORTED[name]
    model = build()
    with pytest.raises(al.UnsupportedLayer, match=message) as caught:
        al.equivalent(model)
    assert len(str(caught.value)) > 60
    for layer in re.findall(r"get_layer\('(.*?)'\)", str(caught.value)):
        assert model.get_layer(layer)


def test_a_refusal_comes_before_any_computing(monkeypatch):
    model = model_with(L.Conv2D(2, 3), L.Activation("tanh"), L.ReLU())
    monkeypatch.setattr("tensorflow.nn.convolution", None)
    with pytest.raises(al.UnsupportedLayer):
        al.equivalent(model)


def test_a_model_that_is_not_built():
    with pytest.raises(al.InputError, match=r"not built.*model\.build"):
        al.equivalent(keras.Sequential([L.Conv2D(2, 3), L.Flatten(), L.Dense(2)]))


def test_a_model_without_a_fixed_size():
    with pytest.raises(al.InputError, match=r"\(None, None, 3\); expected a fixed size"):
        al.equivalent(model_with(L.Conv2D(2, 3), shape=(None, None, 3)))


def test_a_model_with_two_inputs():
    a, b = keras.Input((4,)), keras.Input((4,))
    with pytest.raises(al.InputError, match="has 2 inputs; expected one"):
        al.equivalent(keras.Model([a, b], L.Add()([a, b])))


@pytest.mark.parametrize("policy", ["mixed_bfloat16", "mixed_float16", "bfloat16"])
def test_mixed_precision(policy):
    with pytest.raises(al.InputError, match=r"float32 or float64 throughout"):
        al.equivalent(model_with(L.Conv2D(2, 3, dtype=policy)))


def test_layers_of_different_precision():
    mixed = model_with(L.Conv2D(2, 3, name="a"), L.Conv2D(2, 3, name="b", dtype="float64"))
    with pytest.raises(al.InputError, match="'a' in float32, 'b' in float64"):
        al.equivalent(mixed)


def test_float64_layers_in_a_model_made_under_float32():
    """The network computes as its layers do, whatever the policy was when they were joined."""
    net = al.equivalent(model_with(L.Conv2D(2, 3, dtype="float64"), L.ReLU(dtype="float64")))
    assert net.dtype == "float64"


def test_channels_first():
    with pytest.raises(al.UnsupportedLayer, match="'channels_first'; expected 'channels_last'"):
        al.equivalent(model_with(L.Conv2D(2, 3, data_format="channels_first"), shape=(2, 8, 8)))


def test_channels_first_by_default_where_no_layer_has_any():
    """A dense layer was said to have data_format='channels_first'."""
    keras.config.set_image_data_format("channels_first")
    try:
        assert al.equivalent(model_with(L.Dense(2), shape=(4,))).layers
    finally:
        keras.config.set_image_data_format("channels_last")


def test_a_network_that_differs_from_its_model_is_refused(monkeypatch):
    """The self-check: if a handler were wrong, no network would come back."""
    from adjoint_lib.frontend.rules.call import RULES
    from adjoint_lib.frontend.rules.moving import identity

    monkeypatch.setitem(RULES._found, L.LeakyReLU, identity)
    with pytest.raises(al.AdjointError, match=r"differs from the model at layer 'leaky.*channel"):
        al.equivalent(model_with(L.Conv2D(2, 3), L.LeakyReLU()))
