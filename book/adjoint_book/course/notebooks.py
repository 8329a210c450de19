"""Two editions of each chapter: one without solutions to hand out, one with all to mark by.

Both carry nbgrader's metadata, so that a lecturer who works with it can take the instructor's
edition as a source; its own `generate_assignment` makes of it what the student's edition is.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from adjoint_book.course.parts import Build, part
from adjoint_book.course.sheet import (
    Exercise,
    Question,
    cells_of,
    exercises_of,
    is_solution,
    questions_of,
)
from adjoint_book.course.variants import OWN

PAGES = re.compile(r"\]\((?:\./)?([\w-]+\.md)(?:#[\w-]*)?\)")
WORDS = "*Your answer, in words.*"

STUDENT = "0000000"  # whose numbers the instructor's edition has

Cell = dict[str, Any]


@dataclass(frozen=True)
class Task:
    """What is marked by program: the check, the name of the answer that it reads, and its worth."""

    check: str
    name: str
    number: str
    title: str
    points: int


def tasks_of(path: Path) -> list[Task]:
    """What is marked of a chapter: its exercises, and the one with everybody's own numbers."""
    tasks = [
        Task(each.check, each.name, each.number, each.title, each.points)
        for each in exercises_of(cells_of(path))
    ]
    own = OWN.get(_subject(path))
    if own is not None:
        tasks.append(Task(_own_check(path), "answer", "of your own:", own.title, own.points))
    return tasks


@part("notebooks", "each chapter without solutions, and with them")
def notebooks(build: Build) -> None:
    """Write both editions of each chapter, and the pages that they link to."""
    students, lecturer = build.students("notebooks"), build.lecturer("notebooks")
    linked: set[str] = set()
    for path in sorted(build.book.glob("[0-9][0-9]-*.ipynb")):
        for folder, cells in ((students, student(path)), (lecturer, instructor(path))):
            write(folder / path.name, cells)
            for cell in cells:
                linked |= set(PAGES.findall(cell["source"]))
    for page in sorted(linked):
        if (build.book / page).is_file():
            for folder in (students, lecturer):
                shutil.copyfile(build.book / page, folder / page)


def student(path: Path) -> list[Cell]:
    """The cells of the student's edition: no solutions, no outputs, room for answers."""
    cells = cells_of(path)
    tasks = {task.cell: task for task in exercises_of(cells)}
    made: list[Cell] = []
    for position, cell in enumerate(cells):
        if position in tasks:
            made += [_answer(tasks[position], tasks[position].before), _check(tasks[position])]
        elif not is_solution(cell):
            made += _with_questions(cell, _room) if cell["cell_type"] == "markdown" else [cell]
    return [_bare(cell) for cell in _with_own(made, path, solved=False)]


def instructor(path: Path) -> list[Cell]:
    """The cells of the instructor's edition: solutions, expected answers and rubrics."""
    cells = cells_of(path)
    tasks = {task.cell: task for task in exercises_of(cells)}
    made: list[Cell] = []
    for position, cell in enumerate(cells):
        if position in tasks:
            task = tasks[position]
            solved = f"### BEGIN SOLUTION\n{task.solution}\n### END SOLUTION"
            made += [_answer(task, f"{task.before}\n{solved}"), _check(task, hidden=True)]
        elif not is_solution(cell):
            made += _with_questions(cell, _rubric) if cell["cell_type"] == "markdown" else [cell]
    return _with_own(made, path, solved=True)


def write(path: Path, cells: list[Cell], **metadata: Any) -> None:
    """Write cells as a notebook; the same cells give the same bytes."""
    path.write_text(text(cells, **metadata), encoding="utf-8")


def text(cells: list[Cell], **metadata: Any) -> str:
    """Cells as the text of a notebook."""
    notebook = {
        "cells": [{**cell, "source": cell["source"].splitlines(keepends=True)} for cell in cells],
        "metadata": {
            "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
            "language_info": {"name": "python"},
            **metadata,
        },
        "nbformat": 4,
        "nbformat_minor": 5,
    }
    return json.dumps(notebook, indent=1, ensure_ascii=False, sort_keys=True) + "\n"


def code(name: str, source: str, **metadata: Any) -> Cell:
    """A code cell that was not run."""
    return {
        "cell_type": "code",
        "execution_count": None,
        "id": name,
        "metadata": metadata,
        "outputs": [],
        "source": source,
    }


def markdown(name: str, source: str, **metadata: Any) -> Cell:
    """A cell of text."""
    return {"cell_type": "markdown", "id": name, "metadata": metadata, "source": source}


def _with_own(cells: list[Cell], path: Path, solved: bool) -> list[Cell]:
    """The cells, and after the last exercise the one with everybody's own numbers."""
    own = OWN.get(_subject(path))
    marked = [i for i, cell in enumerate(cells) if _is_checked(cell)]
    if own is None or not marked:
        return cells
    name = _own_check(path).replace("_", "-")
    solution = f"\n### BEGIN SOLUTION\n{own.solution}\n### END SOLUTION" if solved else ""
    hidden = (
        "\n### BEGIN HIDDEN TESTS\n"
        'assert book.course.verdict(task.check, answer) == "right"\n### END HIDDEN TESTS'
        if solved
        else ""
    )
    graded = _nbgrader(f"{name}-check", points=own.points, locked=True)
    more = [
        markdown(
            f"{name}-text",
            f"### Exercise with your own numbers: {own.title}\n\n*Medium, 10 minutes.*\n\n"
            "Everybody has other numbers here, drawn from the student number that you hand in "
            "under.\nPut it between the quotation marks.",
        ),
        code(
            f"{name}-task",
            f'student = "{STUDENT}"  # your student number\n'
            f'task = book.course.own("{_subject(path)}", student)\ntask',
        ),
        code(
            name,
            f"answer = None  # {own.expects}{solution}",
            nbgrader=_nbgrader(name, solution=True),
        ),
        code(f"{name}-check", f"task.check(answer){hidden}", nbgrader=graded),
    ]
    return [*cells[: marked[-1] + 1], *more, *cells[marked[-1] + 1 :]]


def _is_checked(cell: Cell) -> bool:
    return cell["cell_type"] == "code" and cell["metadata"].get("nbgrader", {}).get("grade", False)


def _subject(path: Path) -> str:
    """The name of a chapter without its number, which may change."""
    return path.stem[3:]


def _own_check(path: Path) -> str:
    return f"own_{_subject(path).replace('-', '_')}"


def _answer(task: Exercise, source: str) -> Cell:
    return code(_name(task), source, nbgrader=_nbgrader(_name(task), solution=True))


def _check(task: Exercise, hidden: bool = False) -> Cell:
    """The cell that calls the check; for nbgrader it has to raise unless the answer is right."""
    asked = (
        f'assert book.course.verdict(book.exercises.{task.check}, {task.name}) == "right"'
        if hidden
        else ""
    )
    source = task.call
    if hidden:
        source += f"\n### BEGIN HIDDEN TESTS\n{asked}\n### END HIDDEN TESTS"
    name = f"{_name(task)}-check"
    return code(name, source, nbgrader=_nbgrader(name, points=task.points, locked=True))


def _name(task: Exercise) -> str:
    return task.check.replace("_", "-")


def _nbgrader(
    name: str, points: int | None = None, solution: bool = False, locked: bool = False
) -> dict[str, Any]:
    """The metadata of a cell in nbgrader's third schema."""
    found: dict[str, Any] = {
        "schema_version": 3,
        "grade_id": name,
        "grade": points is not None,
        "locked": locked,
        "solution": solution,
        "task": False,
    }
    return found if points is None else {**found, "points": points}


def _with_questions(cell: Cell, answer: Any) -> list[Cell]:
    """A cell of text, cut after each open question, where `answer` says what stands below it."""
    questions = questions_of([cell])
    if not questions:
        return [cell]
    return list(_cut(cell, questions, answer))


def _cut(cell: Cell, questions: list[Question], answer: Any) -> Iterator[Cell]:
    rest = cell["source"].replace(
        "No program can mark these; below each stands what an answer should have.",
        "No program can mark these.",
    )
    for question in questions:
        before, _, after = rest.partition(f"### Question {question.number}:")
        text, _, rest = after.partition("</details>")
        text = text.partition("<details>")[0].rstrip()
        lead = f"{before.strip()}\n\n" if before.strip() else ""
        yield markdown(f"{question.name}-text", f"{lead}### Question {question.number}:{text}")
        yield from answer(question)
    if rest.strip():
        yield markdown(f"{cell['id']}-rest", rest.strip())


def _room(question: Question) -> list[Cell]:
    graded = _nbgrader(question.name, points=question.points, solution=True)
    return [markdown(question.name, WORDS, nbgrader=graded)]


def _rubric(question: Question) -> list[Cell]:
    graded = _nbgrader(question.name, points=question.points, solution=True)
    points = re.sub(r"^- ", "- **1 point:** ", question.expected, flags=re.M)
    return [
        markdown(
            question.name,
            f"**What an answer should have** ({question.points} points)\n\n{points}\n\n"
            "Half a point for what is stated and not argued; none is lost for other words, or for "
            "another argument that holds.",
            nbgrader=graded,
        )
    ]


def _bare(cell: Cell) -> Cell:
    """The cell without its outputs."""
    if cell["cell_type"] != "code":
        return cell
    return {**cell, "outputs": [], "execution_count": None}
