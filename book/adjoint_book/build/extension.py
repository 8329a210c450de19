"""What Sphinx does beyond the usual for this book.

It reads plain sources, keeps no scripts but the book's own, shows plain docstrings, and makes
indexes.

Pages contain indexes that are made from what they list, in place of a comment such as

    <!-- index-of: exercises -->
"""

from __future__ import annotations

import os
import re
import textwrap
from html import escape
from pathlib import Path
from typing import Any

from docutils import nodes
from docutils.statemachine import StringList
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from adjoint_book import widgets
from adjoint_book.build import plain
from adjoint_book.course import quizzes
from adjoint_book.figures._registry import VECTOR

BOOK = Path(__file__).resolve().parents[2]
MARK = "data-adjoint-explorer"  # an attribute of the place where an explorer is to be


def setup(app: Sphinx) -> dict[str, Any]:
    """Register what this module does with Sphinx."""
    app.connect("config-inited", leave_numbers, priority=900)
    app.connect("builder-inited", collect_frames)
    app.connect("builder-inited", draw_vectors)
    app.connect("source-read", read_plain)
    app.connect("doctree-read", offer_places)
    app.connect("html-page-context", describe)
    app.connect("html-page-context", drop_remote_scripts, priority=900)
    app.connect("html-page-context", follow_system_theme)
    app.connect("html-page-context", add_quiz)
    app.connect("html-page-context", add_explorer)
    app.connect("html-page-context", add_frames)
    app.connect("build-finished", write_explorer)
    app.connect("build-finished", write_frames)
    app.connect("build-finished", write_gallery)
    app.connect("autodoc-process-docstring", plain_docstring, priority=100)
    app.add_directive("index-of", IndexOf)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def leave_numbers(app: Sphinx, config) -> None:
    """Keep Sphinx from numbering figures: their numbers stand in the sources."""
    config["numfig"] = False


def read_plain(app: Sphinx, page: str, source: list[str]) -> None:
    """Hand MyST the source as it wants it; see `plain`."""
    is_notebook = app.env.doc2path(page).endswith(".ipynb")
    source[0] = plain.page_source(source[0], is_notebook)


def offer_places(app: Sphinx, doctree: nodes.document) -> None:
    """Let `[words](page.ipynb#label)` lead to every label of a page, not only to its headings.

    What a cell shows as Markdown links like this; in Markdown cells `plain` has changed it.
    """
    places = app.env.metadata[app.env.docname].setdefault("myst_slugs", {})
    for name, place in doctree.nameids.items():
        if doctree.nametypes.get(name) and place:
            places.setdefault(name, (0, place, name))


DESCRIPTION = (
    "Any unit of a ReLU network is exactly one inner product with the image plus one with its "
    "biases: an executable book, and the library it stands on."
)


def describe(app: Sphinx, page: str, template: str, context: dict, doctree) -> None:
    """Add what another site shows of a link to the page: title, description and a picture."""
    owner, name = context["theme_repository_url"].rstrip("/").split("/")[-2:]
    said = {
        "og:type": "article",
        "og:site_name": app.config.project,
        "og:title": context.get("title") or app.config.project,
        "og:description": DESCRIPTION,
        "og:image": f"https://{owner}.github.io/{name}/_static/card.png",
    }
    tags = [f'<meta property="{key}" content="{escape(value)}">' for key, value in said.items()]
    tags.append('<meta name="twitter:card" content="summary_large_image">')
    context["metatags"] = context.get("metatags", "") + "\n".join(tags)


# ------------------------------------------------------------------ nothing from elsewhere


def drop_remote_scripts(app: Sphinx, page: str, template: str, context: dict, doctree) -> None:
    """Take out the scripts of sphinx-thebe, which Jupyter Book adds and this book does not use.

    They would run code on a server elsewhere.
    """

    def foreign(script) -> bool:
        attributes = getattr(script, "attributes", {})
        return "thebe" in f"{getattr(script, 'filename', script)} {attributes.get('body', '')}"

    for kind in ("script_files", "css_files"):
        context[kind] = [script for script in context.get(kind, []) if not foreign(script)]


def follow_system_theme(app: Sphinx, page: str, template: str, context: dict, doctree) -> None:
    """Say that the theme is the reader's at first; without that each page logs an error."""
    context.setdefault("default_mode", "auto")


# ------------------------------------------------------------------ the quizzes


def add_quiz(app: Sphinx, page: str, template: str, context: dict, doctree) -> None:
    """Put a chapter's quiz before its exercises, with the script that marks it."""
    questions = quizzes.of_chapter(Path(app.env.doc2path(page))) if doctree is not None else []
    if questions:
        before, exercises, after = context["body"].partition('<section id="exercises">')
        context["body"] = before + quizzes.fragment(questions) + exercises + after
        app.add_css_file("quiz.css")
        app.add_js_file("quiz.js", loading_method="defer")


# ------------------------------------------------------------------ the explorer


def add_explorer(app: Sphinx, page: str, template: str, context: dict, doctree) -> None:
    """Give a page with an explorer the script that starts it."""
    if MARK in context.get("body", ""):
        app.add_js_file("explorer/explorer.js", loading_method="defer")


def write_explorer(app: Sphinx, error: Exception | None) -> None:
    """Write the explorer's scripts, if a page of the site has one."""
    site = Path(app.outdir)
    if error is None and any(MARK in path.read_text("utf-8") for path in site.rglob("*.html")):
        from adjoint_book.build import explorer

        explorer.write(site)


# ------------------------------------------------------------------ the gallery


def write_gallery(app: Sphinx, error: Exception | None) -> None:
    """Write the gallery's small pictures, if the site has that page."""
    site = Path(app.outdir)
    if error is None and any(site.rglob("gallery.html")):
        from adjoint_book.build import gallery

        gallery.write(BOOK, site)


# ------------------------------------------------------------------ figures with knobs

STILL = re.compile(
    r'src="([^"]*)_images/([0-9a-f]{64})\.png"'
)  # named by the digest of its content


def collect_frames(app: Sphinx) -> None:
    """Let the notebooks write the pictures of figures with knobs, see `widgets`."""
    _frames(app).mkdir(parents=True, exist_ok=True)
    os.environ[widgets.FRAMES] = str(_frames(app))


def draw_vectors(app: Sphinx) -> None:
    """Let figures show themselves as SVG, see `figures`: sharp at every size, zoomed or printed."""
    os.environ[VECTOR] = "1"


def add_frames(app: Sphinx, page: str, template: str, context: dict, doctree) -> None:
    """Give a still picture the address of the frames that controls can replace it by."""

    def marked(still: re.Match) -> str:
        top, name = still.groups()
        if not (_frames(app) / f"{name}.json").is_file():
            return still[0]
        app.add_js_file("frames.js", loading_method="defer")
        return f'data-frames="{top}_static/frames/{name}.js" {still[0]}'

    context["body"] = STILL.sub(marked, context.get("body", ""))


def write_frames(app: Sphinx, error: Exception | None) -> None:
    """Write the frames as scripts, which a page from a file can load."""
    if error is not None:
        return
    folder = Path(app.outdir) / "_static" / "frames"
    for path in _frames(app).glob("*.json"):
        folder.mkdir(exist_ok=True)
        text = f'(window.adjoint_frames ??= {{}})["{path.stem}"] = {path.read_text("utf-8")};\n'
        (folder / f"{path.stem}.js").write_text(text, "utf-8")


def _frames(app: Sphinx) -> Path:
    return Path(app.outdir).parent / "frames"


# ------------------------------------------------------------------ docstrings

SECTION = re.compile(r"(Args|Attributes|Raises|Returns):$")
ENTRY = re.compile(r"((?:\*{0,2}\w+(?:, )?)+): (.*)$")


def plain_docstring(app, what, name, thing, options, lines: list[str]) -> None:
    """Turn a docstring, which here is plain text, into reStructuredText.

    Code stands in backticks, and arguments or attributes in lines such as `name: what it is`, with
    or without a heading such as `Args:` above them.
    What else reStructuredText would take for a sign (J*, |c|, x_) is meant as it stands.
    """
    text = "\n".join(lines).strip("\n")
    lines[:] = [line for block in re.split(r"\n\s*\n", text) for line in [*_block(block), ""]]


def _block(block: str) -> list[str]:
    """A paragraph, or a list of entries, maybe under a heading."""
    heading, lines = [], block.splitlines()
    if SECTION.match(lines[0].strip()):
        heading, lines = [f"**{lines[0].strip()[:-1]}**", ""], lines[1:]
    lines = textwrap.dedent("\n".join(lines)).splitlines()
    entries = [ENTRY.match(line) for line in lines]
    if not lines or not entries[0] or not (heading or sum(map(bool, entries)) > 1):
        return heading + [_plain(line) for line in lines]
    out = []
    for line, entry in zip(lines, entries, strict=True):
        if entry:
            name, text = entry.groups()
            out.append(f"- ``{name}``: {_plain(text)}")
        else:
            out.append(f"  {_plain(line.strip())}")
    return heading + out


def _plain(line: str) -> str:
    """The line with its code marked as such, and every other sign escaped."""
    pieces = re.split(r"(``[^`]+``|`[^`]+`)", line)
    return "".join(
        f"``{piece.strip('`')}``" if place % 2 else re.sub(r"([*|`]|_(?=\W|$))", r"\\\1", piece)
        for place, piece in enumerate(pieces)
    )


# ------------------------------------------------------------------ indexes


class IndexOf(SphinxDirective):
    """`{index-of} NAME`: the text that `indexes.NAME` writes, read as if it stood on the page."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """The list that the directive stands for."""
        from adjoint_book.build import indexes

        for path in [Path(indexes.__file__), *sorted(BOOK.glob("*.ipynb"))]:
            self.env.note_dependency(str(path))
        text = getattr(indexes, self.arguments[0])(BOOK)
        holder = nodes.Element()
        self.state.nested_parse(StringList(text.splitlines(), self.arguments[0]), 0, holder)
        for table in holder.findall(nodes.table):
            table["classes"].append("index")
        return holder.children
