"""Feature maps twice, computed and reconstructed, and the parts that make one up."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, NamedTuple

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from adjoint_book.figures._networks import network
from adjoint_book.figures._registry import figure
from adjoint_book.figures._style import BLUE, POSITIVE, SIGNED, SKY, SMALL, WIDTH

if TYPE_CHECKING:
    from adjoint_lib.core.equivalent_net import EquivalentNet

ROWS = 8  # of maps in a picture
DPI = 144
LEVELS = 33  # of colour in the pictures of all maps: enough for the eye, a third of the bytes

FEATURE_MAPS = {  # the layers that the paper shows
    ("vgg7", "cifar10"): "conv1",
    ("resnet20", "cifar10"): "conv10",
    ("resnet20-fixup", "cifar10"): "conv15",
    ("vgg7", "cifar100"): "conv5",
    ("resnet20", "cifar100"): "conv3",
    ("resnet20-fixup", "cifar100"): "conv12",
}


class Maps(NamedTuple):
    """A layer's units for one image, (height, width, channels) each, in float64."""

    c: np.ndarray  # from the network
    c_hat: np.ndarray  # reconstructed, an inner product for each unit
    A: np.ndarray  # the rounding scale
    u: float  # the unit roundoff of the network's precision

    @property
    def difference(self) -> np.ndarray:
        """What rounding made of c_hat = c."""
        return self.c_hat - self.c


def maps_of(net: EquivalentNet, image: np.ndarray, layer: str) -> Maps:
    """The feature maps of a layer, computed and reconstructed, and their rounding scale."""
    from adjoint_lib.core.error_bounds import rounding_scale, unit_roundoff
    from adjoint_lib.verification.verify import reconstruct

    c = net.value(image)[layer][0].numpy().astype(float)
    c_hat = reconstruct(net, image, layer)[layer].astype(float)
    A = rounding_scale(net.freeze(image), [net.layer(layer)])[layer][0]
    return Maps(c, c_hat, A, unit_roundoff(net.dtype))


@functools.cache
def paper_maps(model: str, dataset: str) -> Maps:
    """The maps that the paper shows of a network on a data set, for the first sample image."""
    net, images = network(model, dataset)
    return maps_of(net, images[0], FEATURE_MAPS[model, dataset])


def rank_correlation(a: np.ndarray, b: np.ndarray) -> float:
    """Spearman's: the correlation of ranks, equal values sharing the mean of theirs."""

    def ranks(values: np.ndarray) -> np.ndarray:
        _, which, count = np.unique(values, return_inverse=True, return_counts=True)
        return (np.cumsum(count) - (count - 1) / 2)[which.ravel()]

    return float(np.corrcoef(ranks(a.ravel()), ranks(b.ravel()))[0, 1])


def rank_correlations() -> dict[str, tuple[float, float]]:
    """For the paper's six layers: how |c_hat - c| ranks with A, and with |c|, over all units."""
    found = {}
    for (model, dataset), layer in FEATURE_MAPS.items():
        maps = paper_maps(model, dataset)
        error = np.abs(maps.difference)
        of = f"{model}, {dataset}, {layer}"
        found[of] = rank_correlation(error, maps.A), rank_correlation(error, np.abs(maps.c))
    return found


@figure("feature-maps")
def feature_maps(
    net: EquivalentNet | None = None,
    image: np.ndarray | None = None,
    layer: str = "conv1",
    channels: int = 8,
) -> Figure:
    """A few feature maps close up: computed, reconstructed, their difference, and its scale A.

    Every unit of the second row is an inner product of [x; x_b] with a hypersurface of its own.

    Args:
        net, image: an equivalent network and its input; by default VGG7 and a sample image.
        layer: a convolution of the network.
        channels: how many maps, spread over the layer's channels; each has its own scale of colours
            in the first two rows, and all have the same in the third and in the fourth.
    """
    if net is None or image is None:
        net, (image, *_) = network()
    maps = maps_of(net, image, layer)
    size = np.abs(maps.difference).max() / np.abs(maps.c).max()
    chosen = np.linspace(0, maps.c.shape[-1] - 1, channels).round().astype(int)
    each = np.abs(maps.c).max((0, 1))
    rows = {
        "$c$, from the network": (maps.c, each),
        r"$\hat c$, reconstructed unit by unit": (maps.c_hat, each),
        rf"$\hat c - c$, at most {size / maps.u:.0f} roundings "
        "of the largest unit": (maps.difference, _alike(maps.difference)),
        "$A$, the rounding scale": (maps.A, _alike(maps.A)),
    }
    drawing = plt.figure(figsize=(WIDTH, 4 * WIDTH / channels + 1.4))
    for part, (name, (shown, limits)) in zip(drawing.subfigures(4), rows.items(), strict=True):
        part.suptitle(name, x=0.01, ha="left", fontsize=SMALL + 1)
        for ax, channel in zip(part.subplots(1, channels), chosen, strict=True):
            limit = limits[channel] or 1.0
            low, colours = (0, POSITIVE) if shown is maps.A else (-limit, SIGNED)
            ax.imshow(shown[..., channel], cmap=colours, vmin=low, vmax=limit)
            ax.set(xticks=[], yticks=[])
            if shown is maps.A:
                ax.set_xlabel(str(channel), fontsize=SMALL)
    return drawing


def _alike(maps: np.ndarray) -> np.ndarray:
    """The largest size of all maps, once for each of them."""
    return np.full(maps.shape[-1], np.abs(maps).max() or 1.0)


def _all_maps(maps: Maps) -> Figure:
    """The paper's four pictures of all maps of a layer, and A, and the errors' size against A."""
    height, width, channels = maps.c.shape
    a_row = channels // ROWS  # four, eight or twelve maps
    across = 3 if a_row == 4 else 2  # narrow pictures stand three in a row
    limit = np.abs(maps.c).max()
    size = np.abs(maps.difference).max() or 1.0
    pictures = [
        ("$c$, from the network", maps.c, SIGNED, limit),
        (r"$\hat c$, reconstructed", maps.c_hat, SIGNED, limit),
        (r"$\hat c - c$, on their scale", maps.difference, SIGNED, limit),
        (r"$\hat c - c$, on its own scale", maps.difference, SIGNED, size),
        ("$A$, the rounding scale", maps.A, POSITIVE, maps.A.max()),
    ]
    # Each unit takes a whole number of pixels: nothing is resampled, and the file stays small.
    columns, rows = (a_row * (width + 1) - 1, ROWS * (height + 1) - 1)
    dots = int(WIDTH * DPI * 0.95 / across) // columns
    wide, high = (dots * n / DPI for n in (columns, rows))
    gap, title, bar = (WIDTH - across * wide) / across, 0.32, 0.62
    chart = 5 if across == 3 else 3  # its place: A stands beside the difference on its own scale
    places = [place for place in range(6) if place != chart]
    lines = 6 // across
    total = lines * (high + title + bar)
    drawing = plt.figure(figsize=(WIDTH, total), dpi=DPI, layout="none")

    def place(index: int, up: float = 0.0, tall: float = high) -> tuple[float, ...]:
        line, column = divmod(index, across)
        left = round((gap / 2 + column * (wide + gap)) * DPI) / DPI
        low = round((total - line * (high + title + bar) - title - high + up) * DPI) / DPI
        return left / WIDTH, low / total, wide / WIDTH, tall / total

    for index, (name, shown, colours, top) in zip(places, pictures, strict=True):
        ax = drawing.add_axes(place(index))
        low = 0 if colours == POSITIVE else -top
        cmap = plt.get_cmap(colours, LEVELS)
        image = ax.imshow(_mosaic(shown, a_row), cmap=cmap, vmin=low, vmax=top, aspect="auto")
        ax.set_title(name, fontsize=SMALL + 1, pad=4)
        ax.axis("off")
        scale = drawing.colorbar(
            image, cax=drawing.add_axes(place(index, -0.15, 0.09)), orientation="horizontal"
        )
        scale.set_ticks([low, (low + top) / 2, top], labels=[_short(low), "", _short(top)])
        scale.ax.tick_params(labelsize=SMALL, length=2)
        scale.ax.get_xticklabels()[0].set_ha("left")
        scale.ax.get_xticklabels()[-1].set_ha("right")
    left, low, wide, tall = place(chart)
    _size_against_scale(drawing.add_axes((left + 0.35 * wide, low, 0.6 * wide, tall)), maps)
    return drawing


def _mosaic(maps: np.ndarray, a_row: int) -> np.ndarray:
    """All maps side by side, `a_row` in a row, with a line of nothing (NaN) between them."""
    height, width, channels = maps.shape
    framed = np.full((height + 1, width + 1, channels), np.nan)
    framed[:-1, :-1] = maps
    grid = framed.reshape(height + 1, width + 1, channels // a_row, a_row)
    return grid.transpose(2, 0, 3, 1).reshape(channels // a_row * (height + 1), -1)[:-1, :-1]


def _short(value: float) -> str:
    """A limit of a scale: two digits, and a power of ten where it is very small or large."""
    if value == 0 or 0.01 < abs(value) < 1e4:
        return f"{float(f'{value:.2g}'):g}".replace("-", "−")
    digits, power = f"{value:.1e}".split("e")
    return rf"${digits} \cdot 10^{{{int(power)}}}$"


def _size_against_scale(ax: Axes, maps: Maps) -> None:
    """The middle half of |c_hat - c| in each twentieth of the units, ordered by A."""
    error, A = np.abs(maps.difference).ravel(), maps.A.ravel()
    parts = np.array_split(np.argsort(A), 20)
    scale = [np.median(A[part]) for part in parts]
    low, middle, high = zip(
        *(np.quantile(error[part], (0.25, 0.5, 0.75)) for part in parts), strict=True
    )
    ax.fill_between(scale, low, high, color=SKY, alpha=0.5, linewidth=0)
    ax.plot(scale, middle, color=BLUE, marker="o", markersize=3)
    ax.set(xlim=(0, None), ylim=(0, None), xlabel="$A$")
    ax.locator_params(nbins=4)
    ax.set_title(r"$|\hat c - c|$ against $A$", fontsize=SMALL + 1, pad=4)
    ax.ticklabel_format(scilimits=(0, 0), useMathText=True)
    ax.tick_params(labelsize=SMALL)
    for axis in (ax.xaxis, ax.yaxis):
        axis.get_offset_text().set_fontsize(SMALL)
    ax.text(
        0.04,
        0.97,
        f"rank\ncorrelation\n{rank_correlation(error, A):.2f}",
        transform=ax.transAxes,
        va="top",
        fontsize=SMALL,
    )


@figure("map-parts")
def map_parts(
    net: EquivalentNet | None = None,
    image: np.ndarray | None = None,
    layer: str = "conv1",
    channel: int = 9,
) -> Figure:
    """One feature map, and the parts of it that come from the image and from the biases.

    Args:
        net, image: an equivalent network and its input; by default VGG7 and a sample image.
        layer: a convolution of the network.
        channel: which of its maps.
    """
    if net is None or image is None:
        net, (image, *_) = network()
    c = net.value(image)[layer][0].numpy()[..., channel]
    none = np.zeros((1, net.x_b.size))
    of_image = net.tangent(image, image[None], none)[layer][0].numpy()[..., channel]
    parts = {"the network's": c, "from the image": of_image, "from the biases": c - of_image}
    limit = max(np.abs(part).max() for part in parts.values())
    drawing, axes = plt.subplots(1, 3, figsize=(WIDTH, 2.3))
    for ax, (name, part) in zip(axes, parts.items(), strict=True):
        shown = ax.imshow(part, cmap=SIGNED, vmin=-limit, vmax=limit)
        ax.set(xticks=[], yticks=[], title=name)
    drawing.colorbar(shown, ax=axes, shrink=0.8)
    return drawing


def _register_feature_maps(model: str, dataset: str, layer: str) -> None:
    def draw() -> Figure:
        return _all_maps(paper_maps(model, dataset))

    name = f"feature-maps-{model}-{dataset}"
    draw.__name__ = draw.__qualname__ = name.replace("-", "_")
    draw.__doc__ = (
        f"All feature maps of {model} on {dataset}, {layer}: computed, reconstructed, between."
    )
    figure(name)(draw)


for (_model, _dataset), _layer in FEATURE_MAPS.items():
    _register_feature_maps(_model, _dataset, _layer)
