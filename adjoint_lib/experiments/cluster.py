"""Verification runs on a Dask cluster: on workers of this machine, or on a cluster that is there.

    runs.run(plan, images, "runs/mine", compute=on_workers(model, 4))
    runs.run(plan, images, "runs/mine", compute=on_scheduler(model, "tcp://...:8786"))

`model` is the Keras model of the plan's network. A worker gets it as a ``.keras`` file, builds the
network once, and checks its digest. The shards come back to this process, which saves them, so the
workers need no common disk. If a worker dies, Dask gives its shard to another, and all that was
finished stays. Needs the packages of ``pip install adjoint_lib[cluster]``.
"""

from __future__ import annotations

import asyncio
import functools
import itertools
import logging
import tempfile
from concurrent.futures import CancelledError, ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from adjoint_lib.errors import AdjointError, InputError

if TYPE_CHECKING:
    import keras

    from adjoint_lib.core.equivalent_net import EquivalentNet
    from adjoint_lib.experiments.runs import Compute, Pieces, Records
    from adjoint_lib.verification.progress import Progress
    from adjoint_lib.verification.verify import Plan

ANSWER_SECONDS = 10  # for a scheduler to answer
WORKER_SECONDS = 120  # for it to have a worker
# What a worker of ours does first: leave Ctrl-C to the process that started it, which ends it, and
# import TensorFlow without its messages.
QUIETLY = """
import signal
signal.signal(signal.SIGINT, signal.SIG_IGN)
from adjoint_lib.experiments import machine
machine.import_tensorflow()
"""
GOES_ON = "Finished shards are kept: the same command goes on."


def require() -> None:
    """Raise an error with the remedy if Dask is not installed."""
    try:
        import distributed  # noqa: F401
    except ImportError as error:
        raise InputError(
            "a cluster needs the packages dask and distributed, which are not installed: pip "
            "install 'adjoint_lib[cluster]', or: pip install distributed. Without them, leave out "
            "--workers and --scheduler."
        ) from error


def on_workers(model: keras.Model, count: int) -> Compute:
    """Compute shards in `count` processes of this machine, started for it and ended after it."""
    require()

    def compute(plan: Plan, pieces: Pieces, step: Progress) -> Records:
        from distributed import Client, LocalCluster

        try:
            local = LocalCluster(
                n_workers=count,
                threads_per_worker=1,
                dashboard_address=":0",  # any port, so that no other cluster is in the way
                memory_limit=None,  # `max_bytes` bounds what a shard takes
                preload=[QUIETLY],
                silence_logs=logging.CRITICAL,  # what it says of a lost worker is dealt with here
            )
        except (RuntimeError, OSError, TimeoutError) as error:
            raise AdjointError(
                f"expected {count} workers to start, but one ended before it had ({error}). Look "
                f"whether there is enough memory; fewer workers need less. {GOES_ON}"
            ) from error
        with local, Client(local) as client:
            yield from _spread(client, model, plan, pieces, step)

    return compute


def on_scheduler(model: keras.Model, address: str) -> Compute:
    """Compute shards on the workers of the Dask scheduler at this address (tcp://host:port)."""
    require()

    def compute(plan: Plan, pieces: Pieces, step: Progress) -> Records:
        from distributed import Client

        _require_scheduler(address)
        with Client(address, timeout=ANSWER_SECONDS, name="adjoint_lib") as client:
            yield from _spread(client, model, plan, pieces, step)

    return compute


def _require_scheduler(address: str) -> None:
    """Raise an error with the remedy if no scheduler answers.

    Asked before there is a client: one that cannot connect stays half made, and hangs the next one
    if Python happens to collect it while that starts. In a thread, since a notebook runs a loop of
    its own in this one.
    """

    def error(got: object) -> InputError:
        return InputError(
            f"expected a Dask scheduler at {address}, such as tcp://host:8786, got: {got}. Start "
            "one (dask scheduler), or use --workers."
        )

    with ThreadPoolExecutor(1) as thread:
        try:
            kind = thread.submit(asyncio.run, _kind(address)).result()
        except (OSError, ValueError, TypeError) as failed:
            raise error(failed) from failed
    if kind != "Scheduler":
        raise error(f"a {kind.lower()}")


async def _kind(address: str) -> str:
    """What answers at this address: a Scheduler, a Worker, a Nanny."""
    from distributed import rpc

    async with rpc(address, timeout=ANSWER_SECONDS) as there:
        return (await there.identity())["type"]


def _spread(client, model: keras.Model, plan: Plan, pieces: Pieces, step) -> Records:
    """Keep every worker busy with shards, and hand them on in the order they are done."""
    from distributed import as_completed
    from distributed.scheduler import KilledWorker

    from adjoint_lib.experiments import machine

    try:
        client.wait_for_workers(1, timeout=WORKER_SECONDS)
    except TimeoutError as error:
        raise AdjointError(
            f"the Dask scheduler has had no worker for {WORKER_SECONDS} seconds. Start some (dask "
            f"worker ADDRESS). {GOES_ON}"
        ) from error
    fixed = _packed(model), plan.net.digest, plan.settings(), machine.threads()
    pending: dict[str, tuple[int, int]] = {}
    finished = as_completed()

    def submit() -> None:
        """Not all at once: each shard in the queue holds its images and the model."""
        room = 2 * max(1, sum(client.nthreads().values())) - len(pending)
        for first, images in itertools.islice(pieces, max(0, room)):
            future = client.submit(shard_on_worker, *fixed, images, pure=False)
            pending[future.key] = first, len(images)
            finished.add(future)

    submit()
    try:
        for future in finished:
            first, count = pending.pop(future.key)
            record = future.result()
            step(count)
            yield first, record
            submit()
    except KilledWorker as error:
        raise AdjointError(
            f"several workers died while they computed the same shard ({error}). Look whether they "
            f"have enough memory; fewer workers need less. {GOES_ON}"
        ) from error
    except (OSError, TimeoutError, CancelledError) as error:
        if isinstance(error, AdjointError):
            raise
        raise AdjointError(f"the Dask cluster was lost: {error!r}. {GOES_ON}") from error


# ------------------------------------------------------------------ on the worker


def shard_on_worker(
    model: bytes,
    digest: str,
    settings: dict[str, Any],
    threads: int,
    images: np.ndarray,
) -> dict[str, Any]:
    """What `runs.measured` gives for one shard, on a worker that got a ``.keras`` file as bytes.

    The equivalent network must have this digest, and TensorFlow uses so many threads, so that sums
    are rounded as in every other process.
    """
    from adjoint_lib.experiments import machine, runs
    from adjoint_lib.verification.verify import Plan

    machine.use_threads(threads)
    net = _net(model)
    if net.digest != digest:
        raise AdjointError(
            f"expected a worker to build the network {digest}, got {net.digest}. Have the same "
            "version of adjoint_lib everywhere."
        )
    return runs.measured(Plan(net, **settings), images)


@functools.lru_cache(maxsize=1)
def _net(model: bytes) -> EquivalentNet:
    from adjoint_lib.frontend.equivalent import equivalent
    from adjoint_lib.frontend.loading import load_model

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.keras"
        path.write_bytes(model)
        return equivalent(load_model(path))


def _packed(model: keras.Model) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.keras"
        model.save(path)
        return path.read_bytes()
