"""Threads: several streams at once, in an order that does not depend on their speed.

TensorFlow's operations use all cores, but not all the time: between them Python runs on one, and
most are too small, or too bound to memory, to fill several. A second stream fills the gaps.

Ctrl-C raises KeyboardInterrupt in the main thread, wherever that is. If that is in the midst of
making a tensor, TensorFlow may crash the whole process; so long work runs in another thread.

Worker threads are reused from call to call: oneDNN prepares each operation once per thread.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from itertools import islice
from typing import Any, TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")

MAX_STREAMS = 2  # streams that run at a time
_END = object()


class _Workers(threading.local):
    """The threads that work for this one: its own, so that none waits for one that waits for it."""

    def __init__(self) -> None:
        self.pool = ThreadPoolExecutor(MAX_STREAMS)


_workers = _Workers()


def interleave(streams: Iterable[Iterator[Item]]) -> Iterator[Item]:
    """Yield the items of all streams, in turn one of each stream that runs; two run at a time.

    When a stream ends, the next one takes its place. Each works on its next item only, so what the
    streams hold in memory is bounded, however slowly the items are taken. A single stream needs no
    other thread.
    """
    streams = iter(streams)
    first = list(islice(streams, MAX_STREAMS))
    if len(first) == 1 and MAX_STREAMS > 1:  # so there is no other
        yield from first[0]
        return
    pool = _workers.pool

    def turn(stream: Iterator[Item]) -> tuple[Iterator[Item], Future[Any]]:
        return stream, pool.submit(next, stream, _END)

    turns = deque(map(turn, first))
    try:
        while turns:
            stream, promised = turns[0]
            item = promised.result()
            turns.popleft()
            if item is not _END:
                turns.append(turn(stream))
                yield item
            else:
                turns.extend(map(turn, islice(streams, 1)))
    finally:
        wait([promised for _, promised in turns])


def run_in_thread(function: Callable[..., Result], *arguments: Any) -> Result:
    """Compute function(*arguments) in another thread while this one waits.

    Ctrl-C then interrupts the waiting, not the work: the work is finished first, and
    KeyboardInterrupt raised after it.
    """
    promised = _workers.pool.submit(function, *arguments)
    try:
        return promised.result()
    finally:
        wait([promised])
