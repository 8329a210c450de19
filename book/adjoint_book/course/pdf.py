"""The book as a PDF for the students; the module that makes it is `adjoint_book.build.pdf`."""

from adjoint_book.build import pdf as book_as_pdf
from adjoint_book.course.parts import Build, part


@part("pdf", "the book for print, which takes as long as building the book", default=False)
def pdf(build: Build) -> None:
    """Write the PDF, or say why there is none."""
    book_as_pdf.main([], build.students() / "the-adjoint-book.pdf", build.say)
