"""Every notebook begins with the same set-up cell, and that cell does what it says."""

import importlib.util
import json
import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from repository import ROOT

SCRIPT = ROOT / "book" / "adjoint_book" / "build" / "setup_cell.py"
NOTEBOOKS = sorted((ROOT / "book").glob("*.ipynb"))


def load_tool():
    """setup_cell.py as a module; the folder of chapters is no package."""
    spec = importlib.util.spec_from_file_location("setup_cell", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


tool = load_tool()


def copy_of_the_project(folder: Path) -> Path:
    """The files the address stands in, and the tool, in a folder of their own."""
    names = ["_config.yml", "CITATION.cff", "README.md", "pyproject.toml", "Makefile"]
    (folder / SCRIPT.relative_to(ROOT)).parent.mkdir(parents=True)
    for path in [SCRIPT, *(ROOT / name for name in names), *(ROOT / "book").glob("*.*")]:
        shutil.copy(path, folder / path.relative_to(ROOT))
    return folder


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_the_second_cell_is_the_set_up_cell(path):
    cells = json.loads(path.read_text("utf-8"))["cells"]
    tagged = [n for n, part in enumerate(cells) if "setup" in part["metadata"].get("tags", [])]
    assert tagged == [1], "expected the tag 'setup' on the second cell and on no other"
    assert "".join(cells[1]["source"]) == tool.cell(), f"run: python {SCRIPT}"
    assert not cells[1]["outputs"]


def test_the_set_up_cell_is_short():
    assert len(tool.cell().splitlines()) <= 10


# ---- the address


def test_one_command_changes_the_address_everywhere(tmp_path):
    project = copy_of_the_project(tmp_path)
    (project / "book" / "new.ipynb").write_text(
        json.dumps(
            {
                "cells": [
                    {
                        "cell_type": "code",
                        "metadata": {"tags": ["setup"]},
                        "source": ["import adjoint_lib"],
                    }
                ]
            }
        )
    )
    new = "https://example.org/somebody/my-book"
    subprocess.run(
        ["make", "set-repo", f"URL={new}.git", f"PYTHON={sys.executable}"],
        cwd=project,
        check=True,
        capture_output=True,
    )
    assert tool.address(project) == new
    texts = {path: path.read_text("utf-8") for path in project.rglob("*") if path.is_file()}
    left = [path.name for path, text in texts.items() if tool.address() in text]
    assert not left
    for name in ("_config.yml", "CITATION.cff", "README.md", "pyproject.toml"):
        assert new in texts[project / name]
    (cell,) = json.loads(texts[project / "book" / "new.ipynb"])["cells"]
    assert "".join(cell["source"]) == tool.cell(project)


@pytest.mark.parametrize("wrong", ["", "somebody/my-book", "https://x.org/a b", "git@x.org:a/b"])
def test_an_address_that_is_none_is_refused_and_changes_nothing(tmp_path, wrong):
    project = copy_of_the_project(tmp_path)
    run = subprocess.run(
        ["make", "set-repo", f"URL={wrong}", f"PYTHON={sys.executable}"],
        cwd=project,
        capture_output=True,
        text=True,
    )
    assert run.returncode != 0
    assert "expected the repository's address" in run.stderr
    assert tool.address(project) == tool.address()


# ---- the cell at work

# Runs the cell as a notebook does, with nothing but `packages` to import from: not the clone, nor
# the library as it is installed here.
RUN_CELL = """
import os, sys, types
packages, colab, cell = sys.argv[1:]
sys.path[:] = [entry for entry in sys.path if not os.path.exists(f"{entry}/adjoint_lib")]
sys.path[:] = [entry for entry in sys.path if not entry.endswith("site-packages")] + [packages]
if colab == "colab":
    sys.modules["google.colab"] = types.ModuleType("google.colab")
from IPython.core.interactiveshell import InteractiveShell
shell = InteractiveShell.instance(history_length=0)
shell.history_manager.enabled = False
shell.run_cell("import importlib.util; assert not importlib.util.find_spec('adjoint_lib')"
               ).raise_error()
shell.run_cell(cell).raise_error()
print("FOUND", shell.user_ns["al"].__file__)
print("SAMPLE", shell.user_ns["al"].data.sample("cifar10")[0].shape[1:])
"""


@pytest.fixture(scope="module")
def packages(tmp_path_factory) -> Path:
    """Everything that is installed here, but for this library."""
    folder = tmp_path_factory.mktemp("packages")
    for site in dict.fromkeys([sysconfig.get_path("purelib"), sysconfig.get_path("platlib")]):
        for path in Path(site).iterdir():
            if "adjoint_" not in path.name and not (folder / path.name).exists():
                (folder / path.name).symlink_to(path)
    return folder


def run_cell(cell: str, packages: Path, cwd: Path, colab: bool, **environment: str):
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    return subprocess.run(
        [sys.executable, "-c", RUN_CELL, str(packages), "colab" if colab else "", cell],
        cwd=cwd,
        env={**kept, "IPYTHONDIR": str(cwd / ".ipython"), **environment},
        capture_output=True,
        text=True,
    )


def test_in_colab_the_cell_installs_the_library_from_the_address(tmp_path, packages):
    if shutil.which("git") is None or not (ROOT / ".git").exists():
        pytest.skip("needs a git clone")
    repository, target, empty = (tmp_path / name for name in ("repository", "target", "empty"))
    clone = ["git", "-c", f"safe.directory={ROOT}/.git", "clone", "-q", "--bare"]
    subprocess.run([*clone, str(ROOT), str(repository)], check=True, capture_output=True)
    target.mkdir()
    empty.mkdir()
    run = run_cell(
        tool.CELL.format(address=f"file://{repository}"),
        packages,
        empty,
        colab=True,
        # Into a folder of its own, with what is already installed: no network.
        PYTHONPATH=str(target),
        PIP_TARGET=str(target),
        PIP_NO_DEPS="1",
        PIP_NO_INDEX="1",
        PIP_NO_BUILD_ISOLATION="0",  # which says: without isolation
        PIP_CONFIG_FILE=os.devnull,
    )
    assert run.returncode == 0, run.stdout + run.stderr
    assert f"FOUND {target / 'adjoint_lib' / '__init__.py'}" in run.stdout
    assert "SAMPLE (32, 32, 3)" in run.stdout


def test_in_a_clone_the_cell_finds_the_library_one_folder_up(tmp_path, packages):
    book = tmp_path / "book"
    book.mkdir()
    for name in ("adjoint_lib", "data", "book/adjoint_book"):
        (tmp_path / name).symlink_to(ROOT / name)
    run = run_cell(tool.cell(), packages, book, colab=False)
    assert run.returncode == 0, run.stdout + run.stderr
    assert "SAMPLE (32, 32, 3)" in run.stdout


def test_elsewhere_without_the_library_the_cell_says_that_it_is_missing(tmp_path, packages):
    run = run_cell(tool.cell(), packages, tmp_path, colab=False)
    assert run.returncode != 0
    assert "No module named 'adjoint_" in run.stdout + run.stderr
