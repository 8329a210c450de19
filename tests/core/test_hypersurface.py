"""The five modes: shapes, sums between them, both directions, indexing, budget."""

import numpy as np
import pytest

import adjoint_lib as al
from adjoint_lib.core.hypersurface import MODES, Hypersurface
from reference import image_of, small_net

MODEL, NET = small_net()
X = image_of(NET)
RNG = np.random.default_rng(3)


def dense(layer, mode, **options):
    return np.asarray(NET.hypersurface(X, layer, mode, **options))


@pytest.mark.parametrize("layer", ["first", "second"])
def test_sums_between_the_modes(layer):
    """Eq. (10) to (12): RM4 summed over s, over j, over both."""
    RM4, RM3, RM2, RM1 = (dense(layer, mode) for mode in ("RM4", "RM3", "RM2", "RM1"))
    tolerance = 1e-12 * np.abs(RM4).sum(axis=(1, 2, 3)).max()
    np.testing.assert_allclose(RM4.sum((1, 2)), RM3, atol=tolerance)
    np.testing.assert_allclose(RM4.sum(3), RM2, atol=tolerance)
    np.testing.assert_allclose(RM3.sum(1), RM1, atol=tolerance)
    np.testing.assert_allclose(RM2.sum((1, 2)), RM1, atol=tolerance)


def test_each_mode_reconstructs_what_it_says():
    """Against a for-loop over positions, in-channels and out-channels of the second convolution."""
    layer = NET.layer("second")
    kernel = NET.graph.nodes[layer.number].primitive.kernel
    maps = np.maximum(NET.value(X)["first"].numpy()[0] + NET.x_b[NET.layer("first").bias], 0)
    padded = np.pad(maps, ((0, 1), (1, 1), (0, 0)))  # SAME, stride 2: 8 rows, 7 columns
    c = np.zeros((4, 4, 4, 5))
    for y, x, j, i in np.ndindex(c.shape):
        c[y, x, j, i] = np.sum(padded[2 * y : 2 * y + 3, 2 * x : 2 * x + 3, j] * kernel[:, :, j, i])
    expected = {"RM4": c, "RM3": c.sum((0, 1)), "RM2": c.sum(2), "RM1": c.sum((0, 1, 2))}
    for mode, values in expected.items():
        found = NET.hypersurface(X, "second", mode)[...].value
        np.testing.assert_allclose(found, values, atol=1e-12 * np.abs(c).max())


@pytest.mark.parametrize("mode", ["RM1", "RM2", "RM3", "RM4"])
@pytest.mark.parametrize("layer", ["first", "second"])
def test_both_directions_agree(layer, mode):
    H = NET.hypersurface(X, layer, mode)
    axes = [np.arange(n) for n in H.shape[1:]]
    units = np.stack(np.meshgrid(*axes, indexing="ij"), -1).reshape(-1, len(axes))
    pulled = H._by_pull(H.frozen, units)
    pushed = H._by_push(H.frozen, axes, len(units))
    np.testing.assert_allclose(pulled, pushed, atol=1e-12 * np.abs(pushed).max())


def test_few_units_are_pulled_and_many_are_pushed(monkeypatch):
    used = []
    for name in ("_few", "_by_pull", "_by_push"):
        original = getattr(Hypersurface, name)

        def spy(self, *args, _name=name, _original=original):
            used.append(_name)
            return _original(self, *args)

        monkeypatch.setattr(Hypersurface, name, spy)
    NET.hypersurface(X, "first")[0, 0, 0]
    NET.hypersurface(X, "first")[0, :, :3]
    NET.hypersurface(X, "first")[...]
    assert used == ["_few", "_by_pull", "_by_push"]  # 1, 21, 224 units against 112 directions


def test_the_first_layer_is_its_kernel_in_place():
    unit = NET.hypersurface(X, "first", "RM2")[3, 4, 1]
    kernel = np.asarray(MODEL.get_layer("first").kernel)
    expected = np.zeros(NET.input_shape)
    expected[2:5, 3:6] = kernel[..., 1]
    np.testing.assert_array_equal(unit.image, expected)
    assert not unit.bias.any()


@pytest.mark.parametrize("layer, mode", [("second", "RM2"), ("second", "RM4"), ("out", "RM0")])
def test_contributions_sum_to_the_value(layer, mode):
    units = NET.hypersurface(X, layer, mode)[...]
    assert units.sources == ["image", "first", "bn", "out"]
    assert units.contributions.shape == (*units.value.shape, 4)
    np.testing.assert_array_equal(units.contributions.sum(-1), units.value)
    image = np.sum(units.image * X, axis=(-3, -2, -1))
    first = units.bias[..., :4] @ NET.x_b[:4]
    np.testing.assert_allclose(units.contributions[..., 0], image, atol=1e-12)
    np.testing.assert_allclose(units.contributions[..., 1], first, atol=1e-12)


def test_a_unit_as_the_design_shows_it():
    H = NET.hypersurface(X, layer="second", mode="RM2")
    assert H.shape == (8 * 7 * 2 + 12, 4, 4, 5)
    unit = H[2, 3, 1]
    assert unit.image.shape == (8, 7, 2) and unit.bias.shape == (12,) and unit.value.shape == ()
    np.testing.assert_allclose(unit.value, NET.value(X)["second"][0, 2, 3, 1], rtol=1e-12)
    assert "value" in repr(unit) and "index it to compute" in repr(H)


def test_nothing_is_computed_before_indexing(monkeypatch):
    monkeypatch.setattr(NET, "traces", {})  # those of tests before would pull without `pull`
    H = NET.hypersurface(X, "second", "RM4")
    monkeypatch.setattr(type(H.frozen), "pull", None)
    monkeypatch.setattr(type(H.frozen), "push", None)
    assert H.shape and H.nbytes and repr(H)
    with pytest.raises(TypeError):
        H[0, 0, 0, 0]


INDICES = [
    np.s_[1, 2, 3],
    np.s_[-1, 0, -2],
    np.s_[1],
    np.s_[:, 1:3, 2],
    np.s_[::2, ::-1, 1:],
    np.s_[..., 2],
    np.s_[1, ..., 2],
    np.s_[np.int64(1), 2],
    np.s_[...],
]


@pytest.mark.parametrize("index", INDICES, ids=str)
def test_indices_choose_what_numpy_would(index):
    whole = np.moveaxis(dense("second", "RM2"), 0, -1)
    found = NET.hypersurface(X, "second", "RM2")[index]
    parts = index if isinstance(index, tuple) else (index,)
    expected = whole[(*parts, slice(None))] if Ellipsis in parts else whole[index]
    np.testing.assert_allclose(found.H, expected, atol=1e-13)
    assert found.value.shape == expected.shape[:-1]


def test_batches_have_the_image_in_front():
    images = np.stack([image_of(NET, seed) for seed in range(3)])
    H = NET.hypersurface(images, "second", "RM2")
    assert H.shape == (3, NET.d_in, 4, 4, 5)
    values = NET.value(images)["second"].numpy()
    np.testing.assert_allclose(H[...].value, values, atol=1e-12)
    np.testing.assert_allclose(H[1:, 0, :, 2].value, values[1:, 0, :, 2], atol=1e-12)
    alone = NET.hypersurface(images[2], "second", "RM2")
    np.testing.assert_allclose(H[2, 1, 1, 1].H, alone[1, 1, 1].H, atol=1e-13)
    np.testing.assert_allclose(np.asarray(H)[2], np.asarray(alone), atol=1e-13)


def test_scattered_units_at_once():
    H = NET.hypersurface(X, "second", "RM4")
    units = RNG.integers(0, H.shape[1:], (20, 4))
    together = H.at(units)
    for n, unit in enumerate(units):
        np.testing.assert_allclose(together.H[n], H[tuple(unit)].H, atol=1e-13)
    for wrong in ([[0, 0, 0]], [[0, 0, 0, 5]], [[0.0, 0, 0, 0]], [[-1, 0, 0, 0]]):
        with pytest.raises(al.InputError):
            H.at(np.array(wrong))


@pytest.mark.parametrize("k", [1 / 8, 0.1, 1, 2.5, 1e-3])
def test_the_hypersurface_does_not_depend_on_k(k):
    for layer in ("second", "out"):
        np.testing.assert_array_equal(dense(layer, None, k=k), dense(layer, None))


def test_float32_agrees_to_rounding():
    single = NET.astype("float32")
    for layer in NET.layers:
        H = np.asarray(single.hypersurface(X, layer.name))
        expected = np.asarray(NET.hypersurface(X, layer.name))
        np.testing.assert_allclose(H, expected, atol=1e-5 * np.abs(expected).max())


def test_a_dense_result_above_the_budget_is_refused_with_its_size():
    """RM4 of VGG7's Conv1: 3456 x 32^4 entries."""
    net = al.equivalent(al.models.vgg7())
    H = net.hypersurface(np.zeros((32, 32, 3), np.float32), "conv1", "RM4")
    assert H.nbytes == 4 * 3456 * 32**4
    with pytest.raises(al.TooLarge, match=r"13\.5 GiB.*budget of 1 GiB"):
        np.asarray(H)
    with pytest.raises(al.TooLarge, match="1,048,576 hypersurfaces of 3,456 entries"):
        H[...]
    with pytest.raises(al.TooLarge):
        NET.hypersurface(X, "second", max_bytes=1000)[...]
    assert NET.hypersurface(X, "second", max_bytes=1000)[0, 0, 0].image.any()


def test_streaming_gives_the_same_hypersurfaces():
    frozen = NET.freeze(X)
    found = {layer.name: np.zeros((NET.d_in, *layer.shape)) for layer in NET.layers}
    for layer, block in frozen.hypersurfaces(rows=7):
        found[layer.name][block.rows] = block.dense()
    for layer in NET.layers:
        np.testing.assert_allclose(found[layer.name], dense(layer.name, None), atol=1e-13)


def test_dense_layers_on_maps_are_convolutions():
    import keras

    x = keras.Input((4, 5, 2))
    h = keras.layers.Dense(3, activation="relu", name="pointwise")(x)
    net = al.equivalent(keras.Model(x, keras.layers.Dense(2, name="last")(h)))
    assert net.layer("last").modes == ("RM1", "RM2", "RM3", "RM4")
    assert set(MODES) == {"RM0", "RM1", "RM2", "RM3", "RM4"}
    image = image_of(net)
    H = net.astype("float64").hypersurface(image, "last", "RM2")
    np.testing.assert_allclose(
        H[...].value, net.astype("float64").value(image)["last"][0], atol=1e-13
    )


@pytest.mark.parametrize(
    "index, said",
    [
        ([0, 1], r"\.at"),
        (np.array([0, 1]), r"\.at"),
        ((0, np.array([0, 1])), r"\.at"),
        (np.ones(3, bool), r"\.at"),
        (slice(None, None, 0), "zero"),
        (slice("a", None), "slice"),
        ([[0], [1, 2]], r"\.at"),
        (range(2), r"\.at"),
        (np.array(True), "int or a slice"),
        (np.array(1.0), "int or a slice"),
        (None, "int or a slice"),
        (10**400, "out of range"),
    ],
)
def test_an_index_that_is_neither_int_nor_slice_is_refused_in_words(index, said):
    import keras

    import adjoint_lib as al

    model = keras.Sequential([keras.Input((6, 6, 1)), keras.layers.Conv2D(2, 3, name="c")])
    net = al.equivalent(model)
    image = np.ones((6, 6, 1), np.float32)
    with pytest.raises(al.InputError, match=said):
        net.hypersurface(image, "c")[index]
    for size in ("1 GB", 1.5, 0, -1, True, None):
        with pytest.raises(al.InputError, match="max_bytes"):
            net.hypersurface(image, "c", max_bytes=size)
        with pytest.raises(al.InputError, match="max_bytes"):
            al.verify(net, image, max_bytes=size)
