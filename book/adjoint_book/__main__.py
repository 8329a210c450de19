"""`python -m adjoint_book`: the commands of the book, and those of the library.

In an installation, `python -m adjoint_lib` has all of them too.
"""

import adjoint_book.course.command
import adjoint_book.figure_command  # noqa: F401 (each registers its command)
from adjoint_lib.cli.main import leave

if __name__ == "__main__":
    leave()
