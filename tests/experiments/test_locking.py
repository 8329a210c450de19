"""The lock: one holder at a time, whatever becomes of it, and words for those who wait."""

import errno
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import filelock
import pytest

from adjoint_lib._storage import exclusive
from adjoint_lib.errors import DataError

HOLD = """
import sys
from adjoint_lib._storage import exclusive
with exclusive(sys.argv[1]):
    print("held", flush=True)
    sys.stdin.read()
print("released", flush=True)
"""


def holder(path) -> subprocess.Popen:
    """Another process that holds the lock until its standard input is closed."""
    pipe = subprocess.PIPE
    command = [sys.executable, "-c", HOLD, str(path)]
    return subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True)


def test_one_thread_at_a_time(tmp_path):
    inside = threading.Lock()

    def work(_):
        for _ in range(5):
            with exclusive(tmp_path / "lock"):
                assert inside.acquire(blocking=False)
                inside.release()

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, range(4)))


@pytest.mark.parametrize("killed", [False, True], ids=["ends", "is killed"])
def test_a_process_waits_says_so_once_and_goes_on_when_the_holder(killed, tmp_path):
    path = tmp_path / "lock"
    with holder(path) as first:
        assert first.stdout.readline() == "held\n"
        with holder(path) as second:
            assert second.stderr.readline() == f"Waiting for another process to release {path}\n"
            assert second.poll() is None
            if killed:
                first.kill()
            else:
                first.communicate()
            assert second.stdout.readline() == "held\n"
            assert second.communicate() == ("released\n", "")
            assert second.returncode == 0


def test_a_free_lock_is_taken_without_a_word(tmp_path):
    with exclusive(tmp_path / "lock"):
        pass
    with holder(tmp_path / "lock") as other:
        assert other.communicate() == ("held\nreleased\n", "")


def test_the_lock_is_released_after_an_error(tmp_path):
    with pytest.raises(KeyboardInterrupt), exclusive(tmp_path / "lock"):
        raise KeyboardInterrupt
    with exclusive(tmp_path / "lock"):
        pass


ERRORS = {
    "no locks left": OSError(errno.ENOLCK, "No locks available"),
    "not supported": OSError(errno.EOPNOTSUPP, "Operation not supported"),
    "as filelock says": NotImplementedError("FileSystem does not appear to support flock"),
}


@pytest.mark.parametrize("error", ERRORS.values(), ids=ERRORS)
def test_a_file_system_without_locks_is_named(error, tmp_path, monkeypatch):
    def fail(lock):
        raise error

    monkeypatch.setattr(filelock.FileLock, "_acquire", fail)
    with pytest.raises(DataError, match=r"lock: expected .* file locks, got: .*ADJOINT_CACHE"):
        exclusive(tmp_path / "lock").__enter__()


def test_a_lock_that_would_outlive_its_holder_is_refused(tmp_path, monkeypatch):
    """Without system locks, newer versions of filelock make do with a file that merely exists."""
    monkeypatch.setattr("adjoint_lib._storage.FileLock", filelock.SoftFileLock)
    with pytest.raises(DataError, match="the file system has no locks"):
        exclusive(tmp_path / "lock").__enter__()
    assert list(tmp_path.iterdir()) == []


def test_other_errors_stay_what_they_are(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises((FileExistsError, NotADirectoryError)):
        exclusive(tmp_path / "file" / "lock").__enter__()
