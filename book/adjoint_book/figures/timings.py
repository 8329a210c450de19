"""How long all hypersurfaces of an image take, by the library and by its peers.

Drawn from the results of `make bench` that come with the library.
"""

from __future__ import annotations

import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from adjoint_book import timings
from adjoint_book.figures.registry import figure as registered
from adjoint_book.figures.style import BLUE, GREEN, INK, ORANGE, PURPLE, SMALL, VERMILION, WIDTH

MARKERS = {"vgg7": "o", "resnet20": "s", "resnet20_fixup": "^"}
COLOURS = {
    "adjoint_lib": BLUE,
    "jax": GREEN,
    "pytorch": ORANGE,
    "algorithm_1": VERMILION,
    "one_unit_at_a_time": PURPLE,
}
GROWTH = {"depth": "depth", "width": "width", "size": "image side", "images": "images"}


@registered("benchmark")
def benchmark(results: dict | None = None) -> Figure:
    """Seconds and memory of all hypersurfaces of one image: the library and its peers.

    Args:
        results: what `make bench` writes; by default the results that come with the library. What
            they lack is not drawn: a contender, or how the time grows.
    """
    results = results or timings.stored()
    growth = results.get("growth")
    figure, axes = plt.subplots(
        1 + bool(growth), 1, figsize=(WIDTH, 3.4 * (1 + bool(growth))), squeeze=False
    )
    _contest(axes[0, 0], results)
    if growth:
        _growth(axes[1, 0], growth)
    return figure


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
