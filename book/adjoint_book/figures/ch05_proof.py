"""What the proof looks like: linear regions, patterns against k, and activations that fail.

Colours mean the same in the whole book: blue is the image, orange a bias, green a kernel,
vermilion what an adjoint carries back.
"""

from __future__ import annotations

from collections.abc import Callable

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure

from adjoint_book.figures._drawing import Point
from adjoint_book.figures._registry import figure
from adjoint_book.figures._style import BLUE, GREEN, INK, VERMILION, WIDTH
from adjoint_book.tiny import W0, W1
from adjoint_book.tiny import b0 as B0
from adjoint_book.tiny import b1 as B1
from adjoint_book.tiny import x as X

# Pale tints of the palette: a region is told from its neighbours, and text on it stays legible.
TINTS = ["#F4F4F4", "#FBE9C6", "#D3ECE4", "#F9DCCB", "#E9D6E2", "#DDE3F3", "#F6F2C4", "#E4E4E4"]
HERE = "#A8CFE6"  # the region of [x; x_b]


@figure("linear-regions")
def linear_regions(k: float = 0.5) -> Figure:
    """Where the tiny network is linear: over its two pixels, and over the plane [a x; b x_b].

    Args:
        k: the scale at which points are marked: on the left [k x; x_b], on the right k [x; x_b].
    """
    drawing, (left, right) = plt.subplots(1, 2, figsize=(WIDTH, 3.6))
    reach = 4.4
    axis = np.linspace(-reach, reach, 500)
    pixels = np.stack(np.meshgrid(axis, axis), -1)
    _tint(left, _pattern(pixels, np.ones(pixels.shape[:2])), (-reach, reach))
    end = reach / np.abs(X).max()
    left.plot(*np.outer(X, [0, end]), color=INK, lw=1.5, ls=(0, (4, 2)))
    _mark(left, tuple(X), "$x$", (9, -4))
    _mark(left, tuple(k * X), "$kx$", (9, -6), VERMILION)
    left.set(
        xlabel="first pixel", ylabel="second pixel", xticks=range(-4, 5, 2), yticks=range(-4, 5, 2)
    )

    reach = 3.0
    axis = np.linspace(0, reach, 500)
    a, b = np.meshgrid(axis, axis)
    _tint(right, _pattern(a[..., None] * X, b), (0, reach))
    right.plot([0, reach], [0, reach], color=INK, lw=1.8)
    right.plot([0, reach], [1, 1], color=INK, lw=1.5, ls=(0, (4, 2)))
    _mark(right, (1, 1), r"$[x;\,x_b]$", (6, -15))
    _mark(right, (k, k), r"$k\,[x;\,x_b]$", (8, -9), VERMILION)
    right.text(2.1, 2.32, "both scaled", fontsize=11, rotation=45, ha="center", va="center")
    right.text(2.95, 1.05, "image alone", fontsize=11, ha="right", va="bottom")
    right.set(xlabel="factor $a$ of the image", ylabel="factor $b$ of the biases")
    right.set(xticks=range(4), yticks=range(4))
    left.set_title(r"$F([kx;\,x_b]) = $" + _pair(_run(k * X, 1.0)))
    right.set_title(r"$F(k\,[x;\,x_b]) = $" + _pair(_run(k * X, k)))
    for ax in (left, right):
        ax.set_aspect("equal")
        ax.grid(False)
    return drawing


def _open(x: np.ndarray, scale: float | np.ndarray) -> np.ndarray:
    """Which of the five units are open at [x; scale x_b]: (*points, 5) booleans."""
    scale = np.asarray(scale)[..., None]
    h0 = x @ W0.T + scale * B0
    h1 = np.maximum(h0, 0) @ W1.T + scale * B1
    return np.concatenate([h0 > 0, h1 > 0], -1)


def _run(x: np.ndarray, scale: float) -> np.ndarray:
    """F([x; scale x_b]) of the tiny network: two values."""
    hidden = np.maximum(W0 @ x + scale * B0, 0)
    return np.maximum(W1 @ hidden + scale * B1, 0)


def _pair(values: np.ndarray) -> str:
    return "({:.4g}, {:.4g})".format(*values)


def _pattern(x: np.ndarray, scale: float | np.ndarray) -> np.ndarray:
    """Which of the five units are open at [x; scale x_b], as one integer for each point."""
    return (_open(x, scale) << np.arange(5)).sum(-1)


def _tint(ax: Axes, patterns: np.ndarray, limits: tuple[float, float]) -> None:
    """Fill each region with its tint, the same in every panel, and draw the borders."""
    home = _pattern(X, 1.0)
    colours = [HERE if p == home else TINTS[3 * p % 31 % 8] for p in range(32)]
    ax.imshow(
        patterns,
        cmap=ListedColormap(colours),
        vmin=-0.5,
        vmax=31.5,
        origin="lower",
        extent=(*limits, *limits),
        interpolation="nearest",
    )
    axis = np.linspace(*limits, len(patterns))
    for bit in range(5):
        ax.contour(axis, axis, patterns >> bit & 1, [0.5], colors="white", linewidths=1.2)
    ax.set(xlim=limits, ylim=limits)


def _mark(ax: Axes, at: Point, text: str, offset: tuple[int, int], colour: str = BLUE) -> None:
    ax.plot(*at, "o", ms=7, color=colour, mec="white", mew=1.2, zorder=5)
    ax.annotate(text, at, offset, textcoords="offset points", fontsize=12, color=INK)


@figure("pattern-against-k")
def pattern_against_k(
    both: np.ndarray | None = None, alone: np.ndarray | None = None, ks: np.ndarray | None = None
) -> Figure:
    """Which units are open (blue) and shut (grey) at each k: all scaled, or the image alone.

    Args:
        both, alone: (units, len(ks)) booleans, the patterns at k [x; x_b] and at [k x; x_b]; by
            default those of the tiny network.
        ks: evenly spaced in their logarithm.
    """
    if both is None or alone is None or ks is None:
        ks = 2.0 ** np.linspace(-6, 6, 241)
        both = _open(ks[:, None] * X, ks).T
        alone = _open(ks[:, None] * X, np.ones_like(ks)).T
    drawing, axes = plt.subplots(1, 2, figsize=(WIDTH, 3.0), sharey=True)
    ends = np.log2([ks[0], ks[-1]])
    titles = (r"$k\,[x;\,x_b]$: all scaled", r"$[k\,x;\,x_b]$: image alone")
    for ax, rows, title in zip(axes, (both, alone), titles, strict=True):
        ax.imshow(
            rows,
            cmap=ListedColormap(["#E4E4E4", BLUE]),
            vmin=0,
            vmax=1,
            aspect="auto",
            extent=(*ends, len(rows) - 0.5, -0.5),
        )
        for row in range(1, len(rows) if len(rows) < 10 else 0):
            ax.axhline(row - 0.5, color="white", lw=2)
        ax.axvline(0, color=VERMILION, lw=1.5)
        powers = [p for p in range(-32, 33, 4) if ends[0] <= p <= ends[1]]
        ax.set_xticks(powers, [f"1/{2**-p}" if p < 0 else str(2**p) for p in powers])
        ax.set_xlabel("$k$")
        ax.set_title(title)
        ax.grid(False)
    axes[0].set(ylabel="units", yticks=[])
    return drawing


ACTIVATIONS: dict[str, tuple[Callable, Callable]] = {
    "ReLU": (lambda h: np.maximum(h, 0), lambda h: 1.0 * (h > 0)),
    "leaky ReLU": (lambda h: np.where(h > 0, h, 0.2 * h), lambda h: np.where(h > 0, 1, 0.2)),
    "ReLU6": (lambda h: np.clip(h, 0, 6), lambda h: 1.0 * ((h > 0) & (h < 6))),
    "hard tanh": (lambda h: np.clip(h, -1, 1), lambda h: 1.0 * (np.abs(h) < 1)),
    "hard sigmoid": (
        lambda h: np.clip(h / 6 + 0.5, 0, 1),
        lambda h: np.where(np.abs(h) < 3, 1 / 6, 0),
    ),
    "tanh": (np.tanh, lambda h: 1 / np.cosh(h) ** 2),
}


@figure("euler-gap")
def euler_gap() -> Figure:
    """sigma(h) against h sigma'(h) for six activations; the gap between them is shaded."""
    drawing, axes = plt.subplots(2, 3, figsize=(WIDTH, 4.2))
    reach = {"ReLU6": 9, "hard sigmoid": 5.5}
    for ax, (name, (function, slope)) in zip(axes.flat, ACTIVATIONS.items(), strict=True):
        ax.grid(False)
        h = np.linspace(-reach.get(name, 3), reach.get(name, 3), 2000)
        value, euler = function(h), h * slope(h)
        ax.axhline(0, color="#C8C8C8", lw=0.8)
        ax.axvline(0, color="#C8C8C8", lw=0.8)
        ax.fill_between(h, value, euler, color=VERMILION, alpha=0.18, lw=0)
        ax.plot(h, value, color=INK, lw=4, alpha=0.35, label=r"$\sigma(h)$")
        broken = np.where(np.abs(np.diff(euler, append=euler[-1])) > 0.1, np.nan, euler)
        ax.plot(h, broken, color=VERMILION, lw=1.8, label=r"$h\,\sigma'(h)$")
        ax.set_title(name)
    axes[0, 0].legend(loc="upper left")
    for ax in axes[1]:
        ax.set_xlabel("$h$")
    return drawing


@figure("lifted-relu6")
def lifted_relu6(h: float = 8.0) -> Figure:
    """ReLU6 with its ceiling as a second input t: three cones, and the line t = 6 across them."""
    drawing, (left, right) = plt.subplots(1, 2, figsize=(WIDTH, 3.2))
    for ax in (left, right):
        ax.grid(False)
    axis = np.linspace(-6, 12, 400)
    left.axhline(0, color="#C8C8C8", lw=0.8)
    left.axvline(0, color="#C8C8C8", lw=0.8)
    left.plot(axis, axis, color=GREEN, lw=1.3, ls=(0, (4, 2)))
    left.plot(axis, 6 + 0 * axis, color=VERMILION, lw=1.3, ls=(0, (4, 2)))
    left.plot(axis, np.clip(axis, 0, 6), color=INK, lw=2.5)
    left.plot(0, 6, "o", ms=7, mfc="white", mec=VERMILION, mew=1.8)
    left.annotate("misses the origin", (0, 6), (-5.6, 7.2), fontsize=11, color=INK)
    left.plot(h, 6, "o", ms=7, color=BLUE, mec="white", mew=1.2, zorder=5)
    left.set(xlim=(-6, 12), ylim=(-2, 9), xlabel="$h$", ylabel=r"$\sigma(h)$")

    cones = [
        ([-6, 0, 0, -6], [0, 0, 10, 10], "#E4E4E4", (-3, 5), "$0$"),
        ([0, 10, 0], [0, 10, 10], "#D3ECE4", (2.4, 7.2), "$h$"),
        ([0, 12, 12, 10], [0, 0, 10, 10], "#F9DCCB", (8.4, 3.0), "$t$"),
    ]
    for xs, ys, colour, at, text in cones:
        right.fill(xs, ys, color=colour, lw=0)
        right.text(*at, text, fontsize=17, ha="center", va="center", color=INK)
    right.axhline(6, color=INK, lw=1.5, ls=(0, (4, 2)))
    right.text(-5.7, 6.15, "$t=6$", fontsize=12, va="bottom")
    right.plot([0, 12], [0, 12 * 6 / h], color=INK, lw=1.5)
    right.plot(h, 6, "o", ms=7, color=BLUE, mec="white", mew=1.2, zorder=5)
    right.annotate("$(h, 6)$", (h, 6), (-2, -18), textcoords="offset points", fontsize=12)
    right.plot(0, 0, "o", ms=5, color=INK, clip_on=False)
    right.set(xlim=(-6, 12), ylim=(0, 10), xlabel="$h$", ylabel="ceiling $t$")
    return drawing
