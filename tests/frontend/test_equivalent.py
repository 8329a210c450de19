"""The equivalent topology: x_b, folding, wiring and tables, against the original Keras model."""

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
    "minimum": None,
}


@pytest.mark.parametrize("name", SINGLE_LAYERS)
def test_one_layer_between_a_convolution_and_a_dense_layer(name):
    with float64():
        template = SINGLE_LAYERS[name]
        if template is None:
            layer = lambda x: L.Minimum()([x, L.ReLU()(x)])  # noqa: E731
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


def test_bilinear_upsampling_to_the_precision_of_tensorflow():
    """tf.image.resize computes in float32 even in a float64 model; ours is exact."""
    with float64():
        x = keras.Input((8, 7, 2))
        h = L.UpSampling2D((2, 3), interpolation="bilinear")(L.Conv2D(2, 3, padding="same")(x))
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


def test_a_final_softmax_is_dropped_with_a_message():
    for end in (
        lambda h: L.Dense(3, activation="softmax", name="probabilities")(h),
        lambda h: L.Softmax(name="probabilities")(L.Dense(3)(h)),
        lambda h: L.Activation("softmax", name="probabilities")(L.Dense(3)(h)),
    ):
        with float64():
            x = keras.Input((4, 4, 2))
            model = keras.Model(x, end(L.Flatten()(L.Conv2D(2, 3)(x))))
        with pytest.warns(UserWarning, match="softmax of 'probabilities' is dropped"):
            net = al.equivalent(model)
        images = np.random.default_rng(0).normal(size=(2, 4, 4, 2))
        np.testing.assert_allclose(tf.nn.softmax(net(images)), model(images), atol=1e-14)


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
