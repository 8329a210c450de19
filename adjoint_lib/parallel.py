"""Several streams at a time: while one waits for Python or for memory, another one computes."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from typing import TypeVar

Item = TypeVar("Item")

STREAMS = 2  # TensorFlow already spreads an operation over all cores; two fill the gaps between


def side_by_side(streams: Iterable[Iterator[Item]]) -> Iterator[Item]:
    """The items of all streams, of `STREAMS` of them in turn, in an order that is always the same.

    Each stream computes its next item in a thread while the others' are taken.
    """
    remaining = iter(streams)
    end = object()
    with ThreadPoolExecutor(STREAMS) as pool:
        turns = deque(islice(remaining, STREAMS))
        coming = deque(pool.submit(next, stream, end) for stream in turns)
        while turns:
            stream, item = turns.popleft(), coming.popleft().result()
            if item is end:
                stream = next(remaining, None)
            if stream is not None:
                turns.append(stream)
                coming.append(pool.submit(next, stream, end))
            if item is not end:
                yield item
