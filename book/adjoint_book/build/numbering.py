"""Numbers what a chapter shows: figures, tables, equations, theorems, exercises, as chapter.number.

    python -m adjoint_book.build.numbering      # writes right numbers into all notebooks

The numbers stand in the text, where every renderer shows them. What is new gets any number, such as
`**Figure 9.0.**`; this gives the right one, there and in every `[Figure 9.0](#fig-name)`.
"""

from __future__ import annotations

import itertools
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path

BOOK = Path(__file__).resolve().parents[2]

# What is numbered: the text before its number and after it.
NUMBERED = {
    "figure": re.compile(r'(<a id="fig-[\w-]+"></a>\n\*\*Figure )[\d.]+(\.\*\* )'),
    "table": re.compile(r'(<a id="tab-[\w-]+"></a>\n\*\*Table )[\d.]+(\.\*\* )'),
    "equation": re.compile(r"(\\tag\{)[\d.]+(\})"),
    "theorem": re.compile(
        r"(^> \*\*(?:Definition|Lemma|Theorem) )[\d.]+((?: \(.+\))?\.\*\* )", re.M
    ),
    "exercise": re.compile(r"(^### Exercise )[\d.]+(: )", re.M),
    "question": re.compile(r"(^### Question )[\d.]+(: )", re.M),
}
LABELLED = re.compile(
    r'<a id="([\w-]+)"></a>\n+'
    r"(?:\*\*(Figure|Table) ([\d.]+)\.\*\*|\$\$\n(?:(?!\$\$).)*?\\tag\{([\d.]+)\})",
    re.S,
)
LINK = re.compile(r"\[(Figure |Table |)\(?[\d.]+\)?\](\([\w./-]*#([\w-]+)\))")


def renumbered(texts: dict[str, list[str]]) -> dict[str, list[str]]:
    """The texts of all notebooks, by name, with right numbers in them."""
    new = {name: _numbered(int(name[:2]), cells) for name, cells in texts.items()}
    words = {
        label: f"{kind} {number}" if kind else f"({tag})"
        for cells in new.values()
        for text in cells
        for label, kind, number, tag in LABELLED.findall(text)
    }

    def link(match: re.Match) -> str:
        return f"[{words[match[3]]}]{match[2]}" if match[3] in words else match[0]

    return {name: [LINK.sub(link, text) for text in cells] for name, cells in new.items()}


def _numbered(chapter: int, cells: list[str]) -> list[str]:
    for pattern in NUMBERED.values():
        count = itertools.count(1)

        def right(match: re.Match, count: Iterator[int] = count) -> str:
            return f"{match[1]}{chapter}.{next(count)}{match[2]}"

        cells = [pattern.sub(right, text) for text in cells]
    return cells


def main() -> int:
    """Number all chapters, and write those in which a number was not right."""
    paths = sorted(BOOK.glob("[0-9][0-9]-*.ipynb"))
    books = {path.stem: json.loads(path.read_text("utf-8")) for path in paths}
    texts = {
        name: ["".join(c["source"]) for c in found["cells"] if c["cell_type"] == "markdown"]
        for name, found in books.items()
    }
    new = renumbered(texts)
    for path in paths:
        if new[path.stem] == texts[path.stem]:
            continue
        cells = [c for c in books[path.stem]["cells"] if c["cell_type"] == "markdown"]
        for cell, text in zip(cells, new[path.stem], strict=True):
            cell["source"] = text.splitlines(keepends=True)
        written = json.dumps(books[path.stem], indent=1, ensure_ascii=False) + "\n"
        path.write_text(written, encoding="utf-8")
        print(f"{path.name}: numbered anew")
    return 0


if __name__ == "__main__":
    sys.exit(main())
