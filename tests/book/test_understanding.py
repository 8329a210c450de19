"""What chapters 15 and 16 say, by hand: sums that cancel, factors that round, parts of a score."""

import math

import numpy as np
import pytest

from adjoint_book import exercises
from adjoint_book.figures.ch15_rounding import _edge_flips, _inner_products
from adjoint_book.figures.ch16_what_hypersurfaces_show import strongest

GAMMA_4 = 4 * 2.0**-24 / (1 - 4 * 2.0**-24)


def kahan(terms):
    total, lost = np.float32(0), np.float32(0)
    for term in terms:
        wanted = term + lost
        old, total = total, total + wanted
        lost = wanted - (total - old)
    return total


def running(terms):
    return np.cumsum(terms, dtype=np.float32)[-1]


def wide(terms):
    return math.fsum(terms)


@pytest.mark.parametrize(
    ("check", "answer", "said"),
    [
        ("check_condition", (599, 599 * GAMMA_4), "Correct"),
        ("check_condition", (5.99, 5.99 * GAMMA_4), "Divide by |c|"),
        ("check_compensated", kahan, "Correct"),
        ("check_compensated", running, "too small"),
        ("check_compensated", wide, "expected a float32"),
        ("check_exact_factors", {"1/8", "1/1024", "4"}, "Correct"),
        ("check_exact_factors", {"1/8", "1/10"}, "has to be rounded"),
        ("check_exact_factors", {"1/8", "4"}, "1 more of the list"),
        ("check_margin_hypersurface", [3, -2, 2, 0, -1, 1, 0], "Correct"),
        ("check_margin_hypersurface", [5, -2, 4, 0, -1, 3, -2], "class A alone"),
        ("check_nearest_tie", 4 / math.sqrt(13), "Correct"),
        ("check_nearest_tie", 4 / math.sqrt(19), "Only the pixels may move"),
        ("check_lrp_shared", [8, 0], "Correct"),
        ("check_lrp_shared", [5, -4], "gradient x input"),
    ],
)
def test_the_checks_know_the_answers_worked_out_by_hand(capsys, check, answer, said):
    getattr(exercises, check)(answer)
    assert said in " ".join(capsys.readouterr().out.split())


def test_an_inner_product_errs_by_no_more_than_its_bound_and_by_much_where_it_cancels():
    condition, errors = _inner_products()
    for name, u in (("float32", 2.0**-24), ("float64", 2.0**-53)):
        assert (errors[name] <= 3000 * u / (1 - 3000 * u) * condition).all()
    assert errors["float32"][condition > 1e9].min() > 1e-2
    assert errors["float32"][condition < 1e4].max() < 1e-2
    assert errors["float64"].max() < 1e-2


def test_only_powers_of_two_leave_every_neuron_on_the_edge_as_it_is():
    ks = np.array([1 / 16, 1 / 8, 1, 2, 1 / 10, 1 / 3, 0.75])
    assert (_edge_flips(ks[:4]) == 0).all()
    assert (_edge_flips(ks[4:]) > 0.1).all()


def test_the_strongest_unit_of_each_of_the_strongest_channels():
    c = np.random.default_rng(0).normal(size=(4, 5, 6))
    units = strongest(c, 3)
    assert len(set(units[:, 2])) == 3
    largest = [c[..., channel].max() for _, _, channel in units]
    assert [c[tuple(unit)] for unit in units] == largest
    assert largest == sorted(c.max((0, 1)))[::-1][:3]
