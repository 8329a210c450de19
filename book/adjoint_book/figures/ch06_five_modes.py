"""The adjoint blueprint, the two factors that make four modes, and hypersurfaces to look at.

Colours mean the same in the whole book: blue is the image, orange a bias, green a kernel,
vermilion what an adjoint carries back.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from adjoint_book.figures._drawing import Point, arrow, canvas, heading, rule, tint, write
from adjoint_book.figures._networks import network
from adjoint_book.figures._registry import figure
from adjoint_book.figures._style import BLUE, GREEN, GREY, INK, ORANGE, SIGNED, VERMILION, WIDTH

if TYPE_CHECKING:
    from adjoint_lib.core.equivalent_net import EquivalentNet


# ------------------------------------------------------------------ the paper's Fig. 3


@figure("adjoint-blueprint")
def adjoint_blueprint() -> Figure:
    """The paper's Fig. 3: a kernel is carried back to [x; x_b], in a convolution and a dense layer.

    Above, forward: the unit's value is an inner product with its kernel. Below, backward: the same
    value is an inner product of [x; x_b] with the kernel carried back.
    """
    drawing, ax = canvas(WIDTH, 5.7)
    for base, name in ((3.0, "(a) a convolution"), (0.0, "(b) a dense layer")):
        heading(ax, (0.1, base + 2.55), name)
        top, bottom = base + 1.85, base + 0.62
        _input(ax, (0.75, top), ("$x_0$", "$x_b$"))
        _input(ax, (0.75, bottom), ("$H_I$", "$H_b$"), carried=0.42 if base else 0.7)
        arrow(ax, (1.55, top), (2.68, top), INK)
        write(ax, (2.12, top + 0.17), "$F$", 14)
        arrow(ax, (2.7, bottom), (1.55, bottom), VERMILION)
        write(ax, (2.12, bottom + 0.17), "$J^{*}$", 14)
        if base:
            _maps(ax, (3.15, top), window=True)
            _grid(ax, (3.15, bottom), 0.5, 3, GREEN)
            _unit_in_map(ax, (5.35, top))
        else:
            _column(ax, (3.15, top), 6, INK)
            _column(ax, (3.15, bottom), 6, GREEN)
            _column(ax, (5.35, top), 4, INK, marked=1)
        label = "kernel $w$" if base else "weights $w_k$"
        write(ax, (3.15, bottom - (0.42 if base else 0.54)), label, 11)
        arrow(ax, (3.75, top), (4.9, top), INK)
        write(ax, (4.32, top + 0.19), r"$\langle\, F(v),\, w \,\rangle$", 12)
        write(ax, (5.35, top - 0.55), "the unit $c$", 11)
        _joined(ax, 0.75, top, bottom)
        write(ax, (5.35, bottom), r"$c = \langle\, v \mid H \,\rangle$", 14)
        write(ax, (5.35, bottom - 0.34), "$H=J^{*}w$", 12)
    rule(ax, (0.1, 2.85), (WIDTH - 0.1, 2.85))
    return drawing


def _joined(ax: Axes, x: float, top: float, bottom: float) -> None:
    """The inner product of what stands above with what stands below."""
    write(ax, (x - 0.1, (top + bottom) / 2), r"$\langle \cdot \mid \cdot \rangle$", 14)


def _input(ax: Axes, at: Point, names: tuple[str, str], carried: float = 0) -> None:
    """A picture and a bar beside it: x and x_b, or H_I and H_b with what is carried back."""
    x, y = at
    _square(ax, (x - 0.12, y), 0.7, BLUE)
    bar = Rectangle((x + 0.36, y - 0.35), 0.24, 0.7, facecolor=tint(ORANGE), edgecolor=ORANGE)
    bar.set(linewidth=1.8)
    ax.add_patch(bar)
    if carried:
        for left, width in ((x - 0.12 - carried / 2, carried), (x + 0.36, 0.24)):
            corner = left, y - carried / 2
            ax.add_patch(Rectangle(corner, width, carried, facecolor=VERMILION, alpha=0.35))
    write(ax, (x - 0.12, y), names[0])
    write(ax, (x + 0.48, y), names[1], 11)


def _square(ax: Axes, at: Point, size: float, edge: str, fill: float = 0.13) -> None:
    x, y = at
    patch = Rectangle((x - size / 2, y - size / 2), size, size, facecolor=tint(edge, fill))
    patch.set(edgecolor=edge, linewidth=1.6)
    ax.add_patch(patch)


def _maps(ax: Axes, at: Point, window: bool) -> None:
    """A pile of feature maps, with the window that the kernel reads."""
    x, y = at
    for shift in (0.2, 0.1, 0.0):
        _square(ax, (x + shift - 0.1, y + shift - 0.1), 0.68, INK, 0.05)
    if window:
        _grid(ax, (x - 0.17, y - 0.05), 0.3, 3, GREEN)


def _unit_in_map(ax: Axes, at: Point) -> None:
    """A feature map with one unit."""
    x, y = at
    _square(ax, at, 0.68, INK, 0.05)
    _square(ax, (x - 0.08, y + 0.06), 0.12, GREEN, 0.9)


def _grid(ax: Axes, at: Point, size: float, cells: int, edge: str) -> None:
    """A kernel: a square of cells."""
    x, y = at[0] - size / 2, at[1] - size / 2
    step = size / cells
    for i in range(cells):
        for j in range(cells):
            cell = Rectangle((x + i * step, y + j * step), step, step, facecolor=tint(edge, 0.3))
            cell.set(edgecolor=edge, linewidth=0.9)
            ax.add_patch(cell)


def _column(ax: Axes, at: Point, cells: int, edge: str, marked: int | None = None) -> None:
    """A vector, standing; one of its entries may be marked as a unit."""
    size = 0.13
    x, y = at[0] - size / 2, at[1] - cells * size / 2
    for i in range(cells):
        colour = GREEN if i == marked else edge
        share = 0.9 if i == marked else 0.05 if edge == INK else 0.3
        cell = Rectangle((x, y + i * size), size, size, facecolor=tint(colour, share))
        cell.set(edgecolor=edge, linewidth=1.1)
        ax.add_patch(cell)


# ------------------------------------------------------------------ the paper's Fig. 5


@figure("two-factors")
def two_factors() -> Figure:
    """The paper's Fig. 5: merge in-channels or not, pool positions or not, makes four modes."""
    drawing, ax = canvas(WIDTH, 5.2)
    half, height = WIDTH / 2, 2.6
    panels = [
        ("RM4", False, False, r"$H_{s,j,i}$", "gives one in-channel's part of a unit"),
        ("RM3", False, True, r"$\sum_s H_{s,j,i}$", "gives that part, summed over the map"),
        ("RM2", True, False, r"$\sum_j H_{s,j,i}$", "gives the unit $c_{s,i}$ itself"),
        ("RM1", True, True, r"$\sum_s \sum_j H_{s,j,i}$", "gives the sum of the map of $i$"),
    ]
    for n, (name, merge, pool, formula, meaning) in enumerate(panels):
        words = f"{'all windows' if pool else 'one window'}, "
        words += "all in-channels" if merge else "one in-channel"
        left, base = half * (n % 2), height * (1 - n // 2)
        write(ax, (left + 0.15, base + 2.36), name, 12, ha="left", weight="bold")
        write(ax, (left + 0.62, base + 2.36), words, 10.5, ha="left")
        middle = base + 1.52
        _mask(ax, (left + 0.66, middle), pool)
        _channels(ax, (left + 2.3, middle), merge, pool)
        arrow(ax, (left + 1.68, middle), (left + 1.26, middle), VERMILION)
        write(ax, (left + 1.48, middle + 0.2), "$J^{*}$", 12)
        write(ax, (left + half / 2, base + 0.68), formula, 14)
        write(ax, (left + half / 2, base + 0.22), meaning, 10.5)
    rule(ax, (half, 0.15), (half, 5.05))
    rule(ax, (0.1, height), (WIDTH - 0.1, height))
    return drawing


def _mask(ax: Axes, at: Point, pool: bool) -> None:
    """[x; x_b] with what comes back: a patch for one window, the whole image for all of them."""
    x, y = at
    _square(ax, (x - 0.12, y), 0.86, BLUE)
    bar = Rectangle((x + 0.4, y - 0.43), 0.16, 0.86, facecolor=tint(ORANGE), edgecolor=ORANGE)
    bar.set(linewidth=1.8)
    ax.add_patch(bar)
    size = 0.86 if pool else 0.4
    centre = (x - 0.12, y) if pool else (x - 0.22, y + 0.1)
    corner = (centre[0] - size / 2, centre[1] - size / 2)
    ax.add_patch(Rectangle(corner, size, size, facecolor=VERMILION, alpha=0.4))
    low, high = (y - 0.43, y + 0.43) if pool else (y - 0.12, y + 0.3)
    ax.add_patch(Rectangle((x + 0.4, low), 0.16, high - low, facecolor=VERMILION, alpha=0.4))


def _channels(ax: Axes, at: Point, merge: bool, pool: bool) -> None:
    """Three in-channel maps; those that the mode reads carry its kernel, at one place or all."""
    x, y = at
    size, shift = 0.62, 0.2
    for sheet in (2, 1, 0):
        centre = (x + shift * (sheet - 1), y + shift * (sheet - 1))
        used = merge or sheet == 0
        _square(ax, centre, size, INK if used else GREY, 0.05 if used else 0.12)
        if used and pool:
            _grid(ax, centre, size, 6, GREEN)
        elif used:
            _grid(ax, (centre[0] - 0.12, centre[1] + 0.14), 0.27, 3, GREEN)


# ------------------------------------------------------------------ cotangents


@figure("cotangents")
def cotangents(by_mode: Mapping[str, np.ndarray] | None = None) -> Figure:
    """What each mode hands to J*: weights for the in-channel feature maps.

    Args:
        by_mode: for each mode an array (h, w, c_in); by default those of a random 3 x 3 kernel.
    """
    by_mode = _example_cotangents() if by_mode is None else by_mode
    channels = next(iter(by_mode.values())).shape[-1]
    drawing, axes = plt.subplots(
        channels, len(by_mode), figsize=(WIDTH, 1.62 * channels + 0.3), squeeze=False
    )
    limit = max(np.abs(g).max() for g in by_mode.values())
    for column, (name, g) in zip(axes.T, by_mode.items(), strict=True):
        column[0].set_title(name, weight="bold")
        for channel, ax in enumerate(column):
            maps = g[..., channel]
            ax.imshow(maps, cmap=SIGNED, vmin=-limit, vmax=limit)
            ax.set_xticks(np.arange(0.5, maps.shape[1] - 1), minor=True)
            ax.set_yticks(np.arange(0.5, maps.shape[0] - 1), minor=True)
            ax.grid(False)
            ax.grid(which="minor", color="white", lw=1.5)
            ax.tick_params(which="both", length=0, labelbottom=False, labelleft=False)
            for spine in ax.spines.values():
                spine.set(visible=True, color=GREY)
            for (row, col), value in np.ndenumerate(maps):
                if value:
                    dark = abs(value) > 0.6 * limit
                    text = f"{value:.2g}".replace("-", "−")
                    at = {"ha": "center", "va": "center", "fontsize": 9}
                    ax.text(col, row, text, color="white" if dark else INK, **at)
    for channel, ax in enumerate(axes[:, 0]):
        ax.set_ylabel(f"in-channel {channel}")
    return drawing


def _example_cotangents() -> dict[str, np.ndarray]:
    kernel = np.random.default_rng(0).integers(-2, 3, (3, 3, 2)).astype(float)
    places = np.zeros((5, 5, 5, 5, 2))  # (y, x) of the window, then the map that it weighs
    for y, x in np.ndindex(5, 5):
        padded = np.zeros((7, 7, 2))
        padded[y : y + 3, x : x + 3] = kernel
        places[y, x] = padded[1:-1, 1:-1]
    only = np.array([1.0, 0.0])
    one, everywhere = places[1, 2], places.sum((0, 1))
    return {"RM4": one * only, "RM3": everywhere * only, "RM2": one, "RM1": everywhere}


# ------------------------------------------------------------------ hypersurfaces to look at


def as_colours(H: np.ndarray) -> np.ndarray:
    """H_I (h, w, 3) as a picture: grey is zero, the largest |entry| is full red, green or blue."""
    largest = np.abs(H).max()
    return 0.5 + H / (2 * largest) if largest else np.full(H.shape, 0.5)


@figure("hypersurface-gallery")
def hypersurface_gallery(
    net: EquivalentNet | None = None,
    image: np.ndarray | None = None,
    layers: Sequence[str] = ("conv0", "conv1", "conv3", "conv5"),
    columns: int = 6,
) -> Figure:
    """Hypersurfaces in the image (H_I, RM2) of units in the middle of several layers.

    Args:
        net, image: by default VGG7 as trained on CIFAR-10, and the first test image.
        layers: one row each.
        columns: how many out-channels of each layer.
    """
    if net is None or image is None:
        net, (image, *_) = network()
    drawing, axes = plt.subplots(
        len(layers), columns, figsize=(WIDTH, WIDTH * len(layers) / columns + 0.1), squeeze=False
    )
    for row, name in zip(axes, layers, strict=True):
        height, width, out = net.layer(name).shape
        H = net.hypersurface(image, name, "RM2")
        units = H[height // 2, width // 2, :: max(1, out // columns)].image[:columns]
        for ax, picture in zip(row, units, strict=True):
            ax.imshow(as_colours(picture))
            _bare(ax)
        row[0].set_ylabel(name)
    return drawing


@figure("unit-card")
def unit_card(
    layer: str = "conv3",
    mode: str = "RM2",
    channel: int = 5,
    net: EquivalentNet | None = None,
    image: np.ndarray | None = None,
) -> Figure:
    """One unit: the image, its hypersurface in the image, and what each part of v contributes.

    Args:
        layer, mode: as for `net.hypersurface`.
        channel: the out-channel; position and in-channel are the middle one and the first.
        net, image: by default VGG7 as trained on CIFAR-10, and the first test image.
    """
    if net is None or image is None:
        net, (image, *_) = network()
    mode = mode if mode in net.layer(layer).modes else net.layer(layer).modes[0]
    H = net.hypersurface(image, layer, mode)
    *axes_before, out = H.shape[1:]
    middle = [size // 2 for size in axes_before]
    if mode in ("RM4", "RM3"):
        middle[-1] = 0
    index = (*middle, channel % out)
    unit = H[index]
    drawing, axes = plt.subplots(1, 3, figsize=(WIDTH, 2.5), width_ratios=[1, 1, 1.35])
    axes[0].imshow(image)
    axes[0].set_xlabel("$x$")
    axes[1].imshow(as_colours(unit.image))
    axes[1].set_xlabel("$H_I$")
    for ax in axes[:2]:
        _bare(ax)
    parts = unit.contributions
    colours = [BLUE] + [ORANGE] * (len(parts) - 1)
    axes[2].barh(range(len(parts)), parts, color=colours)
    axes[2].axvline(0, color=INK, lw=1)
    axes[2].set_yticks(range(len(parts)), ["image", *(s.name for s in net.sources)])
    axes[2].invert_yaxis()
    axes[2].grid(axis="y", visible=False)
    where = ", ".join(map(str, index))
    axes[2].set_xlabel("contribution")
    axes[2].set_title(f"{layer}, {mode}, unit [{where}]", fontsize=10)
    return drawing


def _bare(ax: Axes) -> None:
    """No ticks and no grid: the axes of a picture."""
    ax.set(xticks=[], yticks=[])
    ax.grid(False)
