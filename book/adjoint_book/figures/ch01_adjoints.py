"""Adjoints: a cost found twice, a functional as an image, a convolution as a matrix."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from adjoint_book.figures._drawing import arrow, box, canvas, write
from adjoint_book.figures._registry import figure
from adjoint_book.figures._style import BLUE, GREEN, INK, SIGNED, VERMILION, WIDTH


@figure("two-ways")
def two_ways() -> Figure:
    """A cost found twice: the order goes forward to the prices, or the prices go back to it."""
    drawing, ax = canvas(WIDTH, 2.75)
    left, right, top, bottom, size = 1.25, 5.15, 2.3, 1.2, (2.3, 0.62)
    box(ax, (left, top), size, "order $u$\ncakes, loaves", BLUE, fontsize=11)
    box(ax, (right, top), size, "ingredients $Au$\neggs, flour, sugar", INK, fontsize=11)
    box(ax, (right, bottom), size, "their prices $w$", GREEN, fontsize=11)
    box(ax, (left, bottom), size, "prices of products $A^{*}w$", VERMILION, fontsize=11)
    arrow(ax, (left + 1.15, top), (right - 1.15, top), INK, 0.06, 0.04)
    write(ax, ((left + right) / 2, top + 0.18), "$A$", 14)
    arrow(ax, (right - 1.15, bottom), (left + 1.15, bottom), VERMILION, 0.06, 0.04)
    write(ax, ((left + right) / 2, bottom + 0.18), "$A^{*}$", 14)
    for x, text in (
        (left, r"$\langle u \mid A^{*}w \rangle$"),
        (right, r"$\langle Au \mid w \rangle$"),
    ):
        write(ax, (x, (top + bottom) / 2), "times", 11)
        write(ax, (x, 0.35), text, 15)
    write(ax, ((left + right) / 2, 0.35), "=  11  =", 15)
    return drawing


@figure("representer")
def representer(image: np.ndarray | None = None, h: np.ndarray | None = None) -> Figure:
    """A functional as an image: the image, the representer h, and their product.

    Args:
        image: (32, 32, 3); by default a horse.
        h: (32, 32, 3); by default the middle against its surroundings.
    """
    image = _horse() if image is None else image
    h = _centre_against_surroundings() if h is None else h
    drawing, axes = plt.subplots(1, 3, figsize=(WIDTH, 2.4))
    axes[0].imshow(image)
    for ax, values in ((axes[1], h.sum(-1)), (axes[2], (image * h).sum(-1))):
        _signed(ax, values)
    for ax, text in zip(axes, ("image $x$", "representer $h$", "product $x\\,h$"), strict=True):
        ax.set_title(text)
        ax.axis("off")
    return drawing


def _horse() -> np.ndarray:
    from adjoint_lib.experiments import data

    return data.sample("cifar10")[0][13]


def _centre_against_surroundings() -> np.ndarray:
    h = np.full((32, 32, 3), -1 / (3 * (32**2 - 16**2)))
    h[8:24, 8:24] = 1 / (3 * 16**2)
    return h


def _signed(ax: Axes, values: np.ndarray) -> None:
    """An image of signed values, zero in white."""
    limit = np.abs(values).max() or 1
    ax.imshow(values, cmap=SIGNED, vmin=-limit, vmax=limit)


@figure("convolution-matrix")
def convolution_matrix(size: int = 6) -> Figure:
    """A convolution as a matrix, and its adjoint; one colour for each tap of the kernel."""
    out = size - 2
    taps = np.full((out**2, size**2), np.nan)
    for i, j in np.ndindex(out, out):
        for a, b in np.ndindex(3, 3):
            taps[i * out + j, (i + a) * size + j + b] = 3 * a + b
    drawing, axes = plt.subplots(
        1, 2, figsize=(WIDTH, 3.5), width_ratios=[size**2, out**2], layout="constrained"
    )
    for ax, matrix, text in zip(axes, (taps, taps.T), ("convolution", "adjoint"), strict=True):
        ax.imshow(matrix, cmap="viridis", vmin=0, vmax=8)
        ax.set_title(text)
        ax.grid(False)
        ax.set(xticks=[], yticks=[])
        ax.spines[:].set(visible=True, color=INK)
    axes[0].set(xlabel=f"{size**2} pixels", ylabel=f"{out**2} units")
    axes[1].set(xlabel=f"{out**2} units", ylabel=f"{size**2} pixels")
    return drawing


@figure("receptive-field")
def receptive_field(kernel: int = 3, seed: int = 0) -> Figure:
    """A unit's kernel carried back through 0, 1, 3 and 6 layers of convolutions and masks.

    Args:
        kernel: the width of all kernels, an odd number up to 5.
        seed: of the random kernels and masks.
    """
    size = 31
    drawing, axes = plt.subplots(1, 4, figsize=(WIDTH, 2.1))
    for ax, depth in zip(axes, (0, 1, 3, 6), strict=True):
        _signed(ax, _carried_back(depth, kernel, size, seed))
        reach = kernel + (kernel - 1) * depth
        corner = (size - reach) / 2 - 0.5
        ax.add_patch(
            Rectangle((corner, corner), reach, reach, fill=False, edgecolor=INK, ls="--", lw=1.2)
        )
        ax.set_title(f"{depth} layer{'s' * (depth != 1)} back")
        ax.axis("off")
    return drawing


def _carried_back(depth: int, width: int, size: int, seed: int) -> np.ndarray:
    """The kernel of the middle unit, pulled back through `depth` layers: (size, size)."""
    rng = np.random.default_rng(seed)
    start, margin = (size - width) // 2, width // 2
    carried = np.zeros((size, size))
    carried[start : start + width, start : start + width] = rng.normal(size=(width, width))
    for _ in range(depth):
        carried = carried * (rng.normal(size=carried.shape) > -0.5)
        kernel, wide = rng.normal(size=(width, width)), np.pad(carried, margin)
        carried = sum(
            kernel[a, b] * wide[2 * margin - a :, 2 * margin - b :][:size, :size]
            for a, b in np.ndindex(width, width)
        )
    return carried
