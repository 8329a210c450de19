"""Runs the code of one submitted notebook, in a process that can do little harm.

It reads a job from one descriptor and writes to another what became of each exercise: the value of
the answer as plain data, or why there is none. Nothing that it says is trusted; the checks run
elsewhere. Of the chapter's own cells it runs those that the student's cells need.
"""

from __future__ import annotations

import ast
import io
import json
import re
import signal
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from functools import partial
from typing import Any, NamedTuple

from adjoint_book.course.grading.channel import Channel
from adjoint_book.course.grading.plain import decode, encode
from adjoint_book.course.sheet import without_call

MOST_SAID = 400  # characters of what an error says
MOST_PRINTED = 10_000  # characters of what a function prints
MOST_CELLS = 2000
HEADING = re.compile(r"^##+ ", re.M)

Cell = dict[str, Any]


class TooLong(BaseException):
    """A cell ran longer than it may; no Exception, so that no cell catches it by accident."""


class Session:
    """The names that the cells of a notebook share, and a way to run one cell.

    Args:
        seconds: of the processor's time, for a cell.
        patience: times as long a cell may take by the clock.
    """

    def __init__(self, seconds: float, patience: float):
        from IPython.core.interactiveshell import InteractiveShell

        self.timers = {
            signal.SIGPROF: (signal.ITIMER_PROF, seconds),
            signal.SIGALRM: (signal.ITIMER_REAL, seconds * patience),
        }
        self.shell = InteractiveShell.instance(colors="NoColor")
        self.shell.history_manager.enabled = False

    @property
    def names(self) -> dict[str, Any]:
        """What the cells have defined."""
        return self.shell.user_ns

    def run(self, source: str) -> str:
        """Run a cell; returns what went wrong, or nothing."""
        try:
            with self._in_time(), redirect_stdout(io.StringIO()):
                found = self.shell.run_cell(source, store_history=False)
        except TooLong as error:
            return _said(error)
        raised = found.error_before_exec or found.error_in_exec
        return "" if raised is None else _said(raised)

    def call(self, function: Any, arguments: Sequence[Any]) -> dict[str, Any]:
        """Call a student's function; returns what it gave or raised, as plain data."""
        try:
            with self._in_time(), redirect_stdout(io.StringIO()) as printed:
                value = function(*arguments)
            return {"value": encode(value), "printed": printed.getvalue()[:MOST_PRINTED]}
        except BaseException as error:
            said = _said(error) if isinstance(error, TooLong) else _text(error)
            return {"raised": type(error).__name__[:80], "said": said}

    @contextmanager
    def _in_time(self) -> Iterator[None]:
        def stop(number: int, frame: Any) -> None:
            raise TooLong(f"{self.timers[signal.Signals(number)][1]:g}")

        for number, (timer, seconds) in self.timers.items():
            signal.signal(number, stop)
            signal.setitimer(timer, seconds, 1)
        try:
            with redirect_stderr(io.StringIO()):
                yield
        finally:
            for timer, _ in self.timers.values():
                signal.setitimer(timer, 0)


def main() -> None:
    """Take the job from descriptor 3, and answer on descriptor 4."""
    channel = Channel(3, 4)
    until = time.monotonic() + 24 * 3600  # whoever started this process ends it in time
    channel.send({"ready": True}, until)
    job = channel.receive(until)
    try:
        cells = _cells(job["submission"])
        places = placed(cells, job["tasks"])
    except Exception as error:  # whatever it is that was handed in
        channel.send({"unreadable": f"{type(error).__name__}: {_text(error)}"}, until)
        return
    session = Session(job["cell_seconds"], job["patience"])
    session.run(job["prelude"])
    own = student_cells(cells, job["chapter"], places)
    chosen = needed(cells, own) if not job["whole"] else set(range(len(cells)))
    by_place = {places[task["check"]]: task for task in job["tasks"] if task["check"] in places}
    HandIns(channel, session, until).walk(cells, chosen, own, by_place)
    channel.send({"done": True}, until)


class HandIns:
    """Runs the cells in order, and hands in each answer before the next exercise begins."""

    def __init__(self, channel: Channel, session: Session, until: float):
        self.channel, self.session, self.until = channel, session, until
        self.task: dict[str, Any] | None = None
        self.wrong = ""
        self.assigned: set[str] = set()

    def walk(
        self,
        cells: Sequence[Cell],
        chosen: set[int],
        own: set[int],
        tasks: dict[int, dict[str, Any]],
    ) -> None:
        """Run the chosen cells."""
        for position, cell in enumerate(cells):
            if position in tasks or (
                cell["cell_type"] != "code" and HEADING.search(cell["source"])
            ):
                self.hand_in()
            if position in tasks:
                self.task = tasks[position]
                self.session.names[self.task["name"]] = None
            if position in chosen:
                wrong = self.session.run(without_call(cell["source"]))
                if self.task is not None and position in own:
                    self.wrong = wrong or self.wrong
                    self.assigned |= _names(cell["source"]).gives
        self.hand_in()

    def hand_in(self) -> None:
        """Send the answer, and run the functions in it for as long as the checks ask for it."""
        task, wrong, assigned = self.task, self.wrong, self.assigned
        self.task, self.wrong, self.assigned = None, "", set()
        if task is None:
            return
        value = self.session.names.get(task["name"])
        others = sorted(assigned - {task["name"]})[:5] if value is None else []
        message = {"check": task["check"], "answer": encode(value), "wrong": wrong}
        self.channel.send({**message, "others": others}, self.until)
        while "call" in (asked := self.channel.receive(self.until)):
            arguments = [
                decode(argument, partial(self.ask_back, number))
                for number, argument in enumerate(asked["call"])
            ]
            self.channel.send(self.session.call(value, arguments), self.until)

    def ask_back(self, number: int, *arguments: Any) -> Any:
        """What a function gives that the check handed over as this argument."""
        asked = [encode(argument) for argument in arguments]
        self.channel.send({"callback": number, "with": asked}, self.until)
        return decode(self.channel.receive(self.until)["back"])


# ------------------------------------------------------------------ which cells


def placed(cells: Sequence[Cell], tasks: Iterable[dict]) -> dict[str, int]:
    """Where the cell for the answer of each task is; those that were deleted have no place.

    It is known by nbgrader's metadata, by its own id, or by the call of its check.
    """
    found: dict[str, int] = {}
    for task in tasks:
        check, name = task["check"], task["check"].replace("_", "-")
        for position, cell in enumerate(cells):
            marked = cell["metadata"].get("nbgrader")
            known = marked.get("grade_id") if isinstance(marked, dict) else None
            if name in (known, cell.get("id")):
                found[check] = position
                break
        else:
            calls = [i for i, c in enumerate(cells) if f"exercises.{check}(" in c["source"]]
            if calls and "=" in cells[calls[0]]["source"].split(check)[0]:
                found[check] = calls[0]
    return found


def student_cells(
    cells: Sequence[Cell], chapter: Sequence[str], places: dict[str, int]
) -> set[int]:
    """Which cells are not the chapter's own: those of answers, changed ones and new ones."""
    known = {text.strip() for text in chapter}
    return {
        position
        for position, cell in enumerate(cells)
        if cell["cell_type"] == "code"
        and not _is_locked(cell)
        and (position in places.values() or cell["source"].strip() not in known)
    }


def needed(cells: Sequence[Cell], own: set[int]) -> set[int]:
    """The cells to run: the student's, and the chapter's that define what these use."""
    uses = {
        position: _names(cell["source"])
        for position, cell in enumerate(cells)
        if cell["cell_type"] == "code" and (position in own or not _is_setup(cell))
    }
    imported = set().union(*(found.imports for found in uses.values()), {"book", "al"})
    generators = set().union(*(found.generators for found in uses.values()))
    chosen = own & set(uses)
    wanted = set().union(*(uses[position].reads for position in chosen))
    while more := {
        position
        for position, found in uses.items()
        if position not in chosen
        and (wanted & (found.gives | found.changes - imported | found.reads & generators))
    }:
        chosen |= more
        wanted |= set().union(*(uses[position].reads for position in more))
    return chosen


class Names(NamedTuple):
    """The names in a cell: read, given a value, changed, imported, and random generators."""

    reads: set[str]
    gives: set[str]
    changes: set[str]
    imports: set[str]
    generators: set[str]


def _names(source: str) -> Names:
    found = Names(set(), set(), set(), set(), set())
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return found  # it may have magic commands; running it says what is wrong
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            (found.reads if isinstance(node.ctx, ast.Load) else found.gives).add(node.id)
        elif isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            found.gives.add(node.name)
        elif isinstance(node, ast.alias):
            found.gives.add(name := (node.asname or node.name).split(".")[0])
            found.imports.add(name)
        elif isinstance(node, (ast.Attribute, ast.Subscript)):
            if not isinstance(node.ctx, ast.Load):
                found.changes.update(_base(node))
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
            if isinstance(node.value.func, ast.Attribute):
                found.changes.update(_base(node.value.func))
        elif isinstance(node, ast.Assign) and "default_rng" in ast.dump(node.value)[:400]:
            found.generators.update(*(_base(target) for target in node.targets))
    return found


def _base(node: ast.AST) -> set[str]:
    """The name at the root of a.b[c]."""
    while isinstance(node, (ast.Attribute, ast.Subscript)):
        node = node.value
    return {node.id} if isinstance(node, ast.Name) else set()


def _is_locked(cell: Cell) -> bool:
    marked = cell["metadata"].get("nbgrader")
    return isinstance(marked, dict) and bool(marked.get("locked"))


def _is_setup(cell: Cell) -> bool:
    return "setup" in (cell["metadata"].get("tags") or [])


# ------------------------------------------------------------------ what was handed in


def _cells(path: str) -> list[Cell]:
    """The cells of a notebook, each with its source as one text."""
    with open(path, encoding="utf-8") as file:
        found = json.load(file)["cells"]
    cells = []
    for cell in found[:MOST_CELLS]:
        metadata = cell.get("metadata")
        cells.append(
            {
                "cell_type": cell["cell_type"],
                "id": cell.get("id"),
                "metadata": metadata if isinstance(metadata, dict) else {},
                "source": "".join(cell["source"]),
            }
        )
    return cells


def _said(error: BaseException) -> str:
    """What went wrong in a cell, in one line."""
    where = getattr(error, "lineno", None)
    line = f" in line {where}" if isinstance(error, SyntaxError) and where else ""
    if isinstance(error, TooLong):
        return f"it ran longer than {error} seconds, and was stopped"
    return f"{type(error).__name__}{line}: {_text(error)}"


def _text(error: BaseException) -> str:
    try:
        said = error.msg if isinstance(error, SyntaxError) else error  # without a file's name
        return " ".join(str(said).split())[:MOST_SAID]
    except Exception:  # an error of a stranger's own class
        return "no message"


if __name__ == "__main__":
    main()
