"""The material for a course: its parts register themselves, and the command writes them."""

import ast
import importlib
import inspect
import pkgutil
import subprocess
import sys

import pytest

import adjoint_book.course.command  # noqa: F401 (registers the command)
import adjoint_lib as al
from adjoint_book import course
from adjoint_book.course.parts import PARTS, Build, make, part
from adjoint_lib.cli.main import main, parser
from repository import ROOT


@pytest.fixture
def build(tmp_path):
    return Build(ROOT / "book", tmp_path / "course")


@pytest.fixture
def with_a_part(monkeypatch):
    """A part that writes one file, for as long as the test runs."""
    monkeypatch.setattr(PARTS, "_found", dict(PARTS))

    @part("letters", "a letter for each", default=False)
    def letters(build):
        (build.students("letters") / "a.txt").write_text("a")


def test_a_part_writes_where_it_belongs(build, with_a_part, capsys):
    make(build, ["letters"])
    assert (build.output / "students" / "letters" / "a.txt").read_text() == "a"
    assert "1 of 1: letters, a letter for each" in capsys.readouterr().err


def test_a_part_that_is_not_there_is_named(build, with_a_part):
    with pytest.raises(al.InputError, match=r"got 'leters'.*Did you mean 'letters'"):
        make(build, ["letters", "leters"])
    assert not build.output.exists()


def test_every_module_that_has_a_part_registers_it():
    for module in pkgutil.iter_modules(course.__path__):
        found = importlib.import_module(f"{course.__name__}.{module.name}")
        tree = ast.parse(inspect.getsource(found))
        takes_a_build = [
            node.name
            for node in tree.body
            if isinstance(node, ast.FunctionDef)
            and not node.name.startswith("_")
            and [a.arg for a in node.args.args] == ["build"]
        ]
        registered = {made.make.__name__ for made in PARTS.values()}
        assert set(takes_a_build) <= registered, f"{module.name}: put the decorator `part` on it"


def test_the_command_writes_what_it_is_asked_for(tmp_path, with_a_part, capsys):
    assert main(["course", "--part", "letters", "--output", str(tmp_path / "out")]) == 0
    assert capsys.readouterr().out.strip() == str(tmp_path / "out")
    assert (tmp_path / "out" / "students" / "letters" / "a.txt").is_file()
    assert main(["course", "--part", "nothing"]) == 2


def test_the_book_as_a_program_has_its_commands_and_says_so_without_tensorflow():
    listing = [sys.executable, "-X", "importtime", "-m", "adjoint_book", "course", "--help"]
    run = subprocess.run(listing, cwd=ROOT / "book", capture_output=True, text=True, check=True)
    assert "--part" in run.stdout
    imported = {line.split("|")[-1].strip() for line in run.stderr.splitlines() if "|" in line}
    assert "adjoint_lib.errors" in imported and not imported & {"tensorflow", "keras"}


def test_the_options_of_the_command_have_defaults():
    options = parser().parse_args(["course"])
    assert options.part == [] and options.output == "_build/course"
