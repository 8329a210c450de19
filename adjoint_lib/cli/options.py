"""What the commands have in common: how one is registered, the options they share, their values.

Nothing here imports TensorFlow: help and wrong usage are answered at once.
"""

from __future__ import annotations

import argparse
import math
import textwrap
from collections.abc import Callable, Iterable
from typing import NamedTuple

from adjoint_lib._registry import Registry, did_you_mean

PROGRAM = "python -m adjoint_lib"
DATASETS = ("cifar10", "cifar100")
MODELS = ("vgg7", "resnet20", "resnet20-fixup")
RECIPES = ("fast", "paper")

FIRST = ("data", "info", "verify", "explore", "train", "evaluate")  # in the order of the work

Run = Callable[[argparse.Namespace], bool]


class Command(NamedTuple):
    """A command: how its options are added, what it does, and what `--help` says of it."""

    add_options: Callable[[argparse.ArgumentParser], None]
    run: Run
    description: str
    epilog: str


COMMANDS: Registry[str, Command] = Registry("command", package="adjoint_lib.cli")


def command(
    name: str,
    add_options: Callable[[argparse.ArgumentParser], None],
    description: str,
    epilog: str,
) -> Callable[[Run], Run]:
    """Register a function as the command `name`.

    The function takes the parsed options and returns whether all that it checked is as it should
    be. Results go to stdout, progress and messages to stderr.

    Args:
        add_options: adds the command's options to its parser.
        description: one sentence.
        epilog: examples and remarks below the options; `{program}` stands for the program's name.
    """

    def register(run: Run) -> Run:
        COMMANDS.register(name)(Command(add_options, run, description, epilog))
        return run

    return register


def in_order(names: Iterable[str]) -> list[str]:
    """The names of commands as `--help` lists them: those of the library first."""
    known = set(names)
    return [*(name for name in FIRST if name in known), *sorted(known.difference(FIRST))]


def described(make: Callable, description: str, epilog: str, **options) -> argparse.ArgumentParser:
    """A parser with this description and, below the options, this text in its own lines."""
    if "name" in options:
        options = {"help": description, **options}
    return make(
        **options,
        description=description,
        epilog=textwrap.dedent(epilog).strip().format(program=PROGRAM),
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )


# ------------------------------------------------------------------ options of several commands


def add_network(parser: argparse.ArgumentParser) -> None:
    """--model and --dataset, of a command that needs both."""
    parser.add_argument("--model", type=model_name, metavar="|".join(MODELS), required=True)
    parser.add_argument("--dataset", choices=DATASETS, required=True)


def add_model(parser: argparse.ArgumentParser) -> None:
    """--model or --file, of a command that takes any model."""
    which = parser.add_mutually_exclusive_group(required=True)
    names = "|".join(MODELS)
    which.add_argument("--model", type=model_name, metavar=names, help="one of the paper's")
    which.add_argument("--file", type=path, metavar="MY.keras", help="a model saved by Keras 3")


def add_json(parser: argparse.ArgumentParser, what: str) -> None:
    """--json, of a command whose result is also a record."""
    parser.add_argument("--json", action="store_true", help=f"print {what} as JSON")


# ------------------------------------------------------------------ values of options


def model_name(text: str) -> str:
    """A type of option: the name of one of the paper's networks."""
    if text in MODELS:
        return text
    raise argparse.ArgumentTypeError(
        f"no model is called {text!r}; there are {', '.join(MODELS)}.{did_you_mean(text, MODELS)}"
    )


def path(text: str) -> str:
    """A type of option: a path."""
    if not text:
        raise argparse.ArgumentTypeError("expected a path, got ''.")
    return text


def positive(text: str) -> float:
    """A type of option: a finite number above 0."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 < value < math.inf:
        raise argparse.ArgumentTypeError(f"expected a finite number above 0, got {text!r}.")
    return value


def whole(least: int) -> Callable[[str], int]:
    """A type of option: an integer of at least this."""

    def whole(text: str) -> int:
        if not text.isdecimal() or int(text) < least:
            raise argparse.ArgumentTypeError(
                f"expected an integer of at least {least}, got {text!r}."
            )
        return int(text)

    return whole
