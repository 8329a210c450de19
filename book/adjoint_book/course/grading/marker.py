"""Runs the checks on answers that come as plain data, in a process that no submission touches.

A function among the answers stays where the student's code is: what the check asks of it is sent
there, and what it gives comes back, as plain data too.
"""

from __future__ import annotations

import contextlib
import io
import sys
import time
from typing import Any

from adjoint_book import exercises
from adjoint_book.course import variants
from adjoint_book.course.grading.channel import Channel
from adjoint_book.course.grading.plain import Opaque, decode, encode


def main() -> None:
    """Answer on descriptor 4 what is asked on descriptor 3, until that is closed."""
    channel = Channel(3, 4)
    channel.send({"ready": True}, time.monotonic() + 60)
    while True:
        until = time.monotonic() + 24 * 3600  # whoever started this process ends it in time
        asked = channel.receive(until)
        channel.send({"said": said_of(asked, channel, until)}, until)


def said_of(asked: dict[str, Any], channel: Channel, until: float) -> str:
    """What the check says of an answer."""

    def function(*arguments: Any) -> Any:
        channel.send({"call": [encode(argument) for argument in arguments]}, until)
        while "callback" in (given := channel.receive(until)):
            channel.send({"call": None, "back": called_back(arguments, given)}, until)
        if "raised" in given:
            raise type(str(given["raised"]), (Exception,), {})(str(given["said"]))
        if (
            sys.stdout is not said
        ):  # a check that reads what is printed; nothing else may speak here
            print(given.get("printed", ""), end="")
        return decode(given.get("value"))

    with contextlib.redirect_stdout(io.StringIO()) as said:
        try:
            answer = decode(asked["answer"], function)
        except Exception as error:  # whatever a submission sent
            answer = Opaque(f"a value that cannot be read ({type(error).__name__})")
        if "own" in asked:
            variants.own(asked["own"], asked["student"]).check(answer)
        else:
            exercises.checks()[asked["check"]](answer)
    return said.getvalue()


def called_back(arguments: tuple[Any, ...], asked: dict[str, Any]) -> Any:
    """What one of the functions among a check's arguments gives, as plain data."""
    try:
        function = arguments[int(asked["callback"])]
        return encode(function(*(decode(argument) for argument in asked["with"])))
    except Exception as error:  # whatever a submission asked for
        return {"opaque": f"nothing: it raised {type(error).__name__}"}


if __name__ == "__main__":
    main()
