"""Model weights as plain arrays in an ``.npz`` file, with a ``.json`` beside it on their origin.

The arrays are keyed by layer and variable (``conv0/kernel``, ``bn0/gamma``, ...), so a file can be
read without Keras and outlives its versions. The ``.json`` holds at least ``sha256``, the digest of
the ``.npz``. Nothing in either file is executable.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path

import keras
import numpy as np

from adjoint_lib._storage import Header, read_arrays, read_json, replacing
from adjoint_lib.errors import DataError, InputError


def save_weights(model: keras.Model, path: str | Path, provenance: dict | None = None) -> str:
    """Write every weight of a built model to an ``.npz`` file; returns its sha256.

    Equal weights give equal bytes. Each file appears whole or not at all.

    Args:
        provenance: anything JSON can hold (recipe, accuracy, seed, ...), to be written, with
            ``sha256`` added, to the ``.json`` file beside; None writes no such file.
    """
    path = _npz(path)
    arrays = {key: _array(variable) for key, variable in _variables(model).items()}
    with replacing(path) as file:
        np.savez_compressed(file, **arrays)  # type: ignore[arg-type]  # names of arrays
    digest = file_digest(path)
    if provenance is not None:
        with replacing(path.with_suffix(".json")) as file:
            text = json.dumps({**provenance, "sha256": digest}, indent=2) + "\n"
            file.write(text.encode())
    return digest


def load_weights(model: keras.Model, path: str | Path, sha256: str | None = None) -> None:
    """Set every weight of a built model from an ``.npz`` file.

    The file must hold exactly the model's arrays, in the model's shapes; otherwise an error lists
    what differs and the model is left as it was. Values are cast to the model's own dtype. With
    ``sha256``, the digest is checked before anything in the file is read.

    Raises:
        DataError: if the file is missing, unreadable or has another digest.
        InputError: if its arrays do not fit the model.
    """
    path = _npz(path)
    if not path.is_file():
        raise DataError(f"No weights file at {path}. Check the path, or train and save one there.")
    if sha256 is not None and (found := file_digest(path)) != sha256:
        raise DataError(
            f"{path} is not the file it should be: expected sha256 {sha256}, found {found}. "
            "Restore the file from the repository, or download it again."
        )
    variables = _variables(model)

    def refuse(problems: list[str]) -> None:
        if problems:
            raise InputError(
                f"The arrays in {path} do not fit model {model.name!r}:\n  "
                + "\n  ".join(sorted(problems))
                + "\nLoad them into the model they were saved from (same architecture and classes)."
            )

    arrays = read_arrays(
        path,
        "a weights file, an .npz of plain arrays",
        "It may be truncated or of another format; save or download it again.",
        lambda headers: refuse(_misfits(headers, variables)),
    )
    refuse(
        [
            f"not finite numbers: {key} ({a.dtype})"
            for key, a in arrays.items()
            if a.dtype.kind == "b" or not np.isfinite(a).all()
        ]
    )
    for key, variable in variables.items():
        variable.assign(arrays[key])


def provenance(path: str | Path) -> dict:
    """What the ``.json`` beside the weights file ``path`` says; holds at least ``sha256``."""
    note = _npz(path).with_suffix(".json")
    if not note.exists():
        raise DataError(
            f"No provenance file {note}: weights whose origin is recorded have one beside them. "
            "Restore it, or load the weights by their path alone."
        )
    content = read_json(note, "the record of weights, in JSON", "Restore the file.")
    if not isinstance(content.get("sha256"), str):
        raise DataError(f'{note} should be a JSON object with a "sha256" entry. Restore the file.')
    return content


def _npz(path: str | Path) -> Path:
    path = Path(path)
    if path.suffix != ".npz":
        raise InputError(f"A weights file ends in .npz, but the path given is {path}.")
    return path


def _variables(model: keras.Model) -> dict[str, keras.Variable]:
    """The weights of ``model`` by the key they have in a file."""
    variables = {variable.path: variable for variable in model.weights}
    if not model.built or len(variables) != len(model.weights):
        raise InputError(
            f"Model {model.name!r} needs to be built, and its layers to have different names, for "
            f"its weights to be named: it has {len(model.weights)} weights under "
            f"{len(variables)} names."
        )
    return variables


def _array(variable: keras.Variable) -> np.ndarray:
    """The variable's value; float types that plain NumPy lacks (bfloat16) as float32, exactly."""
    array = np.asarray(keras.ops.convert_to_numpy(variable))
    return array if array.dtype.kind in "fiu" else array.astype(np.float32)


def _misfits(headers: Mapping[str, Header], variables: dict[str, keras.Variable]) -> list[str]:
    """How arrays of these shapes differ from the weights of a model."""
    shapes = {key: tuple(variable.shape) for key, variable in variables.items()}
    missing = [f"missing: {key} {shape}" for key, shape in shapes.items() if key not in headers]
    others = [
        f"not in the model: {key} {h.shape}" for key, h in headers.items() if key not in shapes
    ]
    wrong = [
        f"wrong shape: {key} is {h.shape}, expected {shapes[key]}"
        for key, h in headers.items()
        if h.shape != shapes.get(key, h.shape)
    ]
    return missing + others + wrong


def file_digest(path: Path) -> str:
    """The sha256 of a file."""
    return hashlib.sha256(path.read_bytes()).hexdigest()
