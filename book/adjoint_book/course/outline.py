"""Decks as plain text: what is on each slide, and where in a chapter it stands.

    minutes: 45

    ## How large is it? · 3

    Words in Markdown, with $mathematics$ and the number {01-034} that a cell of the chapter prints.

    figure: two-ways

    Note: What to say.

A heading begins a slide and says how many minutes it takes. On a line of its own,

    figure: NAME [0-48]      the figure of the chapter that `book.figures.NAME` draws, or of its
                             height the part from 0 to 48 per cent
    picture: NAME            the same as the chapter shows it, where it draws what it has computed
    equation: LABEL          the equation with this label
    quote: WORDS             the quotation that begins with these words in bold, such as a theorem
    code: CELL [2-9]         the source of a cell, or some of its lines
    output: CELL [1-4]       what the cell prints
    explorer: STATE | WORDS  the explorer at this state; WORDS say what to do there
    Answer: WORDS            comes with the next click

and `{CELL}` within words is what a cell prints, `{CELL:PATTERN}` what the first group of a regular
expression finds in it. So every number on a slide is the chapter's, and a slide that asks for
something the chapter does not have is an error.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from adjoint_book.build import plain
from adjoint_lib._storage import decoding, read_json
from adjoint_lib.errors import DataError, InputError

HEADING = re.compile(r"^## (.+) · (\d+)$", re.M)
DIRECTIVE = re.compile(r"(figure|picture|equation|quote|code|output|explorer|Answer): (.+)", re.S)
COMPUTED = re.compile(r"\{(\d\d-[\w-]+|[0-9a-f]{8})(?::((?:[^{}]|\{[\d,]+\})+))?\}")
LABEL = re.compile(r"\*\*(Figure [\d.]+)\.\*\* (.+)", re.S)
TAG = re.compile(r"\s*\\tag\{([\d.]+)\}")
FENCED = re.compile(r"```.*?```", re.S)


@dataclass(frozen=True)
class Block:
    """One thing on a slide: its kind ("words" or a directive's name) and what stands there."""

    kind: str
    text: str


@dataclass(frozen=True)
class Slide:
    """A slide: its title, how long it takes, what is on it, and what to say."""

    title: str
    minutes: int
    blocks: tuple[Block, ...]
    notes: str


@dataclass(frozen=True)
class Deck:
    """The slides for one chapter, and the minutes that they say they take."""

    number: int
    minutes: int
    slides: tuple[Slide, ...]


def read(path: Path) -> Deck:
    """The deck in a file such as `01.md`."""
    head, *parts = HEADING.split(path.read_text("utf-8"))
    stated = re.fullmatch(r"\s*minutes: (\d+)\s*", head)
    if not stated or not parts:
        raise InputError(
            f"{path.name}: expected a line 'minutes: 45', then slides under headings such as "
            "'## One bill, two ways · 3'. Write them."
        )
    found = zip(parts[::3], parts[1::3], parts[2::3], strict=True)
    slides = tuple(_slide(path, title, int(minutes), text) for title, minutes, text in found)
    if (whole := sum(slide.minutes for slide in slides)) != int(stated[1]):
        raise InputError(
            f"{path.name}: expected {stated[1]} minutes in all, the slides take {whole}."
        )
    return Deck(int(path.stem[:2]), int(stated[1]), slides)


def _slide(path: Path, title: str, minutes: int, text: str) -> Slide:
    shown, said, notes = text.partition("\nNote: ")
    if not said or not notes.strip():
        raise InputError(f"{path.name}: expected a paragraph 'Note: ...' on {title!r}, found none.")
    if re.search(r"^## ", text, re.M):
        raise InputError(f"{path.name}: expected '· MINUTES' in each heading after {title!r}.")
    return Slide(title, minutes, tuple(_blocks(shown)), notes.strip())


def _blocks(text: str) -> Iterator[Block]:
    fences = FENCED.findall(text)
    for paragraph in re.split(r"\n\s*\n", FENCED.sub("\0", text).strip()):
        for _ in range(paragraph.count("\0")):
            paragraph = paragraph.replace("\0", fences.pop(0), 1)
        found = DIRECTIVE.fullmatch(paragraph.strip())
        if found:
            yield Block(found[1], " ".join(found[2].split()))
        elif paragraph.strip():
            yield Block("words", paragraph.strip("\n"))


@dataclass(frozen=True)
class Figure:
    """A figure of a chapter: its name, number, caption, and what a screen reader says of it."""

    name: str
    label: str
    caption: str
    alt: str
    is_photo: bool


@dataclass(frozen=True)
class Equation:
    """An equation of a chapter: its LaTeX, and its number."""

    latex: str
    number: str


class Source:
    """The notebook of a chapter, asked for what its slides show."""

    def __init__(self, path: Path):
        said = "a notebook with cells", "Restore it from the repository."
        self.name = path.stem
        self.number = int(path.stem[:2])
        with decoding(path, *said):
            self._cells: list[dict[str, Any]] = read_json(path, *said)["cells"]
            self._texts = ["".join(cell["source"]) for cell in self._cells]

    def words(self, text: str) -> str:
        """The text with what the cells it names print."""
        return COMPUTED.sub(lambda found: self.printed(found[1], found[2]), text)

    def printed(self, cell: str, pattern: str | None = None) -> str:
        """What a cell prints, or what a regular expression finds in it."""
        text = self.output(cell)
        if pattern is None:
            if "\n" in text:
                raise self._missing(f"one line in the output of cell {cell!r}", text)
            return text.strip("'")
        found = re.search(pattern, text)
        if not found or not found.groups():
            raise self._missing(f"a group that matches {pattern!r} in cell {cell!r}", text)
        return found[1]

    def output(self, cell: str) -> str:
        """All that a cell prints."""
        text = ""
        for output in self._cell(cell).get("outputs", []):
            data = output.get("data", {})
            shown = output.get("text") or data.get("text/markdown") or data.get("text/plain") or []
            if output.get("output_type") != "stream" and text and not text.endswith("\n"):
                text += "\n"  # while one stream may come in several pieces, cut anywhere
            text += "".join(shown)
        if not text:
            raise self._missing(f"an output of cell {cell!r}", "none")
        return text.rstrip("\n")

    def code(self, cell: str) -> str:
        """The source of a cell."""
        return "".join(self._cell(cell)["source"])

    def equation(self, label: str) -> Equation:
        """An equation, with its number."""
        pattern = rf'<a id="{re.escape(label)}"></a>\s+\$\$\n(.*?)\n\$\$'
        latex = self._find(pattern, f"the equation {label!r}")[1]
        number = TAG.search(latex)
        return Equation(TAG.sub("", latex), number[1] if number else "")

    def quote(self, lead: str) -> str:
        """A quotation that begins with these words in bold, without its signs."""
        pattern = rf"^> (\*\*{re.escape(lead)}(?:[^\n]|\n>)*)"
        return re.sub(r"^> ?", "", self._find(pattern, f"the quotation {lead!r}")[1], flags=re.M)

    def figure(self, name: str) -> Figure:
        """The figure that the chapter draws by `book.figures`."""
        drawn = _drawn(name)
        for cell, text, after in zip(self._cells, self._texts, self._texts[1:], strict=False):
            caption = plain.CAPTION.fullmatch(after.strip())
            if cell["cell_type"] == "code" and drawn.search(text) and caption:
                alt = cell["metadata"].get("mystnb", {}).get("image", {}).get("alt", "")
                photo = "photo" in cell["metadata"].get("tags", [])
                label, words = LABEL.match(caption[2]).groups()  # type: ignore[union-attr]
                return Figure(name, label, words, alt, photo)
        raise self._missing(f"a cell that draws the figure {name!r}, and its caption", "none")

    def outcomes(self) -> str:
        """What one will learn, as a list in Markdown."""
        starts = re.findall(r"^> (- |  )(.+)$", self._texts[0], re.M)
        if not starts:
            raise self._missing("a list under 'You will learn'", "none")
        return "\n".join(f"{sign}{words}" for sign, words in starts)

    def picture(self, name: str) -> bytes:
        """The figure as the chapter shows it, a PNG."""
        drawn = _drawn(name)
        for cell, text in zip(self._cells, self._texts, strict=True):
            for output in cell.get("outputs", []) if drawn.search(text) else []:
                if shown := output.get("data", {}).get("image/png"):
                    return base64.b64decode("".join(shown))
        raise self._missing(f"a picture {name!r}", "none")

    def _find(self, pattern: str, what: str) -> re.Match:
        for text in self._texts:
            if found := re.search(pattern, text, re.S | re.M):
                return found
        raise self._missing(what, "none")

    def _cell(self, name: str) -> dict[str, Any]:
        for cell in self._cells:
            if cell.get("id") == name:
                return cell
        raise self._missing(f"a cell {name!r}", "none")

    def _missing(self, what: str, came: str) -> DataError:
        return DataError(f"{self.name}.ipynb: expected {what} for a slide, found {came}.")


def _drawn(name: str) -> re.Pattern:
    """What the source of a cell has that draws this figure."""
    return re.compile(rf"\bfigures\.{name.replace('-', '_')}\b")


def lines(text: str, wanted: str) -> str:
    """Some lines of a text, such as "2-9", or all of them for ""."""
    if not wanted:
        return text
    first, _, last = wanted.partition("-")
    whole = text.split("\n")
    if not 1 <= int(first) <= int(last or first) <= len(whole):
        raise InputError(f"expected lines 1 to {len(whole)}, got {wanted}.")
    return "\n".join(whole[int(first) - 1 : int(last or first)])


def resolve(block: Block, source: Source) -> Any:
    """What a block shows, from its chapter: a text, or a figure."""
    cell, _, which = block.text.partition(" ")
    found: dict[str, Callable[[], Any]] = {
        "words": lambda: source.words(block.text),
        "Answer": lambda: source.words(block.text),
        "explorer": lambda: source.words(block.text),
        "figure": lambda: source.figure(cell),
        "picture": lambda: source.picture(block.text),
        "equation": lambda: source.equation(block.text),
        "quote": lambda: source.quote(block.text),
        "code": lambda: lines(source.code(cell), which),
        "output": lambda: lines(source.output(cell), which),
    }
    return found[block.kind]()
