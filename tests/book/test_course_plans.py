"""Syllabi name what is there, projects run, and the archives hold what they should."""

import re
import zipfile

import pytest
from test_notebooks import CHAPTERS

from adjoint_book.course import chapters, notebooks, plans, projects, zips
from adjoint_book.course.parts import Build
from adjoint_book.course.sheet import cells_of, exercises_of
from repository import ROOT

BOOK = ROOT / "book"
PROJECTS = projects.sources(BOOK)
ADDRESS = "https://example.org/somebody/their-book"


@pytest.fixture(scope="module")
def found():
    return chapters(BOOK)


@pytest.mark.parametrize("outcome", plans.OUTCOMES, ids=lambda outcome: outcome.text[:40])
def test_an_outcome_is_shown_by_exercises_and_questions_of_its_chapter(outcome):
    (path,) = BOOK.glob(f"[0-9][0-9]-{outcome.chapter}.ipynb")
    known = {task.check for task in exercises_of(cells_of(path))}
    assert outcome.checks and set(outcome.checks) <= known
    assert len(plans.quiz_of(outcome, BOOK)) == len(outcome.questions) >= 1


@pytest.mark.parametrize("syllabus", plans.SYLLABI, ids=lambda syllabus: syllabus.file)
def test_a_syllabus_takes_ninety_minutes_a_session_and_has_an_outcome_for_each_chapter(
    syllabus, found
):
    for session in syllabus.sessions:
        assert sum(minutes for minutes, _ in session.steps) == 90, session.title
    assert set(syllabus.subjects) <= {outcome.chapter for outcome in plans.OUTCOMES}
    text = plans.written(syllabus, found, BOOK)
    for subject in syllabus.subjects:
        (path,) = BOOK.glob(f"[0-9][0-9]-{subject}.ipynb")
        assert f"../notebooks/{path.name}" in text
        assert all(item in text for item in plans.further_reading(path))


def test_a_unit_of_two_weeks_has_four_sessions_and_a_seminar_ten():
    assert [len(syllabus.sessions) for syllabus in plans.SYLLABI] == [1, 4, 10]


def test_what_is_built_on_and_not_taught_is_named(found):
    text = plans.written(plans.LECTURE, found, BOOK)
    assert re.search(r"^Not taught here, but built on: 1 .*; 3 ", text, re.M)


def test_there_are_seven_projects_three_of_them_with_a_worked_example():
    assert len(PROJECTS) == 7
    assert sum(bool(projects.parts_of(path)[1]) for path in PROJECTS) == 3


@pytest.mark.parametrize("path", PROJECTS, ids=lambda path: path.stem)
def test_a_project_runs_with_its_worked_example(path, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    starter, example = projects.parts_of(path)
    names: dict = {}
    for code in [projects.SETUP, *projects.code_of(starter), *projects.code_of(example)]:
        exec(code, names)
    assert bool(example) <= bool(capsys.readouterr().out)


def test_students_get_no_worked_example(tmp_path):
    build = Build(BOOK, tmp_path)
    projects.projects(build)
    for path in PROJECTS:
        example = projects.parts_of(path)[1]
        theirs = (build.students("projects") / f"{path.stem}.ipynb").read_text("utf-8")
        ours = (build.lecturer("projects") / f"{path.stem}.ipynb").read_text("utf-8")
        assert "A worked example" not in theirs
        assert ("A worked example" in ours) == bool(example)
    assert "0 to 4 points" in (build.students("projects") / "README.md").read_text("utf-8")


def test_archives_are_the_same_each_time_and_only_one_has_solutions(tmp_path):
    def packed(name: str) -> list[bytes]:
        build = Build(BOOK, tmp_path / name)
        for write in (notebooks.notebooks, plans.plans):
            write(build)
        return [path.read_bytes() for path in zips.pack(build.output, ADDRESS)]

    assert packed("one") == packed("two")
    solved = {}
    for who in ("students", "lecturer"):
        with zipfile.ZipFile(tmp_path / "one" / f"course-{who}.zip") as file:
            assert file.testzip() is None and "README.md" in file.namelist()
            assert f"notebooks/{CHAPTERS[0].name}" in file.namelist()
            texts = [file.read(name).decode() for name in file.namelist()]
        solved[who] = any("BEGIN SOLUTION" in text for text in texts)
    assert solved == {"students": False, "lecturer": True}


def test_whoever_has_an_archive_alone_is_told_where_the_library_is(tmp_path):
    build = Build(BOOK, tmp_path)
    build.students(), build.lecturer()
    zips.pack(build.output, ADDRESS)
    student, lecturer = (
        (tmp_path / who / "README.md").read_text("utf-8") for who in ("students", "lecturer")
    )
    (extra,) = re.findall(rf'pip install "adjoint-lib\[(\w+)\] @ git\+{ADDRESS}"', student)
    project = (ROOT / "pyproject.toml").read_text("utf-8")
    assert re.search(rf'^{extra} = \[.*"jupyterlab', project, re.M)
    assert f'student = "{notebooks.STUDENT}"' in student
    assert f"clone the book's repository, {ADDRESS}," in lecturer


def test_an_archive_does_not_know_when_a_pdf_was_printed(tmp_path):
    made = []
    for year in (2026, 2031):
        folder = tmp_path / str(year)
        folder.mkdir()
        dated = f"/CreationDate (D:{year}1119021245+00'00')\n/Title (D: no date)"
        (folder / "deck.pdf").write_text(dated)
        made.append(zips.archive(folder))
    assert made[0].read_bytes() == made[1].read_bytes()
    with zipfile.ZipFile(made[0]) as file:
        assert file.read("deck.pdf").endswith(b"/Title (D: no date)")
        assert len(file.read("deck.pdf")) == len(dated)
