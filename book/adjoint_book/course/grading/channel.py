"""Lines of JSON between two processes, with limits on their length and on how long they take."""

from __future__ import annotations

import json
import os
import select
import time
from typing import Any

from adjoint_lib.errors import AdjointError

MOST_BYTES = 64 << 20  # of one line


class Silence(AdjointError):
    """The other side has ended, or has not answered in time."""


class Channel:
    """Two ends of pipes: one to read lines from, one to write lines to.

    Args:
        reading, writing: file descriptors.
    """

    def __init__(self, reading: int, writing: int):
        self.reading, self.writing = reading, writing
        self._rest = b""
        os.set_blocking(reading, False)
        os.set_blocking(writing, False)

    def send(self, message: Any, until: float) -> None:
        """Write a line; `until` is a time of `time.monotonic`."""
        waiting = memoryview(json.dumps(message).encode() + b"\n")
        while waiting:
            _, ready, _ = select.select([], [self.writing], [], _left(until))
            if not ready:
                raise Silence("it did not read in time")
            try:
                waiting = waiting[os.write(self.writing, waiting) :]
            except BrokenPipeError as error:
                raise Silence("it has ended") from error

    def receive(self, until: float) -> Any:
        """The next line, as what JSON makes of it."""
        pieces = [self._rest]
        size = len(self._rest)
        while b"\n" not in pieces[-1]:
            ready, _, _ = select.select([self.reading], [], [], _left(until))
            if not ready:
                raise Silence("it did not answer in time")
            piece = os.read(self.reading, 1 << 20)
            size += len(piece)
            if not piece:
                raise Silence("it has ended")
            if size > MOST_BYTES:
                raise Silence("it wrote too much")
            pieces.append(piece)
        line, _, self._rest = b"".join(pieces).partition(b"\n")
        try:
            return json.loads(line)
        except (ValueError, RecursionError) as error:
            raise Silence("it wrote what is no JSON") from error

    def close(self) -> None:
        """Close both ends."""
        for end in (self.reading, self.writing):
            os.close(end)


def _left(until: float) -> float:
    return max(0.0, until - time.monotonic())
