"""Relative errors of all units as histograms, and how many units miss 1 %, layer by layer."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from adjoint_book.figures._networks import network
from adjoint_book.figures._registry import figure
from adjoint_book.figures._style import BLUE, GREY, INK, SMALL, VERMILION, WIDTH
from adjoint_lib.errors import DataError
from adjoint_lib.experiments import paper

if TYPE_CHECKING:
    from adjoint_lib.verification.report import LayerReport

NETWORKS = {"vgg7": "VGG7", "resnet20": "ResNet20", "resnet20-fixup": "ResNet20-Fixup"}
PAPERS_MOST = 3e-4  # the share of units beyond 1 % that the paper grants a layer


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


def _register_histograms(model: str, dataset: str) -> None:
    def draw() -> Figure:
        from adjoint_book import tables

        layers = tables.every_layer(model, dataset)
        images = sorted({layer.images for layer in layers.values()})
        return histograms(layers, f"{' and '.join(f'{n:,}' for n in images)} test images")

    name = f"histograms-{model}-{dataset}"
    draw.__name__ = draw.__qualname__ = name.replace("-", "_")
    draw.__doc__ = f"Histograms of the relative error: {model} on {dataset}, every layer."
    figure(name)(draw)


for _model in NETWORKS:
    for _dataset in ("cifar10", "cifar100"):
        _register_histograms(_model, _dataset)


@figure("misses-by-layer")
def misses_by_layer(dataset: str = "cifar10") -> Figure:
    """Units that miss 1 % in each layer of each network: in the stored runs, and in the paper.

    Also how often the network's own float32 values miss those in float64, as far as eight sample
    images foretell it.
    """
    sizes = {"width_ratios": [1, 2.2, 2.2]}
    drawing, axes = plt.subplots(1, 3, figsize=(WIDTH, 3.4), sharey=True, gridspec_kw=sizes)
    for ax, (model, name) in zip(axes, NETWORKS.items(), strict=True):
        _one_network(ax, model, dataset)
        ax.set_title(f"{name}\n{_on(model, dataset)}", fontsize=SMALL + 1)
    axes[0].set_ylabel("misses, of 100,000 units")
    drawing.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=2)
    return drawing


def _on(model: str, dataset: str) -> str:
    """On how many images: of the convolutions, and of the dense layer if on another number."""
    from adjoint_book import tables

    counts = {name: layer.images for name, layer in tables.every_layer(model, dataset).items()}
    dense = counts.pop("fc")
    several = sorted(set(counts.values()))
    text = f"{' and '.join(f'{count:,}' for count in several)} images"
    return text if several == [dense] else f"{text} (fc {dense:,})"


def _one_network(ax: Axes, model: str, dataset: str) -> None:
    from adjoint_book import tables

    theirs = paper.percentages(model, dataset)
    ours = tables.every_layer(model, dataset)
    at = {name: x for x, name in enumerate(theirs, 1)}

    def points(shares: Mapping[str, float]) -> tuple[list[int], np.ndarray]:
        return [at[name] for name in shares], 1e5 * np.array([*shares.values()])

    x, missed = points({name: 1 - layer.share() for name, layer in ours.items()})
    intervals = {name: _interval(name, layer) for name, layer in ours.items()}
    low = points({name: 1 - end for name, (_, end) in intervals.items()})[1]
    high = points({name: 1 - end for name, (end, _) in intervals.items()})[1]
    bars = missed - low, high - missed
    ax.errorbar(x, missed, bars, fmt="o", color=BLUE, label="ours, with 95 % intervals")
    found = {name: 1 - share / 100 for name, share in theirs.items()}
    ax.plot(*points(found), "s", color=VERMILION, mfc="white", label="the paper's")
    ax.plot(*points(_forward(model, dataset)), "_", color=INK, ms=8, label="float32's own")
    ax.axhline(1e5 * PAPERS_MOST, color=GREY, lw=1, ls="--", label="99.97 % within 1 %")
    numbers = [*range(1, len(theirs), 1 if len(theirs) < 8 else 4)]
    ax.set(yscale="log", xlabel="layer")
    ax.set_xticks([*numbers, len(theirs)], [*map(str, numbers), "fc"])


def _interval(name: str, layer: LayerReport) -> tuple[float, float]:
    found = layer.interval()
    if found is None:
        raise DataError(f"{name}: expected images enough for an interval, got {layer.images}.")
    return found


def _forward(model: str, dataset: str, images: int = 8) -> dict[str, float]:
    """Expected misses of a convolution's float32 values, held against those in float64."""
    from adjoint_book.misses import expected_misses

    net, samples = network(model, dataset)
    c, exact = (n.value(samples[:images]) for n in (net, net.astype("float64")))
    return {
        name: expected_misses(exact[name].numpy(), c[name].numpy())
        for name in paper.percentages(model, dataset)
        if name != "fc"  # too few units
    }


@figure("expected-misses")
def expected_misses(
    expected: Mapping[str, Mapping[str, float]] | None = None,
    counted: Mapping[str, Mapping[str, float]] | None = None,
) -> Figure:
    """Shares of units that miss 1 %: expected from a few images, and counted in the stored runs.

    Args:
        expected, counted: shares by layer, by data set, two of them; by default of VGG7's
            convolutions, whose numbers stand at the points.
    """
    if expected is None or counted is None:
        expected, counted = _misses()
    drawing, ax = plt.subplots(figsize=(WIDTH, 4.2))
    both = [*expected.values(), *counted.values()]
    ends = 0, 1.15e5 * max(share for layers in both for share in layers.values())
    ax.plot(ends, ends, color=GREY, lw=1, label="equal")
    places = ((-5, 5), "right", "bottom"), ((0, -5), "center", "top")  # of the numbers
    for (dataset, layers), marker, place in zip(expected.items(), "os", places, strict=True):
        x = [1e5 * share for share in layers.values()]
        y = [1e5 * counted[dataset][name] for name in layers]
        ax.plot(x, y, marker, label=dataset)
        numbers = [name.removeprefix("conv") for name in layers]
        away, ha, va = place
        for number, at in _labels(numbers, zip(x, y, strict=True), ends[1] / 12):
            ax.annotate(number, at, away, textcoords="offset points", ha=ha, va=va)
    ax.set(xlim=ends, ylim=ends, aspect="equal")
    ax.set(xlabel="expected, of 100,000 units", ylabel="counted, of 100,000 units")
    ax.legend()
    return drawing


def _labels(
    texts: Iterable[str], points: Iterable[tuple[float, float]], near: float
) -> Iterator[tuple[str, tuple[float, float]]]:
    """One label for each point; points as near as this to a first one share one, at their mean."""
    groups: list[list[tuple[str, float, float]]] = []
    for text, (x, y) in zip(texts, points, strict=True):
        close = (g for g in groups if max(abs(g[0][1] - x), abs(g[0][2] - y)) < near)
        group = next(close, None)
        if group is None:
            groups.append(group := [])
        group.append((text, x, y))
    for group in groups:
        names, xs, ys = zip(*group, strict=True)
        yield ", ".join(names), (float(np.mean(xs)), float(np.mean(ys)))


def _misses(images: int = 8) -> tuple[dict[str, dict[str, float]], dict[str, dict[str, float]]]:
    from adjoint_book import tables
    from adjoint_book.misses import expected_misses
    from adjoint_lib.verification import verify as verification

    expected, counted = {}, {}
    for dataset in ("cifar10", "cifar100"):
        stored = tables.materialised("vgg7", dataset)
        net, samples = network("vgg7", dataset)
        found = [verification.reconstruct(net, x, mode="RM2") for x in samples[:images]]
        c = net.value(samples[:images])
        names = [name for name in found[0] if name in stored]
        expected[dataset] = {
            name: expected_misses(c[name].numpy(), np.stack([one[name] for one in found]))
            for name in names
        }
        counted[dataset] = {name: 1 - stored[name].report.layers[name].share() for name in names}
    return expected, counted
