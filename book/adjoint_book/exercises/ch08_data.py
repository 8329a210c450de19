"""Checks of the chapter on the data and its augmentation."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from adjoint_book.exercises._registry import exercise
from adjoint_book.exercises.checking import compare, compare_function
from adjoint_book.exercises.choices import choice


@exercise
def check_decode_cifar100(answer: Any) -> None:
    """A function that turns the 3074 bytes of a CIFAR-100 row into an image (32, 32, 3)."""
    rng = np.random.default_rng(8)
    compare_function(
        answer,
        lambda row: row[2:].reshape(3, 32, 32).transpose(1, 2, 0),
        [(rng.integers(0, 256, 3074, np.uint8),) for _ in range(3)],
        correct="two labels skipped, three planes, colours last. A reshape alone would have given "
        "the right shape, and the wrong picture.",
        hint="Skip both labels; the red plane of 32 x 32 comes first, then green, then blue.",
    )


@exercise
def check_spread(answer: Any) -> None:
    """The standard deviation of red over CIFAR-10's training images, normalised as by the paper."""
    from adjoint_lib.experiments import models, resources

    stored = json.loads(resources.path("results/data-statistics.json").read_text("utf-8"))
    own, used = stored["cifar10"]["train"]["std"][0], models.STD[0]
    compare(
        answer,
        own / used,
        correct="not 1, since the paper's numbers are not CIFAR-10's. Training does not mind, and "
        "neither does the identity.",
        hints=[
            (own, "That is the deviation before; divide it as the normalisation does."),
            (own / np.sqrt(used), "The code divides by these numbers, not by their roots."),
            (used / own, "Turn the fraction over."),
            (1.0, "It would be 1 if the paper had used CIFAR-10's own deviation."),
        ],
        hint="Subtracting a mean changes no deviation, and dividing divides it.",
        rtol=1e-3,
    )


@exercise
def check_saturation(answer: Any) -> None:
    """The pixel (0.6, 0.2, 0.4) with half of its saturation."""
    pixel = np.array([0.6, 0.2, 0.4])
    compare(
        answer,
        0.6 - 0.5 * (0.6 - pixel),
        correct="the largest channel stays, and each of the others goes half of the way to it.",
        hints=[
            (0.5 * pixel, "That is half as bright. The largest channel has to stay."),
            (0.4 + 0.5 * (pixel - 0.4), "That goes towards the mean: it is contrast."),
            (0.6 - 2 * (0.6 - pixel), "That is twice the saturation, and beyond its limit."),
        ],
        hint="Keep the largest channel; the distance of the others from it is multiplied by 0.5.",
    )


@exercise
def check_versions(answer: Any) -> None:
    """How many results crop-and-flip has for one image."""
    from adjoint_lib.experiments.training.augmentation import REACH

    offsets = 2 * REACH + 1
    compare(
        answer,
        2 * offsets**2,
        correct="nine shifts down, nine to the side, flipped or not.",
        hints=[
            (offsets**2, "And each of them may be flipped."),
            (2 * (2 * REACH) ** 2, "From -4 to 4 there are nine shifts, not eight."),
            (2 * (REACH + 1) ** 2, "The shift goes either way: from -4 to 4."),
            (2 * offsets, "Rows and columns are shifted independently."),
        ],
        hint="Count the shifts in each direction, and the flip.",
    )


@exercise
def check_shift_adjoint(answer: Any) -> None:
    """The adjoint of x -> x[[1, 2, 3, 4, 5, 4]], applied to (1, 2, 3, 4, 5, 6)."""
    u = np.arange(1.0, 7.0)
    back = np.zeros(6)
    np.add.at(back, [1, 2, 3, 4, 5, 4], u)
    overwritten = np.zeros(6)
    overwritten[[1, 2, 3, 4, 5, 4]] = u
    compare(
        answer,
        back,
        correct="a pixel that was read twice collects twice, and one that left the window gets 0.",
        hints=[
            (overwritten, "Pixel 4 was read twice, so it collects from two places."),
            (u[[1, 2, 3, 4, 5, 4]], "That shifts u forward; the adjoint sends it back."),
            (np.append(0.0, u[:5]), "That is a shift the other way; where does u's last go?"),
        ],
        hint="Each u goes back to the pixel that its place was read from.",
    )


@choice(
    a=(
        "The image's part of the score, but not the score.",
        "What counts as zero is another, so the same sum is divided in another way.",
    ),
    b=(
        "Nothing.",
        "Look at the two lines that the cell above printed: the two parts differ.",
    ),
    c=(
        "The score, and the image's part of it.",
        "The score cannot change: the function of the pixels is the same.",
    ),
    d=(
        "$H_I$ and $H_b$, and with them the score.",
        "H_I is divided by s, and x is multiplied by it; x_b has three entries more. All of that "
        "cancels in the score.",
    ),
)
def check_normalised_inside() -> str:
    """What changes when the normalisation moves into the network."""
    return "a"


@choice(
    a=(
        "The training images, since there are most of them.",
        "The network has learned these; what it says of them says little about new ones.",
    ),
    b=(
        "The validation images; the result is what the test images say of the chosen one.",
        "Those who choose and those who report are different images.",
    ),
    c=(
        "The validation images, and then the result is what they say.",
        "Choosing by them is right. But the chosen number is too good: the test images have to "
        "say it again.",
    ),
    d=(
        "The test images, since they are what the result is about.",
        "Then the result is about images that had a say, and the gain is partly luck.",
    ),
)
def check_which_split() -> str:
    """By which images one of thirty trained networks is to be chosen, and reported."""
    return "b"
