"""Where the files shipped with the library are: samples, trained weights, the paper's tables."""

from pathlib import Path

from adjoint_lib.errors import DataError

_PACKAGE = Path(__file__).resolve().parent.parent


def path(name: str) -> Path:
    """Path of a file or folder below `data/`, e.g. `path("samples/cifar10.npz")`.

    A wheel ships that folder inside the package as `_data`; in a clone it is beside the package.
    """
    found = _root() / name
    if not found.exists():
        raise DataError(
            f"{found}: expected a file that comes with adjoint_lib, found none. "
            "Check the name; if it is right, the installation is incomplete: install adjoint_lib "
            "again, or restore the data/ folder of the clone."
        )
    return found


def has(name: str) -> bool:
    """Whether there is such a file or folder."""
    return (_root() / name).exists()


def _root() -> Path:
    shipped = _PACKAGE / "_data"
    return shipped if shipped.is_dir() else _PACKAGE.parent / "data"
