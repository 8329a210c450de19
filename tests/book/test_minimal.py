"""The theory in one file agrees with an explicit Jacobian, plain loops and the library."""

import ast
import itertools
import re
import subprocess
import sys

import keras
import numpy as np
import pytest

import adjoint_lib as al
from adjoint_book import minimal
from reference import float64
from repository import ROOT, text

FILE = "book/adjoint_book/minimal.py"
MODES = ["RM1", "RM2", "RM3", "RM4"]
KINDS = list(itertools.product([0, 1, 2], [0.0, 0.2]))  # seed and slope


def random_net(seed: int, slope: float) -> tuple[minimal.Net, np.ndarray]:
    """Two convolutions with unequal odd sides and a head; with seed 2, a third convolution."""
    draw = np.random.default_rng(seed).normal
    shapes = [(3, 5, 2, 3), (1, 3, 3, 4), (5, 3, 4, 2)][: 3 if seed == 2 else 2]
    shapes.append((1, 1, 4 * 5 * shapes[-1][-1], 3))
    w, b = [draw(size=s) for s in shapes], [draw(size=s[-1]) for s in shapes]
    return minimal.Net((4, 5), w, b, slope), draw(size=(4, 5, 2))


def v_of(net: minimal.Net, x: np.ndarray) -> np.ndarray:
    return np.concatenate([x.ravel(), *net.b])


def loop_products(F: np.ndarray, w: np.ndarray) -> np.ndarray:
    """C[y, x, j, i] by the definition of a convolution, one product at a time."""
    (height, width, _), (A, B, c_in, c_out) = F.shape, w.shape
    C = np.zeros((height, width, c_in, c_out))
    sizes = (height, width, *w.shape)
    for y, x, a, b, j, i in itertools.product(*map(range, sizes)):
        row, column = y + a - A // 2, x + b - B // 2
        if 0 <= row < height and 0 <= column < width:
            C[y, x, j, i] += F[row, column, j] * w[a, b, j, i]
    return C


def loop_network(net: minimal.Net, v: np.ndarray, on: list | None = None) -> tuple[list, list]:
    """The products C of every layer at v, and which ReLUs are on; given `on`, those instead."""
    height, width = net.size
    ends = np.cumsum([height * width * net.w[0].shape[2], *(b.size for b in net.b)])
    F, *biases, _ = np.split(v, ends)
    F, products, found = F.reshape(height, width, -1), [], []
    for n, (w, b) in enumerate(zip(net.w, biases, strict=True)):
        if n == len(net.w) - 1:
            products.append((F.reshape(-1, 1) * w[0, 0])[None, None])
            return products, found
        products.append(loop_products(F, w))
        z = products[-1].sum(2) + b
        found.append(z > 0 if on is None else on[n])
        F = np.where(found[-1], z, net.slope * z)
    raise AssertionError("a network ends in a head")


def in_mode(C: np.ndarray, mode: str) -> np.ndarray:
    """The units of a mode as sums of C (..., y, x, j, i), axis by axis."""
    if mode in ("RM0", "RM1", "RM2"):
        C = C.sum(-2, keepdims=True)
    if mode in ("RM0", "RM1", "RM3"):
        C = C.sum(-4, keepdims=True).sum(-3, keepdims=True)
    taken = {"RM0": [-4, -3, -2], "RM1": [-4, -3, -2], "RM2": [-2], "RM3": [-4, -3], "RM4": []}
    return np.squeeze(C, tuple(taken[mode]))


def modes_of(net: minimal.Net, layer: int) -> list[str]:
    return ["RM0"] if layer == len(net.w) - 1 else MODES


def close(found: np.ndarray, expected: np.ndarray) -> None:
    """Equal to 1e-12 of the largest entry."""
    assert np.shape(found) == np.shape(expected)
    assert np.abs(expected).max() > 0
    assert np.abs(found - expected).max() <= 1e-12 * np.abs(expected).max()


def test_it_is_short_and_needs_only_numpy():
    source = text(FILE)
    assert len(source.splitlines()) <= 150
    imported = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            imported |= {name.name.split(".")[0] for name in node.names}
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0
            imported.add(node.module.split(".")[0])
    assert "numpy" in imported
    assert imported - {"numpy"} <= sys.stdlib_module_names


def test_every_definition_has_its_prose():
    tree = ast.parse(text(FILE))
    defined = [n for n in ast.walk(tree) if isinstance(n, (ast.FunctionDef, ast.ClassDef))]
    assert len(defined) > 8
    assert [n.name for n in defined if not ast.get_docstring(n)] == []


@pytest.mark.parametrize(("seed", "slope"), KINDS)
def test_the_forward_pass_is_that_of_plain_loops(seed, slope):
    net, x = random_net(seed, slope)
    expected, _ = loop_network(net, v_of(net, x))
    for layer, F in enumerate(net.read(v_of(net, x))):
        for mode in modes_of(net, layer):
            found = minimal.units(F, net.w[layer], mode)
            close(found, in_mode(expected[layer], mode))


@pytest.mark.parametrize(("seed", "slope"), KINDS)
def test_every_H_is_a_row_of_the_explicit_jacobian(seed, slope):
    net, x = random_net(seed, slope)
    v = v_of(net, x)
    J, (_, on) = net.freeze(v / 8), loop_network(net, v)
    assert any(p.any() and not p.all() for p in on)
    columns = [loop_network(net, e, on)[0] for e in np.eye(v.size)]
    for layer, w in enumerate(net.w):
        jacobian = np.stack([C[layer] for C in columns])  # (d_in, y, x, j, i)
        pushed = np.stack([J.push(e, layer) for e in np.eye(v.size)])
        through = np.stack([minimal.units(F, w, modes_of(net, layer)[-1]) for F in pushed])
        close(through, in_mode(jacobian, modes_of(net, layer)[-1]))
        for mode in modes_of(net, layer):
            expected = in_mode(jacobian, mode)
            found = [J.H(layer, mode, unit) for unit in np.ndindex(expected.shape[1:])]
            close(np.stack(found, 1).reshape(expected.shape), expected)


@pytest.mark.parametrize("k", [1 / 8, 3.7])
@pytest.mark.parametrize(("seed", "slope"), KINDS)
def test_every_unit_is_an_inner_product_with_the_input(seed, slope, k):
    net, x = random_net(seed, slope)
    assert minimal.check(net, x, k) < 1e-12


def test_the_check_sees_a_wrong_hypersurface(monkeypatch):
    net, x = random_net(0, 0.2)
    right = minimal.Frozen.H

    def wrong(self, layer, mode, unit):
        H = right(self, layer, mode, unit)
        return H + (1e-6 if (layer, mode) == (1, "RM3") and unit == (2, 3) else 0)

    monkeypatch.setattr(minimal.Frozen, "H", wrong)
    assert minimal.check(net, x) > 1e-9


def test_the_pattern_is_that_of_the_point_not_of_the_direction():
    net, x = random_net(1, 0.2)
    v = v_of(net, x)
    J, dv = net.freeze(v), np.random.default_rng(5).normal(size=v.size)
    for layer in range(len(net.w)):
        close(J.push(-2 * dv, layer), -2 * J.push(dv, layer))
        close(J.push(v, layer), net.read(v)[layer])
    assert np.abs(net.read(-v)[2] + net.read(v)[2]).max() > 0.1  # the network itself is not linear


@pytest.mark.parametrize(("seed", "slope"), KINDS)
def test_pull_is_the_adjoint_of_push(seed, slope):
    net, x = random_net(seed, slope)
    v, draw = v_of(net, x), np.random.default_rng(9).normal
    J = net.freeze(v)
    for layer, shape in enumerate(net.shapes):
        dv, g = draw(size=v.size), draw(size=shape)
        pushed, pulled = J.push(dv, layer), J.pull(g, layer)
        size = np.linalg.norm(pushed) * np.linalg.norm(g)
        assert abs(np.vdot(pushed, g) - dv @ pulled) <= 1e-13 * size


def as_keras(net: minimal.Net) -> keras.Model:
    """The same network in Keras, in float64: layers c0, c1, ... and the head."""
    layers, last = keras.layers, len(net.w) - 1
    with float64():
        model = keras.Sequential([keras.Input((*net.size, net.w[0].shape[2]))])
        for n, w in enumerate(net.w[:-1]):
            model.add(layers.Conv2D(w.shape[3], w.shape[:2], padding="same", name=f"c{n}"))
            model.add(layers.LeakyReLU(negative_slope=net.slope) if net.slope else layers.ReLU())
        model.add(layers.Flatten())
        model.add(layers.Dense(net.w[-1].shape[3], name=f"c{last}"))
    for n, (w, b) in enumerate(zip(net.w, net.b, strict=True)):
        model.get_layer(f"c{n}").set_weights([w[0, 0] if n == last else w, b])
    return model


# TensorFlow rounds a leaky slope to float32, which leaves 0.25 as it is.
@pytest.mark.parametrize(("seed", "slope"), [(0, 0.0), (2, 0.25)])
def test_the_library_finds_the_same(seed, slope):
    net, x = random_net(seed, slope)
    model = as_keras(net)
    whole = al.equivalent(model)
    np.testing.assert_array_equal(whole.x_b, net.x_b)
    J = net.freeze(v_of(net, x) / 8)
    scores = minimal.units(net.read(v_of(net, x))[-1], net.w[-1], "RM0") + net.b[-1]
    close(model(keras.ops.convert_to_tensor(x[None], "float64")).numpy()[0], scores)
    for layer in range(len(net.w)):
        assert whole.layer(f"c{layer}").modes == tuple(modes_of(net, layer))
        for mode in modes_of(net, layer):
            expected = whole.hypersurface(x, f"c{layer}", mode)[...].H
            found = [J.H(layer, mode, unit) for unit in np.ndindex(expected.shape[:-1])]
            close(np.reshape(found, expected.shape), expected)


def test_the_script_says_what_it_found():
    command = [sys.executable, "-W", "error", str(ROOT / FILE)]
    run = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert run.returncode == 0, run.stderr
    sizes, forward, inner, error = run.stdout.splitlines()
    assert sizes == "H has 101 entries: 84 for x and 17 for x_b"
    values = [re.fullmatch(r"c by .*: +(-?\d+\.\d{12})", line)[1] for line in (forward, inner)]
    assert abs(float(values[0]) - float(values[1])) < 1e-11
    assert abs(float(values[0])) > 0.1
    largest = re.fullmatch(r"largest error, all units and modes: (\S+)", error)[1]
    assert 0 < float(largest) < 1e-14
