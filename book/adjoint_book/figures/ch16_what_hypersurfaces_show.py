"""What hypersurfaces show of a decision, and how far that goes.

Blue is the image, orange the biases, as in the whole book. A figure without arguments computes its
own example, VGG7 on a test image.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure

from adjoint_book.figures._networks import network
from adjoint_book.figures._registry import figure
from adjoint_book.figures._style import (
    BLUE,
    GREEN,
    GREY,
    INK,
    ORANGE,
    SIGNED,
    SKY,
    VERMILION,
    WIDTH,
)
from adjoint_book.figures.ch06_five_modes import as_colours

if TYPE_CHECKING:
    from adjoint_lib.core.equivalent_net import EquivalentNet

CLASSES = ("plane", "car", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")
SHADES = LinearSegmentedColormap.from_list("biases", ["#FBE3B0", ORANGE, "#7A4A00"])


# ------------------------------------------------------------------ contributions


@figure("waterfall")
def waterfall(
    parts: Mapping[str, Sequence[float]] | None = None, labels: Sequence[str] | None = None
) -> Figure:
    """How a value is made up, step by step: first the image's part, then each bias vector's.

    Args:
        parts: for each unit, the parts of its value; by default two classes of VGG7.
        labels: the names of the parts.
    """
    if parts is None or labels is None:
        units, sources = scores()
        first, second = np.argsort(units.value)[-2:][::-1]
        parts = {CLASSES[n]: units.contributions[n] for n in (first, second)}
        labels = sources
    drawing, axes = plt.subplots(
        1,
        len(parts),
        figsize=(WIDTH, 0.34 * len(labels) + 1.5),
        sharex=True,
        sharey=True,
        squeeze=False,
    )
    for ax, (name, values) in zip(axes[0], parts.items(), strict=True):
        steps = np.asarray(values, float)
        ends = np.cumsum(steps)
        begins = ends - steps
        colours = [BLUE, *[ORANGE] * (len(steps) - 1), GREY]
        ax.barh(
            range(len(steps) + 1), [*steps, ends[-1]], left=[*begins, 0], color=colours, height=0.7
        )
        for n, end in enumerate(ends):
            ax.plot([end, end], [n - 0.35, n + 1.35], color=INK, lw=1)
        ax.axvline(0, color=INK, lw=1)
        ax.set_title(name)
        ax.grid(axis="y", visible=False)
        ax.set_xlabel("sum so far")
        ax.use_sticky_edges = False
        ax.margins(x=0.06)
    axes[0, 0].set_yticks(range(len(labels) + 1), [*labels, "value"])
    axes[0, 0].invert_yaxis()
    return drawing


@figure("scores-by-source")
def scores_by_source(
    image: int = 0, net: EquivalentNet | None = None, images: np.ndarray | None = None
) -> Figure:
    """All class scores of an image, each as a stack of the parts that make it up.

    Args:
        image: which one.
        net, images: by default VGG7 and the first test images of CIFAR-10.
    """
    if net is None or images is None:
        net, images = network()
    units = net.hypersurface(images[image], "fc")[:]
    parts = units.contributions
    drawing, (left, ax) = plt.subplots(1, 2, figsize=(WIDTH, 3.7), width_ratios=[1, 3.2])
    left.imshow(images[image])
    _bare(left)
    count = parts.shape[1]
    colours = [BLUE, *(SHADES((n + 0.5) / (count - 1)) for n in range(count - 1))]
    for sign in (1, -1):
        stacked = np.zeros(len(parts))
        for n in range(count):
            step = np.where(np.sign(parts[:, n]) == sign, parts[:, n], 0)
            label = units.sources[n] if sign == 1 else None
            ax.barh(
                range(len(parts)), step, left=stacked, color=colours[n], label=label, height=0.75
            )
            stacked = stacked + step
    ax.plot(units.value, range(len(parts)), "D", color=INK, ms=6, mec="white", label="score")
    ax.axvline(0, color=INK, lw=1)
    ax.set_yticks(range(len(parts)), CLASSES if len(parts) == 10 else range(len(parts)))
    ax.invert_yaxis()
    ax.grid(axis="y", visible=False)
    ax.set_xlabel("contribution to the score")
    ax.use_sticky_edges = False
    ax.margins(x=0.04, y=0.02)
    drawing.legend(
        *ax.get_legend_handles_labels(), loc="outside lower left", ncols=5, columnspacing=1,
        handlelength=1, fontsize=10,
    )  # fmt: skip
    return drawing


# ------------------------------------------------------------------ pictures of H


@figure("class-hypersurfaces")
def class_hypersurfaces(
    net: EquivalentNet | None = None, image: np.ndarray | None = None
) -> Figure:
    """H_I of the ten class scores for one image, in mode RM0.

    Args:
        net, image: by default VGG7, on the first test image.
    """
    if net is None or image is None:
        net, image = _first()
    units = net.hypersurface(image, "fc")[:]
    limit = np.abs(units.image).max()
    drawing, axes = plt.subplots(3, 4, figsize=(WIDTH, 5.5))
    axes = axes.reshape(-1)
    axes[0].imshow(image)
    axes[0].set_title("the image", fontsize=10)
    for ax, name, H, value in zip(axes[1:], CLASSES, units.image, units.value, strict=False):
        ax.imshow(np.clip(0.5 + H / limit, 0, 1))
        best = value == units.value.max()
        ax.set_title(f"{name} {value:.1f}", fontsize=10, weight="bold" if best else "normal")
    for ax in axes:
        _bare(ax)
    axes[-1].axis("off")
    return drawing


@figure("strongest-units")
def strongest_units(
    net: EquivalentNet | None = None,
    image: np.ndarray | None = None,
    layers: Sequence[str] = ("conv1", "conv3", "conv5"),
    columns: int = 6,
) -> Figure:
    """H_I of the units that answer most strongly to an image, in several layers (RM2).

    Args:
        net, image: by default VGG7, on the first test image.
        layers: one row each.
        columns: how many units of each, all of different channels.
    """
    if net is None or image is None:
        net, image = _first()
    drawing, axes = plt.subplots(
        len(layers), columns, figsize=(WIDTH, WIDTH * len(layers) / columns + 0.1), squeeze=False
    )
    values = net.value(image)
    for row, name in zip(axes, layers, strict=True):
        units = strongest(values[name].numpy()[0], columns)
        for ax, H in zip(row, net.hypersurface(image, name, "RM2").at(units).image, strict=True):
            ax.imshow(as_colours(H))
            _bare(ax)
        row[0].set_ylabel(name)
    return drawing


def strongest(c: np.ndarray, count: int) -> np.ndarray:
    """The largest unit of each of the `count` strongest channels of c (h, w, channels)."""
    flat = c.reshape(-1, c.shape[-1])
    channels = np.argsort(flat.max(0))[::-1][:count]
    y, x = np.unravel_index(flat[:, channels].argmax(0), c.shape[:2])
    return np.stack([y, x, channels], 1)


@figure("why-this-class")
def why_this_class(
    this: str = "",
    that: str = "",
    net: EquivalentNet | None = None,
    image: np.ndarray | None = None,
) -> Figure:
    """The hypersurface of a difference of two class scores, and what it makes of the image.

    Args:
        this, that: two classes; by default the two with the highest scores.
        net, image: by default VGG7, on the first test image.
    """
    if net is None or image is None:
        net, image = _first()
    units = net.hypersurface(image, "fc")[:]
    order = np.argsort(units.value)[::-1]
    a = CLASSES.index(this) if this in CLASSES else order[0]
    b = CLASSES.index(that) if that in CLASSES else order[1]
    drawing, axes = plt.subplots(1, 4, figsize=(WIDTH, 2.45), width_ratios=[1, 1, 1, 1.25])
    difference = units.image[a] - units.image[b]
    each = (image * difference).sum(-1)
    limit = np.abs(each).max() or 1
    axes[0].imshow(image)
    axes[1].imshow(as_colours(difference))
    axes[2].imshow(each, cmap=SIGNED, vmin=-limit, vmax=limit)
    for ax, label in zip(axes, ("$x$", r"$\Delta H_I$", r"$x \odot \Delta H_I$"), strict=False):
        _bare(ax)
        ax.set_xlabel(label)
    parts = units.contributions[a] - units.contributions[b]
    bars = [parts[0], parts[1:].sum(), parts.sum()]
    axes[3].bar(range(3), bars, color=[BLUE, ORANGE, GREY], width=0.7)
    axes[3].axhline(0, color=INK, lw=1)
    axes[3].set_xticks(range(3), ["image", "biases", "sum"], rotation=40)
    axes[3].grid(axis="x", visible=False)
    axes[3].set_title(f"{CLASSES[a]} $-$ {CLASSES[b]}", fontsize=10)
    return drawing


# ------------------------------------------------------------------ how far it goes


@figure("how-far-it-holds")
def how_far_it_holds(
    walk: tuple[np.ndarray, np.ndarray, np.ndarray] | None = None,
    patches: tuple[np.ndarray, np.ndarray] | None = None,
) -> Figure:
    """What the linear map predicts, and what the network does: on a walk, and with patches gone.

    Args:
        walk: steps, predicted margins, margins of the network.
        patches: changes of the margin when a patch is made grey: predicted, and of the network.
    """
    if walk is None or patches is None:
        walk, patches = _example_reach()
    drawing, (left, right) = plt.subplots(1, 2, figsize=(WIDTH, 3.3))
    steps, predicted, true = walk
    left.plot(steps, predicted, color=VERMILION, ls=(0, (4, 2)), label="predicted")
    left.plot(steps, true, color=BLUE, label="network")
    left.axhline(0, color=INK, lw=1)
    left.plot(0, true[np.argmin(np.abs(steps))], "o", color=INK, ms=7)
    left.set(xlabel="step towards a tie", ylabel="margin")
    left.legend(loc="best")
    predicted, true = patches
    ends = np.array([min(predicted.min(), true.min()), max(predicted.max(), true.max())]) * 1.1
    right.plot(ends, ends, color=GREY, lw=1.5)
    right.plot(predicted, true, "o", color=BLUE, ms=5, mec="white", alpha=0.8)
    right.set(xlim=ends, ylim=ends, xlabel="predicted change", ylabel="network's change")
    right.set_box_aspect(1)
    return drawing


@figure("share-of-the-score")
def share_of_the_score(shares: Mapping[str, np.ndarray] | None = None) -> Figure:
    """How much of a score each method accounts for, image by image.

    Args:
        shares: for each method, the sum of what it assigns over the score, one for each image.
    """
    if shares is None:
        net, images = network()
        units = net.hypersurface(images[:20], "fc")[:]
        best = units.value.argmax(1)
        parts = units.contributions[np.arange(len(best)), best]
        shares = {
            "gradient × input": parts[:, 0] / parts.sum(1),
            "image and biases": parts.sum(1) / parts.sum(1),
        }
    drawing, ax = plt.subplots(figsize=(WIDTH, 0.62 * len(shares) + 0.9))
    rng = np.random.default_rng(0)
    colours = (BLUE, SKY, ORANGE, GREEN, VERMILION)
    for n, found in enumerate(shares.values()):
        spread = rng.uniform(-0.2, 0.2, len(found)) * (np.ptp(found) > 1e-6)
        colour = colours[n % len(colours)]
        ax.plot(100 * found, n + spread, "o", color=colour, ms=5, mew=0, alpha=0.7)
        middle = 100 * np.median(found)
        ax.plot([middle, middle], [n - 0.33, n + 0.33], color=INK, lw=2)
    ax.axvline(100, color=GREY, lw=1.2, zorder=0)
    ax.axvline(0, color=GREY, lw=1.2, zorder=0)
    ax.set_yticks(range(len(shares)), list(shares))
    ax.invert_yaxis()
    ax.set_xlabel("share of the winning score (%)")
    ax.grid(axis="y", visible=False)
    return drawing


@figure("other-weights")
def other_weights(
    nets: Mapping[str, EquivalentNet] | None = None,
    image: np.ndarray | None = None,
    unit: int = 3,
) -> Figure:
    """The same score's hypersurface in one network and in another with random weights.

    Args:
        nets: by name; by default VGG7, and VGG7 with random weights.
        image: by default the first test image.
        unit: the class.
    """
    if nets is None or image is None:
        import adjoint_lib as al

        net, image = _first()
        other = al.equivalent(al.models.randomise(al.models.vgg7(), seed=1))
        nets = {"this network": net, "random weights": other}
    drawing, axes = plt.subplots(len(nets), 3, figsize=(WIDTH * 0.85, 1.85 * len(nets) + 0.3))
    for row, (name, net) in zip(axes, nets.items(), strict=True):
        H = net.hypersurface(image, "fc")[unit].image
        each = (image * H).sum(-1)
        limit = np.abs(each).max() or 1
        row[0].imshow(image)
        row[1].imshow(as_colours(H))
        row[2].imshow(each, cmap=SIGNED, vmin=-limit, vmax=limit)
        row[0].set_ylabel(name)
        for ax in row:
            _bare(ax)
    for ax, label in zip(axes[-1], ("$x$", "$H_I$", r"$x \odot H_I$"), strict=True):
        ax.set_xlabel(label)
    return drawing


# ------------------------------------------------------------------ the example


def scores():
    """The class scores of VGG7 on the first test image, and the names of their parts."""
    net, image = _first()
    units = net.hypersurface(image, "fc")[:]
    return units, units.sources


def _first() -> tuple[EquivalentNet, np.ndarray]:
    net, images = network()
    return net, images[0]


@functools.cache
def _example_reach() -> tuple[
    tuple[np.ndarray, np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]
]:
    """Twenty steps from the first test image towards a tie of two classes, and 64 patches."""
    net, image = _first()
    units = net.hypersurface(image, "fc")[:]
    a, b = np.argsort(units.value)[::-1][:2]
    difference = units.image[a] - units.image[b]
    margin = units.value[a] - units.value[b]
    towards = -margin * difference / np.sum(difference**2)
    steps = np.linspace(-1, 2, 31)

    def margins(batch: np.ndarray) -> np.ndarray:
        values = net.value(batch.astype(np.float32))["fc"].numpy()
        return values[:, a] - values[:, b]

    walked = margins(image + steps[:, None, None, None] * towards)
    without = []
    for y, x in np.ndindex(8, 8):
        other = image.copy()
        other[4 * y : 4 * y + 4, 4 * x : 4 * x + 4] = 0.5
        without.append(other)
    changed = np.array(without)
    predicted = np.sum((changed - image) * difference, axis=(1, 2, 3))
    return (steps, margin * (1 - steps), walked), (predicted, margins(changed) - margin)


def _bare(ax: Axes) -> None:
    """No ticks and no grid: the axes of a picture."""
    ax.set(xticks=[], yticks=[])
    ax.grid(False)
