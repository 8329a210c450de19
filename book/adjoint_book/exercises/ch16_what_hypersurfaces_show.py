"""Checks for the chapter 'What hypersurfaces show'."""

from __future__ import annotations

import numpy as np

from adjoint_book.exercises._registry import exercise
from adjoint_book.exercises.checking import compare
from adjoint_book.exercises.choices import choice
from adjoint_book.tiny import W0, W1, w
from adjoint_book.tiny import b0 as B0
from adjoint_book.tiny import b1 as B1
from adjoint_book.tiny import x as X

CLASSES = np.array([w, [2.0, -2.0]])  # of the tiny network


@exercise
def check_margin_hypersurface(answer: np.ndarray | None) -> None:
    """H of the difference of the two class scores of the tiny network: 7 entries."""
    first, second = _hypersurfaces()
    compare(
        answer,
        first - second,
        correct="its inner product with v is the margin, 4: image -1, biases 5.",
        hints=[
            (second - first, "The sign is the other way round."),
            (first, "That is the hypersurface of class A alone."),
            ((first - second)[:2], "The biases have entries too: seven in all."),
        ],
        hint="J* is linear: subtract the two hypersurfaces, or pull back the difference of the "
        "two kernels.",
    )


@exercise
def check_nearest_tie(answer: float | None) -> None:
    """How far the pixels have to move for a tie, if the linear map held: margin / |H_I|."""
    first, second = _hypersurfaces()
    H = first - second
    margin = H @ np.concatenate([X, B0, B1])
    compare(
        answer,
        margin / np.linalg.norm(H[:2]),
        correct="but on the way the second hidden unit of the second layer shuts, so the region "
        "has been left: the number is a prediction of the linear map, not of the network.",
        hints=[
            (margin / np.linalg.norm(H), "Only the pixels may move; the biases stay."),
            (margin / np.sum(H[:2] ** 2), "That is the step along H_I; its length is asked for."),
            (margin, "That is the margin itself; divide it by the slope."),
        ],
        hint="The margin changes fastest along H_I of the difference, at a rate of its length.",
    )


@exercise
def check_lrp_shared(answer: np.ndarray | None) -> None:
    """LRP-0 of class A with the biases left out of the denominators: one number a pixel."""
    compare(
        answer,
        _shared_out(),
        correct="the sum is the score, 8, but all of it on the first pixel: the shares of the "
        "biases have been handed to whatever input was at hand.",
        hints=[
            (
                X * _hypersurfaces()[0][:2],
                "That is gradient x input, which is LRP-0 with the biases in the denominators.",
            )
        ],
        hint="Start with R = w * a at the last hidden layer. Going back through W, unit k hands "
        "a_j W[k, j] / (sum of a_i W[k, i]) of its R to input j; the bias gets nothing.",
    )


@exercise
def check_largest_source(answer: str | None) -> None:
    """Which bias vector contributes most to the winning score of image 5 in VGG7; a name."""
    from adjoint_book.figures._networks import network

    net, images = network()
    units = net.astype("float64").hypersurface(images[5], "fc")[:]
    parts = units.contributions[np.argmax(units.value)]
    names = units.sources
    compare(
        answer,
        names[1 + int(np.argmax(parts[1:]))],
        correct="`contributions` has the image first, then each part of x_b in order.",
        hints=[
            ("image", "The question is about the biases."),
            (names[1 + int(np.argmin(parts[1:]))], "That is the smallest contribution."),
        ],
        hint="net64.hypersurface(images[5], 'fc')[:] has .value, .contributions and .sources.",
    )


@choice(
    a=(
        "Brighter pixels in this place raise the score.",
        "That would be the sign of H_I there, which is the derivative; and it holds nearby only.",
    ),
    b=(
        "Without this pixel the score would be lower by 0.3.",
        "Without it the image is another one, and so may be the pattern and H.",
    ),
    c=(
        "The network looks at this pixel.",
        "Almost every pixel has a term that is not zero, also in a network with random weights.",
    ),
    d=(
        "Of the sum that makes up the score, this pixel's term is 0.3.",
        "It is a statement about this image and this choice of zero, and exact as such.",
    ),
)
def check_pixel_share() -> str:
    """What it means that x * H_I is 0.3 at a pixel."""
    return "d"


@choice(
    a=(
        "The maps are shown on one scale.",
        "The correlation is the same on every scale.",
    ),
    b=(
        "Both share the factor $x$, the image.",
        "Outlines of the image show through in every product with it, whatever the weights.",
    ),
    c=(
        "The two networks happen to have alike hypersurfaces.",
        "Their correlation is printed above: there is hardly any.",
    ),
    d=(
        "Both maps show what the network has learned.",
        "One of them is of a network that has learned nothing.",
    ),
)
def check_alike_products() -> str:
    """Why x * H_I of a trained and of a random network look alike."""
    return "b"


def _hypersurfaces() -> np.ndarray:
    """H of both classes in [x; b0; b1]: (2, 7)."""
    open0, open1 = _activations()[0] > 0, _activations()[1] > 0
    pick = np.eye(7)
    J0 = open0[:, None] * (W0 @ pick[:2] + pick[2:5])
    return CLASSES @ (open1[:, None] * (W1 @ J0 + pick[5:]))


def _activations() -> tuple[np.ndarray, np.ndarray]:
    a0 = np.maximum(W0 @ X + B0, 0)
    return a0, np.maximum(W1 @ a0 + B1, 0)


def _shared_out() -> np.ndarray:
    a0, a1 = _activations()
    relevance = CLASSES[0] * a1
    for W, a in ((W1, a0), (W0, X)):
        products = W * a
        relevance = (relevance / products.sum(1)) @ products
    return relevance
