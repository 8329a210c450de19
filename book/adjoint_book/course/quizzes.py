"""Quizzes: questions with several answers, each of which has an explanation, right or wrong.

A chapter's are in `book/quizzes/NAME.md`, named after the chapter's file without its number, as a
list of tasks that any reader of Markdown shows:

    ## What does the question ask?

    - [ ] A wrong answer.
      Why somebody may think so, and why it is not so.
    - [x] The right answer.
      Why it is right.

    <!-- holds: 3072 + 1184 == 4256 -->

What "holds" is Python, and a test evaluates it, so that no number in a question is wrong. Formulas
are written in plain characters (A∗ w, x_b, ⟨v | H⟩), so that every export can show them; `code` is
the only mark, and a letter with an index, as in x_b, is set as one.
"""

from __future__ import annotations

import html
import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

from adjoint_book.course.parts import Build, part
from adjoint_lib.errors import DataError

ANSWER = re.compile(r"^- \[([ x])\] (.+)\n((?:  .+\n?)+)", re.M)
HOLDS = re.compile(r"^<!-- holds: (.+) -->$", re.M)
INDEXED = re.compile(r"\b([A-Za-zγβμσδ])_([A-Za-z0-9]{1,4})\b")
STATIC = Path(__file__).resolve().parents[2] / "_static"
LETTERS = "abcdefgh"


@dataclass(frozen=True)
class Answer:
    """An answer: what it says, what there is to say of it, and whether it is right."""

    text: str
    remark: str
    right: bool


@dataclass(frozen=True)
class Question:
    """A question with several answers, one of them right.

    Attributes:
        ask: the question.
        answers: in the order in which they are shown.
        holds: Python that is true if the numbers in the question are right.
    """

    ask: str
    answers: tuple[Answer, ...]
    holds: tuple[str, ...] = ()


@part("quizzes", "multiple choice for each chapter: pages that mark themselves, Moodle, plain text")
def quizzes(build: Build) -> None:
    """Write each chapter's quiz as a page for students, as Moodle XML and as plain text."""
    pages, exports = build.students("quizzes"), build.lecturer("quizzes")
    by_chapter: dict[str, list[Question]] = {}
    for chapter in sorted(build.book.glob("[0-9][0-9]-*.ipynb")):
        found = of_chapter(chapter)
        if found:
            by_chapter[chapter.stem] = found
            title = title_of(chapter)
            (pages / f"{chapter.stem}.html").write_text(page(title, found), encoding="utf-8")
            (exports / f"{chapter.stem}.txt").write_text(plain(title, found), encoding="utf-8")
            only = moodle({chapter.stem: found})
            (exports / f"{chapter.stem}-moodle.xml").write_bytes(only)
    (exports / "all-moodle.xml").write_bytes(moodle(by_chapter))


def of_chapter(chapter: Path) -> list[Question]:
    """The questions of a chapter's notebook; none if it has no quiz."""
    path = chapter.parent / "quizzes" / f"{chapter.stem[3:]}.md"
    return read(path) if path.is_file() else []


def read(path: Path) -> list[Question]:
    """The questions in a file."""
    _, *parts = re.split(r"^## ", path.read_text(encoding="utf-8"), flags=re.M)
    return [_question(path, part) for part in parts]


def title_of(chapter: Path) -> str:
    """The first heading of a notebook."""
    from adjoint_book.course.sheet import cells_of

    return cells_of(chapter)[0]["source"].splitlines()[0].lstrip("# ").strip()


def _question(path: Path, text: str) -> Question:
    ask = text.partition("\n\n")[0].replace("\n", " ").strip()
    answers = tuple(
        Answer(said.strip(), " ".join(remark.split()), mark == "x")
        for mark, said, remark in ANSWER.findall(text)
    )
    if sum(answer.right for answer in answers) != 1 or not 3 <= len(answers) <= len(LETTERS):
        raise DataError(
            f"{path.name}: {ask!r}: expected three answers or more, each with an explanation in "
            f"the lines below it, and exactly one marked [x]; found {len(answers)}, "
            f"{sum(answer.right for answer in answers)} of them marked."
        )
    seed = random.Random(ask)  # the order is the same each time, and the right one anywhere
    return Question(ask, tuple(seed.sample(answers, len(answers))), tuple(HOLDS.findall(text)))


# ------------------------------------------------------------------ as a page


def page(title: str, questions: Sequence[Question]) -> str:
    """A page that needs no other file, and marks itself."""
    style = (STATIC / "quiz.css").read_text(encoding="utf-8")
    script = (STATIC / "quiz.js").read_text(encoding="utf-8")
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Quiz: {html.escape(title)}</title>
<style>
{style}</style>
</head>
<body class="quiz-page">
<main>
<h1>{html.escape(title)}</h1>
{fragment(questions)}
</main>
<script>
{script}</script>
</body>
</html>
"""


def fragment(questions: Sequence[Question]) -> str:
    """The quiz as a section of a page; `quiz.js` and `quiz.css` belong to it."""
    forms = "\n".join(_form(number, question) for number, question in enumerate(questions, 1))
    return f"""<section class="quiz" id="quiz">
<h2>Quiz</h2>
<p>Choose an answer and check it; every answer says why. Nothing is sent anywhere.</p>
{forms}
<p class="quiz-score" role="status"></p>
</section>"""


def _form(number: int, question: Question) -> str:
    name = f"quiz-{number}"
    choices = "\n".join(
        f'<label><input type="radio" name="{name}" value="{i}"> <span>{rich(answer.text)}</span>'
        "</label>"
        for i, answer in enumerate(question.answers)
    )
    remarks = "\n".join(
        f"<li{' data-right' if answer.right else ''}>"
        f"<b>{'Right.' if answer.right else 'Not this one.'}</b> {rich(answer.remark)}</li>"
        for answer in question.answers
    )
    return f"""<form class="quiz-question">
<fieldset>
<legend><b>{number}.</b> {rich(question.ask)}</legend>
{choices}
</fieldset>
<button type="submit">Check</button>
<div class="quiz-said" role="status"></div>
<details><summary>All answers explained</summary>
<ol type="a">
{remarks}
</ol>
</details>
</form>"""


def rich(text: str) -> str:
    """Text with its marks as HTML."""
    pieces = re.split(r"`([^`]+)`", text)
    return "".join(
        f"<code>{html.escape(piece)}</code>" if i % 2 else _indexed(html.escape(piece, quote=False))
        for i, piece in enumerate(pieces)
    )


def _indexed(text: str) -> str:
    return INDEXED.sub(r"<i>\1</i><sub>\2</sub>", text)


# ------------------------------------------------------------------ exports


def plain(title: str, questions: Sequence[Question]) -> str:
    """The quiz as plain text, with the key at its end."""
    lines = [f"Quiz: {title}", ""]
    key = ["Key", ""]
    for number, question in enumerate(questions, 1):
        lines += [f"{number}. {question.ask}"]
        for letter, answer in zip(LETTERS, question.answers, strict=False):
            lines.append(f"   {letter}) {answer.text}")
            verdict = "right" if answer.right else "wrong"
            key.append(f"{number}{letter}, {verdict}: {answer.remark}")
        lines.append("")
        key.append("")
    return "\n".join([*lines, *key]).replace("`", "").rstrip() + "\n"


def moodle(quizzes: Mapping[str, Sequence[Question]]) -> bytes:
    """Quizzes, by category, in Moodle's XML, for "Import questions" in a question bank."""
    root = ElementTree.Element("quiz")
    for category, questions in quizzes.items():
        place = ElementTree.SubElement(root, "question", type="category")
        _text(ElementTree.SubElement(place, "category"), f"$course$/The Adjoint Book/{category}")
        for number, question in enumerate(questions, 1):
            root.append(_moodle_question(f"{category}, question {number}", question))
    ElementTree.indent(root, " ")
    return ElementTree.tostring(root, encoding="utf-8", xml_declaration=True) + b"\n"


def _moodle_question(name: str, question: Question) -> ElementTree.Element:
    element = ElementTree.Element("question", type="multichoice")
    _text(ElementTree.SubElement(element, "name"), name)
    _html(element, "questiontext", rich(question.ask))
    _html(element, "generalfeedback", "")
    settings = {
        "defaultgrade": "1.0",
        "penalty": "0.3333333",
        "hidden": "0",
        "single": "true",
        "shuffleanswers": "true",
        "answernumbering": "abc",
    }
    for key, value in settings.items():
        ElementTree.SubElement(element, key).text = value
    for kind in ("correctfeedback", "partiallycorrectfeedback", "incorrectfeedback"):
        _html(element, kind, "")
    for answer in question.answers:
        fraction = "100" if answer.right else "0"
        made = _html(element, "answer", rich(answer.text), fraction=fraction)
        _html(made, "feedback", rich(answer.remark))
    return element


def _html(
    parent: ElementTree.Element, kind: str, content: str, **attributes: str
) -> ElementTree.Element:
    element = ElementTree.SubElement(parent, kind, {**attributes, "format": "html"})
    _text(element, f"<p>{content}</p>" if content else "")
    return element


def _text(parent: ElementTree.Element, content: str) -> None:
    ElementTree.SubElement(parent, "text").text = content
