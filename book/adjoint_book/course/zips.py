"""The two archives of a course: what students get, and what is for the lecturer alone."""

from __future__ import annotations

import re
import zipfile
from pathlib import Path

EARLIEST = (1980, 1, 1, 0, 0, 0)  # that a zip can say; so the same files give the same bytes

STUDENTS = """# The course

Begin with `plans/`, which says what is read when. `notebooks/` are the chapters, without solutions.
`quizzes/` and `slides/` open in any browser, without a network. `projects/` has what to begin a
project with.

The notebooks need the book's library. In Colab, their first cell installs it. Elsewhere, install it
once, in this folder, with Python 3.10 to 3.13,

    python3 -m venv env
    env/bin/pip install "adjoint-lib[lab] @ git+{address}"

and open the notebooks with

    env/bin/jupyter lab notebooks

On Windows, `env\\Scripts\\` stands for `env/bin/`.

Put your answers where `answer = None` stands; the cell below says what it thinks of them. Put your
student number where `student = "0000000"` stands. Answer open questions below them, in words.
Hand in notebooks under the names that they have.
"""

LECTURER = """# The course, for the lecturer

`notebooks/` have the solutions, the expected answers to open questions and what each is worth. They
are also sources for nbgrader. `slides/` have notes and a clock (press S), and a PDF of each deck.
`quizzes/` are for Moodle (Question bank, Import, Moodle XML), all in `all-moodle.xml` or a chapter
at a time, and as text with a key. `plans/` are the syllabi that students get, `projects/` have
worked examples.

To mark, clone the book's repository, {address}, and call `make course` in it once, which also makes
its environment. Put what was handed in into a folder for each student, named after the number:

    submissions/2024001/01-adjoints.ipynb
    submissions/2024001/02-one-neuron.ipynb
    submissions/2024002/01-adjoints.ipynb

and run, in the clone,

    .venv/bin/python -m adjoint_book course grade submissions --output marks

The chapter "Teaching with this book" says what this protects from, and what it does not.
"""


def pack(output: Path, address: str) -> list[Path]:
    """Write both archives beside their folders, which are in `output`.

    Args:
        output: the folder of the material.
        address: of the book's repository.
    """
    for name, text in (("students", STUDENTS), ("lecturer", LECTURER)):
        (output / name / "README.md").write_text(text.format(address=address), encoding="utf-8")
    return [archive(output / name) for name in ("students", "lecturer")]


def archive(folder: Path) -> Path:
    """A zip of a folder, beside it; the same files give the same bytes."""
    path = folder.with_name(f"course-{folder.name}.zip")
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        for member in sorted(folder.rglob("*")):
            if member.is_file():
                entry = zipfile.ZipInfo(member.relative_to(folder).as_posix(), EARLIEST)
                entry.compress_type = zipfile.ZIP_DEFLATED
                entry.external_attr = 0o644 << 16
                file.writestr(entry, _undated(member))
    return path


def _undated(path: Path) -> bytes:
    """The content of a file; of a PDF, without the time at which it was printed."""
    content = path.read_bytes()
    if path.suffix != ".pdf":
        return content
    return re.sub(rb"\(D:\d{14}", b"(D:19800101000000", content)
