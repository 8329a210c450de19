"""Pictures of units in a notebook: the one file of the library that uses matplotlib."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from adjoint_lib.core.units import Units
from adjoint_lib.errors import InputError
from adjoint_lib.explorer.pictures import NEGATIVE, POSITIVE, picture, signed

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MOST_UNITS, MOST_BARS = 16, 12


def plot(units: Units) -> Figure:
    """The image, H_I and the contributions of each unit, a row for each.

    Needs matplotlib: pip install 'adjoint-lib[plots]'.
    """
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise InputError(
            "expected matplotlib, which draws, but it cannot be imported. Install it: "
            "pip install 'adjoint-lib[plots]'."
        ) from error
    shape = units.x.shape[1:]
    H_I = units.image.reshape(-1, *shape)
    if len(H_I) > MOST_UNITS:
        raise InputError(f"expected at most {MOST_UNITS} units to plot, got {len(H_I)}.")
    x = np.repeat(units.x, len(H_I) // len(units.x), 0)
    parts = units.contributions.reshape(len(H_I), -1)
    figure = Figure(figsize=(9, 2.8 * len(H_I)), layout="constrained")
    rows = figure.subplots(len(H_I), 3, squeeze=False, width_ratios=(1, 1, 1.6))
    names = units.table().rows
    for axes, image, H, values, row in zip(rows, x, H_I, parts, names, strict=True):
        place = ", ".join(map(str, row[: -1 - len(units.sources)]))
        axes[0].imshow(picture(image), interpolation="nearest")
        axes[0].set_title("image x")
        axes[1].imshow(signed(H), interpolation="nearest")
        axes[1].set_title(f"$H_I$ of {units.layer} [{place}]")
        for ax in axes[:2]:
            ax.set_axis_off()
        largest = np.argsort(-np.abs(values), kind="stable")[:MOST_BARS]
        chosen = np.sort(largest[values[largest] != 0])[::-1]
        colours = [np.array(POSITIVE if values[i] > 0 else NEGATIVE) / 255 for i in chosen]
        axes[2].barh([units.sources[i] for i in chosen], values[chosen], color=colours)
        axes[2].axvline(0, color="0.5", linewidth=0.8)
        axes[2].tick_params(labelsize=8)
        axes[2].set_title(f"contributions, sum {values.sum():.4g}")
    return figure
