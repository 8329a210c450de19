"""The three networks against the paper's appendix tables, transcribed here row by row."""

import itertools
import json

import keras
import numpy as np
import pytest

from adjoint_lib.errors import DataError, InputError
from adjoint_lib.experiments import models, weights
from adjoint_lib.frontend import layers

NAMES = ["vgg7", "resnet20", "resnet20-fixup"]

# Layer, kernel, out-channel feature maps. Conv0 is "N/S" in the paper; its rows follow from the
# input (32, 32, 3) and from Conv1's kernel.
VGG7 = """
conv0  3x3x3x32    32x32x32
conv1  3x3x32x32   32x32x32
conv2  3x3x32x64   16x16x64
conv3  3x3x64x64   16x16x64
conv4  3x3x64x96   8x8x96
conv5  3x3x96x96   8x8x96
fc     96x10       10
"""
RESNET20 = """
conv0  3x3x3x32    32x32x32
conv1  3x3x32x32   32x32x32
conv2  3x3x32x32   32x32x32
conv3  3x3x32x32   32x32x32
conv4  3x3x32x32   32x32x32
conv5  3x3x32x32   32x32x32
conv6  3x3x32x32   32x32x32
conv7  3x3x32x64   16x16x64
conv8  3x3x64x64   16x16x64
conv9  3x3x64x64   16x16x64
conv10 3x3x64x64   16x16x64
conv11 3x3x64x64   16x16x64
conv12 3x3x64x64   16x16x64
conv13 3x3x64x96   8x8x96
conv14 3x3x96x96   8x8x96
conv15 3x3x96x96   8x8x96
conv16 3x3x96x96   8x8x96
conv17 3x3x96x96   8x8x96
conv18 3x3x96x96   8x8x96
fc     96x10       10
"""
TABLES = {"vgg7": VGG7, "resnet20": RESNET20, "resnet20-fixup": RESNET20}

# The order of the layers. A line is a residual block, "|" what follows its addition.
VGG7_ORDER = """conv0 bn0 relu0 conv1 bn1 relu1 pool1 conv2 bn2 relu2 conv3 bn3 relu3 pool3
conv4 bn4 relu4 conv5 bn5 relu5 global_pool fc relu6"""
RESNET20_BLOCKS = """
conv1 bn1 relu1 conv2 bn2 | relu2
conv3 bn3 relu3 conv4 bn4 | relu4
conv5 bn5 relu5 conv6 bn6 | relu6
conv7 bn7 relu7 conv8 bn8 | relu8
conv9 bn9 relu9 conv10 bn10 | relu10
conv11 bn11 relu11 conv12 bn12 | relu12
conv13 bn13 relu13 conv14 bn14 | relu14
conv15 bn15 relu15 conv16 bn16 | relu16
conv17 bn17 relu17 conv18 bn18 | relu18
"""
FIXUP_BLOCKS = """
b1 conv1 b2 relu1 b3 conv2 m2 b4 | relu2
b5 conv3 b6 relu3 b7 conv4 m4 b8 | relu4
b9 conv5 b10 relu5 b11 conv6 m6 b12 | relu6
b13 conv7 b14 relu7 b15 conv8 m8 b16 | relu8
b17 conv9 b18 relu9 b19 conv10 m10 b20 | relu10
b21 conv11 b22 relu11 b23 conv12 m12 b24 | relu12
b25 conv13 b26 relu13 b27 conv14 m14 b28 | relu14
b29 conv15 b30 relu15 b31 conv16 m16 b32 | relu16
b33 conv17 b34 relu17 b35 conv18 m18 b36 | relu18
"""
DOWNSAMPLING = {3, 6}  # the blocks whose shortcut is "avg-pool+pad"


@pytest.fixture
def float64():
    before = keras.config.dtype_policy()
    keras.config.set_dtype_policy("float64")
    yield
    keras.config.set_dtype_policy(before)


@pytest.fixture(scope="module")
def images():
    return np.random.default_rng(7).random((3, 32, 32, 3)).astype("float32")


def ints(text):
    return tuple(int(n) for n in text.split("x"))


def values(model, names, images):
    """The outputs of the named layers, as arrays."""
    outputs = keras.Model(model.input, [model.get_layer(n).output for n in names])(images)
    return [np.asarray(o) for o in outputs]


def layers_of(model, kind):
    return [layer for layer in model.layers if isinstance(layer, kind)]


def assert_chain(model, names):
    for before, after in itertools.pairwise(names):
        assert model.get_layer(after).input is model.get_layer(before).output, (before, after)


@pytest.mark.parametrize("classes", [10, 100])
@pytest.mark.parametrize("name", NAMES)
def test_kernels_and_feature_maps_are_those_of_the_tables(name, classes):
    model = models.build(name, classes=classes)
    rows = [row.split() for row in TABLES[name].strip().splitlines()]
    with_kernel = [layer.name for layer in model.layers if hasattr(layer, "kernel")]
    assert with_kernel == [row[0] for row in rows]
    for layer_name, kernel, maps in rows:
        layer = model.get_layer(layer_name)
        expected = ints(kernel), ints(maps)
        if layer_name == "fc":
            expected = (96, classes), (classes,)
        else:
            assert layer.padding == "same"
            assert layer.strides == (
                (2, 2) if "resnet" in name and layer_name in ("conv7", "conv13") else (1, 1)
            )
        assert (tuple(layer.kernel.shape), layer.output.shape[1:]) == expected, layer_name
        assert len(layer.weights) == 1, "no layer with a kernel has a bias"
    assert model.input_shape == (None, 32, 32, 3)
    assert model.output_shape == (None, classes)


def test_vgg7_follows_its_table():
    model = models.vgg7()
    order = VGG7_ORDER.split()
    assert [layer.name for layer in model.layers[1:]] == order
    assert_chain(model, order)
    assert len(layers_of(model, keras.layers.ReLU)) == 7
    for pool in layers_of(model, keras.layers.AveragePooling2D):
        assert (pool.pool_size, pool.strides, pool.padding) == ((3, 3), (2, 2), "same")


@pytest.mark.parametrize(
    ("name", "blocks", "stem"),
    [
        ("resnet20", RESNET20_BLOCKS, ["conv0", "bn0", "relu0"]),
        ("resnet20-fixup", FIXUP_BLOCKS, ["conv0", "b0", "relu0"]),
    ],
)
def test_residual_networks_follow_their_tables(name, blocks, stem):
    model = models.build(name)
    assert_chain(model, stem)
    source, seen = stem[-1], set(stem)
    for number, line in enumerate(blocks.strip().splitlines()):
        branch, _, after = line.partition(" | ")
        branch = branch.split()
        assert_chain(model, [source, *branch])
        add = model.get_layer(f"add{number}")
        assert model.get_layer(after).input is add.output
        last, shortcut = add.input
        assert last is model.get_layer(branch[-1]).output
        if number in DOWNSAMPLING:
            # In Fixup the shortcut leaves after the block's first bias.
            start = branch[0] if name == "resnet20-fixup" else source
            pool, pad = f"shortcut{number}_pool", f"shortcut{number}_pad"
            assert_chain(model, [start, pool, pad])
            assert shortcut is model.get_layer(pad).output
            seen |= {pool, pad}
        else:
            assert shortcut is model.get_layer(source).output
        seen |= {*branch, after, add.name}
        source = after
    tail = [source, "global_pool", "fc", "relu19"]
    assert_chain(model, tail)
    assert seen | {*tail, "image"} == {layer.name for layer in model.layers}


def test_shortcut_takes_every_second_pixel_and_pads_both_sides(images):
    model = models.randomise(models.resnet20())
    source, shortcut = values(model, ["relu12", "shortcut6_pad"], images)
    assert source.shape[-1] == 64 and shortcut.shape[-1] == 96
    np.testing.assert_array_equal(shortcut[..., 16:80], source[:, ::2, ::2])
    assert not shortcut[..., :16].any() and not shortcut[..., 80:].any()


def test_numbers_of_biases():
    bn = keras.layers.BatchNormalization
    sizes = [layer.gamma.shape[0] for layer in layers_of(models.vgg7(), bn)]
    assert sizes == [32, 32, 64, 64, 96, 96] and sum(sizes) == 384
    resnet = models.resnet20()
    sizes = [layer.gamma.shape[0] for layer in layers_of(resnet, bn)]
    assert len(sizes) == 19 and sum(sizes) == 1184  # the paper's 1,152 leaves out Conv0's 32
    assert {layer.epsilon for layer in layers_of(resnet, bn)} == {1e-3}
    fixup = models.resnet20_fixup()
    assert [b.name for b in layers_of(fixup, layers.Bias)] == [f"b{i}" for i in range(37)]
    multipliers = [m.name for m in layers_of(fixup, layers.Multiplier)]
    assert multipliers == ["m2", "m4", "m6", "m8", "m10", "m12", "m14", "m16", "m18"]
    assert not layers_of(fixup, bn)
    scalars = [b.bias for b in layers_of(fixup, layers.Bias)]
    assert sum(b.shape[0] for b in scalars) == 37


@pytest.mark.parametrize(
    ("name", "slope"), [("vgg7", 0.0), ("resnet20", 0.1), ("resnet20-fixup", 0.0)]
)
def test_every_activation_has_the_slope_of_its_model(name, slope, images):
    model = models.randomise(models.build(name))
    activations = [layer for layer in model.layers if layer.name.startswith("relu")]
    assert len(activations) == (7 if name == "vgg7" else 20)
    line = np.linspace(-2, 2, 9, dtype="float32")
    for activation in activations:
        got = np.asarray(activation(line))
        np.testing.assert_allclose(got, np.where(line < 0, slope * line, line), rtol=1e-6)


@pytest.mark.parametrize("name", NAMES)
def test_final_activation_can_be_left_off(name, images):
    full, bare = models.build(name), models.build(name, final_activation=False)
    models.randomise(full, 3), models.randomise(bare, 3)
    assert len(full.layers) == len(bare.layers) + 1 and bare.layers[-1].name == "fc"
    scores = np.asarray(bare(images))
    assert (scores < 0).any() and (scores > 0).any()
    slope = models.LEAK if name == "resnet20" else 0
    np.testing.assert_allclose(
        full(images), np.where(scores < 0, slope * scores, scores), rtol=1e-6
    )
    np.testing.assert_array_equal(values(full, ["global_pool", "fc"], images)[1], scores)


def test_fixup_starts_with_identity_blocks(images):
    model = models.resnet20_fixup(seed=5)
    branch_ends = [f"b{i}" for i in range(4, 37, 4)]
    for end in values(model, branch_ends, models.normalise(images)):
        assert not end.any()
    relu = {
        i: v
        for i, v in zip(
            range(0, 19, 2),
            values(model, [f"relu{i}" for i in range(0, 19, 2)], models.normalise(images)),
            strict=True,
        )
    }
    assert relu[0].any()
    for i in range(0, 18, 2):
        if relu[i].shape == relu[i + 2].shape:
            np.testing.assert_array_equal(relu[i], relu[i + 2])
    assert not np.asarray(model(models.normalise(images))).any()


def test_fixup_initial_scales():
    model = models.resnet20_fixup(seed=2)
    for block in range(9):
        first = model.get_layer(f"conv{2 * block + 1}").kernel
        he = np.sqrt(2 / (9 * first.shape[2]))
        assert np.std(first) == pytest.approx(he / 3, rel=0.05)
        assert not np.asarray(model.get_layer(f"conv{2 * block + 2}").kernel).any()
    assert np.std(model.get_layer("conv0").kernel) == pytest.approx(np.sqrt(2 / 27), rel=0.1)
    assert not np.asarray(model.get_layer("fc").kernel).any()
    assert all(float(b.bias[0]) == 0 for b in layers_of(model, layers.Bias))
    assert all(float(m.multiplier[0]) == 1 for m in layers_of(model, layers.Multiplier))


@pytest.mark.parametrize("name", NAMES)
def test_seeds_decide_the_weights(name):
    one, same, other = (models.build(name, seed=s).get_weights() for s in (1, 1, 2))
    for a, b in zip(one, same, strict=True):
        np.testing.assert_array_equal(a, b)
    assert (one[0] != other[0]).mean() > 0.99
    kernels = [w.ravel()[:864] for w in one if w.ndim == 4 and w.any()]
    correlation = np.corrcoef(kernels) - np.eye(len(kernels))
    assert np.abs(correlation).max() < 0.2, "layers draw independently"


@pytest.mark.parametrize("name", NAMES)
def test_float64_throughout(name, images, float64):
    model = models.randomise(models.build(name))
    assert {w.dtype for w in model.weights} == {"float64"}
    outputs = values(model, [layer.name for layer in model.layers], images.astype("float64"))
    assert {o.dtype.name for o in outputs} == {"float64"}


@pytest.mark.parametrize("name", NAMES)
def test_randomise_leaves_no_weight_at_its_start_and_magnitudes_sane(name, images):
    model = models.randomise(models.build(name), seed=11)
    for w in model.weights:
        value = np.asarray(w)
        assert not np.isin(value, (0, 1)).any(), w.path
        if w.name == "moving_variance":
            assert (value >= 0.5).all() and (value <= 1.5).all()
        if w.name == "gamma":
            assert (abs(value) >= 0.5).all() and (abs(value) <= 1.5).all() and (value < 0).any()
    names = [layer.name for layer in model.layers if layer.name.startswith(("conv", "relu"))]
    for name_, output in zip(
        names, values(model, names, models.preprocess(name, images)), strict=True
    ):
        assert 0.05 < np.abs(output).mean() < 100, name_
    again = models.randomise(models.build(name, seed=4), seed=11)
    for a, b in zip(model.get_weights(), again.get_weights(), strict=True):
        np.testing.assert_array_equal(a, b)


def test_randomise_takes_any_model(images):
    inner = keras.Sequential(
        [keras.Input((8, 8, 6)), keras.layers.Conv2DTranspose(5, 3, 2), keras.layers.PReLU()]
    )
    normalization = keras.layers.Normalization()
    model = keras.Sequential(
        [
            keras.Input((8, 8, 3)),
            normalization,
            keras.layers.DepthwiseConv2D(3, padding="same"),
            keras.layers.SeparableConv2D(6, 3, padding="same"),
            inner,
            keras.layers.Dropout(0.5),
            keras.layers.Conv2D(6, 3, groups=1),
            keras.layers.Flatten(),
            keras.layers.Dense(4),
        ]
    )
    before = model.get_weights()
    small = images[:, :8, :8]
    assert models.randomise(model, 1) is model
    for old, w in zip(before, model.weights, strict=True):
        if w.dtype == "float32":
            assert (np.asarray(w) != old).all(), w.path
    assert 0.01 < np.abs(np.asarray(model(small))).mean() < 100
    # The normalisation layer computes with the values its weights now hold.
    mean, variance = (np.asarray(w) for w in normalization.weights[:2])
    np.testing.assert_allclose(normalization(small), (small - mean) / np.sqrt(variance), rtol=1e-5)


def test_normalise(images):
    grey = np.full((2, 4, 4, 3), 0.5)
    expected = [(0.5 - 0.4914) / 0.2023, (0.5 - 0.4822) / 0.1994, (0.5 - 0.4465) / 0.2010]
    got = models.normalise(grey)
    assert got.dtype == np.float64
    np.testing.assert_allclose(got[1, 2, 3], expected, rtol=1e-14)
    assert models.normalise(images).dtype == np.float32
    tensor = models.normalise(keras.ops.convert_to_tensor(images))
    np.testing.assert_array_equal(np.asarray(tensor), models.normalise(images))
    with pytest.raises(InputError, match=r"uint8.*\(2, 4, 4, 3\).*255"):
        models.normalise(np.zeros((2, 4, 4, 3), "uint8"))
    with pytest.raises(InputError, match=r"3 colour channels"):
        models.normalise(np.zeros((3, 32, 32)))


def test_preprocess(images):
    assert models.preprocess("vgg7", images) is images
    assert models.preprocess("resnet20", images) is images
    np.testing.assert_array_equal(
        models.preprocess("resnet20-fixup", images), models.normalise(images)
    )


@pytest.mark.parametrize(
    ("wrong", "meant"),
    [("VGG-7", "vgg7"), ("resnet-20", "resnet20"), ("ResNet20_Fixup", "resnet20-fixup")],
)
def test_unknown_names_get_the_nearest(wrong, meant):
    with pytest.raises(InputError, match=f"mean '{meant}'"):
        models.build(wrong)
    with pytest.raises(InputError, match=f"mean '{meant}'"):
        models.preprocess(wrong, np.zeros((32, 32, 3)))


def test_bad_arguments():
    with pytest.raises(InputError, match="seed"):
        models.vgg7(seed=-1)
    with pytest.raises(InputError, match="classes"):
        models.vgg7(classes=0)
    with pytest.raises(InputError, match=r"10 classes.*classes=100"):
        models.vgg7(classes=100, weights="cifar10")
    with pytest.raises(InputError, match=r"'cifar10' or 'cifar100'.*'imagenet'"):
        models.vgg7(weights="imagenet")
    with pytest.raises(InputError, match=r"PadChannels\(2\).*3"):
        layers.PadChannels(2)(np.zeros((1, 4, 4, 3), "float32"))


@pytest.mark.parametrize("name", NAMES)
def test_keras_file_round_trip(name, images, tmp_path):
    model = models.randomise(models.build(name), 6)
    model.save(tmp_path / "model.keras")
    again = keras.saving.load_model(tmp_path / "model.keras")
    np.testing.assert_array_equal(again(images), model(images))
    assert [type(a) for a in again.layers] == [type(b) for b in model.layers]


@pytest.mark.parametrize("name", NAMES)
def test_weights_round_trip(name, images, tmp_path):
    model = models.randomise(models.build(name, classes=100), 6)
    digest = weights.save_weights(model, tmp_path / "w.npz", {"seed": 6})
    assert weights.provenance(tmp_path / "w.npz") == {"seed": 6, "sha256": digest}
    assert sorted(p.name for p in tmp_path.iterdir()) == ["w.json", "w.npz"]
    with np.load(tmp_path / "w.npz") as file:
        assert file["conv0/kernel"].shape == (3, 3, 3, 32)
        assert len(file.files) == len(model.weights)
    again = models.build(name, classes=100, weights=tmp_path / "w.npz")
    for a, b in zip(model.get_weights(), again.get_weights(), strict=True):
        np.testing.assert_array_equal(a, b)
    np.testing.assert_array_equal(again(images), model(images))
    assert weights.save_weights(again, tmp_path / "v.npz") == digest
    assert not (tmp_path / "v.json").exists()


def test_weights_that_do_not_fit_are_listed_and_change_nothing(tmp_path):
    path = tmp_path / "w.npz"
    weights.save_weights(models.vgg7(), path)
    with np.load(path) as file:
        arrays = {key: file[key] for key in file.files}
    del arrays["bn0/beta"]
    arrays["conv9/kernel"] = np.zeros((3, 3, 1, 1))
    arrays["conv1/kernel"] = np.zeros((3, 3, 32, 31))
    np.savez(path, **arrays)
    model = models.vgg7(seed=1)
    before = model.get_weights()
    with pytest.raises(InputError) as error:
        weights.load_weights(model, path)
    message = str(error.value)
    assert "missing: bn0/beta (32,)" in message
    assert "not in the model: conv9/kernel (3, 3, 1, 1)" in message
    assert "wrong shape: conv1/kernel is (3, 3, 32, 31), expected (3, 3, 32, 32)" in message
    sound = {
        v.path: np.full(v.shape, np.nan if v.path == "bn1/beta" else 1.0) for v in model.weights
    }
    np.savez(path, **sound)
    with pytest.raises(InputError, match="not finite numbers: bn1/beta"):  # seen once shapes fit
        weights.load_weights(model, path)
    for a, b in zip(before, model.get_weights(), strict=True):
        np.testing.assert_array_equal(a, b)
    with pytest.raises(InputError, match=r"fc/kernel is \(96, 10\), expected \(96, 100\)"):
        weights.save_weights(models.vgg7(), path)
        models.vgg7(classes=100, weights=path)


def test_weights_files_that_are_not(tmp_path):
    model = models.vgg7()
    with pytest.raises(DataError, match=r"No weights file at .*none\.npz"):
        weights.load_weights(model, tmp_path / "none.npz")
    with pytest.raises(InputError, match=r"\.npz"):
        weights.save_weights(model, tmp_path / "w.h5")
    path = tmp_path / "w.npz"
    digest = weights.save_weights(model, path)
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(DataError, match="truncated"):
        weights.load_weights(model, path)
    damaged = bytearray(whole)
    damaged[len(whole) // 2] ^= 0x10
    path.write_bytes(damaged)
    with pytest.raises(DataError, match="unreadable"):
        weights.load_weights(model, path)
    with pytest.raises(DataError, match=f"expected sha256 {digest}, found"):
        weights.load_weights(model, path, sha256=digest)
    np.savez(path, **{"conv0/kernel": np.array([{"an": "object"}])})
    with pytest.raises(DataError, match="plain arrays"):
        weights.load_weights(model, path)


def test_shipped_weights(tmp_path, monkeypatch):
    def path(name):
        if not (tmp_path / name).exists():
            raise DataError(f"{name}: expected a file")
        return tmp_path / name

    monkeypatch.setattr(models.resources, "path", path)
    with pytest.raises(DataError, match=r"resnet20-cifar100\.npz.*no such file.*weights=None"):
        models.resnet20(weights="cifar100")
    (tmp_path / "weights").mkdir()
    path = tmp_path / "weights" / "resnet20-cifar100.npz"
    trained = models.randomise(models.resnet20(classes=100), 8)
    weights.save_weights(trained, path)
    with pytest.raises(DataError, match=r"No provenance file .*resnet20-cifar100\.json"):
        models.resnet20(weights="cifar100")
    weights.save_weights(trained, path, {"recipe": "none"})
    loaded = models.resnet20(weights="cifar100", name="mine")
    assert loaded.output_shape == (None, 100)
    np.testing.assert_array_equal(loaded.get_weights()[-1], trained.get_weights()[-1])
    note = path.with_suffix(".json")
    note.write_text(json.dumps({"sha256": "0" * 64}))
    with pytest.raises(DataError, match="expected sha256 0000"):
        models.resnet20(weights="cifar100")
    note.write_text("{")
    with pytest.raises(DataError, match="in JSON, got something unreadable"):
        models.resnet20(weights="cifar100")
