"""The chapters build `minimal.py` piece by piece; each piece is compared with the file.

    @book.pieces.piece()
    def windows(A, w): ...

    @book.pieces.piece(Net)
    def read(self, v, D=None): ...

Docstrings, comments and type annotations may differ, nothing else.
"""

from __future__ import annotations

import ast
import copy
import linecache
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from adjoint_book import minimal
from adjoint_lib.core.tables import Table
from adjoint_lib.errors import InputError

Definition: TypeAlias = "ast.FunctionDef | ast.ClassDef"

SOURCE = Path(minimal.__file__).read_text(encoding="utf-8")
# The notebook that builds each piece.
CHAPTERS = {
    "02-one-neuron": ["Net", "Net.slopes"],
    "03-equivalent-topology": ["windows", "units", "Net.x_b", "Net.shapes", "Net.read"],
    "05-proof": ["Frozen", "Net.freeze", "Frozen.push"],
    "06-five-modes": ["cotangent", "Frozen.pull", "Frozen.H", "check"],
}

ORDER = [name for built in CHAPTERS.values() for name in built]


def piece(owner: type | None = None) -> Callable[[Any], Any]:
    """A decorator that compares a function or class with that of its name in `minimal.py`.

    It prints where the piece stands there.

    Args:
        owner: the class that the function is a method of; it becomes one.

    Raises:
        InputError: if the file has no such piece, or has other code.
    """

    def compare(defined: Any) -> Any:
        name = f"{owner.__name__}.{defined.__name__}" if owner else defined.__name__
        if name not in ORDER:
            raise InputError(f"expected one of {', '.join(ORDER)}, got {name}.")
        expected = pieces(SOURCE)[name]
        lines = f"lines {expected.lineno} to {expected.end_lineno}"
        cell = "".join(linecache.getlines(sys._getframe(1).f_code.co_filename))
        if bare(pieces(cell)[defined.__name__]) != bare(expected):
            raise InputError(f"{name}: expected the code of minimal.py, {lines}, got other code.")
        print(f"{name}: as in minimal.py, {lines} (piece {ORDER.index(name) + 1} of {len(ORDER)})")
        if owner is None:
            return defined
        made = property(defined) if expected.decorator_list else defined
        setattr(owner, defined.__name__, made)
        return made

    return compare


def example() -> tuple[minimal.Net, np.ndarray]:
    """A network of two convolutions and a head, and an image for it: those of `minimal.py`."""
    draw = np.random.default_rng(0).normal
    shapes = [(3, 3, 2, 4), (5, 3, 4, 3), (1, 1, 6 * 7 * 3, 10)]
    w, b = [draw(size=s) for s in shapes], [draw(size=s[-1]) for s in shapes]
    return minimal.Net((6, 7), w, b, 0.1), draw(size=(6, 7, 2))


def table() -> Table:
    """All pieces: where each stands in `minimal.py`, and the chapter that builds it."""
    found = pieces(SOURCE)
    chapters = [(name, chapter) for chapter, built in CHAPTERS.items() for name in built]
    rows = [
        [name, f"{found[name].lineno} to {found[name].end_lineno}", str(int(chapter[:2]))]
        for name, chapter in chapters
    ]
    return Table(["piece", "lines", "chapter"], rows)


def pieces(source: str) -> dict[str, Definition]:
    """The functions, classes and methods that a file or a cell defines, by name."""
    found: dict[str, Definition] = {}
    for node in ast.parse(source).body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            found[node.name] = node
            methods = (part for part in node.body if isinstance(part, ast.FunctionDef))
            found.update((f"{node.name}.{part.name}", part) for part in methods)
    return found


def bare(definition: ast.AST) -> str:
    """The code of a function, or the fields of a class, as a text to compare."""
    return ast.unparse(_Bare().visit(copy.deepcopy(definition)))


class _Bare(ast.NodeTransformer):
    """Takes out docstrings, annotations, decorators and methods."""

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        node.decorator_list, node.returns = [], None
        for argument in node.args.args:
            argument.annotation = None
        node.body = _without_docstring(node)
        return node

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        fields = [part for part in node.body if isinstance(part, ast.AnnAssign)]
        for field in fields:
            field.annotation = ast.Constant(...)
        node.decorator_list, node.bases, node.body = [], [], [*fields]
        return node


def _without_docstring(node: ast.FunctionDef) -> list[ast.stmt]:
    return node.body[1:] if ast.get_docstring(node) is not None else node.body
