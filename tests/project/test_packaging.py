"""An installed copy of the library works without the repository, embedded samples included."""

import subprocess
import sys
import zipfile
from email.parser import Parser
from pathlib import Path

import pytest

from repository import ROOT, tracked_files, version


@pytest.fixture(scope="module")
def wheel(tmp_path_factory) -> Path:
    """The wheel, built from this clone with what is already installed."""
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "pip", "wheel", "-q", str(ROOT), "-w", str(folder)]
    run = subprocess.run(
        [*command, "--no-deps", "--no-build-isolation", "--no-index"],
        capture_output=True,
        text=True,
        cwd=folder,
    )
    assert run.returncode == 0, run.stderr
    (built,) = folder.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def installed(wheel, tmp_path_factory) -> Path:
    """A folder with the wheel's content, to be put on the path."""
    folder = tmp_path_factory.mktemp("installed")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder)
    return folder


def run_installed(installed: Path, program: str) -> str:
    """What `program` prints when only the installed copy can be found, not the clone."""
    run = subprocess.run(
        [sys.executable, "-c", f"import sys; sys.path.insert(0, {str(installed)!r})\n{program}"],
        cwd=installed.parent,
        capture_output=True,
        text=True,
    )
    assert run.returncode == 0, run.stderr
    return run.stdout


def test_the_wheel_holds_the_library_and_the_data_and_nothing_else(wheel):
    names = set(zipfile.ZipFile(wheel).namelist())
    tracked = {path.relative_to(ROOT) for path in tracked_files()}
    library = {str(path) for path in tracked if path.parts[0] == "adjoint_lib"}
    book = {str(p.relative_to("book")) for p in tracked if p.parts[:2] == ("book", "adjoint_book")}
    data = {f"adjoint_lib/_{path}" for path in tracked if path.parts[0] == "data"}
    on_their_way = {name for name in data if name.endswith("/checkpoint.npz")}
    assert all(name.startswith("adjoint_lib/_data/runs/") for name in on_their_way)
    data -= on_their_way
    assert any(name.startswith("adjoint_lib/_data/samples/") for name in data)
    assert library | book | data <= names
    assert not [name for name in names if name.endswith((".lock", "checkpoint.npz"))]
    other = {name for name in names if not name.startswith(("adjoint_lib/", "adjoint_book/"))}
    assert all(Path(name).parts[0].endswith(".dist-info") for name in other)


def test_the_wheel_says_what_it_is(wheel):
    archive = zipfile.ZipFile(wheel)
    (name,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
    metadata = Parser().parsestr(archive.read(name).decode())
    assert metadata["Name"] == "adjoint-lib"
    assert metadata["Version"] == version()
    assert set(metadata["Requires-Python"].split(",")) == {">=3.10", "<3.14"}
    assert metadata["License-Expression"] == "MIT"
    needed = {entry.split(">")[0] for entry in metadata.get_all("Requires-Dist")}
    assert "tensorflow" in needed  # not a variant of it: Colab brings this one
    always = {line for line in metadata.get_all("Requires-Dist") if "extra ==" not in line}
    assert not [line for line in always if line.startswith(("matplotlib", "ipywidgets", "distr"))]


def test_the_samples_are_found_without_the_repository(installed):
    printed = run_installed(
        installed,
        "import adjoint_lib as al\n"
        "print(al.__file__)\n"
        "images, labels = al.data.sample('cifar10')\n"
        "print(images.shape[1:], labels[:5].tolist())",
    ).splitlines()
    assert Path(printed[0]).is_relative_to(installed)
    assert printed[1] == "(32, 32, 3) [3, 8, 8, 0, 6]"
