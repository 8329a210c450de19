"""Training: schedules, curves, and why a final ReLU, a missing shortcut or a missing norm hurts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import ArrayLike

from adjoint_book.figures._networks import network
from adjoint_book.figures._registry import figure
from adjoint_book.figures._style import BLUE, CYCLE, GREEN, GREY, INK, ORANGE, VERMILION, WIDTH
from adjoint_lib.errors import DataError

if TYPE_CHECKING:
    from adjoint_lib.core.equivalent_net import EquivalentNet

NAMES = {"cifar10": "CIFAR-10", "cifar100": "CIFAR-100"}


@figure("learning-rates")
def learning_rates(model: str = "vgg7", dataset: str = "cifar10") -> Figure:
    """The learning rate over a run: the one cycle of `fast`, the three steps of `paper`."""
    from adjoint_lib.experiments.training.recipes import recipe

    drawing, axes = plt.subplots(1, 2, figsize=(WIDTH, 2.5))
    for ax, name, colour in zip(axes, ("fast", "paper"), (BLUE, ORANGE), strict=True):
        chosen = recipe(name, model, dataset)
        at = np.linspace(0, chosen.epochs, 1001)[:-1]
        ax.plot(at, [chosen.learning_rate(position) for position in at], color=colour)
        ax.set(xlabel="epoch", ylim=(0, None), title=f"recipe {name}")
        ax.margins(x=0)
    axes[0].set_ylabel("learning rate")
    return drawing


@figure("training-curve")
def training_curve(model: str = "vgg7") -> Figure:
    """Accuracy over the epochs of the runs that made the shipped weights, and on the test images.

    One panel for each data set; the dashed line is the paper's test accuracy.
    """
    from adjoint_lib.experiments import paper
    from adjoint_lib.experiments.models import trained

    records = trained(model)
    if not records:
        raise DataError(
            f"no trained weights of {model} come with the library, so there is no curve to draw. "
            f"Train it: python -m adjoint_lib train --model {model} --dataset cifar10."
        )
    drawing, axes = plt.subplots(
        1, len(records), figsize=(WIDTH, 3.0), squeeze=False, layout="constrained"
    )
    for ax, (dataset, record) in zip(axes[0], records.items(), strict=True):
        _accuracies(ax, record)
        ax.axhline(paper.accuracy(model, dataset), color=INK, ls="--", lw=1, label="paper, test")
        ax.set(xlabel="epoch", title=NAMES[dataset], ylim=(0, 100))
        ax.xaxis.get_major_locator().set_params(integer=True)
        ax.margins(x=0.02)
    axes[0][0].set_ylabel("accuracy (%)")
    handles, labels = axes[0][0].get_legend_handles_labels()
    drawing.legend(handles, labels, loc="outside upper center", ncols=4, fontsize=9)
    return drawing


def _accuracies(ax: Axes, record: dict) -> None:
    """Draw the curves of a run's record, and its test accuracy if it has ended."""
    curve = record["curve"]
    seen = [row for row in curve if row["validation_accuracy"] is not None]
    ax.plot(
        [row["epoch"] + 1 for row in curve],
        [100 * row["train_accuracy"] for row in curve],
        color=BLUE,
        label="training, augmented",
    )
    ax.plot(
        [row["epoch"] + 1 for row in seen],
        [100 * row["validation_accuracy"] for row in seen],
        "o-",
        color=ORANGE,
        lw=1,
        ms=3,
        label="validation",
    )
    if "test" in record["accuracy"]:
        at, test = record["recipe"]["epochs"], 100 * record["accuracy"]["test"]["value"]
        ax.plot(at, test, "*", color=VERMILION, ms=13, label="test, once", clip_on=False)


@figure("paper-run")
def paper_run(model: str = "vgg7", dataset: str = "cifar10") -> Figure:
    """Accuracy over the epochs of a run with the paper's own recipe, as far as it has come.

    Left over the whole schedule, whose learning rates stand above, right over the epochs so far.
    The dashed line is the paper's test accuracy, the dotted one marks where the run is.
    """
    from adjoint_lib.experiments import paper, training

    recipe, record = training.recipe("paper", model, dataset), training.kept(model, dataset)
    reached = record["reached"]["epoch"] if record else 0
    drawing, axes = plt.subplots(1, 2, figsize=(WIDTH, 3.0), layout="constrained", sharey=True)
    starts = [epoch for epoch, _ in recipe.rates] + [recipe.epochs]
    for n, (start, rate) in enumerate(recipe.rates):
        axes[0].axvspan(start, starts[n + 1], color=GREY, alpha=(0.12, 0.26)[n % 2], lw=0)
        at = (start + starts[n + 1]) / 2
        axes[0].text(at, 101, f"{rate:g}", ha="center", va="bottom", fontsize=9)
    for ax, end in zip(axes, (recipe.epochs, 1.04 * max(reached, 1)), strict=True):
        if record:
            _accuracies(ax, record)
        ax.axvline(reached, color=INK, lw=1, ls=":", label="reached")
        ax.axhline(paper.accuracy(model, dataset), color=INK, ls="--", lw=1, label="paper, test")
        ax.set(xlabel="epoch", ylim=(0, 100), xlim=(0, end))
        ax.xaxis.get_major_locator().set_params(integer=True)
    axes[0].set_ylabel("accuracy (%)")
    handles, labels = axes[0].get_legend_handles_labels()
    drawing.legend(handles, labels, loc="outside upper center", ncols=5, fontsize=9)
    return drawing


@figure("live-curve")
def live_curve(losses: Sequence[float] | None = None) -> Figure:
    """The training loss over the epochs of a run.

    Args:
        losses: one for each epoch; by default of the run that made VGG7's weights for CIFAR-10.
    """
    if losses is None:
        from adjoint_lib.experiments.models import trained

        losses = [row["train_loss"] for row in trained("vgg7")["cifar10"]["curve"]]
    drawing, ax = plt.subplots(figsize=(WIDTH, 2.3))
    ax.plot(range(1, len(losses) + 1), losses, "o-", color=BLUE, ms=4)
    ax.set(xlabel="epoch", ylabel="training loss", ylim=(0, None))
    ax.xaxis.get_major_locator().set_params(integer=True)
    return drawing


@figure("orthogonal-step")
def orthogonal_step(rounds: Sequence[ArrayLike] | None = None) -> Figure:
    """Singular values of a gradient, and of the orthogonal step it becomes, round by round.

    Args:
        rounds: singular values, largest first: of the gradient, then after each round; by default
            of a gradient whose values fall by a factor of three.
    """
    if rounds is None:
        from adjoint_lib.experiments.training.orthogonal import QUINTIC, ROUNDS

        values = 0.3 ** np.arange(6)
        values /= np.linalg.norm(values)
        rounds = [values]
        a, b, c = QUINTIC
        for _ in range(ROUNDS):
            values = a * values + b * values**3 + c * values**5
            rounds.append(values)
    drawing, ax = plt.subplots(figsize=(WIDTH, 2.8))
    ax.axhspan(0.68, 1.21, color=GREY, alpha=0.25, lw=0)
    for index, values in enumerate(np.transpose([np.sort(each)[::-1] for each in rounds])):
        ax.plot(values, "o-", color=CYCLE[index % len(CYCLE)], ms=4, label=f"value {index + 1}")
    ax.set(xlabel="rounds", ylabel="singular value", yscale="log")
    ax.set_xticks(range(len(rounds)), ["gradient", *map(str, range(1, len(rounds)))])
    ax.legend(fontsize=9, ncols=2, loc="lower right")
    return drawing


@figure("starved-gradient")
def starved_gradient(
    scores: Sequence[float] = (1.2, -0.4, 0.3, -1.1, 0.8, -0.7), label: int = 1
) -> Figure:
    """What the loss tells each score, with and without a ReLU after the last layer.

    Args:
        scores: one for each class, before the ReLU.
        label: the right class.
    """
    c = np.asarray(scores, float)
    free = _softmax(c) - np.eye(len(c))[label]
    starved = (_softmax(np.maximum(c, 0)) - np.eye(len(c))[label]) * (c > 0)
    drawing, axes = plt.subplots(2, 1, figsize=(WIDTH, 3.6), sharex=True)
    places = np.arange(len(c))
    axes[0].bar(places, c, color=np.where(c > 0, BLUE, GREY))
    axes[0].set_ylabel("score $c_i$")
    axes[1].bar(places - 0.2, free, 0.38, color=GREEN, label="no final ReLU")
    axes[1].bar(places + 0.2, starved, 0.38, color=VERMILION, label="with a final ReLU")
    axes[1].set_ylabel(r"$\partial$ loss / $\partial c_i$")
    names = [f"{i}\n(true)" if i == label else str(i) for i in places]
    axes[1].set_xticks(places, names)
    axes[1].set_xlabel("class")
    axes[1].legend(loc="lower right")
    for ax in axes:
        ax.axhline(0, color=INK, lw=1)
        ax.grid(axis="x", visible=False)
    return drawing


@figure("shrinking-gradients")
def shrinking_gradients(lengths: Mapping[str, Sequence[float]] | None = None) -> Figure:
    """How long the gradient still is when it has come back through so many layers.

    Args:
        lengths: for each kind of network, the gradient's length after 0, 1, 2, ... layers; by
            default for 20 random leaky ReLU layers of width 64, plain and with shortcuts.
    """
    if lengths is None:
        lengths = {
            "plain": _gradient_lengths(shortcut=0.0),
            "with shortcuts": _gradient_lengths(shortcut=1.0),
        }
    return _by_depth(lengths, "layers passed on the way back", "length of the gradient")


@figure("growing-signals")
def growing_signals(spreads: Mapping[str, Sequence[float]] | None = None) -> Figure:
    """How large the activations are after each residual block.

    Args:
        spreads: for each kind of network, the activations' spread after block 0, 1, 2, ...; by
            default for nine random blocks of width 64, with three sorts of branches.
    """
    if spreads is None:
        gains = {"He": 1.0, "a third of He": 1 / 3, "Fixup: zero": 0.0}
        spreads = {name: _spreads(gain) for name, gain in gains.items()}
    return _by_depth(spreads, "residual blocks passed", "spread of the activations")


@figure("learned-lengths")
def learned_lengths(
    ways: Mapping[str, Sequence[float]] | None = None, balance: float | None = None
) -> Figure:
    """The length of a kernel over orthogonal steps with decay, and where the two balance.

    Args:
        ways: for each start, |w| / sqrt(D) after step 1, 2, 3, ...; by default for random steps of
            a kernel with six outputs, at the rates of ResNet20-Fixup's recipe.
        balance: where they should end; by default that of the default ways.
    """
    if ways is None or balance is None:
        from adjoint_lib.experiments.training.recipes import recipe

        fast = recipe("fast", "resnet20-fixup", "cifar10")
        if fast.kernel_rate is None or fast.kernel_decay is None:
            raise ValueError(
                "expected a recipe of orthogonal steps with decay; give ways and balance"
            )
        rate = max(rate for _, rate in fast.rates)
        step, share = fast.kernel_rate * rate, fast.kernel_decay * rate
        ways = {f"from {start:g}": _lengths(start, step, share) for start in (0, 0.5, 1)}
        balance = step / np.sqrt(2 * share)
    drawing, ax = plt.subplots(figsize=(WIDTH, 3.0))
    for (name, values), colour in zip(ways.items(), CYCLE, strict=False):
        ax.plot(np.arange(1, len(values) + 1), values, color=colour, lw=1.5, label=name)
    ax.axhline(balance, color=INK, ls="--", lw=1, label="balance")
    ax.set(xlabel="step", ylabel="length / $\\sqrt{D}$", ylim=(0, None))
    ax.margins(x=0.02)
    ax.legend(ncols=4)
    return drawing


def _by_depth(lines: Mapping[str, Sequence[float]], along: str, up: str) -> Figure:
    drawing, ax = plt.subplots(figsize=(WIDTH, 3.0))
    for (name, values), colour, marker in zip(lines.items(), CYCLE, "osD^", strict=False):
        ax.semilogy(range(len(values)), values, color=colour, marker=marker, ms=4, label=name)
    ax.set(xlabel=along, ylabel=up)
    ax.xaxis.get_major_locator().set_params(integer=True)
    ax.legend()
    return drawing


def _gradient_lengths(shortcut: float, depth: int = 20, width: int = 64) -> list[float]:
    """|g| after each layer on the way back through h -> leaky(shortcut h + W h)."""
    rng = np.random.default_rng(0)
    h, slopes = rng.normal(size=width), []
    layers = [rng.normal(0, 0.5 / np.sqrt(width), (width, width)) for _ in range(depth)]
    for W in layers:
        c = shortcut * h + W @ h
        slopes.append(np.where(c > 0, 1, 0.1))
        h = slopes[-1] * c
    g = np.ones(width) / np.sqrt(width)
    lengths = [1.0]
    for W, slope in zip(reversed(layers), reversed(slopes), strict=True):
        g = shortcut * slope * g + W.T @ (slope * g)
        lengths.append(float(np.linalg.norm(g)))
    return lengths


def _spreads(gain: float, blocks: int = 9, width: int = 64) -> list[float]:
    """The spread of h after each block h -> relu(h + W2 relu(W1 h)), with W2 scaled by `gain`."""
    rng = np.random.default_rng(0)
    h = np.maximum(rng.normal(size=(width, 500)), 0)
    spreads = [float(h.std())]
    for _ in range(blocks):
        W1, W2 = rng.normal(0, np.sqrt(2 / width), (2, width, width))
        h = np.maximum(h + gain * W2 @ np.maximum(W1 @ h, 0), 0)
        spreads.append(float(h.std()))
    return spreads


def _lengths(
    start: float, size: float, share: float, steps: int = 3000, outputs: int = 6
) -> list[float]:
    """|w| / sqrt(D) on a way of orthogonal steps of this size, each after a decay by this share."""
    rng = np.random.default_rng(0)
    w = start * np.linalg.qr(rng.normal(size=(54, outputs)))[0]
    lengths = []
    for _ in range(steps):
        step, _ = np.linalg.qr(rng.normal(size=w.shape))
        step *= rng.choice([-1, 1], outputs)
        w = (1 - share) * w - size * step
        lengths.append(float(np.linalg.norm(w) / np.sqrt(outputs)))
    return lengths


@figure("learned-biases")
def learned_biases(net: EquivalentNet | None = None) -> Figure:
    """The entries of x_b, by the layer that they come from.

    Args:
        net: an equivalent network; by default VGG7 as trained on CIFAR-10.
    """
    if net is None:
        net, _ = network()
    drawing, ax = plt.subplots(figsize=(WIDTH, 0.7 + 0.3 * len(net.sources)))
    rng = np.random.default_rng(0)
    for row, source in enumerate(net.sources):
        values = net.x_b[source.slice]
        ax.plot(values, row + rng.uniform(-0.25, 0.25, len(values)), ".", color=ORANGE, ms=3)
        ax.plot([np.median(values)] * 2, [row - 0.35, row + 0.35], color=INK, lw=2)
    ax.axvline(0, color=GREY, lw=1)
    ax.set_yticks(range(len(net.sources)), [source.name for source in net.sources], fontsize=9)
    ax.invert_yaxis()
    ax.grid(axis="y", visible=False)
    ax.set_xlabel("entry of $x_b$ (line: the median)")
    return drawing


def _softmax(scores: np.ndarray) -> np.ndarray:
    odds = np.exp(scores - scores.max())
    return odds / odds.sum()
