"""What verification shows: histograms of the relative error, and feature maps twice."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure

from adjoint_book.figures.networks import network
from adjoint_book.figures.registry import figure
from adjoint_book.figures.style import BLUE, INK, SIGNED, SMALL, WIDTH

if TYPE_CHECKING:
    from adjoint_lib.core.equivalent_net import EquivalentNet
    from adjoint_lib.verification.report import LayerReport

FEATURE_MAPS = {  # the layers that the paper shows
    ("vgg7", "cifar10"): "conv1",
    ("resnet20", "cifar10"): "conv10",
    ("resnet20-fixup", "cifar10"): "conv15",
    ("vgg7", "cifar100"): "conv5",
    ("resnet20", "cifar100"): "conv3",
    ("resnet20-fixup", "cifar100"): "conv12",
}


@figure("feature-maps")
def feature_maps(
    net: EquivalentNet | None = None,
    image: np.ndarray | None = None,
    layer: str = "conv1",
    channels: int = 8,
) -> Figure:
    """Feature maps as the network computes them, as hypersurfaces reconstruct them, and between.

    Every unit of the second row is an inner product of [x; x_b] with a hypersurface of its own.

    Args:
        net, image: an equivalent network and its input; by default VGG7 and a sample image.
        layer: a convolution of it.
        channels: so many maps, spread over the layer's channels; each has its own scale of colours
            in the first two rows, and all have the same in the third.
    """
    from adjoint_lib.verification.verify import reconstruct, unit_roundoff

    if net is None or image is None:
        net, (image, *_) = network()
    c = net.value(image)[layer][0].numpy().astype(float)
    c_hat = reconstruct(net, image, layer)[layer].astype(float)
    difference = c_hat - c
    size = np.abs(difference).max() / np.abs(c).max()
    chosen = np.linspace(0, c.shape[-1] - 1, channels).round().astype(int)
    each = np.abs(c).max((0, 1))
    all_alike = np.full_like(each, np.abs(difference).max() or 1.0)
    rows = {
        "$c$, from the network": (c, each),
        r"$\hat c$, reconstructed unit by unit": (c_hat, each),
        rf"$\hat c - c$, at most {size / unit_roundoff(net.dtype):.0f} roundings "
        "of the largest unit": (difference, all_alike),
    }
    drawing = plt.figure(figsize=(WIDTH, 3 * WIDTH / channels + 1.1))
    for part, (name, (maps, limits)) in zip(drawing.subfigures(3), rows.items(), strict=True):
        part.suptitle(name, x=0.01, ha="left", fontsize=SMALL + 1)
        for ax, channel in zip(part.subplots(1, channels), chosen, strict=True):
            limit = limits[channel] or 1.0
            ax.imshow(maps[..., channel], cmap=SIGNED, vmin=-limit, vmax=limit)
            ax.set(xticks=[], yticks=[])
            if maps is difference:
                ax.set_xlabel(str(channel), fontsize=SMALL)
    return drawing


@figure("map-parts")
def map_parts(
    net: EquivalentNet | None = None,
    image: np.ndarray | None = None,
    layer: str = "conv1",
    channel: int = 9,
) -> Figure:
    """One feature map, and the parts of it that come from the image and from the biases."""
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


@figure("histograms")
def histograms(layers: Mapping[str, LayerReport] | None = None, origin: str = "") -> Figure:
    """Relative errors of all units, a histogram for each layer, as in the paper.

    Args:
        layers: of a report; by default of VGG7 on a sample image.
        origin: what they were measured on, to stand below the panels.
    """
    from adjoint_lib.verification.report import EDGES

    if layers is None:
        from adjoint_lib.verification.verify import verify

        net, images = network()
        layers = verify(net, images[:1], progress=False).layers
    columns = 3 if len(layers) <= 6 else 4
    lines = -(-len(layers) // columns)
    drawing, axes = plt.subplots(
        lines, columns, figsize=(WIDTH, 1.35 * lines + 0.6), sharex=True, sharey=True
    )
    for ax, (name, layer) in zip(axes.flat, layers.items(), strict=False):
        shares = layer.histogram / layer.units
        ax.stairs(shares, EDGES * 1e4, fill=True, color=BLUE)
        ax.set_yscale("log")
        within = 100 * layer.share()
        shown = "100 %" if layer.within[0] == layer.units else f"{min(within, 99.9999):.4f} %"
        ax.set_title(f"{name}: {shown}", fontsize=SMALL, loc="left")
        ax.axvline(0, color=INK, lw=0.5)
    empty = axes.flat[len(layers) :]
    for ax, above in zip(empty, axes.flat[len(layers) - columns :], strict=False):
        ax.set_visible(False)
        above.tick_params(labelbottom=True)
    below = r"relative error, in $10^{-4}$" + (f" ({origin})" if origin else "")
    drawing.supxlabel(below, fontsize=SMALL + 1)
    drawing.supylabel("share of units", fontsize=SMALL + 1)
    return drawing


def _register_feature_maps(model: str, dataset: str, layer: str) -> None:
    def draw() -> Figure:
        net, images = network(model, dataset)
        return feature_maps(net, images[0], layer)

    draw.__doc__ = f"Feature maps of {model} on {dataset}, {layer}: computed and reconstructed."
    _register(f"feature-maps-{model}-{dataset}", draw)


def _register_histograms(model: str, dataset: str) -> None:
    def draw() -> Figure:
        from adjoint_lib.experiments import results

        layers = results.every_layer(model, dataset)
        images = sorted({layer.images for layer in layers.values()})
        return histograms(layers, f"{' and '.join(f'{n:,}' for n in images)} test images")

    draw.__doc__ = f"Histograms of the relative error: {model} on {dataset}, every layer."
    _register(f"histograms-{model}-{dataset}", draw)


def _register(name: str, draw: Callable[[], Figure]) -> None:
    draw.__name__ = name.replace("-", "_")
    figure(name)(draw)


for (_model_name, _dataset), _layer in FEATURE_MAPS.items():
    _register_feature_maps(_model_name, _dataset, _layer)
    _register_histograms(_model_name, _dataset)
