"""The lock: one holder at a time, no traces, no way around it. (Killed holders: see test_data.)"""

import errno
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from adjoint_lib import _locking as locking
from adjoint_lib._locking import exclusive
from adjoint_lib.errors import DataError


def test_one_at_a_time_and_no_traces(tmp_path, monkeypatch):
    monkeypatch.setattr(locking, "POLL_SECONDS", 0.001)
    inside = threading.Lock()

    def work(_):
        for _ in range(20):
            with exclusive(tmp_path / "lock"):
                assert inside.acquire(blocking=False)
                inside.release()

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(8)))
    assert list(tmp_path.iterdir()) == []


def test_the_lock_is_released_after_an_error(tmp_path):
    with pytest.raises(KeyboardInterrupt), exclusive(tmp_path / "lock"):
        raise KeyboardInterrupt
    assert list(tmp_path.iterdir()) == []
    with exclusive(tmp_path / "lock"):
        pass


def test_a_lock_on_a_file_removed_meanwhile_does_not_count(tmp_path, monkeypatch):
    path = tmp_path / "lock"
    lock = locking._lock

    def removed_by_its_last_holder(descriptor):
        monkeypatch.setattr(locking, "_lock", lock)
        path.unlink()
        lock(descriptor)

    monkeypatch.setattr(locking, "_lock", removed_by_its_last_holder)
    with exclusive(path):
        assert path.exists()  # so that others meet the lock there


def test_a_file_system_without_locks_is_named(tmp_path, monkeypatch):
    def fail(descriptor):
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(locking, "_lock", fail)
    with pytest.raises(DataError, match=r"No locks available.*ADJOINT_CACHE"):
        exclusive(tmp_path / "lock").__enter__()
