"""Runs: the same report however they are divided, stopped, damaged and taken up again."""

import json
import os
import shutil
import signal

import numpy as np
import pytest

import adjoint_lib as al
from adjoint_lib.experiments import machine, runs
from adjoint_lib.verification.coarse_weights import rounded
from adjoint_lib.verification.verify import Plan
from reference import image_of, small_net
from running import report_of, shards, start, tiny_model, wait_for

NET = small_net()[1].astype("float32")
IMAGES = np.stack([image_of(NET, seed) for seed in range(5)])
PLAN = Plan(NET)
WHOLE = al.verify(NET, IMAGES)


def run(folder=None, plan=PLAN, images=IMAGES, shard=2, **options) -> runs.Outcome:
    return runs.run(plan, images, folder, shard=shard, progress=False, **options)


def names(folder) -> set[str]:
    """The files of a run's folder, but for its lock, which stays there."""
    return {path.name for path in folder.iterdir()} - {".lock"}


# ---- one report, however it is divided


@pytest.mark.parametrize("shard", [1, 2, 3, 5, 100])
def test_the_number_of_shards_changes_nothing(shard, tmp_path):
    outcome = run(tmp_path, shard=shard)
    assert outcome.report == WHOLE
    assert outcome.shards == len(shards(tmp_path)) == -(-5 // shard)
    assert outcome.seconds > 0 and outcome.cores == [machine.cores()]


def test_the_order_of_the_shards_changes_nothing(tmp_path):
    def backwards(plan, pieces, step):
        return runs.here(plan, iter(list(pieces)[::-1]), step)

    assert run(tmp_path, compute=backwards).report == WHOLE
    assert run().report == WHOLE  # and neither does keeping nothing


@pytest.mark.parametrize("options", [{"method": "tangent"}, {"mode": "RM0"}], ids=str)
def test_the_division_changes_no_bit_of_a_real_network(options):
    """16 images are taken together, which rounds otherwise than one alone."""
    net = al.equivalent(al.models.randomise(al.models.vgg7()))
    images = al.data.sample("cifar10")[0][:36]
    plan = Plan(net, **options)
    expected = al.verify(net, images, progress=False, **options)
    for shard in (plan.batch_size, 2 * plan.batch_size):
        assert run(plan=plan, images=images, shard=shard).report == expected


def test_shards_begin_where_batches_do():
    with pytest.raises(al.InputError, match="a multiple of 16 images"):
        run(plan=Plan(NET, method="tangent"), shard=24)
    for plan in (PLAN, Plan(NET, mode="RM0"), Plan(NET, method="tangent")):
        assert runs.shard_size(plan) % plan.batch_size == 0


# ---- taken up again


def test_a_run_goes_on_with_the_shards_that_are_missing(tmp_path):
    def stops_after_one(plan, pieces, step):
        yield from runs.here(plan, iter([next(pieces)]), step)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(tmp_path, compute=stops_after_one)
    assert names(tmp_path) == {"run.json", "shard-000000.json"}
    done, computed = (tmp_path / "shard-000000.json").stat().st_mtime_ns, []

    def counted(plan, pieces, step):
        for first, record in runs.here(plan, pieces, step):
            computed.append(first)
            yield first, record

    assert run(tmp_path, compute=counted).report == WHOLE
    assert computed == [2, 4]
    assert (tmp_path / "shard-000000.json").stat().st_mtime_ns == done
    assert run(tmp_path, compute=counted).report == WHOLE and computed == [2, 4]


def flip_a_digit(path):
    text = path.read_text()
    at = text.index('"units": ') + len('"units": ')
    path.write_text(f"{text[:at]}{(int(text[at]) + 1) % 10}{text[at + 1 :]}")


DAMAGES = {
    "a digit": flip_a_digit,
    "cut short": lambda path: path.write_bytes(path.read_bytes()[:-200]),
    "emptied": lambda path: path.write_bytes(b""),
    "no text": lambda path: path.write_bytes(b"\xff\xfe\x00"),
    "a list": lambda path: path.write_text("[1]"),
    "another shard": lambda path: shutil.copy(path.with_name("shard-000000.json"), path),
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_a_damaged_shard_is_found_and_computed_again(damage, tmp_path, capsys):
    run(tmp_path)
    path = tmp_path / "shard-000002.json"
    sound = json.loads(path.read_text())["record"]["report"]
    damage(path)
    outcome = runs.run(PLAN, IMAGES, tmp_path, shard=2)
    assert outcome.report == WHOLE
    assert f"{path} is" in capsys.readouterr().err
    assert json.loads(path.read_text())["record"]["report"] == sound


def test_what_a_killed_process_left_is_cleared_away(tmp_path):
    (tmp_path / "shard-000000.json.123.partial").write_text("{")
    run(tmp_path)
    expected = {"run.json", "shard-000000.json", "shard-000002.json", "shard-000004.json"}
    assert names(tmp_path) == expected


# ---- folders of other runs

OTHERS = {
    "dtype": {"plan": Plan(NET, dtype="float64")},
    "method": {"plan": Plan(NET, method="tangent"), "shard": 16},
    "k": {"plan": Plan(NET, k=0.25)},
    "modes": {"plan": Plan(NET, mode="RM0"), "shard": 16},
    "weights_rounded": {"plan": Plan(NET, weights_rounded="bfloat16")},
    "images ": {"images": IMAGES[:4]},
    "images_sha256": {"images": IMAGES + 1e-3},
    "shard": {"shard": 1},
    "digest": {"plan": Plan(rounded(NET, "bfloat16"))},
    "max_bytes": {"plan": Plan(NET, max_bytes=1)},
}


@pytest.mark.parametrize("key", OTHERS)
def test_a_folder_of_another_run_is_refused_and_left_as_it_is(key, tmp_path):
    run(tmp_path)
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    with pytest.raises(al.InputError, match=f"{key}.* there, .* now.*Name another folder"):
        run(tmp_path, **OTHERS[key])
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_a_run_of_other_batches_is_refused(tmp_path, monkeypatch):
    """Images that go through the network together round otherwise than alone."""
    run(tmp_path)
    monkeypatch.setattr(Plan, "batch_size", 2)
    with pytest.raises(al.InputError, match="together 1 there, 2 now"):
        run(tmp_path)


def test_every_run_has_a_folder_of_its_own():
    found = {str(runs.default_folder(PLAN, IMAGES))}
    for options in OTHERS.values():
        found.add(
            str(runs.default_folder(options.get("plan", PLAN), options.get("images", IMAGES)))
        )
    assert len(found) == len(OTHERS)  # all but that with other shards, which the default decides
    assert all(name.startswith(os.path.join("runs", "verify-")) for name in found)


def test_other_versions_and_threads_make_another_run(tmp_path, monkeypatch):
    run(tmp_path)
    monkeypatch.setattr("adjoint_lib.experiments.machine.threads", lambda: 99)
    with pytest.raises(al.InputError, match=r"threads .* there, 99 now"):
        run(tmp_path)
    monkeypatch.undo()
    honest = machine.versions()
    monkeypatch.setattr(machine, "versions", lambda: {**honest, "tensorflow": "1.0"})
    with pytest.raises(al.InputError, match=r"version of tensorflow .* there, .1\.0. now"):
        run(tmp_path)


def test_a_worker_with_other_versions_is_found_out(tmp_path):
    def elsewhere(plan, pieces, step):
        for first, record in runs.here(plan, pieces, step):
            yield first, {**record, "versions": {**record["versions"], "numpy": "1.0"}}

    with pytest.raises(al.AdjointError, match=r"numpy 1\.0"):
        run(tmp_path, compute=elsewhere)
    assert not shards(tmp_path)


def half_done(folder, **changed):
    """A folder with the first of three shards, whose record is changed."""
    run(folder)
    for path in shards(folder)[1:]:
        path.unlink()
    (first,) = shards(folder)
    content = json.loads(first.read_text())
    del content["sha256"]
    for key, value in changed.items():
        content["record"].pop(key)
        content["record"] |= {} if value is None else {key: value}
    first.write_bytes(runs._json({"sha256": runs._digest(content), **content}))


def test_a_folder_is_not_continued_where_sums_are_rounded_differently(tmp_path, monkeypatch):
    """It was, in silence: with ONEDNN_MAX_CPU_ISA set, or on another machine."""
    half_done(tmp_path)
    kept = {path: path.read_bytes() for path in tmp_path.iterdir()}
    honest = machine.processor()
    other = {"name": "another", "rounding": "0" * 12}
    monkeypatch.setattr(machine, "processor", lambda: other)
    with pytest.raises(al.InputError, match=r"rounds .* differently .*another.*ONEDNN_MAX"):
        run(tmp_path)
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == kept
    monkeypatch.setattr(machine, "processor", lambda: {**honest, "name": "one that rounds alike"})
    assert run(tmp_path).report == WHOLE
    monkeypatch.setattr(machine, "processor", lambda: other)
    outcome = run(tmp_path)  # all is there: it is read, and says who computed it
    assert outcome.report == WHOLE and outcome.processor["rounding"] == honest["rounding"]


def test_workers_that_round_differently_are_found_out(tmp_path):
    def elsewhere(plan, pieces, step):
        for first, record in runs.here(plan, pieces, step):
            yield first, {**record, "processor": {"name": "new", "rounding": str(first)}}

    with pytest.raises(al.InputError, match=r"rounds .* differently .*new"):
        run(tmp_path, compute=elsewhere)
    assert len(shards(tmp_path)) == 1


def test_shards_that_do_not_say_how_they_were_rounded_are_read_but_not_continued(tmp_path):
    half_done(tmp_path / "half", processor=None)
    with pytest.raises(al.InputError, match=r"earlier versions.*name another folder"):
        run(tmp_path / "half")
    whole = tmp_path / "whole"
    half_done(whole, processor=None)
    run(tmp_path / "new")
    for path in shards(tmp_path / "new")[1:]:
        shutil.copy(path, whole)
    outcome = run(whole)
    assert outcome.report == WHOLE and outcome.processor is None


def test_an_unreadable_manifest_is_an_error_with_the_remedy(tmp_path):
    (tmp_path / "run.json").write_text("{")
    with pytest.raises(al.DataError, match="remove this one"):
        run(tmp_path)


def test_a_full_disk_keeps_what_was_done(tmp_path, monkeypatch):
    replace, calls = os.replace, []

    def full(source, target):
        calls.append(target)
        if len(calls) == 3:  # the manifest and one shard come before
            raise OSError(28, "No space left on device")
        replace(source, target)

    monkeypatch.setattr("os.replace", full)
    with pytest.raises(al.DataError, match=r"No space left.*Finished shards are kept"):
        run(tmp_path)
    assert names(tmp_path) == {"run.json", "shard-000000.json"}
    monkeypatch.undo()
    assert run(tmp_path).report == WHOLE


# ---- the real command


def test_a_command_killed_and_interrupted_in_mid_run_ends_with_the_same_report(tmp_path):
    """kill -9, then Ctrl-C, then to the end; against a run in one go in this process."""
    model, folder = tiny_model(), tmp_path / "run"
    model.save(tmp_path / "tiny.keras")
    command = ["verify", "--file", "tiny.keras", "--images", 40, "--folder", "run", "--json"]
    for number, code in ((signal.SIGKILL, -signal.SIGKILL), (signal.SIGINT, 130)):
        already = len(shards(folder))
        process = start(*command, folder=tmp_path)
        wait_for(lambda before=already: len(shards(folder)) > before, process)
        process.send_signal(number)
        out, err = process.communicate(timeout=300)
        assert (process.returncode, out) == (code, "")
        assert 0 < len(shards(folder)) < 5
    assert "shards were done before: going on" in err
    assert "the same command goes on" in err.splitlines()[-1] and "Traceback" not in err
    found = report_of(start(*command, folder=tmp_path))
    images = al.data.sample("cifar10")[0][:40]
    assert found == al.verify(al.equivalent(model), images, progress=False).to_dict()
    assert len(shards(folder)) == 5
