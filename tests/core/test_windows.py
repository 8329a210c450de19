"""Windows against whole maps: the same tangents, with every kind of layer in between."""

import keras
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import adjoint_lib as al
from adjoint_lib.core import primitives, windows
from reference import random_model
from wirings import WIRINGS

L = keras.layers


@pytest.fixture(autouse=True)
def small_tiles(monkeypatch):
    """Tiles of 3 x 3 pixels, and no window so large that it is given up."""
    monkeypatch.setattr(windows, "TILE", 3)
    monkeypatch.setattr(windows, "DENSE", 1.01)


@pytest.mark.parametrize("name", WIRINGS)
def test_windows_leave_nothing_out(name):
    """Every row of J at every layer with a kernel, against a push on whole maps."""

    def build():
        x = keras.Input((8, 10, 2))
        h = WIRINGS[name](L.ReLU()(L.Conv2D(2, 3, padding="same")(x)))
        h = L.LeakyReLU()(L.Conv2D(3, 3, padding="same")(h))
        return keras.Model(x, L.Dense(2)(L.GlobalAveragePooling2D()(h)))

    net = al.equivalent(random_model(build))
    frozen = net.freeze(np.random.default_rng(0).normal(size=net.input_shape))
    found = {layer.number: np.zeros((net.d_in, *layer.shape)) for layer in net.layers}
    small = 0
    for layer, block in frozen.hypersurfaces():
        found[layer.number][block.rows] = block.dense()
        small += isinstance(block.values, windows.Patch)
    for number, expected in frozen.push(frozen.basis(0, net.d_in), found):
        np.testing.assert_allclose(found[number], expected, atol=1e-14)
    assert small


def test_a_window_is_no_larger_than_the_receptive_field():
    """Two 3 x 3 convolutions widen a tile by two on each side, and no further than the map."""

    def build():
        x = keras.Input((12, 12, 1))
        h = L.Conv2D(1, 3, padding="same", name="one")(x)
        return keras.Model(x, L.Conv2D(1, 3, padding="same", name="two")(h))

    net = al.equivalent(random_model(build))
    frozen = net.freeze(np.zeros(net.input_shape))
    blocks = [b for _, b in frozen.hypersurfaces([net.layer("two")]) if len(b.rows) == 9]
    where = [b.values.where for b in blocks]
    assert where[0] == (slice(0, 5), slice(0, 5))
    assert where[5] == (slice(1, 8), slice(1, 8))


def test_few_scores_are_pulled_to_the_same_hypersurfaces(monkeypatch):
    """The maps below them are needed by nothing else; with room for three rows they are pushed."""

    def build():
        x = keras.Input((8, 8, 2))
        h = L.ReLU()(L.Conv2D(6, 3, padding="same", name="maps")(x))
        return keras.Model(x, L.Dense(4, name="scores")(L.GlobalAveragePooling2D()(h)))

    net = al.equivalent(random_model(build))
    frozen = net.freeze(np.random.default_rng(0).normal(size=net.input_shape))
    pulled, honest = [], type(frozen).pull_units

    def watched(self, number, *units):
        pulled.append(number)
        return honest(self, number, *units)

    monkeypatch.setattr(type(frozen), "pull_units", watched)
    found = []
    for rows in (64, 3):
        H = {layer.name: np.zeros((net.d_in, *layer.shape)) for layer in net.layers}
        for layer, block in frozen.hypersurfaces(rows=rows):
            H[layer.name][block.rows] += block.dense()
        found.append(H)
    assert pulled == [net.layer("scores").number]
    for name, H in found[0].items():
        assert H.any()
        np.testing.assert_allclose(H, found[1][name], atol=1e-14)


def test_a_small_budget_makes_small_tiles():
    assert len(list(windows.tiles((8, 8, 3), rows=192))) == 9
    assert len(list(windows.tiles((8, 8, 3), rows=12))) == 16
    assert len(list(windows.tiles((8, 8, 3), rows=3))) == 64


@given(
    first=st.integers(0, 9),
    size=st.integers(1, 6),
    taps=st.integers(1, 5),
    stride=st.integers(1, 4),
    kind=st.sampled_from(["SAME", "VALID"]),
)
def test_reach_against_a_for_loop(first, size, taps, stride, kind):
    inputs = 16
    if first + size > inputs:
        first = inputs - size
    before, outputs = primitives.padding_of(inputs, taps, stride, kind)
    reads = {o: range(o * stride - before, o * stride - before + taps) for o in range(outputs)}
    touched = [o for o in reads if any(first <= i < first + size for i in reads[o])]
    found = windows.reach(first, size, taps, stride, before, outputs)
    if not touched:
        assert found is None
        return
    assert found.first == touched[0]
    length = found.before + size + found.after  # what a VALID operation is given
    assert (length - taps) // stride + 1 == touched[-1] - touched[0] + 1
    assert found.first * stride - before == first - found.before  # the first output's first input
