"""What the chapters say of themselves, and courses made of them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from adjoint_lib._storage import decoding, read_json
from adjoint_lib.core.tables import Table
from adjoint_lib.errors import DataError, InputError


@dataclass(frozen=True)
class Chapter:
    """What the notebook of a chapter says in its overview, and what exercises it has.

    Attributes:
        number: the number of the chapter, as in the name of its file.
        file: the name of the notebook, without its ending.
        title: the first heading of the notebook.
        minutes: how long it takes to read and try the chapter, without its exercises.
        needs: the numbers of the chapters that it names under "You need".
        exercises: the name of the check, by the title of the exercise.
    """

    number: int
    file: str
    title: str
    minutes: int
    needs: tuple[int, ...]
    exercises: dict[str, str]


def chapters(folder: str | Path | None = None) -> Table:
    """The chapters in a folder of notebooks, by default the one that the book is in."""
    paths = sorted((Path(folder) if folder else book_folder()).glob("[0-9][0-9]-*.ipynb"))
    found = [_read(path) for path in paths if not path.name.startswith("00")]
    if not found:
        raise DataError(f"{folder}: expected notebooks such as 01-adjoints.ipynb, found none.")
    return Table(
        ["chapter", "minutes", "exercises", "needs"],
        found,
        lambda chapter: [
            f"{chapter.number} {chapter.title}",
            str(chapter.minutes),
            str(len(chapter.exercises)),
            ", ".join(map(str, chapter.needs)) or "none",
        ],
    )


def way_to(chapters: Sequence[Chapter], goals: Iterable[int]) -> list[int]:
    """The numbers of all chapters to be read for those in `goals`, these included, in order.

    Args:
        chapters: the chapters to choose from, as the function `chapters` gives them.
        goals: the numbers of the chapters that are to be understood.
    """
    by_number = {chapter.number: chapter for chapter in chapters}
    found: set[int] = set()
    waiting = list(goals)
    while waiting:
        number = waiting.pop()
        if number not in found:
            found.add(number)
            waiting += _chapter(by_number, number).needs
    return sorted(found)


def sessions(
    chapters: Sequence[Chapter], plan: Mapping[str, Sequence[int]], per_exercise: int = 5
) -> Table:
    """A course as a table: for each session its chapters, and the minutes they take.

    Args:
        chapters: the chapters to choose from, as the function `chapters` gives them.
        plan: the numbers of the chapters of each session, by its name.
        per_exercise: minutes for one exercise.
    """
    by_number = {chapter.number: chapter for chapter in chapters}
    rows = []
    for name, numbers in plan.items():
        chosen = [_chapter(by_number, number) for number in numbers]
        words = "; ".join(f"{chapter.number} {chapter.title}" for chapter in chosen)
        reading = sum(chapter.minutes for chapter in chosen)
        doing = per_exercise * sum(len(chapter.exercises) for chapter in chosen)
        rows.append([name, words, str(reading), str(doing)])
    return Table(["session", "chapters", "minutes to read", "minutes for exercises"], rows)


def _chapter(by_number: Mapping[int, Chapter], number: int) -> Chapter:
    if number not in by_number:
        raise InputError(
            f"expected the number of a chapter, one of {', '.join(map(str, by_number))}; "
            f"got {number!r}."
        )
    return by_number[number]


def book_folder() -> Path:
    """The folder of the notebooks: this one, or the one that this package lies in."""
    places = [Path(), Path(__file__).resolve().parents[2]]
    for place in places:
        if any(place.glob("01-*.ipynb")):
            return place
    raise DataError(
        "expected the book's notebooks in this folder, found none. They are not part of the "
        "installed library: clone its repository, and name the folder `book` in it."
    )


def _read(path: Path) -> Chapter:
    """A chapter from its notebook."""
    said = "a notebook with cells", "Restore it from the repository."
    found = read_json(path, *said)
    with decoding(path, *said):
        texts = ["".join(cell["source"]) for cell in found["cells"]] or [""]
    title = re.match(r"# (.+)", texts[0])
    minutes = re.search(r"\*\*Time:\*\* (\d+) minutes", texts[0])
    needs = re.search(r"^> \*\*You need:\*\*(.*(?:\n> .*)*)", texts[0], re.M)
    if not (title and minutes and needs):
        raise DataError(
            f"{path.name}: expected its first cell to have a title and an overview with the lines "
            "'**Time:** N minutes ...' and '**You need:** ...'. Write them."
        )
    number = int(path.name[:2])
    linked = {int(n) for n in re.findall(r"\]\((?:\./)?(\d\d)-[\w.-]+\)", needs[1])}
    return Chapter(
        number,
        path.stem,
        title[1].strip(),
        int(minutes[1]),
        tuple(sorted(n for n in linked if 0 < n < number)),
        dict(_exercises(texts)),
    )


def _exercises(texts: list[str]) -> Iterable[tuple[str, str]]:
    """(title, check) of each exercise, in order."""
    title = None
    for text in texts:
        heading = re.search(r"^### Exercise [\d.]+: (.+)$", text, re.M)
        title = heading[1] if heading else title
        check = re.search(r"exercises\.(check_\w+)\(", text)
        if title and check:
            yield title, check[1]
            title = None
