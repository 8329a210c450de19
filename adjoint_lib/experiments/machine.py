"""What computed a result: cores, threads and versions."""

from __future__ import annotations

import faulthandler
import os
import platform
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import metadata

from adjoint_lib import __version__
from adjoint_lib.errors import InputError


def cores() -> int:
    """The processor cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def versions() -> dict[str, str]:
    """The versions of everything that computes."""
    import keras
    import tensorflow as tf

    return {
        "adjoint_lib": __version__,
        "python": platform.python_version(),
        "tensorflow": tf.__version__,
        "keras": keras.__version__,
        "numpy": metadata.version("numpy"),
    }


def threads() -> int:
    """Among how many threads TensorFlow divides one operation in this process.

    The order in which it rounds long sums depends on it.
    """
    import tensorflow as tf

    return tf.config.threading.get_intra_op_parallelism_threads() or cores()


def use_threads(count: int) -> None:
    """Let TensorFlow divide its operations among so many; an error if it is too late for that."""
    import tensorflow as tf

    if count == threads():
        return
    try:
        tf.config.threading.set_intra_op_parallelism_threads(count)
    except RuntimeError as error:
        raise InputError(
            f"expected to compute with {count} threads, but TensorFlow has begun with {threads()} "
            "in this process and cannot change that. Ask for that number, or start afresh."
        ) from error


def import_tensorflow() -> None:
    """Import it without its start-up messages, unless TF_CPP_MIN_LOG_LEVEL=0 asks for them."""
    level = os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    if "tensorflow" in sys.modules or level == "0":
        return
    with _stderr_held_back():  # some messages come before TensorFlow looks at that variable
        import tensorflow as tf

        tf.config.list_physical_devices()  # where there is no GPU, this complains once


@contextmanager
def _stderr_held_back() -> Iterator[None]:
    """Drop what any code, C++ included, writes to stderr; show it after all if there is an error.

    If the process dies at once, Python's fault handler still tells where.
    """
    sys.stderr.flush()
    real, watched = os.dup(2), faulthandler.is_enabled()
    with tempfile.TemporaryFile() as held:
        faulthandler.enable(real)
        os.dup2(held.fileno(), 2)
        try:
            yield
        except Exception:
            held.seek(0)
            os.write(real, held.read())
            raise
        finally:
            sys.stderr.flush()
            os.dup2(real, 2)
            if watched:
                faulthandler.enable()
            else:
                faulthandler.disable()
            os.close(real)
