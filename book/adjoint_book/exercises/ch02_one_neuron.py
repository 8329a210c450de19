"""Checks of the chapter on one neuron."""

from __future__ import annotations

from typing import Any

import numpy as np

from adjoint_book.exercises._registry import exercise
from adjoint_book.exercises.checking import compare, compare_function, compare_properties
from adjoint_book.exercises.choices import choice


@choice(
    a=(
        "It stays as it is if the sum keeps its sign, and is another one if not.",
        "H depends on the input only through the sign of the sum, and the sum is now 3<w | x> + b.",
    ),
    b=(
        "It stays as it is, since $3 > 0$.",
        "That holds if the bias is scaled with the image. Here it stands still, and the sum may "
        "change its sign.",
    ),
    c=(
        "It becomes zero.",
        "Only if the neuron shuts; a large image may as well open it.",
    ),
    d=(
        "It is $[3w;\\, 3]$.",
        "H is made of weights, not of inputs: the input scales the value, by way of <v | H>.",
    ),
)
def check_tripled_image() -> str:
    """What becomes of H of a ReLU neuron when x, but not b, is multiplied by 3."""
    return "a"


@exercise
def check_homogeneous_of_your_own(answer: Any) -> None:
    """A function of an array of two numbers, positively homogeneous and not linear."""
    rng = np.random.default_rng(6)
    points = [*rng.normal(size=(6, 2)), np.array([1.0, 0.0]), np.array([0.0, 1.0])]
    compare_properties(
        answer,
        {
            "it gives a finite number for every point": lambda f: all(
                np.isfinite(float(f(p.copy()))) for p in points
            ),
            "f(kv) = k f(v) for every k > 0": lambda f: all(
                np.isclose(f(k * p), k * f(p.copy())) for k in (0.25, 3.0, 40.0) for p in points
            ),
            "f(u + v) differs from f(u) + f(v) somewhere": lambda f: any(
                not np.isclose(f(p + q), f(p.copy()) + f(q.copy())) for p in points for q in points
            ),
        },
        correct="along each ray from the origin it is a straight line, and across the rays it is "
        "not. Lengths, largest entries and absolute values are all of this kind.",
        hint="Try what you know of the plane: the length of a vector, its larger entry.",
    )


def _hypersurface(x: np.ndarray, w: np.ndarray, b: float, leak: float) -> np.ndarray:
    slope = 1.0 if np.dot(w, x) + b > 0 else leak
    return slope * np.append(w, 1.0)


@exercise
def check_leaky_neuron(answer: Any) -> None:
    """H of a leaky neuron with x = (1, 2), w = (1, -2), b = 0.5, leak 0.1."""
    x, w, b = np.array([1.0, 2.0]), np.array([1.0, -2.0]), 0.5
    compare(
        answer,
        _hypersurface(x, w, b, 0.1),
        correct="s is negative, so everything comes back through the slope 0.1, the bias too.",
        hints=[
            (np.append(w, 1.0), "That would be an open neuron; what is the sign of s?"),
            (np.zeros(3), "A plain ReLU would give that; this one leaks."),
            (0.1 * np.append(w, b), "The last entry weighs b; it does not contain it."),
            (0.1 * w, "H has one entry for the bias as well."),
        ],
        hint="Find s, then the slope at s, then slope * (w_0, w_1, 1).",
    )


@exercise
def check_shutting_scale(answer: Any) -> None:
    """The k at which max(0, k <w | x> + b) begins to be positive: w . x = 2, b = -1."""
    compare(
        answer,
        0.5,
        correct="below it the neuron is shut. Scaling x alone changes the pattern; scaling x and "
        "b together never does.",
        hints=[(1.0, "At k = 1 the neuron is open: its value is 1.")],
        hint="Solve k * 2 + b = 0.",
    )


@exercise
def check_shared_bias(answer: Any) -> None:
    """H_b of one bias shared by three neurons, of which two are open."""
    x, b = np.array([2.0, 1.0]), 1.0
    W = np.array([[1.0, -1.0], [-2.0, 1.0], [0.0, 1.0]])
    w = np.array([2.0, 5.0, 3.0])
    mask = W @ x + b > 0
    compare(
        answer,
        float(w @ mask),
        correct="a value that is copied forward gets the sum of what comes back; shut neurons send "
        "nothing.",
        hints=[
            (w.sum(), "One of the three neurons is shut."),
            (float(mask.sum()), "Count each open neuron with its weight in c."),
            (float(w @ np.maximum(W @ x + b, 0)), "That is c itself; the question is for H_b."),
        ],
        hint="Which neurons are open? Add up their weights in c.",
    )


@exercise
def check_neuron_hypersurface(answer: Any) -> None:
    """A function (x, w, b, leak) that returns H = slope * [w; 1] of a leaky neuron."""
    rng = np.random.default_rng(5)
    inputs = [
        (np.array([2.0, 1.0]), np.array([1.5, -1.0]), -1.0, 0.0),
        (np.array([1.0, 2.0]), np.array([1.0, -2.0]), 0.5, 0.1),
        *((rng.normal(size=7), rng.normal(size=7), rng.normal(), 0.2) for _ in range(5)),
    ]
    compare_function(
        answer,
        _hypersurface,
        inputs,
        correct="with x and b it gives the neuron's value back, for every input.",
        hint="The slope is 1 where <w | x> + b > 0 and `leak` elsewhere; H = slope * [w; 1].",
    )
