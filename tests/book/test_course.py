"""What chapters say of themselves is read right, plans follow from it, checks do the marking."""

import json

import pytest
from test_notebooks import CHAPTERS, cells, source

import adjoint_lib as al
from adjoint_book import course, exercises
from repository import ROOT

OVERVIEW = """# {title}

> **Overview**
>
> **Time:** {minutes} minutes to read, seconds to run.
>
> **You need:** {needs}
"""


def write(folder, name, title="A title", minutes=20, needs="nothing.", more=()):
    first = OVERVIEW.format(title=title, minutes=minutes, needs=needs)
    found = [{"cell_type": "markdown", "source": text} for text in (first, *more)]
    (folder / f"{name}.ipynb").write_text(json.dumps({"cells": found}), encoding="utf-8")


@pytest.fixture
def book(tmp_path):
    exercise = ["### Exercise 1: count\n\nHow many?", "exercises.check_versions(answer)"]
    write(tmp_path, "00-preface")
    write(tmp_path, "01-one", "One", 30, more=exercise)
    write(tmp_path, "02-two", needs="[one](01-one.ipynb) and\n> [a page](glossary.md).")
    write(tmp_path, "03-three")
    write(tmp_path, "04-four", needs="[two](./02-two.ipynb), [what follows](05-five.ipynb).")
    return tmp_path


def test_overviews_are_read(book):
    one, two, three, four = course.chapters(book)
    assert (one.number, one.file, one.title, one.minutes) == (1, "01-one", "One", 30)
    assert one.exercises == {"count": "check_versions"}
    assert [chapter.needs for chapter in (one, two, three, four)] == [(), (1,), (), (2,)]


def test_the_way_to_a_chapter_has_all_that_it_needs_and_no_more(book):
    chapters = course.chapters(book)
    assert course.way_to(chapters, [4]) == [1, 2, 4]
    assert course.way_to(chapters, [3]) == [3]
    assert course.way_to(chapters, [3, 2]) == [1, 2, 3]


def test_a_plan_adds_minutes(book):
    chapters = course.chapters(book)
    first, second = course.sessions(chapters, {"a": [1, 2], "b": [3]}, per_exercise=7)
    assert first == ["a", "1 One; 2 A title", "50", "7"]
    assert second == ["b", "3 A title", "20", "0"]


def test_a_chapter_that_is_not_there_is_named(book):
    chapters = course.chapters(book)
    with pytest.raises(al.InputError, match="one of 1, 2, 3, 4; got 9"):
        course.way_to(chapters, [9])
    with pytest.raises(al.InputError, match="one of 1, 2, 3, 4; got 9"):
        course.sessions(chapters, {"a": [1, 9]})


def test_a_chapter_without_an_overview_is_named(book):
    (book / "05-five.ipynb").write_text(
        '{"cells": [{"cell_type": "markdown", "source": "# Five"}]}'
    )
    with pytest.raises(al.DataError, match=r"05-five\.ipynb: expected its first cell"):
        course.chapters(book)


def test_the_books_own_chapters_are_found_from_any_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert [chapter.file for chapter in course.chapters()] == [path.stem for path in CHAPTERS]


def test_a_folder_without_chapters_is_refused(tmp_path):
    with pytest.raises(al.DataError, match="found none"):
        course.chapters(tmp_path)


@pytest.mark.parametrize("path", CHAPTERS, ids=lambda path: path.stem)
def test_every_chapter_of_the_book_can_be_planned_with(path):
    (chapter,) = (c for c in course.chapters(ROOT / "book") if c.file == path.stem)
    headings = [line for cell in cells(path, "markdown") for line in source(cell).splitlines()]
    count = sum(line.startswith("### Exercise ") for line in headings)
    assert len(chapter.exercises) == count >= 3
    assert set(chapter.exercises.values()) <= set(exercises.checks())


def test_marking_asks_the_checks():
    sheet = {"check_versions": 162, "check_saturation": [1, 2, 3], "check_shift_adjoint": None}
    assert list(course.mark(sheet).values()) == ["right", "wrong", "missing"]
    with pytest.raises(al.InputError, match=r"expected names of checks.*check_nothing"):
        course.mark({"check_nothing": 1})


def test_what_says_nothing_is_no_check():
    with pytest.raises(al.InputError, match="expected the check to print"):
        course.verdict(lambda answer: print("Well"), 1)


def test_the_sheet_in_the_chapter_is_the_one_that_is_checked():
    from adjoint_book.exercises.ch19_teaching import SHEET

    (cell,) = (
        source(cell)
        for cell in cells(ROOT / "book" / "19-teaching.ipynb", "code")
        if source(cell).startswith("sheet = ")
    )
    written: dict = {}
    exec(cell.partition("\n}\n")[0] + "\n}", written)
    assert written["sheet"] == SHEET
