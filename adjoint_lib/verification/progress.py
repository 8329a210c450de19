"""A progress bar that moves within an image, and says what is cheaper when the work is long."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any, TypeAlias

from tqdm.auto import tqdm

Advance: TypeAlias = Callable[[float], None]  # is told which share of a batch has just been done

FORMAT = "{percentage:3.0f}%|{bar}| {elapsed}, {remaining} left"
DELAY, LONG = 2.0, 60.0  # seconds before the bar appears; before what is cheaper is said


def ignore(share: float) -> None:
    """Tell nobody."""


class Progress:
    """The bar of a verification, counted in images and parts of them.

    Args:
        images: how many there are.
        cheaper: what would take less time, to be said before anything over a minute.
    """

    def __init__(self, images: int, cheaper: str, disable: bool = False):
        self._bar = tqdm(total=images, bar_format=FORMAT, delay=DELAY, disable=disable)
        self._start, self._cheaper, self._done = time.monotonic(), cheaper, 0
        self._said = disable

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *problem: Any) -> None:
        self._bar.close()

    def batch(self, images: int) -> Advance:
        """What a batch of so many images tells of its progress."""
        return lambda share: self._to(min(self._bar.n + share * images, self._done + images))

    def finished(self, images: int) -> None:
        """So many images are done in all."""
        self._done = images
        self._to(images)

    def _to(self, images: float) -> None:
        self._bar.update(images - self._bar.n)
        taken = time.monotonic() - self._start
        if not self._said and taken > DELAY and self._bar.n:
            self._said = True
            seconds = taken * self._bar.total / self._bar.n
            if seconds > LONG:
                text = f"This takes about {duration(seconds)}. {self._cheaper}"
                self._bar.write(text, file=sys.stderr)


def duration(seconds: float) -> str:
    """Seconds as text: "40 seconds", "12 minutes", "1.5 hours"."""
    if seconds < 90:
        return f"{seconds:.0f} seconds"
    return f"{seconds / 60:.0f} minutes" if seconds < 5400 else f"{seconds / 3600:.1f} hours"
