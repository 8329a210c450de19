"""Projects: each a file `book/projects/NAME.md`, of which notebooks to begin with are made.

Fenced Python becomes code cells, the rest text. What stands below the heading "## A worked example"
goes to the lecturer only.
"""

from __future__ import annotations

import re
from pathlib import Path

from adjoint_book.course import notebooks
from adjoint_book.course.parts import Build, part

FENCE = re.compile(r"^```python\n(.*?)^```\n?", re.M | re.S)
EXAMPLE = "\n## A worked example\n"
SETUP = "import adjoint_book as book\nimport adjoint_lib as al"

RUBRIC = """## How a project is marked

Each line from 0 to 4 points: 0 missing, 1 begun, 2 done with gaps, 3 done, 4 done so that others
can build on it. A project of 15 points or more is good.

| | 0 to 4 points for |
|---|---|
| question | one sentence that can turn out false; why an answer matters |
| correctness | values held against another way to compute them; every test can fail |
| evidence | numbers with intervals, held against chance or a simpler way; no image chosen by hand |
| reproducible | runs from its first cell to its last on another machine, with seeds and versions |
| limits | what was not shown, and the likeliest way in which the conclusion is wrong |
"""


@part("projects", "seven projects with notebooks to begin with, three with a worked example")
def projects(build: Build) -> None:
    """Write the list, the rubric, a notebook for each project, and the worked examples."""
    students, lecturer = build.students("projects"), build.lecturer("projects")
    listed = ["# Projects", "", "For two or three people, three to five weeks.", ""]
    for path in sources(build.book):
        starter, example = parts_of(path)
        notebooks.write(students / f"{path.stem}.ipynb", cells_of(starter))
        whole = f"{starter}{EXAMPLE}{example}" if example else starter
        notebooks.write(lecturer / f"{path.stem}.ipynb", cells_of(whole))
        title, asked = starter.splitlines()[0].lstrip("# "), starter.split("\n\n")[1]
        listed += [f"- [{title}]({path.stem}.ipynb). {' '.join(asked.split())}"]
    for folder in (students, lecturer):
        text = "\n".join([*listed, "", RUBRIC])
        (folder / "README.md").write_text(text, encoding="utf-8")


def sources(book: Path) -> list[Path]:
    """The files of the projects."""
    return sorted((book / "projects").glob("*.md"))


def parts_of(path: Path) -> tuple[str, str]:
    """What students begin with, and the worked example, which may be empty."""
    starter, _, example = path.read_text(encoding="utf-8").partition(EXAMPLE)
    return starter, example


def cells_of(text: str) -> list[notebooks.Cell]:
    """Markdown with fenced Python as cells; the set-up stands before the first code."""
    cells: list[notebooks.Cell] = []
    for number, piece in enumerate(FENCE.split(text)):
        if not piece.strip():
            continue
        make = notebooks.code if number % 2 else notebooks.markdown
        cells.append(make(f"cell-{number}", piece.strip()))
    first = next((i for i, cell in enumerate(cells) if cell["cell_type"] == "code"), len(cells))
    return [*cells[:first], notebooks.code("setup", SETUP), *cells[first:]]


def code_of(text: str) -> list[str]:
    """The code in a project, without the set-up."""
    return FENCE.findall(text)
