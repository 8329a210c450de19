"""What hypersurfaces are good for: ties, decisions, one mistake taken apart, other methods."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from adjoint_book.figures._drawing import tint
from adjoint_book.figures._networks import network
from adjoint_book.figures._registry import figure
from adjoint_book.figures._style import (
    BLUE,
    CYCLE,
    GREY,
    INK,
    ORANGE,
    SIGNED,
    VERMILION,
    WIDTH,
)
from adjoint_book.figures.ch16_what_hypersurfaces_show import CLASSES, as_colours

if TYPE_CHECKING:
    from adjoint_book.boundary import Walk
    from adjoint_lib.core.contributions import LayerContributions
    from adjoint_lib.core.equivalent_net import EquivalentNet

NAMES = {
    "vgg7": "VGG7",
    "resnet20": "ResNet20",
    "resnet20-fixup": "ResNet20-Fixup",
    "cifar10": "CIFAR-10",
    "cifar100": "CIFAR-100",
}

# ------------------------------------------------------------------ ties

# The tiny network of the proof, with the scores A and C.
W0 = np.array([[1.0, 0.0], [-2.0, -2.0], [-1.0, 2.0]])
W1 = np.array([[2.0, -2.0, -1.0], [1.0, -2.0, -1.0]])
B0, B1 = np.array([1.0, 1.0, -2.0]), np.array([1.0, 1.0])
A_MINUS_C = np.array([2.0, -3.0])


@figure("steps-to-a-tie")
def steps_to_a_tie(points: Sequence[Sequence[float]] = ((1, 2), (1, 1), (0, 1))) -> Figure:
    """The plane of two pixels, where A and where C wins, and two exact steps to the tie.

    Args:
        points: the image, and where each step led.
    """
    across = np.linspace(-1.2, 2.2, 341)
    x1, x2 = np.meshgrid(across, across + 0.8)
    a0 = np.maximum(np.stack([x1, x2], -1) @ W0.T + B0, 0)
    lead = np.maximum(a0 @ W1.T + B1, 0) @ A_MINUS_C
    drawing, ax = plt.subplots(figsize=(0.72 * WIDTH, 0.66 * WIDTH))
    ax.contourf(x1, x2, lead, [-99, 0, 99], colors=[tint(ORANGE, 0.35), tint(BLUE, 0.25)])
    ax.contour(x1, x2, lead, [0], colors=[INK], linewidths=2.2)
    for w, b in zip(W0, B0, strict=True):
        hidden = x1 * w[0] + x2 * w[1] + b
        ax.contour(x1, x2, hidden, [0], colors=[GREY], linewidths=1.2, linestyles=["dashed"])
    ax.plot([-1.2, 2.2], [1, 1], color=VERMILION, ls=(0, (1, 1.3)), lw=2)
    for start, end in itertools.pairwise(points):
        ax.annotate("", end, start, arrowprops={"arrowstyle": "-|>", "color": VERMILION, "lw": 2.2})
    for n, (point, moved) in enumerate(zip(points, ((9, 4), (9, -13), (-14, 9)), strict=False)):
        ax.plot(*point, "o", color=INK, ms=7)
        ax.annotate(f"$x^{{({n})}}$", point, moved, textcoords="offset points", fontsize=13)
    ax.text(1.45, 2.45, "A", fontsize=17, color=BLUE, weight="bold")
    ax.text(-0.85, 0.0, "C", fontsize=17, color="#8A5F00", weight="bold")
    ax.set(xlabel="$x_1$", ylabel="$x_2$", xlim=(-1.2, 2.2), ylim=(-0.4, 3), aspect="equal")
    ax.grid(False)
    return drawing


@figure("walk-to-a-tie")
def walk_to_a_tie(
    image: np.ndarray | None = None, found: Walk | None = None, names: Sequence[str] = ()
) -> Figure:
    """An image, what was added to it, and the image of another class that this gives.

    Args:
        image: by default the first test image.
        found: the walk of VGG7 from it.
        names: of the classes before and after.
    """
    if image is None or found is None:
        from adjoint_book.boundary import walk

        net, images = network()
        image, classes = images[0], net.value(images[0])["fc"].numpy().argmax(1)
        found = walk(net.astype("float64"), image[None], classes, most=6, stop=False)
        names = [CLASSES[classes[0]], "another"]
    drawing, axes = plt.subplots(1, 4, figsize=(WIDTH, 2.3), width_ratios=[1, 1, 1, 1.45])
    added = found.images[0] - image
    axes[0].imshow(image)
    axes[1].imshow(as_colours(added))
    axes[2].imshow(np.clip(found.images[0], 0, 1))
    times = 0.5 / np.abs(added).max()
    words = (names[0], f"added (× {times:.0f})", names[1])
    for ax, text in zip(axes, words, strict=False):
        _bare(ax)
        ax.set_xlabel(text)
    leads = np.maximum(np.abs(found.margins[:, 0]), 1e-16)
    axes[3].grid(color=GREY, alpha=0.3)
    axes[3].plot(range(len(leads)), leads, "o-", color=BLUE)
    axes[3].set(yscale="log", xlabel="step", ylabel="|margin|", xticks=range(len(leads)))
    return drawing


@figure("distances-to-a-tie")
def distances_to_a_tie(
    found: Mapping[str, tuple[np.ndarray, np.ndarray]] | None = None,
) -> Figure:
    """Distances by one hypersurface a step against those by projected gradient, image by image.

    Args:
        found: for each network the two distances; by default those that are stored.
    """
    if found is None:
        from adjoint_book import measure

        columns = {name: measure.load("boundary", name, "cifar10") for name in ("vgg7", "resnet20")}
        found = {
            name: (
                np.array(each["columns"]["projected gradient"]),
                np.array(each["columns"]["one H a step"]),
            )
            for name, each in columns.items()
        }
    drawing, ax = plt.subplots(figsize=(0.7 * WIDTH, 0.62 * WIDTH))
    marks = zip(found.items(), (BLUE, ORANGE), "oD", strict=False)
    for (name, (ball, one)), colour, mark in marks:
        ax.plot(ball, one, mark, color=colour, ms=4.5, mew=0, alpha=0.7, label=NAMES[name])
    ends = np.array(
        [min(b.min() for b, _ in found.values()), max(o.max() for _, o in found.values())]
    )
    ends *= np.array([0.8, 1.25])
    ax.plot(ends, ends, color=GREY, lw=1.5)
    ax.set(xscale="log", yscale="log", xlim=ends, ylim=ends)
    ax.set(xlabel="projected gradient", ylabel="one hypersurface a step")
    ax.legend(loc="upper left")
    return drawing


# ------------------------------------------------------------------ decisions


@figure("who-decides")
def who_decides(shares: Mapping[str, Sequence[tuple[float, float, float]]] | None = None) -> Figure:
    """How often the image's part alone, and the biases' part alone, choose the network's class.

    Args:
        shares: for each network (share, low, high) of the image's part, of the biases' part, and
            the share that chance would give; by default those that are stored.
    """
    shares = _stored_shares() if shares is None else shares
    drawing, ax = plt.subplots(figsize=(WIDTH, 0.62 * len(shares) + 0.9))
    for n, (image, biases, chance) in enumerate(shares.values()):
        for (share, low, high), colour, moved in ((image, BLUE, -0.19), (biases, ORANGE, 0.19)):
            label = {BLUE: "the image's part alone", ORANGE: "the biases' part alone"}[colour]
            ax.barh(n + moved, 100 * share, 0.36, color=colour, label=label if n == 0 else None)
            ax.plot([100 * low, 100 * high], [n + moved] * 2, color=INK, lw=2.2)
        ax.plot([100 * chance[0]] * 2, [n - 0.4, n + 0.4], color=INK, lw=1.6, ls=(0, (1, 1)))
    ax.set_yticks(range(len(shares)), list(shares))
    ax.invert_yaxis()
    ax.grid(axis="y", visible=False)
    ax.set(xlabel="chooses the network's class (%)", xlim=(0, 100))
    drawing.legend(loc="outside upper center", ncols=2)
    return drawing


def _stored_shares() -> dict[str, Sequence[tuple[float, float, float]]]:
    from adjoint_book import measure
    from adjoint_book.decisions import from_digits
    from adjoint_lib.verification.intervals import wilson

    found: dict[str, Sequence[tuple[float, float, float]]] = {}
    for dataset, classes in (("cifar10", 10), ("cifar100", 100)):
        for model in ("vgg7", "resnet20", "resnet20-fixup"):
            columns = measure.load("decisions", model, dataset)["columns"]
            truths = from_digits(columns["digits"])
            parts = [
                (float(t.mean()), *wilson(float(t.mean()), t.size))
                for t in (truths.same, truths.biases_same)
            ]
            found[f"{NAMES[model]}\n{NAMES[dataset]}"] = [*parts, (1 / classes, 0, 0)]
    return found


# ------------------------------------------------------------------ one mistake


@figure("a-mistake")
def a_mistake(
    parts: LayerContributions | None = None,
    number: int = 20,
    label: int = 7,
    image: np.ndarray | None = None,
) -> Figure:
    """The margin of the right class over the chosen one, part by part, beside the mean parts.

    Args:
        parts: of the class scores, for many images; by default those of VGG7.
        number: of the image that the network gets wrong.
        label: its right class.
        image: the picture itself.
    """
    if parts is None or image is None:
        net, images = network()
        parts, image = net.contributions(images, "fc")["fc"], images[number]
    chosen = int(parts.value[number].argmax())
    each = parts.parts[..., label] - parts.parts[..., chosen]
    drawing, (left, ax) = plt.subplots(1, 2, figsize=(WIDTH, 3.1), width_ratios=[1, 2.3])
    left.imshow(image)
    _bare(left)
    left.set_xlabel(f"{CLASSES[label]}, taken for {CLASSES[chosen]}")
    rows = np.arange(len(parts) + 1)
    here = [*each[:, number], each[:, number].sum()]
    mean = [*each.mean(1), each.mean(1).sum()]
    colours = [BLUE, *[ORANGE] * (len(parts) - 1), GREY]
    ax.barh(rows, here, color=colours, height=0.62)
    ax.plot(mean, rows, "D", color=INK, mec="white", ms=7, label="mean over the images")
    ax.axvline(0, color=INK, lw=1)
    ax.set_yticks(rows, [*parts.sources, "sum"])
    ax.invert_yaxis()
    ax.grid(axis="x", color=GREY, alpha=0.3)
    ax.grid(axis="y", visible=False)
    ax.set_xlabel(f"{CLASSES[label]} $-$ {CLASSES[chosen]}")
    drawing.legend(loc="outside upper right")
    return drawing


# ------------------------------------------------------------------ other methods


@figure("six-maps")
def six_maps(
    net: EquivalentNet | None = None,
    images: np.ndarray | None = None,
) -> Figure:
    """What six methods say of the same images: red speaks for the class, blue against it.

    Args:
        net, images: by default VGG7, and three test images.
    """
    from adjoint_book.attributions import METHODS, shown

    if net is None or images is None:
        net, photos = network()
        images = photos[[0, 1, 8]]
    classes = net.value(images)["fc"].numpy().argmax(1)
    names = [name for name in METHODS if name != "H"]
    drawing, axes = plt.subplots(
        len(images), 1 + len(names), figsize=(WIDTH, 1.12 * len(images) + 0.5), squeeze=False
    )
    maps = {name: shown(net, images, classes, name) for name in names}
    for n, row in enumerate(axes):
        row[0].imshow(images[n])
        row[0].set_ylabel(CLASSES[classes[n]])
        for ax, name in zip(row[1:], names, strict=True):
            limit = np.abs(maps[name][n]).max() or 1
            ax.imshow(maps[name][n], cmap=SIGNED, vmin=-limit, vmax=limit)
        for ax in row:
            _bare(ax)
    titles = ["image", *(name.replace(" ", "\n", 1) for name in names)]
    for ax, title in zip(axes[0], titles, strict=True):
        ax.set_title(title, fontsize=9)
    return drawing


@figure("deletion-curves")
def deletion_curves(kept: Mapping[str, np.ndarray] | None = None) -> Figure:
    """How many images keep their class while pixels go, the ones a method names first.

    Args:
        kept: for each method (images, fractions) of truth values; by default those that are stored
            of VGG7.
    """
    from adjoint_book.attributions import FRACTIONS
    from adjoint_lib.verification.intervals import wilson

    kept = stored_deletions() if kept is None else kept
    drawing, ax = plt.subplots(figsize=(WIDTH, 3.7))
    styles = ["-", (0, (5, 1.5)), (0, (3, 1, 1, 1)), (0, (1, 1)), (0, (6, 2, 1, 2)), "-", "-"]
    for (name, truths), colour, style in zip(
        kept.items(), [*CYCLE[:5], GREY, INK], styles, strict=False
    ):
        shares = truths.mean(0)
        ends = np.array([wilson(float(share), len(truths)) for share in shares]).T
        ax.fill_between(100 * FRACTIONS, *(100 * ends), color=colour, alpha=0.13, lw=0)
        ax.plot(100 * FRACTIONS, 100 * shares, color=colour, ls=style, label=name)
    ax.set(xlabel="pixels made grey (%)", ylabel="images that keep\ntheir class (%)", ylim=(0, 101))
    drawing.legend(loc="outside lower center", ncols=3)
    return drawing


@functools.cache
def stored_deletions(model: str = "vgg7") -> dict[str, np.ndarray]:
    """(images, fractions) of truth values for each method, as stored."""
    from adjoint_book import measure

    columns = measure.load("attributions", model, "cifar10")["columns"]
    return {
        name: np.array([[bit == "1" for bit in row] for row in columns[f"{name}: kept"]])
        for name in measure.DELETED
    }


def _bare(ax: Axes) -> None:
    """No ticks and no grid: the axes of a picture."""
    ax.set(xticks=[], yticks=[])
    ax.grid(False)
