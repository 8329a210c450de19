"""How large a difference is, in words that are the same on every processor.

Rounding differs from one processor to the next, so a difference is written with one digit, and the
comparison of notebooks (sanitize.cfg) takes any that is rounding for the same.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike


def gap(ours: ArrayLike, theirs: ArrayLike) -> str:
    """The largest difference of two arrays, such as "3e-14 of the largest" of theirs."""
    a, b = np.asarray(ours, float), np.asarray(theirs, float)
    if a.shape != b.shape:
        raise ValueError(f"expected two arrays of one shape, got {a.shape} and {b.shape}.")
    difference, scale = np.abs(a - b).max(), np.abs(b).max()
    if difference == 0:
        return "no difference"
    return f"{difference / scale:.0e} of the largest" if scale else f"{difference:.0e}"


def below(number: float) -> str:
    """The smallest power of ten that a number does not exceed, e.g. "0.001" for 0.0004."""
    if not number > 0:
        raise ValueError(f"expected a number above zero, got {number}.")
    power = math.ceil(math.log10(number))
    return f"{10.0**power:.{max(-power, 0)}f}"
