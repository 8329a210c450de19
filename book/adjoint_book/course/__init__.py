"""Teaching from the book: courses made of its chapters, marking, and the material to hand out.

chapters = book.course.chapters()          # number, title, minutes, needs, exercises
book.course.way_to(chapters, [6])          # what has to be read for chapter 6, in order
book.course.mark({"check_versions": 162})  # what the checks say of a sheet of answers

`python -m adjoint_book course` writes the material: each module of this package that has some
registers a function under the decorator `part`.
"""

from adjoint_book.course.chapters import Chapter, chapters, sessions, way_to
from adjoint_book.course.marking import mark, verdict
from adjoint_book.course.variants import own

__all__ = ["Chapter", "chapters", "mark", "own", "sessions", "verdict", "way_to"]
