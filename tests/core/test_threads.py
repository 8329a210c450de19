"""Streams side by side: whose turn it is, what is held, and how they end."""

from __future__ import annotations

import signal
import threading
import time

import pytest

from adjoint_lib.core._threads import ABREAST, aside, side_by_side


def letters(word: str, seconds: float = 0.0):
    for letter in word:
        time.sleep(seconds)
        yield letter


@pytest.mark.parametrize("slow", [0, 1, 2, None])
def test_the_order_does_not_depend_on_who_is_slow(slow):
    words = ["abc", "d", "efgh", "", "ij"]
    streams = [letters(word, 0.01 * (n == slow)) for n, word in enumerate(words)]
    assert "".join(side_by_side(streams)) == "adbcefgihj"


def test_no_streams_give_nothing():
    assert list(side_by_side([])) == []


def test_two_streams_work_at_the_same_time():
    meeting = threading.Barrier(ABREAST)

    def stream():
        meeting.wait(timeout=10)  # for ever, were they to run one after the other
        yield 1

    assert list(side_by_side([stream(), stream()])) == [1, 1]


def test_each_stream_is_at_most_one_item_ahead():
    made = []

    def stream(name):
        for n in range(5):
            made.append((name, n))
            yield name, n

    found = side_by_side(stream(name) for name in "abcd")
    assert next(found) == ("a", 0)
    time.sleep(0.05)
    assert sorted(made) == [("a", 0), ("a", 1), ("b", 0)]
    found.close()
    assert sorted(made) == [("a", 0), ("a", 1), ("b", 0)]


def who(count: int = 1):
    for _ in range(count):
        time.sleep(0.01)  # so that the other thread takes the other stream
        yield threading.get_ident()


def test_threads_are_kept_and_a_single_stream_needs_none():
    threads = set(side_by_side([who(3), who(3)]))
    assert len(threads) == ABREAST and threading.get_ident() not in threads
    assert set(side_by_side([who(3), who(3), who()])) == threads
    assert aside(threading.get_ident) in threads
    assert set(side_by_side([who(2)])) == {threading.get_ident()}


def test_a_thread_that_works_has_threads_of_its_own():
    """Were they shared, streams of streams would wait for each other for ever."""

    def inner():
        yield from side_by_side([who(), who()])

    found = aside(lambda: list(side_by_side([inner(), inner()])))
    assert len(found) == 4 and threading.get_ident() not in found


def test_closing_waits_for_what_is_under_way():
    ended = []

    def slow():
        yield "first"
        time.sleep(0.1)
        ended.append(True)
        yield "second"

    found = side_by_side([slow(), slow()])
    assert next(found) == "first"
    found.close()
    assert ended == [True]  # the one that had its turn; the other had not begun its second item


def test_an_error_in_a_stream_reaches_the_reader():
    def failing():
        yield "one"
        raise ValueError("no second")

    found = side_by_side([failing(), letters("abc")])
    assert [next(found), next(found)] == ["one", "a"]
    with pytest.raises(ValueError, match="no second"):
        next(found)


def test_an_interrupt_does_not_break_into_work_aside():
    """Raised in the midst of making a tensor, it may crash TensorFlow."""
    ended = threading.Event()

    def work():
        time.sleep(0.1)  # until the main thread waits
        signal.raise_signal(signal.SIGINT)
        time.sleep(0.1)  # until it has got it
        ended.set()

    with pytest.raises(KeyboardInterrupt):
        aside(work)
    assert ended.wait(timeout=10)


def test_work_aside_gives_what_it_returns_and_raises():
    assert aside(divmod, 17, 5) == (3, 2)
    with pytest.raises(ZeroDivisionError):
        aside(divmod, 17, 0)
