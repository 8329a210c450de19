"""Folding: batch normalisation in steps and as a line, a fold that fails at borders, and x_b."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure

from adjoint_book.figures._drawing import arrow, box, canvas, heading, tint, write
from adjoint_book.figures._registry import figure
from adjoint_book.figures._style import BLUE, GREEN, GREY, INK, ORANGE, POSITIVE, WIDTH


@figure("batch-norm")
def batch_norm() -> Figure:
    """The paper's Fig. 4: batch normalisation in five steps, and folded into kernel and bias."""
    drawing, ax = canvas(WIDTH, 3.1)
    top, bottom, end = 2.25, 0.75, 0.72
    heading(ax, (0.08, top + 0.66), "as trained, Eq. (6)")
    heading(ax, (0.08, bottom + 0.66), "folded, Eq. (7)")
    box(ax, (0.4, top), (0.64, 0.5), "$x_{l-1}$", INK)
    for x, width, text, colour in (
        (1.36, 0.72, r"$\circledast\, w$", GREEN),
        (2.34, 0.68, r"$-\,\mu$", ORANGE),
        (3.48, 1.12, r"$\div\sqrt{\sigma^2+\epsilon}$", GREEN),
        (4.6, 0.68, r"$\times\,\gamma$", GREEN),
        (5.5, 0.68, r"$+\,\beta$", ORANGE),
    ):
        arrow(ax, (end, top), (x - width / 2, top), INK)
        box(ax, (x, top), (width, 0.5), text, colour)
        end = x + width / 2
    arrow(ax, (end, top), (WIDTH - 0.08, top), INK)
    box(ax, (0.4, bottom), (0.64, 0.5), "$x_{l-1}$", INK)
    arrow(ax, (0.72, bottom), (1.3, bottom), INK)
    w = r"$\circledast\;\;\dfrac{\gamma\, w}{\sqrt{\sigma^2+\epsilon}}$"
    b = r"$+\;\beta-\dfrac{\gamma\,\mu}{\sqrt{\sigma^2+\epsilon}}$"
    box(ax, (2.2, bottom), (1.8, 0.68), w, GREEN)
    arrow(ax, (3.1, bottom), (3.62, bottom), INK)
    box(ax, (4.7, bottom), (2.16, 0.68), b, ORANGE)
    arrow(ax, (5.78, bottom), (WIDTH - 0.08, bottom), INK)
    write(ax, (2.2, 0.2), "the new kernel $w'$", 11)
    write(ax, (4.7, 0.2), "$b'$, a slice of $x_b$", 11)
    return drawing


@figure("normalisation-line")
def normalisation_line(
    gamma: float = 3.0, beta: float = 1.0, mean: float = 2.0, deviation: float = 2.0
) -> Figure:
    """Batch normalisation of one channel: four numbers, but only a line with slope and intercept.

    Args:
        gamma, beta: the learned scale and shift.
        mean: the stored mean.
        deviation: sqrt(variance + epsilon), of the stored variance.
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
