"""The state of a training run as one file of plain arrays that is always whole.

A checkpoint is an ``.npz`` of arrays plus a JSON text for numbers and lists. It appears whole:
whenever the process or the machine stops, the file holds either the new state or the one before.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np

from adjoint_lib._storage import (
    MAX_JSON,
    Header,
    decoding,
    parse_json,
    read_array,
    read_arrays,
    replacing,
)

_NOTES = "notes.json"


def save_checkpoint(path: Path, arrays: dict[str, np.ndarray], notes: dict) -> None:
    """Replace the checkpoint at ``path`` by ``arrays`` (plain numbers) and ``notes`` (as JSON)."""
    text = np.frombuffer(json.dumps(notes).encode(), np.uint8)
    with replacing(path) as file:
        np.savez(file, **{_NOTES: text}, **arrays)  # type: ignore[arg-type]  # names of arrays


def load_checkpoint(
    path: Path, accept: Callable[[dict, Mapping[str, Header]], None] = lambda notes, headers: None
) -> tuple[dict[str, np.ndarray], dict] | None:
    """The arrays and notes last saved at ``path``; None if nothing was saved there.

    Args:
        accept: raises an error if these notes, or arrays of these shapes, are of another run; it is
            asked before any array is read.

    Raises:
        DataError: if the file is damaged.
    """
    if not path.exists():
        return None
    said = "a checkpoint of a training run", "Remove it to start the run again."
    with decoding(path, *said):
        text = read_array(path, _NOTES, *said, max_bytes=MAX_JSON)
        notes = parse_json(text.tobytes())
        arrays = read_arrays(
            path,
            *said,
            lambda found: accept(notes, {n: h for n, h in found.items() if n != _NOTES}),
        )
    return {name: array for name, array in arrays.items() if name != _NOTES}, notes
