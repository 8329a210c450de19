"""What a check says of right, wrong, missing and strange answers; it never raises."""

import ast
import importlib
import inspect
import pkgutil

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import adjoint_lib as al
from adjoint_book import exercises
from adjoint_book.exercises.checking import compare, compare_function, compare_properties

MODULES = [module.name for module in pkgutil.iter_modules(exercises.__path__)]
VECTOR = np.array([1.0, -2.0, 3.0])


def said(capsys, answer, truth, **options) -> str:
    compare(answer, truth, correct="well done.", **options)
    return one_line(capsys.readouterr().out)


def one_line(out: str) -> str:
    """What was printed, with its line breaks taken out; they come before a page's width ends."""
    lines = out.splitlines()
    assert lines and max(map(len, lines)) < 80
    return " ".join(lines)


@pytest.mark.parametrize("nothing", [None, ...])
def test_no_answer_is_no_mistake(capsys, nothing):
    assert said(capsys, nothing, 3).startswith("not answered yet")
    compare_function(nothing, abs, [(1,)], correct="")
    assert capsys.readouterr().out.startswith("not answered yet")


@pytest.mark.parametrize(
    ("answer", "truth"),
    [
        (3, 3),
        (3.0000001, 3),
        (np.float32(0.1), 0.1),
        ([1, -2, 3], VECTOR),
        (tuple(VECTOR), VECTOR),
        (VECTOR * (1 + 1e-8), VECTOR),
        (True, True),
        ("RM2", "RM2"),
        ("rm2", "RM2"),
        (np.zeros((0, 2)), np.zeros((0, 2))),
    ],
)
def test_right_answers(capsys, answer, truth):
    assert said(capsys, answer, truth) == "Correct: well done."


@pytest.mark.parametrize(
    ("answer", "truth", "expected"),
    [
        (4, 3, "got 4, which is too large"),
        (2.5, 3, "got 2.5, which is too small"),
        (-3, 3, "got -3, which is too small"),
        (np.nan, 3, "nan or inf"),
        (False, True, "False is not it"),
        ("RM1", "RM2", "'RM1' is not it"),
        ("three", 3, "expected a whole number, got 'three'"),
        (3, "RM2", "expected a word, got 3"),
        ([1, 2], 3, "expected a whole number, got an array of shape (2,)"),
        (VECTOR[:2], VECTOR, "expected an array of shape (3,), got an array of shape (2,)"),
        ([1, -2, 4], VECTOR, "1 of 3 entries differ, most at [2]"),
        ([[1, 2], [3]], VECTOR, "expected an array of shape (3,)"),
        ({"a": 1}, VECTOR, "got {'a': 1}"),
        (object(), 3, "got an object"),
    ],
)
def test_wrong_answers_say_what_came_and_what_was_expected_in_kind(capsys, answer, truth, expected):
    out = said(capsys, answer, truth, hint="Think again.")
    assert out.startswith("Not yet: ") and expected in out and out.endswith("Think again.")


def test_a_known_mistake_has_its_own_hint(capsys):
    hints = [(-VECTOR, "Mind the sign."), (2 * VECTOR, "Twice too much.")]
    assert "Mind the sign." in said(capsys, -VECTOR, VECTOR, hints=hints, hint="Other.")
    assert "Twice too much." in said(capsys, 2 * VECTOR, VECTOR, hints=hints, hint="Other.")
    assert "Other." in said(capsys, 3 * VECTOR, VECTOR, hints=hints, hint="Other.")


def test_the_truth_is_not_given_away(capsys):
    assert "1234.5" not in said(capsys, 17, 1234.5, hint="Think.")


@given(
    st.one_of(
        st.integers(),
        st.floats(),
        st.text(),
        st.binary(),
        st.lists(st.one_of(st.floats(), st.text(), st.none())),
        st.dictionaries(st.text(), st.integers()),
        st.complex_numbers(),
        st.just(len),
    )
)
def test_no_answer_whatever_raises(answer):
    for truth in (3, 2.5, True, "RM2", VECTOR):
        compare(answer, truth, correct="well done.")


# ---- functions


def said_of_function(capsys, answer) -> str:
    compare_function(
        answer, lambda a, b: a @ b, [(np.eye(2), np.ones(2))], correct="fine.", hint="Think."
    )
    return one_line(capsys.readouterr().out)


def test_functions_are_called_and_compared(capsys):
    assert said_of_function(capsys, np.dot) == "Correct: fine."
    assert "expected a function, got 3" in said_of_function(capsys, 3)
    assert "raised TypeError" in said_of_function(capsys, lambda: 1)
    assert "raised ZeroDivisionError" in said_of_function(capsys, lambda a, b: 1 / 0)
    assert "should return an array of shape (2,), not None" in said_of_function(
        capsys, lambda a, b: None
    )
    assert "2 of 2 entries differ" in said_of_function(capsys, lambda a, b: a @ b + 1)


def test_a_function_that_writes_into_its_arguments_spoils_nothing(capsys):
    given = np.eye(2)

    def careless(a, b):
        a *= 2
        return a @ b / 2

    compare_function(careless, np.dot, [(given, np.ones(2))], correct="fine.")
    assert "Correct" in capsys.readouterr().out and given[0, 0] == 1


# ---- properties

PROPERTIES = {
    "it doubles one": lambda f: f(1) == 2,
    "it keeps the shape": lambda f: f(np.ones(3)).shape == (3,),
}


def said_of_properties(capsys, answer) -> str:
    compare_properties(answer, PROPERTIES, correct="fine.", hint="Think.")
    return one_line(capsys.readouterr().out)


def test_the_first_property_that_does_not_hold_is_named(capsys):
    assert said_of_properties(capsys, lambda a: a * 2) == "Correct: fine."
    assert "expected that it doubles one; it does not. Think." in said_of_properties(capsys, abs)
    assert "keeps the shape; it raised" in said_of_properties(capsys, lambda a: float(a) * 2)
    assert "doubles one; it raised TypeError" in said_of_properties(capsys, 3)
    assert said_of_properties(capsys, None).startswith("not answered yet")


# ---- multiple choice


def product() -> exercises.Choice:
    def check_product() -> str:
        """The adjoint of AB."""
        return "b"

    answers = {"a": ("$A^*B^*$", "Mind the order of A* and B*."), "b": ("$B^*A^*$", "Last first.")}
    return exercises.Choice(check_product, answers)


def test_every_answer_of_a_multiple_choice_is_answered(capsys):
    check = product()
    for answer, expected in {
        "a": "Not yet. Mind the order of A* and B*.",
        "b": "Correct. Last first.",
        " B ": "Correct. Last first.",
        "c": "Not yet: expected 'a' or 'b', got 'c'.",
        1: "Not yet: expected 'a' or 'b', got 1.",
    }.items():
        check(answer)
        assert one_line(capsys.readouterr().out) == expected
    check(None)
    assert capsys.readouterr().out.startswith("not answered yet")


def test_a_multiple_choice_shows_its_answers_and_what_is_behind_them_without_a_kernel():
    shown = product()._repr_markdown_()
    assert "**a.** $A^*B^*$" in shown and "**b.** $B^*A^*$" in shown
    assert shown.count("<details>") == shown.count("</details>") == 2
    assert "Not this one. Mind the order of A\\* and B\\*." in shown
    assert "Right. Last first." in shown


def test_a_multiple_choice_without_an_explanation_is_refused():
    with pytest.raises(al.InputError, match="a, b, of which b has none"):
        exercises.choice(a=("x", "No."), b=("y", ""))
    with pytest.raises(al.InputError, match="at least two answers"):
        exercises.choice(a=("x", "No."))


CHOICES = {name: c for name, c in exercises.checks().items() if isinstance(c, exercises.Choice)}


@pytest.mark.parametrize("name", sorted(CHOICES))
def test_one_answer_of_every_multiple_choice_is_right(capsys, name):
    check = CHOICES[name]
    assert list(check.answers) == list("abcdefgh"[: len(check.answers)])
    verdicts = {}
    for letter in check.answers:
        check(letter)
        verdicts[letter] = one_line(capsys.readouterr().out)
    right = [letter for letter, said in verdicts.items() if said.startswith("Correct. ")]
    assert right == [check.right()]
    assert all(said.startswith(("Correct. ", "Not yet. ")) for said in verdicts.values())
    assert len(set(verdicts.values())) == len(verdicts), "two answers share an explanation"


# ---- the chapters' own


@pytest.mark.parametrize("name", sorted(exercises.checks()))
def test_every_check_takes_no_answer_and_nonsense_calmly(capsys, name):
    check = getattr(exercises, name)
    assert check.__doc__
    check(None)
    assert capsys.readouterr().out.startswith("not answered yet")
    for nonsense in ("what?", [1, [2]], {}, float("nan"), lambda *args: None):
        check(nonsense)
        assert one_line(capsys.readouterr().out).startswith("Not yet")


@pytest.mark.parametrize("module", MODULES)
def test_every_check_is_registered(module):
    where = f"{exercises.__name__}.{module}"
    tree = ast.parse(inspect.getsource(importlib.import_module(where)))
    functions = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
    written = {name for name in functions if name.startswith("check_")}
    forgotten = written - set(exercises.checks())
    assert not forgotten, f"{where}: put the decorator `exercise` on {forgotten}"


def test_a_check_under_another_name_is_refused():
    with pytest.raises(al.InputError, match="name begins with 'check_'"):

        @exercises.exercise
        def ask(answer):
            pass


def test_an_unknown_check_names_the_nearest():
    with pytest.raises(AttributeError, match="no exercise check called 'check_nothing'"):
        _ = exercises.check_nothing
    with pytest.raises(AttributeError, match=r"Did you mean 'check_versions'\?"):
        _ = exercises.check_version


class Hostile:
    """An object of a reader's that fails whatever is asked of it."""

    def __array__(self, *arguments, **options):
        raise RuntimeError("no array")

    def __repr__(self):
        raise RuntimeError("no text")


HOSTILE = [10**400, -(10**400), [10**400, 1], 10**5000, Hostile(), [Hostile()]]


@pytest.mark.parametrize("answer", HOSTILE, ids=range(len(HOSTILE)))
def test_a_number_beyond_all_floats_is_an_answer_like_others(answer, capsys):
    from adjoint_book.exercises.checking import compare

    compare(answer, 3.0, correct="well done")
    assert capsys.readouterr().out.startswith("Not yet")
