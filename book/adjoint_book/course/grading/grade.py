"""Marks a folder of submitted notebooks; see `grade`."""

from __future__ import annotations

import csv
import io
import json
import queue
import re
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any

from adjoint_book.course import notebooks
from adjoint_book.course.grading.channel import Silence
from adjoint_book.course.grading.processes import PATIENCE, Limits, Process, confined
from adjoint_book.course.marking import VERDICTS
from adjoint_book.course.notebooks import Task, student, tasks_of
from adjoint_lib._storage import replacing
from adjoint_lib.errors import AdjointError, InputError

MOST_BYTES = 20 << 20  # of a notebook
MARKING = Limits(seconds=24 * 3600, memory=6 << 30)
CHECKING = 300  # seconds for one check
PRELUDE = "import adjoint_book as book\nimport adjoint_lib as al"


@dataclass(frozen=True)
class Submission:
    """A notebook that was handed in: whose it is, and which chapter's."""

    student: str
    chapter: Path
    path: Path


@dataclass(frozen=True)
class Mark:
    """What an exercise of a submission is worth, and why."""

    student: str
    chapter: str
    exercise: str
    points: int
    out_of: int
    message: str


@dataclass
class Marked:
    """All marks of one submission.

    Attributes:
        marks: one for each exercise of the chapter.
        seconds: how long it took.
        held: which measures the system granted while its code ran.
    """

    marks: list[Mark]
    seconds: float
    held: dict[str, bool]


def grade(
    folder: Path,
    output: Path,
    book: Path,
    limits: Limits | None = None,
    workers: int = 1,
    whole: bool = False,
    say: Callable[[str], None] = lambda message: None,
) -> list[Marked]:
    """Mark all notebooks in a folder, and write marks and feedback.

    The code of each runs in a process of its own, confined as the system allows; the checks run in
    another, which gets the answers as plain data. No submission stops the others.

    Args:
        folder: has a folder for each student, with notebooks such as 01-adjoints.ipynb in it.
        output: gets marks.csv, how-it-ran.json and a file of feedback for each submission.
        book: the folder of the chapters.
        limits: what the code of one submission may use.
        workers: how many submissions run at a time.
        whole: run all cells of the chapter, not only those that the answers need.
        say: takes a line of progress.
    """
    found = submissions(folder, book)
    if not found:
        raise InputError(
            f"{folder}: expected folders of students with notebooks such as 01-adjoints.ipynb, "
            "found none."
        )
    waiting: queue.SimpleQueue[tuple[int, Submission]] = queue.SimpleQueue()
    for item in enumerate(found):
        waiting.put(item)
    results: dict[int, Marked] = {}

    def work(number: int) -> None:
        with Marker(book) as marker:
            while True:
                try:
                    place, submission = waiting.get_nowait()
                except queue.Empty:
                    return
                marked = one(submission, marker, limits or Limits(), number, whole)
                results[place] = marked
                points = sum(mark.points for mark in marked.marks)
                of = sum(mark.out_of for mark in marked.marks)
                say(
                    f"{len(results)} of {len(found)}: {submission.student}, "
                    f"{submission.path.name}: {points} of {of} points, {marked.seconds:.0f} s"
                )

    with ThreadPoolExecutor(workers) as pool:
        for running in [pool.submit(work, number) for number in range(min(workers, len(found)))]:
            running.result()
    ordered = [results[place] for place in sorted(results)]
    write(ordered, output, limits or Limits())
    missing = [name for name, held in measures(ordered).items() if not held]
    if missing:
        say(f"These measures were not in force: {', '.join(missing)}; see how-it-ran.json.")
    return ordered


def submissions(folder: Path, book: Path) -> list[Submission]:
    """The notebooks in folders of students, by whole paths; a student's are found at any depth."""
    chapters = {path.name[:2]: path for path in book.glob("[0-9][0-9]-*.ipynb") if tasks_of(path)}
    folder = folder.resolve()
    found = []
    for path in sorted(folder.glob("*/**/*.ipynb")):
        number = re.match(r"(\d\d)-", path.name)
        inside = path.relative_to(folder)
        if ".ipynb_checkpoints" in inside.parts or not number or number[1] not in chapters:
            continue
        found.append(Submission(inside.parts[0], chapters[number[1]], path))
    return found


def one(
    submission: Submission, marker: Marker, limits: Limits, number: int = 0, whole: bool = False
) -> Marked:
    """Mark one submission."""
    started = time.monotonic()
    tasks = tasks_of(submission.chapter)
    messages: dict[str, str] = {}
    held: dict[str, bool] = {}
    with _folder() as folder:
        why = _copied(submission.path, folder / "submission.ipynb")
        if not why:
            for name, edition in _editions(submission.chapter.parent).items():
                (folder / name).write_text(edition, encoding="utf-8")
            with confined("adjoint_book.course.grading.runner", folder, limits, number) as process:
                held = process.held
                job = {
                    "submission": str(folder / "submission.ipynb"),
                    "tasks": [{"check": task.check, "name": task.name} for task in tasks],
                    "chapter": _code(submission.chapter),
                    "prelude": PRELUDE,
                    "cell_seconds": limits.cell_seconds,
                    "patience": PATIENCE,
                    "whole": whole,
                }
                why = _converse(process, job, limits, marker, submission.student, messages)
    marks = [_mark(submission, task, messages.get(task.check, why)) for task in tasks]
    return Marked(marks, time.monotonic() - started, held)


def _converse(
    process: Process,
    job: dict[str, Any],
    limits: Limits,
    marker: Marker,
    student: str,
    messages: dict[str, str],
) -> str:
    """Let the submission run, and mark each answer as it comes; returns what to say of the rest."""
    patience = PATIENCE * limits.seconds
    until = time.monotonic() + patience
    try:
        process.channel.send(job, until)
        while True:
            found = process.channel.receive(until)
            if not isinstance(found, dict):
                return "not marked: the notebook's process sent nonsense."
            if "unreadable" in found:
                return f"not marked: this is no notebook ({found['unreadable']!s:.200})."
            if "check" not in found:
                return "not marked: the cell for its answer is missing from the notebook."
            check = str(found["check"])
            messages[check] = _verdict(found, marker, process, student, until)
            process.channel.send({"next": True}, until)
    except (Silence, Ended) as error:
        if process.excess:
            return f"not marked: the notebook was stopped, since {process.excess}."
        if "in time" in str(error):
            return f"not marked: the notebook was stopped after {patience:g} seconds."
        return f"not marked: the notebook ended its own process, or crashed ({error})."


def _verdict(
    found: dict[str, Any], marker: Marker, process: Process, student: str, until: float
) -> str:
    wrong, others = str(found.get("wrong") or "")[:600], found.get("others") or []
    answer = found.get("answer")
    if wrong:
        return f"not marked: the cell failed. {wrong}"
    if answer is None and others:
        listed = ", ".join(str(name)[:40] for name in list(others)[:5])
        return f"not answered: the cell does not set the name it was given, but {listed}."
    return marker.said(str(found["check"]), answer, student, process, until)


def _mark(submission: Submission, task: Task, message: str) -> Mark:
    text = " ".join(message.split())
    right = any(
        text.startswith(beginning) for beginning, word in VERDICTS.items() if word == "right"
    )
    return Mark(
        submission.student,
        submission.chapter.stem,
        f"{task.number} {task.title}",
        task.points if right else 0,
        task.points,
        text,
    )


class Ended(AdjointError):
    """The submission's process has ended in the middle of a check."""


class Marker:
    """The process that runs the checks; a new one takes its place when it fails.

    Args:
        book: the folder of the chapters, which it may read.
    """

    def __init__(self, book: Path) -> None:
        self._book = book
        self._process: Process | None = None
        self._folder = _folder()

    def __enter__(self) -> Marker:
        self._path = self._folder.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        self._stop()
        self._folder.__exit__(None, None, None)

    def said(self, check: str, answer: Any, student: str, submission: Process, until: float) -> str:
        """What the check says of an answer; what it asks of a function goes to the submission."""
        if self._process is None:
            self._process = Process(
                "adjoint_book.course.grading.marker", self._path, MARKING, 99, [self._book]
            )
        asked: dict[str, Any] = {"check": check, "answer": answer}
        if own := re.fullmatch(r"own_(\w+)", check):
            asked = {"own": own[1].replace("_", "-"), "student": student, "answer": answer}
        patience = time.monotonic() + CHECKING
        try:
            self._process.channel.send(asked, patience)
            while "call" in (told := self._process.channel.receive(patience)):
                given = self._called(told, submission, min(until, patience))
                self._process.channel.send(given, patience)
        except Silence:
            self._stop()
            return "not marked: the check could not deal with this answer. Please look at it."
        if isinstance(answer, dict) and "model" in answer:
            self._stop()  # what was built of a stranger's description marks nobody else
        said = str(told["said"])
        if own and not said.startswith("Correct"):
            return f"{said} It was marked with the numbers of {student}."
        return said

    def _called(self, told: Any, submission: Process, until: float) -> Any:
        try:
            submission.channel.send(told, until)
            given = submission.channel.receive(until)
        except Silence as error:
            self._stop()
            raise Ended(str(error)) from error
        return given if isinstance(given, dict) else {}

    def _stop(self) -> None:
        if self._process is not None:
            self._process.close()
            self._process = None


# ------------------------------------------------------------------ files


def write(found: Sequence[Marked], output: Path, limits: Limits) -> None:
    """Write marks.csv, a file of feedback for each submission, and how it all ran."""
    output.mkdir(parents=True, exist_ok=True)
    marks = [mark for marked in found for mark in marked.marks]
    with replacing(output / "marks.csv") as file:
        lines = [["student", "chapter", "exercise", "points", "out of", "message"]]
        lines += [[_cell(value) for value in asdict(mark).values()] for mark in marks]
        text = io.StringIO()
        csv.writer(text, lineterminator="\n").writerows(lines)
        file.write(text.getvalue().encode())
    for marked in found:
        first = marked.marks[0]
        place = output / "feedback" / first.student
        place.mkdir(parents=True, exist_ok=True)
        (place / f"{first.chapter}.md").write_text(feedback(marked.marks), encoding="utf-8")
    ran = {
        "limits": asdict(limits),
        "measures": measures(found),
        "seconds": [round(marked.seconds, 1) for marked in found],
    }
    (output / "how-it-ran.json").write_text(json.dumps(ran, indent=1) + "\n", encoding="utf-8")


def measures(found: Sequence[Marked]) -> dict[str, bool]:
    """Which measures were held whenever the code of a submission ran."""
    return {
        name: all(marked.held.get(name, False) for marked in found if marked.held)
        for name in ("network", "processes", "files", "user")
    }


def feedback(marks: Sequence[Mark]) -> str:
    """What a student gets: points and a message for each exercise."""
    first = marks[0]
    points, of = sum(mark.points for mark in marks), sum(mark.out_of for mark in marks)
    lines = [f"# {first.chapter}: {points} of {of} points", "", first.student, ""]
    for mark in marks:
        lines += [f"## {mark.exercise}: {mark.points} of {mark.out_of}", ""]
        lines += [f"    {mark.message}", ""]
    return "\n".join(lines)


def _cell(value: Any) -> str:
    """A value for a table, which no spreadsheet takes for a formula."""
    text = str(value)
    return f"'{text}" if text[:1] in "=+-@\t" else text


@cache
def _editions(book: Path) -> dict[str, str]:
    """The chapters as students have them, without solutions, by the names of their files."""
    return {
        path.name: notebooks.text(student(path)) for path in sorted(book.glob("[0-9][0-9]-*.ipynb"))
    }


def _code(chapter: Path) -> list[str]:
    """The code of the chapter's own cells, as students get it."""
    return [cell["source"] for cell in student(chapter) if cell["cell_type"] == "code"]


def _copied(path: Path, to: Path) -> str:
    """Copy a notebook; returns why not, if it is none that can be."""
    if path.resolve() != path or not path.is_file():
        return "not marked: this is no ordinary file."
    if path.stat().st_size > MOST_BYTES:
        return f"not marked: the file is larger than {MOST_BYTES >> 20} MB. Clear its outputs."
    shutil.copyfile(path, to)
    to.chmod(0o644)
    return ""


@contextmanager
def _folder() -> Iterator[Path]:
    """A folder that is gone afterwards, with all that is in it."""
    with tempfile.TemporaryDirectory(prefix="course-", ignore_cleanup_errors=True) as name:
        yield Path(name).resolve()
