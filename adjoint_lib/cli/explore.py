"""`explore`: a page in which any unit of a network can be touched."""

from __future__ import annotations

import argparse
from pathlib import Path

from adjoint_lib._storage import read_npy
from adjoint_lib.cli.console import equivalent_of, load_model, note
from adjoint_lib.cli.images import read_images
from adjoint_lib.cli.options import command
from adjoint_lib.errors import InputError


def add_options(parser: argparse.ArgumentParser) -> None:
    """The options of `explore`."""
    parser.add_argument(
        "--file", metavar="MY.keras", required=True, help="a model saved by Keras 3"
    )
    parser.add_argument(
        "--images",
        metavar="PHOTOS.npy|FOLDER",
        required=True,
        help="images, scaled as in training, or a folder of .npy files and pictures; bytes become "
        "numbers in [0, 1]",
    )
    parser.add_argument("--labels", metavar="LABELS.npy", help="the class of each image")
    parser.add_argument("--names", metavar="NAMES.txt", help="the names of the classes, one a line")
    parser.add_argument(
        "--output", metavar="PAGE.html", default="explorer.html", help="(default: explorer.html)"
    )


@command(
    "explore",
    add_options,
    "Write a page in which any unit of a network can be touched, and its H is computed.",
    """
    examples:
      {program} explore --file my.keras --images photos.npy --output explorer.html

    The page is one file, and needs neither a server nor a network.
    """,
)
def explore(options: argparse.Namespace) -> bool:
    """Write the page."""
    if not Path(options.output).parent.is_dir():
        raise InputError(f"--output {options.output}: expected a file in a folder that exists.")
    remedy = "Write it by numpy.save."
    labels = options.labels and read_npy(options.labels, "an array of N labels", remedy)
    names = options.names and _lines(options.names)
    net = equivalent_of(load_model(options.file))
    images, _ = read_images("--images", options.images, net.input_shape)
    net.explorer(images, labels, names).save(options.output)
    note(f"Open {options.output} in a browser.")
    return True


def _lines(file: str) -> list[str]:
    """The lines of a text file."""
    try:
        return Path(file).read_text("utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"--names {file}: expected a text file, got {error}.") from error
