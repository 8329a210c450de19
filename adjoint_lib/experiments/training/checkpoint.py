"""The state of a training run as one file of plain arrays that is always whole.

A checkpoint is an ``.npz`` of arrays plus a JSON text for numbers and lists. It appears whole:
whenever the process or the machine stops, the file holds either the new state or the one before.
"""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

import numpy as np

from adjoint_lib._files import replacing
from adjoint_lib.errors import DataError

_NOTES = "notes.json"


def save_checkpoint(path: Path, arrays: dict[str, np.ndarray], notes: dict) -> None:
    """Replace the checkpoint at ``path`` by ``arrays`` (plain numbers) and ``notes`` (as JSON)."""
    text = np.frombuffer(json.dumps(notes).encode(), np.uint8)
    with replacing(path) as file:
        np.savez(file, **{_NOTES: text}, **arrays)  # type: ignore[arg-type]  # names of arrays


def load_checkpoint(path: Path) -> tuple[dict[str, np.ndarray], dict] | None:
    """Read a checkpoint.

    Returns:
        The arrays and notes last saved at ``path``; None if nothing was saved there.

    Raises:
        DataError: if the file is damaged.
    """
    if not path.exists():
        return None
    try:
        with open(path, "rb") as file, np.load(file) as archive:
            arrays = {key: archive[key] for key in archive.files}
        return arrays, json.loads(arrays.pop(_NOTES).tobytes())
    except (zipfile.BadZipFile, ValueError, KeyError, EOFError) as error:
        raise DataError(
            f"{path}: expected a checkpoint of a training run, got something unreadable ({error}). "
            "Remove it to start the run again."
        ) from error
