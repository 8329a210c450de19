"""Multiple choice: a question whose every answer, right or wrong, has an explanation.

    @choice(a=("$A^* B^*$", "The sizes do not fit."), b=("$B^* A^*$", "The last goes first."))
    def check_product() -> str: ...

The function gives the letter of the right answer, computed where it can be. In a chapter,
`book.exercises.check_product` alone on a line shows the answers, each with its explanation folded
below it, so that the question can be done on a page, without a kernel; `check_product("a")` says
what it thinks of an answer, as all checks do.
"""

from __future__ import annotations

import html
import re
from collections.abc import Callable

from adjoint_book.exercises._registry import exercise
from adjoint_book.exercises.checking import _said, say, unanswered
from adjoint_lib.errors import InputError

Answer = tuple[str, str]  # what it says, as Markdown; what there is to say of it, as plain text


class Choice:
    """The check of one question of multiple choice; made by `choice`.

    Attributes:
        answers: (what it says, what there is to say of it), by its letter.
    """

    def __init__(self, right: Callable[[], str], answers: dict[str, Answer]):
        self.__name__ = right.__name__
        self.__doc__ = right.__doc__
        self.__module__ = right.__module__
        self.__wrapped__ = right
        self.answers = answers

    def right(self) -> str:
        """The letter of the right answer."""
        return self.__wrapped__()

    def __call__(self, answer: str | None) -> None:
        """Say what there is to say of this letter."""
        if unanswered(answer):
            return
        letter = answer.strip().lower() if isinstance(answer, str) else ""
        if letter not in self.answers:
            say(f"Not yet: expected {self._letters()}, got {_said(answer)}.")
            return
        verdict = "Correct." if letter == self.right() else "Not yet."
        say(f"{verdict} {self.answers[letter][1]}")

    def _letters(self) -> str:
        *others, last = (repr(letter) for letter in self.answers)
        return f"{', '.join(others)} or {last}"

    def _repr_markdown_(self) -> str:
        return "\n\n".join(self._shown(letter) for letter in self.answers)

    def _shown(self, letter: str) -> str:
        text, remark = self.answers[letter]
        verdict = "Right." if letter == self.right() else "Not this one."
        plain = re.sub(r"([\\`*_$\[\]|~])", r"\\\1", html.escape(remark, quote=False))
        return (
            f"**{letter}.** {text}\n\n<details>\n<summary>If you choose {letter}</summary>\n\n"
            f"{verdict} {plain}\n\n</details>"
        )

    def __repr__(self) -> str:
        return f"<multiple choice: {self._letters()}>"


def choice(**answers: Answer) -> Callable[[Callable[[], str]], Choice]:
    """A decorator: makes a check of a function that gives the letter of the right answer.

    Args:
        answers: by its letter, (what it says, as Markdown; what there is to say of it, right or
            wrong, as a sentence or two of plain text).
    """
    silent = [letter for letter, (_, remark) in answers.items() if not remark.strip()]
    if len(answers) < 2 or silent:
        raise InputError(
            "a multiple choice: expected at least two answers, each with an explanation; got "
            f"{', '.join(answers) or 'none'}"
            + (f", of which {', '.join(silent)} has none." if silent else ".")
        )

    def make(right: Callable[[], str]) -> Choice:
        made = Choice(right, answers)
        exercise(made)
        return made

    return make
