"""The equivalent topology: x_b, folding, wiring and tables, against the original Keras model."""

import re

import keras
import numpy as np
import pytest
import tensorflow as tf

import adjoint_lib as al
from adjoint_lib.core.folding import batch_norm
from reference import explicit_jacobian, float64, image_of, random_model, small_net

L = keras.layers


def build_and_compare(outputs_of, shape=(8, 7, 2), seed=0):
    """The net of a functional model; its outputs are compared with the model's, to 1e-12."""

    def build():
        x = keras.Input(shape)
        return keras.Model(x, outputs_of(x))

    model = random_model(build, seed)
    net = al.equivalent(model)
    images = np.random.default_rng(1).normal(size=(3, *shape))
    theirs = tf.nest.flatten(model(images, training=False))
    for expected, found in zip(theirs, tf.nest.flatten(net(images)), strict=True):
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12 * np.abs(expected).max())
    return model, net, images


def check_identity(net, images):
    """Every unit of every layer, through its hypersurface, to 1e-12 of the layer's largest."""
    for image in images:
        values = net.value(image)
        for layer in net.layers:
            c = values[layer.name].numpy()[0]
            found = net.hypersurface(image, layer.name)[...].value
            np.testing.assert_allclose(found, c, rtol=0, atol=1e-12 * max(np.abs(c).max(), 1e-300))


# ------------------------------------------------------------------ the paper's numbers


@pytest.mark.parametrize("name, d_b", [("vgg7", 384), ("resnet20", 1184), ("resnet20-fixup", 37)])
@pytest.mark.parametrize("classes", [10, 100])
def test_x_b_and_hypersurface_dimensions_are_the_papers(name, d_b, classes):
    net = al.equivalent(al.models.build(name, classes=classes))
    assert net.x_b.size == d_b
    assert net.d_in == 3072 + d_b
    convolutions, blocks = {"vgg7": (6, [2, 2, 2])}.get(name, (19, [7, 6, 6]))
    sizes = [(32, 32)] * blocks[0] + [(16, 64)] * blocks[1] + [(8, 96)] * blocks[2]
    channels_in = 3
    for index in range(convolutions):
        size, channels = sizes[index]
        layer = net.layer(f"conv{index}")
        expected = {
            "RM4": (size, size, channels_in, channels),
            "RM3": (channels_in, channels),
            "RM2": (size, size, channels),
            "RM1": (channels,),
        }
        image = np.zeros((32, 32, 3), np.float32)
        for mode, shape in expected.items():
            assert net.hypersurface(image, layer.name, mode).shape == (3072 + d_b, *shape)
        assert layer.kernel == (3, 3, channels_in, channels)
        channels_in = channels
    assert net.hypersurface(image, "fc", "RM0").shape == (3072 + d_b, classes)
    assert net.layer("fc").bias is None
    assert len(net.layers) == convolutions + 1


def test_fixup_has_37_scalars_named_as_in_the_paper():
    net = al.equivalent(al.models.resnet20_fixup())
    assert [s.name for s in net.sources] == [f"b{i}" for i in range(37)]
    assert all(s.size == 1 for s in net.sources)


def test_sources_tile_x_b_in_order():
    net = al.equivalent(al.models.resnet20())
    assert [s.start for s in net.sources] == [0, *(s.stop for s in net.sources)][:-1]
    assert net.sources[-1].stop == 1184
    assert [s.size for s in net.sources] == [32] * 7 + [64] * 6 + [96] * 6
    assert [layer.bias for layer in net.layers][:-1] == [s.slice for s in net.sources]


# ------------------------------------------------------------------ folding


def test_batch_norm_reduction_by_hand():
    """Eq. (7) with numbers: gamma 3, beta 1, mean 2, variance 4 - epsilon."""
    scale, bias = batch_norm([3.0], [1.0], [2.0], [4.0 - 1e-3], 1e-3)
    np.testing.assert_allclose([scale[0], bias[0]], [1.5, -2.0])


def test_conv_and_batch_norm_become_one_layer():
    model, net = small_net()
    conv, bn = model.get_layer("second"), model.get_layer("bn")
    gamma, beta, mean, variance = (np.asarray(w) for w in bn.weights)
    factor = gamma / np.sqrt(variance + bn.epsilon)
    kernel = net.graph.nodes[net.layer("second").number].primitive.kernel
    np.testing.assert_allclose(kernel, np.asarray(conv.kernel) * factor, rtol=1e-14)
    np.testing.assert_allclose(net.x_b[net.layer("second").bias], beta - mean * factor, rtol=1e-14)


def test_a_bias_before_batch_norm_is_merged_with_it():
    _, net, images = build_and_compare(
        lambda x: L.BatchNormalization(name="bn")(L.Conv2D(3, 3, name="conv")(x))
    )
    assert [s.name for s in net.sources] == ["conv+bn"]
    check_identity(net, images)


def test_a_multiplier_is_folded_into_the_kernel():
    model = random_model(al.models.resnet20_fixup)
    net = al.equivalent(model)
    kernel, m = (
        np.asarray(model.get_layer("conv2").kernel),
        float(model.get_layer("m2").weights[0][0]),
    )
    np.testing.assert_allclose(
        net.graph.nodes[net.layer("conv2").number].primitive.kernel, m * kernel
    )


def test_a_scale_is_not_folded_where_another_reads_the_convolution():
    def outputs(x):
        conv = L.Conv2D(3, 3, padding="same", name="conv")(x)
        return L.Add()([L.BatchNormalization()(conv), L.ReLU()(conv)])

    model, net, images = build_and_compare(outputs)
    kernel = net.graph.nodes[net.layer("conv").number].primitive.kernel
    np.testing.assert_array_equal(kernel, np.asarray(model.get_layer("conv").kernel))
    check_identity(net, images)


def test_batch_norm_without_a_convolution_is_scale_and_bias():
    _, net, images = build_and_compare(
        lambda x: L.Conv2D(2, 3, padding="same")(L.BatchNormalization(name="bn")(L.ReLU()(x)))
    )
    assert [s.name for s in net.sources] == ["bn", "conv2d"] or len(net.sources) == 2
    check_identity(net, images)


@pytest.mark.parametrize("axis", [1, 2, -1])
def test_batch_norm_along_any_axis(axis):
    _, net, images = build_and_compare(
        lambda x: L.Dense(2)(L.BatchNormalization(axis=axis)(L.Conv2D(3, 2)(x)))
    )
    check_identity(net, images)


# ------------------------------------------------------------------ wiring


def test_nested_models_keep_their_path_in_the_name():
    with float64():
        inner = keras.Sequential(
            [keras.Input((8, 7, 3)), L.Conv2D(4, 3, name="conv"), L.ReLU()], name="block"
        )

    _, net, images = build_and_compare(
        lambda x: L.Dense(2, name="out")(inner(L.Conv2D(3, 3, padding="same")(x)))
    )
    assert "block/conv" in [layer.name for layer in net.layers]
    check_identity(net, images)


def test_a_nested_model_of_open_size_takes_the_size_it_is_called_with():
    with float64():
        x = keras.Input((None, None, 2))
        inner = keras.Model(
            x, L.GlobalAveragePooling2D()(L.Conv2D(3, 3, strides=2, padding="same")(x))
        )
    _, net, images = build_and_compare(lambda x: L.Dense(2)(inner(x)))
    check_identity(net, images)


def test_a_shared_layer_has_one_bias_slice_for_each_use():
    with float64():
        shared = L.Conv2D(2, 3, padding="same", name="shared")
    model, net, images = build_and_compare(lambda x: L.Add()([shared(L.ReLU()(shared(x))), x]))
    assert [layer.name for layer in net.layers] == ["shared", "shared#2"]
    check_identity(net, images)
    bias = model.get_layer("shared").bias
    _, expected = explicit_jacobian(model, images[0], [bias])
    last = net.layers[-1]
    H = net.adjoint(images[0], last.name, np.eye(np.prod(last.shape)).reshape(-1, *last.shape))[1]
    both = H.numpy()[:, :2] + H.numpy()[:, 2:]
    own = np.tile(np.eye(2), (np.prod(last.shape[:-1]), 1))  # the unit's own bias is added after c
    np.testing.assert_allclose(both + own, expected.reshape(-1, 2), atol=1e-12)


def test_several_outputs_and_branches():
    def outputs(x):
        a = L.ReLU()(L.Conv2D(3, 3, padding="same")(x))
        b = L.LeakyReLU()(L.Conv2D(3, 1)(x))
        merged = L.Concatenate()([a, b, L.Subtract()([a, b]), L.Average()([a, b])])
        return [
            L.GlobalMaxPooling2D()(merged),
            L.Dense(4)(L.Flatten()(merged)),
            L.Maximum()([a, b]),
        ]

    _, net, images = build_and_compare(outputs)
    assert len(net(images)) == 3
    check_identity(net, images)


def test_operators_on_tensors():
    def outputs(x):
        h = L.Conv2D(3, 3, padding="same")(x)
        h = 2.0 * h + 1.5 - L.Conv2D(3, 3, padding="same")(x) / 4.0
        return L.Dense(2)(L.ReLU()(-h))

    _, net, images = build_and_compare(outputs)
    assert any("constant" in s.origin for s in net.sources)
    check_identity(net, images)


W = np.random.default_rng(3).normal(size=(8, 8, 8))
ops = keras.ops


class Block(keras.layers.Layer):
    """A layer of one's own with a variable, other layers and keras.ops."""

    def __init__(self, **options):
        super().__init__(**options)
        self.conv = L.Conv2D(2, 3, padding="same", activation=ops.relu, name="conv")
        self.norm = L.BatchNormalization(name="norm")

    def build(self, shape):
        self.conv.build(shape)
        self.norm.build(shape)
        self.gain = self.add_weight(name="gain", shape=(2,), initializer="ones")

    def call(self, x, training=None):
        h = self.norm(self.conv(x), training=training)
        return ops.maximum(self.gain * h, 0.1) + ops.mean(x, axis=-1, keepdims=True)


class Twice(L.Conv2D):
    """A layer of Keras's with a call of one's own."""

    def call(self, x):
        return 2 * super().call(x)


OPERATIONS = {  # on (8, 7, 2)
    "conv": lambda x: ops.conv(x, W[:2, :3, :2, None] * W[0, 0, :4], 2, "same"),
    "depthwise_conv": lambda x: ops.depthwise_conv(x, W[:2, :3, :2, None] * W[0, 0, :2]),
    "max_pool": lambda x: ops.max_pool(x, 2, 1),
    "average_pool": lambda x: ops.average_pool(x, (2, 3), padding="same"),
    "matmul": lambda x: x @ W[0, :2, :3],
    "matmul from the left": lambda x: ops.matmul(W[0, :4, :7], x),
    "matmul, a kernel for each row": lambda x: ops.matmul(x, W[:, :2, :3]),
    "matmul from the left, a kernel for each row": lambda x: ops.matmul(W[:, :4, :7], x),
    "matmul with a vector": lambda x: ops.matmul(x, W[0, 0, :2]),
    "einsum over two axes": lambda x: ops.einsum("bijc,jco->bio", x, W[:7, :2, :3]),
    "einsum, constant first": lambda x: ops.einsum("oc,bijc->bjoi", W[0, :4, :2], x),
    "einsum without a sum": lambda x: ops.einsum("bijc,ci->bcij", x, W[0, :2, :8]),
    "einsum with dots": lambda x: ops.einsum("b...c,co->b...o", x, W[0, :2, :3]),
    "einsum in groups": lambda x: ops.einsum("bijc,ico->bjoi", x, W[:8, :2, :3]),
    "einsum, an axis of each summed alone": lambda x: ops.einsum("bijc,k->bic", x, W[0, 0, :3]),
    "ravel": lambda x: ops.reshape(x, (-1, 112)),
    "squeeze": lambda x: ops.squeeze(x[:, :1], 1),
    "amax": lambda x: ops.amax(x, (1, -1)),
    "amin": lambda x: ops.amin(x, 2, keepdims=True),
    "abs": lambda x: abs(x),
    "true_divide": lambda x: ops.true_divide(x, W[0, 0, :2]),
    "a constant of one image": lambda x: x - W[None, :8, :7, :2],
    "reflected": lambda x: ops.pad(x, ((0, 0), (1, 0), (0, 2), (0, 0)), mode="reflect"),
    "slices": lambda x: x[:, 1:6:2, ..., None, 1],
}


@pytest.mark.parametrize("name", OPERATIONS)
def test_an_operation_of_keras_ops(name):
    _, net, images = build_and_compare(
        lambda x: L.Dense(2)(L.Flatten()(OPERATIONS[name](L.Conv2D(2, 3, padding="same")(x))))
    )
    check_identity(net, images)


class Whole(keras.Model):
    """A subclass of keras.Model, with nested models and layers of one's own in it."""

    def __init__(self, **options):
        super().__init__(**options)
        self.stem = keras.Sequential([L.Conv2D(2, 3, padding="same"), L.ReLU()], name="stem")
        self.blocks = [Block(name=f"block{n}") for n in range(2)]
        self.head = L.Dense(3, activation="sigmoid", name="head")

    def call(self, x, training=None):
        x = self.stem(x)
        for block in self.blocks:
            x = x + block(x, training=training)
        left, right = ops.split(x, 2, axis=-1)
        return self.head(ops.concatenate([left - right, ops.mean(x, (1, 2), True) + left], -1))


def test_a_subclassed_model_is_read_by_tracing_its_call():
    with float64():
        model = Whole(name="whole")
        model(np.zeros((1, 8, 7, 2)))
    al.models.randomise(model, 3)
    with pytest.warns(UserWarning, match="final sigmoid of 'head' is dropped"):
        net = al.equivalent(model)
    names = [layer.name for layer in net.layers]
    assert names[0].startswith("stem/") and names[1:] == ["block0/conv", "block1/conv", "head"]
    images = np.random.default_rng(0).normal(size=(2, 8, 7, 2))
    np.testing.assert_allclose(tf.sigmoid(net(images)), model(images), atol=1e-13)
    check_identity(net, images)
    with pytest.warns(UserWarning, match="sigmoid"):
        assert al.equivalent(model).digest == net.digest  # names do not depend on earlier traces


def test_a_subclassed_model_that_was_never_called():
    with pytest.raises(al.InputError, match=r"'whole' \(Whole\) is not built.*Call it once"):
        al.equivalent(Whole(name="whole"))


def test_volumes_are_pooled():
    """TensorFlow pools volumes on a CPU in float32 only."""
    for kind in (L.MaxPooling3D, L.AveragePooling3D):
        for options in ({"padding": "same", "strides": (1, 2, 3)}, {}):
            x = keras.Input((5, 6, 7, 2))
            h = kind((2, 3, 2), **options)(L.Conv3D(3, 2)(x))
            net = al.equivalent(keras.Model(x, L.Dense(2)(L.Flatten()(h))))
            image = np.random.default_rng(1).normal(size=(5, 6, 7, 2)).astype(np.float32)
            assert al.verify(net, image, layers="all", progress=False).passed


SINGLE_LAYERS = {
    "valid": L.Conv2D(3, (2, 3)),
    "strides": L.Conv2D(3, 3, strides=(2, 2), padding="same"),
    "dilation": L.Conv2D(3, 3, dilation_rate=2, padding="same"),
    "groups": L.Conv2D(4, 3, groups=2),
    "depthwise": L.DepthwiseConv2D(3, strides=2, padding="same", depth_multiplier=2),
    "separable": L.SeparableConv2D(3, 3, depth_multiplier=2, activation="relu"),
    "transposed": L.Conv2DTranspose(3, 3, strides=2, padding="same"),
    "transposed, output padding": L.Conv2DTranspose(
        3, 3, strides=2, padding="valid", output_padding=1
    ),
    "max": L.MaxPooling2D(3, 2, padding="same"),
    "average": L.AveragePooling2D(3, 2, padding="same"),
    "pad": L.ZeroPadding2D(((1, 2), (0, 3))),
    "crop": L.Cropping2D(((1, 0), (2, 1))),
    "nearest": L.UpSampling2D((2, 3)),
    "reshape": L.Reshape((7, 16)),
    "permute": L.Permute((3, 1, 2)),
    "prelu": L.PReLU(shared_axes=[1, 2]),
    "relu6": L.ReLU(max_value=6.0),
    "threshold": L.ReLU(max_value=2.0, threshold=0.3, negative_slope=0.1),
    "hard tanh": L.Activation("hard_tanh"),
    "hard sigmoid": L.Activation("hard_sigmoid"),
    "rescaling": L.Rescaling(1 / 255, offset=-0.5),
    "normalization": L.Normalization(mean=[0.2, 0.3], variance=[2.0, 3.0]),
    "dropout": L.SpatialDropout2D(0.4),
    "relu of its own": lambda: L.Activation(lambda x: ops.leaky_relu(x, 0.3)),
    "lambda": lambda: L.Lambda(lambda x: ops.abs(x) - 1),
    "a layer of one's own": Block,
    "a call of one's own": Twice(2, 3),
    "flip": L.RandomFlip(),
    "rotation": L.RandomRotation(0.2),
    "centre": L.CenterCrop(5, 4),
    "nearest, smaller": L.Resizing(3, 5, interpolation="nearest"),
    "einsum": L.EinsumDense("abcd,bde->aec", (3, 7), bias_axes="e", activation="relu"),
    "steps": lambda: L.TimeDistributed(L.Conv1D(3, 2, activation="relu")),
    "steps of a model": lambda: L.TimeDistributed(
        keras.Sequential([keras.Input((7, 2)), L.Dense(3, activation="relu"), L.Flatten()])
    ),
    "minimum": None,
}


@pytest.mark.parametrize("name", SINGLE_LAYERS)
def test_one_layer_between_a_convolution_and_a_dense_layer(name):
    with float64():
        template = SINGLE_LAYERS[name]
        if template is None:
            layer = lambda x: L.Minimum()([x, L.ReLU()(x)])  # noqa: E731
        elif not isinstance(template, L.Layer):
            layer = template()
        else:
            config = template.get_config()
            config.pop("dtype")
            layer = type(template).from_config(config)
    _, net, images = build_and_compare(
        lambda x: L.Dense(2)(L.Flatten()(layer(L.Conv2D(2, 3, padding="same")(x))))
    )
    check_identity(net, images)


def test_a_network_without_biases():
    """No x_b at all: the paper's earlier, bias-free theory."""
    _, net, images = build_and_compare(
        lambda x: L.Dense(3, use_bias=False, name="out")(
            L.Flatten()(L.ReLU()(L.Conv2D(4, 3, use_bias=False)(x)))
        )
    )
    assert net.x_b.size == 0 and net.d_in == 8 * 7 * 2
    unit = net.hypersurface(images[0], "out")[1]
    assert unit.bias.shape == (0,) and unit.contributions.shape == (1,)
    check_identity(net, images)
    assert al.verify(net, images, layers="all").passed


INTERPOLATIONS = {
    "by factors": lambda: L.UpSampling2D((2, 3), interpolation="bilinear"),
    "to a size": lambda: L.Resizing(5, 9),
    "to its own size": lambda: L.Resizing(8, 7),
    "bicubic": lambda: L.Resizing(11, 9, interpolation="bicubic"),
    "antialiased": lambda: L.Resizing(5, 4, interpolation="lanczos3", antialias=True),
    "cropped to the aspect": lambda: L.Resizing(4, 9, crop_to_aspect_ratio=True),
    "padded to the aspect": lambda: L.Resizing(9, 4, pad_to_aspect_ratio=True),
    "a centre larger than the image": lambda: L.CenterCrop(10, 5),
    "keras.ops": lambda: lambda x: keras.ops.image.resize(x, (3, 9)),
}


@pytest.mark.parametrize("name", INTERPOLATIONS)
def test_interpolation_to_the_precision_of_tensorflow(name):
    """tf.image.resize computes in float32 even in a float64 model; ours is exact."""
    with float64():
        x = keras.Input((8, 7, 2))
        h = INTERPOLATIONS[name]()(L.Conv2D(2, 3, padding="same")(x))
        model = keras.Model(x, L.Dense(2)(L.Flatten()(h)))
    net = al.equivalent(model)
    images = np.random.default_rng(1).normal(size=(3, 8, 7, 2))
    np.testing.assert_allclose(net(images), model(images), atol=1e-5)
    check_identity(net, images)


def test_sequences():
    def outputs(x):
        h = L.Conv1D(4, 3, padding="causal", activation="relu", dilation_rate=2)(x)
        h = L.UpSampling1D(2)(L.MaxPooling1D(2)(L.ZeroPadding1D(1)(h)))
        h = L.Conv1DTranspose(3, 3, strides=2)(L.AveragePooling1D(3, 1)(h))
        return L.Dense(2)(L.GlobalAveragePooling1D()(h))

    _, net, images = build_and_compare(outputs, shape=(11, 2))
    check_identity(net, images)


def test_volumes():
    _, net, images = build_and_compare(
        lambda x: L.Dense(2)(L.GlobalAveragePooling3D()(L.ReLU()(L.Conv3D(3, 2, strides=2)(x)))),
        shape=(4, 5, 6, 2),
    )
    check_identity(net, images)


# ------------------------------------------------------------------ intercepts become inputs


@pytest.mark.parametrize(
    "layer, constants",
    [
        (lambda: L.ReLU(max_value=6.0), [6.0]),
        (lambda: L.Activation("hard_tanh"), [-1.0, 1.0]),
        (lambda: L.Activation("hard_sigmoid"), [0.5]),
        (lambda: L.ReLU(threshold=0.5, max_value=2.0), [2.0, 0.5]),
    ],
)
def test_constants_of_activations_are_entries_of_x_b(layer, constants):
    _, net, images = build_and_compare(
        lambda x: L.Dense(3, use_bias=False)(
            L.Flatten()(layer()(L.Conv2D(4, 3, use_bias=False)(x)))
        )
    )
    np.testing.assert_array_equal(net.x_b, constants)
    assert all("constant" in s.origin for s in net.sources)
    check_identity(net, images)


def test_k_invariance_holds_with_intercepts():
    """J(kv) = J(v) fails for ReLU6 in the image alone; with the 6 in x_b it holds for every k."""
    _, net, images = build_and_compare(
        lambda x: L.Dense(3, name="dense")(
            L.Flatten()(L.ReLU(max_value=6.0)(L.Conv2D(4, 3)(8 * x)))
        )
    )
    reference = np.asarray(net.hypersurface(images[0], "dense", k=1.0))
    assert np.abs(reference[-4:]).max() > 0  # the constant takes part
    for k in (1 / 8, 0.1, 3.0, 1e6):
        np.testing.assert_array_equal(
            np.asarray(net.hypersurface(images[0], "dense", k=k)), reference
        )


# ------------------------------------------------------------------ readings


def test_readings_agree_with_an_explicit_jacobian():
    model, net = small_net()
    x = image_of(net)
    variables = [
        model.get_layer("first").bias,
        model.get_layer("bn").beta,
        model.get_layer("out").bias,
    ]
    J = explicit_jacobian(model, x, variables)
    H_I, H_b = net.adjoint(x, "out", np.eye(3))
    np.testing.assert_allclose(H_I, J[0][:, 0], atol=1e-12)
    np.testing.assert_allclose(H_b[:, net.layer("first").bias], J[1], atol=1e-12)
    np.testing.assert_allclose(H_b[:, net.layer("second").bias], J[2], atol=1e-12)
    assert not np.any(H_b[:, net.layer("out").bias])  # c is the value before the unit's own bias
    dx, dx_b = image_of(net, 5)[None], np.random.default_rng(6).normal(size=(1, net.x_b.size))
    pushed = net.tangent(x, dx, dx_b)["out"]
    by_hand = np.tensordot(J[0][:, 0], dx[0], 3) + np.tensordot(H_b, dx_b[0], 1)
    np.testing.assert_allclose(pushed[0], by_hand, atol=1e-12)


def test_a_batch_is_read_image_by_image():
    _, net = small_net()
    images = np.stack([image_of(net, s) for s in range(3)])
    v_b = np.tile(net.x_b, (3, 1))
    together = net.tangent(images, images, v_b)
    for n in range(3):
        alone = net.tangent(images[n], images[n : n + 1], v_b[:1])
        for name in alone:
            np.testing.assert_allclose(together[name][n], alone[name][0], atol=1e-12)
    g = np.random.default_rng(0).normal(size=(3, *net.layer("second").shape))
    together = net.adjoint(images, "second", g)
    for n in range(3):
        alone = net.adjoint(images[n], "second", g[n : n + 1])
        np.testing.assert_allclose(together[0][n], alone[0][0], atol=1e-12)
        np.testing.assert_allclose(together[1][n], alone[1][0], atol=1e-12)


def test_the_value_reading_is_homogeneous():
    _, net = small_net()
    x = image_of(net)
    one, eighth = net.value(x), net.value(x, k=1 / 8)
    for name in one:
        np.testing.assert_array_equal(eighth[name], one[name] / 8)  # a power of two: exactly


def nested(h):
    x = keras.Input(h.shape[1:])
    return keras.Sequential([x, L.Dense(3, activation="sigmoid", name="end")], name="head")(h)


def twice_nested(h):
    x = keras.Input(h.shape[1:])
    return keras.Model(x, nested(x), name="outer")(h)


FINAL = {
    "softmax of 'end'": (lambda h: L.Dense(3, activation="softmax", name="end")(h), tf.nn.softmax),
    "softmax of 'own'": (lambda h: L.Softmax(name="own")(L.Dense(3)(h)), tf.nn.softmax),
    "sigmoid of 'own'": (lambda h: L.Activation("sigmoid", name="own")(L.Dense(1)(h)), tf.sigmoid),
    "tanh of 'end'": (lambda h: L.Dense(3, activation="tanh", name="end")(h), tf.tanh),
    "gelu of 'end'": (
        lambda h: L.Dense(3, activation="gelu", name="end")(h),
        lambda c: tf.nn.gelu(c, approximate=False),
    ),
    "elu of 'own'": (lambda h: L.ELU(name="own")(L.Dense(3)(h)), tf.nn.elu),
    "sigmoid of 'sigmoid": (lambda h: ops.sigmoid(L.Dense(3)(h)), tf.sigmoid),
    "sigmoid of 'head/end'": (nested, tf.sigmoid),
    "sigmoid of 'outer/head/end'": (twice_nested, tf.sigmoid),
    "softmax of 'map'": (
        lambda h: L.Softmax(axis=1, name="map")(L.Reshape((4, 2))(L.Dense(8)(h))),
        lambda c: tf.nn.softmax(c, axis=1),
    ),
    "<lambda> (not one of keras.activations) of 'end'": (
        lambda h: L.Dense(3, activation=lambda c: c * c, name="end")(h),
        tf.square,
    ),
}


@pytest.mark.parametrize("name", FINAL)
def test_a_final_activation_is_dropped_with_a_message(name):
    end, activation = FINAL[name]
    with float64():
        x = keras.Input((4, 4, 2))
        model = keras.Model(x, end(L.Flatten()(L.Conv2D(2, 3)(x))))
    with pytest.warns(UserWarning, match=re.escape(f"final {name}")):
        net = al.equivalent(model)
    images = np.random.default_rng(0).normal(size=(2, 4, 4, 2))
    np.testing.assert_allclose(activation(net(images)), model(images), atol=1e-13)
    check_identity(net, images)


def test_an_activation_that_is_read_again_is_not_final():
    def outputs(x):
        p = L.Dense(2, activation="sigmoid", name="p")(x)
        return [p, L.Dense(3)(p)]

    x = keras.Input((4,))
    with pytest.raises(al.UnsupportedLayer, match=r"'p'.*'sigmoid' inside the network"):
        al.equivalent(keras.Model(x, outputs(x)))


def test_a_nested_model_used_inside_and_last_is_refused():
    inner = keras.Sequential([keras.Input((4,)), L.Dense(4, activation="tanh")], name="inner")
    x = keras.Input((4,))
    with pytest.raises(al.UnsupportedLayer, match=r"'inner/dense.*'tanh' inside the network"):
        al.equivalent(keras.Model(x, inner(inner(x))))


def test_astype_computes_in_the_other_precision():
    _, net = small_net()
    single = net.astype("float32")
    assert net.value(image_of(net))["out"].dtype == tf.float64
    assert single.value(image_of(net))["out"].dtype == tf.float32
    assert single.hypersurface(image_of(net), "out")[0].image.dtype == np.float32
    assert net.astype("float64") is net


def test_tables_are_readable():
    _, net = small_net()
    text = repr(net.layers)
    assert text.splitlines()[0].split() == "name kind kernel stride output bias slice".split()
    assert "second  Conv   3x3x4x5  2x2     4x4x5   4:9" in text
    assert "beta - gamma mean" in repr(net.sources)
    assert "<td>second</td>" in net.layers._repr_html_()
    assert "4 sources" not in repr(net) and "3 sources" in repr(net)


def test_every_supported_layer_is_a_keras_layer_or_ours():
    from adjoint_lib.frontend.rules.call import RULES

    for kind in RULES:
        assert issubclass(kind, keras.layers.Layer)


def test_the_digest_tells_networks_apart_by_weights_wiring_and_slopes():
    def digest(slope=0.1, strides=1, scale=1.0):
        model = keras.Sequential(
            [
                keras.Input((6, 6, 2)),
                keras.layers.Conv2D(2, 3, strides, padding="same", name="conv"),
                keras.layers.LeakyReLU(slope, name="relu"),
            ]
        )
        model.set_weights([scale * np.ones(w.shape, np.float32) for w in model.get_weights()])
        return al.equivalent(model).digest

    assert digest() == digest()
    assert len({digest(), digest(slope=0.2), digest(strides=2), digest(scale=2.0)}) == 4


@pytest.mark.parametrize("shape", [(2, 3, 3, 1), (5, 5, 2), (2,)])
def test_a_sum_with_a_mean_that_keras_takes_for_a_bias_in_a_batch_of_two(shape):
    """Keras adds (2, 2, 3, 3, 1) and (2, 1, 1, 1, 1) along the wrong axis; one image is right."""
    inputs = keras.Input(shape)
    other = keras.layers.Dense(1, use_bias=False)(inputs)
    if len(shape) > 1:
        pools = {3: keras.layers.GlobalAveragePooling2D, 4: keras.layers.GlobalAveragePooling3D}
        other = pools[len(shape)](keepdims=True)(other)
    out = keras.layers.Dense(3)(keras.layers.Add()([inputs, other]))
    model = keras.Model(inputs, out)
    net = al.equivalent(model)
    images = np.random.default_rng(1).normal(size=(4, *shape)).astype(np.float32)
    one_by_one = np.concatenate([model(image[None]) for image in images])
    np.testing.assert_allclose(net(images), one_by_one, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("optimizer", ["sgd", "adam", None])
def test_training_the_model_afterwards_leaves_the_network_as_it_was(optimizer):
    """An update writes into the memory of a variable, which no kernel may share."""
    layers = [keras.Input((6, 6, 1)), keras.layers.Conv2D(3, 3, activation="relu", name="c")]
    model = keras.Sequential([*layers, keras.layers.Flatten(), keras.layers.Dense(2, name="d")])
    net = al.equivalent(model)
    x = np.random.default_rng(0).random((8, 6, 6, 1), np.float32)
    before, digest, kernels = net(x).numpy(), net.digest, [w.numpy() for w in model.weights]
    del net.__dict__["digest"]  # to be computed again
    if optimizer:
        model.compile(optimizer, "mse")
        model.fit(x, np.ones((8, 2)), epochs=2, verbose=0)
    else:
        for variable in model.weights:
            variable.assign_add(np.ones(variable.shape))
            variable.value.assign(2 * variable.value)
    assert all(np.any(a != b.numpy()) for a, b in zip(kernels, model.weights, strict=True))
    np.testing.assert_array_equal(net(x), before)
    assert net.digest == digest
