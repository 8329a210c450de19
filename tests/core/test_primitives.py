"""Every primitive against calculus: its push is a derivative, its pull the adjoint of its push."""

import math

import numpy as np
import pytest
import tensorflow as tf

from adjoint_lib.core import primitives as p
from primitive_cases import CASES, ROWS, concrete, normal

cases = pytest.mark.parametrize("name", CASES)


def test_no_primitive_is_left_out():
    tested = {type(CASES[name][0]) for name in CASES}
    everything, waiting = set(), [p.Primitive]
    while waiting:
        for kind in waiting.pop().__subclasses__():
            waiting.append(kind)
            if kind.__module__ == p.__name__:
                everything.add(kind)
    assert everything - {p.Kernel, p.Choice} == tested


@cases
def test_the_pull_is_the_adjoint_of_the_push(name):
    primitive, point = concrete(name)
    pattern = primitive.freeze(*point)
    u = [tf.constant(normal(*x.shape)) for x in point]
    Ju = primitive.push(pattern, *u)
    w = tf.constant(normal(*Ju.shape))
    left = np.sum(Ju * w)
    right = sum(np.sum(a * b) for a, b in zip(u, primitive.pull(pattern, w), strict=True))
    assert abs(left - right) <= 1e-12 * np.sum(np.abs(Ju * w))


@cases
def test_the_pull_is_the_gradient_of_the_value(name):
    """By an autodiff path that knows no patterns; with adjointness, the push is its derivative."""
    primitive, point = concrete(name)
    with tf.GradientTape() as tape:
        tape.watch(point)
        value = tf.function(primitive.value)(*point)  # eager Conv3D has no gradient
    w = tf.constant(normal(*value.shape))
    expected = tape.gradient(value, point, w, unconnected_gradients="zero")
    found = primitive.pull(primitive.freeze(*point), w)
    for theirs, ours in zip(expected, found, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-12, atol=1e-12)


@cases
def test_the_value_is_the_push_of_the_point_itself(name):
    """Euler: F(v) = J(v) v, without any remainder, constants counted as inputs."""
    primitive, point = concrete(name)
    pushed = primitive.push(primitive.freeze(*point), *point)
    np.testing.assert_allclose(pushed, primitive.value(*point), rtol=1e-12, atol=1e-12)


@cases
@pytest.mark.parametrize("k", [1 / 8, 3.7])
def test_the_pattern_does_not_change_with_scale(name, k):
    primitive, point = concrete(name)
    direction = [tf.constant(normal(*x.shape)) for x in point]
    here = primitive.push(primitive.freeze(*point), *direction)
    there = primitive.push(primitive.freeze(*(k * x for x in point)), *direction)
    np.testing.assert_array_equal(here, there)


@cases
def test_one_pattern_serves_many_rows(name):
    """A pattern with a single row acts on each row as it does on one."""
    primitive, point = concrete(name)
    pattern = primitive.freeze(*(x[:1] for x in point))
    rows = [tf.constant(normal(*x.shape)) for x in point]
    together = primitive.push(pattern, *rows)
    one_by_one = [primitive.push(pattern, *(r[n : n + 1] for r in rows)) for n in range(ROWS)]
    apart = tf.concat(one_by_one, 0)
    np.testing.assert_allclose(together, apart, rtol=1e-12, atol=1e-14)
    back = primitive.pull(pattern, together)
    alone = [primitive.pull(pattern, together[n : n + 1]) for n in range(ROWS)]
    for found, parts in zip(back, zip(*alone, strict=True), strict=True):
        np.testing.assert_allclose(found, tf.concat(parts, 0), rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("leak", [0.0, 0.1, 0.25, float(np.float32(0.1)), -1.0, 2.0])
def test_a_pattern_for_one_pull_has_the_slopes_of_the_pattern(leak):
    """To the bit: of 0.1, TensorFlow's own gradient would keep the eight digits of float32."""
    kink = p.Activation(tf.nn.relu, np.array([leak, 1.0]))
    h = tf.constant([[-2.0, -1e-300, -0.0, 0.0, 1e-300, 2.0]], tf.float64)
    g = tf.constant(normal(*h.shape))
    (once,), (whole,) = (kink.pull(pattern, g) for pattern in (kink.freeze_once(h), kink.freeze(h)))
    assert np.array_equal(once, whole)


@cases
def test_the_absolute_primitive_bounds_the_primitive(name):
    """|J dx| <= |J| |dx| entry by entry, with equality for a one-hot direction."""
    primitive, point = concrete(name)
    pattern = primitive.freeze(*point)
    bounding = p.map_pattern(lambda t: tf.abs(t) if p.is_float_array(t) else t, pattern)
    direction = [tf.constant(normal(*x.shape)) for x in point]
    limit = primitive.absolute().push(bounding, *(tf.abs(d) for d in direction))
    assert np.all(np.abs(primitive.push(pattern, *direction)) <= limit + 1e-12)
    one_hot = [np.zeros(x.shape) for x in point]
    for entry in one_hot:
        entry.reshape(ROWS, -1)[:, 0] = 1.0
        break
    signed = primitive.push(pattern, *(tf.constant(d) for d in one_hot))
    unsigned = primitive.absolute().push(bounding, *(tf.constant(d) for d in one_hot))
    np.testing.assert_allclose(np.abs(signed), unsigned, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("name", [n for n in CASES if isinstance(CASES[n][0], p.Kernel)])
def test_scaling_the_kernel_scales_the_channels(name):
    primitive, shapes, _ = CASES[name]
    x = tf.constant(normal(ROWS, *shapes[0]))
    plain = primitive.cast(tf.float64).push(None, x)
    factor = normal(plain.shape[-1])
    scaled = primitive.scaled(factor).cast(tf.float64).push(None, x)
    np.testing.assert_allclose(scaled, plain * factor, rtol=1e-12, atol=1e-12)
    halved = primitive.scaled(np.array([0.5])).cast(tf.float64).push(None, x)
    np.testing.assert_allclose(halved, plain / 2, rtol=1e-12, atol=1e-12)


def test_convolution_against_a_for_loop():
    """SAME with stride 2 pads asymmetrically: nothing before, one row after, for even sizes."""
    kernel, x = normal(3, 3, 2, 4), normal(1, 6, 6, 2)
    found = p.Conv(kernel, (2, 2), "SAME", (1, 1), 1, (6, 6, 2)).cast(tf.float64).push(None, x)
    padded = np.pad(x[0], ((0, 1), (0, 1), (0, 0)))
    for y in range(3):
        for z in range(3):
            window = padded[2 * y : 2 * y + 3, 2 * z : 2 * z + 3]
            expected = [np.sum(window * kernel[..., i]) for i in range(4)]
            np.testing.assert_allclose(found[0, y, z], expected, rtol=1e-12)


@pytest.mark.parametrize(
    "name", [n for n, (x, *_) in CASES.items() if isinstance(x, p.Conv) and x.groups == 1]
)
def test_the_taps_of_a_convolution_add_up_to_it(name):
    conv, (shape,), _ = CASES[name]
    x = tf.constant(normal(ROWS, *shape))
    expected, reads = conv.push(None, x), dict(conv.taps(x))
    assert set(reads) == set(np.ndindex(conv.kernel.shape[:-2]))
    found = sum(np.asarray(read) @ conv.kernel[tap] for tap, read in reads.items())
    np.testing.assert_allclose(found, expected, atol=1e-12 * np.abs(expected).max())


def test_roundings_count_the_terms_of_a_sum():
    assert CASES["Conv"][0].roundings == 3 * 2 * 4
    assert CASES["Conv in groups"][0].roundings == 3 * 3 * 2
    assert CASES["DepthwiseConv"][0].roundings == 9
    assert CASES["ConvTranspose"][0].roundings == 3 * 3 * 2
    assert CASES["Dense"][0].roundings == 5
    assert CASES["Mean"][0].roundings == math.prod((3, 4)) + 1


def test_roundings_back_count_the_terms_of_a_sum():
    assert CASES["Conv"][0].roundings_back((5, 7, 5)) == 3 * 2 * 5
    assert CASES["Conv in groups"][0].roundings_back((3, 3, 6)) == 3 * 3 * 2
    assert CASES["DepthwiseConv"][0].roundings_back((3, 3, 4)) == 9 * 2
    assert CASES["ConvTranspose"][0].roundings_back((6, 10, 4)) == 3 * 3 * 4
    assert CASES["Dense"][0].roundings_back((3,)) == 3
    assert CASES["Sum"][0].roundings_back((3, 4, 2)) == 3 * 4


@cases
def test_no_sum_has_more_terms_than_roundings_are_counted(name):
    """The terms are counted in an explicit Jacobian: its rows for a push, its columns for a pull.

    A sum of t products meets t roundings on the way of each; without factors, t - 1.
    """
    primitive, point = concrete(name)
    point = [x[:1] for x in point]
    pattern = primitive.freeze(*point)
    shape = primitive.value(*point).shape[1:]
    units = tf.reshape(tf.eye(math.prod(shape), dtype=tf.float64), (-1, *shape))
    parts = [np.reshape(g, (len(units), -1)) for g in primitive.pull(pattern, units)]
    J = np.concatenate(parts, 1) != 0  # (outputs, all inputs)
    factors = np.abs(np.concatenate(parts, 1))[J] != 1
    assert primitive.roundings >= J.sum(1).max() - (not factors.any())
    assert primitive.roundings_back(tuple(shape)) >= J.sum(0).max() - (not factors.any())
