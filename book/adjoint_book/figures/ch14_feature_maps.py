"""Feature maps twice, computed and reconstructed, and the parts that make one up."""

from __future__ import annotations

from typing import TYPE_CHECKING

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure

from adjoint_book.figures._networks import network
from adjoint_book.figures._registry import figure
from adjoint_book.figures._style import SIGNED, SMALL, WIDTH

if TYPE_CHECKING:
    from adjoint_lib.core.equivalent_net import EquivalentNet

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
        layer: a convolution of the network.
        channels: how many maps, spread over the layer's channels; each has its own scale of colours
            in the first two rows, and all have the same in the third.
    """
    from adjoint_lib.core.error_bounds import unit_roundoff
    from adjoint_lib.verification.verify import reconstruct

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
        net, images = network(model, dataset)
        return feature_maps(net, images[0], layer)

    name = f"feature-maps-{model}-{dataset}"
    draw.__name__ = draw.__qualname__ = name.replace("-", "_")
    draw.__doc__ = f"Feature maps of {model} on {dataset}, {layer}: computed and reconstructed."
    figure(name)(draw)


for (_model, _dataset), _layer in FEATURE_MAPS.items():
    _register_feature_maps(_model, _dataset, _layer)
