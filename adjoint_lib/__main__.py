"""`python -m adjoint_lib data|info|verify|...`: the options, the dispatch and the exit codes.

Nothing here imports TensorFlow: help and wrong usage are answered at once.
"""

from __future__ import annotations

import argparse
import difflib
import math
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from adjoint_lib import AdjointError, __version__, cli, training_cli, verification_cli

PROGRAM = "python -m adjoint_lib"
FAILED, BAD_INPUT, INTERRUPTED, BROKEN_PIPE = 1, 2, 130, 141

DATASETS = ("cifar10", "cifar100")
MODELS = ("vgg7", "resnet20", "resnet20-fixup")
RECIPES = ("fast", "paper")


def main(argv: list[str] | None = None) -> int:
    """Run one command; returns the exit code.

    0: done, and whatever was checked is as it should be. 1: a check failed (a unit beyond its
    rounding bound, a damaged data file). 2: wrong usage or bad input. 130: interrupted. 141: the
    reader of the output went away. Anything unforeseen keeps its traceback.
    """
    with _interrupts() as interrupts:
        try:
            return _run(argv)
        except BrokenPipeError:
            for stream in (sys.stdout, sys.stderr):  # the flush at exit must not fail in its turn
                os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
            return BROKEN_PIPE
        except (Exception, KeyboardInterrupt) as error:
            if interrupts or isinstance(error, KeyboardInterrupt):
                return _say(
                    "interrupted. Every file is whole or as it was; the same command goes on with "
                    "an unfinished download, training or verification.",
                    INTERRUPTED,
                )
            if isinstance(error, AdjointError):
                return _say(str(error), BAD_INPUT)
            raise


def _run(argv: list[str] | None) -> int:
    try:
        options = _parser().parse_args(argv)
        passed = options.command(options)
    except SystemExit as stop:  # argparse has said all: help, version or wrong usage
        return stop.code
    finally:
        sys.stdout.flush()  # here rather than at exit, so that a closed pipe is noticed
    return 0 if passed else FAILED


@contextmanager
def _interrupts() -> Iterator[list[int]]:
    """A list that has an entry as soon as Ctrl-C was pressed.

    KeyboardInterrupt alone does not tell: TensorFlow replaces it by other errors in some places.
    """
    seen: list[int] = []

    def interrupt(number, frame):
        seen.append(number)
        signal.default_int_handler(number, frame)

    if signal.getsignal(signal.SIGINT) is not signal.default_int_handler:  # ignored, as by nohup
        yield seen
        return
    signal.signal(signal.SIGINT, interrupt)
    try:
        yield seen
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def _say(message: str, code: int) -> int:
    print(f"{PROGRAM}: {' '.join(message.split())}", file=sys.stderr)
    return code


# ------------------------------------------------------------------ options


def _parser() -> argparse.ArgumentParser:
    parser = _described(
        argparse.ArgumentParser,
        "Exact reconstruction of every unit of a piecewise-linear Keras model.",
        """
        example:
          {program} verify --model vgg7 --method tangent --images 100

        exit codes:
          0    done; everything that was checked is as it should be
          1    a check failed: a unit beyond its rounding bound, or a damaged data file
          2    wrong usage or bad input; the message says what was expected
          130  interrupted

        Results go to stdout, progress and messages to stderr. TensorFlow's own start-up messages
        are left out unless the environment variable TF_CPP_MIN_LOG_LEVEL is 0.
        """,
        prog=PROGRAM,
    )
    parser.add_argument("--version", action="version", version=f"adjoint_lib {__version__}")
    commands = parser.add_subparsers(
        title="commands", metavar="data|info|verify|train|evaluate|figure", required=True
    )
    _add_data(commands)
    _add_info(commands)
    _add_verify(commands)
    _add_train(commands)
    _add_evaluate(commands)
    _add_figure(commands)
    return parser


def _add_data(commands) -> None:
    parser = _described(
        commands.add_parser,
        "Show which images are here, or fetch a full data set and check every byte of it.",
        """
        examples:
          {program} data
          {program} data cifar10

        A full set is taken from the folder ADJOINT_DATA, from the cache (ADJOINT_CACHE, by default
        adjoint_lib in the user's cache folder) or from the network. The samples need neither.
        """,
        name="data",
    )
    parser.add_argument(
        "dataset", nargs="?", choices=DATASETS, help="fetch this one; without it, only look"
    )
    _add_json(parser, "the records of all splits")
    parser.set_defaults(command=cli.data)


def _add_info(commands) -> None:
    parser = _described(
        commands.add_parser,
        "Show the equivalent network over [x; x_b]: layers, sources of x_b, dimensions of H.",
        """
        examples:
          {program} info --model resnet20-fixup
          {program} info --file my.keras --json
        """,
        name="info",
    )
    _add_model(parser)
    parser.add_argument(
        "--classes", type=int, choices=(10, 100), help="outputs of --model (default: 10)"
    )
    _add_json(parser, "the network's tables")
    parser.set_defaults(command=cli.info)


def _add_verify(commands) -> None:
    parser = _described(
        commands.add_parser,
        "Reconstruct every unit of a network on test images, and compare it with the network.",
        """
        examples:
          {program} verify --model vgg7
          {program} verify --file my.keras --layers conv1,conv2 --dtype float64
          {program} verify --model resnet20 --method tangent --full --images 10000 --output r.json
          {program} verify --model vgg7 --full --images 2000 --mode RM2 --workers 4

        Many images are divided into shards. Each is saved in the run's folder when it is done, and
        however a run was stopped, the same command goes on with it. With --workers or --scheduler,
        Dask computes the shards in several processes or on a cluster (pip install
        adjoint_lib[cluster]); the report is the same to the bit, on machines alike.

        From 30 images on, the table has 95 percent intervals. They allow for the units of one image
        being correlated. For trained weights, the paper's percentages stand beside ours.

        The exit code is 0 if every unit is within its rounding bound, 1 if not. The bound is held
        against the unit's rounding scale A (rigorous, but loose in deep layers) and against the
        largest value of the layer.
        """,
        name="verify",
    )
    _add_model(parser)
    parser.add_argument(
        "--weights",
        metavar="cifar10|cifar100|random|PATH.npz",
        help="the trained ones of --model, random ones, or a file of weights (default: for --model "
        "the trained ones, random ones while there are none; for --file its own)",
    )
    parser.add_argument(
        "--seed", type=_whole(0), metavar="N", help="of --weights random (default: 0)"
    )
    parser.add_argument(
        "--dataset",
        choices=DATASETS,
        help="whose test images (default: that of --weights, or cifar10); --file gets their pixels "
        "in [0, 1]",
    )
    parser.add_argument(
        "--images",
        type=_whole(1),
        default=2,
        metavar="N",
        help="how many, from the first on (default: 2)",
    )
    parser.add_argument(
        "--full",
        action="store_true",
        help="fetch the full test set if it is not here; without it, the embedded sample will do",
    )
    parser.add_argument(
        "--layers", metavar="A,B|all", help="by default every layer but the first, whose J is 1"
    )
    parser.add_argument(
        "--mode",
        choices=("RM2", "RM0"),
        help="only the convolutions (RM2) or only the dense layers (RM0)",
    )
    parser.add_argument(
        "--method",
        choices=("hypersurface", "tangent"),
        default="hypersurface",
        help="through each unit's own H (default), or all at once along [x; x_b], much faster",
    )
    parser.add_argument(
        "--dtype", choices=("float32", "float64"), help="of all computing (default: the model's)"
    )
    parser.add_argument(
        "--k",
        type=_positive,
        default=0.125,
        metavar="K",
        help="J is taken at K [x; x_b] (default: 0.125)",
    )
    parser.add_argument(
        "--weights-rounded",
        choices=("bfloat16",),
        help="take H from weights rounded to so few bits, and compare with the full ones",
    )
    parser.add_argument(
        "--folder",
        metavar="FOLDER",
        help="of the run (default: runs/verify-NET-METHOD-DIGEST; none for a single shard)",
    )
    where = parser.add_mutually_exclusive_group()
    where.add_argument(
        "--workers", type=_whole(1), metavar="N", help="compute in N processes of this machine"
    )
    where.add_argument(
        "--scheduler", metavar="tcp://HOST:PORT", help="compute on the Dask cluster there"
    )
    parser.add_argument(
        "--threads",
        type=_whole(1),
        metavar="N",
        help="that TensorFlow uses in each process (default: as many as cores here); sums are "
        "rounded in an order that depends on it, so it is part of what a run is",
    )
    parser.add_argument(
        "--output",
        metavar="RESULT.json",
        help="also write the report there, with all that made it; a trained --model's goes under "
        "its own name if this is a folder",
    )
    parser.add_argument(
        "--onto",
        metavar="RESULT.json",
        help="go on from the result of the same verification on fewer images: only those that it "
        "has not are computed, and the report is of them all",
    )
    _add_json(parser, "the report")
    parser.set_defaults(command=verification_cli.verify)


def _add_train(commands) -> None:
    parser = _described(
        commands.add_parser,
        "Train one of the paper's networks, or go on with a training that was stopped.",
        """
        examples:
          {program} train --model vgg7 --dataset cifar10
          {program} train --model vgg7 --dataset cifar10 --sample --epochs 4

        The run's folder holds its checkpoint, written every two minutes, log.csv and, when it has
        ended, MODEL-DATASET.npz (the weights with the best validation accuracy) with a .json that
        says where they come from. However a run was stopped, the same command goes on with it.
        """,
        name="train",
    )
    _add_network(parser)
    parser.add_argument(
        "--recipe",
        choices=RECIPES,
        default=RECIPES[0],
        help=f"fewest CPU minutes, or the paper's own description (default: {RECIPES[0]})",
    )
    parser.add_argument(
        "--seed",
        type=_whole(0),
        default=0,
        metavar="N",
        help="of initial weights, split, order and augmentation (default: 0)",
    )
    parser.add_argument(
        "--epochs", type=_whole(1), metavar="N", help="stretch or shrink the recipe to so many"
    )
    parser.add_argument(
        "--folder", metavar="FOLDER", help="of the run (default: runs/MODEL-DATASET-RECIPE-SEED)"
    )
    parser.add_argument(
        "--sample", action="store_true", help="train on the few embedded images, to try it out"
    )
    parser.set_defaults(command=training_cli.train)


def _add_evaluate(commands) -> None:
    parser = _described(
        commands.add_parser,
        "Show the test accuracy of a trained network, and whether its equivalent network agrees.",
        """
        examples:
          {program} evaluate --model vgg7 --dataset cifar10 --sample
          {program} evaluate --model vgg7 --dataset cifar10 --weights my.npz

        The accuracy comes with its 95 percent interval. The exit code is 0 if the equivalent
        network chooses the same class for every image, but for ties within rounding, and 1 if not.
        """,
        name="evaluate",
    )
    _add_network(parser)
    parser.add_argument(
        "--weights",
        metavar="PATH.npz",
        help="a file of weights (default: those that come with the library)",
    )
    parser.add_argument(
        "--sample", action="store_true", help="on the embedded images instead of the full test set"
    )
    _add_json(parser, "the counts")
    parser.set_defaults(command=training_cli.evaluate)


def _add_figure(commands) -> None:
    parser = _described(
        commands.add_parser,
        "List the figures of the book, or draw one of them to a file.",
        """
        examples:
          {program} figure
          {program} figure overview
          {program} figure overview --output overview.png
        """,
        name="figure",
    )
    parser.add_argument("name", nargs="?", help="draw this one; without it, list them all")
    parser.add_argument("--output", metavar="FILE.svg|png|pdf", help="where to (default: NAME.svg)")
    parser.set_defaults(command=cli.figure)


def _add_network(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--model", type=_model, metavar="|".join(MODELS), required=True)
    parser.add_argument("--dataset", choices=DATASETS, required=True)


def _add_model(parser: argparse.ArgumentParser) -> None:
    which = parser.add_mutually_exclusive_group(required=True)
    which.add_argument("--model", type=_model, metavar="|".join(MODELS), help="one of the paper's")
    which.add_argument("--file", metavar="MY.keras", help="a model saved by Keras 3")


def _add_json(parser: argparse.ArgumentParser, what: str) -> None:
    parser.add_argument("--json", action="store_true", help=f"print {what} as JSON")


def _described(make, description: str, epilog: str, **options) -> argparse.ArgumentParser:
    """A parser with this description and, below the options, this text in its own lines."""
    lines = [line.removeprefix(" " * 8) for line in epilog.strip().splitlines()]
    if "name" in options:
        options = {"help": description, **options}
    return make(
        **options,
        description=description,
        epilog="\n".join(lines).format(program=PROGRAM),
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )


# ------------------------------------------------------------------ values of options


def _model(text: str) -> str:
    if text in MODELS:
        return text
    near = difflib.get_close_matches(text.lower().replace("_", "-"), MODELS, 1, cutoff=0.4)
    hint = f" Did you mean {near[0]!r}?" if near else ""
    raise argparse.ArgumentTypeError(
        f"no model is called {text!r}; there are {', '.join(MODELS)}.{hint}"
    )


def _positive(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 < value < math.inf:
        raise argparse.ArgumentTypeError(f"expected a finite number above 0, got {text!r}.")
    return value


def _whole(least: int):
    """A type of option: an integer of at least this."""

    def whole(text: str) -> int:
        if not text.isdecimal() or int(text) < least:
            raise argparse.ArgumentTypeError(
                f"expected an integer of at least {least}, got {text!r}."
            )
        return int(text)

    return whole


def _leave(code: int) -> None:
    """End the process; after an interrupt at once, as TensorFlow may crash when torn down then."""
    if code == INTERRUPTED:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
    sys.exit(code)


if __name__ == "__main__":
    _leave(main())
