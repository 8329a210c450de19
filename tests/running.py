"""Running the real commands in processes of their own, and waiting for what they do."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import keras

import adjoint_lib as al


def tiny_model(seed: int = 3) -> keras.Model:
    """A small network for CIFAR images, with random weights."""
    layers = keras.layers
    model = keras.Sequential(
        [
            keras.Input((32, 32, 3)),
            layers.Conv2D(2, 3, 4, name="c1"),
            layers.ReLU(name="relu"),
            layers.Conv2D(3, 3, 2, name="c2"),
            layers.ReLU(name="relu2"),
            layers.Flatten(name="flatten"),
            layers.Dense(4, name="fc"),
        ],
        name="tiny",
    )
    return al.models.randomise(model, seed)


def start(*arguments, folder: Path) -> subprocess.Popen:
    """Start `python -m adjoint_lib` in its own process group, with the embedded images only."""
    environment = {**os.environ, "ADJOINT_CACHE": str(folder / "no-cache")}
    environment.pop("ADJOINT_DATA", None)
    return subprocess.Popen(
        [sys.executable, "-m", "adjoint_lib", *map(str, arguments)],
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def wait_for(happened: Callable[[], bool], process: subprocess.Popen, seconds: float = 300) -> None:
    """Wait until something has happened; fail if the process ends before, or takes too long."""
    deadline = time.monotonic() + seconds
    while not happened():
        if process.poll() is not None or time.monotonic() > deadline:
            process.kill()
            raise AssertionError(f"ended, or took too long: {process.communicate()}")
        time.sleep(0.02)


def shards(folder: Path) -> list[Path]:
    return sorted(folder.glob("shard-*.json"))


def report_of(process: subprocess.Popen) -> dict:
    """The report that a process started with --json prints; the process must end without error."""
    out, err = process.communicate(timeout=300)
    assert process.returncode == 0, err
    return json.loads(out)
