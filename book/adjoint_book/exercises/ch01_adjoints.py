"""Checks of the chapter on adjoints."""

from __future__ import annotations

from typing import Any

import numpy as np

from adjoint_book.exercises._registry import exercise
from adjoint_book.exercises.checking import compare, compare_function, say, unanswered


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
