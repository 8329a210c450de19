"""Opening a saved model: only what cannot run its maker's code, with the library's layers known.

The file is looked at before Keras and TensorFlow are imported: a wrong path is answered at once.
"""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import TYPE_CHECKING

from adjoint_lib._storage import decoding
from adjoint_lib.errors import InputError, in_one_line

if TYPE_CHECKING:
    import keras

SPARE = 64 << 20  # bytes


def load_model(file: str | Path) -> keras.Model:
    """The model in a .keras file, without running any code that the file brings along."""
    check_file(file)
    import keras

    from adjoint_lib.frontend import layers  # noqa: F401 (registers the library's own)

    try:
        return keras.saving.load_model(file, compile=False, safe_mode=True)
    except Exception as error:  # whatever is in the file, Keras may stumble over it in any way
        raise InputError(
            f"{file}: expected a model that Keras can load in safe mode, got {in_one_line(error)}"
        ) from error


def check_file(file: str | Path) -> None:
    """Refuse what is not a .keras file, by its name and its first bytes."""
    if not isinstance(file, (str, Path)):
        raise InputError(f"expected the path of a .keras file, got {type(file).__name__}.")
    path = Path(file)
    if path.suffix != ".keras":
        raise InputError(
            f"{file}: expected a .keras file. Other formats (.h5, pickles, SavedModel) are "
            "refused, since opening them can run code of the file's maker. If you trust it, load "
            "it in Python and save it by model.save('my.keras')."
        )
    if not path.is_file():
        raise InputError(f"{file}: expected a .keras file, found no file. Check the path.")
    if not zipfile.is_zipfile(path):
        raise InputError(
            f"{file}: expected a .keras file, which is a zip archive, found something else. "
            "It may be truncated: save the model again by model.save('my.keras')."
        )
    size, unpacked = path.stat().st_size, _unpacked(path)
    if unpacked > 4 * size + SPARE:
        raise InputError(
            f"{file}: expected a .keras file, which Keras does not compress, found {size} bytes "
            f"that unpack to {unpacked}. Save the model again by model.save('my.keras')."
        )


def _unpacked(path: Path) -> int:
    """The bytes of all that an archive holds."""
    with decoding(path, "a .keras file", "Save it again."), zipfile.ZipFile(path) as archive:
        return sum(member.file_size for member in archive.infolist())
