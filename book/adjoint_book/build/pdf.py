"""The book as one PDF, printed by Chromium from its pages: `make pdf`.

    python -m adjoint_book.build.pdf [SITE]

The book is built once more, with its figures as vectors, unless a built SITE is given. Its pages
are joined into one, in the order of the contents; solutions and answers go to the end. The page is
printed twice: the first time says on which page everything is, which the second shows in the
contents and beside each reference to another chapter.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from html import escape
from importlib.util import find_spec
from pathlib import Path
from string import Template
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from adjoint_book._extras import require
from adjoint_book.build import browser
from adjoint_book.widgets import VECTORS
from adjoint_lib.errors import DataError

if TYPE_CHECKING:
    from bs4 import BeautifulSoup, Tag

HERE = Path(__file__).parent
ROOT = HERE.parents[2]
VECTOR_FIGURES = 'c.InlineBackend.figure_formats = {"svg"}\n'  # of every kernel
WAIT = 600_000  # milliseconds, by the page's clock, for its mathematics

# What is of use on a screen only: the explorer, and lists whose links are their point.
LEFT_OUT = {"explorer", "claims", "promises", "exercises-index", "api", "gallery"}
DROPPED = (
    "script, style, .headerlink, .prev-next-footer, button, .tag_setup, .toctree-wrapper, "
    "section.quiz > p, .quiz-said, input, [data-adjoint-explorer], .tag_remove-cell, .sd-btn"
)
ASKS = re.compile(r"(Exercise|Question) .+")
ANSWERED = {  # the words of a link to the end, by what asks
    "Exercise": "Solution",
    "Question": "What an answer should have",
    "Quiz,": "Answers to this quiz",
}
CHOICE = re.compile(r"\s*If you choose ")  # above what is said to one of several answers
UNANSWERED = "not answered yet"
OPTION = re.compile(r"--[\w-]+")
LEVEL = re.compile(r"(Easy|Medium|Hard), \d+ minutes\.")
INSTEAD = (  # of words that are true on a screen only
    ("below each stands", "at the end of the book stands"),
    (
        "In a notebook this is a link to the book’s page.",
        "This works on the book’s page, not on paper.",
    ),
)
MATHEMATICS = re.compile(r"\\\(.+?\\\)")


@dataclass
class Page:
    """A page of the site: its name, title and content, and the solutions taken out of it."""

    name: str
    title: str
    content: Tag
    solutions: list[tuple[str, str, Tag]] = field(default_factory=list)  # place, title, content


def write(site: Path, path: Path, program: str) -> None:
    """Print the built site to a PDF.

    Args:
        site: the folder of its pages, `_build/html`.
        path: of the PDF.
        program: the browser.
    """
    require("pypdf")
    pages = [_page(site, name) for name in contents()]
    known = {page.name for page in pages}
    for page in pages:
        _take_solutions(page)
    for page in pages:
        for part in [page.content, *(content for _, _, content in page.solutions)]:
            _lead(part, page.name, known, site)
    joined = site / "the-adjoint-book.html"
    mathjax = site / "mathjax.js"
    shutil.copyfile(_mathjax(), mathjax)
    try:
        numbers: dict[str, int] = {}
        for _ in range(2):
            joined.write_text(_joined(pages, numbers), "utf-8")
            browser.print_to_pdf(program, joined.as_uri(), path, WAIT)
            numbers = places(path)
    finally:
        joined.unlink(missing_ok=True)
        mathjax.unlink()


def contents() -> Iterator[str]:
    """The names of the pages that are printed, in the order of the contents."""
    import yaml

    found = yaml.safe_load((ROOT / "_toc.yml").read_text("utf-8"))
    files = [found["root"], *(c["file"] for part in found["parts"] for c in part["chapters"])]
    yield from (name for name in files if Path(name).name not in LEFT_OUT)


def places(pdf: Path) -> dict[str, int]:
    """The page on which each named place of a PDF is, counted from one."""
    from pypdf import PdfReader

    reader = PdfReader(pdf)
    found = {}
    for name, place in reader.named_destinations.items():
        number = reader.get_destination_page_number(place)
        if number is not None:
            found[name.removeprefix("/")] = number + 1
    return found


# ------------------------------------------------------------------ one page of the site


def _page(site: Path, name: str) -> Page:
    from bs4 import BeautifulSoup

    path = site / f"{name}.html"
    if not path.is_file():
        raise DataError(f"{path}: expected a page of the built book, found none. Build it again.")
    soup = BeautifulSoup(path.read_text("utf-8"), "html.parser")
    content = soup.select_one("article.bd-article")
    heading = content.select_one("h1") if content else None
    if content is None or heading is None:
        raise DataError(f"{path}: expected an article with a heading, found none. Build it again.")
    for tag in content.select(DROPPED):
        tag.decompose()
    for old, new in INSTEAD:
        for text in content.find_all(string=re.compile(re.escape(old))):
            text.replace_with(text.replace(old, new))
    for number in content.select(".section-number"):
        if ASKS.match(number.parent.get_text().removeprefix(number.get_text())):
            number.decompose()  # an exercise has its own
    for cell in content.select("div.cell"):
        if UNANSWERED in cell.get_text():
            cell.decompose()
    title = " ".join(heading.get_text().split())
    return Page(Path(name).name, title, content)


def _take_solutions(page: Page) -> None:
    """Take out what answers an exercise or a question, with a link to where it will be."""
    number, last, link = 0, "", None
    for tag in list(page.content.select("div.tag_hide-cell, details")):
        if tag.decomposed or tag.find_parent("details") or tag.find_parent(class_="tag_hide-cell"):
            continue
        title = _asked(tag)
        if not title:
            continue
        number += 1
        place = f"{page.name}--solution-{number}"
        if link is None or title.split(",")[0] != last:
            link = _new(
                f'<p class="solved"><a href="#{place}">{ANSWERED[title.split()[0]]}</a></p>'
            )
        tag.insert_before(link)  # one for a quiz or a choice, after the last answer
        last = title.split(",")[0]
        page.solutions.append((place, title, tag.extract()))
    for part in [page.content, *(content for _, _, content in page.solutions)]:
        _unfold(part)
    _keep_headings(page.content)
    _mark_captions(page.content)
    _mark_options(page.content)


def _asked(tag: Tag) -> str:
    """The exercise or question that a folded part answers, or nothing if it answers none."""
    quiz = {"name": "form", "class_": "quiz-question"}
    if question := tag.find_parent(**quiz):
        return f"Quiz, question {len(question.find_all_previous(**quiz)) + 1}"
    heading = tag.find_previous(["h2", "h3"])
    found = ASKS.search(" ".join(heading.get_text().split()) if heading else "")
    return found[0] if found else ""


def _unfold(part: Tag) -> None:
    """Show what the page hides until it is asked for."""
    for summary in part.select("summary"):
        if CHOICE.match(summary.get_text()):
            summary.name = "h4"
        else:
            summary.decompose()
    for details in [part, *part.select("details")]:
        if details.name == "details":
            details.name = "div"


def _keep_headings(content: Tag) -> None:
    """Put each heading and what follows it into one piece that no page break divides."""
    for heading in reversed(content.select("h2, h3, h4")):
        after = _after(heading)
        if after is not None and after.name == "section":
            after.insert(0, heading.extract())
            after = _after(heading)
        if after is not None and after.name != "section":
            kept = heading.wrap(_new('<div class="kept"></div>'))
            kept.append(after.extract())
            task = kept.find_next_sibling()
            if LEVEL.fullmatch(after.get_text().strip()) and task is not None:
                kept.append(task.extract())


def _after(heading: Tag) -> Tag | None:
    """What follows a heading; the places of links on the way, without words, go into it."""
    after = heading.find_next_sibling()
    while after is not None and after.name == "span":
        heading.insert(0, after.extract())
        after = heading.find_next_sibling()
    return after


def _mark_captions(content: Tag) -> None:
    """Name the captions of tables, so that no page break comes between the two."""
    for paragraph in content.select("p[id^=tab-]"):
        paragraph["class"] = ["caption"]


def _mark_options(content: Tag) -> None:
    """Name the options of commands in tables, so that no line ends within their dashes."""
    for code in content.select("td code"):
        for text in code.find_all(string=OPTION):
            marked = OPTION.sub(r'<span class="option">\g<0></span>', escape(text))
            text.replace_with(_soup(marked))


def _lead(part: Tag, page: str, known: set[str], site: Path) -> None:
    """Make places and links those of the joined page, and say what is in another chapter."""
    for tag in part.select("[id]"):
        tag["id"] = f"{page}--{tag['id']}"
    for tag in part.select("[src]"):
        tag["src"] = re.sub(r"^(\.\./)+", "", tag["src"])
    for tag in part.select("a[href]"):
        href = urlsplit(tag["href"])
        if href.scheme or href.netloc:
            continue
        if tag["href"].startswith(f"#{page}--solution-"):
            tag["class"] = ["elsewhere"]
            continue
        target = Path(href.path).stem or page
        if target not in known or not (href.path.endswith(".html") or not href.path):
            if "sd-stretched-link" in tag.get("class", []):
                tag.decompose()  # of a card: its words are those of the page's title
            else:
                tag.unwrap()
            continue
        place = unquote(href.fragment)
        tag["href"] = f"#{target}--{place}" if place else f"#{target}"
        if target != page:
            tag["class"] = [*tag.get("class", []), "elsewhere"]


# ------------------------------------------------------------------ all of them


def _joined(pages: list[Page], numbers: dict[str, int]) -> str:
    """The whole book as one page of HTML.

    Args:
        pages: in order.
        numbers: of the printed pages, by place, as far as they are known.
    """
    first, *rest = pages
    rows, shown, heads = [], [_section(first, "front")], []
    for page in rest:
        rows.append(_row(page.name, page.title, numbers))
        shown.append(_section(page, page.name))
        heads.append(_head(page.name, page.title))
    rows.append(_row("solutions", "Solutions", numbers))
    heads.append(_head("solutions", "Solutions"))
    shown.insert(1, f'<nav class="front"><h1>Contents</h1>{"".join(rows)}</nav>')
    shown.append(_solutions(pages))
    soup = _soup("\n".join(shown))
    for link in soup.select("a.elsewhere"):
        number = numbers.get(link["href"][1:])
        link.insert_after(_new(f'<span class="at"> (p. {number or "000"})</span>'))
    template = Template((HERE / "pdf.html").read_text("utf-8"))
    return template.substitute(heads="\n".join(heads), body=str(soup))


def _section(page: Page, name: str) -> str:
    style = "front" if name == "front" else f"chapter p{_plain(name)}"
    return f'<section id="{page.name}" class="{style}">{page.content.decode_contents()}</section>'


def _row(name: str, title: str, numbers: dict[str, int]) -> str:
    """A line of the contents."""
    at = numbers.get(name, "")
    return f'<p class="row"><a href="#{name}">{escape(title)}</a><span>{at}</span></p>'


def _head(name: str, title: str) -> str:
    """The running head of a chapter, as a style of its pages."""
    said = title.replace("\\", "").replace('"', "'")
    return (
        f"@page p{_plain(name)} {{ @top-left {{ content: 'The Adjoint Book'; }} "
        f'@top-right {{ content: "{said}"; }} }}\n.p{_plain(name)} {{ page: p{_plain(name)}; }}'
    )


def _plain(name: str) -> str:
    return re.sub(r"\W", "", name)


def _solutions(pages: list[Page]) -> str:
    parts = ['<section id="solutions" class="chapter psolutions"><h1>Solutions</h1>']
    for page in pages:
        if page.solutions:
            parts.append(f"<h2>{escape(page.title)}</h2>")
        last = ""
        for place, title, content in page.solutions:
            heading = "" if title == last else f"<h3>{_with_mathematics(title)}</h3>"
            parts.append(f'<div class="solution" id="{place}">{heading}{content}</div>')
            last = title
    return "".join([*parts, "</section>"])


def _with_mathematics(title: str) -> str:
    return MATHEMATICS.sub(r'<span class="math">\g<0></span>', escape(title))


def _soup(text: str) -> BeautifulSoup:
    from bs4 import BeautifulSoup

    return BeautifulSoup(text, "html.parser")


def _new(text: str) -> Any:
    return next(iter(_soup(text).children))


def _mathjax() -> Path:
    require("sphinx-mathjax-offline")
    spec = find_spec("sphinx-mathjax-offline")
    assert spec is not None and spec.origin is not None  # or it would not be there
    return Path(spec.origin).parent / "static" / "mathjax" / "tex-svg.js"


# ------------------------------------------------------------------ the command


def build_site(folder: Path) -> Path:
    """Build the book with its figures as vectors, and return the folder of its pages."""
    with tempfile.TemporaryDirectory() as home:
        profile = Path(home) / "profile_default"
        profile.mkdir()
        (profile / "ipython_kernel_config.py").write_text(VECTOR_FIGURES, "utf-8")
        environment = {**os.environ, "IPYTHONDIR": home, VECTORS: "1"}
        program = str(Path(sys.executable).with_name("jupyter-book"))
        given = [program, "build", "-W", "-n", "--keep-going", "--path-output", str(folder)]
        subprocess.run([*given, str(ROOT)], check=True, env=environment)
    return folder / "_build" / "html"


def main(
    arguments: list[str],
    output: Path = Path("_build/pdf/the-adjoint-book.pdf"),
    say: Callable[[str], None] = print,
) -> int:
    """Write the PDF; the exit code is 1 where there is no browser to print it."""
    program = browser.found(say)
    if program is None:
        return 1
    output = output.resolve()
    output.parent.mkdir(parents=True, exist_ok=True)
    site = Path(arguments[0]).resolve() if arguments else build_site(ROOT / "_build" / "pdf")
    write(site, output, program)
    say(f"The book is at {output}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
