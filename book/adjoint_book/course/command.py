"""The command `course`: writes the material for a course into a folder."""

from __future__ import annotations

import argparse
from pathlib import Path

from adjoint_lib.cli import options as shared
from adjoint_lib.cli.options import command


def add_options(parser: argparse.ArgumentParser) -> None:
    """The options of `course`."""
    parser.add_argument(
        "--part",
        action="append",
        default=[],
        metavar="NAME",
        help="write this part only, such as notebooks; may be repeated (default: all but pdf)",
    )
    parser.add_argument(
        "--output",
        type=shared.path,
        default="_build/course",
        metavar="FOLDER",
        help="where to (default: %(default)s)",
    )


@command(
    "course",
    add_options,
    "Write what a course needs: notebooks, quizzes, slides, plans, for students and lecturer.",
    """
    examples:
      {program} course
      {program} course --part notebooks --output handout
    """,
)
def course(options: argparse.Namespace) -> bool:
    """Write the parts that are named, or all of them."""
    from adjoint_book.course.chapters import book_folder
    from adjoint_book.course.parts import Build, make

    build = Build(book_folder().resolve(), Path(options.output).resolve())
    make(build, options.part)
    print(build.output)
    return True
