"""Pictures of folding: batch normalisation as a line, a fold that fails at borders, and x_b."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure

from adjoint_book.figures.drawing import tint
from adjoint_book.figures.registry import figure
from adjoint_book.figures.style import BLUE, GREEN, GREY, INK, ORANGE, POSITIVE, WIDTH


@figure("normalisation-line")
def normalisation_line(
    gamma: float = 3.0, beta: float = 1.0, mean: float = 2.0, deviation: float = 2.0
) -> Figure:
    """Batch normalisation of one channel: four numbers, but only a line with slope and intercept.

    Args:
        deviation: sqrt(variance + epsilon).
    """
    slope = gamma / deviation
    intercept = beta - slope * mean
    c = np.array([-2.0, 6.0])
    drawing, ax = plt.subplots(figsize=(WIDTH, 3.0))
    ax.axhline(0, color=GREY, linewidth=1)
    ax.axvline(0, color=GREY, linewidth=1)
    ax.plot(c, slope * c + intercept, color=GREEN, linewidth=2.6)
    ax.plot([mean, mean, -2], [-9, beta, beta], color=BLUE, linestyle=":", linewidth=1.6)
    ax.plot(mean, beta, "s", color=BLUE, markersize=8, label=r"$\mu$ goes to $\beta$")
    ax.plot(0, intercept, "o", color=ORANGE, markersize=9, label=f"$b' = {intercept:g}$")
    ax.plot([], [], color=GREEN, linewidth=2.6, label=f"slope ${slope:g}$")
    ax.set(
        xlim=(-2, 6), ylim=(-9, 9), xlabel="$c$, what the convolution computes", ylabel="BN$(c)$"
    )
    ax.legend(loc="upper left")
    return drawing


@figure("border-error")
def border_error(error: np.ndarray | None = None) -> Figure:
    """Where folding into the kernel *after* batch normalisation goes wrong: at zero padding only.

    Args:
        error: (h, w), the largest error over the channels at each position.
    """
    if error is None:
        error = np.zeros((8, 8))
        error[[0, -1]] = error[:, [0, -1]] = 1.0
    drawing, ax = plt.subplots(figsize=(WIDTH * 0.55, 2.8))
    shown = ax.imshow(error, cmap=POSITIVE, vmin=0)
    drawing.colorbar(shown, ax=ax, label="error")
    ax.grid(False)
    ax.set(xticks=[], yticks=[])
    ax.spines[:].set(visible=True, color=INK)
    return drawing


@figure("bias-strips")
def bias_strips(sizes: dict[str, list[int]] | None = None) -> Figure:
    """x_b of the paper's three networks, one segment for each source.

    Args:
        sizes: the sizes of the sources, by network; by default those of the paper's networks.
    """
    if sizes is None:
        sizes = _paper_sizes()
    drawing, axes = plt.subplots(len(sizes), 1, figsize=(WIDTH, 2.9))
    for ax, (name, parts) in zip(axes, sizes.items(), strict=True):
        edges = np.cumsum([0, *parts])
        for i, (left, width) in enumerate(zip(edges[:-1], parts, strict=True)):
            shade = tint(ORANGE, 0.75 if i % 2 else 0.35)
            ax.barh(0, width, left=left, color=shade, edgecolor="white", linewidth=0.6)
        ax.set_title(f"{name}: {edges[-1]:,} entries from {len(parts)} sources", loc="left")
        ax.set(xlim=(0, edges[-1]), yticks=[])
        ax.grid(False)
        ax.spines[:].set_visible(False)
        ax.tick_params(axis="x", length=0)
        ax.set_xticks([0, int(edges[-1])])
    return drawing


def _paper_sizes() -> dict[str, list[int]]:
    from adjoint_lib.experiments import models
    from adjoint_lib.frontend.equivalent import equivalent

    return {
        name: [s.size for s in equivalent(models.build(name)).sources] for name in models.MODELS
    }
