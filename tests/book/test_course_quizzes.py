"""The quizzes: every answer has an explanation, numbers are right, exports hold all of it."""

import math
import re
from xml.etree import ElementTree

import numpy as np
import pytest
from test_notebooks import CHAPTERS

import adjoint_lib as al
from adjoint_book.course import quizzes
from adjoint_book.course.parts import Build
from browser import chromium, opened
from repository import ROOT

WITH_A_QUIZ = [path for path in CHAPTERS if quizzes.of_chapter(path)]
each = pytest.mark.parametrize("path", WITH_A_QUIZ, ids=lambda path: path.stem[3:])
EXAMPLE = """# Quiz

## Is x_b < 3 & `k_1 > 2`?

- [ ] No.
  A first line,
  and a second.
- [x] Yes.
  It is.
- [ ] Maybe.
  Never.

<!-- holds: 1 + 1 == 2 -->
"""


def test_every_quiz_belongs_to_a_chapter():
    files = {path.stem for path in (ROOT / "book" / "quizzes").glob("*.md")}
    assert files == {path.stem[3:] for path in WITH_A_QUIZ}


@each
def test_a_chapter_has_eight_questions_whose_answers_differ_and_are_explained(path):
    questions = quizzes.of_chapter(path)
    assert len(questions) >= 8
    assert len({question.ask for question in questions}) == len(questions)
    for question in questions:
        assert question.ask.endswith(("?", "."))
        texts = {answer.text.casefold() for answer in question.answers}
        remarks = {answer.remark for answer in question.answers}
        assert len(texts) == len(remarks) == len(question.answers) >= 3
        assert all(len(answer.remark.split()) > 4 for answer in question.answers), question.ask


@each
def test_the_numbers_in_its_questions_hold(path):
    for question in quizzes.of_chapter(path):
        for claim in question.holds:
            assert eval(claim, {"np": np, "al": al, "math": math}), (question.ask, claim)


def test_the_right_answers_are_not_always_in_one_place():
    places = [
        [answer.right for answer in question.answers].index(True)
        for path in WITH_A_QUIZ
        for question in quizzes.of_chapter(path)
    ]
    assert max(np.bincount(places)) < 0.4 * len(places)


def test_the_right_answer_is_not_known_by_its_length():
    lengths = [
        (len(answer.text) == max(len(a.text) for a in question.answers), answer.right)
        for path in WITH_A_QUIZ
        for question in quizzes.of_chapter(path)
        for answer in question.answers
    ]
    longest_is_right = sum(right for longest, right in lengths if longest)
    assert longest_is_right < 0.55 * sum(right for _, right in lengths)


@pytest.fixture
def example(tmp_path):
    path = tmp_path / "example.md"
    path.write_text(EXAMPLE, encoding="utf-8")
    (question,) = quizzes.read(path)
    return question


def test_a_question_is_read(example):
    assert example.ask == "Is x_b < 3 & `k_1 > 2`?"
    assert {(a.text, a.remark, a.right) for a in example.answers} == {
        ("No.", "A first line, and a second.", False),
        ("Yes.", "It is.", True),
        ("Maybe.", "Never.", False),
    }
    assert example.holds == ("1 + 1 == 2",)


@pytest.mark.parametrize(("old", "new"), [("[x]", "[ ]"), ("[ ] No", "[x] No"), ("  Never.", "")])
def test_a_question_without_one_right_answer_or_an_explanation_is_refused(tmp_path, old, new):
    (tmp_path / "bad.md").write_text(EXAMPLE.replace(old, new), encoding="utf-8")
    with pytest.raises(al.DataError, match=r"bad\.md: .*exactly one marked"):
        quizzes.read(tmp_path / "bad.md")


def test_marks_become_html_and_nothing_else_does():
    assert quizzes.rich("x_b < 3 & `k_1 <b>`") == (
        "<i>x</i><sub>b</sub> &lt; 3 &amp; <code>k_1 &lt;b&gt;</code>"
    )


def test_moodle_gets_every_question_with_one_right_answer_and_all_feedback(example):
    root = ElementTree.fromstring(quizzes.moodle({"a-chapter": [example]}))
    category, question = root
    assert root.tag == "quiz" and category.get("type") == "category"
    assert category.findtext("category/text") == "$course$/The Adjoint Book/a-chapter"
    assert question.get("type") == "multichoice" and question.findtext("name/text")
    assert "<i>x</i><sub>b</sub>" in question.findtext("questiontext/text")
    assert question.find("questiontext").get("format") == "html"
    assert question.findtext("single") == "true"
    answers = question.findall("answer")
    assert sorted(answer.get("fraction") for answer in answers) == ["0", "0", "100"]
    assert all(answer.findtext("feedback/text") for answer in answers)


def test_one_file_brings_all_quizzes_into_moodle(tmp_path):
    quizzes.quizzes(Build(ROOT / "book", tmp_path))
    written = (tmp_path / "lecturer" / "quizzes" / "all-moodle.xml").read_bytes()
    categories, names = [], []
    for question in ElementTree.fromstring(written):
        if question.get("type") == "category":
            categories.append(question.findtext("category/text").rpartition("/")[2])
        else:
            names.append(question.findtext("name/text"))
            assert names[-1].startswith(f"{categories[-1]}, question ")
    assert categories == [path.stem for path in WITH_A_QUIZ]
    assert len(set(names)) == sum(len(quizzes.of_chapter(path)) for path in WITH_A_QUIZ)


def test_the_plain_text_has_a_key_that_names_the_right_letter(example):
    text = quizzes.plain("A title", [example])
    (letter,) = re.findall(r"^1(\w), right: It is\.$", text, re.M)
    assert f"   {letter}) Yes.\n" in text and "`" not in text


def test_every_quiz_is_written_three_times(tmp_path):
    quizzes.quizzes(Build(ROOT / "book", tmp_path))
    for path in WITH_A_QUIZ:
        for name in (f"{path.stem}.txt", f"{path.stem}-moodle.xml"):
            assert (tmp_path / "lecturer" / "quizzes" / name).is_file()
        page = (tmp_path / "students" / "quizzes" / f"{path.stem}.html").read_text("utf-8")
        assert page.count('<form class="quiz-question">') == len(quizzes.of_chapter(path))
        assert not re.findall(r"(?:src|href)=", page)


def test_the_page_marks_with_the_keyboard_alone(tmp_path, example):
    path = tmp_path / "quiz.html"
    path.write_text(quizzes.page("A title", [example]), encoding="utf-8")
    right = [answer.right for answer in example.answers].index(True)
    with (
        chromium() as browser,
        opened(browser, path, viewport={"width": 390, "height": 800}) as page,
    ):
        said = page.locator(".quiz-said")
        page.get_by_role("button", name="Check").press("Enter")
        assert said.inner_text() == "Choose an answer first."
        page.get_by_role("radio").nth((right + 1) % 3).press("Space")
        page.keyboard.press("Enter")
        assert said.inner_text().startswith("Not this one.")
        page.get_by_role("radio").nth(right).press("Space")
        assert said.inner_text() == ""
        page.keyboard.press("Enter")
        assert said.inner_text() == "Right. It is."
        assert page.locator(".quiz-score").inner_text() == "Right at the first try: 0 of 1."
        assert page.evaluate("document.documentElement.scrollWidth") <= 390
