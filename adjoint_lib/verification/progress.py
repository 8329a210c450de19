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
ENOUGH = 0.01  # of an image, from which the time of all can be told


def ignore(share: float) -> None:
    """Tell nobody."""


class Progress:
    """The bar of a verification, counted in images and parts of them.

    Args:
        images: how many there are.
        cheaper: what would take less time, to be said before anything over a minute.
        done: how many were done before.
    """

    def __init__(self, images: int, cheaper: str, disable: bool = False, done: int = 0):
        how = {"bar_format": FORMAT, "delay": DELAY, "disable": disable}
        self._bar = tqdm(total=images, initial=done, **how)
        self._start, self._cheaper, self._done = time.monotonic(), cheaper, done
        self._before = done
        self._said = disable

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *problem: Any) -> None:
        self._bar.close()

    def batch(self, images: int) -> Advance:
        """What a batch of so many images tells of its progress."""
        return lambda share: self._to(min(self._bar.n + share * images, self._done + images))

    def __call__(self, images: int) -> None:
        """So many more images are done."""
        self.finished(self._done + images)

    def finished(self, images: int) -> None:
        """So many images are done in all."""
        self._done = images
        self._to(images)

    def _to(self, images: float) -> None:
        self._bar.update(images - self._bar.n)
        now = time.monotonic()
        if images == self._before:  # nothing is done but to freeze the image
            self._start = now
        taken, share = now - self._start, self._bar.n - self._before
        if not self._said and taken > DELAY and (share > ENOUGH or (share and taken > LONG / 6)):
            self._said = True
            seconds = taken * (self._bar.total - self._before) / share
            if seconds > LONG:
                text = f"This takes about {duration(seconds)}. {self._cheaper}"
                self._bar.write(text, file=sys.stderr)


def duration(seconds: float) -> str:
    """Seconds as text: "40 seconds", "12 minutes", "1.5 hours"."""
    if seconds < 90:
        return f"{seconds:.0f} seconds"
    return f"{seconds / 60:.0f} minutes" if seconds < 5400 else f"{seconds / 3600:.1f} hours"
