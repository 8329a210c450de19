"""Dask: the report of one process, whatever happens to the workers."""

import builtins
import gc
import json
import os
import signal
import sys

import numpy as np
import pytest

import adjoint_lib as al
from adjoint_lib.cli.main import main
from adjoint_lib.experiments import cluster, runs
from adjoint_lib.verification.verify import Plan
from running import report_of, shards, start, tiny_model, wait_for

distributed = pytest.importorskip(
    "distributed", reason="needs Dask: pip install 'adjoint_lib[cluster]'"
)
psutil = pytest.importorskip("psutil", reason="comes with distributed")

MODEL = tiny_model()
PLAN = Plan(al.equivalent(MODEL))
IMAGES = al.data.sample("cifar10")[0][:40]


@pytest.fixture(scope="module")
def expected() -> dict:
    """The report of one process that was never stopped."""
    return runs.run(PLAN, IMAGES, progress=False).report.to_dict()


@pytest.fixture(scope="module")
def scheduler():
    """The address of a cluster that is there already, with one worker: a thread of this process."""
    with distributed.LocalCluster(
        n_workers=1, processes=False, protocol="tcp", threads_per_worker=1, dashboard_address=":0"
    ) as there:
        yield there.scheduler_address


def busiest(process) -> "psutil.Process":
    """The process below this one that has computed most: a worker."""
    below = psutil.Process(process.pid).children(recursive=True)
    return max(below, key=lambda p: p.cpu_times().user)


@pytest.mark.skipif(sys.platform == "win32", reason="signals as on POSIX")
def test_a_run_on_workers_survives_ctrl_c_and_the_death_of_a_worker(tmp_path, expected):
    MODEL.save(tmp_path / "tiny.keras")
    folder = tmp_path / "run"
    command = ["verify", "--file", "tiny.keras", "--images", 40, "--folder", "run"]
    command += ["--workers", 2, "--json"]

    process = start(*command, folder=tmp_path)
    wait_for(lambda: len(shards(folder)) >= 1, process)
    workers = psutil.Process(process.pid).children(recursive=True)
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does: the workers get it too
    out, err = process.communicate(timeout=300)
    assert (process.returncode, out) == (130, "")
    assert "the same command goes on" in err.splitlines()[-1] and "Traceback" not in err
    assert not psutil.wait_procs(workers, timeout=120)[1]  # none is left behind
    done = shards(folder)
    assert 0 < len(done) < 5
    for path in done[1:]:  # so that there is enough left to be in the middle of
        path.unlink()

    process = start(*command, folder=tmp_path)
    wait_for(lambda: len(shards(folder)) >= 2, process)
    busiest(process).kill()
    assert len(shards(folder)) < 5
    assert report_of(process) == expected
    assert len(shards(folder)) == 5


def test_an_existing_cluster_gives_the_same_report(scheduler, expected, tmp_path, capsys):
    MODEL.save(tmp_path / "tiny.keras")
    options = ["--images", "40", "--folder", str(tmp_path / "run"), "--scheduler", scheduler]
    assert main(["verify", "--file", str(tmp_path / "tiny.keras"), *options, "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == expected
    assert len(shards(tmp_path / "run")) == 5


def test_a_cluster_takes_over_a_run_of_one_process_and_back(scheduler, expected, tmp_path):
    def stops_after(count, compute):
        def some(plan, pieces, step):
            for n, found in enumerate(compute(plan, pieces, step), 1):
                yield found
                if n == count:
                    raise KeyboardInterrupt

        return some

    there = cluster.on_scheduler(MODEL, scheduler)
    for count, compute in ((2, runs.here), (1, there)):
        with pytest.raises(KeyboardInterrupt):
            runs.run(PLAN, IMAGES, tmp_path, stops_after(count, compute), progress=False)
    assert len(shards(tmp_path)) == 3
    assert runs.run(PLAN, IMAGES, tmp_path, progress=False).report.to_dict() == expected


def test_an_error_on_a_worker_is_that_of_one_process(scheduler):
    plan = Plan(al.equivalent(MODEL))
    overflowing = np.where(IMAGES[:2] > 0.5, 3e38, -3e38).astype(np.float32)
    with pytest.raises(al.AdjointError, match="overflows float32"):
        runs.run(plan, overflowing, compute=cluster.on_scheduler(MODEL, scheduler), progress=False)


def test_a_worker_that_builds_another_network_is_found_out(scheduler):
    other = cluster.on_scheduler(tiny_model(seed=4), scheduler)
    with pytest.raises(al.AdjointError, match="expected a worker to build the network"):
        runs.run(PLAN, IMAGES[:2], compute=other, progress=False)


@pytest.mark.parametrize("address", ["tcp://127.0.0.1:9", "nonsense", "http://x:1"])
def test_where_no_scheduler_answers_the_remedy_is_said(address, monkeypatch):
    monkeypatch.setattr(cluster, "ANSWER_SECONDS", 1)
    with pytest.raises(al.InputError, match="expected a Dask scheduler at"):
        runs.run(PLAN, IMAGES, compute=cluster.on_scheduler(MODEL, address), progress=False)
    assert unclosed_clients() == []


def unclosed_clients() -> list:
    """Clients that Python would close whenever it collects them, be it while another one starts:
    that waits for itself, for ever.
    """
    clients = (thing for thing in gc.get_objects() if type(thing) is distributed.Client)
    return [client for client in clients if client.status != "closed"]


def test_a_worker_is_no_scheduler(scheduler):
    with distributed.Client(scheduler) as client:
        (worker,) = client.scheduler_info()["workers"]
    with pytest.raises(al.InputError, match=r"expected a Dask scheduler at .*, got: a worker"):
        runs.run(PLAN, IMAGES, compute=cluster.on_scheduler(MODEL, worker), progress=False)
    assert unclosed_clients() == []


def test_workers_that_end_while_they_start_are_said(tmp_path, monkeypatch):
    """Killed for want of memory, say; it was a RuntimeError of Dask's."""
    monkeypatch.setattr(cluster, "QUIETLY", "import os; os._exit(1)")
    with pytest.raises(al.AdjointError, match=r"2 workers to start.*fewer workers need less"):
        runs.run(PLAN, IMAGES, tmp_path, cluster.on_workers(MODEL, 2), progress=False)
    assert not shards(tmp_path)


def test_a_cluster_without_workers_is_said(monkeypatch):
    monkeypatch.setattr(cluster, "WORKER_SECONDS", 1)
    with distributed.LocalCluster(
        n_workers=0, processes=False, protocol="tcp", dashboard_address=":0"
    ) as empty:
        compute = cluster.on_scheduler(MODEL, empty.scheduler_address)
        with pytest.raises(al.AdjointError, match="no worker for 1 seconds"):
            runs.run(PLAN, IMAGES, compute=compute, progress=False)


def test_without_dask_the_command_says_what_to_install(monkeypatch, capsys):
    importing = builtins.__import__

    def without(name, *rest):
        if name.partition(".")[0] in ("distributed", "dask"):
            raise ModuleNotFoundError(f"No module named {name!r}")
        return importing(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without)
    assert main(["verify", "--model", "vgg7", "--workers", "2"]) == 2
    assert "pip install 'adjoint_lib[cluster]'" in capsys.readouterr().err
