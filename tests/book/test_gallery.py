"""The gallery has every captioned figure of the chapters once, small; the page gets vectors."""

import io
import json
import re

from PIL import Image

from adjoint_book import figures
from adjoint_book.build import gallery
from adjoint_book.figures._registry import VECTOR
from repository import ROOT

PICTURES = list(gallery.pictures(ROOT / "book"))


def test_every_caption_has_its_picture_once():
    captions = [
        label
        for path in sorted((ROOT / "book").glob("[0-9][0-9]-*.ipynb"))
        for cell in json.loads(path.read_text("utf-8"))["cells"]
        for label in re.findall(r'<a id="(fig-[\w-]+)"></a>\n\*\*Figure', "".join(cell["source"]))
    ]
    assert [picture.label for picture in PICTURES] == captions
    assert all(picture.alt for picture in PICTURES)


def test_a_small_picture_is_small():
    small = PICTURES[0].thumbnail()
    width, height = Image.open(io.BytesIO(small)).size
    assert width <= gallery.SIZE[0] and height <= gallery.SIZE[1] and len(small) < 30_000


def test_each_picture_leads_to_its_place():
    page = gallery.page(ROOT / "book")
    for picture in PICTURES:
        assert f'href="{picture.chapter}.html#{picture.label}"' in page


def test_a_drawing_is_a_vector_on_the_page_the_same_each_time(monkeypatch):
    monkeypatch.setenv(VECTOR, "1")
    first, second = (
        figures.get("one-neuron")()._repr_mimebundle_()["image/svg+xml"] for _ in range(2)
    )
    assert first == second and "<dc:date>" not in first
    assert not hasattr(figures.get("sample-images")(), "_repr_mimebundle_")


def test_in_a_notebook_it_is_a_picture_as_before(monkeypatch):
    monkeypatch.delenv(VECTOR, raising=False)
    assert not hasattr(figures.get("one-neuron")(), "_repr_mimebundle_")
