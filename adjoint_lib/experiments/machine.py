"""What computed a result: cores, threads and versions."""

from __future__ import annotations

import faulthandler
import hashlib
import os
import platform
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib import metadata
from pathlib import Path
from typing import Any

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


def description() -> dict[str, Any]:
    """All that decides how this process rounds: processor, cores and versions."""
    return {"processor": processor(), "cores": cores(), "versions": versions()}


def processor() -> dict[str, str]:
    """The processor's name, and a digest that differs where TensorFlow rounds its sums differently.

    TensorFlow chooses its convolutions by the processor (oneDNN or its own, wide vectors or not),
    so the last bits of a result depend on it. The digest is that of a few convolutions and a
    product of fixed numbers, to the bit.
    """
    import numpy as np
    import tensorflow as tf

    def numbers(*shape: int) -> tf.Tensor:  # the same on any machine: integers over a power of two
        count = np.arange(np.prod(shape), dtype=np.int64)
        return tf.constant(((count * 40503 % 65521) / 2**15 - 1).reshape(shape), tf.float32)

    found = [
        tf.nn.conv2d(numbers(2, 32, 32, 3), numbers(3, 3, 3, 32), 1, "SAME"),
        tf.nn.conv2d(numbers(192, 8, 8, 32), numbers(3, 3, 32, 64), 1, "VALID"),
        tf.nn.conv2d(numbers(16, 16, 16, 64), numbers(3, 3, 64, 96), 2, "SAME"),
        tf.linalg.matmul(numbers(64, 300), numbers(300, 50)),
    ]
    digest = hashlib.sha256(b"".join(part.numpy().tobytes() for part in found)).hexdigest()
    return {"name": _processor_name(), "rounding": digest[:12]}


def _processor_name() -> str:
    with suppress(OSError):
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
        if names:
            return names[0]
    return platform.processor() or platform.machine()


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
