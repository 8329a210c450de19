"""`python -m adjoint_lib data|info|verify|...`: the options, the dispatch and the exit codes.

Nothing here imports TensorFlow: help and wrong usage are answered at once.
"""

from __future__ import annotations

import argparse
import io
import os
import signal
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib.metadata import entry_points
from typing import NoReturn, TextIO

from adjoint_lib import AdjointError, __version__
from adjoint_lib.cli.options import COMMANDS, PROGRAM, described, in_order

FAILED, BAD_INPUT, NOT_DONE, INTERRUPTED, BROKEN_PIPE = 1, 2, 3, 130, 141
OTHERS = "adjoint_lib.commands"  # entry points: modules of other packages that register commands


def main(argv: list[str] | None = None) -> int:
    """Run one command; returns the exit code.

    0: done, and whatever was checked is as it should be. 1: a check failed (a unit beyond its
    rounding bound, a network that differs from its model, a damaged data file). 2: wrong usage or
    bad input. 3: it could not be done, as the system refused to write, say; what nobody foresaw
    keeps its traceback. 130: interrupted.
    141: the reader of the output went away.
    """
    for name in ("stdin", "stderr"):
        if getattr(sys, name) is None:  # closed: the next file that is opened would take its place
            setattr(sys, name, open(os.devnull, "r+"))  # noqa: SIM115 (for as long as we run)
    if sys.stdout is None:
        return _say("standard output: expected it open, found it closed. Give it a file.", NOT_DONE)
    with _interrupts() as interrupts:
        try:
            return _run(argv)
        except BrokenPipeError:
            _discard(sys.stdout, sys.stderr)
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
            if isinstance(error, OSError):
                return _say(
                    f"{_what_failed(error)}: {error}. Make room or name another place.", NOT_DONE
                )
            traceback.print_exc()
            return NOT_DONE


def _run(argv: list[str] | None) -> int:
    try:
        options = parser().parse_args(argv)
        passed = options.command(options)
    except SystemExit as stop:
        if not isinstance(stop.code, int):
            raise
        return stop.code  # argparse has said all: help, version or wrong usage
    finally:
        _flush()  # here rather than at exit, so that a closed pipe is noticed
    return 0 if passed else FAILED


class _Unwritable(OSError):
    """Standard output cannot be written to."""


def _flush() -> None:
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        _discard(sys.stdout)
        raise _Unwritable(*error.args) from error


def _what_failed(error: OSError) -> str:
    if isinstance(error, _Unwritable):
        return "standard output could not be written"
    return "a file could not be read or written"


def _discard(*streams: TextIO) -> None:
    """Let what was written to these go nowhere: the flush at exit must not fail in its turn."""
    for stream in streams:
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


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
    with suppress(OSError):  # of a stderr that is full
        print(f"{PROGRAM}: {' '.join(message.split())}", file=sys.stderr)
    return code


def parser() -> argparse.ArgumentParser:
    """The parser of all commands: those of this package, and those that others register."""
    main_parser = described(
        argparse.ArgumentParser,
        "Exact reconstruction of every unit of a piecewise-linear Keras model.",
        """
        example:
          {program} verify --model vgg7 --method tangent --images 100

        exit codes:
          0    done; everything that was checked is as it should be
          1    a check failed: a unit beyond its rounding bound, a network that differs from its
               model, or a damaged data file
          2    wrong usage or bad input; the message says what was expected
          3    it could not be done: the output cannot be written, or something unforeseen
          130  interrupted

        Results go to stdout, progress and messages to stderr. TensorFlow's own start-up messages
        are left out unless the environment variable TF_CPP_MIN_LOG_LEVEL is 0.
        """,
        prog=PROGRAM,
    )
    main_parser.add_argument("--version", action="version", version=f"adjoint_lib {__version__}")
    for module in entry_points(group=OTHERS):
        module.load()
    listed = "|".join(in_order(COMMANDS))
    names = main_parser.add_subparsers(title="commands", metavar=listed, required=True)
    for name in in_order(COMMANDS):
        found = COMMANDS[name]
        make = described(names.add_parser, found.description, found.epilog, name=name)
        found.add_options(make)
        make.set_defaults(command=found.run)
    return main_parser


def leave() -> NoReturn:
    """Run one command and end the process.

    After an interrupt it ends at once, as TensorFlow may crash when it is torn down then.
    """
    if isinstance(sys.stdout, io.TextIOWrapper):  # argparse hides that an unbuffered one is full
        sys.stdout.reconfigure(write_through=False)
    code = main()
    if code == INTERRUPTED:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
    sys.exit(code)
