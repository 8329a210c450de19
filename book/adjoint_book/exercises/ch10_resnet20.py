"""Checks for the chapter 'Training ResNet20'."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from adjoint_book.exercises._registry import exercise
from adjoint_book.exercises.checking import compare, compare_function
from adjoint_book.exercises.choices import choice


@exercise
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


@exercise
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


@exercise
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


@choice(
    a=(
        "The block can no longer be reconstructed.",
        "A shut ReLU is a slope like any other: zero.",
    ),
    b=(
        "Up to the sum of branch and shortcut, the block's Jacobian is the identity.",
        "The branch answers no small change of its input: its slopes are zero. The shortcut passes "
        "everything on.",
    ),
    c=(
        "The block's biases contribute all of its output.",
        "A bias behind a shut ReLU contributes nothing; one after the last ReLU of the branch "
        "still does, beside what the shortcut brings.",
    ),
    d=(
        "Nothing of the image reaches the block's output.",
        "The branch is shut; the shortcut is not.",
    ),
)
def check_shut_branch() -> str:
    """What holds for a residual block whose branch has all its ReLUs shut at an image."""
    return "b"
