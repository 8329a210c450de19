"""The command `course`: writes the material for a course into a folder."""

from __future__ import annotations

import argparse
import os
import sys
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
    actions = parser.add_subparsers(metavar="grade", title="marking")
    shared.described(
        actions.add_parser,
        "Mark submitted notebooks: each runs confined, in a process of its own.",
        """
        SUBMISSIONS has a folder for each student, named after the student number, with notebooks
        such as 01-adjoints.ipynb in it.

        example:
          {program} course grade submitted --output marks
        """,
        name="grade",
    )
    marking = actions.choices["grade"]
    marking.add_argument("submissions", type=shared.path, metavar="SUBMISSIONS")
    marking.add_argument("--output", type=shared.path, default="marks", metavar="FOLDER")
    marking.add_argument(
        "--seconds",
        type=shared.positive,
        default=120.0,
        help="of the processor's time for one notebook (default: 120)",
    )
    marking.add_argument(
        "--memory", type=shared.positive, default=3.0, help="GB for one notebook (default: 3)"
    )
    marking.add_argument(
        "--workers",
        type=shared.whole(1),
        default=os.cpu_count() or 1,
        help="how many at a time (default: one for each processor)",
    )
    marking.add_argument(
        "--whole",
        action="store_true",
        help="run all cells of a chapter, not only those that the answers need",
    )
    marking.set_defaults(action=grade)


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
    """Write the parts that are named, or all of them; or mark."""
    if "action" in options:
        return bool(options.action(options))
    from adjoint_book.course.chapters import book_folder
    from adjoint_book.course.parts import Build, make

    build = Build(book_folder().resolve(), Path(options.output).resolve())
    make(build, options.part)
    print(build.output)
    if not options.part:
        from adjoint_book.build.setup_cell import address
        from adjoint_book.course.zips import pack

        for archive in pack(build.output, address(build.book.parent)):
            print(archive)
    return True


def grade(options: argparse.Namespace) -> bool:
    """Mark the notebooks in a folder."""
    from adjoint_book.course.chapters import book_folder
    from adjoint_book.course.grading.grade import grade as marked
    from adjoint_book.course.grading.processes import Limits

    output = Path(options.output)
    limits = Limits(seconds=options.seconds, memory=int(options.memory * 2**30))
    marked(
        Path(options.submissions),
        output,
        book_folder().resolve(),
        limits,
        options.workers,
        options.whole,
        lambda message: print(message, file=sys.stderr, flush=True),
    )
    print(output / "marks.csv")
    return True
