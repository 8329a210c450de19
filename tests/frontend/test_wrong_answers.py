"""Models and calls that once gave a wrong answer in silence: now right, or refused in words."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from keras.src.backend.common.masking import set_keras_mask

import adjoint_lib as al
from adjoint_lib.explorer import export
from reference import image_of, small_net

L = keras.layers


def sequence(*layers, shape=(4,), dtype=None) -> keras.Model:
    return keras.Sequential([keras.Input(shape, dtype=dtype), *layers])


# ------------------------------------------------------------------ one image at a time


def test_the_stream_of_hypersurfaces_takes_one_image():
    """It gave all images the pattern of the first."""
    _, net = small_net()
    images = np.stack([image_of(net, seed) for seed in range(2)])
    with pytest.raises(al.InputError, match=r"one frozen image, got 2.*part\(0, 1\)"):
        list(net.freeze(images).hypersurfaces())
    second = net.freeze(images).part(1, 2)
    alone = net.freeze(images[1])
    for (layer, ours), (_, expected) in zip(
        second.hypersurfaces(), alone.hypersurfaces(), strict=True
    ):
        np.testing.assert_array_equal(ours.dense(), expected.dense(), layer.name)


# ------------------------------------------------------------------ names


def test_a_name_that_a_second_use_takes_is_refused():
    """`hypersurface("c#2")` and `value()["c#2"]` meant different layers."""
    x = keras.Input((4,))
    shared = L.Dense(4, name="c")
    again = shared(shared(x))
    with pytest.raises(al.InputError, match=r"two layers.*'c#2'.*[Rr]ename"):
        al.equivalent(keras.Model(x, L.Dense(4, name="c#2")(again)))
    with pytest.raises(al.InputError, match=r"'c#2'"):
        al.equivalent(keras.Model(x, shared(shared(L.Dense(4, name="c#2")(x)))))


@pytest.mark.parametrize("name", ["c#2", "image", "c, before its activation", "ö Ω %s {}", "*"])
def test_any_other_name_is_fine(name):
    model = sequence(L.Dense(3, name="c", activation="relu"), L.Dense(2, name=name))
    assert [layer.name for layer in al.equivalent(model).layers] == ["c", name]


# ------------------------------------------------------------------ what a call computes


def test_a_nested_model_called_in_training_mode_is_refused():
    inner = keras.Sequential([keras.Input((4,)), L.BatchNormalization()], name="inner")
    x = keras.Input((4,))
    model = keras.Model(x, L.Dense(2)(inner(x, training=True)))
    with pytest.raises(al.UnsupportedLayer, match="'inner' is called with training=True"):
        al.equivalent(model)


def test_a_call_with_a_mask_is_refused():
    x = keras.Input((4, 2))
    mask = keras.Input((4,), dtype="bool")
    pooled = L.GlobalAveragePooling1D(name="pool")(x, mask=mask)
    inner = keras.Model([x, mask], pooled)
    y = keras.Input((4, 2))
    with pytest.raises(al.AdjointError):
        al.equivalent(keras.Model(y, inner([y, y[..., 0] > 0])))


@pytest.mark.filterwarnings("ignore:the final softmax")
@pytest.mark.parametrize("layer", [L.GlobalAveragePooling1D, lambda name: L.Softmax(1, name=name)])
def test_a_constant_mask_without_its_name_is_refused(layer):
    """The mask of a final softmax went with it: the scores had another order than the model's."""
    x = keras.Input((4, 2))
    mask = np.array([[True, True, False, False]])
    masked = layer(name="masked")(x, mask if layer is L.GlobalAveragePooling1D else mask[..., None])
    with pytest.raises(al.UnsupportedLayer, match="'masked' is called with a mask"):
        al.equivalent(keras.Model(x, masked))


def test_joining_along_the_images_of_a_batch_is_refused():
    x = keras.Input((4,))
    with pytest.raises(al.UnsupportedLayer, match=r"'join' joins images"):
        al.equivalent(keras.Model(x, L.Dense(2)(L.Concatenate(0, name="join")([x, x]))))


class Doubling(keras.Model):
    """A functional model by its construction, with a call of its own beside its graph."""

    def call(self, inputs, training=None, mask=None):
        return 2 * super().call(inputs)


class DoublingSequence(keras.Sequential):
    def call(self, inputs, training=None, mask=None):
        return 2 * super().call(inputs)


class DoublingOutside(keras.Model):
    def __call__(self, *args, **kwargs):
        return 2 * super().__call__(*args, **kwargs)


class DoublingInputs(keras.Model):
    """It changes what only Keras's own call uses."""

    def _standardize_inputs(self, inputs):
        return [2 * x for x in super()._standardize_inputs(inputs)]


class Plain(keras.Model):
    """A subclass that trains in its own way and computes as every functional model."""

    def train_step(self, data):
        raise NotImplementedError


def subclassed(kind: type) -> keras.Model:
    if issubclass(kind, keras.Sequential):
        return kind([keras.Input((4,)), L.Dense(2, name="dense")], name="own")
    x = keras.Input((4,))
    return kind(x, L.Dense(2, name="dense")(x), name="own")


def built(kind: type, nested: bool) -> keras.Model:
    model = subclassed(kind)
    if not nested:
        return model
    x = keras.Input((4,))
    return keras.Model(x, model(x))


@pytest.mark.parametrize("kind", [Doubling, DoublingSequence, DoublingInputs])
@pytest.mark.parametrize("nested", [False, True])
def test_a_subclass_with_a_call_of_its_own_is_read_by_its_call(kind, nested):
    """It was read as its graph: half of what the model computes."""
    model, x = built(kind, nested), np.ones((1, 4), np.float32)
    net = al.equivalent(model)
    np.testing.assert_allclose(net(x), model(x), rtol=1e-6)
    found = net.hypersurface(x[0], net.layers[0].name)[...].value
    np.testing.assert_allclose(found, model(x)[0], rtol=1e-6)  # the 2 is folded, the bias zero


class OfAPart(keras.Model):
    """Takes its image in a dictionary or in a list."""

    def __init__(self, key):
        super().__init__()
        self.dense, self.key = L.Dense(2), key

    def call(self, images):
        return self.dense(images[self.key])


@pytest.mark.parametrize("key", ["image", 0])
def test_a_subclass_that_takes_its_image_in_a_structure_is_refused_in_words(key):
    """It was a TypeError, or said to have been called on a number."""
    model, image = OfAPart(key), np.zeros((1, 4), np.float32)
    model({key: image} if key else [image])
    with pytest.raises(al.InputError, match="is not built on one input of a fixed size"):
        al.equivalent(model)


@pytest.mark.parametrize("nested", [False, True])
def test_a_subclass_that_is_more_than_its_call_is_refused(nested):
    with pytest.raises(al.UnsupportedLayer, match=r"'own' .DoublingOutside.*__call__ of its own"):
        al.equivalent(built(DoublingOutside, nested))


class DoublingDense(L.Dense):
    def __call__(self, *args, **kwargs):
        return 2 * super().__call__(*args, **kwargs)


def test_a_layer_that_is_more_than_its_call_is_refused():
    """It was called a bug to be reported."""
    with pytest.raises(al.UnsupportedLayer, match=r"'own' .DoublingDense.*__call__ of its own"):
        al.equivalent(sequence(DoublingDense(3, name="own"), L.Dense(2)))


class Fickle(keras.layers.Layer):
    """Computes one thing of a symbolic tensor and another of a tensor."""

    def call(self, x):
        return 2 * x if isinstance(x, keras.KerasTensor) else 3 * x


def test_a_layer_that_computes_other_than_what_its_trace_says_is_found():
    model = sequence(L.Dense(3), Fickle(name="fickle"), L.Dense(2))
    with pytest.raises(al.AdjointError, match="differs from the model at layer 'fickle'"):
        al.equivalent(model)


class Cooled(keras.Model):
    """A model made of nothing but its call, with an argument of its own."""

    def __init__(self, units, **options):
        super().__init__(**options)
        self.first, self.norm = L.Dense(units), L.BatchNormalization()

    def call(self, x, training=None, temperature=1.0):
        return ops.relu(self.norm(self.first(x), training=training)) / temperature


class Twice(keras.Model):
    """Uses a model of the same kind twice, each time in its own way."""

    def __init__(self, **options):
        super().__init__(**options)
        self.inner, self.last = Cooled(4), L.Dense(2)

    def call(self, x, training=None):
        x = self.inner(x, training=training, temperature=-0.5)
        return self.last(self.inner(x, training=training))


@pytest.mark.parametrize("nested", [False, True])
def test_a_subclass_within_a_subclass_is_read_with_its_arguments(nested):
    """It was an AttributeError, since such a model has no `inputs`."""
    model, x = Twice(), np.random.default_rng(0).normal(size=(3, 4)).astype(np.float32)
    model = sequence(model) if nested else model
    model(x)
    net = al.equivalent(model)
    assert len(net.layers) == 3
    np.testing.assert_allclose(net(x), model(x, training=False), rtol=1e-5, atol=1e-6)
    al.verify(net, x, "all", model=model, progress=False)


def test_a_layer_of_another_precision_within_a_function_is_refused():
    """It is in no list of the model's layers."""
    hidden = L.Dense(4, name="hidden", dtype="float64")
    with pytest.raises(al.InputError, match=r"'hidden' computes in float64.*expected float32"):
        al.equivalent(sequence(L.Lambda(lambda x: hidden(x)), L.Dense(2)))
    whole = L.Dense(4, name="whole")
    model = sequence(L.Lambda(lambda x: whole(x)), L.Dense(2))
    whole.quantize("int8")
    with pytest.raises(al.InputError, match=r"'whole' computes in.*quantised to int8"):
        al.equivalent(model)


def test_a_subclass_that_only_trains_in_its_own_way_is_read():
    model = subclassed(Plain)
    x = np.ones((1, 4), np.float32)
    np.testing.assert_allclose(al.equivalent(model)(x), model(x), rtol=1e-6)


@pytest.mark.parametrize("kind", ["layer", "model", "convolution"])
def test_a_method_replaced_on_the_instance_is_refused(kind):
    model = sequence(L.Conv2D(2, 3, name="conv"), shape=(5, 5, 2))
    target = model if kind == "model" else model.get_layer("conv")
    method = "convolution_op" if kind == "convolution" else "call"
    original = getattr(target, method)
    setattr(target, method, lambda *args, **kwargs: 0 * original(*args, **kwargs))
    with pytest.raises(al.UnsupportedLayer, match=f"'{target.name}'.*{method}.*replaced"):
        al.equivalent(model)


# ------------------------------------------------------------------ precision


@pytest.mark.parametrize("mode", ["int8", "float8"])
def test_a_quantised_model_is_refused(mode):
    """A saturated softmax hid that its units were others: 384 instead of 14.9."""
    dense = L.Dense(3, activation="softmax", name="out")
    model = sequence(L.Dense(8, name="first"), dense)
    model.quantize(mode)
    with pytest.raises(al.InputError, match=f"'first'.*quantised.*{mode}"):
        al.equivalent(model)


NARROW = {
    "a sum": lambda x: L.Dense(2)(L.Add(name="odd", dtype="float16")([x, x])),
    "a ReLU": lambda x: L.Dense(2)(L.ReLU(name="odd", dtype="bfloat16")(x)),
    "a reshape": lambda x: L.Dense(2)(L.Flatten(name="odd", dtype="float16")(x)),
}


@pytest.mark.parametrize("name", NARROW)
@pytest.mark.parametrize("nested", [False, True])
def test_a_layer_without_weights_in_a_lower_precision_is_refused(name, nested):
    x = keras.Input((4,))
    model = keras.Model(x, NARROW[name](x))
    if nested:
        model = keras.Sequential([keras.Input((4,)), model])
    with pytest.raises(al.InputError, match=r"'odd' computes in b?float16"):
        al.equivalent(model)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "uint8", "int32"])
def test_an_input_that_rounds_the_image_is_refused(dtype):
    with pytest.raises(al.InputError, match=f"takes images in {dtype}"):
        al.equivalent(sequence(L.Rescaling(1 / 255), L.Dense(2), dtype=dtype))


def test_an_image_is_rounded_where_the_model_rounds_it():
    """keras.Input stays float32 under a float64 policy, and the model casts x there."""
    model = sequence(L.Dense(2, dtype="float64", name="dense"), dtype="float32")
    net, x = al.equivalent(model), np.random.default_rng(0).normal(size=(1, 4))
    assert net.dtype == "float64"
    np.testing.assert_allclose(net(x), model(x), rtol=1e-14)
    found = net.hypersurface(x[0], "dense")[...].value
    np.testing.assert_allclose(found, model(x)[0], rtol=1e-14)


def test_an_input_inside_that_rounds_is_refused():
    inner = sequence(L.Dense(4, dtype="float64"), dtype="float32")
    outer = keras.Sequential([keras.Input((4,), dtype="float64"), L.Dense(4, dtype="float64")])
    outer.add(inner)
    with pytest.raises(al.InputError, match="takes images in float32"):
        al.equivalent(outer)


# ------------------------------------------------------------------ range


def identity_then(*layers, shape=(4,)) -> keras.Model:
    """The layers on the image itself: a dense layer with the unit matrix comes first."""
    model = sequence(L.Dense(shape[-1], use_bias=False, name="first"), *layers, shape=shape)
    model.get_layer("first").kernel.assign(np.eye(shape[-1]))
    return model


@pytest.mark.parametrize("k", [1e-300, 1e-45, 1e-38, 0.1, 1e39, 1e300])
def test_any_positive_k_gives_the_same_hypersurface(k):
    """In float32, 1e-38 v underflows and 1e39 v overflows: H was 0, or 2 % off."""
    _, net = small_net()
    net, x = net.astype("float32"), image_of(net)
    for layer in net.layers:
        expected = net.hypersurface(x, layer.name, k=1.0)[...].value
        found = net.hypersurface(x, layer.name, k=k)[...].value
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-5 * np.abs(expected).max())


@pytest.mark.parametrize("k", [1e-45, 1e-38, 1e39])
def test_a_value_outside_the_range_of_the_dtype_is_refused(k):
    _, net = small_net()
    with pytest.raises(al.InputError, match="range of float32"):
        net.astype("float32").value(image_of(net), k=k)


@pytest.mark.parametrize("size", [1e39, 1e-33, 1e-46])
def test_an_image_outside_the_range_of_the_dtype_is_refused(size):
    _, net = small_net()
    image = size * np.ones(net.input_shape)
    with pytest.raises(al.InputError, match="images in the range of float32"):
        net.astype("float32").hypersurface(image, "out")


def test_an_image_in_bfloat16_is_what_it_is_in_float32():
    """It was said not to be of floating-point numbers."""
    model, net = small_net()
    image = tf.cast(image_of(net), tf.bfloat16)
    np.testing.assert_array_equal(net(image.numpy()), net(tf.cast(image, tf.float32)))
    np.testing.assert_allclose(net(image), model(tf.cast(image, tf.float64)[None]), rtol=1e-12)


@pytest.mark.parametrize("size", [1e39, 1e-40, 1e-50])
def test_an_image_outside_the_range_of_the_models_input_is_refused(size):
    """One of 1e-50 was taken for zeros, and one of 1e-40 is what TensorFlow flushes to zero."""
    net = al.equivalent(sequence(L.Dense(2, dtype="float64", name="out"), dtype="float32"))
    with pytest.raises(al.InputError, match="images in the range of float32"):
        net.hypersurface(np.full(4, size), "out")[...]


@pytest.mark.parametrize("size", [1e-8, 1e-20])
@pytest.mark.parametrize("nested", [False, True])
def test_weights_whose_product_underflows_are_refused(size, nested):
    """Their H is a product of all of them, and was 0."""
    layers = [L.Dense(4, use_bias=False, name=f"d{n}", activation="relu") for n in range(6)]
    model = sequence(*layers)
    for layer in layers:
        layer.kernel.assign(size * np.ones((4, 4)))
    model = keras.Sequential([keras.Input((4,)), model]) if nested else model
    with pytest.raises(al.InputError, match=r"'.*d\d' and those before it.*underflows float32"):
        al.equivalent(model)


def test_small_weights_are_exact_in_float64():
    layers = [L.Dense(4, use_bias=False, name=f"d{n}", dtype="float64") for n in range(6)]
    model = sequence(*layers, dtype="float64")
    for layer in layers:
        layer.kernel.assign(1e-20 * np.eye(4))
    net, x = al.equivalent(model), np.ones(4)
    np.testing.assert_allclose(net.hypersurface(x, "d5")[...].value, 1e-120 * x, rtol=1e-12)
    with pytest.raises(al.InputError, match="underflows float32"):
        net.astype("float32")


def test_units_that_underflow_are_not_verified():
    net = al.equivalent(sequence(L.Dense(4, use_bias=False), L.Dense(4, use_bias=False)))
    for layer in net.layers:
        assert al.verify(net, 1e-20 * np.ones(4), progress=False).passed, layer
    tiny = sequence(*(L.Dense(4, use_bias=False, name=f"d{n}") for n in range(2)))
    for layer in tiny.layers:
        layer.kernel.assign(1e-10 * np.eye(4))
    with pytest.raises(al.AdjointError, match=r"'d1' has units of at most .* underflow float32"):
        al.verify(al.equivalent(tiny), 1e-20 * np.ones(4), progress=False)


@pytest.mark.parametrize("value", [np.nan, np.inf])
@pytest.mark.parametrize("weight", ["kernel", "bias"])
def test_weights_that_are_not_finite_are_refused(value, weight):
    model = sequence(L.Dense(2, name="dense"))
    variable = getattr(model.get_layer("dense"), weight)
    variable.assign(value * np.ones(variable.shape))
    with pytest.raises(al.InputError, match=r"'dense'.*NaN or infinite in float32"):
        al.equivalent(model)


def test_weights_beyond_the_other_precision_are_refused():
    model = sequence(L.Dense(2, name="dense", dtype="float64"), dtype="float64")
    model.get_layer("dense").kernel.assign(1e300 * np.ones((4, 2)))
    with pytest.raises(al.InputError, match=r"'dense'.*NaN or infinite in float32"):
        al.equivalent(model).astype("float32")


def test_a_network_that_overflows_at_an_image_is_refused():
    """Infinite values, compared with each other, choose pieces by chance."""
    model = identity_then(L.Dense(4, name="large"), L.ReLU(max_value=6.0))
    model.get_layer("large").kernel.assign(np.ones((4, 4)))
    net = al.equivalent(model)
    image = 3e38 * np.ones(4)
    cut = al.equivalent(keras.Model(model.inputs, model.get_layer("large").output))
    for reading in (cut, net.value, net.freeze, lambda x: net.value(x, k=8.0)):
        with pytest.raises(al.AdjointError, match=r"'large'.*overflows float32"):
            reading(image)
    np.testing.assert_array_equal(net(image), np.full((1, 4), 6.0))  # as the model has it


def test_a_hypersurface_that_overflows_is_refused():
    """J is a product of weights: it may overflow where the values do not."""
    layers = [L.Dense(4, use_bias=False, name=f"d{n}", dtype="float64") for n in range(3)]
    model = sequence(*layers, dtype="float64")
    for layer in layers:
        layer.kernel.assign(1e15 * np.eye(4))
    net = al.equivalent(model).astype("float32")
    with pytest.raises(al.AdjointError, match=r"'d2'.*overflows float32"):
        net.hypersurface(1e-20 * np.ones(4, np.float32), "d2")[...]


# ------------------------------------------------------------------ errors of TensorFlow's own


@pytest.mark.parametrize("strides", [(1, 2), (1, 3), (2, 1)])
@pytest.mark.parametrize(
    "kind, width", [(L.Conv2D, 2), (L.Conv2D, 4), (L.Conv2DTranspose, 1), (L.Conv2DTranspose, 2)]
)
def test_one_channel_and_unequal_strides_in_float32(kind, width, strides):
    """oneDNN mixes up the rows of a batch there: H was wrong by its own size, in many units."""
    first, last = L.Conv2D(1, 1, name="first"), kind(1, 2, strides, name="last")
    net = al.equivalent(sequence(first, last, L.Flatten(), L.Dense(20), shape=(4, width, 1)))
    images = np.random.default_rng(0).normal(size=(7, 4, width, 1))
    single = [net.value(image)["last"][0] for image in images]
    np.testing.assert_allclose(net.value(images)["last"], single, atol=1e-6)
    report = al.verify(net, images[0], "all", progress=False)
    assert report.passed, report
    for layer in net.layers:
        H, wide = (n.hypersurface(images[0], layer.name) for n in (net, net.astype("float64")))
        np.testing.assert_allclose(np.asarray(H), np.asarray(wide), atol=1e-5)


# ------------------------------------------------------------------ ties


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("k", [1 / 8, 0.1])
@pytest.mark.parametrize("leak, ceiling", [(0.0, None), (0.1, None), (0.1, 2.0), (0.0, 0.001)])
def test_an_input_equal_to_the_threshold_of_a_relu(dtype, k, leak, ceiling):
    """The model gives 0 there, since it compares by >; H gave the threshold."""
    for t in np.arange(1, 100) / 100:
        x = keras.Input((1,), dtype=dtype)
        relu = L.ReLU(ceiling, leak, float(t), dtype=dtype)
        out = L.Dense(1, use_bias=False, dtype=dtype, name="out")
        model = keras.Model(x, out(relu(x)))
        out.kernel.assign([[1.0]])
        net = al.equivalent(model)
        image = np.array([np.float32(t)], dtype)
        expected = float(model(image[None])[0, 0])
        found = float(net.hypersurface(image, "out", k=k)[0].value)
        between = abs(float(np.float32(t)) - t)  # Keras's two pieces overlap or gape there
        assert abs(found - expected) <= 4 * np.finfo(dtype).eps + leak * between, t


TIES = {
    "relu": (lambda **how: L.ReLU(**how), [0.0, -0.0]),
    "leaky relu": (lambda **how: L.LeakyReLU(0.1, **how), [0.0]),
    "prelu": (lambda **how: L.PReLU("uniform", **how), [0.0]),
    "relu6": (lambda **how: L.ReLU(6.0, **how), [0.0, 6.0]),
    "leaky relu6": (lambda **how: L.ReLU(6.0, 0.25, **how), [0.0, 6.0]),
    "threshold": (lambda **how: L.ReLU(threshold=1.5, **how), [0.0, 1.5]),
    "leaky threshold": (lambda **how: L.ReLU(None, 0.5, 0.75, **how), [0.0, 0.75]),
    "threshold and ceiling": (lambda **how: L.ReLU(2.0, 0.5, 1.0, **how), [1.0, 2.0]),
    "ceiling at the threshold": (lambda **how: L.ReLU(1.0, 0.5, 1.0, **how), [1.0]),
    "ceiling below the threshold": (lambda **how: L.ReLU(0.5, 0.0, 2.0, **how), [0.5, 2.0]),
    "a ceiling of zero": (lambda **how: L.ReLU(0.0, 0.5, **how), [0.0]),
    "hard tanh": (lambda **how: L.Activation("hard_tanh", **how), [-1.0, 1.0]),
    "hard sigmoid": (lambda **how: L.Activation("hard_sigmoid", **how), [-3.0, 3.0]),
    "sparse sigmoid": (lambda **how: L.Activation("sparse_sigmoid", **how), [-1.0, 1.0]),
    "soft shrink": (lambda **how: L.Activation("soft_shrink", **how), [-0.5, 0.5]),
}
SCALES = [0.125, 0.1, 1.0, 3.0, 0.001, 1e30]
PRECISIONS = ["float32", "float64"]


@pytest.mark.parametrize("name", TIES)
@pytest.mark.parametrize("dtype", PRECISIONS)
@pytest.mark.parametrize("shared", [False, True])
def test_an_input_at_a_breakpoint(name, dtype, shared):
    """The activation alone, and used twice inside a nested model; beside the breakpoint as well."""
    layer, places = TIES[name]
    act, x = layer(dtype=dtype, name="activation"), keras.Input((4,), dtype=dtype)
    out = L.Dense(1, use_bias=False, dtype=dtype, name="out")
    if shared:
        y = keras.Input((4,), dtype=dtype)
        inner = keras.Model(y, L.Add(dtype=dtype)([act(y), act(L.Dropout(0.5, dtype=dtype)(y))]))
        model = keras.Model(x, out(inner(x)))
    else:
        model = keras.Model(x, out(act(x)))
    net = al.equivalent(model)
    for place in places:
        image = np.full(4, place, dtype)
        beside = np.nextafter(image[:2], np.array([-9, 9], dtype))
        image[:2] = beside if place else [-1e-20, 1e-20]
        expected = model(image[None])[0, 0]
        for k in SCALES:
            found = net.hypersurface(image, "out", k=k)[0].value
            np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("k", [1 / 8, 0.1])
@pytest.mark.parametrize("pool", [L.MaxPooling2D(2, 1), L.GlobalMaxPooling2D(keepdims=True)])
def test_equal_entries_under_max_pooling(pool, k):
    conv = L.Conv2D(1, 1, use_bias=False, name="out")
    model = sequence(type(pool).from_config(pool.get_config()), conv, shape=(4, 4, 2))
    net = al.equivalent(model)
    image = np.random.default_rng(0).integers(0, 2, (4, 4, 2)).astype(np.float32)
    found = net.hypersurface(image, "out", k=k)[...].value
    np.testing.assert_allclose(found, model(image[None])[0], rtol=1e-6, atol=1e-7)


# ------------------------------------------------------------------ operations by their arguments

ops = keras.ops
M = np.arange(1.0, 7.0, dtype=np.float32).reshape(3, 2)

REFUSED = {
    "einsum of one": (lambda x: ops.einsum("bij->bji", x), (4, 3), "takes 1 operands"),
    "einsum of three": (lambda x: ops.einsum("bij,jk,->bik", x, M, M[0, 0]), (4, 3), "takes 3"),
    "a matrix for each row": (lambda x: ops.matmul(x, np.stack([M, M])), (1, 4, 3), "repeats a"),
    "over the images": (lambda x: ops.matmul(M[:, 0], x), (3,), "over the images"),
    "a shrink that widens": (lambda x: ops.soft_shrink(x, -0.5), (3,), "threshold of -0.5"),
    "a threshold below zero": (
        lambda x: keras.activations.relu(x, max_value=1.0, threshold=-1.0),
        (3,),
        "no ceiling or leak with a threshold below 0",
    ),
    "a ceiling below zero": (
        lambda x: keras.activations.relu(x, max_value=-1.0),
        (3,),
        "ceiling of at least 0",
    ),
    "images rolled by two": (lambda x: ops.roll(x, 2, 0), (3,), "goes over the images"),
    "images picked": (lambda x: ops.take(x, [0, 1], 0), (3,), "goes over the images"),
    "images stacked": (lambda x: ops.stack([x, x], 0), (3,), "joins images"),
    "a complex factor": (lambda x: 1j * x, (3,), "constant of complex128; expected real"),
    "a maximum with a constant image": (
        lambda x: L.Maximum()([x, np.full((1, 3), -1e3, np.float32)]),
        (3,),
        "joins a constant",
    ),
    "a constant joined": (
        lambda x: ops.concatenate([x, np.ones((1, 3), np.float32)], 1),
        (3,),
        "joins a constant",
    ),
    "a constant stacked": (
        lambda x: ops.stack([x, np.ones((1, 3), np.float32)], 1),
        (3,),
        "joins a constant",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_an_operation_is_refused_by_its_arguments(name):
    """They raised TensorFlow's errors or NumPy's, or were called bugs to be reported."""
    function, shape, message = REFUSED[name]
    x = keras.Input(shape)
    with pytest.raises(al.UnsupportedLayer, match=message):
        al.equivalent(keras.Model(x, function(x)))


@pytest.mark.parametrize("shape", [(1, 3, 2), (1, 1, 3, 2)])
def test_one_matrix_for_all_rows_with_axes_of_one_before_it(shape):
    x = keras.Input((5, 4, 3))
    model = keras.Model(x, ops.matmul(x, M.reshape(shape)))
    image = np.random.default_rng(0).normal(size=(1, 5, 4, 3)).astype(np.float32)
    np.testing.assert_allclose(al.equivalent(model)(image), model(image), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("reduce", [ops.sum, ops.mean, ops.max, ops.min])
def test_a_reduction_over_no_axis_leaves_the_entries_as_they_are(reduce):
    """It was said to go over the images."""
    x = keras.Input((3, 2))
    model = keras.Model(x, L.Dense(2)(reduce(x, axis=())))
    image = np.random.default_rng(0).normal(size=(1, 3, 2)).astype(np.float32)
    np.testing.assert_allclose(al.equivalent(model)(image), model(image), rtol=1e-5)


def einsum_with_a_bias_along_the_first_axis(x):
    return L.EinsumDense("abc,cd->adb", (3, 3), bias_axes="d")(x)


MISTAKEN = {
    "a constant": lambda x: x + np.arange(3.0, dtype=np.float32)[:, None],
    "a mean": lambda x: ops.add(x, ops.mean(x, 2, keepdims=True)),
    "a mean before it": lambda x: ops.add(ops.mean(x, 1, keepdims=True), x[:, :, :1]),
    "a layer": lambda x: L.Add()([x, x, ops.mean(x, 2, keepdims=True)]),
    "an average": lambda x: L.Average()([x, ops.mean(x, 2, keepdims=True)]),
    "an einsum": einsum_with_a_bias_along_the_first_axis,
}


@pytest.mark.parametrize("name", MISTAKEN)
def test_a_sum_in_which_keras_mistakes_the_axis_is_refused_in_words(name):
    """It was called a bug to be reported: Keras adds another thing to one image than to two."""
    x = keras.Input((3, 3))
    with pytest.raises(al.UnsupportedLayer, match="takes for a bias and adds along another axis"):
        al.equivalent(keras.Model(x, L.Dense(2)(MISTAKEN[name](x))))


@pytest.mark.parametrize("shape", [(3, 4), (4, 3), (4, 4)])
def test_a_sum_in_which_keras_takes_the_right_axis_is_read(shape):
    x = keras.Input(shape)
    last = ops.mean(x, 1, keepdims=True)
    first = np.arange(shape[0], dtype=np.float32)[:, None]
    sums = [x + last, L.Add()([x, last, x]), x - ops.mean(x, 2, keepdims=True)]
    sums += [x + first] if shape[0] != shape[1] else []
    model = keras.Model(x, [L.Dense(2)(total) for total in sums])
    image = np.random.default_rng(0).normal(size=(1, *shape)).astype(np.float32)
    for ours, theirs in zip(al.equivalent(model)(image), model(image), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-6)


LIMITS = {
    "a maximum from below": (lambda x: ops.max(x, 1, initial=-1e3), np.full((4, 3), -1e4)),
    "a minimum from above": (
        lambda x: ops.min(x, 1, keepdims=True, initial=7e3),
        np.full((4, 4), 1e4),
    ),
    "a maximum with its rows": (lambda x: ops.max(x, 2, initial=0.25), np.eye(4) - 0.5),
    "a floor far below": (lambda x: ops.maximum(x, -1e8), np.eye(4) / 3),
    "a ceiling far above": (lambda x: ops.minimum(1e8, x), np.eye(4) / 3),
    "floors of their own": (lambda x: ops.maximum(x, np.array([-1e8, 0, 2, 1])), np.eye(4) / 3),
    "ceilings repeated": (lambda x: ops.minimum(x[:, :1], 1e8 * np.ones((5, 1))), np.eye(4) / 3),
}


@pytest.mark.parametrize("name", LIMITS)
@pytest.mark.parametrize("dtype", PRECISIONS)
def test_a_limit_takes_no_digits_and_is_not_overlooked(name, dtype):
    """`initial` was; and max(x, c), computed as c + relu(x - c), lost x beside a large c."""
    function, image = LIMITS[name]
    x = keras.Input(image.shape, dtype=dtype)
    out = L.Dense(2, dtype=dtype, name="out")
    model = keras.Model(x, out(L.Flatten(dtype=dtype)(function(x))))
    net, image = al.equivalent(model), image.astype(dtype)
    expected = model(image[None])[0]
    close = {"rtol": 8 * np.finfo(dtype).eps, "atol": 8 * np.finfo(dtype).eps}
    np.testing.assert_allclose(net(image)[0], expected, **close)
    units = net.hypersurface(image, "out")[...]
    np.testing.assert_allclose(units.value + out.bias, expected, **close)


def test_an_operation_in_float64_before_layers_in_float32_is_refused():
    """An image near 1.7e9 less a mean near it had no digits left in float32."""
    x = keras.Input((3,), dtype="float64")
    with pytest.raises(al.InputError, match=r"'subtract.*float64.*Input\(shape, dtype='float32'"):
        al.equivalent(keras.Model(x, L.Dense(2)(x - 1.7e9)))
    net = al.equivalent(keras.Model(x, L.Dense(2)(x)))  # a layer casts, and so does the network
    assert net.dtype == "float32"


@pytest.mark.parametrize("name", ["RandomBrightness", "RandomGrayscale"])
def test_an_augmentation_that_casts_its_image_is_run_at_inference(name):
    """Where the model was run layer by layer, it was called for training."""
    x = keras.Input((2, 2, 3), dtype="float64")
    model = keras.Model(x, L.Dense(2)(getattr(L, name)(0.5)(x)))
    image = np.random.default_rng(0).normal(size=(2, 2, 3))
    expected = model(image[None], training=False)
    np.testing.assert_allclose(al.equivalent(model)(image), expected, rtol=1e-5)


def test_an_operation_in_float32_before_layers_in_float64_is_refused():
    """It was rounded to float32 in the model alone, and called a bug where it was compared."""
    x = keras.Input((3,), dtype="float32")
    with pytest.raises(al.InputError, match=r"computes in float32.*Input\(shape, dtype='float64'"):
        al.equivalent(keras.Model(x, L.Dense(2, dtype="float64")(ops.sparse_sigmoid(x))))


def test_a_constant_in_float64_in_a_model_in_float32_is_read():
    """Keras takes what follows it for float64, and computes it in float32."""
    x, matrix = keras.Input((3,)), np.random.default_rng(0).normal(size=(3, 3))
    model = keras.Model(x, L.Dense(2)(ops.matmul(ops.matmul(x, matrix), matrix)))
    image = np.ones((1, 3), np.float32)
    np.testing.assert_allclose(al.equivalent(model)(image), model(image), rtol=1e-5)


# ------------------------------------------------------------------ the comparison with the model


class Unsaid(keras.layers.Layer):
    """Takes a call that says nothing of training for one of its own kind."""

    def call(self, x, training=None):
        return x if training is False else 3 * x


@pytest.mark.parametrize("nested", [False, True])
def test_a_layer_is_told_that_it_does_not_train(nested):
    """Where the model was run layer by layer it was not, and the model was refused."""
    model = sequence(L.Dense(4), Unsaid(), L.Dense(2))
    model = sequence(model) if nested else model
    image = np.random.default_rng(0).normal(size=(1, 4)).astype(np.float32)
    expected = model(image, training=False)
    np.testing.assert_allclose(al.equivalent(model)(image), expected, rtol=1e-5, atol=1e-6)


class Masked(keras.layers.Layer):
    """Puts a mask on its output that shows no trace, and is all true for images of small values."""

    def call(self, x):
        y = 1.0 * x
        set_keras_mask(y, ops.any(ops.not_equal(x, -999.0), -1))
        return y


def test_a_mask_that_a_layer_sets_within_its_call_is_refused():
    """Pooling left out what is -999, which no image of the comparison is."""
    model = sequence(Masked(name="masked"), L.GlobalAveragePooling1D(), L.Dense(2), shape=(5, 3))
    with pytest.raises(al.UnsupportedLayer, match="'masked' gives its output a mask"):
        al.equivalent(model)


def crowded(x):
    """One thing of an image alone and another of two."""
    return x * (1.0 if x.shape[0] in (None, 1) else 2.0)


class Crowd(keras.layers.Layer):
    def call(self, x):
        return crowded(x)


@pytest.mark.parametrize("own", [Crowd, lambda: L.Activation(crowded)])
@pytest.mark.parametrize("nested", [False, True])
def test_a_layer_that_depends_on_the_number_of_images_is_refused(nested, own):
    model = sequence(L.Dense(4), own(), L.Dense(2))
    model = sequence(model) if nested else model
    with pytest.raises(al.UnsupportedLayer, match="depends on the batch"):
        al.equivalent(model)


def inner_model():
    return sequence(L.Dense(4, name="inside"), L.ReLU())


@pytest.mark.parametrize("activation", [inner_model, lambda: L.Dense(4, activation="relu")])
def test_a_model_or_layer_with_a_kernel_as_an_activation_is_read(activation):
    """It was refused as another model than the one the network was made from."""
    model = sequence(L.Dense(4, activation=activation()), L.Dense(2))
    image = np.random.default_rng(0).normal(size=(1, 4)).astype(np.float32)
    net = al.equivalent(model)
    assert len(net.layers) == 3
    np.testing.assert_allclose(net(image), model(image), rtol=1e-5, atol=1e-6)
    al.verify(net, image, "all", model=model, progress=False)


def test_a_model_that_cannot_be_run_is_refused_by_the_layer():
    """At inference this crop does nothing, whatever shape Keras says it has."""
    model = sequence(L.RandomCrop(4, 5), L.Flatten(), L.Dense(2, name="out"), shape=(8, 8, 3))
    with pytest.raises(al.InputError, match="'out' cannot be run: InvalidArgumentError"):
        al.equivalent(model)


@pytest.mark.parametrize("shape", [(0,), (4, 0)])
def test_a_model_of_empty_images_is_refused(shape):
    with pytest.raises(al.InputError, match="which have no entries"):
        al.equivalent(sequence(L.Dense(2), shape=shape))


def test_a_tensor_without_entries_is_refused_where_it_is_read():
    """Half of a split at 0 was refused, though nothing read it."""
    x = keras.Input((1, 3))
    empty, whole = ops.split(x, [0], 1)
    model = keras.Model(x, L.Dense(2)(whole))
    image = np.random.default_rng(0).normal(size=(1, 1, 3)).astype(np.float32)
    np.testing.assert_allclose(al.equivalent(model)(image), model(image), rtol=1e-5)
    with pytest.raises(al.InputError, match=r"'sum.*' reads tensors of shape \(0, 2\), which have"):
        al.equivalent(keras.Model(x, ops.sum(L.Dense(2)(empty), 1)))
    with pytest.raises(al.InputError, match=r"gives tensors of shape \(0, 3\), which have"):
        al.equivalent(keras.Model(x, [whole, empty]))


def test_a_model_that_computes_nothing_is_refused():
    x = keras.Input((3,))
    with pytest.raises(al.InputError, match="gives back the image"):
        al.equivalent(keras.Model(x, x))


def test_a_network_without_a_kernel_has_nothing_to_verify():
    x = keras.Input((3,))
    with pytest.raises(al.InputError, match="has a kernel, so there are no units"):
        al.verify(al.equivalent(keras.Model(x, ops.relu(x))), np.ones(3))


def wrong_rule(monkeypatch, kind):
    """Write layers of this kind as if they did nothing."""
    from adjoint_lib.frontend.rules.call import RULES
    from adjoint_lib.frontend.rules.moving import identity

    monkeypatch.setitem(RULES._found, kind, identity)


@pytest.mark.filterwarnings("ignore:the final softmax")
@pytest.mark.parametrize("ending", ["zero kernel", "saturated softmax"])
def test_a_wrong_layer_is_found_behind_an_output_that_hides_it(monkeypatch, ending):
    wrong_rule(monkeypatch, L.LeakyReLU)
    if ending == "zero kernel":
        last = L.Dense(3, kernel_initializer="zeros")
    else:  # one of the classes always has it all
        bias = keras.initializers.Constant(np.array([1e4, 0.0, 0.0]))
        last = L.Dense(3, bias_initializer=bias, activation="softmax")
    model = sequence(L.Dense(5), L.LeakyReLU(name="leaky"), last)
    with pytest.raises(al.AdjointError, match="differs from the model at layer 'leaky'"):
        al.equivalent(model)


def test_a_kernel_that_is_a_thousandth_off_is_found(monkeypatch):
    """4 sqrt(eps) of float32 is 0.0014: it was not."""
    from adjoint_lib.frontend.rules import kernels

    right = kernels.kernel
    monkeypatch.setattr(kernels, "kernel", lambda variable: 1.001 * right(variable))
    with pytest.raises(al.AdjointError, match="differs from the model at layer 'dense"):
        al.equivalent(sequence(L.Dense(5, name="dense")))


def test_a_wrong_fold_is_found(monkeypatch):
    from adjoint_lib.core import primitives as p

    right = p.Conv.scaled
    monkeypatch.setattr(p.Conv, "scaled", lambda self, factor: right(self, 1.0001 * factor))
    model = sequence(L.Conv2D(2, 3), L.BatchNormalization(name="bn"), L.ReLU(), shape=(6, 6, 2))
    with pytest.raises(al.AdjointError, match="differs from the model at layer 'bn'"):
        al.equivalent(model)


def test_a_layer_that_reads_only_zeros_is_named():
    """Nothing is known of its kernel then, and the warning says so."""
    dead = L.Dense(4, bias_initializer=keras.initializers.Constant(-1e6), activation="relu")
    with pytest.warns(UserWarning, match="'blind'.*read zeros only.*could not be compared"):
        al.equivalent(sequence(dead, L.Dense(2, name="blind")))


def test_a_softmax_over_another_axis_is_dropped():
    model = sequence(L.Dense(3), L.Softmax(axis=1), shape=(5, 2))
    with pytest.warns(UserWarning, match="softmax"):
        net = al.equivalent(model)
    x = np.random.default_rng(0).normal(size=(1, 5, 2)).astype(np.float32)
    np.testing.assert_allclose(keras.ops.softmax(net(x), axis=1), model(x), rtol=1e-5)


def test_a_model_that_overflows_at_every_image_is_refused_in_words():
    model = sequence(L.Dense(4, name="first"), L.Dense(4, name="large"))
    for layer in model.layers:
        layer.kernel.assign(1e30 * np.ones((4, 4)))
    with pytest.raises(al.InputError, match="overflows float32 in layer 'large"):
        al.equivalent(model)


@pytest.mark.parametrize(
    "relu", [lambda t: keras.activations.relu(t), keras.ops.relu, tf.nn.relu, tf.nn.relu6]
)
def test_a_function_of_keras_ops_is_read(relu):
    model = sequence(L.Dense(3, activation=relu), L.Dense(2))
    x = np.random.default_rng(0).normal(size=(1, 4)).astype(np.float32)
    np.testing.assert_allclose(al.equivalent(model)(x), model(x), rtol=1e-5, atol=1e-6)


def test_a_function_that_cannot_be_traced_is_not_called_smooth():
    model = sequence(L.Dense(2, activation=lambda t: tf.nn.relu(t)), L.Dense(2))
    with pytest.raises(al.UnsupportedLayer, match="cannot be read") as caught:
        al.equivalent(model)
    assert "not piecewise linear" not in str(caught.value)


def test_verify_compares_with_the_model_itself():
    """Its own reference is the network's: it passes on a wrong one."""
    model, net = small_net()
    x = image_of(net)
    plain, compared = al.verify(net, x), al.verify(net, x, model=model)
    assert plain.to_dict() == compared.to_dict()
    model.get_layer("second").kernel.assign(1.0001 * model.get_layer("second").kernel)
    assert al.verify(net, x).passed
    with pytest.raises(al.AdjointError, match="differs from the model at layer 'bn'"):
        al.verify(net, x, model=model)


def test_verify_refuses_a_model_of_other_layers():
    _, net = small_net()
    other = sequence(L.Conv2D(4, 3, name="else", dtype="float64"), shape=(8, 7, 2), dtype="float64")
    with pytest.raises(al.InputError, match="expected the model that"):
        al.verify(net, image_of(net), model=other)


@pytest.mark.parametrize("more", [True, False])
def test_verify_refuses_a_model_that_goes_on_after_the_last_layer(more):
    """Every layer of the network was as in the model, but the model's outputs were others."""
    x = keras.Input((4,))
    y = L.Dense(3, name="out")(x)
    net, last = al.equivalent(keras.Model(x, y)), L.ReLU(name="last")(y)
    with pytest.raises(al.InputError, match=r"expected the model that.*outputs"):
        al.verify(net, np.ones(4), model=keras.Model(x, [y, last] if more else last))


def test_verify_refuses_to_compare_a_network_that_knows_no_layers(tmp_path):
    """One that was read from an export was compared with nothing, and passed."""
    model, net = small_net()
    net.export(tmp_path / "net")
    with pytest.raises(al.InputError, match="read from an export"):
        al.verify(export.read(tmp_path / "net"), image_of(net), model=model)


def test_interpolation_of_a_single_pixel_in_float64_is_accepted():
    """TensorFlow rounds it to float32, though each weight of the interpolation is 1."""
    up = L.UpSampling2D(2, interpolation="bilinear", dtype="float64")
    model = sequence(up, L.Dense(2, dtype="float64"), shape=(1, 1, 1), dtype="float64")
    assert al.equivalent(model).dtype == "float64"


def test_interpolation_of_values_that_underflow_float32_is_accepted():
    """TensorFlow makes zeros of them, in a model in float64 too: called a bug to be reported."""
    small = keras.initializers.Constant(1e-39)
    first = L.Dense(2, use_bias=False, kernel_initializer=small, dtype="float64")
    resize = L.Resizing(4, 4, dtype="float64")
    model = sequence(first, resize, L.Dense(1, dtype="float64"), shape=(2, 2, 1), dtype="float64")
    with pytest.warns(UserWarning, match="read zeros only"):
        assert len(al.equivalent(model).layers) == 2


@pytest.mark.parametrize("size", [2, 4])
def test_interpolation_of_values_that_overflow_float32_is_refused(size):
    """Keras makes the largest float32 of them where no pixel moves: that was called a bug."""
    first = L.Dense(2, name="first", dtype="float64")
    resize = L.Resizing(size, size, dtype="float64")
    model = sequence(first, resize, L.Dense(1, dtype="float64"), shape=(2, 2, 1), dtype="float64")
    first.bias.assign([1e60, 1e60])
    with pytest.raises(al.InputError, match=r"interpolates in float32.*overflows"):
        al.equivalent(model)
