"""The images themselves: how they are stored, and what augmentation makes of them."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from adjoint_book.figures._drawing import arrow, canvas, tint, write
from adjoint_book.figures._registry import figure
from adjoint_book.figures._style import BLUE, GREEN, GREY, INK, ORANGE, SMALL, VERMILION, WIDTH

COLOURS = {"red": VERMILION, "green": GREEN, "blue": BLUE}
SHIP = 1  # an image of the CIFAR-10 sample with clear colours, and a left and a right

# What `paper_augmentation` draws: uniform numbers for flip, saturation, contrast, brightness, crop.
NUMBERS = (0.2, 0.9, 0.85, 0.35, 0.0, 0.8)


# ------------------------------------------------------------------ what is there


@figure("sample-images")
def sample_images() -> Figure:
    """Images of both data sets with the names of their classes."""
    from adjoint_lib.experiments import data

    drawing, axes = plt.subplots(4, 5, figsize=(WIDTH, 5.9))
    for half, name in enumerate(("cifar10", "cifar100")):
        images, labels = data.sample(name)
        for place, ax in enumerate(axes[2 * half : 2 * half + 2].flat):
            word = data.CLASS_NAMES[name][labels[place]].replace("_", " ")
            _show(ax, images[place], word, VERMILION if half else BLUE)
    return drawing


# ------------------------------------------------------------------ how it is stored


@figure("binary-row")
def binary_row() -> Figure:
    """The bytes of a 2 by 2 image in a file: a label, then one plane for each colour."""
    drawing, ax = canvas(WIDTH, 3.0)
    side, top = 0.46, 2.45
    values = np.arange(10, 130, 10)
    left = (WIDTH - 13 * side) / 2
    _byte(ax, left, top, side, "3", GREY)
    write(ax, (left + side / 2, top + side + 0.18), "label", 11)
    for plane, (name, colour) in enumerate(COLOURS.items()):
        start = left + (1 + 4 * plane) * side
        write(ax, (start + 2 * side, top + side + 0.18), f"{name}: 4 bytes", 11, color=colour)
        for place in range(4):
            _byte(ax, start + place * side, top, side, str(values[4 * plane + place]), colour)
        corner = start + side, 1.0
        for place in range(4):
            row, column = divmod(place, 2)
            x, y = corner[0] + column * side, corner[1] - row * side
            _byte(ax, x, y, side, str(values[4 * plane + place]), colour)
        end = (corner[0] + side, corner[1] + side)
        arrow(ax, (start + 2 * side, top), end, colour, 0.05, 0.05)
    write(ax, (WIDTH / 2, 0.2), "row by row, from the top left; pixel (0, 0) is (10, 50, 90)", 11)
    return drawing


@figure("misread-image")
def misread_image() -> Figure:
    """One image's 3072 bytes read in the right order and in two wrong ones."""
    image = _sample()
    planes = image.transpose(2, 0, 1)  # as in the file
    drawing, axes = plt.subplots(1, 3, figsize=(WIDTH, 2.45))
    _show(axes[0], image, "planes, then\ncolours last", INK)
    _show(axes[1], planes.reshape(32, 32, 3), "read as if\ncolours were last", INK)
    _show(axes[2], image[..., ::-1], "blue taken\nfor red", INK)
    return drawing


# ------------------------------------------------------------------ what augmentation does


@figure("paper-augmentation")
def paper_augmentation(
    flip: float = NUMBERS[0],
    saturation: float = NUMBERS[1],
    contrast: float = NUMBERS[2],
    brightness: float = NUMBERS[3],
    row: float = NUMBERS[4],
    column: float = NUMBERS[5],
) -> Figure:
    """An image after each step of the paper's augmentation, in its order.

    Args:
        flip, saturation, contrast, brightness: uniform numbers in [0, 1), which each of these steps
            turns into its own.
        row, column: uniform numbers in [0, 1), which the crop turns into the corner of its window.
    """
    drawing, axes = plt.subplots(2, 3, figsize=(WIDTH, 4.9))
    steps = paper_steps(_sample(), (flip, saturation, contrast, brightness, row, column))
    for ax, (name, image) in zip(axes.flat, steps, strict=True):
        _show(ax, np.clip(image, 0, 1), name, INK)
    corner = int(5 * column) - 0.5, int(5 * row) - 0.5
    frame = Rectangle(corner, 32, 32, fill=False, edgecolor=ORANGE, linewidth=2.5)
    axes.flat[4].add_patch(frame)  # what the crop keeps
    return drawing


def paper_steps(image: np.ndarray, numbers) -> list[tuple[str, np.ndarray]]:
    """The image before and after each step, with what was done; computed one step at a time."""
    import tensorflow as tf

    flip, saturation, contrast, brightness, row, column = numbers
    steps = [("as it is", image)]
    x = image[:, ::-1] if flip < 0.5 else image
    steps.append(("flipped" if flip < 0.5 else "not flipped", x))
    value = x.max(-1, keepdims=True)
    spread = value - x.min(-1, keepdims=True)
    limit = np.divide(value, spread, out=np.zeros_like(value), where=spread > 0)
    x = value - (value - x) * np.minimum(2 * saturation, limit)
    steps.append((f"saturation × {2 * saturation:.1f}", x))
    mean = x.mean((0, 1))
    x = (x - mean) * (0.4 + 1.2 * contrast) + mean
    x = x + brightness - 0.5
    change = f"contrast × {0.4 + 1.2 * contrast:.1f}\nbrightness {brightness - 0.5:+.2f}"
    steps.append((change, x))
    x = tf.image.resize(x, (36, 36)).numpy()
    steps.append(("resized to 36 × 36", x))
    top, left = int(5 * row), int(5 * column)
    steps.append(("cropped to 32 × 32", x[top : top + 32, left : left + 32]))
    return steps


@figure("reflected-crop")
def reflected_crop(down: int = -3, right: int = 4) -> Figure:
    """An image continued by reflection, the window that is cut from it, and what is in it.

    Args:
        down, right: how far the window is moved from the middle, in pixels, from -4 to 4.
    """
    padded = np.pad(_sample(), ((4, 4), (4, 4), (0, 0)), mode="reflect")
    drawing, axes = plt.subplots(1, 3, figsize=(WIDTH, 2.5))
    top, left = 4 + down, 4 + right
    cut = padded[top : top + 32, left : left + 32]
    _show(axes[0], padded, "reflected\nby 4 pixels", INK)
    for corner, colour, style in (
        ((3.5, 3.5), INK, ":"),
        ((left - 0.5, top - 0.5), ORANGE, "-"),
    ):
        axes[0].add_patch(
            Rectangle(corner, 32, 32, fill=False, edgecolor=colour, linewidth=2.5, linestyle=style)
        )
    _show(axes[1], cut, "cut", INK)
    _show(axes[2], cut[:, ::-1], "and flipped", INK)
    return drawing


@figure("augmentations-compared")
def augmentations_compared(seed: int = 0) -> Figure:
    """One image as training sees it in five epochs, with the paper's augmentation and with ours."""
    from adjoint_lib.experiments.training.augmentation import AUGMENTATIONS, draw

    batch = np.rint(_sample()[None] * 255).astype(np.uint8)
    drawing, axes = plt.subplots(2, 5, figsize=(WIDTH, 2.75))
    for row, name in zip(axes, ("paper", "crop-flip"), strict=True):
        for epoch, ax in enumerate(row):
            made = AUGMENTATIONS[name].apply(batch, draw(AUGMENTATIONS[name], seed, epoch, 1))
            _show(ax, np.clip(made[0], 0, 1), "", INK)
        row[0].set_ylabel({"paper": "the paper's", "crop-flip": "ours"}[name], fontsize=11)
    return drawing


def _sample() -> np.ndarray:
    from adjoint_lib.experiments import data

    return data.sample("cifar10")[0][SHIP]


def _show(ax: Axes, image: np.ndarray, title: str, colour: str) -> None:
    """An image without axes, and what it is above it."""
    ax.imshow(image, interpolation="nearest")
    ax.set(xticks=[], yticks=[])
    ax.grid(visible=False)
    for spine in ax.spines.values():
        spine.set_visible(False)
    ax.set_title(title, fontsize=SMALL + 1.5, color=colour)


def _byte(ax: Axes, x: float, y: float, side: float, text: str, colour: str) -> None:
    """One byte: a tinted square with its value."""
    ax.add_patch(
        Rectangle((x, y), side, side, facecolor=tint(colour), edgecolor=colour, linewidth=1.4)
    )
    write(ax, (x + side / 2, y + side / 2), text, 11)
