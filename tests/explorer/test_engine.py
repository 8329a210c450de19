"""The engine in JavaScript against Python: the same numbers to rounding, in every mode.

A unit's rounding scale A says what rounding is: |difference| <= 1e-12 A in float64. Where entries
tie, or a pre-activation is zero to rounding, the two may freeze different patterns, each right for
its own sums; H is then not compared entry by entry, but c and <v | H> always are.
"""

from __future__ import annotations

import hashlib
import itertools
import warnings
from dataclasses import fields

import keras
import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from javascript import javascript
from py_mini_racer import JSEvalException

import adjoint_lib as al
from adjoint_lib.core import primitives as p
from adjoint_lib.core.equivalent_net import EquivalentNet
from adjoint_lib.core.error_bounds import rounding_scale, roundings, roundings_back
from adjoint_lib.core.graph import Graph
from adjoint_lib.core.hypersurface import MODES
from adjoint_lib.explorer.bundle import base64_of
from adjoint_lib.explorer.export import FORMAT, packed
from architectures import build, plans
from primitive_cases import CASES, concrete
from reference import float64, image_of, small_net

EXACT = 1e-12
U32 = 2.0**-24


@pytest.fixture(scope="module")
def js():
    with javascript() as found:
        yield found


# ------------------------------------------------------------------ primitives

cases = pytest.mark.parametrize("name", CASES)


def kinds_below(kind: type) -> set[type]:
    """The library's primitives of this kind; a test or a user may have made others."""
    own = [child for child in kind.__subclasses__() if child.__module__ == p.__name__]
    return {k for child in own for k in ({child} | kinds_below(child))}


def test_every_primitive_has_a_twin_with_the_same_fields(js):
    twins = js("Object.fromEntries(Object.entries(adjoint.KINDS).map(([n, k]) => [n, k.fields]))")
    ours = {
        kind.__name__: [f.name for f in fields(kind) if f.name != "function"]
        for kind in kinds_below(p.Primitive)
        if not kinds_below(kind)  # those that have some are kinds of primitives
    }
    assert twins == ours
    assert js("Object.entries(adjoint.KINDS).every(([n, k]) => n === k.name)")


def load_alone(js, name: str, dtype: str) -> list[tuple[int, ...]]:
    """Put a case's primitive into JavaScript as `it`; returns the shapes of its inputs."""
    primitive, shapes, _ = CASES[name]
    graph = Graph()
    inputs = [graph.image(shapes[0])]
    inputs += [graph.source(f"x{n}", "", np.zeros(s)) for n, s in enumerate(shapes[1:])]
    out = primitive.cast(tf.float64).value(*(tf.zeros((1, *s), tf.float64) for s in shapes))
    graph.outputs = [graph.add("it", primitive, inputs, tuple(out.shape[1:]))]
    js.load(EquivalentNet("alone", graph, "float64"), dtype)
    js.run("var it = net.nodes.at(-1).primitive")
    return shapes


def compared(js, name: str, point: list, dtype: str):
    """(what, found in JavaScript, expected, largest) of a primitive's readings at a point."""
    primitive, _ = concrete(name)
    load_alone(js, name, dtype)
    rng = np.random.default_rng(3)
    directions = [rng.normal(size=x.shape) for x in point]
    pattern = primitive.freeze(*point)
    value = primitive.value(*point)
    g = rng.normal(size=value.shape)
    js.run("var tensors = (xs) => xs.map((x) => new net.Tensor(x))")
    xs, dxs = ([np.reshape(x, -1).tolist() for x in each] for each in (point, directions))
    js.run(
        f"var xs = tensors({xs}); var pattern = it.freeze(...xs); var dxs = tensors({dxs}); "
        f"var g = new net.Tensor({g.reshape(-1).tolist()})"
    )
    plain, absolute = "it", "it.absolute()"
    for what, reading, expected in (
        ("value", "{}.value(...xs)", value),
        ("push", "{}.push(pattern, ...dxs)", primitive.push(pattern, *directions)),
    ):
        largest = js(
            f"{absolute}.push(pattern, ...{'xs' if what == 'value' else 'dxs'}"
            ".map((x) => x.map(Math.abs)))"
        )
        yield what, js(reading.format(plain)), expected, largest
    found = js("it.pull(pattern, g)")
    largest = js(f"{absolute}.pull(pattern, g.map(Math.abs))")
    for f, e, most in zip(found, primitive.pull(pattern, tf.constant(g)), largest, strict=True):
        yield "pull", f, e, most


def check_primitive(js, name: str, point: list, dtype: str = "float64", limit: float = EXACT):
    for what, found, expected, largest in compared(js, name, point, dtype):
        expected = np.reshape(expected, -1)
        assert len(found) == expected.size, what
        assert np.all(np.abs(found - expected) <= limit * np.array(largest)), what


def first_row(point: list) -> list:
    return [x[:1] for x in point]


@cases
def test_the_four_readings_are_those_of_python(js, name):
    check_primitive(js, name, first_row(concrete(name)[1]))


@cases
def test_ties_are_broken_as_in_python(js, name):
    """Small whole numbers: many zeros, many equal entries in a window."""
    _, point = concrete(name)
    free = len(point) - len(CASES[name][2])
    rounded = [tf.round(x / 6) if n < free else x for n, x in enumerate(first_row(point))]
    check_primitive(js, name, rounded)


@cases
def test_the_readings_in_float32_are_rounded_ones(js, name):
    _, point = concrete(name)
    narrow = [tf.cast(tf.cast(x, tf.float32), tf.float64) for x in first_row(point)]
    primitive, _ = concrete(name)
    shape = tuple(primitive.value(*narrow).shape[1:])
    n = max(primitive.roundings, primitive.roundings_back(shape)) + 3  # and the numbers given
    check_primitive(js, name, narrow, "float32", n * U32)


@cases
def test_the_pull_is_the_adjoint_of_the_push(js, name):
    """In JavaScript alone: <J u, w> = <u, J* w>."""
    _, point = concrete(name)
    for _ in compared(js, name, first_row(point), "float64"):
        pass
    left, right, most = js(
        "[adjoint.inner(it.push(pattern, ...dxs), g), "
        "it.pull(pattern, g).reduce((sum, part, n) => sum + adjoint.inner(part, dxs[n]), 0), "
        "adjoint.inner(it.absolute().push(pattern, ...dxs.map((x) => x.map(Math.abs))), "
        "g.map(Math.abs))]"
    )
    assert abs(left - right) <= EXACT * most


@cases
def test_roundings_are_counted_as_in_python(js, name):
    primitive, point = concrete(name)
    load_alone(js, name, "float64")
    shape = tuple(primitive.value(*point).shape[1:])
    assert js("[it.roundings, it.roundings_back]") == [
        primitive.roundings,
        primitive.roundings_back(shape),
    ]
    if isinstance(primitive, p.Activation):
        assert js("it.jumps") == primitive.jumps


# ------------------------------------------------------------------ random architectures


examples = itertools.count(1)


@settings(max_examples=40)
@given(plans())
def test_a_random_architecture_is_the_same_network(js, plan):
    with float64(), warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # a final softmax is dropped
        net = al.equivalent(build(plan))
    js.load(net)
    check_tables(js, net)
    check_units(js, net, plan.image(), np.random.default_rng(plan.seed))
    if next(examples) % 20 == 0:
        keras.backend.clear_session()


def check_tables(js, net) -> None:
    """Names, shapes, x_b, sources and layers, and how many roundings a path has."""
    assert js("[net.name, net.digest, net.outputs, net.d_in, net.x_b, net.input_shape]") == [
        *(net.name, net.digest, net.graph.outputs, net.d_in, net.x_b.tolist()),
        list(net.input_shape),
    ]
    keys = ["name", "origin", "start", "stop", "shape", "node"]
    assert js("net.sources") == [{k: plain(getattr(s, k)) for k in keys} for s in net.sources]
    keys = "name kind kernel strides shape channels number reads modes default_mode".split()
    assert js("net.layers.map(({bias, ...layer}) => layer)") == [
        {k: plain(getattr(layer, k)) for k in keys} for layer in net.layers
    ]
    slices = [None if x.bias is None else [x.bias.start, x.bias.stop] for x in net.layers]
    assert js("net.layers.map((layer) => layer.bias)") == slices
    counts = "[adjoint.roundings(net, layer), adjoint.roundings_back(net, layer)]"
    assert js(f"net.layers.map((layer) => {counts})") == [
        [roundings(net, layer), roundings_back(net, layer)] for layer in net.layers
    ]


def plain(value):
    return list(value) if isinstance(value, tuple) else value


def check_units(js, net, x, rng) -> None:
    """All values and scales; a unit of each layer in each mode: H, what each source gives."""
    frozen = net.freeze(x)
    values, scales = net.value(x), rounding_scale(frozen, net.layers)
    js.run(f"var image = {x.reshape(-1).tolist()}; var frozen = net.freeze(image)")
    found = js("net.value(image)")
    A_of = "adjoint.finish(adjoint.rounding_scale(frozen, layer.number))"
    A_found = js(f"net.layers.map((layer) => {A_of})")
    js.run(SHOWN)
    same = js("shown") == [shown(pattern) for pattern in frozen.patterns]
    for layer, A_js in zip(net.layers, A_found, strict=True):
        c, A = values[layer.name][0].numpy(), scales[layer.name][0]
        assert np.all(np.abs(np.reshape(found[layer.name], layer.shape) - c) <= EXACT * A)
        if same:
            np.testing.assert_allclose(np.reshape(A_js, layer.shape), A, rtol=1e-12)
        for mode in layer.modes:
            check_unit(js, net, frozen, layer, mode, x, rng, same)


def check_unit(js, net, frozen, layer, mode, x, rng, same) -> None:
    index = [int(rng.integers(n)) for n in MODES[mode].shape(layer)]
    unit = js("frozen.hypersurface(layer, mode, index)", layer=layer.name, mode=mode, index=index)
    what, A = f"{layer.name} {mode} {index}", EXACT * unit["scale"]
    units = frozen.hypersurface(layer.name, mode)[tuple(index)]
    assert abs(unit["value"] - unit["network_value"]) <= A, what
    assert abs(unit["value"] - float(units.value)) <= A, what
    assert unit["sources"] == units.sources
    assert abs(sum(unit["contributions"]) - unit["value"]) <= A, what
    check_way_back(unit, layer, A)
    H = np.array(unit["image"] + unit["bias"])
    v = np.concatenate([x.reshape(-1), net.x_b])
    assert abs(H @ v - unit["value"]) <= A, what
    shown = np.zeros(net.input_shape, bool)
    shown[tuple(slice(*ends) for ends in unit["receptive_field"])] = True
    assert not H[: x.size][~shown.reshape(-1)].any(), f"{what}: H outside its receptive field"
    if same:
        A_H = np.abs(H) @ np.abs(v)
        assert np.all(
            np.abs(H - units.H) <= 1e-10 * np.abs(units.H).max(initial=0) + 1e-13 * unit["scale"]
        )
        assert unit["scale"] * (1 + EXACT) >= A_H, what
        assert np.all(np.abs(unit["contributions"] - units.contributions) <= A), what


def check_way_back(unit, layer, A) -> None:
    """The two parts add up to the unit at each depth; at x they are those of the image and x_b."""
    stops = unit["way_back"]
    numbers = [stop["number"] for stop in stops]
    assert numbers == sorted(set(numbers), reverse=True)
    assert (numbers[0], numbers[-1]) == (layer.reads, 0)
    for stop in stops:
        assert len(stop["gives"]) == np.prod(stop["shape"])
        assert abs(sum(stop["gives"]) - stop["here"]) <= A
        assert abs(stop["here"] + stop["biases"] - unit["value"]) <= A
    assert stops[0]["biases"] == 0
    assert abs(stops[-1]["here"] - unit["contributions"][0]) <= A


def shown(pattern) -> list | None:
    """A pattern of Python as `SHOWN` shows one of JavaScript: slopes, or choices."""
    if pattern is None:
        return None
    if isinstance(pattern, tuple):
        slope, weights = pattern
        return [np.reshape(each, -1).tolist() for each in (slope, *weights)]
    chosen = np.argmax(pattern, 0) if isinstance(pattern, list) else pattern
    return np.reshape(chosen, -1).tolist()


SHOWN = """
var shown = frozen.patterns.map((pattern, number) => {
  const { primitive } = net.nodes[number];
  if (!(primitive instanceof adjoint.Activation)) return pattern;
  const ones = (of) => primitive.shapes.map((shape, n) =>
    new net.Tensor(adjoint.product(shape)).fill(Number(n === of)));
  return primitive.shapes.map((_, of) => primitive.push(pattern, ...ones(of)));
})
"""


# ------------------------------------------------------------------ precision, k, trained networks


@pytest.fixture(scope="module")
def net():
    return small_net()[1]


def freeze(js, net, x, k: float = 1 / 8, dtype: str = "float64", numbers: str = "float64") -> None:
    js.load(net, dtype, numbers)
    js.run(f"var frozen = net.freeze({np.reshape(x, -1).tolist()}, {k})")


def units_of(js, net, rng, layers=None, per_mode: int = 1):
    """(layer, mode, index, what JavaScript says) of random units of these layers, in every mode."""
    for layer in layers or net.layers:
        for mode in [m for m in layer.modes for _ in range(per_mode)]:
            index = [int(rng.integers(n)) for n in MODES[mode].shape(layer)]
            asked = {"layer": layer.name, "mode": mode, "index": index}
            yield layer, mode, index, js("frozen.hypersurface(layer, mode, index)", **asked)


@settings(max_examples=15)
@given(plans())
def test_a_random_architecture_in_float32_is_within_the_bound(js, plan):
    with float64(), warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        net = al.equivalent(build(plan)).astype("float32")
    x = plan.image().astype("float32")
    freeze(js, net, x, dtype="float32", numbers="float32")
    for layer, mode, index, unit in units_of(js, net, np.random.default_rng(plan.seed)):
        error = abs(unit["value"] - unit["network_value"])
        assert unit["roundoff"] == U32
        assert error <= unit["bound"] * U32 * unit["scale"], (layer.name, mode, index)


@pytest.mark.parametrize("seed", range(5))
def test_the_patterns_are_those_of_python(js, net, seed):
    x = image_of(net, seed)
    freeze(js, net, x)
    js.run(SHOWN)
    assert js("shown") == [shown(pattern) for pattern in net.freeze(x).patterns]


@pytest.mark.parametrize("k", [1.0, 0.1, 3.0, 1e-30, 2.0**40])
def test_any_k_gives_the_same_hypersurface(js, net, k):
    x = image_of(net)
    freeze(js, net, x, k)
    for layer, mode, index, unit in units_of(js, net, np.random.default_rng(1)):
        H = net.hypersurface(x, layer.name, mode)[tuple(index)].H
        np.testing.assert_allclose(unit["image"] + unit["bias"], H, rtol=0, atol=1e-12)


def test_k_flips_a_pattern_where_python_flips_it(js):
    """1/10 is no power of two: z is rounded, and an entry at zero to rounding may change sides."""
    model = keras.Sequential(
        [
            keras.Input((2,), dtype="float32"),
            keras.layers.Dense(1, activation="relu", name="hidden", dtype="float32"),
            keras.layers.Dense(1, name="out", dtype="float32"),
        ]
    )
    near = np.array([[1.0], [-1.0]])
    model.set_weights([near, np.zeros(1), np.ones((1, 1)), np.zeros(1)])
    net = al.equivalent(model)
    rng, differing = np.random.default_rng(0), 0
    for _ in range(40):
        base = np.float32(rng.uniform(0.5, 2))
        x = np.array([np.nextafter(base, np.float32(9)), base], np.float32)
        for k in (1 / 8, 0.1, 0.3):
            freeze(js, net, x, k, "float32", "float32")
            (expected,) = (q for q in net.freeze(x, k).patterns if q is not None)
            (found,) = js("frozen.patterns.filter((q) => q !== null)")
            assert found == expected[0].numpy().reshape(-1).tolist()
            differing += found == [0]
    assert 0 < differing < 80


@pytest.mark.parametrize("name", ["vgg7", "resnet20", "resnet20-fixup"])
def test_units_of_the_trained_networks(js, name):
    model = al.models.MODELS[name](weights="cifar10")
    image, _ = al.data.sample("cifar10")
    x = al.models.preprocess(name, image[3:4])[0]
    net = al.equivalent(model)
    some = [net.layers[n] for n in (0, len(net.layers) // 2, -1)]
    freeze(js, net, x, numbers="float64")
    wide = net.astype("float64")
    scales = rounding_scale(wide.freeze(x), net.layers)
    for layer, mode, index, unit in units_of(js, net, np.random.default_rng(0), some):
        assert abs(unit["value"] - unit["network_value"]) <= EXACT * unit["scale"]
        if mode == layer.default_mode:
            np.testing.assert_allclose(
                unit["scale"], scales[layer.name][0][tuple(index)], rtol=1e-12
            )
            H = wide.hypersurface(x, layer.name)[tuple(index)]
            assert abs(H.value - unit["value"]) <= EXACT * unit["scale"]
            np.testing.assert_allclose(unit["contributions"], H.contributions, atol=1e-8)
    freeze(js, net, x, dtype="float32", numbers="float32")
    c = net.value(x)
    for layer, mode, index, unit in units_of(js, net, np.random.default_rng(0), some):
        limit = unit["bound"] * U32 * unit["scale"]
        assert abs(unit["value"] - unit["network_value"]) <= limit
        if mode == layer.default_mode:
            assert abs(unit["value"] - float(c[layer.name][(0, *index)])) <= 2 * limit


def test_one_class_against_another_is_the_difference(js, net):
    freeze(js, net, image_of(net))
    ask = "frozen.hypersurface('out', 'RM0', [2], against)"
    both, one = js(ask, against=[0]), js(ask, against=None)
    other = js("frozen.hypersurface('out', 'RM0', [0])")
    for key in ("value", "network_value"):
        assert both[key] == pytest.approx(one[key] - other[key], abs=1e-12 * both["scale"])
    for key in ("image", "bias", "contributions"):
        np.testing.assert_allclose(both[key], np.subtract(one[key], other[key]), atol=1e-12)
    assert both["scale"] == pytest.approx(one["scale"] + other["scale"])


@pytest.mark.parametrize("name", ["vgg7", "resnet20"])
def test_on_the_way_back_each_layers_biases_join(js, name):
    """From a depth on, the biases give what the sources that join after it do."""
    net = al.equivalent(al.models.MODELS[name](weights="cifar10")).astype("float64")
    x = al.data.sample("cifar10")[0][3].astype(float)
    freeze(js, net, x)
    layer = net.layers[-1]
    unit = js("frozen.hypersurface(layer, 'RM0', [3])", layer=layer.name)
    units = net.hypersurface(x, layer.name)[3]
    given = dict(zip([s.node for s in net.sources], units.contributions[1:], strict=True))
    reads = {layer.reads for layer in net.layers}
    numbers = {stop["number"] for stop in unit["way_back"]}
    assert numbers == reads if name == "vgg7" else numbers < reads  # shortcuts go around some
    for stop in unit["way_back"]:
        after = sum(c for node, c in given.items() if node > stop["number"])
        assert abs(stop["biases"] - after) <= EXACT * unit["scale"]


def test_the_receptive_field_is_no_larger_than_it_must_be(js):
    """Ones as weights, no ReLU shut: whatever the box holds can be seen in H."""
    layers = keras.layers
    with float64():
        model = keras.Sequential(
            [
                keras.Input((12, 13, 1)),
                layers.ZeroPadding2D(((1, 0), (0, 2))),
                layers.Conv2D(2, 3, strides=2, padding="same", activation="relu", name="first"),
                layers.Conv2DTranspose(2, 2, strides=2, name="up"),
                layers.AveragePooling2D(2),
                layers.Cropping2D(((1, 0), (0, 1))),
                layers.Conv2D(1, (2, 1), dilation_rate=(2, 1), name="last"),
            ]
        )
    model.set_weights([np.ones_like(w) for w in model.get_weights()])
    net = al.equivalent(model)
    freeze(js, net, np.ones(net.input_shape))
    for layer, mode, index, unit in units_of(js, net, np.random.default_rng(2), per_mode=6):
        if mode in ("RM2", "RM4"):
            seen = np.argwhere(np.reshape(unit["image"], (12, 13)))
            if not len(seen):  # it reads nothing but zeros around the image
                assert unit["receptive_field"] == [[0, 0], [0, 0]]
                continue
            box = [[int(a), int(b) + 1] for a, b in zip(seen.min(0), seen.max(0), strict=True)]
            assert unit["receptive_field"] == box, (layer.name, mode, index)


def test_the_receptive_field_of_a_series_is_as_narrow(js):
    """Its pooling is that of maps with one row, between two reshapes."""
    layers = keras.layers
    with float64():
        model = keras.Sequential(
            [
                keras.Input((40, 2)),
                layers.Conv1D(2, 3, strides=2, activation="relu"),
                layers.MaxPooling1D(2),
                layers.Conv1D(1, 2, name="last"),
            ]
        )
    model.set_weights([np.ones_like(w) for w in model.get_weights()])
    net = al.equivalent(model)
    freeze(js, net, np.random.default_rng(0).uniform(1, 2, net.input_shape))
    for index in (0, 3, 7):
        unit = js("frozen.hypersurface('last', 'RM2', [index, 0])", index=index)
        assert unit["receptive_field"] == [[4 * index, 4 * index + 9]]  # 2 (2 i + 3) + 3 from 4 i
        seen = np.argwhere(np.reshape(unit["image"], (40, 2)))[:, 0]
        assert seen.min() >= 4 * index and seen.max() < 4 * index + 9


# ------------------------------------------------------------------ refusals


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ("net.freeze([1, 2])", "InputError: expected an image of 8 x 7 x 2 = 112 numbers, got 2"),
        ("net.freeze(image.map(() => NaN))", "InputError: expected finite numbers .* got NaN"),
        ("net.freeze(image, 0)", "InputError: expected a finite k > 0"),
        ("frozen.hypersurface('secnd', 'RM2', [0, 0, 0])", "InputError: unknown layer .*second"),
        ("frozen.hypersurface('out', 'RM2', [0])", "InputError: mode RM2 does not fit .*RM0"),
        (
            "frozen.hypersurface('second', 'RM2', [0, 0])",
            "InputError: expected an index into units",
        ),
        ("frozen.hypersurface('second', 'RM2', [0, 0, 5])", "InputError: .* shape 4,4,5"),
        ("frozen.hypersurface('second', 'RM4', [0, 0, -1, 0])", "InputError: expected an index"),
        ("adjoint.unpacked(Uint8Array.of(1, 2, 3))", "DataError: expected a file that begins"),
        ("adjoint.unpacked(bytes, 'int8')", "InputError: expected dtype float32 or float64"),
    ],
)
def test_what_does_not_fit_is_refused_with_a_reason(js, net, asked, message):
    freeze(js, net, image_of(net))
    js.run(f'var image = Array(112).fill(0.5); var bytes = adjoint.bytes_of("{base64_of(net)}")')
    with pytest.raises(JSEvalException, match=message):
        js.run(asked)


def rewritten(net, before: bytes, after: bytes) -> list[int]:
    """An export with a change in its JSON, by someone who also wrote a new digest."""
    _, _, content = packed(net).split(b"\n", 2)
    assert content.count(before) == 1
    content = content.replace(before, after)
    return list(FORMAT + hashlib.sha256(content).hexdigest().encode() + b"\n" + content)


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        (b"MaxPool", b"MinPool", "DataError: .* got MinPool with .* at node 'pool'"),
        (b'"window"', b'"windov"', "DataError: .* got MaxPool with .*windov"),
        (b'"start":0,', b'"start":9999,', "DataError: expected .* numbers or more"),
    ],
)
def test_what_the_engine_does_not_know_is_refused(js, net, before, after, message):
    with pytest.raises(JSEvalException, match=message):
        js(
            "adjoint.unpacked(Uint8Array.from(bytes)).name",
            bytes=rewritten(net, before, after),
        )


@pytest.mark.parametrize("place", [20, 90, 2500, -1])
def test_a_damaged_export_is_refused(js, net, place):
    data = list(packed(net))
    data[place] ^= 1
    with pytest.raises(JSEvalException, match="DataError: the content does not have the digest"):
        js("adjoint.unpacked(Uint8Array.from(bytes)).name", bytes=data)


@pytest.mark.parametrize("length", [0, 3, 55, 56, 63, 64, 65, 1000])
def test_the_digest_is_sha_256(js, length):
    data = np.random.default_rng(length).integers(0, 256, length, np.uint8)
    found = js("adjoint.sha256(Uint8Array.from(bytes))", bytes=data)
    assert found == hashlib.sha256(data.tobytes()).hexdigest()


def test_an_image_that_overflows_is_refused(js, net):
    js.load(net, "float32")
    with pytest.raises(JSEvalException, match="InputError: 'first' overflows float32"):
        js.run("net.freeze(Array(112).fill(3e38))")
