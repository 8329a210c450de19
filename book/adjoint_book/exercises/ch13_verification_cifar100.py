"""Checks for the chapter on verification with CIFAR-100."""

from __future__ import annotations

from adjoint_book.exercises._registry import exercise
from adjoint_book.exercises.checking import compare


@exercise
def check_dense_units(answer: int | None) -> None:
    """Materialised RM0 hypersurfaces for 10,000 images and 100 classes."""
    compare(
        answer,
        10_000 * 100,
        correct="a million hypersurfaces, one for each image and class.",
        hints=[(100, "That is for one image."), (10_000, "Each image has 100 classes.")],
        hint="Images times classes.",
    )


@exercise
def check_wider(answer: float | None) -> None:
    """How many times wider an interval gets if 64 units always err together."""
    compare(
        answer,
        8.0,
        correct="64 alike count as one, and the width goes with the square root.",
        hints=[(64, "The width goes with the square root of the count."), (1 / 8, "Wider.")],
        hint="n units in groups of 64 that are alike are worth n / 64 units.",
        rtol=1e-3,
    )


@exercise
def check_one_more_bit(answer: float | None) -> None:
    """The misses of a network whose errors are halved, over those before."""
    compare(
        answer,
        0.5,
        correct="a unit misses below a hundred times its error, and half as far are half as many.",
        hints=[(2, "Fewer, not more."), (0.25, "The share is in proportion to the error.")],
        hint="The share is 2 f e / 0.01; f does not change.",
    )
