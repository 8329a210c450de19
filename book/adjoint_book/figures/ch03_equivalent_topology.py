"""The equivalent network: a diagram, its Jacobian in blocks, and the parts of one unit's value."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from adjoint_book.figures._drawing import (
    PLUS,
    RADIUS,
    arrow,
    canvas,
    heading,
    node,
    plus,
    rule,
    slab,
    stack,
    tint,
    write,
)
from adjoint_book.figures._registry import figure
from adjoint_book.figures._style import BLUE, GREEN, GREY, INK, ORANGE, SIGNED, VERMILION, WIDTH
from adjoint_book.tiny import W0, W1

if TYPE_CHECKING:
    from adjoint_lib.core.units import Units

OPEN = np.array([True, False, True])  # the first layer's pattern at the chapter's input


@figure("equivalent-cnn")
def equivalent_cnn() -> Figure:
    """The paper's Fig. 2: a CNN with four biases, and its equivalent over [x; x_b]."""
    drawing, ax = canvas(WIDTH, 4.9)
    top, bottom = 3.55, 1.4
    heading(ax, (0.08, 4.75), "trained network")
    heading(ax, (0.08, 2.25), "equivalent network")
    rule(ax, (0.08, 2.5), (WIDTH - 0.08, 2.5))
    for i, x in enumerate(_cnn(ax, top)):
        arrow(ax, (x, top + 0.78), (x, top), ORANGE, RADIUS, PLUS)
        node(ax, (x, top + 0.78), f"$b_{i}$", ORANGE)
    _biases(ax, 0.28, bottom, _cnn(ax, bottom))
    return drawing


def _cnn(ax: Axes, y: float) -> list[float]:
    """Image, three convolutions, pool, dense layer at height y; returns where biases are added."""
    sums: list[float] = []
    stack(ax, (0.36, y), 0.5, 3, BLUE, "$x$")
    at = 0.74
    for i, (size, sheets) in enumerate(((0.42, 3), (0.34, 4), (0.24, 5))):
        at = _layer(ax, at, y, f"$w_{i}$", sums)
        stack(ax, (at + size / 2, y), size, sheets, INK)
        at += size + 0.05 * (sheets - 1)
    arrow(ax, (at - 0.03, y), (at + 0.2, y), INK)
    _column(ax, at + 0.2, y, 0.6, "pool")
    at = _layer(ax, at + 0.32, y, "$w_3$", sums)
    _column(ax, at, y, 0.44, "scores")
    return sums


def _layer(ax: Axes, start: float, y: float, kernel: str, sums: list[float]) -> float:
    """Kernel, circled plus, activation, from x = start on; returns where the last arrow ends."""
    middle = start + 0.45
    arrow(ax, (start, y), (middle, y), GREEN, 0, PLUS)
    write(ax, (start + 0.16, y + 0.16), kernel, color=GREEN)
    plus(ax, (middle, y))
    arrow(ax, (middle, y), (middle + 0.41, y), INK, PLUS)
    write(ax, (middle + 0.24, y + 0.14), r"$\sigma$")
    sums.append(middle)
    return middle + 0.41


def _column(ax: Axes, x: float, y: float, height: float, text: str) -> None:
    """A vector, drawn upright with its name below."""
    slab(ax, x, x + 0.12, y, height, INK)
    write(ax, (x + 0.06, y - 0.46), text, 10.5)


def _biases(ax: Axes, y: float, row: float, sums: list[float]) -> None:
    """x_b below the equivalent network, with a lead from each slice up to its layer."""
    between = [(a + b) / 2 + 0.1 for a, b in pairwise(sums)]
    edges = [0.74, *between, WIDTH - 0.08]
    for i, x in enumerate(sums):
        slab(ax, edges[i], edges[i + 1], y, 0.38, ORANGE)
        write(ax, (x, y), f"$b_{i}$")
        arrow(ax, (x, y + 0.19), (x, row), ORANGE, 0, PLUS)
        write(ax, (x + 0.05, y + 0.38), f"$x_b[b_{i}]$", 11, ha="left")
    write(ax, (0.36, y), "$x_b$", 15)
    write(ax, (0.36, (row + y) / 2 + 0.02), "$v=$\n$[x;\\,x_b]$", 12)


@figure("jacobian-blocks")
def jacobian_blocks() -> Figure:
    """The Jacobians of a network of two layers, in blocks: one for x, one for each bias."""
    J0 = np.hstack([W0, np.eye(3), np.zeros((3, 2))])
    J1 = W1 @ (OPEN[:, None] * J0) + np.hstack([np.zeros((2, 5)), np.eye(2)])
    drawing, axes = plt.subplots(
        2, 1, figsize=(WIDTH * 0.8, 3.6), height_ratios=[3.6, 2.6], layout="constrained"
    )
    for ax, J, name in zip(axes, (J0, J1), ("$J_0$", "$J_1$"), strict=True):
        _blocks(ax, J, name)
    return drawing


def _blocks(ax: Axes, J: np.ndarray, name: str) -> None:
    rows = len(J)
    for start, width, colour, label in (
        (0, 2, BLUE, "$x$"),
        (2, 3, ORANGE, "$b_0$"),
        (5, 2, ORANGE, "$b_1$"),
    ):
        box = Rectangle((start, 0), width, rows, facecolor=tint(colour, 0.13), edgecolor=colour)
        box.set(linewidth=2)
        ax.add_patch(box)
        ax.text(start + width / 2, rows + 0.3, label, ha="center", va="center", fontsize=14)
    for (i, j), value in np.ndenumerate(J):
        ax.text(
            j + 0.5,
            rows - i - 0.5,
            f"{value:g}".replace("-", "−"),
            ha="center",
            va="center",
            fontsize=13,
            color=INK if value else GREY,
        )
    ax.text(-0.35, rows / 2, name, ha="center", va="center", fontsize=16)
    ax.set(xlim=(-0.7, 7.1), ylim=(-0.1, rows + 0.55), aspect="equal")
    ax.axis("off")


@figure("unit-parts")
def unit_parts(image: np.ndarray | None = None, unit: Units | None = None) -> Figure:
    """One unit: the image, the image part of its hypersurface, and what each source contributes.

    Args:
        image: (32, 32, 3) in [0, 1].
        unit: one unit's hypersurface, as `net.hypersurface(image, layer)[index]` gives it.
    """
    if image is None or unit is None:
        image, unit = _example()
    drawing, axes = plt.subplots(
        1, 3, figsize=(WIDTH, 2.5), width_ratios=[1, 1, 1.25], layout="constrained"
    )
    axes[0].imshow(image)
    weights = unit.image.sum(-1)
    limit = np.abs(weights).max() or 1.0
    axes[1].imshow(weights, cmap=SIGNED, vmin=-limit, vmax=limit)
    for ax, text in zip(axes, ("image $x$", "$H_I$"), strict=False):
        ax.set_title(text)
        ax.axis("off")
    _bars(axes[2], unit)
    return drawing


def _bars(ax: Axes, unit: Units) -> None:
    """A bar for each source's contribution, and one for their sum."""
    names = [*unit.sources, "sum $c$"]
    values = [*unit.contributions, unit.value]
    colours = [BLUE, *[ORANGE] * (len(names) - 2), VERMILION]
    ax.barh(names, values, color=colours)
    ax.axvline(0, color=INK, linewidth=1)
    ax.invert_yaxis()
    ax.grid(axis="y", visible=False)
    ax.spines["left"].set_visible(False)
    ax.tick_params(axis="y", length=0)
    ax.set_title("contributions")


def _example() -> tuple[np.ndarray, Units]:
    """A unit in the middle of the last convolution of a small network with random weights."""
    import keras

    from adjoint_lib.experiments import data, models
    from adjoint_lib.frontend.equivalent import equivalent

    layers = keras.layers
    model = keras.Sequential(
        [
            keras.Input((32, 32, 3)),
            layers.Conv2D(8, 3, padding="same", activation="relu", name="conv0"),
            layers.Conv2D(12, 3, strides=2, padding="same", activation="relu", name="conv1"),
            layers.Conv2D(16, 3, strides=2, padding="same", activation="relu", name="conv2"),
        ]
    )
    net = equivalent(models.randomise(model, seed=1))
    image = data.sample("cifar10")[0][13]
    return image, net.hypersurface(image, "conv2")[4, 4, 3]
