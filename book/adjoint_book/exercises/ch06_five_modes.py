"""Checks for the chapter 'The adjoint blueprint and the five modes'."""

from __future__ import annotations

from typing import Any

import numpy as np

from adjoint_book.exercises._registry import exercise
from adjoint_book.exercises.checking import compare, compare_properties
from adjoint_book.exercises.choices import choice


@exercise
def check_mode_shape(answer: tuple[int, ...] | None) -> None:
    """The shape of H in mode RM3 for conv13 of ResNet20."""
    import adjoint_lib as al
    from adjoint_lib.core.hypersurface import MODES

    net = al.equivalent(al.models.resnet20())
    layer = net.layer("conv13")
    shapes = {name: (net.d_in, *MODES[name].shape(layer)) for name in layer.modes}
    compare(
        answer,
        shapes["RM3"],
        correct="RM3 keeps the in-channels and sums over the positions.",
        hints=[
            ((4224, 64, 96), "The axes are right; count the biases again, conv0 has some too."),
            (shapes["RM1"], "That is RM1, which sums over the in-channels as well."),
            (shapes["RM2"], "That is RM2: RM3 sums over positions, not over in-channels."),
            (shapes["RM4"], "That is RM4, before any sum."),
        ],
        hint="The first axis is d_in = 3072 + 1184. Then come the axes that RM3 does not sum over.",
    )


@exercise
def check_cotangent(answer: np.ndarray | None) -> None:
    """The cotangent of RM1 for out-channel 1 of the tiny network: (5, 5, 2)."""
    truth = _everywhere(1)
    compare(
        answer,
        truth,
        correct="in the middle every entry is met by all nine taps, at the border by fewer.",
        hints=[
            (_everywhere(0), "That is out-channel 0."),
            (
                truth[::-1, ::-1],
                "The kernel is flipped: a tap [r1, r2] weighs the entry at "
                "row + r1 - 1, column + r2 - 1.",
            ),
            (truth * [1, 0], "That is RM3 of in-channel 0: RM1 takes both in-channels."),
        ],
        hint="Add up `kernel_at(row, col, j, 1)` over all positions and both in-channels.",
    )


@exercise
def check_how_many(answer: int | None) -> None:
    """How many RM4 hypersurfaces make one RM1 hypersurface in conv3 of VGG7."""
    compare(
        answer,
        16 * 16 * 64,
        correct="16 x 16 positions times 64 in-channels.",
        hints=[
            (16 * 16, "Those are the positions; RM1 also sums over the in-channels."),
            (64, "Those are the in-channels; RM1 also sums over the positions."),
            (16 * 16 * 64 * 64, "One RM1 hypersurface belongs to one out-channel."),
            (32 * 32 * 64, "After the first pooling the maps are smaller than 32 x 32."),
        ],
        hint="RM1 sums over all positions s and over all in-channels j.",
    )


@exercise
def check_own_mode(answer: Any) -> None:
    """H of c[s, 0] - c[s, 1] at s = (1, 2) of the tiny network: 27 entries."""
    first, second = (_pulled_back(_at(1, 2, i)) for i in (0, 1))
    compare(
        answer,
        first - second,
        correct="any weighted sum of units has a hypersurface: hand J* the same sum of cotangents.",
        hints=[
            (second - first, "The sign is the other way round."),
            (first, "That reconstructs the first of the two units only."),
            (first + second, "That reconstructs the sum of the two units."),
        ],
        hint="J* is linear: the hypersurface of a difference is the difference of hypersurfaces.",
    )


@choice(
    a=("RM2", "It sums over the in-channels, so they can no longer be told apart."),
    b=("RM4", "One window position and one in-channel: nothing has been summed."),
    c=("RM3", "It keeps the in-channels apart, but sums over all positions."),
    d=("RM1", "It sums over positions and in-channels: it speaks of a whole map."),
)
def check_one_in_channel() -> str:
    """The mode that says what one in-channel adds to one unit; found by its axes."""
    from adjoint_book.minimal import SUMMED

    names = {"RM1": "d", "RM2": "a", "RM3": "c", "RM4": "b"}
    (mode,) = (mode for mode in names if not SUMMED[mode])
    return names[mode]


@choice(
    a=(
        "If both units have the same value.",
        "A value is one number, and many hypersurfaces give the same.",
    ),
    b=(
        "Always: a convolution treats all places alike.",
        "The convolutions do. But the pattern is the image's, and it differs from place to place.",
    ),
    c=(
        "Never: each unit has a hypersurface of its own.",
        "Its own, yes; but two may be alike. On an image of a single colour, units far from the "
        "border have the same one, moved along.",
    ),
    d=(
        "If the pattern in the one receptive field is the other's, moved along, and no border is "
        "near.",
        "Then J* does the same to both, one place further on.",
    ),
)
def check_neighbours() -> str:
    """When neighbouring units of one channel have the same H, moved by a pixel."""
    return "d"


@exercise
def check_merged(answer: Any) -> None:
    """A function: from H in RM4, (d_in, y, x, j, i), those in RM3, RM2 and RM1."""
    H4 = np.random.default_rng(7).normal(size=(4, 3, 2, 5, 6))

    def given(f: Any, mode: str) -> np.ndarray:
        return np.asarray(f(H4.copy())[mode])

    compare_properties(
        answer,
        {
            "it returns a dictionary with the keys RM1, RM2 and RM3": lambda f: (
                set(f(H4.copy())) == {"RM1", "RM2", "RM3"}
            ),
            "RM2 keeps the positions and RM3 the in-channels": lambda f: (
                given(f, "RM2").shape == (4, 3, 2, 6) and given(f, "RM3").shape == (4, 5, 6)
            ),
            "RM2 summed over its positions is RM1": lambda f: np.allclose(
                given(f, "RM2").sum((1, 2)), given(f, "RM1")
            ),
            "RM3 summed over its in-channels is RM1": lambda f: np.allclose(
                given(f, "RM3").sum(1), given(f, "RM1")
            ),
            "RM1 sums up all of RM4": lambda f: np.allclose(
                given(f, "RM1").sum(), H4.sum(), rtol=1e-9
            ),
            "each is a sum of RM4 over whole axes": lambda f: (
                np.allclose(given(f, "RM2"), H4.sum(3))
                and np.allclose(given(f, "RM3"), H4.sum((1, 2)))
            ),
        },
        correct="two ways lead from RM4 to RM1, and both end at the same sum.",
        hint="The axes are d, row, column, in-channel j, out-channel i.",
    )


# ------------------------------------------------------------------ the chapter's tiny network


def _weights() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(6)
    kernel0 = rng.integers(-2, 3, (3, 3, 1, 2)).astype(float)
    kernel1 = rng.integers(-2, 3, (3, 3, 2, 3)).astype(float)
    return kernel0, kernel1, rng.integers(0, 4, (5, 5, 1)).astype(float)


def _at(row: int, col: int, out: int) -> np.ndarray:
    """The second kernel in its place over the feature maps: (5, 5, 2)."""
    padded = np.zeros((7, 7, 2))
    padded[row : row + 3, col : col + 3] = _weights()[1][..., out]
    return padded[1:-1, 1:-1]


def _everywhere(out: int) -> np.ndarray:
    return np.sum([_at(row, col, out) for row in range(5) for col in range(5)], axis=0)


def _pulled_back(g: np.ndarray) -> np.ndarray:
    """J* g for a cotangent (5, 5, 2): one number for each of 25 pixels and 2 biases."""
    kernel0, _, x = _weights()
    bias0, padded = np.array([1.0, -2.0]), np.pad(x, ((1, 1), (1, 1), (0, 0)))
    pulled, biases = np.zeros((7, 7)), np.zeros(2)
    for row, col, i in np.ndindex(5, 5, 2):
        window = padded[row : row + 3, col : col + 3, 0]
        if np.sum(window * kernel0[:, :, 0, i]) + bias0[i] > 0:
            pulled[row : row + 3, col : col + 3] += g[row, col, i] * kernel0[:, :, 0, i]
            biases[i] += g[row, col, i]
    return np.concatenate([pulled[1:-1, 1:-1].reshape(-1), biases])
