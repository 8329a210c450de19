"""The exercises with everybody's own numbers, one for each chapter."""

from __future__ import annotations

import numpy as np

from adjoint_book.course.variants import Variant, variant


@variant(
    "adjoints",
    "carry prices back",
    "two numbers",
    "answer = task['A'].T @ task['w']",
)
def adjoints(rng: np.random.Generator) -> Variant:
    """A* w of a small matrix."""
    A, w = rng.integers(-4, 5, (3, 2)), rng.integers(1, 6, 3)
    A[0, 0] += 5  # so that no task is empty
    return Variant(
        f"What is $A^* w$ for `A = {A.tolist()}` and `w = {w.tolist()}`, with the plain inner "
        "product? (`task['A']` and `task['w']` are these.)",
        {"A": A, "w": w},
        lambda: A.T @ w,
        "each entry prices one input by what it turns into.",
        "Entry j adds up A[i, j] w[i] over i.",
    )
