"""How the commands speak: messages to stderr, JSON to stdout, errors that name the option."""

from __future__ import annotations

import json
import sys
import warnings
from typing import TYPE_CHECKING, Any

from adjoint_lib.errors import InputError
from adjoint_lib.experiments.machine import import_tensorflow
from adjoint_lib.frontend import loading

if TYPE_CHECKING:
    import keras

    from adjoint_lib.core.equivalent_net import EquivalentNet


def note(message: str) -> None:
    """Say something on stderr."""
    print(message, file=sys.stderr, flush=True)


def print_json(value: Any) -> None:
    """Print a result as JSON."""
    print(json.dumps(value, indent=1))


def load_model(file: str) -> keras.Model:
    """The model of the option --file; a wrong file is refused before TensorFlow is imported."""
    try:
        loading.check_file(file)
        import_tensorflow()
        return loading.load_model(file)
    except InputError as error:
        raise InputError(f"--file {error}") from error


def equivalent_of(model: keras.Model) -> EquivalentNet:
    """The equivalent network; what it warns of goes to stderr as a message."""
    from adjoint_lib.frontend.equivalent import equivalent

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("ignore")  # what the libraries below tell their developers
        warnings.simplefilter("always", UserWarning)
        net = equivalent(model)
    for warning in caught:
        note(str(warning.message))
    return net
