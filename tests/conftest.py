"""Settings shared by all tests: a quiet TensorFlow, repeatable examples, and a limit on memory."""

import ctypes
import gc
import os
import signal
import sys

# A run in the background of a shell ignores Ctrl-C, and so would the processes tests interrupt.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")  # before anything imports TensorFlow

import pytest
from hypothesis import HealthCheck, settings

if sys.platform == "win32":
    resource = None
else:
    import resource

PEAK_LIMIT_GB = 3.0

# "repeatable" draws the same examples in every run; "explore" draws new ones:
#   pytest --hypothesis-profile=explore [--hypothesis-seed=N]
settings.register_profile(
    "explore", deadline=None, print_blob=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("repeatable", settings.get_profile("explore"), derandomize=True)
settings.load_profile("repeatable")


@pytest.fixture(autouse=True, scope="module")
def _give_back_memory():
    """What one file of tests has freed is not to be counted with the next one's peak.

    With oneDNN, TensorFlow keeps a pool of its own for tensors, which nothing gives back.
    """
    yield
    gc.collect()
    if sys.platform == "linux":
        trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # glibc keeps freed memory otherwise
        if trim:
            trim(0)


def peak_gb() -> float | None:
    """Peak resident memory, in GB, of this process or the largest it has started and waited for.

    None where the system does not report it.
    """
    if resource is None:
        return None
    unit = 1 if sys.platform == "darwin" else 1024  # macOS counts bytes, Linux kilobytes
    processes = resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN
    return max(resource.getrusage(who).ru_maxrss for who in processes) * unit / 1e9


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Fail the whole run when it needed more memory than the library promises."""
    peak = peak_gb()
    if peak is not None and peak > PEAK_LIMIT_GB and session.exitstatus == pytest.ExitCode.OK:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    peak = peak_gb()
    if peak is None:
        return
    line = f"peak memory {peak:.2f} GB (limit {PEAK_LIMIT_GB:g} GB)"
    if peak > PEAK_LIMIT_GB:
        terminalreporter.write_sep("=", f"FAILED: {line}", red=True)
    else:
        terminalreporter.write_line(line)
