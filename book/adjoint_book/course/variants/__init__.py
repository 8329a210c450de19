"""Exercises with numbers of each student's own: one for each chapter.

    task = book.course.own("adjoints", "2024001")  # shown in a notebook, it is the question
    task["w"]                             # the numbers in it
    task.check(answer)                    # what is thought of an answer

The numbers come from a digest of the chapter and the student number, so everybody's can be computed
anywhere, and no list of solutions is kept. A new one is a function under the decorator `variant`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from adjoint_book.exercises.checking import compare
from adjoint_lib._registry import Registry
from adjoint_lib.errors import InputError


@dataclass(frozen=True)
class Variant:
    """What is asked of one student.

    Attributes:
        text: the question, as Markdown, with this student's numbers in it.
        given: these numbers, by name.
        answer: computes the right answer.
        correct: what is worth noticing when it is right.
        hint: what to think about when it is not.
        hints: (wrong answer, what to think about), for mistakes that are known.
        rtol: how far an answer may be from the right one, relative to its largest entry.
    """

    text: str
    given: dict[str, Any]
    answer: Callable[[], Any]
    correct: str
    hint: str
    hints: list[tuple[Any, str]] = field(default_factory=list)
    rtol: float = 1e-6

    def __getitem__(self, name: str) -> Any:
        return self.given[name]

    def check(self, answer: Any) -> None:
        """Say what there is to say of an answer."""
        compare(
            answer,
            self.answer(),
            correct=self.correct,
            hint=self.hint,
            hints=self.hints,
            rtol=self.rtol,
        )

    def _repr_markdown_(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return self.text


Make = Callable[[np.random.Generator], Variant]


@dataclass(frozen=True)
class Own:
    """The exercise of a chapter that has everybody's own numbers.

    Attributes:
        title: its heading.
        expects: what an answer is, such as "a whole number".
        solution: code that answers it, given `task`.
        make: the exercise, from a random generator.
        points: what it is worth.
    """

    title: str
    expects: str
    solution: str
    make: Make
    points: int = 2


OWN: Registry[str, Own] = Registry("exercise of one's own", "adjoint_book.course.variants")


def variant(chapter: str, title: str, expects: str, solution: str) -> Callable[[Make], Make]:
    """Register the exercise of a chapter that has everybody's own numbers.

    Args:
        chapter: the name of the chapter's file after its number, such as "adjoints".
        title: its heading.
        expects: what an answer is, such as "a whole number".
        solution: code that answers it, given `task` and what the chapter has defined.
    """

    def register(make: Make) -> Make:
        OWN.register(chapter)(Own(title, expects, solution, make))
        return make

    return register


def own(chapter: str, student: object) -> Variant:
    """The exercise of this chapter with the numbers of this student.

    Args:
        chapter: the name of the chapter's file after its number, such as "adjoints".
        student: the student number, or whatever a course tells its students apart by.
    """
    if chapter not in OWN:
        raise InputError(
            f"expected the name of a chapter, one of {', '.join(sorted(OWN))}; got {chapter!r}."
        )
    return OWN[chapter].make(np.random.default_rng(_seed(chapter, student)))


def _seed(chapter: str, student: object) -> int:
    """The same for the same student, however the number is typed."""
    name = "".join(str(student).split()).casefold()
    return int.from_bytes(hashlib.sha256(f"{chapter}:{name}".encode()).digest()[:8], "big")
