"""Slides: a deck of reveal.js for each outline in `book/slides`, with notes for the lecturer.

A deck needs no network: reveal.js comes from the package sphinx-revealjs, MathJax from
sphinx-mathjax-offline, and the figures are drawn by `book.figures` as vectors. Where Chromium is
found, each deck is printed to PDF as well.
"""

from __future__ import annotations

import html
import re
import shutil
from collections.abc import Callable, Iterable, Iterator
from importlib.util import find_spec
from pathlib import Path
from string import Template
from typing import TYPE_CHECKING

from adjoint_book._extras import require
from adjoint_book.build import browser
from adjoint_book.course import outline
from adjoint_book.course.chapters import Chapter, chapters
from adjoint_book.course.outline import Block, Deck, Figure, Slide, Source
from adjoint_book.course.parts import Build, part
from adjoint_lib.errors import DataError

if TYPE_CHECKING:
    from markdown_it import MarkdownIt

HERE = Path(__file__).parent
MINUTES_AROUND = 2  # for the first slide and the last, one each
IMAGES = 20  # in the explorer
ROOM = 1120, 520  # pixels for code, across and down
SMALLEST, LARGEST = 22, 30  # pixels of its print
ADVANCE, LEADING = 0.605, 1.32  # width and height of a sign of it, by its size
TALL = 1.3  # a figure less wide than this, by its height, stands beside the words
CHAPTER_LINK = re.compile(r"\[([^\]]+)\]\((?!https?:)[^)]+\)")

REVEAL = {  # from the folder of reveal.js: where to
    "dist/reveal.js": "reveal.js",
    "dist/reveal.css": "reveal.css",
    "dist/reset.css": "reset.css",
    "plugin/notes/notes.js": "notes.js",
    "LICENSE": "LICENSE",
}


@part("slides", "a deck for each of the chapters that are lectured on, with notes and PDF")
def slides(build: Build) -> None:
    """Write all decks: with notes for the lecturer, without for the students."""
    folder = build.lecturer("slides")
    write(build.book, folder, say=build.say)
    shown = build.students("slides")
    shutil.copytree(folder, shown, dirs_exist_ok=True)
    for page in shown.glob("[0-9]*.html"):
        page.write_text(NOTES.sub("", page.read_text("utf-8")), "utf-8")


SIZE = re.compile(r'width="[\d.]+pt" height="[\d.]+pt" viewBox="0 0 ([\d.]+) ([\d.]+)"')
HEAD = re.compile(r"<main>.*?</p>", re.S)  # of the explorer's page, which a slide says itself
FRAMED = """<style>
body { max-width: none; padding: 0 8px; }
[data-adjoint-explorer] { font-size: 18px; margin-block: 0; }
[data-theme="dark"] body { background: #14171c; color: #e8eaee; }
[data-theme="light"] body { background: #fff; color: #1d2126; }
</style>
<script>document.documentElement.dataset.theme = location.search.slice(1) || "light";</script>
"""
NOTES = re.compile(r'<aside class="notes">.*?</aside>\n?', re.S)


def write(
    book: Path,
    folder: Path,
    numbers: Iterable[int] | None = None,
    printed: bool = True,
    say: Callable[[str], None] = print,
) -> list[Path]:
    """Write decks and all that they need into a folder; return the pages.

    Args:
        book: the folder of the chapters; the outlines are in `slides` there.
        folder: where to; it exists.
        numbers: of the chapters; by default all that have an outline.
        printed: whether to make a PDF of each as well, where a browser is found.
        say: is told what is left out, and why.
    """
    wanted = None if numbers is None else set(numbers)
    decks = [outline.read(path) for path in sorted((book / "slides").glob("[0-9][0-9].md"))]
    decks = [deck for deck in decks if wanted is None or deck.number in wanted]
    about = {chapter.number: chapter for chapter in chapters(book)}
    _copy_assets(folder)
    pages = []
    for deck in decks:
        chapter = about[deck.number]
        source = Source(book / f"{chapter.file}.ipynb")
        page = folder / f"{chapter.file}.html"
        page.write_text(_page(deck, chapter, source, folder), "utf-8")
        pages.append(page)
    if any(block.kind == "explorer" for deck in decks for s in deck.slides for block in s.blocks):
        _write_explorer(folder / "explorer.html")
    if printed and (program := browser.found(say)):
        for page in pages:
            browser.print_to_pdf(program, f"{page.as_uri()}?print", page.with_suffix(".pdf"))
    return pages


# ------------------------------------------------------------------ what a deck needs


def _copy_assets(folder: Path) -> None:
    reveal = _package("sphinx_revealjs") / "_static" / "revealjs"
    (folder / "reveal").mkdir(exist_ok=True)
    (folder / "figures").mkdir(exist_ok=True)
    for name, new in REVEAL.items():
        shutil.copyfile(reveal / name, folder / "reveal" / new)
    mathjax = _package("sphinx-mathjax-offline") / "static" / "mathjax" / "tex-svg.js"
    shutil.copyfile(mathjax, folder / "mathjax.js")
    shutil.copyfile(HERE / "deck.css", folder / "deck.css")


def _package(name: str) -> Path:
    """The folder of an installed package, which may have a dash in its name."""
    require(name)
    spec = find_spec(name)
    assert spec is not None and spec.origin is not None  # or it would not be there
    return Path(spec.origin).parent


def _write_explorer(path: Path) -> None:
    """The explorer of VGG7 as one page, whose states have the addresses of the book's."""
    import adjoint_lib as al
    from adjoint_lib.explorer.bundle import base64_of
    from adjoint_lib.explorer.page import Explorer, Samples

    images, labels = al.data.sample("cifar10")
    names = al.data.CLASS_NAMES["cifar10"]
    samples = Samples.of(images[:IMAGES], labels[:IMAGES].tolist(), names)
    net = al.equivalent(al.models.vgg7(weights="cifar10"))
    exports = {"cifar10": "vgg7-cifar10"}
    config = {
        "networks": [{"key": "vgg7", "name": "VGG7", "exports": exports}],
        "datasets": [samples.described("cifar10", "CIFAR-10", "cifar10")],
        "start": {"net": "vgg7", "data": "cifar10"},
    }
    texts = {"cifar10": samples.text, "vgg7-cifar10": base64_of(net, "float32")}
    page = HEAD.sub("<main>", Explorer("Explore VGG7", config, texts).html(), count=1)
    path.write_text(page.replace("</head>", f"{FRAMED}</head>", 1), "utf-8")


# ------------------------------------------------------------------ pages


def _page(deck: Deck, chapter: Chapter, source: Source, folder: Path) -> str:
    """The whole deck as HTML; its figures are drawn into the folder."""
    markdown = _markdown()
    shown = [_first(deck, chapter, source, markdown)]
    shown += [_slide(slide, source, folder, markdown) for slide in deck.slides]
    shown.append(_last(chapter, markdown))
    seconds = 60 * (deck.minutes + MINUTES_AROUND)
    return Template((HERE / "deck.html").read_text("utf-8")).substitute(
        title=html.escape(f"{chapter.number} {chapter.title}"),
        slides="\n".join(shown),
        seconds=seconds,
    )


def _section(parts: Iterable[str], notes: str, minutes: int, kind: str = "") -> str:
    said = f'<aside class="notes">{notes}</aside>'
    return "\n".join(
        [f'<section class="{kind}" data-timing="{60 * minutes}">', *parts, said, "</section>"]
    )


def _first(deck: Deck, chapter: Chapter, source: Source, markdown: MarkdownIt) -> str:
    """The title, and what the chapter says one will learn."""
    needs = ", ".join(map(str, chapter.needs)) or "none"
    shown = [
        f"<p>The Adjoint Book, chapter {chapter.number}</p>",
        f"<h1>{html.escape(chapter.title)}</h1>",
        markdown.render(source.outcomes()),
    ]
    notes = (
        f"{deck.minutes + MINUTES_AROUND} minutes with this slide and the last. Chapters needed: "
        f"{needs}. Press S for these notes and a clock, D for the dark theme."
    )
    return _section(shown, f"<p>{notes}</p>", 1, "first")


def _last(chapter: Chapter, markdown: MarkdownIt) -> str:
    """The exercises of the chapter."""
    titles = "\n".join(f"- {title}" for title in chapter.exercises)
    shown = [
        "<h2>Now you</h2>",
        f"<p>Exercises of chapter {chapter.number}; each has a check in the notebook.</p>",
        markdown.render(titles),
    ]
    return _section(shown, f"<p>The notebook is {chapter.file}.ipynb.</p>", 1, "last")


def _slide(slide: Slide, source: Source, folder: Path, markdown: MarkdownIt) -> str:
    notes = [markdown.render(source.words(slide.notes))]
    parts, figure = [], ""
    is_beside, click = False, 0
    room = ROOM[1] - sum(map(_height, slide.blocks))
    for block in slide.blocks:
        click += block.kind == "Answer"
        if block.kind in ("figure", "picture"):
            name, _, part = block.text.partition(" ")
            found = source.figure(name)
            path = folder / "figures" / name
            if block.kind == "figure":
                shown, width_by_height = _vector(name, path.with_suffix(".svg"), part)
            else:
                shown, width_by_height = _raster(source.picture(name), path.with_suffix(".png"))
            figure = _figure(found, shown)
            is_beside = width_by_height < TALL and len(slide.blocks) > 1
            notes.append(f"<p>{html.escape(found.label)}. {_inline(found.caption, markdown)}</p>")
        else:
            made = _block(block, source, markdown, room)
            hidden = click and block.kind != "words"  # what follows an answer comes with it
            step = f'<div class="fragment" data-fragment-index="{click}">'
            parts.append(f"{step}{made}</div>" if hidden else made)
    title = f"<h2>{_inline(slide.title, markdown)}</h2>"
    if is_beside:
        body = [title, f'<div class="beside"><div>{"".join(parts)}</div>{figure}</div>']
    else:
        body = [title, '<div class="body">', *parts, figure, "</div>"]
    return _section(body, "\n".join(notes), slide.minutes)


def _height(block: Block) -> int:
    """About how many pixels a block takes, if it is no code; words have about 60 signs a line."""
    if block.kind in ("code", "output", "figure", "picture", "explorer"):
        return 0
    if block.kind == "equation":
        return 110
    return 22 + 46 * sum(1 + len(line) // 60 for line in block.text.split("\n"))


def _block(block: Block, source: Source, markdown: MarkdownIt, room: int) -> str:
    """A block as HTML; its code, if it has any, is to fit into so many pixels."""
    if block.kind == "equation":
        found = source.equation(block.text)
        shown = f'<div class="math">\\[{html.escape(found.latex)}\\]</div>'
        return f'<div class="equation">{shown}<span>({found.number})</span></div>'
    text = outline.resolve(block, source)
    if block.kind == "quote":
        return f'<div class="quote">{_plain(text, markdown)}</div>'
    if block.kind == "Answer":
        return f'<div class="answer">{markdown.render(text)}</div>'
    if block.kind == "explorer":
        return _explorer(text)
    if block.kind in ("code", "output"):
        shown = _highlighted(text) if block.kind == "code" else html.escape(text)
        size = f"font-size: {_print_size(text, room)}px"
        return f'<pre class="{block.kind}" style="{size}"><code>{shown}</code></pre>'
    return markdown.render(text)


def _print_size(text: str, room: int) -> int:
    """The size of print, in pixels, at which a text is as wide and as high as a slide can hold."""
    rows = text.split("\n")
    by_width = ROOM[0] / (ADVANCE * max(map(len, rows)))
    return int(max(SMALLEST, min(LARGEST, by_width, room / (LEADING * len(rows) + 1))))


def _figure(figure: Figure, path: Path) -> str:
    """The figure, drawn in a file, as HTML."""
    kind = ' class="photo"' if figure.is_photo else ""
    picture = f'<img{kind} src="figures/{path.name}" alt="{html.escape(figure.alt)}">'
    return f"<figure>{picture}<figcaption>{figure.label} of the book</figcaption></figure>"


def _vector(name: str, path: Path, part: str) -> tuple[Path, float]:
    """The figure drawn as SVG, and its width by its height.

    Args:
        name: of the figure.
        path: of the SVG.
        part: the percentages of its height between which it is shown, such as "0-48", or all.
    """
    require("matplotlib")
    import matplotlib

    matplotlib.use("Agg")
    from adjoint_book import figures

    if not path.exists():
        figures.save(name, path, facecolor="auto")
    drawn = path.read_text("utf-8")
    size = SIZE.search(drawn)
    if not size:
        raise DataError(f"{path}: expected an SVG with a size, found none. Draw it again.")
    width, height = float(size[1]), float(size[2])
    if not part:
        return path, width / height
    top, bottom = (float(share) / 100 for share in part.split("-"))
    shown = height * (bottom - top)
    box = f"0 {height * top:g} {width:g} {shown:g}"
    new = f'width="{width:g}pt" height="{shown:g}pt" viewBox="{box}"'
    path = path.with_stem(f"{path.stem}-{part}")
    path.write_text(SIZE.sub(new, drawn, count=1), "utf-8")
    return path, width / shown


def _raster(picture: bytes, path: Path) -> tuple[Path, float]:
    """The PNG in a file, and its width by its height, which stand in its first bytes."""
    path.write_bytes(picture)
    width, height = (int.from_bytes(picture[at : at + 4], "big") for at in (16, 20))
    return path, width / height


def _explorer(text: str) -> str:
    """The explorer at a state, or where the deck is printed a link to it."""
    state, _, words = (piece.strip() for piece in text.partition("|"))
    address = html.escape(f"explorer.html#{state}")
    return (
        f"<p>{html.escape(words)}</p>\n"
        f'<iframe data-src="{address}" title="The explorer"></iframe>\n'
        f'<p class="instead">Live in the deck: <a href="{address}">explorer.html</a>.</p>'
    )


# ------------------------------------------------------------------ markup


def _markdown() -> MarkdownIt:
    require("markdown_it")
    from markdown_it import MarkdownIt
    from mdit_py_plugins.dollarmath import dollarmath_plugin

    def mathematics(content: str, options: dict) -> str:
        left, right = (r"\[", r"\]") if options["display_mode"] else (r"\(", r"\)")
        return f'<span class="math">{left}{html.escape(content.strip())}{right}</span>'

    markdown = MarkdownIt("commonmark").enable("table")
    return markdown.use(dollarmath_plugin, renderer=mathematics)


def _inline(text: str, markdown: MarkdownIt) -> str:
    return markdown.renderInline(CHAPTER_LINK.sub(r"\1", text))


def _plain(text: str, markdown: MarkdownIt) -> str:
    """Markdown of a chapter, without its links to other places of the book."""
    return markdown.render(CHAPTER_LINK.sub(r"\1", text))


def _highlighted(code: str) -> str:
    require("pygments")
    from pygments import highlight
    from pygments.formatters import HtmlFormatter
    from pygments.lexers import PythonLexer

    return highlight(code, PythonLexer(), HtmlFormatter(nowrap=True)).rstrip("\n")


def figures_of(deck: Deck) -> Iterator[str]:
    """The names of the figures in a deck."""
    for slide in deck.slides:
        shown = (block for block in slide.blocks if block.kind in ("figure", "picture"))
        yield from (block.text.partition(" ")[0] for block in shown)
