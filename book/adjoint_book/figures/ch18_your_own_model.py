"""Bringing a model of one's own: what happens to it, and what its constants contribute."""

from __future__ import annotations

from typing import TYPE_CHECKING

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from adjoint_book.figures._drawing import arrow, box, canvas, tint, write
from adjoint_book.figures._registry import figure
from adjoint_book.figures._style import BLUE, GREEN, INK, ORANGE, PALE, PURPLE, VERMILION, WIDTH

if TYPE_CHECKING:
    from adjoint_lib.core.units import Units


@figure("model-journey")
def model_journey() -> Figure:
    """What `al.equivalent` does with a Keras model, and where it can refuse it."""
    drawing, ax = canvas(WIDTH, 3.9)
    top, bottom, size = 3.2, 1.35, (1.75, 0.8)
    steps = [
        (1.0, "your\nKeras model", INK, "white"),
        (3.2, "read its graph:\nevery layer known?", INK, PALE),
        (5.4, "fold, and collect\nall of $x_b$", INK, PALE),
    ]
    for x, text, edge, fill in steps:
        box(ax, (x, top), size, text, edge, fill, fontsize=11)
    arrow(ax, (1.88, top), (2.3, top), INK)
    arrow(ax, (4.1, top), (4.5, top), INK)
    write(ax, (4.3, top + 0.2), "yes", 10)
    box(
        ax,
        (5.4, bottom),
        size,
        "compare with the\nmodel, on random\nimages",
        INK,
        PALE,
        fontsize=10.5,
    )
    arrow(ax, (5.4, top - 0.42), (5.4, bottom + 0.42), INK)
    box(
        ax, (1.0, bottom), size, "EquivalentNet\nover $[x;\\,x_b]$", GREEN, tint(GREEN), fontsize=11
    )
    box(
        ax,
        (3.2, bottom + 0.42),
        (1.95, 0.74),
        "UnsupportedLayer:\nwhich, why, remedy",
        VERMILION,
        tint(VERMILION),
        fontsize=10.5,
    )
    arrow(ax, (3.2, top - 0.42), (3.2, bottom + 0.81), VERMILION)
    write(ax, (3.38, top - 0.72), "no", 10)
    low = bottom - 0.2
    arrow(ax, (4.5, low), (1.9, low), GREEN)
    write(ax, (3.2, low - 0.2), "equal up to rounding", 10)
    for x, text in ((0.42, "tables"), (1.35, "hypersurfaces"), (2.25, "verify")):
        write(ax, (x, 0.32), text, 10.5)
        arrow(ax, (1.0 + 0.4 * (x - 1.3), bottom - 0.42), (x, 0.48), GREEN)
    return drawing


@figure("constants-contribute")
def constants_contribute(unit: Units | None = None, origins: list[str] | None = None) -> Figure:
    """What the image, the biases and the constants contribute to one unit's value.

    Args:
        unit: one unit's hypersurface; by default one of a small network with ReLU6.
        origins: where each part of x_b comes from, as `source.origin` says.
    """
    if unit is None or origins is None:
        unit, origins = _example()
    drawing, ax = plt.subplots(figsize=(WIDTH, 0.26 * (len(origins) + 1) + 0.8))
    colours = [BLUE, *(PURPLE if o.startswith("constant") else ORANGE for o in origins)]
    ax.barh(range(len(origins) + 1), unit.contributions, color=colours)
    ax.set_yticks(range(len(origins) + 1), ["image", *map(_short, origins)], fontsize=9)
    ax.invert_yaxis()
    ax.axvline(0, color=INK, lw=1)
    ax.grid(axis="y", visible=False)
    ax.set_xlabel("contribution to the unit's value")
    parts = {"image": BLUE, "biases": ORANGE, "constants": PURPLE}
    handles = [Patch(color=colour, label=name) for name, colour in parts.items()]
    ax.legend(handles=handles, loc="lower left", bbox_to_anchor=(0, 1), ncols=3)
    return drawing


def _short(origin: str) -> str:
    """An origin in few words: 'beta - gamma mean / ... of bn' is the shift of bn."""
    last = origin.rsplit("; ", 1)[-1]
    return f"shift of {last.rsplit(' of ', 1)[-1]}" if last.startswith("beta") else last


def _example() -> tuple[Units, list[str]]:
    """A score of a small network with ReLU6 and random weights."""
    import keras

    import adjoint_lib as al

    layers = keras.layers
    model = keras.Sequential(
        [
            keras.Input((12, 12, 3)),
            layers.Conv2D(8, 3, name="conv"),
            layers.ReLU(6, name="relu6"),
            layers.DepthwiseConv2D(3, name="depthwise"),
            layers.ReLU(6, name="relu6_2"),
            layers.Flatten(),
            layers.Dense(3, name="scores"),
        ]
    )
    net = al.equivalent(al.models.randomise(model))
    image = 9 * np.random.default_rng(0).normal(size=(12, 12, 3))
    return net.hypersurface(image, "scores")[0], [s.origin for s in net.sources]
