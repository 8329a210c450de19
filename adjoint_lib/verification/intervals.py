"""Confidence intervals for shares: what a count among a sample says about everything like it."""

from __future__ import annotations

import math

Z95 = 1.959963984540054  # of the normal distribution


def wilson(share: float, count: float) -> tuple[float, float]:
    """Wilson's 95 % interval for a share found in `count` independent observations.

    `count` need not be whole: it may be an effective number of observations.
    """
    n, p, z = count, share, Z95
    centre = (p + z * z / (2 * n)) / (1 + z * z / n)
    reach = z * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n)) / (1 + z * z / n)
    return max(0.0, min(p, centre - reach)), min(1.0, max(p, centre + reach))


def clustered(missed: int, units: int, squares: int, clusters: int) -> tuple[float, float]:
    """A 95 % interval for the share of units that do *not* miss, when units come in clusters.

    The units of one image share its pixels and its activation pattern, so they are no independent
    observations. How much less they tell is read off the counts of the images: the design effect is
    the variance of these counts over the variance that independent units would give them. The
    interval is Wilson's with that many times fewer observations. A design effect below one is
    taken as one. Where no unit misses, or every one does, the counts show no correlation, and the
    units are taken as independent: such an interval is a lower limit of the uncertainty.

    Args:
        missed, units: how many units miss, of how many, over all clusters of equal size.
        squares: the sum over the clusters of (how many of its units miss)^2.
        clusters: at least two.
    """
    share = 1 - missed / units
    if missed in (0, units):
        return wilson(share, units)
    between = (squares - missed**2 / clusters) / (clusters - 1)
    independent = units / clusters * share * (1 - share)
    return wilson(share, units / max(1.0, between / independent))
