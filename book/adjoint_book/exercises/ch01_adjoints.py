"""Checks of the chapter on adjoints."""

from __future__ import annotations

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


@exercise
def check_difference_adjoint(answer: Any) -> None:
    """A* w of the difference operator (Au)_i = u_{i+1} - u_i, for w = (1, 2, 3, 4)."""
    A = np.diff(np.eye(5), axis=0)
    w = np.array([1.0, 2.0, 3.0, 4.0])
    compare(
        answer,
        A.T @ w,
        correct="the adjoint of a difference is a difference too, the other way round, and what "
        "falls off the ends stays.",
        hints=[
            (-(A.T @ w), "All signs are turned round: u_{i+1} is read with a plus."),
            (A.T[:4] @ w, "One entry is missing: u has five."),
        ],
        hint="For each u_j, ask which differences read it, and with which sign.",
    )


@exercise
def check_weighted_representer(answer: Any) -> None:
    """The h with u_0 + 2 u_1 + 3 u_2 = sum_i m_i u_i h_i, for m = (1, 2, 4)."""
    m, f = np.array([1.0, 2.0, 4.0]), np.array([1.0, 2.0, 3.0])
    compare(
        answer,
        f / m,
        correct="the functional stays the same; the vector that represents it depends on the "
        "inner product.",
        hints=[
            (f, "That is the representer for the plain inner product, without the weights."),
            (f * m, "Multiplying goes the wrong way: m_i h_i should give f(e_i)."),
        ],
        hint="Put u = e_i into f(u) = <u | h>_m and solve for h_i.",
    )


@exercise
def check_pool_adjoint(answer: Any) -> None:
    """A function: the adjoint of average pooling, window 2, stride 2, from (3, 3) to (6, 6)."""
    rng = np.random.default_rng(3)
    compare_function(
        answer,
        lambda g: np.kron(g, np.full((2, 2), 0.25)),
        [(np.ones((3, 3)),), (np.arange(9.0).reshape(3, 3),), (rng.normal(size=(3, 3)),)],
        correct="it passes the dot test. What was averaged comes back spread out evenly.",
        hint="Forward, each pixel is read with the weight 1/4; backward, each is written with it.",
    )


@exercise
def check_self_adjoint_kernel(answer: Any) -> None:
    """A kernel (3, 3) whose zero-padded convolution is its own adjoint."""
    if unanswered(answer):
        return
    try:
        kernel = np.asarray(answer, float)
    except (TypeError, ValueError):
        kernel = np.zeros(0)
    if kernel.shape != (3, 3):
        compare(answer, np.zeros((3, 3)), correct="", hint="Give it as a list of three rows.")
        return
    alike = [
        what
        for what, lines in (("rows", kernel), ("columns", kernel.T))
        if len(np.unique(lines, axis=0)) < 3
    ]
    if alike and np.isfinite(kernel).all():
        say(f"Not yet: two of its {alike[0]} are equal. Make all three different.")
        return
    compare(
        kernel,
        kernel[::-1, ::-1],
        correct="turned by 180 degrees it is the same kernel, so gathering and scattering agree.",
        hints=[(kernel.T[::-1, ::-1], "Symmetry across the diagonal is another symmetry.")],
        hint="The adjoint convolves with the kernel turned by 180 degrees.",
    )


@choice(
    a=(
        "None in general; it depends on the inner products.",
        "Each single adjoint does depend on its two inner products. But that the product's adjoint "
        "is made of theirs, in turned order, follows from the definition alone.",
    ),
    b=(
        "$B^* A^*$",
        "<AB x | w> = <B x | A* w> = <x | B* A* w>: the way back goes through the last operator "
        "first.",
    ),
    c=(
        "$A^* B^*$",
        "Look at the sizes: B* takes what B gives, but here it is handed something that B reads.",
    ),
    d=(
        "$(BA)^*$",
        "BA need not even exist, when the sizes differ; and where it does, it is another operator.",
    ),
)
def check_product_adjoint() -> str:
    """The adjoint of a product AB."""
    return "b"


@exercise
def check_crop(answer: Any) -> None:
    """A function: the adjoint of np.pad(u, 2) for a vector u."""
    rng = np.random.default_rng(4)
    pairs = [(rng.normal(size=n), rng.normal(size=n + 4)) for n in (3, 1, 8)]
    compare_properties(
        answer,
        {
            "what comes back is as long as what went in": lambda f: all(
                np.shape(f(w.copy())) == u.shape for u, w in pairs
            ),
            "twice the weights come back as twice as much": lambda f: all(
                np.allclose(f(2 * w), 2 * np.asarray(f(w.copy()))) for _, w in pairs
            ),
            "<pad(u) | w> = <u | your function of w> for random u and w": lambda f: all(
                np.isclose(np.pad(u, 2) @ w, u @ f(w.copy())) for u, w in pairs
            ),
        },
        correct="the adjoint of padding is cropping: weights that lie on zeros count for nothing.",
        hint="Write np.pad(u, 2) as a matrix of zeros and ones. What is its transpose?",
    )


@exercise
def check_repeat_adjoint(answer: Any) -> None:
    """A function: the adjoint of enlarging a map by repeating each pixel twice each way."""
    rng = np.random.default_rng(5)
    pairs = [(rng.normal(size=(n, n + 1)), rng.normal(size=(2 * n, 2 * n + 2))) for n in (1, 2, 3)]
    compare_properties(
        answer,
        {
            "a map of (2n, 2m) comes back as one of (n, m)": lambda f: all(
                np.shape(f(w.copy())) == u.shape for u, w in pairs
            ),
            "<enlarged u | w> = <u | your function of w> for random u and w": lambda f: all(
                np.isclose(np.sum(np.kron(u, np.ones((2, 2))) * w), np.sum(u * f(w.copy())))
                for u, w in pairs
            ),
        },
        correct="what was copied to four places collects from all four.",
        hint="The function of the exercise reads one of four copies, and forgets the other three.",
    )
