"""Checks for the chapter on verification with CIFAR-10."""

from __future__ import annotations

import numpy as np

from adjoint_book.exercises._registry import exercise
from adjoint_book.exercises.checking import compare
from adjoint_book.exercises.choices import choice


@exercise
def check_share(answer: float | None) -> None:
    """The share of the exercise's units with a relative error of at most 1 %."""
    c = np.array([1.0, -2.0, 0.5, 1e-6, -0.25, 4.0, 1e-5, 3.0])
    c_hat = c + np.array([1e-7, 3e-7, -1e-7, 2e-8, 1e-7, -4e-7, 5e-8, 0])
    truth = float(np.mean(np.abs((c_hat - c) / c) <= 0.01))
    compare(
        answer,
        truth,
        correct="only the smallest unit misses, with the smallest error but one.",
        hints=[
            (1.0, "One unit misses: divide by c, not by the largest unit."),
            (8 * truth, "That is how many; the share is divided by eight."),
            (1 - truth, "That is the share that misses."),
        ],
        hint="Take |c_hat - c| / |c| of each, and count those up to 0.01.",
    )


@exercise
def check_misses(answer: float | None) -> None:
    """Units of conv1 of VGG7 that miss 1 %, of one image, if 99.9987 % do not."""
    truth = 32**3 * (1 - 0.999987)
    compare(
        answer,
        truth,
        correct="less than one: most images have no such unit in conv1 at all.",
        hints=[
            (100 * truth, "A percent is a hundredth: the share that misses is 1.3e-5."),
            (32**3 * 0.999987, "That is how many are within 1 %."),
        ],
        hint="Units times the share that misses.",
        rtol=2e-2,
    )


@exercise
def check_directions(answer: int | None) -> None:
    """Directions in the hypersurface method for VGG7, against one."""
    compare(
        answer,
        32 * 32 * 3 + 384,
        correct="that is why one pass is for whole test sets.",
        hints=[(3072, "The biases are directions too."), (384, "The pixels are directions too.")],
        hint="One for each entry of [x; x_b].",
    )


@choice(
    a=(
        "The unit's value is close to zero, and an error of the usual size is large beside it.",
        "The relative error is the absolute one divided by next to nothing.",
    ),
    b=(
        "The image was classified wrongly.",
        "The identity knows nothing of classes: it holds for right and wrong answers alike.",
    ),
    c=(
        "The reconstruction is wrong for this unit.",
        "Then its error would be large against the layer's other values. It is not.",
    ),
    d=(
        "The unit lies in a deep layer.",
        "Misses occur in all layers after the first, and most units of deep ones are within 1 %.",
    ),
)
def check_why_a_miss() -> str:
    """Why a unit misses 1 % in float32."""
    return "a"
