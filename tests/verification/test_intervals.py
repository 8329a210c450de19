"""Intervals: they hold what they promise, also where the units of an image go together."""

import math

import numpy as np
import pytest

from adjoint_lib.verification.intervals import clustered, wilson
from adjoint_lib.verification.report import ENOUGH, LayerReport


def share_of_intervals_that_cover(draw, truth: float, trials: int = 400) -> tuple[float, float]:
    """Of the clustered intervals, and of Wilson's for units taken as independent."""
    hits = np.zeros(2)
    for seed in range(trials):
        missed, size = draw(np.random.default_rng(seed))
        total, units = int(missed.sum()), size * len(missed)
        found = clustered(total, units, int((missed**2).sum()), len(missed))
        for i, (low, high) in enumerate((found, wilson(1 - total / units, units))):
            hits[i] += low <= truth <= high
    return tuple(hits / trials)


def test_an_interval_covers_the_truth_though_units_of_an_image_go_together():
    def together(rng):  # a tenth of the images have all the misses
        return rng.binomial(1000, np.where(rng.random(300) < 0.1, 0.01, 0.0)), 1000

    ours, naive = share_of_intervals_that_cover(together, truth=0.999)
    assert 0.92 <= ours <= 0.99
    assert naive < 0.8


def test_independent_units_get_hardly_more_than_wilsons_interval():
    def apart(rng):
        return rng.binomial(1000, 0.001, 300), 1000

    ours, naive = share_of_intervals_that_cover(apart, truth=0.999)
    assert 0.92 <= naive <= ours <= 0.99


def test_wilsons_interval_solves_its_equation():
    """Its ends are the shares from which the one found is 1.96 standard errors away."""
    for found, n in ((0.5, 20), (0.9, 57.5), (0.01, 1000)):
        for p in wilson(found, n):
            assert abs(found - p) / math.sqrt(p * (1 - p) / n) == pytest.approx(1.959964, abs=1e-5)


def test_where_nothing_misses_units_are_taken_as_independent():
    assert clustered(0, 10_000, 0, 100) == wilson(1.0, 10_000)
    low, high = clustered(0, 10_000, 0, 100)
    assert high == 1 and 1 - low == pytest.approx(3.84 / 10_003.84, rel=1e-3)


def test_all_misses_in_one_image_count_as_one():
    """20 misses in one image say no more about other images than one miss of 1/20 of the units."""
    images, size = 500, 200
    found = clustered(20, images * size, 400, images)
    assert found[0] == pytest.approx(wilson(1 - 20 / (images * size), images * size / 20)[0], 1e-4)


def test_a_report_keeps_what_its_interval_needs_however_it_is_divided():
    rng = np.random.default_rng(0)
    epsilon = np.where(rng.random((60, 5, 4)) < 0.02, 0.5, 1e-6) * (rng.random((60, 1, 1)) < 0.3)
    whole = LayerReport.of(epsilon, 0.0, 0.0, 0.0)
    missed = np.count_nonzero(np.abs(epsilon) > 0.01, axis=(1, 2))
    assert (whole.images, whole.units) == (60, 1200)
    assert whole.squares[0] == sum(int(n) ** 2 for n in missed) > whole.units - whole.within[0]
    low, high = whole.interval()
    assert low < whole.share() < high
    merged = LayerReport.empty()
    for part in np.array_split(epsilon, [7, 8, 30]):
        merged += LayerReport.of(part, 0.0, 0.0, 0.0)
    assert merged.interval() == whole.interval()
    assert LayerReport.of(epsilon[: ENOUGH - 1], 0.0, 0.0, 0.0).interval() is None
