"""Checks of the chapter on folding."""

from __future__ import annotations

from typing import Any

import numpy as np

from adjoint_book.exercises._registry import exercise
from adjoint_book.exercises.checking import compare, compare_function, compare_properties
from adjoint_book.exercises.choices import choice

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


@choice(
    a=(
        "The folded kernel is zero in this channel, and so is its bias.",
        "Put 0 for gamma into (4.2): beta does not depend on it.",
    ),
    b=(
        "The folded kernel is zero in this channel, and its bias is $\\beta$.",
        "The scale is 0, so the kernel and the mean both drop out.",
    ),
    c=(
        "It cannot be folded, since one would have to divide by zero.",
        "Only the root of the variance is divided by, and it is never zero; gamma is a factor.",
    ),
    d=(
        "The folded bias is $\\beta - \\mu$.",
        "The mean is multiplied by the scale before it is taken away, and the scale is 0.",
    ),
)
def check_gamma_zero() -> str:
    """What folding makes of a channel with gamma = 0; found by folding one."""
    beta, mean = 0.5, 2.0
    scale = 0.0 / np.sqrt(4.0)
    bias = beta - scale * mean
    return {0.5: "b", 0.0: "a", -1.5: "d"}[bias]


@exercise
def check_unfold(answer: Any) -> None:
    """A function of (w', b'): numbers w, gamma, beta, mean, deviation that fold to these two."""
    cases = [(1.5, -2.0), (-0.3, 0.0), (4.0, 7.0)]

    def folded(f: Any, w: float, b: float) -> tuple[float, float]:
        kernel, gamma, beta, mean, deviation = (float(number) for number in f(w, b))
        return gamma * kernel / deviation, beta - gamma * mean / deviation

    compare_properties(
        answer,
        {
            "it returns five numbers": lambda f: all(len(f(*case)) == 5 for case in cases),
            "the deviation is above 0": lambda f: all(f(*case)[4] > 0 for case in cases),
            "gamma is not 1, the mean is not 0 and the deviation is not 1": lambda f: all(
                f(*case)[1] != 1 and f(*case)[3] != 0 and f(*case)[4] != 1 for case in cases
            ),
            "the five numbers fold to w' and b'": lambda f: all(
                np.allclose(folded(f, *case), case) for case in cases
            ),
        },
        correct="there are many such five: folding forgets three numbers of each channel, and what "
        "the network computes does not depend on them.",
        hint="Choose gamma, mean and deviation as you like, then solve (4.2) for w and beta.",
    )
