"""The misses that a few units foretell are those that come in many."""

import numpy as np
import pytest

import adjoint_lib as al
from adjoint_book.misses import expected_misses
from adjoint_lib.verification.verify import relative_error


@pytest.mark.parametrize("limit", [0.01, 0.001])
def test_expected_misses_are_those_that_come_in_a_million(limit):
    """Of two channels with spreads and errors of their own, and one that is always zero."""
    rng = np.random.default_rng(2)
    c = rng.standard_normal((10**6, 3)) * [3, 0.01, 0]
    found = c + limit * rng.standard_normal(c.shape) * [1e-2, 1e-4, 0]
    counted = np.mean(np.abs(relative_error(c, found)) > limit)
    assert 1e-3 < counted < 1e-2
    np.testing.assert_allclose(expected_misses(c[:20000], found[:20000], limit), counted, rtol=0.1)


def test_expected_misses_need_units_near_zero():
    c = np.array([[-1.0], [1.0]])
    with pytest.raises(al.InputError, match="none of 2 is within a twentieth"):
        expected_misses(c, c)
