"""Checks for the chapter 'Training ResNet20-Fixup'."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from adjoint_book.exercises._registry import exercise
from adjoint_book.exercises.checking import compare, compare_function
from adjoint_book.exercises.choices import choice


@exercise
def check_fixup_scale(answer: float | None) -> None:
    """Fixup's factor for 25 blocks of three convolutions."""
    compare(
        answer,
        25 ** (-1 / 4),
        correct="the deeper the network, the smaller its branches start.",
        hints=[
            (25 ** (-1 / 2), "That is for two convolutions in a branch."),
            (25 ** (1 / 4), "The exponent is negative."),
            (1 / 3, "That is for this chapter's nine blocks of two."),
        ],
        hint="L to the power of -1/(2m - 2), with L = 25 and m = 3.",
        rtol=5e-3,
    )


@exercise
def check_fixup_scalars(answer: int | None) -> None:
    """The scalar biases of ResNet20-Fixup."""
    from adjoint_lib.experiments.models import resnet20_fixup
    from adjoint_lib.frontend.equivalent import equivalent

    truth = equivalent(resnet20_fixup()).x_b.size
    compare(
        answer,
        truth,
        correct="that is all of x_b: no other bias is left in the network.",
        hints=[
            (truth - 1, "There is one more, after conv0."),
            (truth + 9, "The multipliers go into the kernels; they are not in x_b."),
            (28, "Each block has two convolutions, so two biases stand before convolutions."),
        ],
        hint="Four for each of nine blocks, and one after conv0.",
    )


@exercise
def check_fold_multiplier(answer: Callable | None) -> None:
    """Kernel and bias of m (w * h) + b, put into one flat array to be compared."""
    rng = np.random.default_rng(11)

    def flat(fold: Callable) -> Callable:
        def joined(w: np.ndarray, m: float, b: float) -> np.ndarray:
            kernel, bias = fold(w, m, b)
            return np.concatenate([np.ravel(kernel), np.ravel(bias)])

        return joined

    compare_function(
        flat(answer) if callable(answer) else answer,
        flat(lambda w, m, b: (m * w, b)),
        [(rng.normal(size=(3, 3, 2, 4)), 1.7, -0.2), (rng.normal(size=(1, 1, 2, 2)), -0.5, 3.0)],
        correct="the kernel takes the multiplier; the bias comes after it and stays.",
        hint="Return the pair (m w, b): nothing after the multiplier is scaled by it.",
    )


@choice(
    a=(
        "They fold into the kernels, as multipliers do.",
        "A multiplier is a factor and goes into a kernel. A bias is added, and goes into x_b.",
    ),
    b=(
        "$H_b$ has 37 entries only because the others are zero.",
        "There are no others: x_b itself has 37 entries.",
    ),
    c=(
        "37 numbers are too few to matter for any score.",
        "Each is copied to all positions and channels of a layer, and so meets thousands of paths.",
    ),
    d=(
        "Each of them gets, going back, the sum over all places to which it was copied.",
        "So a single entry of x_b may contribute as much as a whole vector of them.",
    ),
)
def check_few_biases() -> str:
    """What is true of the 37 scalar biases of ResNet20-Fixup."""
    return "d"
