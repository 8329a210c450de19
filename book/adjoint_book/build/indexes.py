"""The book's indexes, made from what they list: exercises, what the paper shows, references.

Each function returns Markdown; pages take it in by `<!-- index-of: NAME -->`. The bibliography, to
which notebooks link, is a file of its own, which this writes:

    python -m adjoint_book.build.indexes
"""

from __future__ import annotations

import json
import re
from pathlib import Path

from adjoint_book.build.reproduction import ROWS

# ------------------------------------------------------------------ exercises

EXERCISE = re.compile(
    r"^### (Exercise|Question) (\d+)\.(\d+): (.+)\n\n\*(Easy|Medium|Hard), (\d+) minutes\.\*$", re.M
)


def exercises(book: Path) -> str:
    """A link to every exercise and question, its chapter, how hard it is, and who checks it."""
    lines = ["| exercise | chapter | level | minutes | checked by |", "|---|---|---|---|---|"]
    for path in sorted(book.glob("*.ipynb")):
        cells = json.loads(path.read_text("utf-8"))["cells"]
        for at, cell in enumerate(cells):
            for match in EXERCISE.finditer("".join(cell["source"])):
                kind, chapter, count, title, level, minutes = match.groups()
                check = f"`{_first_check(cells[at:])}`" if kind == "Exercise" else "the reader"
                word = "" if kind == "Exercise" else "Question "
                link = f"[{word}{chapter}.{count} {title}](#{kind.lower()}-{chapter}-{count})"
                row = [link, f"[](./{path.name})", level.lower(), minutes, check]
                lines.append(f"| {' | '.join(row)} |")
    return "\n".join(lines)


def _first_check(cells: list[dict]) -> str:
    code = "\n".join("".join(c["source"]) for c in cells if c["cell_type"] == "code")
    found = re.search(r"check_\w+", code)
    return found[0] if found else ""


# ------------------------------------------------------------------ figures


def gallery(book: Path) -> str:
    """A small picture of every figure of the chapters."""
    from adjoint_book.build import gallery

    return gallery.page(book)


# ------------------------------------------------------------------ the paper


def figures(book: Path) -> str:
    """The paper's figures."""
    return _table("figure")


def tables(book: Path) -> str:
    """The paper's tables."""
    return _table("table")


def equations(book: Path) -> str:
    """The paper's algorithm and equations."""
    return _table("equation")


def _table(kind: str) -> str:
    header = ["in the paper", "paper's value", "ours", "on", "verdict", "command"]
    lines = [f"| {' | '.join(header)} |", "|---" * len(header) + "|"]
    for row in ROWS:
        if row.kind == kind:
            found = row.cells()
            cells = [f"[{row.title}](./{row.chapter}.ipynb)", found.paper, found.ours]
            cells += [found.on, found.verdict, ", ".join(f"`{c}`" for c in row.commands)]
            lines.append(f"| {' | '.join(_in_cell(cell) for cell in cells)} |")
    return "\n".join(lines)


KINDS = {"fig": "a figure", "eq": "an equation", "note": "a note"}  # by the beginning of a label


def promises(book: Path) -> str:
    """What the library promises, and the tests of it."""
    from adjoint_book.build import promises

    return promises.table()


def claims(book: Path) -> str:
    """The paper's claims, and what became of each."""
    from adjoint_book.build.claims import CLAIMS

    header = ["claim", "in the paper", "found", "the numbers", "shown by"]
    lines = [f"| {' | '.join(header)} |", "|---" * len(header) + "|"]
    for claim in CLAIMS:
        found = claim.find()
        cells = [claim.sentence, claim.place, f"**{found.verdict}**", found.numbers]
        kind = KINDS.get(claim.label.partition("-")[0], "a section")
        cells.append(f"[{kind}](#{claim.label})")
        lines.append(f"| {' | '.join(_in_cell(cell) for cell in cells)} |")
    return "\n".join(lines)


def _in_cell(text: str) -> str:
    """The text with its bars escaped, which would end a cell."""
    return text.replace("|", r"\|")


# ------------------------------------------------------------------ references

BIBLIOGRAPHY = """# Bibliography

All that the chapters cite; [references.bib](references.bib) has the same for BibTeX.
"""


def bibliography(book: Path) -> str:
    """The page bibliography.md: an anchor and a paragraph for each entry of references.bib."""
    from pybtex.database import parse_file
    from pybtex.plugin import find_plugin

    style = find_plugin("pybtex.style.formatting", "plain")()
    backend = find_plugin("pybtex.backends", "markdown")()
    text = BIBLIOGRAPHY
    for entry in style.format_bibliography(parse_file(str(book / "references.bib"))):
        written = re.sub(r"\\([-.()])", r"\1", entry.text.render(backend)).replace("\n", " ")
        text += f'\n<a id="{entry.key}"></a>\n\n- {written}\n'
    return text


def main() -> None:
    """Write the bibliography."""
    book = Path(__file__).resolve().parents[2]
    (book / "bibliography.md").write_text(bibliography(book), encoding="utf-8")


if __name__ == "__main__":
    main()
