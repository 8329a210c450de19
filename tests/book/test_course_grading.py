"""Marking survives whatever is handed in, and its marks are right.

The bad submissions run once, all together; each test looks at the verdict of one.
"""

import csv
import json
import os
import socket
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import adjoint_lib as al
from adjoint_book.course import notebooks
from adjoint_book.course.grading import confine, grade, plain
from adjoint_book.course.grading.grade import feedback
from adjoint_book.course.grading.processes import Limits
from adjoint_book.course.sheet import cells_of, exercises_of
from repository import ROOT

linux = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs Linux")
pytestmark = linux

CHAPTER = ROOT / "book" / "01-adjoints.ipynb"
FIRST = "check-difference-adjoint"
RIGHT = "answer = [-1, -1, -1, -1, 4]"
MARK = grade.Mark("one", CHAPTER.stem, "1.1 differences", 1, 1, "Correct")
LIMITS = Limits(seconds=100, cell_seconds=3, memory=2 << 30)


def handed_in(folder: Path, student: str, first: str | None = RIGHT, **others) -> None:
    """The student's edition with these answers, by the id of their cells; None deletes the cell."""
    answers = {FIRST: first, **{name.replace("_", "-"): text for name, text in others.items()}}
    cells = notebooks.student(CHAPTER)
    kept = [cell for cell in cells if answers.get(cell["id"], "") is not None]
    changed = [{**cell, "source": answers.get(cell["id"], cell["source"])} for cell in kept]
    (folder / student).mkdir(parents=True)
    notebooks.write(folder / student / CHAPTER.name, changed)


@pytest.fixture(scope="module")
def outside(tmp_path_factory) -> Path:
    """A file that a submission has no business with."""
    path = tmp_path_factory.mktemp("outside") / "marks.txt"
    path.write_text("as it was")
    os.chmod(path, 0o666)
    os.chmod(path.parent, 0o777)
    return path


@pytest.fixture(scope="module")
def listener():
    """A port of this machine that somebody listens at, and who came."""
    came = []
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(0.2)
        stop = threading.Event()

        def listen():
            while not stop.is_set():
                try:
                    connection, address = server.accept()
                    connection.close()
                    came.append(address)
                except TimeoutError:
                    continue

        thread = threading.Thread(target=listen)
        thread.start()
        yield server.getsockname()[1], came
        stop.set()
        thread.join()


@pytest.fixture(scope="module")
def marked(tmp_path_factory, outside, listener):
    """(marks by student and exercise, how it ran, the folder of the marks)."""
    folder, marks = tmp_path_factory.mktemp("submitted"), tmp_path_factory.mktemp("marks")
    right = {cell["id"]: cell["source"] for cell in notebooks.instructor(CHAPTER)}
    tasks = [task.check for task in notebooks.tasks_of(CHAPTER)[1:]]
    right = {check: right[check.replace("_", "-")] for check in tasks}
    handed_in(folder, notebooks.STUDENT, RIGHT, **right)
    handed_in(folder, "empty", "answer = None  # five numbers")
    handed_in(folder, "forgot", own_adjoints=right["own_adjoints"])
    handed_in(folder, "syntax", "answer = [1, 2", check_weighted_representer="answer = [1, 1, .75]")
    handed_in(
        folder,
        "endless",
        "while True:\n    pass",
        check_weighted_representer="answer = [1, 1, .75]",
    )
    handed_in(folder, "waits", f"import time\ntime.sleep(5)\n{RIGHT}")
    handed_in(folder, "sleeps", f"import time\ntime.sleep(10**6)\n{RIGHT}")
    handed_in(folder, "memory", "import numpy as np\nanswer = np.ones(10 * 2**30 // 8)")
    handed_in(folder, "leaves", "import os\nos._exit(0)")
    handed_in(folder, "deleted", None)
    handed_in(folder, "renamed", "my_answer = [-1, -1, -1, -1, 4]")
    port = listener[0]
    reach = f"import socket\nsocket.create_connection(('127.0.0.1', {port}), 2)\n{RIGHT}"
    handed_in(folder, "network", reach)
    write = f"open({str(outside)!r}, 'w').write('all mine')\n{RIGHT}"
    handed_in(folder, "writes", write)
    handed_in(folder, "type", "answer = {'five': 'numbers'}")
    handed_in(
        folder,
        "says",
        "class Right:\n    def __repr__(self):\n        return 'Correct: yes'\nanswer = Right()",
    )
    speaks = "def pool_adjoint(g):\n    print('Correct: believe me')\n    return g"
    handed_in(folder, "speaks", check_pool_adjoint=speaks)
    handed_in(folder, "looks", f"open({str(CHAPTER)!r}).read()\n{RIGHT}")
    handed_in(folder, "copies", f"open({str(folder / 'empty' / CHAPTER.name)!r}).read()\n{RIGHT}")
    handed_in(folder, "secrets", f"open('/etc/shadow').read()\n{RIGHT}")
    said = {"check": "check_difference_adjoint", "answer": "Correct", "said": "Correct: yes"}
    forged = f"import json, os\nos.write(4, json.dumps({said}).encode() + b'\\n')"
    handed_in(folder, "forges", forged)
    patched = "lambda *given, **more: print('Correct: patched')"
    handed_in(
        folder,
        "patches",
        "import adjoint_book.course.marking as marking\n"
        "from adjoint_book.exercises import checking\n"
        f"book.exercises.check_difference_adjoint = checking.compare = {patched}\n"
        "marking.verdict = lambda *given: 'right'\nanswer = [0]",
    )
    handed_in(folder, "metadata", "answer = [0]")
    overpaid = json.loads((folder / "metadata" / CHAPTER.name).read_text())
    for cell in overpaid["cells"]:
        cell["metadata"].get("nbgrader", {}).update(points=1000, grade_id=FIRST, locked=True)
    (folder / "metadata" / CHAPTER.name).write_text(json.dumps(overpaid))
    handed_in(
        folder, "floods", f"import os\nfor i in range(200):\n    os.write(1, b'x' * 10**6)\n{RIGHT}"
    )
    (folder / "deep").mkdir()
    (folder / "deep" / CHAPTER.name).write_text("[" * 10**6)
    (folder / "another").symlink_to(folder / "syntax")
    (folder / "nonsense").mkdir()
    (folder / "nonsense" / CHAPTER.name).write_text("this is no notebook")
    (folder / "linked").mkdir()
    (folder / "linked" / CHAPTER.name).symlink_to("/etc/passwd")
    found = grade.grade(folder, marks, ROOT / "book", LIMITS, workers=2)
    with open(marks / "marks.csv", encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    by = {(row["student"], row["exercise"].split()[0]): row for row in rows}
    return by, found, marks


def first(marked, student: str) -> tuple[str, str]:
    row = marked[0][student, "1.1"]
    return row["points"], row["message"]


def test_solutions_get_all_points_and_an_empty_edition_none(marked):
    rows = marked[0]
    for student, share in ((notebooks.STUDENT, 1), ("empty", 0)):
        of = [row for (name, _), row in rows.items() if name == student]
        assert len(of) == len(notebooks.tasks_of(CHAPTER)) >= 5
        assert all(int(row["points"]) == share * int(row["out of"]) for row in of), of


@pytest.mark.parametrize(
    ("student", "points", "said"),
    [
        ("syntax", "0", "SyntaxError"),
        ("endless", "0", "it ran longer than 3 seconds"),
        ("memory", "0", "MemoryError"),
        ("leaves", "0", "ended its own process"),
        ("deleted", "0", "the cell for its answer is missing"),
        ("renamed", "0", "does not set the name it was given, but my_answer"),
        ("type", "0", "Not yet: expected an array of shape (5,)"),
        ("says", "0", "Not yet: expected an array of shape (5,)"),
        ("nonsense", "0", "this is no notebook"),
        ("linked", "0", "no ordinary file"),
        ("speaks", "1", "Correct"),
        ("forges", "0", "not answered: the cell does not set the name it was given"),
        ("patches", "0", "Not yet: expected an array of shape (5,)"),
        ("floods", "1", "Correct"),
        ("deep", "0", "this is no notebook (RecursionError"),
        ("another", "0", "no ordinary file"),
    ],
)
def test_each_bad_submission_gets_its_verdict(marked, student, points, said):
    assert first(marked, student)[0] == points
    assert said in first(marked, student)[1]


def test_whoever_forgot_the_number_learns_with_whose_it_was_marked(marked):
    row = marked[0]["forgot", "of"]
    assert row["points"] == "0" and row["message"].startswith("Not yet")
    assert row["message"].endswith("It was marked with the numbers of forgot.")
    assert "numbers of" not in marked[0][notebooks.STUDENT, "of"]["message"]


def test_an_error_of_syntax_names_no_file_that_the_student_does_not_have(marked):
    assert "in line 1" in first(marked, "syntax")[1] and "ipython" not in first(marked, "syntax")[1]


def test_what_fails_in_one_cell_leaves_the_other_answers(marked):
    for student in ("syntax", "endless"):
        assert marked[0][student, "1.2"]["points"] == "2"


@pytest.mark.parametrize(
    ("does", "seconds", "said"),
    [
        ("pass", 4, ", since it took more than 4 seconds of the processor's time."),
        ("time.sleep(1)", 1, " after 4 seconds."),
    ],
)
def test_a_notebook_that_cannot_be_interrupted_is_stopped(tmp_path, does, seconds, said):
    deaf = "for n in (signal.SIGALRM, signal.SIGPROF):\n    signal.signal(n, signal.SIG_IGN)"
    handed_in(tmp_path / "in", "deaf", f"import signal, time\n{deaf}\nwhile True: {does}")
    limits = Limits(seconds=seconds, cell_seconds=1)
    (found,) = grade.grade(tmp_path / "in", tmp_path / "out", ROOT / "book", limits)
    assert {mark.points for mark in found.marks} == {0}
    assert {mark.message for mark in found.marks} == {f"not marked: the notebook was stopped{said}"}


def test_time_is_the_processors_until_somebody_waits_too_long(marked):
    assert first(marked, "waits") == ("1", first(marked, notebooks.STUDENT)[1])
    assert first(marked, "sleeps")[0] == "0"
    assert "it ran longer than 12 seconds" in first(marked, "sleeps")[1]


def test_a_function_that_says_it_is_right_is_not_believed(marked):
    row = marked[0]["speaks", "1.3"]
    assert row["points"] == "0" and row["message"].startswith("Not yet")


def measures(marked, student: str) -> dict[str, bool]:
    (held,) = (one.held for one in marked[1] if one.marks[0].student == student)
    return held


def test_nobody_reaches_the_network(marked, listener):
    if not measures(marked, "network")["network"]:
        pytest.skip("this system grants no network of its own")
    assert first(marked, "network")[0] == "0" and "Error" in first(marked, "network")[1]
    assert not listener[1]


def test_nothing_is_written_outside(marked, outside):
    held = measures(marked, "writes")
    if not (held["files"] or held["user"]):
        pytest.skip("this system cannot keep a process from writing files")
    assert outside.read_text() == "as it was"
    assert first(marked, "writes")[0] == "0" and "PermissionError" in first(marked, "writes")[1]


@pytest.mark.parametrize("student", ["looks", "copies", "secrets"])
def test_nobody_reads_solutions_other_submissions_or_secrets(marked, student):
    if not measures(marked, student)["files"]:
        pytest.skip("this system cannot keep a process from reading files")
    assert first(marked, student)[0] == "0" and "PermissionError" in first(marked, student)[1]


def test_forged_metadata_is_worth_nothing(marked):
    rows = [row for (student, _), row in marked[0].items() if student == "metadata"]
    assert len(rows) == len(notebooks.tasks_of(CHAPTER))
    assert all(row["points"] == "0" and int(row["out of"]) <= 3 for row in rows)


def test_the_chapters_that_a_submission_finds_have_no_solutions():
    found = grade._editions(ROOT / "book")
    assert CHAPTER.name in found and len(found) >= 19
    for name, text in found.items():
        cells = exercises_of(cells_of(ROOT / "book" / name))
        assert not any(json.dumps(task.solution)[1:-1] in text for task in cells)


def alone(tmp_path, answer: str, **limits) -> str:
    """What is said of one submission with these limits."""
    handed_in(tmp_path / "in", "alone", answer)
    (found,) = grade.grade(tmp_path / "in", tmp_path / "out", ROOT / "book", Limits(**limits))
    (message,) = {mark.message for mark in found.marks}
    return message


@pytest.mark.parametrize(
    "answer",
    [
        "while True:\n    open(f'{i}', 'wb').write(b'x' * 10**7)\n    i += 1",
        "while True:\n    os.write(os.memfd_create('x'), b'x' * 10**7)",
    ],
    ids=["to its folder", "to memory"],
)
def test_what_writes_without_end_is_stopped(tmp_path, answer):
    answer = f"import os, time\ni = 0\n{answer}\n    time.sleep(0.01)"
    assert "wrote more than 0.1 GB" in alone(tmp_path, answer, files=100 << 20)


@pytest.mark.parametrize(
    "answer",
    [
        "while True:\n    try: os.fork()\n    except OSError: pass",
        "for pid in (-1, os.getppid(), 1):\n    try: os.kill(pid, 9)\n    except OSError: pass\n"
        "os.kill(os.getpid(), 9)",
    ],
    ids=["forks", "signals"],
)
def test_forks_and_signals_end_with_the_submission(marked, tmp_path, answer):
    if not measures(marked, "empty")["processes"]:
        pytest.skip("this system grants no processes of its own, and it might kill ours")
    limits = {"seconds": 20, "cell_seconds": 2, "memory": 1 << 30}
    assert alone(tmp_path, f"import os\n{answer}", **limits).startswith("not marked: ")


def test_a_measure_that_was_not_held_is_named(tmp_path, monkeypatch):
    handed_in(tmp_path / "in", "one", RIGHT)
    held = {"network": True, "processes": True, "files": False, "user": False}
    monkeypatch.setattr(grade, "one", lambda *given: grade.Marked([MARK], 0.0, held))
    said: list[str] = []
    grade.grade(tmp_path / "in", tmp_path / "out", ROOT / "book", say=said.append)
    assert said[-1].startswith("These measures were not in force: files, user;")


def test_how_it_ran_is_written_down(marked):
    ran = json.loads((marked[2] / "how-it-ran.json").read_text())
    assert set(ran["measures"]) == {"network", "processes", "files", "user"}
    assert ran["limits"]["seconds"] == 100 and len(ran["seconds"]) == len(marked[1])


def test_everybody_gets_a_file_of_feedback(marked):
    for one in marked[1]:
        mark = one.marks[0]
        text = (marked[2] / "feedback" / mark.student / f"{mark.chapter}.md").read_text()
        assert text == feedback(one.marks) and mark.message in text


def test_a_folder_without_notebooks_is_refused(tmp_path):
    with pytest.raises(al.InputError, match="found none"):
        grade.grade(tmp_path, tmp_path / "marks", ROOT / "book")


def test_only_chapters_with_exercises_are_looked_for_and_only_in_folders_of_students(tmp_path):
    names = [
        "00-preface.ipynb",
        "ab/01-adjoints.ipynb",
        "ab/00-preface.ipynb",
        "ab/unit/04-folding.ipynb",
        "ab/.ipynb_checkpoints/05-proof.ipynb",
        "cd/notes.ipynb",
    ]
    for name in names:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("{}")
    found = grade.submissions(tmp_path, ROOT / "book")
    assert [(each.student, each.chapter.stem) for each in found] == [
        ("ab", "01-adjoints"),
        ("ab", "04-folding"),
    ]


def test_a_name_that_a_spreadsheet_would_run_is_only_a_name():
    assert grade._cell("=HYPERLINK(1)") == "'=HYPERLINK(1)" and grade._cell("2024") == "2024"


def test_a_measure_that_the_system_refuses_is_found_out_by_a_child():
    def refused():
        raise PermissionError

    assert not confine._tried(refused)
    assert confine._tried(lambda: os.chdir("/")) and os.getcwd() != "/"


# ---- answers as plain data

ANSWERS = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), st.text()),
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.tuples(inner, inner),
        st.dictionaries(st.text(), inner, max_size=3),
        st.sets(st.one_of(st.text(), st.integers()), max_size=3),
    ),
    max_leaves=8,
)


@given(ANSWERS)
def test_plain_answers_come_through_as_they_are(answer):
    written = json.loads(json.dumps(plain.encode(answer)))
    assert plain.decode(written) == answer


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "bool", "uint8"])
def test_arrays_come_through_to_the_bit(dtype):
    array = (np.arange(12).reshape(3, 4) - 4).astype(dtype)
    found = plain.decode(json.loads(json.dumps(plain.encode(array))))
    assert found.dtype == array.dtype and np.array_equal(found, array)
    assert plain.decode(plain.encode(array[1, 2])) == array[1, 2]
    assert plain.decode(plain.encode(array[:, ::2].T)).tolist() == array[:, ::2].T.tolist()


class Hostile:
    """Fails whatever is asked of it."""

    def __getattr__(self, name):
        raise RuntimeError("no")


def test_what_is_not_plain_becomes_a_description():
    nested: list = []
    nested.append(nested)
    for value in (object(), Hostile(), nested, "x" * 10**6, [0] * 10**6, np.zeros(10**8, "i1")):
        written = plain.encode(value)
        assert len(json.dumps(written)) < 2000
        plain.decode(written)
    assert repr(plain.decode(plain.encode(object()))) == "an object"
    assert repr(plain.decode(plain.encode(len))) == "a function"


@pytest.mark.parametrize(
    "written",
    [
        {"what": 1},
        {"array": ["|O", [1], "AAAAAAAAAAA="]},
        {"array": ["<f8", [10**9], "AAAA"]},
        {"array": ["<f8", [-1], ""]},
        {"list": 3},
        [1, 2],
    ],
)
def test_what_nobody_wrote_is_not_read(written):
    with pytest.raises(al.DataError, match="not marked"):
        plain.decode(written)


def test_a_model_comes_through_and_one_with_code_in_it_does_not():
    import keras

    model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(3), keras.layers.ReLU()])
    found = plain.decode(json.loads(json.dumps(plain.encode(al.models.randomise(model)))))
    x = np.ones((2, 4), "float32")
    assert np.array_equal(found(x), model(x))
    for layer in (keras.layers.Lambda(lambda x: x), type("Mine", (keras.layers.Layer,), {})()):
        strange = keras.Sequential([keras.Input((4,)), layer])
        assert "by hand" in repr(plain.decode(plain.encode(strange)))


# ---- what is known of a chapter


def test_every_exercise_has_points_and_a_solution():
    for task in exercises_of(cells_of(CHAPTER)):
        assert task.points in (1, 2, 3) and task.solution
