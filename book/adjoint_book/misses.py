"""How many units to expect beyond 1 %, from the few near zero that a few images show."""

from __future__ import annotations

import numpy as np

from adjoint_lib.errors import InputError


def expected_misses(c: np.ndarray, found: np.ndarray, limit: float = 0.01) -> float:
    """The share of units to expect beyond a relative error of `limit`, from a few of them.

    A unit misses if |c| < |error| / limit. Where the values of a channel have density f at zero and
    its errors the mean size e, that is a share of 2 f e / limit of its units. Both are taken from
    the units within a twentieth of the channel's spread around zero, so a few images foretell what
    is too rare to be counted there.

    Args:
        c, found: (..., channels), the units and what reconstructs them.
    """
    c, found = c.astype(float), found.astype(float)
    width = c.std(tuple(range(c.ndim - 1))) / 20
    near = np.abs(c) < width
    if not near.any():
        raise InputError(
            f"expected units near zero, but none of {c.size} is within a twentieth of its "
            "channel's spread. Take more units."
        )
    errors = np.where(near, np.abs(found - c), 0)
    two_f_e = np.divide(errors, width, out=errors, where=near)  # on average: f is near / (2 width)
    return float(two_f_e.mean() / limit)
