"""Small tables that read well in a terminal (`repr`) and in a notebook (HTML)."""

from __future__ import annotations

import html
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Generic, TypeVar, overload

Row = TypeVar("Row", covariant=True)


class Table(Sequence[Row], Generic[Row]):
    """A sequence of records that prints itself as a table.

    Args:
        header: column names.
        rows: the records.
        cells: the text cells of a record; by default the record is its own list of cells.
    """

    def __init__(
        self, header: list[str], rows: Sequence[Row], cells: Callable[[Any], list[str]] = list
    ):
        self.header = header
        self.rows = list(rows)
        self.cells = cells

    def __len__(self) -> int:
        return len(self.rows)

    @overload
    def __getitem__(self, index: int) -> Row: ...

    @overload
    def __getitem__(self, index: slice) -> Table[Row]: ...

    def __getitem__(self, index: int | slice) -> Row | Table[Row]:
        if isinstance(index, slice):
            return Table(self.header, self.rows[index], self.cells)
        return self.rows[index]

    def __iter__(self) -> Iterator[Row]:
        return iter(self.rows)

    def __repr__(self) -> str:
        lines = [self.header, *(self.cells(row) for row in self.rows)]
        widths = [max(len(line[i]) for line in lines) for i in range(len(self.header))]
        text = [
            "  ".join(c.ljust(w) for c, w in zip(line, widths, strict=True)).rstrip()
            for line in lines
        ]
        return "\n".join([text[0], "  ".join("-" * w for w in widths), *text[1:]])

    def _repr_html_(self) -> str:
        def line(tag: str, cells: list[str]) -> str:
            return "<tr>" + "".join(f"<{tag}>{html.escape(c)}</{tag}>" for c in cells) + "</tr>"

        body = "".join(line("td", self.cells(row)) for row in self.rows)
        return f"<table><thead>{line('th', self.header)}</thead><tbody>{body}</tbody></table>"
