"""Checks for the chapter 'What it is good for'."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from adjoint_book.exercises._registry import exercise
from adjoint_book.exercises.checking import compare, compare_properties, unanswered
from adjoint_book.exercises.choices import choice

# The tiny network of the proof, and the margin of score A over score C.
W0 = np.array([[1.0, 0.0], [-2.0, -2.0], [-1.0, 2.0]])
W1 = np.array([[2.0, -2.0, -1.0], [1.0, -2.0, -1.0]])
B0, B1 = np.array([1.0, 1.0, -2.0]), np.array([1.0, 1.0])
A, C = np.array([3.0, -2.0]), np.array([1.0, 1.0])


@exercise
def check_distance_to_tie(answer: Any) -> None:
    """How far the image (2, 1) is from the tie of A and C in the tiny network."""
    value, normal = _margin(np.array([2.0, 1.0]))
    compare(
        answer,
        value / np.linalg.norm(normal),
        correct="and here it is exact: the step leads to (0, 1) and changes no hidden unit.",
        hints=[
            (value / (normal @ normal) / 2, "The margin is 2, not 1."),
            (1.0, "That is the way from (1, 2). Which hidden units are open at (2, 1)?"),
            (np.sqrt(2), "That is the straight way from (1, 2) to (0, 1)."),
        ],
        hint="Divide the margin at (2, 1) by the length of its normal there.",
    )


@choice(
    a=(
        "The network is wrong about its own margin.",
        "It computes the margin rightly at every point; it was the prediction that did not hold.",
    ),
    b=(
        "On the way some units opened or shut, and the normal became another one.",
        "A straight line of margins breaks only where the pattern changes.",
    ),
    c=(
        "Rounding: in float64 the step would have led to zero.",
        "Rounding gives 1e-15 of the margin, not a tenth of it.",
    ),
    d=(
        "The step was too long.",
        "It was exactly as long as the linear map asks for. A shorter one ends before the tie.",
    ),
)
def check_missed_tie() -> str:
    """Why a first step ends at a margin of 0.8 rather than 0; found in the tiny network."""
    start = np.array([1.0, 2.0])
    value, normal = _margin(start)
    end = start - value * normal / (normal @ normal)
    changed = (_hidden(start) > 0) != (_hidden(end) > 0)
    return "b" if changed.any() and _margin(end)[0] > 0 else "c"


@exercise
def check_shortest_step(answer: Any) -> None:
    """A function of a margin and its normal: the shortest change of the image that makes a tie."""
    rng = np.random.default_rng(17)
    cases = [(float(rng.normal()), rng.normal(size=shape)) for shape in ((2,), (3, 3), (4, 4, 3))]

    def given(f: Any, value: float, normal: np.ndarray) -> np.ndarray:
        return np.asarray(f(value, normal.copy()), float)

    compare_properties(
        answer,
        {
            "the step has the shape of the normal": lambda f: all(
                given(f, *case).shape == case[1].shape for case in cases
            ),
            "after the step the linear map is zero: value + <normal | step> = 0": lambda f: all(
                np.isclose(value + np.vdot(normal, given(f, value, normal)), 0)
                for value, normal in cases
            ),
            "no step with that property is shorter: its length is |value| / |normal|": lambda f: (
                all(
                    np.isclose(
                        np.linalg.norm(given(f, value, normal)), abs(value) / np.linalg.norm(normal)
                    )
                    for value, normal in cases
                )
            ),
        },
        correct="all that stands across the normal would only make the step longer.",
        hint="Go along the normal. How far, so that <normal | step> is minus the value?",
    )


@choice(
    a=(
        "The network ignores the image in three of four cases.",
        "Every bias reaches the score through ReLUs that the image has opened: H_b is the image's "
        "doing. With another image, the same biases give other scores.",
    ),
    b=(
        "The biases should be removed: the network would be as good without them.",
        "Without one of its bias vectors the network falls apart; the text computes it.",
    ),
    c=(
        "Whoever shows only what the pixels contribute leaves out what mostly decides.",
        "The pixels' part is one term of a sum, and mostly not the one that decides.",
    ),
    d=(
        "The identity fails for three of four images.",
        "It holds for all of them: the two parts add up to the score each time.",
    ),
)
def check_who_decided() -> str:
    """What follows from the image's part choosing the network's class in a quarter of all cases."""
    from adjoint_book import measure
    from adjoint_book.decisions import from_digits

    found = from_digits(measure.load("decisions", "vgg7", "cifar10")["columns"]["digits"])
    return "c" if found.same.mean() < 0.5 < found.biases_same.mean() else "a"


@exercise
def check_mean_effect(answer: Any) -> None:
    """Which bias vector of VGG7, set to its mean effect, changes the fewest of 300 decisions."""
    if unanswered(answer):
        return
    names, changed = _changed()
    fewest, most = (names[int(pick(changed))] for pick in (np.argmin, np.argmax))
    compare(
        answer,
        fewest,
        correct="the last one is nearest to what one imagines a bias to be: an offset for each "
        "class, much the same for all images.",
        hints=[(most, "That is the one that changes most."), ("image", "That is no bias.")],
        hint="Compute the line of the table for each source, and look for the smallest.",
    )


@exercise
def check_path_gradients(answer: Any) -> None:
    """A function of a gradient, an image and a number of steps: integrated gradients from zero."""
    x = np.array([1.0, -2.0, 0.5])
    slopes = np.array([3.0, 1.0, -2.0])

    def total(f: Any, gradient: Any, steps: int) -> float:
        return float(np.sum(f(gradient, x.copy(), steps)))

    compare_properties(
        answer,
        {
            "it gives a number for each pixel": lambda f: (
                np.shape(f(lambda z: slopes, x.copy(), 4)) == x.shape
            ),
            "for a linear function one step is as good as a hundred": lambda f: all(
                np.isclose(total(f, lambda z: slopes, steps), slopes @ x) for steps in (1, 7, 100)
            ),
            "for sum(z**2) the numbers add up to sum(x**2), up to 2 % with 100 steps": lambda f: (
                np.isclose(total(f, lambda z: 2 * z, 100), x @ x, rtol=0.02)
            ),
            "for sum(z**3) likewise": lambda f: np.isclose(
                total(f, lambda z: 3 * z**2, 100), np.sum(x**3), rtol=0.02
            ),
        },
        correct="the mean of the gradients, not their sum, times the image.",
        hint="With twice as many steps the function of the exercise gives twice as much.",
    )


@choice(
    a=(
        "Gradient × input, since it is exact.",
        "It is exactly the image's part, and leaves out all of the biases' part.",
    ),
    b=(
        "Integrated gradients from a black image, with many steps.",
        "They add up to c(x) - c(0), and what the biases make of a black image is not zero.",
    ),
    c=("LRP-ε.", "What goes into the epsilon at each node is given to nobody."),
    d=(
        "The parts of FullGrad, before they are made into a map.",
        "They are x * H_I and the entries of b * H_b, place by place: nothing is left over.",
    ),
)
def check_which_is_complete() -> str:
    """Which method's numbers add up to the score of an image; found by adding them up."""
    from adjoint_book.attributions import attribute
    from adjoint_book.figures._networks import network

    net, images = network()
    classes = net.value(images[:2])["fc"].numpy().argmax(1)
    letters = {
        "gradient × input": "a",
        "integrated gradients": "b",
        "LRP-ε": "c",
        "FullGrad": "d",
    }
    scores, found = attribute(net, images[:2], classes, list(letters))
    gaps = {name: np.abs(each.total - scores).max() for name, each in found.items()}
    return letters[min(gaps, key=lambda name: gaps[name])]


def _hidden(x: np.ndarray) -> np.ndarray:
    """All five hidden units of the tiny network, before their ReLU."""
    first = W0 @ x + B0
    return np.concatenate([first, W1 @ np.maximum(first, 0) + B1])


def _margin(x: np.ndarray) -> tuple[float, np.ndarray]:
    """The margin of A over C in the tiny network, and H_I of it."""
    hidden = _hidden(x)
    open0, open1 = hidden[:3] > 0, hidden[3:] > 0
    value = (A - C) @ np.maximum(hidden[3:], 0)
    return float(value), (A - C) @ (open1[:, None] * W1) @ (open0[:, None] * W0)


@functools.cache
def _changed() -> tuple[list[str], list[int]]:
    """Names of VGG7's bias vectors, and how many decisions each changes at its mean effect."""
    from adjoint_book.figures._networks import network

    net, images = network()
    parts = net.contributions(images, "fc")["fc"]
    chosen = parts.value.argmax(1)
    new = [parts.value - part + part.mean(0) for part in parts.parts[1:]]
    return parts.sources[1:], [int(np.sum(scores.argmax(1) != chosen)) for scores in new]
