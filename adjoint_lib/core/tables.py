"""Small tables that read well in a terminal (`repr`) and in a notebook (HTML), and go elsewhere."""

from __future__ import annotations

import csv
import html
import importlib
import io
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Generic, TypeVar, overload

from adjoint_lib._storage import replacing
from adjoint_lib.errors import InputError

Row = TypeVar("Row", covariant=True)


class Tabular:
    """What can be shown as a table: a subclass gives `table`, and `records` if that is of text."""

    def table(self) -> Table[Any]:
        """The table that reads well."""
        raise NotImplementedError

    def records(self) -> Table[Any]:
        """The table with numbers in full, for programs."""
        return self.table()

    def to_dataframe(self) -> Any:
        """The numbers as a `pandas.DataFrame`; pandas is imported when this is called."""
        try:
            pandas = importlib.import_module("pandas")
        except ImportError as error:
            raise InputError(
                f"expected pandas, which makes data frames, but it cannot be imported ({error}). "
                "Install it (pip install pandas), or use to_csv() or to_markdown()."
            ) from error
        found = self.records()
        return pandas.DataFrame([found.values(row) for row in found], columns=found.header)

    @overload
    def to_csv(self) -> str: ...

    @overload
    def to_csv(self, path: str | Path) -> None: ...

    def to_csv(self, path: str | Path | None = None) -> str | None:
        """The numbers as comma-separated text, or written to a file, whole or not at all."""
        text, found = io.StringIO(), self.records()
        rows = [found.header, *(found.values(row) for row in found)]
        csv.writer(text, lineterminator="\n").writerows(rows)
        if path is None:
            return text.getvalue()
        with replacing(path) as file:
            file.write(text.getvalue().encode())
        return None

    def to_markdown(self) -> str:
        """The table in Markdown."""
        found = self.table()
        lines = [found.header, ["---"] * len(found.header), *map(found.cells, found)]
        escaped = ([cell.replace("|", r"\|") for cell in line] for line in lines)
        return "\n".join(f"| {' | '.join(line)} |" for line in escaped)


class Table(Tabular, Sequence[Row], Generic[Row]):
    """A sequence of records that prints itself as a table.

    Args:
        header: column names.
        rows: the records.
        cells: the text cells of a record; by default the record is its own list of cells.
        values: the same as numbers and text, for programs; by default `cells`.
    """

    def __init__(
        self,
        header: list[str],
        rows: Sequence[Row],
        cells: Callable[[Any], list[str]] = list,
        values: Callable[[Any], list[Any]] | None = None,
    ):
        self.header = header
        self.rows = list(rows)
        self.cells = cells
        self.values = values or cells

    def __len__(self) -> int:
        return len(self.rows)

    @overload
    def __getitem__(self, index: int) -> Row: ...

    @overload
    def __getitem__(self, index: slice) -> Table[Row]: ...

    def __getitem__(self, index: int | slice) -> Row | Table[Row]:
        if isinstance(index, slice):
            return Table(self.header, self.rows[index], self.cells, self.values)
        return self.rows[index]

    def table(self) -> Table[Row]:
        """Itself."""
        return self

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
