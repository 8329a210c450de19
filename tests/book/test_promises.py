"""The page of promises: each has tests, and its figures are those that the tests have."""

import re
import runpy

import pytest

from adjoint_book.build import promises
from repository import ROOT, text


@pytest.mark.parametrize("promise", promises.PROMISES, ids=lambda promise: promise.text[:40])
def test_every_promise_has_tests_for_each_of_its_words(promise):
    names = promises.tests(promise)
    for words in promise.begin:
        assert any(name.startswith(f"test_{words}") for name in names), words


def test_every_test_against_wrong_answers_is_of_one_promise():
    of_all = [
        name for p in promises.PROMISES if p.file == promises.WRONG for name in promises.tests(p)
    ]
    there = re.findall(r"^def (test_\w+)", text(f"tests/{promises.WRONG}"), re.M)
    assert sorted(of_all) == sorted(there)


@pytest.mark.parametrize("name", [promises.WRONG, promises.FILES, promises.ANY])
def test_the_constants_are_those_of_the_tests(name):
    """Read as text on the page, and imported here."""
    module = runpy.run_path(str(ROOT / "tests" / name))
    (promise, *_) = (p for p in promises.PROMISES if p.file == name and "{" in p.figure)
    for constant in re.findall(r"{(\w+)}", promise.figure):
        shown, value = dict(promises._constants(promise))[constant], module[constant]
        if isinstance(value, dict):
            assert shown == str(len(value))
        elif isinstance(value, list):
            assert shown == ", ".join(map(str, value))
        elif shown.endswith("MiB"):
            assert value == int(shown.removesuffix(" MiB")) << 20
        else:
            assert float(shown) == value


def test_the_commands_on_the_page_name_files_that_are_there():
    for name in re.findall(r"tests/[\w/]+\.py", text("book/promises.md")):
        assert (ROOT / name).is_file()
