"""Checks for the chapters 'Training ResNet20' and 'Training ResNet20-Fixup'."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from adjoint_book.exercises.checking import compare, compare_function


def check_paths(answer: int | None) -> None:
    """The paths through nine residual blocks."""
    compare(
        answer,
        2**9,
        correct="two ways for each of nine blocks; a hypersurface sums over them all.",
        hints=[
            (18, "The choices multiply, they do not add."),
            (2**18, "A branch with two convolutions is one way, not two."),
            (2**10, "conv0 is no block; there are nine."),
        ],
        hint="At each of the nine blocks a path takes the branch or the shortcut.",
    )


def check_fewest_relus(answer: int | None) -> None:
    """The leaky ReLUs before conv18 on the path with the most shortcuts."""
    compare(
        answer,
        10,
        correct="relu0, eight after sums, and relu17 right before conv18.",
        hints=[
            (9, "conv18 stands in a branch itself, behind that branch's own leaky ReLU."),
            (18, "That is the path through all branches."),
            (11, "The leaky ReLU after the last sum comes after conv18."),
        ],
        hint="Count relu0, those after the first eight sums, and the one inside the last branch.",
    )


def check_block_jacobian(answer: Callable | None) -> None:
    """The Jacobian of a residual block with leaky ReLUs, at one point."""

    def leaky(c: np.ndarray) -> np.ndarray:
        return np.where(c > 0, c, 0.1 * c)

    def truth(W1: np.ndarray, W2: np.ndarray, h: np.ndarray) -> np.ndarray:
        def block(h: np.ndarray) -> np.ndarray:
            return leaky(h + W2 @ leaky(W1 @ h))

        step = 1e-6
        columns = [(block(h + step * e) - block(h - step * e)) / (2 * step) for e in np.eye(len(h))]
        return np.stack(columns, 1)

    rng = np.random.default_rng(10)
    compare_function(
        answer,
        truth,
        [(*rng.normal(size=(2, 4, 4)), rng.normal(size=4)) for _ in range(3)],
        correct="compared with finite differences.",
        hint="Slopes of the outer leaky ReLU, times (identity + W2 slopes W1).",
        rtol=1e-6,
        atol=1e-7,
    )


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
