"""The export of a network: read back it is the same network, and a damaged file is refused."""

import hashlib
import json
import warnings

import keras
import numpy as np
import pytest
from hypothesis import given, settings

import adjoint_lib as al
from adjoint_lib.core.equivalent_net import EquivalentNet
from adjoint_lib.core.graph import Graph
from adjoint_lib.explorer.export import FORMAT, packed, read, unpacked
from architectures import build, plans
from reference import float64, image_of, small_net


@settings(max_examples=60)
@given(plans())
def test_a_random_architecture_read_back_is_the_same_network(plan):
    with float64(), warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # a final softmax is dropped
        net = al.equivalent(build(plan))
    again = unpacked(packed(net))
    assert again.digest == net.digest
    assert repr(again.layers) == repr(net.layers) and repr(again.sources) == repr(net.sources)
    x = plan.image()
    expected, found = net.value(x), again.value(x)
    for name, c in expected.items():
        np.testing.assert_allclose(found[name], c, rtol=0, atol=1e-13 * np.abs(c).max())
    keras.backend.clear_session()


@pytest.fixture(scope="module")
def net():
    return small_net()[1]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_what_was_read_back_gives_the_same_units_however_often_it_is_asked(net, dtype):
    """From the second call on, readings are traced as graphs."""
    again, net = unpacked(packed(net)).astype(dtype), net.astype(dtype)
    x = image_of(net).astype(dtype)
    for _ in range(3):
        expected = net.hypersurface(x, "second")[2, 3, 1]
        found = again.hypersurface(x, "second")[2, 3, 1]
        np.testing.assert_array_equal(found.H, expected.H)
        patterns, others = again.freeze(x).patterns, net.freeze(x).patterns
        for found, expected in zip(patterns, others, strict=True):
            assert (found is None) == (expected is None)
            if isinstance(expected, tuple):
                np.testing.assert_array_equal(found[0], expected[0])


def test_float32_numbers_take_half_and_are_the_rounded_ones(net, tmp_path):
    net.export(tmp_path / "wide")
    net.export(tmp_path / "narrow", dtype="float32")
    count = sum(v.size for v in numbers_of(net))
    sizes = [(tmp_path / name).stat().st_size for name in ("wide", "narrow")]
    assert abs(sizes[0] - sizes[1] - 4 * count) <= 8
    again = read(tmp_path / "narrow")
    assert again.dtype.name == "float32"
    for wide, narrow in zip(numbers_of(net), numbers_of(again), strict=True):
        np.testing.assert_array_equal(wide.astype(np.float32), narrow)
    x = image_of(net)
    np.testing.assert_allclose(again(x), net(x), rtol=1e-4, atol=1e-4)


def numbers_of(net):
    for node in net.graph.nodes:
        held = {"values": node.bias.values} if node.is_bias else {}
        held = node.primitive.held if node.primitive is not None else held
        yield from (v for v in held.values() if isinstance(v, np.ndarray))


def test_the_numbers_are_where_the_documentation_says(net):
    """Read by hand: three lines, then flat floats at a multiple of 8 bytes."""
    data = packed(net)
    first, digest, line = data.split(b"\n", 3)[:3]
    start = len(first) + len(digest) + len(line) + 3
    assert first + b"\n" == FORMAT and start % 8 == 0
    graph = json.loads(line)
    assert graph["dtype"] == "float64" and graph["digest"] == net.digest
    (node,) = (
        n
        for n in graph["nodes"]
        if n["name"] == "second" and "primitive" in n and n["primitive"]["kind"] == "Conv"
    )
    array = node["primitive"]["kernel"]
    flat = np.frombuffer(data, "<f8", offset=start)[array["start"] :]
    kernel = net.graph.nodes[net.layer("second").number].operation.kernel
    np.testing.assert_array_equal(flat[: kernel.size], kernel.reshape(-1))


def test_a_file_that_is_damaged_at_any_place_is_refused(net, tmp_path):
    data = packed(net)
    path = tmp_path / "damaged"
    for place in [0, 17, 20, 90, len(data) // 2, len(data) - 1]:
        path.write_bytes(data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :])
        with pytest.raises(al.DataError, match="damaged: "):
            read(path)
    for stop in (0, 40, 100, len(data) - 8):
        path.write_bytes(data[:stop])
        with pytest.raises(al.DataError):
            read(path)
    with pytest.raises(al.DataError, match="found none"):
        read(tmp_path / "nowhere")


def changed(net, change) -> bytes:
    """An export whose JSON was changed by someone who also wrote a new digest."""
    lines = packed(net).split(b"\n", 3)
    graph = json.loads(lines[2])
    change(graph)
    content = json.dumps(graph).encode() + b"\n" + lines[3]
    return FORMAT + hashlib.sha256(content).hexdigest().encode() + b"\n" + content


@pytest.mark.parametrize(
    "change",
    [
        lambda g: g.pop("nodes"),
        lambda g: g.update(dtype="float16"),
        lambda g: g.update(outputs=[1000]),
        lambda g: g["nodes"][-1].update(inputs=[len(g["nodes"]) - 1]),
        lambda g: g["nodes"][0].pop("source"),
        lambda g: first_conv(g).update(kind="No"),
        lambda g: first_conv(g).pop("strides"),
        lambda g: first_conv(g).update(colour="red"),
        lambda g: first_conv(g)["kernel"].update(start=10**9),
        lambda g: first_conv(g)["kernel"].update(start=-1),
    ],
)
def test_a_graph_that_makes_no_sense_is_refused(net, change, tmp_path):
    assert unpacked(changed(net, lambda g: None)).digest == net.digest
    path = tmp_path / "changed"
    path.write_bytes(changed(net, change))
    with pytest.raises(al.DataError, match=r"net\.export"):
        read(path)


def first_conv(graph):
    return next(n["primitive"] for n in graph["nodes"] if "primitive" in n)


def test_another_dtype_and_numbers_beyond_float32_are_refused(tmp_path):
    with pytest.raises(al.InputError, match="float32 or float64, got 'int8'"):
        small_net()[1].export(tmp_path / "net", dtype="int8")
    with float64():
        model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(1, name="d")])
    model.layers[0].set_weights([np.array([[1.0], [1e50], [1.0]]), np.zeros(1)])
    with pytest.raises(al.InputError, match=r"finite in float32, got 1e.50"):
        al.equivalent(model).export(tmp_path / "net", dtype="float32")
    assert not list(tmp_path.iterdir())


def test_a_primitive_of_ones_own_is_refused_by_name(tmp_path):
    class Same(al.primitives.Reshape):
        pass

    graph = Graph()
    graph.outputs = [graph.add("same", Same((3,), (3,)), [graph.image((3,))], (3,))]
    net = EquivalentNet("mine", graph, "float64")
    with pytest.raises(al.UnsupportedLayer, match=r"'same': expected a primitive .* got Same of"):
        net.export(tmp_path / "net")
    with pytest.raises(al.UnsupportedLayer, match="got Same of"):
        net.explorer(np.zeros((1, 3)))
    assert not list(tmp_path.iterdir())
