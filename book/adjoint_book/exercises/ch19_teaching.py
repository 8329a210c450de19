"""Checks of the chapter on teaching with this book."""

from __future__ import annotations

from typing import Any

from adjoint_book.exercises._registry import exercise
from adjoint_book.exercises.checking import compare, named, say, unanswered

# What a student handed in, and what the chapter asks to be marked.
SHEET = {
    "check_number_of_biases": 1152,
    "check_versions": 162,
    "check_saturation": [0.3, 0.1, 0.2],
    "check_shift_adjoint": [0, 1, 2, 3, 10, 5],
    "check_multiply_adds": None,
    "check_jacobian_bytes": 557_842_432,
}


@exercise
def check_marks(answer: Any) -> None:
    """How many answers of `SHEET` are right."""
    if unanswered(answer):
        return
    from adjoint_book import course

    found = list(course.mark(SHEET).values())
    compare(
        answer,
        found.count("right"),
        correct="and the hints of the checks say what to talk about with the one who wrote it.",
        hints=[
            (found.count("wrong"), "Those are the wrong ones."),
            (len(found) - found.count("wrong"), "One was not answered; that is not right yet."),
        ],
        hint="course.mark(sheet) says it for each of them.",
    )


@exercise
def check_misconceptions(answer: Any) -> None:
    """Which mistake, a, b or c, gave 4224, 1184 and 3072 as d_in of ResNet20: three letters."""
    pixels, first, biases = 32 * 32 * 3, 32, 1184
    given = (pixels + biases - first, biases, pixels)
    mistakes = {"a": pixels, "b": pixels + biases - first, "c": biases}
    letters = "".join(next(k for k, v in mistakes.items() if v == number) for number in given)
    compare(
        answer,
        letters,
        correct="a wrong number often says what was thought. That is what the hints are made of.",
        hint="Work out what each mistake leads to, and look for it among the numbers.",
    )


@exercise
def check_reading_list(answer: Any, chapters: Any = None) -> None:
    """How many chapters have to be read before chapter 18, as their overviews say."""
    if unanswered(answer):
        return
    from adjoint_book import course

    chapters = course.chapters() if chapters is None else chapters
    before = course.way_to(chapters, [18])[:-1]
    direct = next(chapter.needs for chapter in chapters if chapter.number == 18)
    compare(
        answer,
        len(before),
        correct="all that it needs, and all that these need.",
        hints=[
            (len(before) + 1, "Chapter 18 itself is not one of those before it."),
            (len(direct), "Those are the ones it names; they need others in turn."),
        ],
        hint="Follow the column 'needs' back, until nothing new turns up.",
    )


@exercise
def check_own_check(answer: Any) -> None:
    """A check for the number of entries in x_b of VGG7, as a function of an answer."""
    if unanswered(answer):
        return
    if not callable(answer):
        say(f"Not yet: expected a function of one answer, got {named(answer)}.")
        return
    from adjoint_book import course
    from adjoint_lib.errors import InputError

    biases = 2 * (32 + 64 + 96)
    cases = [(None, "missing"), (biases, "right"), (biases + 32, "wrong"), ("many", "wrong")]
    for given, expected in cases:
        try:
            found = course.verdict(answer, given)
        except InputError as error:
            say(f"Not yet: called with {given!r}: {error}")
            return
        except Exception as error:  # a check must not fail, whatever it is given
            say(f"Not yet: called with {given!r}, it raised {type(error).__name__}: {error}")
            return
        if found != expected:
            say(f"Not yet: called with {given!r}, it says that this is {found}. Is it?")
            return
    say("Correct: it tells right from wrong and from missing, and nothing makes it fail.")
