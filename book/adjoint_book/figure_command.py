"""The command `figure`: lists the figures of the book, or draws one of them to a file."""

from __future__ import annotations

import argparse
import os

from adjoint_book._extras import require
from adjoint_lib.cli.options import command
from adjoint_lib.errors import InputError


def add_options(parser: argparse.ArgumentParser) -> None:
    """The options of `figure`."""
    parser.add_argument("name", nargs="?", help="draw this one; without it, list them all")
    parser.add_argument("--output", metavar="FILE.svg|png|pdf", help="where to (default: NAME.svg)")


@command(
    "figure",
    add_options,
    "List the figures of the book, or draw one of them to a file.",
    """
    examples:
      {program} figure
      {program} figure overview
      {program} figure overview --output overview.png
    """,
)
def figure(options: argparse.Namespace) -> bool:
    """List the figures, or draw the one that is named."""
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")  # some figures come from live networks
    require("matplotlib")
    import matplotlib

    matplotlib.use("Agg")
    from adjoint_book import figures
    from adjoint_lib.core.tables import Table

    if options.name is None:
        if options.output is not None:
            raise InputError("--output: expected the name of a figure with it, got none.")
        print(Table(["figure", "shows"], figures.names(), lambda name: [name, figures.about(name)]))
    else:
        print(figures.save(options.name, options.output or f"{options.name}.svg"))
    return True
