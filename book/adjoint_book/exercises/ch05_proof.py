"""Checks for the chapter 'The proof, by computation'."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from adjoint_book.exercises._registry import exercise
from adjoint_book.exercises.checking import (
    compare,
    compare_function,
    compare_properties,
    say,
    unanswered,
)
from adjoint_book.exercises.choices import choice

FUNCTIONS: dict[str, Callable[[float], Any]] = {
    "abs": abs,
    "identity": lambda h: h,
    "relu1": lambda h: min(max(h, 0), 1),
    "shrink": lambda h: max(h - 0.5, 0),
    "crelu": lambda h: np.array([max(h, 0), max(-h, 0)]),
    "square": lambda h: h * h,
    "maxout": lambda h: max(2 * h, -h),
}


@exercise
def check_homogeneous(answer: set[str] | None) -> None:
    """Which of `FUNCTIONS` satisfy sigma(k h) = k sigma(h) for k > 0; a set of names."""
    if unanswered(answer):
        return
    names = isinstance(answer, (set, frozenset, list, tuple)) and answer
    if not names or not all(isinstance(name, str) and name in FUNCTIONS for name in names):
        say(f"Not yet: expected a set of names among {', '.join(FUNCTIONS)}; got {answer!r}.")
        return
    given = set(names)
    gaps = {name: _gap(name) for name in FUNCTIONS}
    for name, gap in gaps.items():
        if name in given and gap is not None:
            h, k = gap
            say(f"Not yet: {name!r} is not one of them. Try h = {h:g} with k = {k:g}.")
            return
    left_out = {name for name, gap in gaps.items() if gap is None} - given
    if left_out:
        say(
            f"Not yet: all that you name pass on the factor, but {len(left_out)} more "
            "of the list do. Each of its pieces has to pass through the origin, and no more."
        )
        return
    say(
        "Correct: their pieces pass through the origin. It need not be one input and one output: "
        "'crelu' gives two, and 'maxout' is the larger of two linear maps."
    )


@exercise
def check_first_flip(answer: float | None) -> None:
    """The smallest k > 1 at which [k x; x_b] changes the pattern of the chapter's network."""
    compare(
        answer,
        2.0,
        correct="at k = 2 the last unit shuts: its h = 1 (k + 1) - 1 (3k - 2) + 1 = 4 - 2k.",
        hints=[
            (5.0, "At k = 5 a unit does shut, but another one shuts before it."),
            (2 / 3, "That is where a unit shuts on the way down, below k = 1."),
        ],
        hint="Write each of the five pre-activations as a function of k, with the biases fixed.",
        rtol=2e-3,
    )


@exercise
def check_hard_tanh(answer: Callable | None) -> None:
    """Partial derivatives of min(max(h, low), high) by h, low and high; a function."""

    def truth(h: float, low: float, high: float) -> tuple[int, int, int]:
        return int(low <= h <= high), int(h < low), int(h > high)

    inputs = [(0.5, -1.0, 1.0), (-3.0, -1.0, 1.0), (1.5, -1.0, 1.0), (-0.3, -0.25, 0.25)]
    compare_function(
        answer,
        truth,
        inputs,
        correct="h * by_h + low * by_low + high * by_high is the value, on every piece.",
        hint="Each piece is equal to exactly one of h, low and high: its derivative by that is 1.",
    )


@exercise
def check_tanh_repair(answer: tuple[float, float, float] | None) -> None:
    """Slope and intercept of tanh's tangent line at 2, and what it predicts at 2.5."""
    slope = 1 / np.cosh(2.0) ** 2
    weight = np.tanh(2.0) - 2 * slope
    compare(
        answer,
        [slope, weight, 2.5 * slope + weight],
        correct="the identity holds at h = 2, and half a step away the same numbers are wrong: "
        f"the line says {2.5 * slope + weight:.3f}, tanh says {np.tanh(2.5):.3f}.",
        hints=[
            (
                [slope, weight, np.tanh(2.5)],
                "The third number is what the line predicts, not what tanh is.",
            )
        ],
        hint="The slope of tanh is 1 - tanh(h)**2; the weight of the constant is "
        "tanh(h) - h * slope; the line through both is slope * h + weight.",
        rtol=1e-3,
    )


@choice(
    a=(
        "A bias must not be negative.",
        "Biases are inputs like others, and may have any sign.",
    ),
    b=(
        "It does not fail: $J(-v) = J(v)$ too.",
        "Try one ReLU: its slope at h = 1 is 1, and at h = -1 it is 0.",
    ),
    c=(
        "Rounding: negative numbers are less accurate.",
        "They are exactly as accurate as positive ones.",
    ),
    d=(
        "At $-v$ other units are open than at $v$.",
        "Every pre-activation changes its sign, so what was open is shut; the ray through v ends "
        "at the origin.",
    ),
)
def check_negative_factor() -> str:
    """Why J(kv) = J(v) fails for k < 0."""
    return "d"


@exercise
def check_soft_threshold(answer: Any) -> None:
    """A function of h and t: positively homogeneous, and max(|h| - 1/2, 0) with its sign at 1/2."""
    points = [-3.0, -0.5, -0.2, 0.0, 0.4, 0.7, 2.5]

    def soft(h: float) -> float:
        return float(np.sign(h) * max(abs(h) - 0.5, 0.0))

    compare_properties(
        answer,
        {
            "at t = 1/2 it is the soft threshold": lambda f: all(
                np.isclose(f(h, 0.5), soft(h)) for h in points
            ),
            "f(kh, kt) = k f(h, t) for k > 0": lambda f: all(
                np.isclose(f(k * h, k * t), k * f(h, t))
                for h in points
                for t in (0.5, 2.0)
                for k in (0.25, 3.0)
            ),
        },
        correct="the constant has become an input, and each piece passes through the origin of "
        "(h, t).",
        hint="Wherever the threshold 1/2 stands, write t.",
    )


def _gap(name: str) -> tuple[float, float] | None:
    """h and k with sigma(k h) != k sigma(h), if there are any among a few."""
    for h in (-3.0, -0.4, 0.3, 0.8, 2.0):
        for k in (0.5, 2.0, 7.0):
            sigma = FUNCTIONS[name]
            if not np.allclose(sigma(k * h), k * np.asarray(sigma(h))):
                return h, k
    return None
