"""`data`: which images are here; fetching a full data set."""

from __future__ import annotations

import argparse
import dataclasses

from adjoint_lib.cli.console import note, print_json
from adjoint_lib.cli.options import DATASETS, add_json, command


def add_options(parser: argparse.ArgumentParser) -> None:
    """The options of `data`."""
    parser.add_argument(
        "dataset", nargs="?", choices=DATASETS, help="fetch this one; without it, only look"
    )
    add_json(parser, "the records of all splits")


@command(
    "data",
    add_options,
    "Show which images are here, or fetch a full data set and check every byte of it.",
    """
    examples:
      {program} data
      {program} data cifar10

    A full set is taken from the folder ADJOINT_DATA, from the cache (ADJOINT_CACHE, by default
    adjoint_lib in the user's cache folder) or from the network. The samples need neither.
    """,
)
def data(options: argparse.Namespace) -> bool:
    """Show what is here of the data sets; with a name, fetch that one first."""
    from adjoint_lib.core.tables import Table
    from adjoint_lib.experiments import data as sets

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
