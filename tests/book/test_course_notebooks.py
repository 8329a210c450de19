"""The editions of the chapters: nothing of the solutions reaches the students, nothing is lost."""

import json
import re

import nbformat
import pytest
from nbclient import NotebookClient
from test_notebooks import CHAPTERS

from adjoint_book import exercises
from adjoint_book.course import notebooks
from adjoint_book.course.parts import Build
from adjoint_book.course.sheet import cells_of, exercises_of, questions_of
from repository import ROOT

each = pytest.mark.parametrize("path", CHAPTERS, ids=lambda path: path.stem)
KEYS = {"schema_version": int, "grade_id": str, "grade": bool, "locked": bool, "solution": bool}


@each
def test_students_get_no_solution_no_expected_answer_and_no_output(path):
    cells = notebooks.student(path)
    text = "\n".join(cell["source"] for cell in cells)
    for task in exercises_of(cells_of(path)):
        assert task.solution and task.solution not in text
        assert len(re.findall(rf"exercises\.{task.check}\(", text)) == 1
    for question in questions_of(cells_of(path)):
        assert question.expected not in text and question.text.split("\n")[0] in text
    assert "What an answer should have" not in text and "# Solution" not in text
    assert not any(cell.get("outputs") for cell in cells)


@each
def test_the_instructor_gets_every_solution_and_every_expected_answer(path):
    cells = notebooks.instructor(path)
    text = "\n".join(cell["source"] for cell in cells)
    for task in exercises_of(cells_of(path)):
        assert f"### BEGIN SOLUTION\n{task.solution}\n### END SOLUTION" in text
    for question in questions_of(cells_of(path)):
        assert f"({question.points} points)" in text
        assert question.expected.splitlines()[0].removeprefix("- ") in text


@each
def test_both_editions_are_notebooks_with_metadata_that_nbgrader_takes(path, tmp_path):
    for cells in (notebooks.student(path), notebooks.instructor(path)):
        notebooks.write(tmp_path / path.name, cells)
        found = nbformat.read(tmp_path / path.name, as_version=4)
        nbformat.validate(found)
        marked = [cell for cell in found.cells if "nbgrader" in cell.metadata]
        names = [cell.metadata.nbgrader.grade_id for cell in marked]
        assert len(set(names)) == len(names)
        for cell in marked:
            data = dict(cell.metadata.nbgrader)
            assert {key: type(data[key]) for key in KEYS} == KEYS
            assert data["schema_version"] == 3 and re.fullmatch(r"[\w-]+", data["grade_id"])
            assert data["grade"] == ("points" in data)
            assert cell.cell_type == "code" or (data["grade"] and data["solution"])


@each
def test_every_exercise_and_question_of_the_chapter_is_found(path):
    cells = cells_of(path)
    text = "\n".join(cell["source"] for cell in cells if cell["cell_type"] == "markdown")
    tasks, questions = exercises_of(cells), questions_of(cells)
    assert [task.number for task in tasks] == re.findall(r"^### Exercise ([\d.]+):", text, re.M)
    assert [each.number for each in questions] == re.findall(r"^### Question ([\d.]+):", text, re.M)
    assert {task.check for task in tasks} <= set(exercises.checks())


def test_the_same_chapters_give_the_same_bytes(tmp_path):
    def written(name: str) -> dict[str, bytes]:
        notebooks.notebooks(Build(ROOT / "book", tmp_path / name))
        files = sorted((tmp_path / name).rglob("*.*"))
        return {str(f.relative_to(tmp_path / name)): f.read_bytes() for f in files}

    one = written("one")
    assert one == written("two")
    pages = {name for name in one if name.endswith(".md")}
    assert "students/notebooks/bibliography.md" in pages


def test_the_students_edition_runs_to_its_end_in_a_folder_of_its_own(tmp_path):
    (path,) = (path for path in CHAPTERS if path.stem.endswith("one-neuron"))
    notebooks.write(tmp_path / path.name, notebooks.student(path))
    found = nbformat.read(tmp_path / path.name, as_version=4)
    NotebookClient(found, timeout=300, resources={"metadata": {"path": str(tmp_path)}}).execute()
    said = json.dumps([cell.get("outputs") for cell in found.cells])
    assert said.count("not answered yet") >= len(notebooks.tasks_of(path))
