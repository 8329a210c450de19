"""The chapters build `minimal.py`: every piece of it, in plain sight, the same as in the file."""

import ast
import json
import linecache

import pytest

import adjoint_lib as al
from adjoint_book import minimal, pieces
from repository import ROOT

FILE = pieces.pieces(pieces.SOURCE)


def cells(chapter: str) -> list[str]:
    """The code of a chapter, cell by cell, without lines for the notebook itself."""
    found = json.loads((ROOT / "book" / f"{chapter}.ipynb").read_text("utf-8"))["cells"]
    sources = ("".join(cell["source"]) for cell in found if cell["cell_type"] == "code")
    return [source for source in sources if "%pip" not in source]


def test_all_that_the_file_defines_is_built_in_some_chapter():
    assert sorted(pieces.ORDER) == sorted(FILE)


@pytest.mark.parametrize("chapter", pieces.CHAPTERS)
def test_a_chapter_shows_its_pieces_as_they_are_in_the_file(chapter):
    shown = {}
    for cell in cells(chapter):
        for name, definition in pieces.pieces(cell).items():
            if any("pieces.piece" in ast.unparse(d) for d in definition.decorator_list):
                (decorator, *_) = (ast.unparse(d) for d in definition.decorator_list)
                owner = decorator.removeprefix("book.pieces.piece(").removesuffix(")")
                shown[f"{owner}.{name}" if owner else name] = definition
    assert list(shown) == pieces.CHAPTERS[chapter]
    for name, definition in shown.items():
        assert pieces.bare(definition) == pieces.bare(FILE[name])


def test_the_modes_are_those_of_the_file():
    (line,) = (
        part
        for cell in cells("06-five-modes")
        for part in cell.splitlines()
        if part.startswith("SUMMED")
    )
    assert ast.literal_eval(line.partition(" = ")[2]) == minimal.SUMMED


def run(source: str, names: dict) -> None:
    """Run a cell as a notebook does: its lines can be looked up."""
    linecache.cache["<cell>"] = (len(source), None, source.splitlines(keepends=True), "<cell>")
    exec(compile(source, "<cell>", "exec"), names)


def test_a_piece_with_other_code_is_refused(capsys):
    class Net:
        slope = 0.1

    names = {"piece": pieces.piece, "Net": Net, "np": pieces.np}
    body = "    return np.where(z > 0, 1.0, self.slope)\n"
    run(f'@piece(Net)\ndef slopes(self, z):\n    """In words."""\n{body}', names)
    assert capsys.readouterr().out.startswith("Net.slopes: as in minimal.py, lines ")
    assert Net().slopes(-1.0) == 0.1
    with pytest.raises(al.InputError, match=r"Net\.slopes: expected the code of minimal\.py"):
        run(f"@piece(Net)\ndef slopes(self, z):\n{body.replace('z > 0', 'z >= 0')}", names)
    with pytest.raises(al.InputError, match=r"expected one of Net, .* got slope"):
        run(f"@piece()\ndef slope(self, z):\n{body}", names)


def test_the_example_is_that_of_the_file():
    net, x = pieces.example()
    v = pieces.np.concatenate([x.ravel(), net.x_b])
    c = minimal.units(net.read(v)[1], net.w[1], "RM2")[2, 3, 0]
    names = {"__name__": "__main__"}
    exec(compile(pieces.SOURCE, "minimal.py", "exec"), names)
    assert names["v"].tolist() == v.tolist()
    assert minimal.units(names["net"].read(v)[1], net.w[1], "RM2")[2, 3, 0] == c
