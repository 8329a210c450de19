"""Exercises with everybody's own numbers: there is one a chapter, and they differ."""

import numpy as np
import pytest
from test_notebooks import CHAPTERS

import adjoint_lib as al
from adjoint_book import course
from adjoint_book.course.marking import verdict
from adjoint_book.course.variants import OWN, own

each = pytest.mark.parametrize("chapter", sorted(OWN))


@each
def test_the_solution_is_right_and_nonsense_is_not(chapter):
    for student in range(40):
        task = own(chapter, student)
        names = {"task": task}
        exec(OWN[chapter].solution, names)
        assert verdict(task.check, names["answer"]) == "right", student
        assert verdict(task.check, None) == "missing"
        for nonsense in ("what?", [1, [2]], {}, float("nan"), lambda: None):
            assert verdict(task.check, nonsense) == "wrong"


@each
def test_students_have_numbers_of_their_own_that_stay(chapter):
    texts = [own(chapter, student).text for student in range(20)]
    assert len(set(texts)) >= 18
    assert texts == [own(chapter, str(student)).text for student in range(20)]
    answers = {str(np.asarray(own(chapter, student).answer()).tolist()) for student in range(20)}
    assert len(answers) >= 10


@each
def test_a_known_mistake_is_never_the_right_answer(chapter):
    for student in range(40):
        task = own(chapter, student)
        for mistake, _ in task.hints:
            assert verdict(task.check, mistake) == "wrong", (student, mistake)


@each
def test_the_question_shows_the_numbers_that_it_is_about(chapter):
    task = own(chapter, 7)
    for name in task.given:
        assert f"task['{name}']" in task.text
    assert task._repr_markdown_() == repr(task) == task.text


def test_a_number_may_be_typed_with_spaces_or_in_capitals():
    assert own("adjoints", " ab 12").text == course.own("adjoints", "AB12").text


def test_a_chapter_without_one_is_named():
    with pytest.raises(al.InputError, match="got 'nothing'"):
        own("nothing", 1)


def test_all_belong_to_chapters():
    assert set(OWN) <= {path.stem[3:] for path in CHAPTERS}
