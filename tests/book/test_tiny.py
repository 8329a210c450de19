"""The tiny network is the same wherever a chapter returns to it."""

import json

import numpy as np

from adjoint_book import tiny
from repository import ROOT


def test_the_chapter_that_introduces_it_writes_the_same_numbers():
    cells = json.loads((ROOT / "book" / "03-equivalent-topology.ipynb").read_text())["cells"]
    (cell,) = (c for c in cells if "".join(c["source"]).startswith("W0 = "))
    written: dict = {"np": np}
    exec("".join(cell["source"]), written)
    for name in ("W0", "W1", "b0", "b1", "w", "x"):
        assert np.array_equal(written[name], getattr(tiny, name)), name


def test_the_chapters_that_return_to_it_do_not_write_them_again():
    for path in sorted((ROOT / "book").glob("[01][56]-*.ipynb")):
        code = "".join(
            "".join(cell["source"])
            for cell in json.loads(path.read_text())["cells"]
            if cell["cell_type"] == "code"
        )
        assert "[-2, -2]" not in code, path.stem
