"""Receptive fields against whole maps: the same H, with every kind of layer in between."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given
from hypothesis import strategies as st

import adjoint_lib as al
from adjoint_lib.core import fields, primitives
from adjoint_lib.core.fields import Field, fields_of, pull_rows
from adjoint_lib.core.hypersurface import MODES, pull_units
from primitive_cases import CASES
from reference import random_model
from wirings import WIRINGS

L = keras.layers
WITHOUT = {"transposed", "upsampling", "permuted", "maximum"}  # what does not know fields


@pytest.fixture(autouse=True)
def large_fields(monkeypatch):
    """No field is so large that it is given up: all reach beyond the maps' borders."""
    monkeypatch.setattr(fields, "DENSE", np.inf)


def wired(name, shape=(9, 12, 2)):
    """A network in float64 whose first maps reach its last by this wiring, without a ReLU after."""

    def build():
        x = keras.Input(shape)
        h = WIRINGS[name](L.ReLU()(L.Conv2D(2, 3, padding="same")(x)))
        return keras.Model(x, L.Conv2D(3, 2, padding="same", name="last")(h))

    model = random_model(build)
    return model, al.equivalent(model)


@pytest.mark.parametrize("name", WIRINGS)
def test_units_pulled_in_their_fields_have_the_same_hypersurface(name):
    """Every unit of every layer, against a pull on whole maps; at the borders and inside."""
    _, net = wired(name)
    frozen = net.freeze(np.random.default_rng(0).normal(size=net.input_shape))
    for layer in net.layers:
        units = np.argwhere(np.ones(layer.shape))
        reached = fields_of(net, layer.number)
        found = pull_rows(frozen, layer.number, reached, units).numpy()
        expected = pull_units(frozen, layer, MODES[layer.default_mode], units).numpy()
        np.testing.assert_allclose(found, expected, atol=1e-14 * np.abs(expected).max())
        assert expected.any(1).mean() > 0.5
    assert (reached[0] is None) == (name in WITHOUT)


@pytest.mark.parametrize("name", WIRINGS)
def test_against_a_gradient_tape_over_the_model(name):
    """H_I of each unit of the last layer is the derivative of the model's output by the image."""
    model, net = wired(name, (7, 8, 2))
    x, layer = np.random.default_rng(1).normal(size=net.input_shape), net.layer("last")
    units = np.argwhere(np.ones(layer.shape))
    with tf.GradientTape() as tape:  # unit i of copy i
        copies = tf.constant(np.tile(x, (len(units), 1, 1, 1)))
        tape.watch(copies)
        total = tf.reduce_sum(tf.gather_nd(model(copies), units, batch_dims=1))
    expected = tape.gradient(total, copies).numpy().reshape(len(units), -1)
    H = pull_rows(net.freeze(x), layer.number, fields_of(net, layer.number), units).numpy()
    np.testing.assert_allclose(H[:, : x.size], expected, atol=1e-13 * np.abs(expected).max())


def test_a_field_is_the_receptive_field():
    """A unit of the second of two convolutions reads 5 x 5 pixels, of a strided third 9 x 9."""

    def build():
        x = keras.Input((20, 20, 1))
        h = L.Conv2D(1, 3, padding="same", name="one")(x)
        h = L.Conv2D(1, 3, padding="same", name="two")(h)
        return keras.Model(x, L.Conv2D(1, 5, strides=2, name="three")(h))

    net = al.equivalent(random_model(build))
    two, three = (fields_of(net, net.layer(name).number)[0] for name in ("two", "three"))
    assert (two.stride, two.offset, two.extent) == ((1, 1), (-2, -2), (5, 5))
    assert (three.stride, three.offset, three.extent) == ((2, 2), (-2, -2), (9, 9))


def test_a_field_almost_as_large_as_its_maps_is_given_up(monkeypatch):
    monkeypatch.setattr(fields, "DENSE", 0.8)
    _, net = wired("same", (40, 40, 2))
    assert fields_of(net, net.layers[-1].number)[0].extent == (6, 6)
    _, net = wired("same", (6, 6, 2))
    reached = fields_of(net, net.layers[-1].number)
    assert reached[0] is None and reached[net.layers[-1].number] is not None


def test_a_unit_without_a_position_has_no_field():
    def build():
        x = keras.Input((6, 6, 2))
        return keras.Model(x, L.Dense(3)(L.Flatten()(x)))

    net = al.equivalent(random_model(build))
    assert fields_of(net, net.layers[-1].number) == {}


def test_fewer_entries_pass_and_are_held_than_on_whole_maps():
    from adjoint_lib.core.strategy import entries_below

    _, net = wired("residual", (64, 64, 2))
    last = net.layers[-1].number
    reached = fields_of(net, last)
    assert fields.entries(net, reached) < entries_below(net, last) / 20
    most = max(fields.entries_of(net.nodes[n], field) for n, field in reached.items())
    assert most <= fields.live_entries(net, reached) <= fields.entries(net, reached)


@pytest.mark.parametrize("name", CASES)
def test_every_primitive_on_maps_is_on_fields_what_it_is_on_whole_maps(name):
    """Cotangents at some places of each primitive's output, fields that overhang included."""
    primitive, shapes, constants = CASES[name]
    rng = np.random.default_rng(3)
    primitive = primitive.cast(tf.float64)
    xs = [rng.normal(size=(1, *s)) for s in shapes[: len(shapes) - len(constants)]]
    xs += [np.reshape(c, (1, *s)) for c, s in zip(constants, shapes[len(xs) :], strict=True)]
    out = primitive.value(*map(tf.constant, xs))
    size, pattern = out.shape[1:], primitive.freeze(*map(tf.constant, xs))
    if len(size) != 3 or len(shapes[0]) != 3:
        return
    field = Field((1, 1), (-1, 0), (2, 3), (size[0], size[1]))
    known = fields.before(primitive, field)
    if known is None:
        return
    places = fields.Places(np.argwhere(np.ones(size[:2])))
    inside = places.inside(field).numpy()[..., None]
    values = rng.normal(size=(len(inside), 2, 3, size[2])) * inside
    g = fields.Cotangent(tf.constant(values), field, places)
    expected = primitive.pull(pattern, g.whole())
    found = fields.pull(primitive, pattern, g)
    for part, whole, of in zip(found, expected, known, strict=True):
        if of is not None:
            part = fields.Cotangent(part, of, places).whole()
        np.testing.assert_allclose(part, whole, atol=1e-13)


@given(
    extent=st.integers(1, 5),
    taps=st.integers(1, 5),
    stride=st.integers(1, 4),
    size=st.integers(5, 12),
    kind=st.sampled_from(["SAME", "VALID"]),
)
def test_the_field_below_a_sliding_operation_against_a_for_loop(extent, taps, stride, size, kind):
    before, outputs = primitives.padding_of(size, taps, stride, kind)
    above = Field((1, 1), (0, 0), (extent, extent), (outputs, outputs))
    below = above.spread((taps, taps), (stride, stride), kind, (size, size))
    for unit in range(outputs):
        read = [o * stride - before + t for o in range(unit, unit + extent) for t in range(taps)]
        first = unit * below.stride[0] + below.offset[0]
        assert (first, first + below.extent[1]) == (min(read), max(read) + 1)
