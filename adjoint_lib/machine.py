"""What computed a result: cores, threads and versions."""

from __future__ import annotations

import os
import platform
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
