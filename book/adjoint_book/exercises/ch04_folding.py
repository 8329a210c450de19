"""Checks of the chapter on folding."""

from __future__ import annotations

from typing import Any

import numpy as np

from adjoint_book.exercises._registry import exercise
from adjoint_book.exercises.checking import compare, compare_function

GAMMA, BETA, MEAN, DEVIATION = 2.0, -1.0, 3.0, 4.0  # DEVIATION: sqrt(variance + epsilon)
KERNEL = np.array([4.0, -2.0])


@exercise
def check_fold_by_hand(answer: Any) -> None:
    """[w'_0, w'_1, b'] for gamma 2, beta -1, mean 3, variance + epsilon 16, w = (4, -2)."""
    scale = GAMMA / DEVIATION
    compare(
        answer,
        np.append(scale * KERNEL, BETA - scale * MEAN),
        correct="two multiplications and one addition are left of the whole batch normalisation.",
        hints=[
            (
                np.append(GAMMA / 16 * KERNEL, BETA - GAMMA / 16 * MEAN),
                "Divide by the root of 16, not by 16.",
            ),
            (np.append(scale * KERNEL, BETA - MEAN), "The mean is scaled as well."),
            (np.append(scale * KERNEL, BETA + scale * MEAN), "The mean is taken away."),
            (np.append(scale * KERNEL, BETA), "Where has the mean gone?"),
        ],
        hint="scale = gamma / sqrt(variance + epsilon); w' = scale * w; b' = beta - scale * mean.",
    )


@exercise
def check_fold_chain(answer: Any) -> None:
    """The one bias left of: bias 4, batch normalisation, multiplier 3, bias 0.25.

    The batch normalisation has gamma 2, beta -1, mean 3 and variance + epsilon 16.
    """
    scale = GAMMA / DEVIATION
    normalised = BETA + scale * (4.0 - MEAN)
    compare(
        answer,
        3 * normalised + 0.25,
        correct="each bias is scaled by whatever comes after it, then they add up.",
        hints=[
            (normalised, "That is right up to the batch normalisation; go on."),
            (normalised + 0.25, "The multiplier scales what stands before it, biases too."),
            (3 * (normalised + 0.25), "The last bias comes after the multiplier."),
            (3 * (BETA - scale * MEAN + 4.0) + 0.25, "The bias 4 is scaled by the normalisation."),
        ],
        hint="Put 0 into the chain: what comes out is the bias that is left.",
    )


@exercise
def check_fold_kernel(answer: Any) -> None:
    """A function (w, gamma, variance, epsilon) that folds a kernel w[r1, r2, j, i]."""
    rng = np.random.default_rng(7)

    def truth(w, gamma, variance, epsilon):
        return w * (gamma / np.sqrt(variance + epsilon))

    inputs = [
        (
            rng.normal(size=(3, 3, *channels)),
            rng.normal(size=channels[1]),
            rng.uniform(0.5, 2, channels[1]),
            1e-3,
        )
        for channels in ((2, 4), (4, 4), (1, 5))
    ]
    compare_function(
        answer,
        truth,
        inputs,
        correct="each out-channel has its own scale. With 4 channels in and 4 out, a mistake of "
        "axis would not even raise an error.",
        hint="The scale belongs to the out-channel, the last axis of w.",
    )


@exercise
def check_longer_resnet(answer: Any) -> None:
    """Entries of x_b of a ResNet with five blocks a stage: 32 + 10 (32 + 64 + 96)."""
    total = 32 + 10 * (32 + 64 + 96)
    compare(
        answer,
        total,
        correct="one entry for each channel of each batch normalisation.",
        hints=[
            (total - 32, "The first convolution has a batch normalisation too."),
            (32 + 5 * (32 + 64 + 96), "Each block has two convolutions."),
            (1184, "That is ResNet20, with three blocks a stage."),
        ],
        hint="Conv0, then five blocks of two convolutions at each of the widths 32, 64 and 96.",
    )
