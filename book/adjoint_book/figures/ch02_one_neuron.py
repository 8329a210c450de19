"""One neuron: three ways to draw its bias, its boundary, and its value along rays."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from mpl_toolkits.mplot3d import Axes3D  # type: ignore[import-untyped]  # ships no types
from mpl_toolkits.mplot3d.art3d import Poly3DCollection  # type: ignore[import-untyped]

from adjoint_book.figures._drawing import RADIUS, Point, arrow, canvas, node, rule, write
from adjoint_book.figures._registry import figure
from adjoint_book.figures._style import BLUE, GREEN, GREY, INK, ORANGE, PALE, VERMILION, WIDTH

W = np.array([1.5, -1.0])
X = np.array([2.0, 1.0])
LIMIT = 3.0


@figure("one-neuron")
def one_neuron() -> Figure:
    """The paper's Fig. 1: a neuron with its bias as a shift, as a weight, and as an input."""
    drawing, ax = canvas(WIDTH, 2.6)
    third = WIDTH / 3
    for i, draw in enumerate((_shift, _weight, _input)):
        s = (i * third + 1.25, 1.25)
        draw(ax, s)
        for j, y in enumerate((2.0, 1.25)):
            x = (i * third + 0.3, y)
            _weighted(ax, x, s, f"$w_{j}$", GREEN, (0.06, 0.2 - 0.06 * j))
            node(ax, x, f"$x_{j}$", BLUE)
        n = (s[0] + 0.62, s[1])
        arrow(ax, s, n, INK, RADIUS, RADIUS)
        node(ax, s, "$s$", INK, PALE)
        node(ax, n, "$n$", INK, PALE)
    for i, kind in enumerate(("a shift", "a weight", "an input")):
        write(ax, ((i + 0.5) * third, 2.44), f"bias as {kind}", 11.5, weight="bold")
    for border in (third, 2 * third):
        rule(ax, (border, 0.15), (border, 2.55))
    return drawing


def _shift(ax: Axes, s: Point) -> None:
    at = s[0], 0.42
    arrow(ax, at, s, ORANGE, RADIUS, RADIUS)
    node(ax, at, "$b$", ORANGE)


def _weight(ax: Axes, s: Point) -> None:
    at = s[0] - 0.95, 0.42
    _weighted(ax, at, s, "$w_2=b$", ORANGE, (0.44, -0.16))
    node(ax, at, "$1$", INK)


def _input(ax: Axes, s: Point) -> None:
    at = s[0] - 0.95, 0.42
    _weighted(ax, at, s, "$w_2=1$", INK, (0.44, -0.16))
    node(ax, at, "$b$", ORANGE)


def _weighted(ax: Axes, start: Point, end: Point, text: str, colour: str, offset: Point) -> None:
    """An arrow between two nodes with a weight beside its middle."""
    arrow(ax, start, end, colour, RADIUS, RADIUS)
    middle = (start[0] + end[0]) / 2 + offset[0], (start[1] + end[1]) / 2 + offset[1]
    write(ax, middle, text, color=colour)


@figure("neuron-slice")
def neuron_slice(b: float = -1.0) -> Figure:
    """A neuron's boundary: a plane through the origin of (x_0, x_1, b), and its slice at one b."""
    drawing = plt.figure(figsize=(WIDTH, 3.3))
    _plane(drawing.add_subplot(1, 2, 1, projection="3d", computed_zorder=False), b)
    _line(drawing.add_subplot(1, 2, 2), b)
    return drawing


def _boundary(b: float) -> tuple[np.ndarray, np.ndarray]:
    """Points (x_0, x_1) with w_0 x_0 + w_1 x_1 + b = 0 inside the picture."""
    x0 = np.linspace(-LIMIT, LIMIT, 601)
    x1 = -(W[0] * x0 + b) / W[1]
    seen = np.abs(x1) <= LIMIT
    return x0[seen], x1[seen]


def _plane(ax: Axes3D, b: float) -> None:
    corners = [(-LIMIT, -LIMIT), (0, -LIMIT), (LIMIT, 1.5), (LIMIT, LIMIT), (0, LIMIT)]
    corners.append((-LIMIT, -1.5))  # of the plane, where the box cuts it
    plane = [(x0, x1, -(W[0] * x0 + W[1] * x1)) for x0, x1 in corners]
    at_b = [(x0 * LIMIT, x1 * LIMIT, b) for x0, x1 in ((-1, -1), (1, -1), (1, 1), (-1, 1))]
    for order, (polygon, colour) in enumerate(((plane, GREEN), (at_b, ORANGE))):
        ax.add_collection3d(
            Poly3DCollection(
                [polygon], facecolor=(*to_rgb(colour), 0.35), edgecolor=colour, zorder=order
            )
        )
    line = _boundary(b)
    ax.plot(*line, np.full_like(line[0], b), color=VERMILION, linewidth=3, zorder=3)
    ax.scatter([0], [0], [0], color=INK, s=36, depthshade=False, zorder=4)
    ax.set(xlabel="$x_0$", ylabel="$x_1$", zlabel="$b$", xticks=[], yticks=[], zticks=[])
    ax.set(xlim=(-LIMIT, LIMIT), ylim=(-LIMIT, LIMIT), zlim=(-LIMIT, LIMIT))
    for axis in (ax.xaxis, ax.yaxis, ax.zaxis):
        axis.labelpad = -10
    ax.view_init(22, -62)
    ax.set_box_aspect(None, zoom=1.0)


def _line(ax: Axes, b: float) -> None:
    x0, x1 = np.meshgrid(np.linspace(-LIMIT, LIMIT, 301), np.linspace(-LIMIT, LIMIT, 301))
    open_ = W[0] * x0 + W[1] * x1 + b > 0
    ax.contourf(x0, x1, open_, levels=[0.5, 1.5], colors=[GREEN], alpha=0.25)
    ax.plot(*_boundary(b), color=VERMILION, linewidth=3)
    ax.plot(0, 0, "o", color=INK)
    ax.plot(*X, "s", color=BLUE)
    ax.annotate("$x$", tuple(X), xytext=(6, 4), textcoords="offset points", fontsize=14)
    ax.text(2.75, -2.6, "open", ha="right")
    ax.text(-2.75, 2.3, "shut")
    ax.set(xlim=(-LIMIT, LIMIT), ylim=(-LIMIT, LIMIT), aspect="equal", xticks=[-2, 0, 2])
    ax.set(xlabel="$x_0$", ylabel="$x_1$", yticks=[-2, 0, 2], title=f"slice at $b = {b:g}$")


@figure("rays")
def rays(b: float = -1.0) -> Figure:
    """A neuron's value when its input alone is scaled, and when its bias is scaled with it."""
    k = np.linspace(0, 2, 201)
    s = W @ X
    drawing, axes = plt.subplots(1, 2, figsize=(WIDTH, 2.7), sharey=True)
    for ax, n, text in (
        (axes[0], np.maximum(k * s + b, 0), "scale $x$ alone"),
        (axes[1], np.maximum(k * (s + b), 0), "scale $x$ and $b$"),
    ):
        ax.plot(k, k * max(s + b, 0), color=GREY, linestyle="--", linewidth=1.4)
        ax.plot(k, n, color=INK, linewidth=2.6)
        ax.plot(1, max(s + b, 0), "o", color=VERMILION, markersize=8)
        ax.set(xlabel="$k$", title=text, xticks=[0, 0.5, 1, 1.5, 2])
    axes[0].set(ylabel="value of the neuron")
    return drawing
