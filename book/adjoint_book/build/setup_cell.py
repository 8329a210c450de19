"""The set-up cell of every notebook, and the repository's address wherever it is repeated.

    python book/adjoint_book/build/setup_cell.py         writes the set-up cell into every notebook
    python book/adjoint_book/build/setup_cell.py URL     also changes the address

`make set-repo URL=...` does the latter. It needs nothing but Python. The address itself stands in
_config.yml.
"""

import json
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]

CELL = """\
# Set-up: finds adjoint_lib in a clone or an installation; in Colab, installs it first.
import sys
from importlib.util import find_spec

sys.path.append("..")  # the clone's root, seen from book/
if "google.colab" in sys.modules and not find_spec("adjoint_lib"):
    print("installing adjoint_lib from {address}")
    %pip install -q git+{address}
import adjoint_book as book
import adjoint_lib as al"""


def address(root: Path = ROOT) -> str:
    """The repository's address, as _config.yml has it."""
    config = (root / "_config.yml").read_text(encoding="utf-8")
    found = re.search(r"^repository:\n  url: (\S+)$", config, re.M)
    if found is None:
        raise SystemExit(f"{root / '_config.yml'}: expected `url:` as the first line of repository")
    return found[1]


def cell(root: Path = ROOT) -> str:
    """The text of the set-up cell."""
    return CELL.format(address=address(root))


def change_address(new: str, root: Path = ROOT) -> list[Path]:
    """Put the address `new` in the place of the old one; returns the files that changed."""
    new = new.removesuffix("/").removesuffix(".git")
    if not re.fullmatch(r"(https|file)://[\w.:/~+-]+", new):
        raise SystemExit(
            "expected the repository's address, such as https://github.com/OWNER/NAME; "
            f"got {new!r}. Call it like this: make set-repo URL=https://github.com/OWNER/NAME"
        )
    old = re.compile(re.escape(address(root)) + r"(?![\w-])")
    names = ("_config.yml", "CITATION.cff", "README.md", "pyproject.toml")
    files = [root / name for name in names]
    files += [path for end in ("md", "ipynb") for path in sorted((root / "book").glob(f"*.{end}"))]
    return [path for path in files if _rewrite(path, old.sub(new, path.read_text("utf-8")))]


def refresh_cells(root: Path = ROOT) -> list[Path]:
    """Write the set-up cell into the cell tagged "setup" of each notebook that has one."""
    return [
        path
        for path in sorted((root / "book").glob("*.ipynb"))
        if _rewrite(path, _refreshed(path.read_text("utf-8"), cell(root)))
    ]


def _refreshed(notebook: str, text: str) -> str:
    content = json.loads(notebook)
    for part in content["cells"]:
        if "setup" in part["metadata"].get("tags", []):
            part["source"] = text.splitlines(keepends=True)
    # As Jupyter writes it, so that nothing else changes.
    return json.dumps(content, ensure_ascii=False, indent=1, sort_keys=True) + "\n"


def _rewrite(path: Path, text: str) -> bool:
    changed = text != path.read_text("utf-8")
    if changed:
        path.write_text(text, encoding="utf-8")
    return changed


def main(arguments: list[str]) -> None:
    """Write the address given, if any, and the set-up cell into every notebook."""
    changed = [path for url in arguments[:1] for path in change_address(url)]
    changed += [path for path in refresh_cells() if path not in changed]
    for path in changed:
        print(f"changed {path.relative_to(ROOT)}")
    print(f"The repository's address is {address()}.")


if __name__ == "__main__":
    main(sys.argv[1:])
