"""Every numbered equation of the paper, and its Algorithm 1, checked on numbers.

    python -m adjoint_book.equations 4 a11 algorithm

Each check works both sides of an equation out on their own, in float64: one by the library, the
other by matrices, loops or TensorFlow's own derivatives, without the library. The network has one
of everything the equations speak of: an image of 6 x 6 x 2, a convolution with batch normalisation,
one of stride 2 with a bias, leaky ReLUs, global pooling, a dense layer. Eq. (14) and (15) are the
verification itself, so they read its stored results.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import keras
import numpy as np
import tensorflow as tf

import adjoint_lib as al

LEAK = 0.125  # TensorFlow rounds a leak to float32, which leaves this one as it is
K = 1 / 8
EXACT = 1e-12  # the largest deviation, in parts of the largest value, that rounding explains


class Found(NamedTuple):
    """What a check found: the largest deviation as printed, and as corrected if it needs that."""

    printed: float
    values: int  # how many numbers were compared
    corrected: float | None = None
    note: str = ""  # what the correction or the condition is


@dataclass(frozen=True)
class Equation:
    """An equation of the paper: "4", "a11" for the appendix's eleventh, "algorithm"."""

    number: str
    about: str
    chapter: str
    check: Callable[[], Found]
    limit: float = EXACT
    on: str = "values of a random network, float64"
    said: str = "exact"

    @property
    def title(self) -> str:
        """How the paper calls it."""
        if self.number == "algorithm":
            return "Algorithm 1"
        in_appendix = self.number.startswith("a")
        return f"appendix eq. ({self.number[1:]})" if in_appendix else f"Eq. ({self.number})"

    @property
    def order(self) -> int:
        """Its place in the paper: the algorithm, the main text, the appendix."""
        digits = self.number.removeprefix("a")
        return 0 if digits == "lgorithm" else int(digits) + 100 * self.number.startswith("a")

    def verdict(self) -> str:
        """Whether the equation holds, as printed or corrected."""
        found = self.check()
        if found.printed <= self.limit:
            return f"holds, {found.note}" if found.note else "holds"
        if found.corrected is not None and found.corrected <= self.limit:
            return f"corrected: {found.note}"
        return "does not hold"

    def ours(self) -> str:
        """The deviation that was found."""
        found = self.check()
        if self.limit == 1:
            return f"largest error {found.printed:.1g} of its rounding bound"
        text = f"off by {_short(found.printed)}"
        if found.corrected is not None:
            text += f"; corrected, by {_short(found.corrected)}"
        return text


EQUATIONS: dict[str, Equation] = {}


def equation(number: str, about: str, chapter: str, **more) -> Callable:
    """Register a check under the number of its equation; what it finds is kept."""

    def register(check: Callable[[], Found]) -> Callable[[], Found]:
        kept = functools.cache(check)
        EQUATIONS[number] = Equation(number, about, chapter, kept, **more)
        return kept

    return register


def _short(deviation: float) -> str:
    if deviation == 0 or deviation > 0.1:
        return f"{deviation:.1g}"
    return f"{deviation:.0e}".replace("e-0", "e-")


def deviation(found, expected) -> float:
    """The largest difference, in parts of the largest expected value."""
    found, expected = np.asarray(found), np.asarray(expected)
    if found.shape != expected.shape:
        raise AssertionError(f"compared shapes {found.shape} and {expected.shape}")
    return float(np.abs(found - expected).max() / np.abs(expected).max())


# ------------------------------------------------------------------ the network, by matrices


@dataclass(frozen=True)
class Example:
    """A small network: the library's, and its parts as matrices made by loops."""

    net: al.EquivalentNet
    model: keras.Model
    x: np.ndarray
    kernels: tuple[np.ndarray, np.ndarray, np.ndarray]  # folded: conv0, conv1, fc
    W: tuple[np.ndarray, ...]  # of each layer, (outputs, inputs)
    R: tuple[np.ndarray, ...]  # from x_b to the entries of each layer's maps

    @property
    def v(self) -> np.ndarray:
        """[x; x_b]."""
        return np.concatenate([self.x.ravel(), self.net.x_b])

    def maps(self, v: np.ndarray) -> list[np.ndarray]:
        """c_0, c_1 and c_L with their biases, by the appendix's recurrence (eq. 6)."""
        image, v_b = np.split(v, [self.x.size])
        h, found = image, []
        for W, R in zip(self.W, self.R, strict=True):
            found.append(W @ h + R @ v_b)
            h = sigma(found[-1])
        return found

    def jacobians(self, v: np.ndarray) -> list[np.ndarray]:
        """J_0, J_1, J_L at v, by the appendix's recurrence (eq. 8), of c with the biases."""
        found: list[np.ndarray] = []
        for W, R, c in zip(self.W, self.R, [None, *self.maps(v)[:-1]], strict=True):
            if c is None:
                found.append(np.hstack([W, R]))
            else:
                none = np.zeros((len(W), self.x.size))
                found.append(W @ slopes(c) @ found[-1] + np.hstack([none, R]))
        return found

    def forward(self, x: tf.Tensor, v_b: tf.Tensor) -> list[tf.Tensor]:
        """The same c by TensorFlow's convolutions."""
        w0, w1, fc = map(tf.constant, self.kernels)
        c0 = tf.nn.conv2d(x[None], w0, 1, "SAME") + v_b[:3]
        c1 = tf.nn.conv2d(tf.nn.leaky_relu(c0, LEAK), w1, 2, "SAME") + v_b[3:7]
        pooled = tf.reduce_mean(tf.nn.leaky_relu(c1, LEAK), axis=(1, 2))
        return [tf.reshape(c, [-1]) for c in (c0, c1, pooled @ fc)]


def sigma(c: np.ndarray) -> np.ndarray:
    """Leaky ReLU, the appendix's eq. 2."""
    return np.maximum(c, 0) + LEAK * np.minimum(c, 0)


def slopes(c: np.ndarray) -> np.ndarray:
    """Its derivative as a diagonal matrix, the appendix's eq. 9."""
    return np.diag((1 + LEAK) / 2 + (1 - LEAK) / 2 * np.sign(c))


def convolution(kernel: np.ndarray, size: int, stride: int) -> np.ndarray:
    """The matrix of a convolution with zero padding SAME, entry by entry."""
    window, _, before, after = kernel.shape
    out = -(-size // stride)
    left = max((out - 1) * stride + window - size, 0) // 2
    W = np.zeros((out, out, after, size, size, before))
    for y, x, a, b in np.ndindex(out, out, window, window):
        row, column = y * stride + a - left, x * stride + b - left
        if 0 <= row < size and 0 <= column < size:
            W[y, x, :, row, column, :] += kernel[a, b].T
    return W.reshape(out * out * after, -1)


@functools.cache
def example() -> Example:
    """The network, with random weights that no symmetry hides anything in."""
    layers = keras.layers
    model = keras.Sequential(
        [
            keras.Input((6, 6, 2)),
            layers.Conv2D(3, 3, padding="same", use_bias=False, name="conv0"),
            layers.BatchNormalization(name="bn0"),
            layers.LeakyReLU(LEAK),
            layers.Conv2D(4, 3, 2, padding="same", name="conv1"),
            layers.LeakyReLU(LEAK),
            layers.GlobalAveragePooling2D(),
            layers.Dense(5, use_bias=False, name="fc"),
            layers.LeakyReLU(LEAK),
        ]
    )
    net = al.equivalent(al.models.randomise(model)).astype("float64")
    x = np.random.default_rng(0).normal(size=net.input_shape)
    w0, b0 = reduced()
    w1, b1 = (np.asarray(w, float) for w in model.get_layer("conv1").get_weights())
    (fc,) = (np.asarray(w, float) for w in model.get_layer("fc").get_weights())
    pool = np.tile(np.eye(4) / 9, (1, 9))  # 3 x 3 places of 4 channels
    W = convolution(w0, 6, 1), convolution(w1, 6, 2), fc.T @ pool
    # A channel's bias is repeated over its map: one column of R for each channel.
    repeat = np.vstack([np.eye(3)] * 36), np.vstack([np.eye(4)] * 9)
    R0 = np.hstack([repeat[0], np.zeros((108, 4))])
    R1 = np.hstack([np.zeros((36, 3)), repeat[1]])
    if deviation(net.x_b, np.concatenate([b0, b1])) > 1e-6:
        raise AssertionError("the library's x_b is not that of the formulas")
    return Example(net, model, x, (w0, w1, fc), W, (R0, R1, np.zeros((5, 7))))


def _batch_norm() -> tuple[np.ndarray, ...]:
    """gamma, beta, mu, sigma squared and the kernel of the first layer, in float64."""
    model = _raw()
    return (*(np.asarray(w, float) for w in model.get_layer("bn0").get_weights()), _kernel(model))


@functools.cache
def _raw() -> keras.Model:
    """The first two layers of the example with the same weights: kernel and normalisation."""
    layers = keras.layers
    model = keras.Sequential(
        [
            keras.Input((6, 6, 2)),
            layers.Conv2D(3, 3, padding="same", use_bias=False, name="conv0"),
            layers.BatchNormalization(name="bn0"),
        ]
    )
    return al.models.randomise(model)


def _kernel(model: keras.Model) -> np.ndarray:
    return np.asarray(model.get_layer("conv0").get_weights()[0], float)


def reduced() -> tuple[np.ndarray, np.ndarray]:
    """w' and b' of the first layer, Eq. (7)."""
    gamma, beta, mu, square, w = _batch_norm()
    root = np.sqrt(square + _raw().get_layer("bn0").epsilon)
    return gamma * w / root, beta - gamma * mu / root


def values(layer: str) -> np.ndarray:
    """The library's values of a layer's units, without their own bias."""
    return example().net.value(example().x)[layer].numpy()[0]


def hypersurfaces(layer: str, mode: str) -> np.ndarray:
    """The library's H of all units of a layer, (d_in, *axes)."""
    return np.asarray(example().net.hypersurface(example().x, layer, mode))


# ------------------------------------------------------------------ the main text


@equation("1", "gradient descent as a flow", "notes-on-the-paper", said="approximate", limit=1e-5)
def _1() -> Found:
    """(w(t + e) - w(t)) / e goes to -dL/dw as e goes to 0, for L = w'Qw/2, whose flow is known."""
    Q, w = np.array([[2.0, 0.5], [0.5, 1.0]]), np.array([1.0, -2.0])
    rates, V = np.linalg.eigh(Q)

    def flow(t: float) -> np.ndarray:
        return V @ (np.exp(-rates * t) * (V.T @ w))

    near = deviation((flow(1e-6) - w) / 1e-6, -Q @ w)
    step = deviation(w - Q @ w, flow(1.0))
    return Found(near, 2, note=f"as a limit: a whole step is off by {100 * step:.0f} %")


@equation("2", "the inner product", "01-adjoints")
def _2() -> Found:
    at = example()
    x, b = at.net.hypersurface(at.x, "fc")[1].image, at.net.hypersurface(at.x, "fc")[1].bias
    summed = sum(at.x[i] * x[i] for i in np.ndindex(at.x.shape))
    summed += sum(one * other for one, other in zip(at.net.x_b, b, strict=True))
    return Found(deviation(at.v @ np.concatenate([x.ravel(), b]), summed), 1)


@equation("3", r"$c = \langle F(v), w\rangle = \langle Jv, w\rangle$", "05-proof")
def _3() -> Found:
    at = example()
    J = slopes(at.maps(K * at.v)[0]) @ at.jacobians(K * at.v)[0]
    return Found(deviation((at.W[1] @ (J @ at.v)), values("conv1").ravel()), 36)


@equation("4", r"$c = \langle v \mid J^*w\rangle$", "05-proof")
def _4() -> Found:
    at = example()
    J = slopes(at.maps(K * at.v)[0]) @ at.jacobians(K * at.v)[0]
    H = hypersurfaces("conv1", "RM2").reshape(at.net.d_in, -1)
    carried = deviation(H, J.T @ at.W[1].T)
    return Found(max(carried, deviation(at.v @ H, values("conv1").ravel())), H.size + 36)


@equation("5", "its two parts", "05-proof")
def _5() -> Found:
    """One part lies in the space of the image, the other in that of the biases."""
    at = example()
    units = at.net.hypersurface(at.x, "conv1")[:]
    spaces = (units.image.shape[-3:], at.x.shape), (units.bias.shape[-1:], at.net.x_b.shape)
    return Found(float(any(found != space for found, space in spaces)), 2)


@equation(
    "6", "batch normalisation", "04-folding", limit=1e-6, on="values of a random layer, float32"
)
def _6() -> Found:
    gamma, beta, mu, square, w = _batch_norm()
    convolved = (convolution(w, 6, 1) @ example().x.ravel()).reshape(6, 6, 3)
    root = np.sqrt(square + _raw().get_layer("bn0").epsilon)
    ours = gamma * (convolved - mu) / root + beta
    return Found(deviation(_raw()(example().x[None]).numpy()[0], ours), ours.size)


@equation("7", "the same as $w'$ and $b'$", "04-folding")
def _7() -> Found:
    gamma, beta, mu, square, w = _batch_norm()
    x = example().x.ravel()
    root = np.sqrt(square + _raw().get_layer("bn0").epsilon)
    long = gamma * ((convolution(w, 6, 1) @ x).reshape(6, 6, 3) - mu) / root + beta
    folded, bias = reduced()
    short = (convolution(folded, 6, 1) @ x).reshape(6, 6, 3) + bias
    library = values("conv0") + example().net.x_b[:3]
    return Found(max(deviation(short, long), deviation(library, long)), 2 * long.size)


def _by_window() -> np.ndarray:
    """The part of each in-channel in each unit of conv1, [y, x, in, out], by six loops."""
    at = example()
    maps = np.pad(sigma(at.maps(at.v)[0]).reshape(6, 6, 3), ((0, 1), (0, 1), (0, 0)))
    parts = np.zeros((3, 3, 3, 4))
    for y, x, a, b, j, i in np.ndindex(3, 3, 3, 3, 3, 4):
        parts[y, x, j, i] += maps[2 * y + a, 2 * x + b, j] * at.kernels[1][a, b, j, i]
    return parts


@equation("8", "RM4", "06-five-modes")
def _8() -> Found:
    H, parts = hypersurfaces("conv1", "RM4"), _by_window()
    return Found(deviation(np.tensordot(example().v, H, 1), parts), parts.size)


@equation("9", "the sum over windows, carried back", "06-five-modes")
def _9() -> Found:
    H, parts = hypersurfaces("conv1", "RM4").sum((1, 2)), _by_window().sum((0, 1))
    return Found(deviation(np.tensordot(example().v, H, 1), parts), parts.size)


@equation("10", "RM3", "06-five-modes")
def _10() -> Found:
    H = hypersurfaces("conv1", "RM3")
    return Found(deviation(H, hypersurfaces("conv1", "RM4").sum((1, 2))), H.size)


@equation("11", "RM2", "06-five-modes")
def _11() -> Found:
    H = hypersurfaces("conv1", "RM2")
    return Found(deviation(H, hypersurfaces("conv1", "RM4").sum(3)), H.size)


@equation("12", "RM1", "06-five-modes")
def _12() -> Found:
    H = hypersurfaces("conv1", "RM1")
    over_s = deviation(H, hypersurfaces("conv1", "RM2").sum((1, 2)))
    return Found(max(over_s, deviation(H, hypersurfaces("conv1", "RM3").sum(1))), 2 * H.size)


@equation("13", "RM0", "06-five-modes")
def _13() -> Found:
    at, H = example(), hypersurfaces("fc", "RM0")
    last = at.W[2] @ slopes(at.maps(at.v)[1]) @ at.jacobians(at.v)[1]
    return Found(deviation(H, last.T), H.size)


def _stored(mode: str) -> Found:
    """The largest error of the stored verifications in parts of its rigorous bound."""
    found = [
        (layer.worst / layer.bound, layer.units)
        for dataset in ("cifar10", "cifar100")
        for model in al.models.MODELS
        for layer in al.results.load(model, dataset, mode=mode).report.layers.values()
    ]
    return Found(max(worst for worst, _ in found), sum(units for _, units in found))


@equation(
    "14",
    "conv units, computed and reconstructed",
    "12-verification-cifar10",
    limit=1.0,
    on="units of the stored verifications",
    said="equal but for rounding",
)
def _14() -> Found:
    return _stored("RM2")


@equation(
    "15",
    "dense units, computed and reconstructed",
    "12-verification-cifar10",
    limit=1.0,
    on="units of the stored verifications",
    said="equal but for rounding",
)
def _15() -> Found:
    return _stored("RM0")


@equation("16", "the relative error", "12-verification-cifar10")
def _16() -> Found:
    from adjoint_lib.verification.verify import relative_error

    c, c_hat = np.array([2.0, -4.0, 0.5]), np.array([2.5, -3.0, 0.5])
    by_hand = [0.25, -0.25, 0.0]
    at_zero = relative_error(np.zeros(1), np.full(1, 1.0))[0] * np.finfo("float32").tiny
    off = deviation(relative_error(c, c_hat), by_hand)
    return Found(max(off, abs(at_zero - 1)), 4)


# ------------------------------------------------------------------ the appendix's proof


@equation("a1", "a convolution as a matrix", "05-proof")
def _a1() -> Found:
    at = example()
    by_matrix = at.W[0] @ at.x.ravel() + at.R[0] @ at.net.x_b
    c = at.forward(tf.constant(at.x), tf.constant(at.net.x_b))[0].numpy()
    return Found(deviation(by_matrix, c), c.size)


@equation("a2", "ReLU and leaky ReLU in one formula", "05-proof")
def _a2() -> Found:
    c = np.linspace(-3, 3, 61)
    off = [
        deviation(np.maximum(c, 0) + slope * np.minimum(c, 0), tf.nn.leaky_relu(c, slope))
        for slope in (0.0, LEAK, 0.5)
    ]
    return Found(max(off), 3 * c.size)


@equation("a3", "the output", "05-proof")
def _a3() -> Found:
    at = example()
    before = at.maps(at.v)[1]
    printed, corrected = (deviation(at.W[2] @ h, values("fc")) for h in (before, sigma(before)))
    return Found(printed, 5, corrected, r"$A_L$ reads the activated maps $\hat p_{L-1}$")


@equation("a4", "the network as one composition", "05-proof")
def _a4() -> Found:
    at = example()
    h = at.x.ravel()
    for W, R in zip(at.W, at.R, strict=True):
        h = sigma(W @ h + R @ at.net.x_b)
    return Found(deviation(h, np.asarray(at.net(at.x))[0]), h.size)


@equation("a5", "restriction to a layer's biases", "03-equivalent-topology")
def _a5() -> Found:
    at = example()
    entries = at.W[0].shape[0] + at.W[1].shape[0]  # as many as the layers have units
    printed = abs(entries - at.net.x_b.size) / entries
    slices = [at.net.x_b[source.slice] for source in at.net.sources]
    repeated = [np.tile(b, W.shape[0] // b.size) for b, W in zip(slices, at.W, strict=False)]
    ours = [R @ at.net.x_b for R in at.R[:2]]
    off = max(deviation(a, b) for a, b in zip(ours, repeated, strict=True))
    note = "$x_b$ has one entry for each channel, not unit, and $r_l$ repeats it over the map"
    return Found(printed, entries, off, note)


@equation("a6", "the equivalent topology", "03-equivalent-topology")
def _a6() -> Found:
    """For any v_b, not only for x_b."""
    at = example()
    v_b = np.random.default_rng(1).normal(size=at.net.x_b.size)
    found = at.maps(np.concatenate([at.x.ravel(), v_b]))
    expected = at.forward(tf.constant(at.x), tf.constant(v_b))
    off = [deviation(a, b) for a, b in zip(found, expected, strict=True)]
    return Found(max(off), sum(c.size for c in found), note="for $l$ from 1, not 0")


@equation("a7", "at $v_b = x_b$ it is the network", "03-equivalent-topology")
def _a7() -> Found:
    at = example()
    off = [
        deviation(c - R @ at.net.x_b, values(name).ravel())
        for c, R, name in zip(at.maps(at.v), at.R, ("conv0", "conv1", "fc"), strict=True)
    ]
    return Found(max(off), sum(len(W) for W in at.W))


@equation("a8", "the Jacobians' recurrence", "05-proof")
def _a8() -> Found:
    at = example()
    x, v_b = tf.constant(at.x), tf.constant(at.net.x_b)
    with tf.GradientTape(persistent=True) as tape:
        tape.watch([x, v_b])
        maps = at.forward(x, v_b)
    off, count = [], 0
    for J, c in zip(at.jacobians(at.v), maps, strict=True):
        parts = tape.jacobian(c, [x, v_b], unconnected_gradients="zero")
        whole = np.hstack([np.reshape(part, (len(J), -1)) for part in parts])
        off.append(deviation(J, whole))
        count += J.size
    return Found(max(off), count, note="for $l$ from 1, not 0")


@equation("a9", "the activation's Jacobian", "05-proof")
def _a9() -> Found:
    c = tf.constant(np.concatenate([np.linspace(-3, -0.1, 30), np.linspace(0.1, 3, 30)]))
    with tf.GradientTape() as tape:
        tape.watch(c)
        value = tf.reduce_sum(tf.nn.leaky_relu(c, LEAK))
    slope = tape.gradient(value, c).numpy()
    return Found(deviation(np.diag(slopes(c.numpy())), slope), c.shape[0], note="where $c \\ne 0$")


@equation("a10", "where J is constant", "05-proof")
def _a10() -> Found:
    """Two inputs with the same signs have the same J; the signs are those of layer l - 1."""
    at = example()
    near = at.v + 1e-9 * np.random.default_rng(2).normal(size=at.v.size)
    signs = [np.sign(c) for c in at.maps(at.v)]
    if any((np.sign(c) != s).any() for c, s in zip(at.maps(near), signs, strict=True)):
        raise AssertionError("expected two inputs with the same signs")
    both = zip(at.jacobians(near), at.jacobians(at.v), strict=True)
    m = [len(W) for W in at.W]
    printed = max(abs(a - b) / a for a, b in zip(m[1:], m, strict=False))
    note = "the signs of $c_{l-1}$ are $e_{l-1}$, not $e_l$, which has another length"
    return Found(printed, sum(J.size for J in at.jacobians(at.v)), max(map(_off, both)), note)


def _off(pair: tuple[np.ndarray, np.ndarray]) -> float:
    return deviation(*pair)


@equation("a11", "$J(kv) = J(v)$", "05-proof")
def _a11() -> Found:
    at = example()
    both = [
        pair
        for k in (K, 0.3, 7.0)
        for pair in zip(at.jacobians(k * at.v), at.jacobians(at.v), strict=True)
    ]
    return Found(max(map(_off, both)), sum(J.size for J, _ in both))


@equation("a12", "$c = J(v)\\, v$", "05-proof")
def _a12() -> Found:
    at = example()
    v = np.random.default_rng(3).normal(size=at.v.size)
    found = [(J @ v, c) for J, c in zip(at.jacobians(v), at.maps(v), strict=True)]
    return Found(max(map(_off, found)), sum(c.size for _, c in found))


@equation("a13", "the same at $k[x; x_b]$", "05-proof")
def _a13() -> Found:
    at = example()
    found = [
        (J @ at.v - R @ at.net.x_b, values(name).ravel())
        for k in (K, 0.3, 7.0)
        for J, R, name in zip(at.jacobians(k * at.v), at.R, ("conv0", "conv1", "fc"), strict=True)
    ]
    return Found(max(map(_off, found)), sum(c.size for _, c in found))


@equation("a14", r"$\sigma(x) = x\,\sigma'(x)$", "05-proof")
def _a14() -> Found:
    x = tf.constant(np.linspace(-8, 8, 161) + 0.003)
    through_zero = [tf.nn.relu, lambda c: tf.nn.leaky_relu(c, LEAK)]
    bent = [lambda c: tf.clip_by_value(c, 0, 6), lambda c: tf.clip_by_value(c, -1, 1)]

    def off(activation: Callable[[tf.Tensor], tf.Tensor]) -> float:
        with tf.GradientTape() as tape:
            tape.watch(x)
            value = activation(x)
        return deviation(x * tape.gradient(value, x), value)

    note = "for pieces through the origin; ReLU6 and hard tanh have others"
    return Found(
        max(map(off, through_zero + bent)), 4 * x.shape[0], max(map(off, through_zero)), note
    )


# ------------------------------------------------------------------ Algorithm 1


def algorithm_1(x, b, z, F, w, s, M):
    """AdjointBackMapV2 as printed: H_I and H_b of all units of one layer, in the mode M."""
    d1 = tf.size(x)
    z0 = z(tf.concat([tf.reshape(x, [-1]), b], axis=0))
    x0, b0 = tf.reshape(z0[:d1], x.shape), z0[d1:]
    with tf.GradientTape() as tape:
        tape.watch([x0, b0])
        maps = F(x0, b0)
    jacobians = tape.jacobian(maps, [x0, b0], unconnected_gradients="zero")
    return tuple(_part(_rows(J, maps), w, s, M) for J in jacobians)


def _rows(J: tf.Tensor, maps: tf.Tensor) -> tf.Tensor:
    """From (maps, inputs) to (d, maps)."""
    flat = tf.reshape(J, [tf.size(maps), -1])
    return tf.reshape(tf.transpose(flat), [-1, *maps.shape])


def _part(J: tf.Tensor, w: tf.Tensor, s: int, M: str) -> tf.Tensor:
    if M == "RM0":
        return J @ w
    if M in ("RM4", "RM3"):
        pairs = zip(tf.unstack(J, axis=-1), tf.unstack(w, axis=2), strict=True)
        R = [tf.nn.conv2d(J_j[..., None], w_j[:, :, None], s, "SAME") for J_j, w_j in pairs]
        H = tf.stack(R, axis=3)
        return H if M == "RM4" else tf.reduce_sum(H, axis=(1, 2))
    H = tf.nn.conv2d(J, w, s, "SAME")
    return H if M == "RM2" else tf.reduce_sum(H, axis=(1, 2))


@equation("algorithm", "H in the five modes", "06-five-modes")
def _algorithm() -> Found:
    at = example()
    x, b = tf.constant(at.x), tf.constant(at.net.x_b)
    w0, w1, fc = map(tf.constant, at.kernels)

    def reads(x, b):
        return tf.nn.leaky_relu(tf.nn.conv2d(x[None], w0, 1, "SAME") + b[:3], LEAK)[0]

    def pooled(x, b):
        c = tf.nn.conv2d(reads(x, b)[None], w1, 2, "SAME") + b[3:]
        return tf.reduce_mean(tf.nn.leaky_relu(c, LEAK), axis=(1, 2))[0]

    off, count = [], 0
    for M in ("RM4", "RM3", "RM2", "RM1", "RM0"):
        layer = ("fc", pooled, fc, 1) if M == "RM0" else ("conv1", reads, w1, 2)
        name, F, w, s = layer
        H = np.concatenate(algorithm_1(x, b, lambda v: v * K, F, w, s, M))
        off.append(deviation(H, hypersurfaces(name, M)))
        count += H.size
    return Found(max(off), count)


# ------------------------------------------------------------------ the command


def main(numbers: list[str]) -> int:
    """Print what the checks of these equations find, of all if none is named."""
    for number in numbers or EQUATIONS:
        if number not in EQUATIONS:
            print(f"expected the number of an equation ({', '.join(EQUATIONS)}), got {number!r}.")
            return 2
        one = EQUATIONS[number]
        found = one.check()
        print(
            f"{one.title}, {one.about}: {one.verdict()} ({one.ours()}; {found.values:,} {one.on})"
        )
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
