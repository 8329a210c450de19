"""The repository as tests see it: where it is, what git tracks, what its files say."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).resolve().parent.parent


def text(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def project() -> dict:
    return tomllib.loads(text("pyproject.toml"))["project"]


def version() -> str:
    """The version as the library states it, without importing it."""
    return re.search(r'^__version__ = "([^"]+)"$', text("adjoint_lib/__init__.py"), re.M)[1]


def tracked_files() -> list[Path]:
    """The files git knows, or a skip where there is no git, as in an unpacked archive."""
    if shutil.which("git") is None or not (ROOT / ".git").exists():
        pytest.skip("needs a git clone")
    listing = subprocess.run(
        ["git", "-c", f"safe.directory={ROOT}", "ls-files", "-z"],
        cwd=ROOT,
        capture_output=True,
        check=True,
    ).stdout.decode()
    return [ROOT / name for name in listing.split("\0") if name and (ROOT / name).is_file()]


def tracked_texts() -> dict[str, str]:
    """Name and content of each tracked text file."""
    contents = {str(path.relative_to(ROOT)): path.read_bytes() for path in tracked_files()}
    return {name: raw.decode() for name, raw in contents.items() if b"\0" not in raw}
