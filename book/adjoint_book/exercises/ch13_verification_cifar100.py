"""Checks for the chapter on verification with CIFAR-100."""

from __future__ import annotations

from adjoint_book.exercises._registry import exercise
from adjoint_book.exercises.checking import compare
from adjoint_book.exercises.choices import choice


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


@choice(
    a=(
        "The dense layer has ten times as many units, and the others as many as before.",
        "The number of classes is the width of the last layer, and nothing else.",
    ),
    b=(
        "$x_b$ grows by 90 entries.",
        "The dense layer has no bias, so x_b stays as long as it was.",
    ),
    c=(
        "All layers have ten times as many units.",
        "A hundred classes widen the last layer alone.",
    ),
    d=(
        "The convolutions are harder to reconstruct for a hundred classes.",
        "Up to the last layer both networks have the same shape; only their weights differ.",
    ),
)
def check_hundred_classes() -> str:
    """What a hundred classes change for the reconstruction of VGG7; found by counting units."""
    import adjoint_lib as al

    ten, hundred = (
        al.equivalent(al.models.build("vgg7", classes=classes)) for classes in (10, 100)
    )
    assert ten.x_b.size == hundred.x_b.size
    grown = [
        small.name
        for small, large in zip(ten.layers, hundred.layers, strict=True)
        if small.shape != large.shape
    ]
    return "a" if grown == ["fc"] else "c"
