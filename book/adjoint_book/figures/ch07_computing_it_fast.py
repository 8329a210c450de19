"""Three readings of one frozen network, what each costs, and how long it was measured to take.

Costs are multiply-adds, counted from the layers of a live network: one for each product of a weight
with an entry, taps in the padding included. Activations and pooling are left out; they are small.
Measured times are those that `make bench` wrote; they come with the library.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from adjoint_book import timings
from adjoint_book.figures._drawing import arrow, box, canvas, slab, write
from adjoint_book.figures._networks import network
from adjoint_book.figures._registry import figure
from adjoint_book.figures._style import (
    BLUE,
    GREEN,
    GREY,
    INK,
    ORANGE,
    PALE,
    PURPLE,
    SKY,
    SMALL,
    VERMILION,
    WIDTH,
)

if TYPE_CHECKING:
    from adjoint_lib.core.equivalent_net import EquivalentNet
    from adjoint_lib.core.network import Layer


# ------------------------------------------------------------------ a diagram


@figure("three-readings")
def three_readings() -> Figure:
    """One frozen network read as a value, as a tangent and as an adjoint."""
    drawing, ax = canvas(WIDTH, 4.1)
    rows = [
        (3.35, "value", "$F(v)$", "one pass, all layers", INK, 1),
        (2.05, "tangent", "$J\\,V$", "a batch of directions, all layers", GREEN, 3),
        (0.75, "adjoint", "$J^{*}U$", "a batch of cotangents, from one layer", VERMILION, 3),
    ]
    for y, name, formula, words, colour, sheets in rows:
        write(ax, (0.12, y + 0.12), name, 12, ha="left", weight="bold", color=colour)
        write(ax, (0.12, y - 0.18), formula, 13, ha="left")
        _inputs(ax, 1.55, y, sheets)
        _chain(ax, y, colour, back=name == "adjoint")
        write(ax, (3.95, y - 0.54), words, 10.5)
    return drawing


LAYERS = (2.85, 4.15, 5.45)  # where the three layers of a row stand


def _chain(ax: Axes, y: float, colour: str, back: bool) -> None:
    """Three layers in a row, read forward with something to take out after each, or back."""
    half = 0.36
    for n, x in enumerate(LAYERS):
        before = 1.9 if n == 0 else LAYERS[n - 1] + half
        ends = (before, y), (x - half, y)
        if not back:
            arrow(ax, *ends, colour)
            arrow(ax, (x + half / 2, y + 0.25), (x + half / 2, y + 0.58), colour)
        elif n < 2:
            arrow(ax, ends[1], ends[0], colour)
        box(ax, (x, y), (2 * half, 0.5), f"layer {n + 1}", INK, PALE, fontsize=10)
    if back:
        x = LAYERS[1]
        arrow(ax, (x + half / 2, y + 0.58), (x + half / 2, y + 0.25), colour)
        write(ax, (x + half / 2 + 0.2, y + 0.46), "$w$", 12)


def _inputs(ax: Axes, x: float, y: float, sheets: int) -> None:
    """[x; x_b] as a standing bar, or several of them side by side."""
    for n in range(sheets):
        left = x + 0.11 * (n - (sheets - 1) / 2) - 0.05
        slab(ax, left, left + 0.1, y + 0.1, 0.44, BLUE)
        slab(ax, left, left + 0.1, y - 0.22, 0.2, ORANGE)


# ------------------------------------------------------------------ counts


def multiply_adds(layer: Layer) -> int:
    """Products in one run of a layer: its weights, at each position of its output."""
    return math.prod(layer.kernel) * math.prod(layer.shape[:-1])


def costs(net: EquivalentNet) -> dict[str, dict[str, int]]:
    """Multiply-adds for H of all units of each layer: by Algorithm 1, by pulling, by pushing."""
    found: dict[str, dict[str, int]] = {}
    before = 0
    for layer in net.layers:
        own = multiply_adds(layer)
        units, inputs = math.prod(layer.shape), math.prod(net.nodes[layer.reads].shape)
        found[layer.name] = {
            "Algorithm 1": inputs * before + net.d_in * own,
            "pull": units * (before + own),
            "push": reaching(net, layer) * (before + own),
        }
        before += own
    return found


@figure("cost-by-method")
def cost_by_method(net: EquivalentNet | None = None) -> Figure:
    """Multiply-adds for H of all units of each layer, by three methods.

    Args:
        net: by default VGG7.
    """
    net = network()[0] if net is None else net
    found = costs(net)
    methods = {"Algorithm 1": GREY, "pull": VERMILION, "push": GREEN}
    drawing, ax = plt.subplots(figsize=(WIDTH, 0.42 * len(found) + 1.0))
    places = np.arange(len(found))
    for n, (method, colour) in enumerate(methods.items()):
        values = [found[name][method] / 1e9 for name in found]
        ax.barh(places + 0.26 * (n - 1), values, 0.24, color=colour, label=method)
    ax.set_yticks(places, found)
    ax.invert_yaxis()
    ax.set_xscale("log")
    ax.grid(axis="y", visible=False)
    ax.set_xlabel("billion multiply-adds for one image")
    ax.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=3)
    return drawing


@figure("which-direction")
def which_direction(net: EquivalentNet | None = None, layer: str = "conv3") -> Figure:
    """The cost of pulling m units back, against pushing all directions forward.

    Args:
        net: by default VGG7.
        layer: whose units.
    """
    net = network()[0] if net is None else net
    found = net.layer(layer)
    one = sum(multiply_adds(x) for x in net.layers if x.number <= found.number) / 1e9
    directions = reaching(net, found)
    units = math.prod(found.shape)
    m = np.geomspace(1, units, 200)
    drawing, ax = plt.subplots(figsize=(WIDTH, 3.3))
    ax.loglog(m, m * one, color=VERMILION)
    ax.loglog(m, np.full_like(m, directions * one), color=GREEN)
    ax.loglog(m, np.minimum(m, directions) * one, color=SKY, lw=7, alpha=0.45, zorder=1)
    ax.text(12, 12 * one * 3.2, "pull", color=VERMILION, fontsize=12, ha="right")
    ax.text(12, directions * one * 1.3, "push", color=GREEN, fontsize=12, ha="right")
    ax.axvline(directions, color=INK, lw=1, ls=(0, (4, 2)))
    note = f"{directions:,} units"
    beside = {"textcoords": "offset points", "ha": "right", "annotation_clip": True}
    ax.annotate(note, (directions, one), (-6, 2), **beside)
    ax.set(xlabel="units asked for", ylabel="billion multiply-adds", xlim=(1, units))
    return drawing


def reaching(net: EquivalentNet, layer: Layer) -> int:
    """How many directions of [x; x_b] can reach the layer's units: pixels, and earlier biases."""
    earlier = [source.size for source in net.sources if source.node < layer.number]
    return math.prod(net.input_shape) + sum(earlier)


# ------------------------------------------------------------------ measured times

MARKERS = {"vgg7": "o", "resnet20": "s", "resnet20_fixup": "^"}
COLOURS = {
    "adjoint_lib": BLUE,
    "jax": GREEN,
    "pytorch": ORANGE,
    "algorithm_1": VERMILION,
    "one_unit_at_a_time": PURPLE,
}
GROWTH = {"depth": "depth", "width": "width", "size": "image side", "images": "images"}


@figure("benchmark")
def benchmark(results: dict | None = None) -> Figure:
    """Seconds and memory of all hypersurfaces of one image: the library and its peers.

    Args:
        results: what `make bench` writes; by default the results that come with the library. What
            they lack is not drawn: a contender, or how the time grows.
    """
    results = results or timings.stored()
    growth = results.get("growth")
    drawing, axes = plt.subplots(
        1 + bool(growth), 1, figsize=(WIDTH, 3.4 * (1 + bool(growth))), squeeze=False
    )
    _contest(axes[0, 0], results)
    if growth:
        _growth(axes[1, 0], growth)
    return drawing


def _contest(ax: Axes, results: dict) -> None:
    for contender, colour in COLOURS.items():
        for model, marker in MARKERS.items():
            entry = results.get(model, {})
            if contender in entry.get("seconds", {}):
                at = entry["seconds"][contender], entry["peak_mb"][contender] / 1000
                ax.plot(*at, marker, ms=9, color=colour, mec="white", mew=1)
        if any(contender in results.get(model, {}).get("seconds", {}) for model in MARKERS):
            ax.plot([], [], "o", color=colour, label=timings.CONTENDERS[contender])
    for model, marker in MARKERS.items():
        if "seconds" in results.get(model, {}):
            ax.plot([], [], marker, color="white", mec=INK, label=timings.NETWORKS[model])
    ax.set(xscale="log", yscale="log", xlabel="seconds", ylabel="peak memory, GB")
    ax.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), fontsize=SMALL + 1)


def _growth(ax: Axes, growth: dict) -> None:
    """The time against each number, both relative to the smallest."""
    for (what, found), marker in zip(growth.items(), "osv^", strict=False):
        values, seconds = zip(*found["points"], strict=True)
        ax.plot(
            [value / values[0] for value in values],
            [second / seconds[0] for second in seconds],
            marker=marker,
            label=f"{GROWTH[what]}: power {found['exponent']:g}",
        )
    ax.set(xscale="log", yscale="log", xlabel="times as large", ylabel="times as long")
    ax.set_xticks([1, 2, 4, 8], ["1", "2", "4", "8"])
    ax.minorticks_off()
    ax.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), fontsize=SMALL + 1)
