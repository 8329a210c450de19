"""What the commands of `python -m adjoint_lib` do, given their options.

Each returns whether all that it checked is as it should be. Results go to stdout, messages to
stderr. TensorFlow is imported by the functions that need it, see `import_tensorflow`.
"""

from __future__ import annotations

import argparse
import dataclasses
import faulthandler
import json
import os
import sys
import tempfile
import warnings
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from adjoint_lib.errors import InputError

if TYPE_CHECKING:
    import keras

    from adjoint_lib.core.equivalent_net import EquivalentNet


# ------------------------------------------------------------------ data


def data(options: argparse.Namespace) -> bool:
    """Show what is here of the data sets; with a name, fetch that one first."""
    from adjoint_lib import data as sets
    from adjoint_lib._tables import Table

    if options.dataset:
        sets.fetch(options.dataset)
    records = [s for s in sets.status() if options.dataset in (None, s.name)]
    if options.json:
        print_json([dataclasses.asdict(s) for s in records])
    else:
        print(Table(["set", "split", "source", "bytes", "sound", "path"], records, _status_cells))
    failed = [s for s in records if not s.ok and (s.source != "missing" or s.split == "sample")]
    for record in failed:
        note(f"{record.problem}.")
    return not failed


def _status_cells(s) -> list[str]:
    sound = "yes" if s.ok else "" if s.source == "missing" else "NO"
    return [s.name, s.split, s.source, f"{s.bytes:,}", sound, s.path]


# ------------------------------------------------------------------ info


def info(options: argparse.Namespace) -> bool:
    """Show the tables of an equivalent network."""
    if options.file and options.classes:
        raise InputError("--classes is for --model: a file has the classes it was saved with.")
    import_tensorflow()
    from adjoint_lib import models

    if options.file:
        model = load_model(options.file)
    else:
        model = models.build(options.model, classes=options.classes)
    net = equivalent(model)
    if options.json:
        print_json(_described(net))
        return True
    d_x = net.d_in - net.x_b.size
    print(f"{net!r}\nd_in = {d_x} + {net.x_b.size} = {net.d_in}")
    print(f"\nLayers with a kernel\n\n{net.layers!r}")
    print(f"\nSources of x_b\n\n{net.sources!r}")
    print(f"\nDimensions of H\n\n{net.dimensions()!r}")
    return True


def _described(net: EquivalentNet) -> dict[str, Any]:
    """The tables of `info` in plain numbers and lists."""
    from adjoint_lib.core.hypersurface import MODES

    layers = [
        {
            "name": layer.name,
            "kind": layer.kind,
            "kernel": layer.kernel,
            "strides": layer.strides,
            "output": layer.shape,
            "bias": layer.bias and [layer.bias.start, layer.bias.stop],
            "H": {mode: (net.d_in, *MODES[mode].shape(layer)) for mode in layer.modes},
        }
        for layer in net.layers
    ]
    sources = [
        {"name": s.name, "origin": s.origin, "slice": [s.start, s.stop], "shape": s.shape}
        for s in net.sources
    ]
    return {
        "name": net.name,
        "dtype": net.dtype.name,
        "input": net.input_shape,
        "d_b": net.x_b.size,
        "d_in": net.d_in,
        "layers": layers,
        "sources": sources,
    }


# ------------------------------------------------------------------ figure


def figure(options: argparse.Namespace) -> bool:
    """List the figures, or draw the one that is named."""
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")  # some figures come from live networks
    import matplotlib

    matplotlib.use("Agg")
    from adjoint_lib import figures
    from adjoint_lib._tables import Table

    if options.name is None:
        if options.output is not None:
            raise InputError("--output: expected the name of a figure with it, got none.")
        print(Table(["figure", "shows"], figures.names(), lambda name: [name, figures.about(name)]))
    else:
        print(figures.save(options.name, options.output or f"{options.name}.svg"))
    return True


# ------------------------------------------------------------------ for all of them


def load_model(file: str) -> keras.Model:
    """The model in a .keras file, without running any code that the file brings along."""
    path = Path(file)
    if path.suffix != ".keras":
        raise InputError(
            f"--file {file}: expected a .keras file. Other formats (.h5, pickles, SavedModel) are "
            "refused, since opening them can run code of the file's maker. If you trust it, load "
            "it in Python and save it by model.save('my.keras')."
        )
    if not path.is_file():
        raise InputError(f"--file {file}: expected a .keras file, found no file. Check the path.")
    if not zipfile.is_zipfile(path):
        raise InputError(
            f"--file {file}: expected a .keras file, which is a zip archive, found something else. "
            "It may be truncated: save the model again by model.save('my.keras')."
        )
    import keras

    from adjoint_lib import layers  # noqa: F401 (registers them)

    try:
        return keras.saving.load_model(path, compile=False, safe_mode=True)
    except Exception as error:  # whatever is in the file, Keras may stumble over it in any way
        reason = " ".join(str(error).split())
        raise InputError(
            f"--file {file}: expected a model that Keras can load in safe mode, got "
            f"{type(error).__name__}: {reason if len(reason) < 400 else reason[:400] + ' ...'}"
        ) from error


def equivalent(model: keras.Model) -> EquivalentNet:
    """The equivalent network; what it warns of goes to stderr as a message."""
    from adjoint_lib.core import equivalent_net as topology

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("ignore")  # what the libraries below tell their developers
        warnings.simplefilter("always", UserWarning)
        net = topology.equivalent(model)
    for warning in caught:
        note(str(warning.message))
    return net


def import_tensorflow() -> None:
    """Import it without its start-up messages, unless TF_CPP_MIN_LOG_LEVEL=0 asks for them."""
    level = os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    if "tensorflow" in sys.modules or level == "0":
        return
    with _stderr_held_back():  # some messages come before TensorFlow looks at that variable
        import tensorflow as tf

        tf.config.list_physical_devices()  # where there is no GPU, this complains once


@contextmanager
def _stderr_held_back() -> Iterator[None]:
    """Drop what any code, C++ included, writes to stderr; show it after all if there is an error.

    If the process dies at once, Python's fault handler still tells where.
    """
    sys.stderr.flush()
    real, watched = os.dup(2), faulthandler.is_enabled()
    with tempfile.TemporaryFile() as held:
        faulthandler.enable(real)
        os.dup2(held.fileno(), 2)
        try:
            yield
        except Exception:
            held.seek(0)
            os.write(real, held.read())
            raise
        finally:
            sys.stderr.flush()
            os.dup2(real, 2)
            if watched:
                faulthandler.enable()
            else:
                faulthandler.disable()
            os.close(real)


def note(message: str) -> None:
    print(message, file=sys.stderr, flush=True)


def print_json(value: Any) -> None:
    print(json.dumps(value, indent=1))
