"""The exercises and open questions of a chapter, read from the cells of its notebook."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from adjoint_lib._storage import decoding, read_json

POINTS = {"Easy": 1, "Medium": 2, "Hard": 3}
CALL = re.compile(r"^book\.exercises\.(check_\w+)\((\w+)\b.*\)$", re.M)
EXERCISE = re.compile(
    r"^### Exercise ([\d.]+): (.+)\n+\*(Easy|Medium|Hard), (\d+) minutes\.\*", re.M
)
QUESTION = re.compile(
    r"^### Question (?P<number>[\d.]+): (?P<title>[^\n]+)\n+"
    r"\*(?P<level>Easy|Medium|Hard), (?P<minutes>\d+) minutes\.\*\n+"
    r"(?P<text>.*?)\n*<details>\n<summary>What an answer should have</summary>\n+"
    r"(?P<expected>.*?)\n+</details>",
    re.M | re.S,
)


@dataclass(frozen=True)
class Exercise:
    """An exercise that a check marks.

    Attributes:
        number: as in its heading, such as "3.1".
        title: its heading.
        level: "Easy", "Medium" or "Hard".
        minutes: how long it takes.
        check: the name of its check.
        name: the name of the variable that the check reads.
        before: the code of the cell for the answer, up to the call of the check.
        call: the call of the check.
        solution: the code that answers it, without that call.
        cell: the position of the cell for the answer in the notebook; its solution follows.
    """

    number: str
    title: str
    level: str
    minutes: int
    check: str
    name: str
    before: str
    call: str
    solution: str
    cell: int

    @property
    def points(self) -> int:
        """What it is worth: 1, 2 or 3, by its level."""
        return POINTS[self.level]


@dataclass(frozen=True)
class Question:
    """A question that no program can mark: its text, and what an answer should have."""

    number: str
    title: str
    level: str
    minutes: int
    text: str
    expected: str

    @property
    def name(self) -> str:
        """A name for cells and files, such as "question-1-1"."""
        return f"question-{self.number.replace('.', '-')}"

    @property
    def points(self) -> int:
        """One for each thing that an answer should have."""
        return len(re.findall(r"^- ", self.expected, re.M)) or 1


def cells_of(path: Path) -> list[dict[str, Any]]:
    """The cells of a notebook, each with its source as one text."""
    said = "a notebook with cells", "Restore it from the repository."
    found = read_json(path, *said)
    with decoding(path, *said):
        return [{**cell, "source": "".join(cell["source"])} for cell in found["cells"]]


def exercises_of(cells: Sequence[dict[str, Any]]) -> list[Exercise]:
    """The exercises of a notebook, in order."""
    return list(_exercises(cells))


def questions_of(cells: Sequence[dict[str, Any]]) -> list[Question]:
    """The open questions of a notebook, in order."""
    return [
        Question(
            found["number"],
            found["title"],
            found["level"],
            int(found["minutes"]),
            found["text"],
            found["expected"],
        )
        for cell in cells
        if cell["cell_type"] == "markdown"
        for found in QUESTION.finditer(cell["source"])
    ]


def is_solution(cell: dict[str, Any]) -> bool:
    """Whether a cell holds the solution of an exercise."""
    return "hide-cell" in cell["metadata"].get("tags", []) and bool(CALL.search(cell["source"]))


def without_call(source: str) -> str:
    """Code without the call of a check."""
    return re.sub(r"\n{3,}", "\n\n\n", CALL.sub("", source)).strip()


def _exercises(cells: Sequence[dict[str, Any]]) -> Iterator[Exercise]:
    heading: re.Match[str] | None = None
    for position, cell in enumerate(cells):
        if cell["cell_type"] == "markdown":
            heading = next(iter(EXERCISE.finditer(cell["source"])), heading)
            continue
        call = CALL.search(cell["source"])
        if heading is None or not call or is_solution(cell):
            continue
        number, title, level, minutes = heading.groups()
        heading = None
        after = cells[position + 1] if position + 1 < len(cells) else None
        solved = after is not None and is_solution(after)
        yield Exercise(
            number,
            title,
            level,
            int(minutes),
            call[1],
            call[2],
            without_call(cell["source"]),
            call[0],
            without_call(after["source"]) if after is not None and solved else "",
            position,
        )
