"""The folder of a run: claimed by one process, of one run, with whole files."""

import os
import threading

import pytest

from adjoint_lib.errors import DataError, InputError
from adjoint_lib.experiments.run_folder import LISTED, RunFolder


def claimed(path):
    return RunFolder.claimed(path, kept="What was done is kept")


def test_a_folder_is_made_and_cleared_of_what_a_killed_process_left(tmp_path):
    with claimed(tmp_path / "a" / "b") as folder:
        (folder.path / "file.1.partial").touch()
    with claimed(folder.path) as folder:
        assert not list(folder.path.glob("*.partial"))


def test_a_folder_that_cannot_be_made_is_refused_in_words(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match=r"file: expected a folder for the run .*Name another"):
        claimed(tmp_path / "file").__enter__()


def test_a_second_claim_waits_for_the_first(tmp_path, capsys):
    order = []

    def second():
        with claimed(tmp_path):
            order.append("second")

    with claimed(tmp_path):
        thread = threading.Thread(target=second)
        thread.start()
        thread.join(0.3)
        order.append("first")
    thread.join()
    assert order == ["first", "second"]
    assert f"Waiting for another process to release {tmp_path}" in capsys.readouterr().err


FACTS = {"seed": 0, "recipe": {"name": "fast", "sizes": (8, 32), "decay": None}}
STORED = {"seed": 0, "recipe": {"name": "fast", "sizes": [8, 32], "decay": None}}


def test_the_same_run_goes_on_whatever_else_was_noted(tmp_path):
    with claimed(tmp_path) as folder:
        folder.require_same(STORED | {"noted by another version": 1}, FACTS)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"seed": 1}, "another run: seed 1 there, 0 now. Name"),
        (
            {"recipe": STORED["recipe"] | {"name": "slow"}},
            "run: recipe name 'slow' there, 'fast' now",
        ),
        (
            {"recipe": {"name": "fast", "sizes": [8, 32]}},
            "run: recipe decay absent there, None now",
        ),
        ({"recipe": STORED["recipe"] | {"l2": 1}}, "run: recipe l2 1 there, absent now"),
        ({"recipe": "fast"}, "run: recipe 'fast' there, {'name'"),
    ],
)
def test_another_run_is_refused_with_what_differs(change, told, tmp_path):
    with claimed(tmp_path) as folder, pytest.raises(InputError) as info:
        folder.require_same(STORED | change, FACTS)
    assert told in str(info.value)


def test_a_long_list_of_differences_is_cut(tmp_path):
    many = {f"key {number}": number for number in range(LISTED + 3)}
    with claimed(tmp_path) as folder, pytest.raises(InputError, match=r"; and 3 more\. Name"):
        folder.require_same(dict.fromkeys(many), many | {"key 0": None, "other": 1})


def test_a_full_disk_leaves_the_file_as_it_was_and_says_what_to_do(tmp_path, monkeypatch):
    def full(source, target):
        raise OSError(28, "No space left on device")

    with claimed(tmp_path) as folder:
        folder.write("file", b"before")
        monkeypatch.setattr(os, "replace", full)
        with pytest.raises(DataError, match=r"file: .*No space left.*What was done is kept: make"):
            folder.write("file", b"after")
        assert (tmp_path / "file").read_bytes() == b"before"
        assert not list(tmp_path.glob("*.partial"))
