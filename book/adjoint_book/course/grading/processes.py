"""The two processes that marking needs: one runs a submission, confined; one runs the checks."""

from __future__ import annotations

import json
import math
import os
import signal
import stat
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path

import adjoint_book
import adjoint_lib
from adjoint_book.course.grading import confine
from adjoint_book.course.grading.channel import Channel, Silence
from adjoint_lib.errors import AdjointError

PACKAGES = ("adjoint_book", "adjoint_lib")
SYSTEM = (
    "/usr",
    "/lib",
    "/lib64",
    "/bin",
    "/proc",
    "/sys/devices/system",
    "/sys/fs/cgroup",
    "/dev/urandom",
    "/dev/random",
    "/dev/zero",
)
SETTINGS = (  # in /etc: what the loader, names and fonts need, and nothing that is secret
    "ld.so.cache",
    "ld.so.conf",
    "ld.so.conf.d",
    "ld.so.preload",
    "fonts",
    "group",
    "hosts",
    "localtime",
    "mime.types",
    "nsswitch.conf",
    "passwd",
)
STARTING = 300  # seconds within which a process has to be up
PATIENCE = 4  # times as long by the clock as of the processor's time, for a busy machine
SMALLEST_FILE = 4096  # bytes that even an empty one counts for


@dataclass(frozen=True)
class Limits:
    """What the code of one submission may use.

    The time is the processor's, so that marks do not depend on what else a machine has to do;
    whoever waits without computing is stopped after `PATIENCE` times as long by the clock.

    Attributes:
        seconds: for the whole submission.
        cell_seconds: for one cell, or one call of a function by a check.
        memory: bytes, of all its processes together.
        processes: how many threads and processes.
        file: bytes of one file.
        files: bytes of all files that it writes.
    """

    seconds: float = 120
    cell_seconds: float = 30
    memory: int = 3 << 30
    processes: int = 256
    file: int = 100 << 20
    files: int = 1 << 30


class NotStarted(AdjointError):
    """The system did not let a confined process start."""


class Process:
    """A confined Python process, and a channel to it.

    Args:
        module: what it runs.
        folder: where it runs, and may write.
        limits: what it may use.
        number: tells processes apart that run at the same time.
        also: folders that it may read, beside what Python and this library need.

    Attributes:
        channel: what it is talked to by.
        held: which measures the system granted: network, processes, files, user.
        excess: why it was killed, if it was.
    """

    def __init__(
        self,
        module: str,
        folder: Path,
        limits: Limits,
        number: int = 0,
        also: Iterable[Path] = (),
    ):
        ours, theirs = _pipes()
        report, reported = os.pipe()
        job = {
            **asdict(limits),
            "seconds": int(limits.seconds) + STARTING,
            "folder": str(folder),
            "readable": [*readable(), *map(str, also)],
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
        self._before = math.inf  # seconds of the processor that starting took
        self._ended = threading.Event()
        self._watch = threading.Thread(target=self._watching, args=(folder, limits), daemon=True)
        self._watch.start()
        self._until_ready(module)
        self._before = sum(map(spent, descendants(self._process.pid)))

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

    def _watching(self, folder: Path, limits: Limits) -> None:
        while not self._ended.wait(0.2):
            running = descendants(self._process.pid)
            if sum(map(spent, running)) - self._before > limits.seconds:
                self.kill(f"it took more than {limits.seconds:g} seconds of the processor's time")
            elif sum(map(resident, running)) > limits.memory:
                self.kill(f"it took more than {limits.memory / 2**30:.1f} GB of memory")
            elif written(folder, running) > limits.files:
                self.kill(f"it wrote more than {limits.files / 2**30:.1f} GB")


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
    found = {*map(Path, SYSTEM), *(Path("/etc", name) for name in SETTINGS)}
    found |= {Path(sys.prefix), Path(sys.base_prefix), Path(sys.executable).resolve().parent}
    found |= {Path(p) for p in sys.path if "-packages" in p} | {*packages, packages[1] / "_data"}
    found |= {packages[1].parent / "data"}
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


def spent(pid: int) -> float:
    """How many seconds of the processor a process took, with those that it waited for."""
    with suppress(OSError, IndexError, ValueError):
        fields = Path(f"/proc/{pid}/stat").read_text("utf-8", "replace").rpartition(")")[2].split()
        return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")
    return 0.0


def written(folder: Path, running: Iterable[int]) -> int:
    """How many bytes the files in a folder take, and those without a name that are still open."""
    sizes = {}
    for place, _, names in os.walk(folder):
        for name in names:
            with suppress(OSError):
                found = os.lstat(os.path.join(place, name))
                sizes[found.st_dev, found.st_ino] = max(found.st_blocks * 512, SMALLEST_FILE)
    for pid in running:
        with suppress(OSError):
            for name in os.listdir(f"/proc/{pid}/fd"):
                with suppress(OSError):
                    found = os.stat(f"/proc/{pid}/fd/{name}")
                    if stat.S_ISREG(found.st_mode) and not found.st_nlink:
                        sizes[found.st_dev, found.st_ino] = found.st_blocks * 512
    return sum(sizes.values())


def _pipes() -> tuple[tuple[int, int], tuple[int, int]]:
    """(reading, writing) of our side, and of theirs."""
    to_read, to_them = os.pipe()
    ours, to_write = os.pipe()
    return (ours, to_them), (to_read, to_write)
