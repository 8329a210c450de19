"""Checks for the chapter 'Training VGG7'."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from adjoint_book.exercises._registry import exercise
from adjoint_book.exercises.checking import compare, compare_function
from adjoint_book.exercises.choices import choice


@exercise
def check_vgg7_kernels(answer: int | None) -> None:
    """The numbers in VGG7's kernels for 100 classes."""
    from adjoint_lib.experiments.models import vgg7

    model = vgg7(classes=100)
    truth = sum(math.prod(w.shape) for w in model.trainable_weights if w.name == "kernel")
    compare(
        answer,
        truth,
        correct="each further class costs one weight for each of the 96 pooled channels.",
        hints=[
            (truth - 90 * 96, "That is with 10 classes."),
            (truth + 90, "The dense layer has no bias."),
            (truth + 10 * 96, "The 100 classes replace the 10, they do not come on top."),
        ],
        hint="The dense layer has one column of 96 weights for each class.",
    )


@exercise
def check_rate(answer: float | None) -> None:
    """The rate of one cycle of 60 epochs, peak 0.2, after 45 epochs."""
    from adjoint_lib.experiments.training.recipes import recipe

    compare(
        answer,
        recipe("fast", "vgg7", "cifar10").stretched(60).learning_rate(45),
        correct="one third of the way is left, and one third of the peak.",
        hints=[
            (0.05, "The fall begins at epoch 15, not at the start."),
            (0.15, "It falls, and it falls from epoch 15 on."),
            (0.2 * 2 / 3, "That is how much it has fallen; what is left?"),
        ],
        hint="The rate is 0.2 at epoch 15, 0 at epoch 60, and a straight line between.",
        rtol=5e-3,
    )


@exercise
def check_interval(answer: float | None) -> None:
    """Half the width of the 95 % interval of 895 in 1,000, in percentage points."""
    truth = 100 * 1.96 * math.sqrt(0.895 * 0.105 / 1000)
    compare(
        answer,
        truth,
        correct="so 1,000 images cannot tell two networks apart that differ by a point or two.",
        hints=[
            (truth / 100, "That is the share; in percentage points it is 100 times as much."),
            (2 * truth, "That is the whole width; the question is for half of it."),
        ],
        hint="p is 0.895 and n is 1,000.",
        rtol=0.02,
    )


@exercise
def check_starved(answer: Callable | None) -> None:
    """The gradient of cross-entropy after a final ReLU, by the scores before it."""

    def truth(c: np.ndarray, label: int) -> np.ndarray:
        odds = np.exp(np.maximum(c, 0))
        return (odds / odds.sum() - np.eye(len(c))[label]) * (c > 0)

    rng = np.random.default_rng(9)
    compare_function(
        answer,
        truth,
        [(rng.normal(size=6), 2), (rng.normal(size=10), 0), (np.array([-1.0, -2.0, 3.0]), 1)],
        correct="zero for every class whose score is negative, even the true one.",
        hint="Softmax of max(c, 0), less the true class, times whether c is above 0.",
    )


@choice(
    a=(
        "The test set is too small to say anything.",
        "It is large enough to tell differences of a few points. Just not one of 0.4.",
    ),
    b=(
        "The network that is 0.4 points ahead is the better one.",
        "Luck alone moves such an accuracy by about half a point either way.",
    ),
    c=(
        "The two are equally good.",
        "That they are has not been shown either: the intervals leave room for a small difference.",
    ),
    d=(
        "These runs do not tell which one is better.",
        "The intervals overlap widely, and each network was trained once.",
    ),
)
def check_small_lead() -> str:
    """What 88.4 % against 88.0 % of 10,000 test images says, one run each."""
    errors = [np.sqrt(p * (1 - p) / 10_000) for p in (0.884, 0.880)]
    apart = 1.96 * np.hypot(*errors) < 0.004
    return "b" if apart else "d"
