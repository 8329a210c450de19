"""Rounding: what cancellation does to a relative error, and what it cannot do.

Blue is float32, vermilion what misses 1 %, grey what is out of reach by theory. A figure without
arguments computes its own example, VGG7 on one test image.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from adjoint_book.figures._networks import network
from adjoint_book.figures._registry import figure
from adjoint_book.figures._style import BLUE, GREEN, GREY, INK, ORANGE, SKY, VERMILION, WIDTH

if TYPE_CHECKING:
    from adjoint_lib.core.equivalent_net import EquivalentNet

U32 = 2.0**-24  # the unit roundoff of float32
ONE_PERCENT = 1e-2


class Reconstructed(NamedTuple):
    """The units of some layers, layer by layer: arrays of any shape, the same in all fields.

    Attributes:
        c, found: the network's value, and its reconstruction.
        A: the rounding scale.
        limit: what |found - c| / (u A) is bounded by.
    """

    c: dict[str, np.ndarray]
    found: dict[str, np.ndarray]
    A: dict[str, np.ndarray]
    limit: dict[str, float]


# ------------------------------------------------------------------ one inner product


@figure("condition-and-error")
def condition_and_error(
    condition: np.ndarray | None = None, errors: Mapping[str, np.ndarray] | None = None
) -> Figure:
    """The relative error of an inner product against its condition, in float32 and float64.

    Args:
        condition: (n,) the sum of |products| over |their sum|, of n inner products of 3000 terms.
        errors: (n,) relative errors, by format.
    """
    if condition is None or errors is None:
        condition, errors = _inner_products()
    drawing, ax = plt.subplots(figsize=(WIDTH, 4.0))
    ends = np.array([condition.min() / 2, condition.max() * 2])
    styles = {"float32": (U32, BLUE, "o"), "float64": (2.0**-53, GREEN, "^")}
    for name, (u, colour, marker) in styles.items():
        gamma = 3000 * u / (1 - 3000 * u)
        ax.plot(ends, gamma * ends, color=colour, lw=1.5, ls=(0, (4, 2)))
        seen = errors[name] > 0
        marks = {"ms": 3.5, "mew": 0, "alpha": 0.6}
        ax.plot(condition[seen], errors[name][seen], marker, color=colour, **marks)
        at, raised = (400, 1000) if name == "float32" else (3e6, 1 / 30)
        ax.text(at, gamma * at * raised, f"bound, {name}", color=colour, fontsize=11)
    ax.axhline(ONE_PERCENT, color=VERMILION, lw=1.5)
    ax.text(ends[1], 2e-2, "1 %", color=VERMILION, ha="right", va="bottom")
    ax.set(xscale="log", yscale="log", xlim=ends, ylim=(1e-17, 1e4))
    ax.set_xlabel(r"condition $\sum_i |v_i h_i| \, / \, |c|$")
    ax.set_ylabel(r"relative error $|\hat c - c| \, / \, |c|$")
    return drawing


def _inner_products() -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """400 inner products of 3000 terms that cancel more and more."""
    rng = np.random.default_rng(15)
    v, h = rng.uniform(-1, 1, (2, 400, 3000)).astype(np.float32)
    v[:, 1495:-10], h[:, 1495:-10] = v[:, :1495], -h[:, :1495]
    h[:, -10:] *= 2.0 ** -rng.integers(0, 30, (400, 1))
    order = rng.permuted(np.tile(np.arange(3000), (400, 1)), axis=1)
    v, h = np.take_along_axis(v, order, 1), np.take_along_axis(h, order, 1)
    products = v.astype(float) * h
    sums = {np.float32: np.float32(0), np.float64: 0.0}
    for i in range(3000):
        for dtype in sums:
            sums[dtype] = sums[dtype] + v[:, i].astype(dtype) * h[:, i].astype(dtype)
    from math import fsum

    c = np.array([fsum(row) for row in products])
    errors = {d.__name__: np.abs(total - c) / np.abs(c) for d, total in sums.items()}
    return np.abs(products).sum(1) / np.abs(c), errors


# ------------------------------------------------------------------ units of a network


@figure("error-against-value")
def error_against_value(units: Reconstructed | None = None) -> Figure:
    """The error of every unit against the unit's value: the error does not follow the value.

    Args:
        units: by default those of VGG7 on one image, in float32.
    """
    units = units or example()
    c, error = _joined(units.c), np.abs(_joined(units.found) - _joined(units.c))
    largest = np.concatenate(
        [np.full(np.size(x), np.abs(x).max(), float) for x in units.c.values()]
    )
    x, y = np.abs(c) / largest, error / largest
    drawing, ax = plt.subplots(figsize=(WIDTH, 4.2))
    low, high = 1e-8, 1.5
    floor = 1e-11  # where an error of exactly zero is shown
    missed = y > ONE_PERCENT * x
    marks = {"mew": 0, "rasterized": True}
    ax.plot(x[~missed], np.maximum(y, floor)[~missed], ".", color=BLUE, ms=2, alpha=0.15, **marks)
    ends = np.array([low, high])
    for level, text in ((1e-2, "1 %"), (1e-4, "0.01 %")):
        ax.plot(ends, level * ends, color=VERMILION if level == 1e-2 else GREY, lw=1.5)
        at = 6e-8 if level == 1e-2 else 6e-6
        ax.text(at, 2.2 * level * at, text, ha="right", color=INK)
    ax.plot(x[missed], y[missed], "D", color=VERMILION, ms=6, mec="white", label="misses 1 %")
    ax.set(xscale="log", yscale="log", xlim=(low, high), ylim=(floor / 3, 1e-4))
    ax.set_xlabel(r"value $|c|$, over the layer's largest")
    ax.set_ylabel(r"error $|\hat c - c|$, likewise")
    if missed.any():
        ax.legend(loc="upper left")
    return drawing


@figure("error-over-scale")
def error_over_scale(units: Reconstructed | None = None) -> Figure:
    """Errors of all units, layer by layer, in units of u A and in units of u max |c|.

    Args:
        units: by default those of VGG7 on one image, in float32.
    """
    units = units or example()
    drawing, axes = plt.subplots(1, 2, figsize=(WIDTH, 3.6), sharey=True)
    names = list(units.c)
    for ax, title in zip(axes, (r"over $u A$", r"over $u \max|c|$"), strict=True):
        for n, name in enumerate(names):
            c, found = (np.asarray(d[name], float).reshape(-1) for d in (units.c, units.found))
            A = np.asarray(units.A[name], float).reshape(-1)
            scale = A if ax is axes[0] else np.abs(c).max()
            _bar(ax, n, np.abs(found - c) / (U32 * np.where(scale > 0, scale, 1)))
        ax.plot(range(len(names)), [units.limit[name] for name in names], color=INK, lw=1.5)
        ax.set_xticks(range(len(names)), names, rotation=60)
        ax.set_title(title)
        ax.grid(axis="x", visible=False)
    axes[0].text(0, 1.5e4, "bound", va="bottom")
    axes[0].set(yscale="log", ylabel=r"error $|\hat c - c|$", ylim=(1e-9, 3e5))
    return drawing


def _bar(ax: Axes, x: float, values: np.ndarray) -> None:
    """The middle half of the values as a thick bar, the largest and the median as marks."""
    seen = values[values > 0]
    if not seen.size:
        return
    low, middle, high = np.quantile(seen, [0.25, 0.5, 0.75])
    ax.plot([x, x], [low, high], color=SKY, lw=9, solid_capstyle="butt")
    ax.plot(x, middle, "_", color=INK, ms=11, mew=2)
    ax.plot(x, seen.max(), "v", color=BLUE, ms=7)


@figure("two-cancellations")
def two_cancellations(
    inside: Mapping[str, np.ndarray] | None = None, final: Mapping[str, np.ndarray] | None = None
) -> Figure:
    """Where A / |c| comes from: cancellation inside H, and in the inner product with it.

    Args:
        inside: A / sum |v_i H_i| of every unit, by layer.
        final: sum |v_i H_i| / |c| of every unit, by layer.
    """
    if inside is None or final is None:
        inside, final = _example_cancellations()
    drawing, ax = plt.subplots(figsize=(WIDTH, 3.6))
    names = list(inside)
    places = np.arange(len(names))
    parts = [
        (r"inside $H$:  $A \, / \sum |v_i H_i|$", inside, GREEN, "//", -0.2),
        (r"in $\langle v \mid H\rangle$:  $\sum |v_i H_i| \, / \, |c|$", final, ORANGE, "", 0.2),
    ]
    for label, part, colour, hatch, shift in parts:
        medians = [np.median(part[name]) for name in names]
        bars = ax.bar(places + shift, medians, 0.38, color=colour, label=label)
        for bar in bars:
            bar.set(hatch=hatch, edgecolor="white")
    ax.set_xticks(places, names)
    ax.set(yscale="log", ylim=(0.8, None), ylabel="median over the layer's units")
    ax.grid(axis="x", visible=False)
    ax.legend(loc="upper left")
    return drawing


# ------------------------------------------------------------------ formats, and the factor k


@figure("formats-and-misses")
def formats_and_misses(shares: Mapping[str, Sequence[float]] | None = None) -> Figure:
    """The share of units that miss 1 %, layer by layer, for several formats of the numbers.

    Args:
        shares: for each way of computing, one share for each layer; by default an example.
    """
    names = [f"conv{n}" for n in range(6)]
    if shares is None:
        shares = _example_formats(names)
    drawing, ax = plt.subplots(figsize=(WIDTH, 3.8))
    colours = (GREEN, BLUE, ORANGE, VERMILION)
    floor, width = 3e-7, 0.8 / len(shares)
    for n, (label, found) in enumerate(shares.items()):
        places = np.arange(len(names)) + (n - (len(shares) - 1) / 2) * width
        heights = np.asarray(found[: len(names)], float)
        ax.bar(places, np.maximum(heights, floor), width * 0.9, color=colours[n], label=label)
        for x in places[heights == 0]:
            ax.text(x, floor * 1.3, "0", ha="center", va="bottom", fontsize=9, color=colours[n])
    ax.set_xticks(range(len(names)), names)
    ax.set(yscale="log", ylim=(floor, 1), ylabel="units that miss 1 %")
    ticks = [1e-6, 1e-4, 1e-2, 1]
    ax.set_yticks(ticks, ["0.0001 %", "0.01 %", "1 %", "100 %"])
    ax.grid(axis="x", visible=False)
    ax.legend(loc="lower center", bbox_to_anchor=(0.5, 1), ncols=2)
    return drawing


@figure("flips-against-k")
def flips_against_k(ks: np.ndarray | None = None, flipped: np.ndarray | None = None) -> Figure:
    """How many neurons on the very edge change their state when everything is scaled by k.

    Args:
        ks: the factors.
        flipped: the share of neurons in another state than at k = 1, for each.
    """
    if ks is None or flipped is None:
        ks = np.arange(8, 257) / 128
        flipped = _edge_flips(ks)
    drawing, ax = plt.subplots(figsize=(WIDTH, 3.0))
    power = np.log2(ks) % 1 == 0
    ax.plot(ks[~power], 100 * flipped[~power], ".", color=BLUE, ms=5, label="other $k$")
    ax.plot(
        ks[power], 100 * flipped[power], "D", color=VERMILION, ms=7, label="powers of two",
        clip_on=False, zorder=4,
    )  # fmt: skip
    labels = {1 / 16: "1/16", 1 / 8: "1/8", 1 / 4: "1/4", 1 / 2: "1/2", 1: "1", 2: "2"}
    ax.set_xscale("log")
    ax.set_xticks(list(labels), list(labels.values()))
    ax.xaxis.set_minor_locator(plt.NullLocator())
    ax.set(xlabel="$k$", ylabel="flipped (%)", ylim=(0, None))
    ax.legend(loc="center right", bbox_to_anchor=(1, 0.3))
    return drawing


def _edge_flips(ks: np.ndarray) -> np.ndarray:
    """The share of 1000 neurons with 27 weights, whose bias just shuts them, that k opens."""
    rng = np.random.default_rng(8)
    x, w = rng.uniform(-1, 1, (2, 1000, 27)).astype(np.float32)
    b = -_weighted(x, w)
    return np.array([np.mean(_weighted(np.float32(k) * x, w) + np.float32(k) * b > 0) for k in ks])


def _weighted(x: np.ndarray, w: np.ndarray) -> np.ndarray:
    """<x, w> for each row, term after term in float32."""
    return np.cumsum(x * w, axis=1, dtype=np.float32)[:, -1]


# ------------------------------------------------------------------ the example


def reconstruct(net: EquivalentNet, image: np.ndarray) -> Reconstructed:
    """Every unit of every layer, from its own hypersurface."""
    from adjoint_lib.core.error_bounds import bound, rounding_scale
    from adjoint_lib.verification.verify import reconstruct as reconstructed

    return Reconstructed(
        {name: c.numpy()[0] for name, c in net.value(image).items()},
        reconstructed(net, image, "all"),
        {name: A[0] for name, A in rounding_scale(net.freeze(image), net.layers).items()},
        {layer.name: bound(net, layer, "hypersurface") for layer in net.layers},
    )


@functools.cache
def example() -> Reconstructed:
    """Every unit of VGG7 on the first sample image; computed once."""
    net, images = network()
    return reconstruct(net, images[0])


def _joined(layers: Mapping[str, np.ndarray]) -> np.ndarray:
    return np.concatenate([np.asarray(x, float).reshape(-1) for x in layers.values()])


@functools.cache
def _example_cancellations() -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    """The two factors of A / |c| for some units in the middle of each layer."""
    net, images = network()
    units, v = example(), np.concatenate([images[0].reshape(-1), net.x_b])
    inside, final = {}, {}
    for layer in net.layers:
        middle = tuple(size // 2 for size in layer.shape[:-1])
        H = net.hypersurface(images[0], layer.name)[middle].H
        sizes = np.abs(H * v).sum(-1)
        inside[layer.name] = units.A[layer.name][middle] / sizes
        final[layer.name] = sizes / np.abs(units.c[layer.name][middle])
    return inside, final


def _example_formats(names: list[str]) -> dict[str, list[float]]:
    """float32, and H kept in bfloat16, for some units in the middle of each layer."""
    import tensorflow as tf

    net, images = network()
    units, v = example(), np.concatenate([images[0].reshape(-1), net.x_b])
    shares: dict[str, list[float]] = {"float32": [], "H in bfloat16": []}
    for name in names:
        c = np.asarray(units.c[name], float)
        shares["float32"].append(np.mean(np.abs(units.found[name] - c) > ONE_PERCENT * np.abs(c)))
        middle = tuple(size // 2 for size in c.shape[:-1])
        H = net.astype("float64").hypersurface(images[0], name)[middle].H
        found = tf.cast(tf.cast(H, tf.bfloat16), tf.float64).numpy() @ v
        missed = np.abs(found - H @ v) > ONE_PERCENT * np.abs(H @ v)
        shares["H in bfloat16"].append(np.mean(missed))
    return shares
