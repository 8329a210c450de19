"""Downloads against a server that truncates, corrupts, stalls, drops and lies."""

import hashlib
import signal
import threading
import time

import numpy as np
import pytest

import faulty_server as faults
from adjoint_lib.errors import DataError
from adjoint_lib.experiments.data import download as download_module
from adjoint_lib.experiments.data.checked import KnownFile
from adjoint_lib.experiments.data.download import download
from faulty_server import FaultyServer

BODY = np.random.default_rng(0).bytes(300_000)
KNOWN = KnownFile("file.bin", len(BODY), hashlib.sha256(BODY).hexdigest())


@pytest.fixture
def server(monkeypatch):
    monkeypatch.setattr(download_module, "BACKOFF", 0.001)
    monkeypatch.setattr(download_module, "TIMEOUT", 0.5)
    with FaultyServer() as server:
        server.body = BODY
        yield server


@pytest.fixture
def target(tmp_path):
    return tmp_path / "file.bin"


def part_of(target):
    return target.with_name("file.bin.part")


def get(server, target):
    return download(f"{server.url}/file.bin", target, KNOWN, progress=False)


def assert_complete(target):
    assert target.read_bytes() == BODY
    assert [path.name for path in target.parent.iterdir()] == ["file.bin"]


def assert_nothing(target):
    assert list(target.parent.iterdir()) == []


def test_a_sound_server_is_asked_once(server, target):
    assert get(server, target) == target
    assert_complete(target)
    assert server.ranges == [None]


def test_a_file_that_is_there_is_not_fetched_again(server, target):
    target.write_bytes(BODY)
    get(server, target)
    assert server.ranges == []


def test_a_damaged_file_that_is_there_is_replaced(server, target):
    target.write_bytes(BODY[:-1] + b"?")
    get(server, target)
    assert_complete(target)


def test_a_dropped_connection_is_taken_up_where_it_ended(server, target):
    server.answers = [faults.drop_after(1000), faults.drop_after(500), faults.whole]
    get(server, target)
    assert_complete(target)
    assert server.ranges == [None, "bytes=1000-", "bytes=1500-"]


def test_a_connection_that_drops_often_but_goes_on_arrives(server, target):
    server.answers = [faults.drop_after(20_000)]
    get(server, target)
    assert_complete(target)
    assert len(server.ranges) == 15


def test_a_stall_is_ended_by_the_timeout_and_taken_up(server, target):
    server.answers = [faults.stall_after(1000), faults.whole]
    get(server, target)
    assert_complete(target)
    assert server.ranges == [None, "bytes=1000-"]


@pytest.mark.parametrize("code", [429, 500, 503])
def test_a_passing_status_is_tried_again(server, target, code):
    server.answers = [faults.status(code), faults.whole]
    get(server, target)
    assert_complete(target)


@pytest.mark.parametrize("code", [403, 404, 410])
def test_a_lasting_status_is_final(server, target, code):
    server.answers = [faults.status(code)]
    with pytest.raises(DataError, match=rf"file\.bin: expected .* got HTTP status {code}"):
        get(server, target)
    assert len(server.ranges) == 1
    assert_nothing(target)


def test_patience_is_bounded_and_what_came_is_kept_for_the_next_call(server, target):
    server.answers = [faults.drop_after(1000), faults.drop_after(0)]
    with pytest.raises(
        DataError, match="expected 300000 bytes, have 1000 after 4 attempts"
    ) as info:
        get(server, target)
    assert str(part_of(target)) in str(info.value)
    assert not target.exists()
    assert part_of(target).read_bytes() == BODY[:1000]

    server.answers = [faults.whole]
    get(server, target)
    assert_complete(target)
    assert server.ranges[-1] == "bytes=1000-"


def test_a_server_out_of_reach(server, target):
    with FaultyServer() as closed:
        pass
    with pytest.raises(DataError, match=r"have 0 after 3 attempts .*refused"):
        get(closed, target)
    assert_nothing(target)


def test_an_ignored_range_starts_over(server, target):
    part_of(target).write_bytes(BODY[:1000])
    server.answers = [faults.ignore_range]
    get(server, target)
    assert_complete(target)
    assert server.ranges == ["bytes=1000-"]


def test_an_ignored_range_with_drops_is_given_up(server, target):
    server.answers = [faults.ignore_range_and_drop_after(1000)]
    with pytest.raises(DataError, match="after 4 attempts"):
        get(server, target)


def test_another_range_than_asked_for_starts_over(server, target):
    part_of(target).write_bytes(BODY[:1000])
    server.answers = [faults.wrong_range, faults.whole]
    get(server, target)
    assert_complete(target)
    assert server.ranges == ["bytes=1000-", None]


def test_a_range_the_server_does_not_have_starts_over(server, target):
    part_of(target).write_bytes(BODY[:1000])
    server.answers = [faults.status(416), faults.whole]
    get(server, target)
    assert_complete(target)
    assert server.ranges == ["bytes=1000-", None]


def test_a_corrupted_part_of_an_earlier_call_is_dropped_not_resumed_for_ever(server, target):
    part_of(target).write_bytes(b"?" * 1000)
    get(server, target)
    assert_complete(target)
    assert server.ranges == ["bytes=1000-", None]


@pytest.mark.parametrize("surplus", [0, 1, 5000])
def test_a_part_of_full_length_or_more_but_wrong_is_dropped(server, target, surplus):
    part_of(target).write_bytes(b"?" * (len(BODY) + surplus))
    get(server, target)
    assert_complete(target)
    assert server.ranges == [None]


def test_a_finished_part_needs_no_request(server, target):
    part_of(target).write_bytes(BODY)
    get(server, target)
    assert_complete(target)
    assert server.ranges == []


@pytest.mark.parametrize("position", [0, 150_000, -1])
def test_a_corrupted_body_is_refused_and_removed(server, target, position):
    corrupted = bytearray(BODY)
    corrupted[position] ^= 1
    server.answers = [faults.other_body(bytes(corrupted))]
    with pytest.raises(DataError, match=f"expected sha256 {KNOWN.sha256}, found") as info:
        get(server, target)
    assert hashlib.sha256(corrupted).hexdigest() in str(info.value)
    assert len(server.ranges) == 1
    assert_nothing(target)


@pytest.mark.parametrize("body", [b"<html>please log in</html>", BODY[:-1], BODY + b"!"])
def test_a_body_of_another_announced_length_is_refused_at_once(server, target, body):
    server.answers = [faults.other_body(body)]
    with pytest.raises(DataError, match=f"expected 300000 bytes, the server announces {len(body)}"):
        get(server, target)
    assert len(server.ranges) == 1
    assert_nothing(target)


def test_a_wrong_announcement_does_not_cost_what_was_already_here(server, target):
    part_of(target).write_bytes(BODY[:1000])
    server.answers = [lambda handler, _: faults.ignore_range(handler, b"another file")]
    with pytest.raises(DataError, match="announces 12"):
        get(server, target)
    assert part_of(target).read_bytes() == BODY[:1000]


def test_an_endless_unannounced_body_is_cut_off(server, target):
    server.answers = [faults.unannounced(BODY * 20)]
    with pytest.raises(DataError, match="expected 300000 bytes, the server sends more"):
        get(server, target)
    assert_nothing(target)


def test_an_unannounced_body_of_the_right_length_is_taken(server, target):
    server.answers = [faults.unannounced(BODY)]
    get(server, target)
    assert_complete(target)


def test_interrupting_leaves_a_part_to_go_on_from_and_nothing_else(server, target, monkeypatch):
    monkeypatch.setattr(download_module, "TIMEOUT", 20)
    main = threading.main_thread().ident

    def interrupt_once_arrived():
        while not part_of(target).exists() or part_of(target).stat().st_size < 100_000:
            time.sleep(0.01)
        signal.pthread_kill(main, signal.SIGINT)

    server.answers = [faults.stall_after(200_000, interrupt_once_arrived)]
    with pytest.raises(KeyboardInterrupt):
        get(server, target)
    kept = part_of(target).read_bytes()
    assert [path.name for path in target.parent.iterdir()] == ["file.bin.part"]
    assert kept == BODY[:200_000]

    server.answers = [faults.whole]
    get(server, target)
    assert_complete(target)
    assert server.ranges[-1] == "bytes=200000-"
