"""Streams side by side: whose turn it is, what is held, and how they end."""

from __future__ import annotations

import signal
import threading
import time

import pytest

from adjoint_lib.core._threads import MAX_STREAMS, interleave, run_in_thread


def letters(word: str, seconds: float = 0.0):
    for letter in word:
        time.sleep(seconds)
        yield letter


@pytest.mark.parametrize("slow", [0, 1, 2, None])
def test_the_order_does_not_depend_on_who_is_slow(slow):
    words = ["abc", "d", "efgh", "", "ij"]
    streams = [letters(word, 0.01 * (n == slow)) for n, word in enumerate(words)]
    assert "".join(interleave(streams)) == "adbcefgihj"


def test_no_streams_give_nothing():
    assert list(interleave([])) == []


def test_two_streams_work_at_the_same_time():
    meeting = threading.Barrier(MAX_STREAMS)

    def stream():
        meeting.wait(timeout=10)  # for ever, were they to run one after the other
        yield 1

    assert list(interleave([stream(), stream()])) == [1, 1]


def test_each_stream_is_at_most_one_item_ahead():
    made = []

    def stream(name):
        for n in range(5):
            made.append((name, n))
            yield name, n

    found = interleave(stream(name) for name in "abcd")
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
    threads = set(interleave([who(3), who(3)]))
    assert len(threads) == MAX_STREAMS and threading.get_ident() not in threads
    assert set(interleave([who(3), who(3), who()])) == threads
    assert run_in_thread(threading.get_ident) in threads
    assert set(interleave([who(2)])) == {threading.get_ident()}


def test_a_thread_that_works_has_threads_of_its_own():
    """Were they shared, streams of streams would wait for each other for ever."""

    def inner():
        yield from interleave([who(), who()])

    found = run_in_thread(lambda: list(interleave([inner(), inner()])))
    assert len(found) == 4 and threading.get_ident() not in found


def test_closing_waits_for_what_is_under_way():
    ended = []

    def slow():
        yield "first"
        time.sleep(0.1)
        ended.append(True)
        yield "second"

    found = interleave([slow(), slow()])
    assert next(found) == "first"
    found.close()
    assert ended == [True]  # the one that had its turn; the other had not begun its second item


def test_an_error_in_a_stream_reaches_the_reader():
    def failing():
        yield "one"
        raise ValueError("no second")

    found = interleave([failing(), letters("abc")])
    assert [next(found), next(found)] == ["one", "a"]
    with pytest.raises(ValueError, match="no second"):
        next(found)


def test_an_interrupt_does_not_break_into_work_run_in_thread():
    """Raised in the midst of making a tensor, it may crash TensorFlow."""
    ended = threading.Event()

    def work():
        time.sleep(0.1)  # until the main thread waits
        signal.raise_signal(signal.SIGINT)
        time.sleep(0.1)  # until it has got it
        ended.set()

    with pytest.raises(KeyboardInterrupt):
        run_in_thread(work)
    assert ended.wait(timeout=10)


def test_work_aside_gives_what_it_returns_and_raises():
    assert run_in_thread(divmod, 17, 5) == (3, 2)
    with pytest.raises(ZeroDivisionError):
        run_in_thread(divmod, 17, 0)
