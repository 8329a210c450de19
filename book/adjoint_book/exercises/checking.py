"""What every `check_...` function does with an answer: compare it, and say something helpful.

A check never raises on an answer, however wrong: it prints one sentence or two that begin with
"Correct", "Not yet" or "not answered yet", in lines short enough for a page.
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

Hints = Sequence[tuple[Any, str]]

UNANSWERED = "not answered yet: put your answer in this cell and run it again."
WIDTH = 78  # of a line, in characters


def say(text: str) -> None:
    """Print what a check has to say, in lines of at most `WIDTH` characters."""
    for line in text.splitlines():
        print(textwrap.fill(line, WIDTH))


def unanswered(answer: Any) -> bool:
    """Whether there is nothing to check: None or `...`. If so, that is said."""
    if answer is None or answer is Ellipsis:
        say(UNANSWERED)
        return True
    return False


def compare(
    answer: Any,
    truth: Any,
    *,
    correct: str,
    hints: Hints = (),
    hint: str = "",
    rtol: float = 1e-6,
    atol: float = 1e-9,
) -> None:
    """Compare a number or an array with the truth, and print the outcome.

    Args:
        answer: what the reader found; None or `...` is no answer yet.
        truth: what it should be: a number, a word, a truth value or an array.
        correct: what is worth noticing, printed after "Correct: ".
        hints: wrong answers worth a word of their own, as (value, what to think about), tried in
            order.
        hint: what to think about for any other wrong answer.
        rtol, atol: how far from the truth an answer may be, relative to its largest entry and
            absolute.
    """
    if unanswered(answer):
        return
    expected = np.asarray(truth)
    try:
        given = np.asarray(answer)
        if not _same_kind(given, expected):
            raise TypeError
    except Exception:  # a reader's own object may fail in any way
        _wrong(f"expected {kind(expected)}, got {_said(answer)}", hint)
        return
    if given.shape != expected.shape:
        _wrong(f"expected {kind(expected)}, got {kind(given)}", hint)
    elif _close(given, expected, rtol, atol):
        say(f"Correct: {correct}")
    else:
        known = [text for value, text in hints if _close(given, np.asarray(value), rtol, atol)]
        _wrong(_difference(given, expected), known[0] if known else hint)


def compare_function(
    answer: Any,
    truth: Callable[..., Any],
    inputs: Sequence[tuple],
    *,
    correct: str,
    hint: str = "",
    rtol: float = 1e-6,
    atol: float = 1e-9,
) -> None:
    """Call a reader's function on each tuple of arguments in `inputs`, and compare with `truth`.

    Arrays are handed over as copies, so that a function that writes into them spoils nothing.

    Args:
        answer: the reader's function; None or `...` is no answer yet.
        truth: a function that is right.
        inputs: the arguments of each call.
        correct: what is worth noticing, printed after "Correct: ".
        hint: what to think about if the function is wrong.
        rtol, atol: how far from the truth a result may be, relative to its largest entry and
            absolute.
    """
    if unanswered(answer):
        return
    if not callable(answer):
        _wrong(f"expected a function, got {_said(answer)}", hint)
        return
    for arguments in inputs:
        called = f"called with ({', '.join(_said(argument) for argument in arguments)})"
        expected = np.asarray(truth(*arguments))
        try:
            copies = [a.copy() if isinstance(a, np.ndarray) else a for a in arguments]
            given = np.asarray(answer(*copies))
        except Exception as error:  # whatever a reader's code raises is an answer to talk about
            _wrong(f"{called}, your function raised {type(error).__name__}: {error}", hint)
            return
        if given.shape != expected.shape or not _same_kind(given, expected):
            found = kind(given) if _same_kind(given, expected) else _said(given[()])
            _wrong(f"{called}, your function should return {kind(expected)}, not {found}", hint)
            return
        if not _close(given, expected, rtol, atol):
            _wrong(f"{called}: {_difference(given, expected)}", hint)
            return
    say(f"Correct: {correct}")


def compare_properties(
    answer: Any,
    properties: Mapping[str, Callable[[Any], Any]],
    *,
    correct: str,
    hint: str = "",
) -> None:
    """Ask of an answer, usually a function, what has to hold of it; name the first that does not.

    Args:
        answer: the reader's function or object; None or `...` is no answer yet.
        properties: what has to hold, as a sentence such as "it keeps the shape", and a function
            that says whether it does. One that raises does not hold.
        correct: what is worth noticing, printed after "Correct: ".
        hint: what to think about if a property does not hold.
    """
    if unanswered(answer):
        return
    for sentence, holds in properties.items():
        try:
            reason = "" if holds(answer) else "it does not"
        except Exception as error:  # whatever a reader's code raises is an answer to talk about
            reason = f"it raised {type(error).__name__}: {str(error)[:200]}"
        if reason:
            _wrong(f"expected that {sentence}; {reason}", hint)
            return
    say(f"Correct: {correct}")


def kind(value: Any) -> str:
    """What sort of thing this is, without giving it away: "a number", "an array of shape (3,)"."""
    array = np.asarray(value)
    if array.dtype.kind == "U":
        return "a word"
    if array.ndim:
        return f"an array of shape {array.shape}"
    return {"b": "True or False", "i": "a whole number", "u": "a whole number"}.get(
        array.dtype.kind, "a number"
    )


def _same_kind(given: np.ndarray, expected: np.ndarray) -> bool:
    """Whether both are words, or both are real numbers."""
    words = expected.dtype.kind == "U"
    return given.dtype.kind in ("U" if words else "biuf")


def _close(given: np.ndarray, expected: np.ndarray, rtol: float, atol: float) -> bool:
    if given.shape != expected.shape or not _same_kind(given, expected):
        return False
    if given.dtype.kind == "U":
        return bool(np.all(np.char.lower(given) == np.char.lower(expected)))
    allowed = atol + rtol * float(np.max(np.abs(expected), initial=0.0))
    return bool(np.all(np.abs(given.astype(float) - expected.astype(float)) <= allowed))


def _difference(given: np.ndarray, expected: np.ndarray) -> str:
    if given.dtype.kind in "Ub" or not given.size:
        return f"{_said(given[()])} is not it" if not given.ndim else "some entries differ"
    if not np.isfinite(given.astype(float)).all():
        return "expected finite numbers, got nan or inf"
    if not given.ndim:
        return f"got {_said(given[()])}, which is too {'large' if given > expected else 'small'}"
    gap = np.abs(given.astype(float) - expected.astype(float))
    at = tuple(int(i) for i in np.unravel_index(int(gap.argmax()), gap.shape))
    wrong = int((gap > 1e-9 + 1e-6 * float(np.abs(expected).max())).sum())
    place = ", ".join(map(str, at))
    return f"the shape is right, but {wrong} of {gap.size} entries differ, most at [{place}]"


def _said(value: Any) -> str:
    """A short description of any value."""
    if isinstance(value, np.ndarray) and value.ndim:
        return kind(value)
    if isinstance(value, (bool, np.bool_, str)):
        return repr(str(value)) if isinstance(value, str) else str(bool(value))
    if isinstance(value, int) and abs(value) > 10**300:
        return "a whole number of more than 300 digits"
    if isinstance(value, (int, float, np.number)) and math.isfinite(value):
        return f"{float(value):.6g}"
    try:
        text = repr(value)
    except Exception:
        text = ""
    return text if text and len(text) <= 40 and " at 0x" not in text else named(value)


def named(value: Any) -> str:
    """The type of any value with its article, such as "an object"."""
    name = type(value).__name__
    return f"{'an' if name.startswith(tuple('aeioAEIO')) else 'a'} {name}"


def _wrong(what: str, hint: str) -> None:
    say(f"Not yet: {what}." + (f" {hint}" if hint else ""))
