"""Packages that only the book needs: one that is missing is named, with what installs it."""

from __future__ import annotations

import importlib.util

from adjoint_lib.errors import AdjointError

EXTRAS = {  # of adjoint-lib, by the package they install
    "matplotlib": "plots",
    "ipywidgets": "lab",
    "markdown_it": "course",
    "mdit_py_plugins": "course",
    "pygments": "course",
    "pypdf": "course",
    "sphinx_revealjs": "course",
    "sphinx-mathjax-offline": "book",
}


class MissingPackage(AdjointError, ImportError):
    """A package that a part of the book needs is not installed."""


def require(package: str) -> None:
    """Raise `MissingPackage` unless `package`, one of `EXTRAS`, can be imported."""
    if importlib.util.find_spec(package) is None:
        raise MissingPackage(
            f"expected the package {package}, which is not installed. "
            f"`pip install 'adjoint-lib[{EXTRAS[package]}]'` installs it.",
            name=package,
        )
