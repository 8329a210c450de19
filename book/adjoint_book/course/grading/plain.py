"""Values as plain data, so that an answer can leave the process that made it.

What cannot be written as numbers, words, arrays and lists of them becomes an `Opaque` with a short
description. Nothing that is read here can run code; a Keras model is a description of layers of
Keras's own, and its weights.
"""

from __future__ import annotations

import base64
import math
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from adjoint_book.exercises.checking import named
from adjoint_lib.errors import DataError

MOST_BYTES = 16 << 20  # of one array
MOST_TEXT = 10_000  # characters
MOST_ITEMS = 100_000  # of one list
DEPTH = 20
SIMPLE = "biuf"  # kinds of arrays that are numbers


class Opaque:
    """What stands for a value that cannot be written as plain data."""

    def __init__(self, description: str):
        self.description = description

    def __repr__(self) -> str:
        return self.description


def encode(value: Any, depth: int = DEPTH) -> Any:
    """A value as something that JSON can write; never raises."""
    try:
        return _encode(value, depth)
    except Exception as error:  # a stranger's object may fail in any way
        return {"opaque": f"a value that failed: {type(error).__name__}"[:80]}


def decode(written: Any, function: Callable[..., Any] | None = None) -> Any:
    """The value that `encode` wrote.

    Args:
        written: what came out of JSON; nothing about it is taken for granted.
        function: what stands for a function.
    """
    if written is None or isinstance(written, (bool, str, float, int)):
        return written
    if isinstance(written, dict) and len(written) == 1:
        ((kind, content),) = written.items()
        if kind in READERS:
            return READERS[kind](content, function)
    raise DataError("an answer: expected plain data, got something else. It is not marked.")


def described(value: Any) -> str:
    """A short description of any value."""
    return named(value)[:80]


def _encode(value: Any, depth: int) -> Any:
    if depth < 0:
        return {"opaque": "a value nested too deep"}
    if value is None or value is Ellipsis:
        return None
    if type(value) is bool or (type(value) is str and len(value) <= MOST_TEXT):
        return value
    if type(value) is int:
        return value if abs(value) < 2**53 else {"whole": hex(value)[:MOST_TEXT]}
    if type(value) is float:
        return value if math.isfinite(value) else {"float": repr(value)}
    if type(value) is complex:
        return {"complex": [repr(value.real), repr(value.imag)]}
    kinds: dict[type, str] = {
        list: "list",
        tuple: "tuple",
        set: "set",
        frozenset: "set",
        dict: "dict",
    }
    if type(value) in kinds:
        if len(value) > MOST_ITEMS:
            return {"opaque": f"{described(value)} of {len(value)} items"}
        items = [list(pair) for pair in value.items()] if type(value) is dict else list(value)
        if type(value) is dict:
            written = [[_encode(k, depth - 1), _encode(v, depth - 1)] for k, v in items]
            return {"dict": written}
        return {kinds[type(value)]: [_encode(item, depth - 1) for item in items]}
    if _is_model(value):
        return {"model": _model(value)}
    if isinstance(value, (np.ndarray, np.generic)) or hasattr(value, "numpy"):
        return _encode_array(value if not hasattr(value, "numpy") else value.numpy())
    if callable(value):
        return {"function": getattr(value, "__name__", "a function")[:80]}
    return {"opaque": described(value)}


def _encode_array(value: Any) -> Any:
    array = np.asarray(value)
    if array.dtype.kind == "U" and array.nbytes <= MOST_BYTES:
        return _encode(array.tolist(), DEPTH)
    if array.dtype.kind not in SIMPLE or array.nbytes > MOST_BYTES:
        return {"opaque": f"an array of {array.dtype} and shape {array.shape}"[:80]}
    data = base64.b64encode(np.ascontiguousarray(array).tobytes()).decode("ascii")
    return {"array": [array.dtype.str, list(array.shape), data]}


def _is_model(value: Any) -> bool:
    keras = sys.modules.get("keras")
    return keras is not None and isinstance(value, keras.Model)


def _model(model: Any) -> Any:
    import keras

    return [
        keras.saving.serialize_keras_object(model),
        [_encode_array(weight) for weight in model.get_weights()],
    ]


# ------------------------------------------------------------------ reading


def _items(content: Any, function: Any) -> list[Any]:
    if not isinstance(content, list):
        raise DataError("an answer: expected a list, got something else. It is not marked.")
    return [decode(item, function) for item in content]


def _read_set(content: Any, function: Any) -> Any:
    items = _items(content, function)
    try:
        return set(items)
    except TypeError:
        return items


def _read_dict(content: Any, function: Any) -> Any:
    pairs = [(decode(k), decode(v, function)) for k, v in content]
    return {k if isinstance(k, (str, int, float, bool)) else repr(k): v for k, v in pairs}


def _read_array(content: Any, function: Any) -> Any:
    name, shape, data = content
    dtype = np.dtype(str(name))
    sizes = [int(size) for size in shape]
    if dtype.kind not in SIMPLE or min(sizes, default=0) < 0 or len(sizes) > 32:
        raise DataError("an answer: expected an array of numbers, got another. It is not marked.")
    raw = base64.b64decode(data)
    if len(raw) != math.prod(sizes) * dtype.itemsize or len(raw) > MOST_BYTES:
        raise DataError("an answer: expected an array of its size, got another. It is not marked.")
    array = np.frombuffer(raw, dtype).reshape(sizes).copy()
    return array[()] if not sizes else array


def _read_model(content: Any, function: Any) -> Any:
    import keras

    import adjoint_lib.frontend.layers  # noqa: F401 (registers the library's own layers)

    config, weights = content
    foreign = _foreign(config)
    if foreign:
        return Opaque(f"a Keras model with {foreign}, which has to be marked by hand")
    model = keras.saving.deserialize_keras_object(config, safe_mode=True)
    model.set_weights([np.asarray(decode(weight)) for weight in weights])
    return model


def _foreign(config: Any) -> str:
    """The first class in the description of a model that is not a layer or the like of Keras's."""
    if isinstance(config, list):
        return next(filter(None, map(_foreign, config)), "")
    if not isinstance(config, dict):
        return ""
    if "class_name" in config:
        home, name = config.get("module"), str(config["class_name"])
        ours = str(config.get("registered_name") or "").startswith("adjoint_lib>")
        known = {
            "keras",
            "keras.layers",
            "keras.initializers",
            "keras.regularizers",
            "keras.constraints",
            "keras.src.models.functional",
            "keras.src.models.sequential",
        }
        plain = name in {"__keras_tensor__", "__tuple__", "DTypePolicy"}
        if name == "Lambda" or not (ours or plain or home in known):
            return f"{home}.{name}"[:80]
    return next(filter(None, map(_foreign, config.values())), "")


READERS: dict[str, Callable[[Any, Any], Any]] = {
    "whole": lambda content, _: int(str(content), 16),
    "float": lambda content, _: float(str(content)),
    "complex": lambda content, _: complex(float(content[0]), float(content[1])),
    "list": _items,
    "tuple": lambda content, function: tuple(_items(content, function)),
    "set": _read_set,
    "dict": _read_dict,
    "array": _read_array,
    "model": _read_model,
    "function": lambda content, function: function or Opaque("a function"),
    "opaque": lambda content, _: Opaque(str(content)[:80]),
}
