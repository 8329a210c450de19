"""The two processes that marking needs: one runs a submission, confined; one runs the checks."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path

import adjoint_book
import adjoint_lib
from adjoint_book.course.grading import confine
from adjoint_book.course.grading.channel import Channel, Silence
from adjoint_lib.errors import AdjointError

PACKAGES = ("adjoint_book", "adjoint_lib")
STARTING = 120  # seconds within which a process has to be up


@dataclass(frozen=True)
class Limits:
    """What the code of one submission may use.

    Attributes:
        seconds: for the whole submission.
        cell_seconds: for one cell, or one call of a function by a check.
        memory: bytes, of all its processes together.
        processes: how many threads and processes.
        file: bytes of one file.
    """

    seconds: float = 120
    cell_seconds: float = 30
    memory: int = 3 << 30
    processes: int = 256
    file: int = 100 << 20


class NotStarted(AdjointError):
    """The system did not let a confined process start."""


class Process:
    """A confined Python process, and a channel to it.

    Attributes:
        channel: what it is talked to by.
        held: which measures the system granted: network, processes, files, user.
        excess: why it was killed, if it was.
    """

    def __init__(self, module: str, folder: Path, limits: Limits, number: int = 0):
        ours, theirs = _pipes()
        report, reported = os.pipe()
        job = {
            **asdict(limits),
            "seconds": int(limits.seconds) + STARTING,
            "folder": str(folder),
            "readable": readable(),
            "listed": homes(),
            "uid": confine.NOBODY - 1 - number,
            "report": reported,
            "environment": environment(folder),
            "command": [sys.executable, "-m", module],
            "channel": theirs,
        }
        self._said = tempfile.TemporaryFile()  # noqa: SIM115 (for as long as it runs)
        self._process = subprocess.Popen(
            [sys.executable, "-I", confine.__file__, json.dumps(job)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=self._said,
            pass_fds=(*theirs, reported),
            cwd=folder,
            start_new_session=True,
        )
        for end in (*theirs, reported):
            os.close(end)
        self.channel = Channel(*ours)
        self.excess = ""
        with os.fdopen(report, "rb") as file:
            self.held: dict[str, bool] = json.loads(file.readline() or b"{}")
        self._ended = threading.Event()
        self._watch = threading.Thread(target=self._watching, args=(limits.memory,), daemon=True)
        self._watch.start()
        self._until_ready(module)

    def _until_ready(self, module: str) -> None:
        """Wait for its first line; none of a submission's code has run before it."""
        try:
            self.channel.receive(time.monotonic() + STARTING)
        except Silence as error:
            self.kill()
            self._said.seek(0)
            last = self._said.read()[-500:].decode(errors="replace")
            self.close()
            raise NotStarted(f"{module}: expected it to start, but {error}. {last}") from error

    def kill(self, why: str = "") -> None:
        """End it, and all that it started."""
        self.excess = self.excess or why
        self._ended.set()
        for child in descendants(self._process.pid):
            with suppress(ProcessLookupError, PermissionError):
                os.kill(child, signal.SIGKILL)
        with suppress(ProcessLookupError):
            self._process.kill()
        self._process.wait()

    def close(self) -> None:
        """End it, and forget the channel."""
        self.kill()
        self._watch.join()
        self.channel.close()
        self._said.close()

    def _watching(self, memory: int) -> None:
        while not self._ended.wait(0.2):
            if sum(map(resident, descendants(self._process.pid))) > memory:
                self.kill(f"it took more than {memory / 2**30:.1f} GB of memory")


@contextmanager
def confined(module: str, folder: Path, limits: Limits, number: int = 0) -> Iterator[Process]:
    """A confined process that ends with the block."""
    process = Process(module, folder, limits, number)
    try:
        yield process
    finally:
        process.close()


def readable() -> list[str]:
    """The folders that a Python program with this library has to read."""
    packages = [Path(home) / name for home, name in zip(homes(), PACKAGES, strict=True)]
    found = {
        *map(Path, ("/usr", "/lib", "/lib64", "/bin", "/etc", "/proc", "/sys", "/dev", "/opt"))
    }
    found |= {Path(sys.prefix), Path(sys.base_prefix), Path(sys.executable).resolve().parent}
    found |= {Path(p) for p in sys.path if "-packages" in p} | {*packages, packages[1] / "_data"}
    found |= {packages[1].parent / "data"}
    if any(packages[0].parent.glob("01-*.ipynb")):
        found.add(packages[0].parent)
    return sorted({str(path) for path in found if path.exists()})


def homes() -> list[str]:
    """The folders that adjoint_book and adjoint_lib are in."""
    return [str(Path(str(p.__file__)).resolve().parent.parent) for p in (adjoint_book, adjoint_lib)]


def environment(folder: Path) -> dict[str, str]:
    """What the process sees of the environment: nothing that is the user's own."""
    one = {
        name: "1"
        for name in ("OMP_NUM_THREADS", "TF_NUM_INTRAOP_THREADS", "TF_NUM_INTEROP_THREADS")
    }
    own = ("HOME", "TMPDIR", "KERAS_HOME", "MPLCONFIGDIR", "IPYTHONDIR", "ADJOINT_CACHE")
    return {
        **one,
        **dict.fromkeys(own, str(folder)),
        "PATH": os.defpath,
        "LANG": "C.UTF-8",
        "MPLBACKEND": "Agg",
        "CUDA_VISIBLE_DEVICES": "",
        "TF_CPP_MIN_LOG_LEVEL": "3",
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONSAFEPATH": "1",
        "PYTHONPATH": os.pathsep.join(homes()),
    }


def descendants(pid: int) -> list[int]:
    """A process and all that it started and that still run, where /proc lists them."""
    found = [pid]
    for one in found:
        with suppress(OSError):
            for task in os.listdir(f"/proc/{one}/task"):
                children = Path(f"/proc/{one}/task/{task}/children").read_text("ascii").split()
                found += map(int, children)
    return found


def resident(pid: int) -> int:
    """How many bytes of memory a process takes; 0 where that cannot be known."""
    with suppress(OSError, IndexError, ValueError):
        pages = int(Path(f"/proc/{pid}/statm").read_text("ascii").split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE")
    return 0


def _pipes() -> tuple[tuple[int, int], tuple[int, int]]:
    """(reading, writing) of our side, and of theirs."""
    to_read, to_them = os.pipe()
    ours, to_write = os.pipe()
    return (ours, to_them), (to_read, to_write)
