"""Differences are measured by the largest entry, and powers of ten are upper bounds."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import adjoint_book as book


def test_a_gap_is_a_share_of_the_largest_entry():
    assert book.gap([1.0, -200.0], [1.0, -202.0]) == "1e-02 of the largest"
    assert book.gap(np.ones(3), np.ones(3)) == "no difference"
    assert book.gap([0.5], [0.0]) == "5e-01"


def test_a_gap_wants_two_arrays_of_one_shape():
    with pytest.raises(ValueError, match="one shape"):
        book.gap(np.ones(3), np.ones((3, 1)))


@given(st.floats(1e-12, 1e6))
def test_below_is_the_next_power_of_ten(number):
    found = float(book.below(number))
    assert number <= found * (1 + 1e-12) and found / 10 < number * (1 + 1e-12)


@pytest.mark.parametrize(("number", "text"), [(0.0004, "0.001"), (0.1, "0.1"), (3, "10"), (1, "1")])
def test_below_is_written_out(number, text):
    assert book.below(number) == text
