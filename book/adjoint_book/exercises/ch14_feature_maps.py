"""Checks for the chapter 'Feature maps, twice'."""

from __future__ import annotations

import numpy as np

from adjoint_book.exercises._registry import exercise
from adjoint_book.exercises.checking import compare
from adjoint_book.exercises.choices import choice


@exercise
def check_map_products(answer: int | None) -> None:
    """Products in the reconstruction of VGG7's conv1 for one image."""
    units, d_in = 32 * 32 * 32, 3072 + 384
    compare(
        answer,
        units * d_in,
        correct="a hundred million for one layer of one image; most of them are by zero.",
        hints=[
            (units * 3072, "The biases are inputs too."),
            (32 * 32 * d_in, "Each of the 32 channels has its own units."),
            (d_in, "That is one unit's hypersurface; how many units are there?"),
        ],
        hint="Units times the entries of one hypersurface.",
    )


@exercise
def check_map_nonzero(answer: int | None) -> None:
    """Entries of a conv1 hypersurface of VGG7 that can differ from zero."""
    compare(
        answer,
        5 * 5 * 3 + 32,
        correct="of 3,456; a library that knows this skips the rest.",
        hints=[
            (75, "The biases of the first layer count too."),
            (57, "The window has three colours."),
            (5 * 5 * 3 + 384, "Biases of later layers do not reach back to conv1."),
            (3 * 3 * 3 + 32, "Two convolutions of 3 by 3 see 5 by 5 pixels."),
        ],
        hint="5 by 5 pixels in three colours, and 32 biases before conv1.",
    )


@exercise
def check_image_energy(answer: float | None) -> None:
    """The image's part of conv1, sum of squares over that of the whole."""
    import adjoint_lib as al

    images, _ = al.data.sample("cifar10")
    net = al.equivalent(al.models.vgg7(weights="cifar10"))
    image = images[:1]
    pushed = net.tangent(image[0], image, np.zeros((1, net.x_b.size)))["conv1"]
    whole = net.value(image[0])["conv1"]
    truth = float(np.sum(np.square(pushed)) / np.sum(np.square(whole)))
    compare(
        answer,
        truth,
        correct="the biases make up the difference.",
        hints=[
            (np.sqrt(truth), "That is the ratio of the lengths; the energy is its square."),
            (1.0, "The biases reach conv1 through the first layer; leave them out."),
        ],
        hint="Push the image with zeros for x_b: net.tangent(image, dx, dx_b).",
        rtol=1e-2,
    )


@choice(
    a=(
        "Both maps are scaled to their own range before they are shown.",
        "That may hide a factor between them, but here the two maps are equal anyway.",
    ),
    b=(
        "Their difference is divided by its own largest entry, however small that is.",
        "So rounding in the last digit is blown up until it fills the scale.",
    ),
    c=(
        "The reconstruction has lost the biases.",
        "Then the difference would be as large as the maps themselves, and no noise.",
    ),
    d=(
        "The picture is compressed.",
        "These pictures are stored without loss.",
    ),
)
def check_normalised_difference() -> str:
    """Why a normalised difference of two equal-looking maps is full of noise."""
    return "b"
