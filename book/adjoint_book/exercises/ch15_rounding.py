"""Checks for the chapter 'Why a few units miss 1 %'."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable

import numpy as np

from adjoint_book.exercises._registry import exercise
from adjoint_book.exercises.checking import compare, compare_function, say, unanswered
from adjoint_book.exercises.choices import choice

PRODUCTS = (3.0, -2.5, -0.4, -0.09)
FACTORS = {
    "1/8": 1 / 8,
    "1/10": 1 / 10,
    "3/4": 3 / 4,
    "1/1024": 1 / 1024,
    "3": 3.0,
    "4": 4.0,
    "100": 100.0,
}
U32 = 2.0**-24


@exercise
def check_condition(answer: tuple[float, float] | None) -> None:
    """The condition of a sum of four products, and the bound of its relative error in float32."""
    total, size = math.fsum(PRODUCTS), math.fsum(map(abs, PRODUCTS))
    gamma = 4 * U32 / (1 - 4 * U32)
    compare(
        answer,
        [size / abs(total), gamma * size / abs(total)],
        correct="the sum is a hundredth, its terms add up to six: two to three digits are lost.",
        hints=[
            ([size / abs(total), gamma], "The second number is the bound times the condition."),
            ([size, gamma * size], "Divide by |c|: both numbers are relative."),
        ],
        hint="The condition is sum |p_i| / |sum p_i|; the bound is gamma_4 times that, with "
        "u = 2**-24.",
        rtol=1e-3,
    )


@exercise
def check_smallest_value(answer: float | None) -> None:
    """Above which |c| / A the bound rules out a miss of 1 %, for conv5 of VGG7 in float32."""
    import adjoint_lib as al
    from adjoint_lib.core.error_bounds import bound

    net = al.equivalent(al.models.vgg7())
    gamma = bound(net, net.layer("conv5"), "hypersurface") * U32
    compare(
        answer,
        gamma / 1e-2,
        correct="and |c| / A of a typical unit of conv5 lies far below it: the bound alone does "
        "not explain why nearly all units are within 1 %. Errors that cancel do.",
        hints=[
            (gamma, "That is gamma itself: the error may be up to 1 % of |c|."),
            (gamma * 1e-2, "Divide by 1 %, do not multiply."),
            (1e-2 / gamma, "That is A / |c|; the answer is |c| / A."),
        ],
        hint="A miss needs |error| > 0.01 |c|, and |error| <= gamma A. "
        "bound(net, layer, 'hypersurface') is gamma / u.",
        rtol=1e-2,
    )


@exercise
def check_compensated(answer: Callable | None) -> None:
    """A function that adds float32 numbers in float32, and loses next to nothing."""
    rng = np.random.default_rng(4)
    tiny = np.full(2**12 + 1, 2.0**-25, np.float32)
    tiny[0] = 1
    mixed = rng.uniform(0, 1, 5000).astype(np.float32)
    compare_function(
        _returning_float32(answer) if callable(answer) else answer,
        lambda terms: math.fsum(terms.astype(float)),
        [(tiny,), (mixed,)],
        correct="what each addition rounds off is kept, and goes into the next one.",
        hint="After total = old + term, the part of `term` that was lost is "
        "term - (total - old), all in float32. Keep it for the next term.",
        rtol=1.5 * U32,
    )


@exercise
def check_exact_factors(answer: Iterable[str] | None) -> None:
    """Which of `FACTORS` leave every bit of the fraction as it is; a set of names."""
    if unanswered(answer):
        return
    names = isinstance(answer, (set, frozenset, list, tuple)) and answer
    if not names or not all(isinstance(name, str) and name in FACTORS for name in names):
        say(f"Not yet: expected a set of names among {', '.join(FACTORS)}; got {answer!r}.")
        return
    given, truth = set(names), {n for n, k in FACTORS.items() if math.frexp(k)[0] == 0.5}
    for name in FACTORS:
        if name in given - truth:
            x = next(x for x in range(1, 10**6) if not _exact(FACTORS[name], x))
            say(f"Not yet: {name} times the float32 number nearest to {x}/7 has to be rounded.")
            return
    if truth - given:
        say(f"Not yet: {len(truth - given)} more of the list only change the exponent.")
        return
    say("Correct: powers of two, small or large, above 1 or below it.")


@choice(
    a=(
        "Any sum of numbers of the same sign.",
        "Its condition is 1: nothing cancels, and the relative error stays near u.",
    ),
    b=(
        "A product of many factors.",
        "Each factor brings one relative error of u; a product cannot cancel.",
    ),
    c=(
        "A sum of many terms, whatever their signs.",
        "The number of terms enters only through m; without cancellation that is a small factor.",
    ),
    d=(
        "A sum that is small beside its terms.",
        "The error is of the size of the terms, and it is divided by what they leave.",
    ),
)
def check_in_danger() -> str:
    """Which result has a large relative error after rounding."""
    return "d"


@choice(
    a=(
        "Neither, since the pattern differs between them.",
        "Both use one pattern: that of the network's own forward pass.",
    ),
    b=(
        "The reconstruction: it is the longer computation.",
        "Against float64 both are off by about the same.",
    ),
    c=(
        "The network: its value is the one before rounding was thought of.",
        "Its forward pass is rounded as well, and misses the exact value by as much.",
    ),
    d=(
        "Neither is more than the other: both are rounded sums of the same products.",
        "Two orders of one sum, each with its own rounding.",
    ),
)
def check_who_errs() -> str:
    """Which of c and its reconstruction is wrong where they differ by 1 %."""
    return "d"


def _returning_float32(add: Callable) -> Callable[[np.ndarray], float]:
    """The same function, but a sum of another type than float32 is an error."""

    def checked(terms: np.ndarray) -> float:
        found = np.asarray(add(terms))
        if found.dtype != np.float32:
            raise TypeError(f"expected a float32, got {found.dtype}: wider sums are not allowed")
        return float(found)

    return checked


def _exact(k: float, sevenths: int) -> bool:
    """Whether k times a float32 number is a float32 number."""
    x = np.float32(sevenths / 7)
    return float(np.float32(k) * x) == k * float(x)
