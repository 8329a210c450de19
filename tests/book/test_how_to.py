"""Every snippet of the page of ten tasks runs, on its own, and is as short as the page says."""

import contextlib
import io
import re

import pytest

from repository import text

TASKS = re.findall(r"^## (\d+)\. (.+?)\n\n```python\n(.*?)```", text("book/how-to.md"), re.M | re.S)


def test_there_are_ten_short_tasks():
    assert [int(number) for number, _, _ in TASKS] == list(range(1, 11))
    for _, title, code in TASKS:
        lines = [line for line in code.splitlines() if line and "import" not in line]
        assert len(lines) <= 10, title


@pytest.mark.parametrize("title, code", [task[1:] for task in TASKS], ids=[t[0] for t in TASKS])
def test_a_task_runs_on_its_own(title, code, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(code, title, "exec"), {})
    assert printed.getvalue().strip() or list(tmp_path.iterdir()), "it neither says nor writes"


def numbers(number: int, tmp_path, monkeypatch) -> list[float]:
    """The numbers that a task prints last on each line."""
    monkeypatch.chdir(tmp_path)
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(TASKS[number - 1][2], {})
    return [float(line.split()[-1]) for line in printed.getvalue().splitlines()]


def test_the_parts_of_a_score_add_up_to_it(tmp_path, monkeypatch):
    *parts, whole = numbers(2, tmp_path, monkeypatch)
    assert len(parts) == 7 and sum(parts) == pytest.approx(whole, abs=0.01)


def test_a_weighted_sum_is_reconstructed(tmp_path, monkeypatch):
    rebuilt, direct = numbers(7, tmp_path, monkeypatch)
    assert rebuilt == pytest.approx(direct, rel=1e-6)  # the images are float32
