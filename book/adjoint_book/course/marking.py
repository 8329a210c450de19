"""What the checks of the exercises say of a sheet of answers."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Mapping
from typing import Any

from adjoint_book import exercises
from adjoint_lib.errors import InputError

VERDICTS = {"Correct": "right", "Not yet": "wrong", "not answered yet": "missing"}


def mark(answers: Mapping[str, Any]) -> dict[str, str]:
    """What the checks named in `answers` say of its values: "right", "wrong" or "missing".

    An answer that is a function is run, so mark the work of strangers where it can do no harm.
    """
    known = exercises.checks()
    unknown = sorted(set(answers) - set(known))
    if unknown:
        raise InputError(
            f"expected names of checks, such as 'check_versions', got {', '.join(unknown)}. "
            "The book's index of exercises lists them all."
        )
    return {name: verdict(known[name], answer) for name, answer in answers.items()}


def verdict(check, answer: Any) -> str:
    """What a check says of an answer: "right", "wrong" or "missing"."""
    with contextlib.redirect_stdout(io.StringIO()) as said:
        check(answer)
    text = said.getvalue()
    for beginning, word in VERDICTS.items():
        if text.startswith(beginning):
            return word
    raise InputError(
        f"expected the check to print a text that begins with {', '.join(VERDICTS)}; got {text!r}."
    )
