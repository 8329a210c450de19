"""Pictures of the equivalent network: its Jacobian in blocks, and the parts of one unit's value."""

from __future__ import annotations

from typing import TYPE_CHECKING

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from adjoint_book.figures.drawing import tint
from adjoint_book.figures.registry import figure
from adjoint_book.figures.style import BLUE, GREY, INK, ORANGE, SIGNED, VERMILION, WIDTH

if TYPE_CHECKING:
    from adjoint_lib.core.hypersurface import Units

# The network of the chapter: two pixels, three hidden neurons, two more that read them.
W0 = np.array([[1.0, 0.0], [-2.0, -2.0], [-1.0, 2.0]])
W1 = np.array([[2.0, -2.0, -1.0], [1.0, -2.0, -1.0]])
OPEN = np.array([True, False, True])  # the first layer's pattern at the chapter's input


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
