"""The walks that ARCHITECTURE.md draws are those that the calls take."""

import re
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from unittest import mock

import pytest

import adjoint_lib as al
from adjoint_lib.core import _threads
from repository import text

HOME = Path(al.__file__).parent


def sections() -> tuple[str, list[str]]:
    """What the page says of all walks, and each walk."""
    part = text("ARCHITECTURE.md").split("\n## Three walks\n")[1].split("\n## ")[0]
    common, *walks = re.split(r"^\*\*(?=`)", part, flags=re.M)
    return common, walks


def files(words: str) -> set[str]:
    """The names of the library's files in a text; `rules/*.py` are all in that folder."""
    named = set(re.findall(r"[\w/]+\.py\b", words))
    if "rules/*.py" in words:
        named |= {path.name for path in (HOME / "frontend" / "rules").glob("*.py")}
    return {name.rsplit("/", 1)[-1] for name in named}


def traced(call: Callable) -> set[str]:
    """The files of the library whose functions run during the call, in any thread."""
    found = set()

    def note(frame, event, argument):
        if event == "call":
            found.add(frame.f_code.co_filename)

    with mock.patch.object(_threads, "_workers", _threads._Workers()):  # none of earlier calls
        threading.setprofile(note)
        sys.setprofile(note)
        try:
            call()
        finally:
            sys.setprofile(None)
            threading.setprofile(None)
    return {path.name for path in map(Path, found) if HOME in path.parents} - {"__init__.py"}


@pytest.fixture(scope="module")
def calls() -> list[Callable]:
    model, images = al.models.randomise(al.models.vgg7()), al.data.sample("cifar10")[0]
    net = al.equivalent(model)
    return [
        lambda: al.equivalent(model),
        lambda: net.hypersurface(images[0], "conv3")[5, 7, 12],
        lambda: al.verify(net, images[:2], layers=["conv4", "fc"]),
    ]


@pytest.mark.parametrize(("which", "most"), [(0, 6), (1, 4), (2, 6)])
def test_a_call_runs_through_the_files_of_its_walk_and_no_others(calls, which, most):
    common, walks = sections()
    assert len(walks) == len(calls)
    (drawn,) = re.findall(r"^```$(.*?)^```$", walks[which], re.M | re.S)
    found = traced(calls[which])
    lines = [line.split()[0] for line in drawn.strip().splitlines()]
    assert len(lines) == most
    for line in lines:
        assert files(line) & found, f"{line} is drawn, but the call does not run through it"
    assert found <= files(common) | files(walks[which])


def test_the_library_opens_on_six_folders_and_six_files_at_most():
    found = [path for path in HOME.iterdir() if path.name not in ("__pycache__", "_data")]
    assert sum(path.is_dir() for path in found) <= 6 >= sum(path.is_file() for path in found)
    drawn = text("ARCHITECTURE.md").split("\n## The doors\n")[1].split("\n## ")[0]
    for path in found:
        if path.is_dir():
            assert f"adjoint_lib/{path.name} " in drawn, f"{path.name} is not in the picture"
