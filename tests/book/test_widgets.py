"""Figures with knobs: live where there is a kernel, a picture everywhere."""

import base64
import hashlib
import io
import json
import shutil
import sys
from types import SimpleNamespace

import matplotlib.pyplot as plt
import numpy as np
import pytest
from PIL import Image

import adjoint_lib as al
from adjoint_book.build import extension
from adjoint_book.widgets import FRAMES, LIVE, VECTORS, turn
from browser import axe_core, chromium, opened
from repository import ROOT

PNG = b"\x89PNG"


@pytest.fixture
def drawn():
    """A function that draws, and a list of what it was asked to draw."""
    asked = []

    def draw(k, layer="conv1"):
        asked.append((k, layer))
        figure, ax = plt.subplots(figsize=(1, 1))
        ax.plot([0, k])
        plt.close(figure)
        return figure

    return draw, asked


def test_the_picture_has_the_starting_values(drawn):
    draw, asked = drawn
    knobs = turn(draw, k=[1 / 8, 1, 2], layer=["conv1", "fc"], start={"k": 2})
    assert knobs.still().startswith(PNG)
    assert asked == [(2, "conv1")]
    assert "k = 2, layer = conv1" in repr(knobs)
    assert "1/8" in repr(turn(draw, k=[1 / 8]))


def test_an_output_holds_the_picture_beside_the_controls(drawn):
    bundle = turn(drawn[0], k=[1, 2])._repr_mimebundle_()
    assert set(bundle) == {"text/plain", "image/png", LIVE}
    assert bundle["image/png"].startswith(PNG)


def test_for_print_there_is_a_vector_of_the_same_state(drawn, monkeypatch):
    monkeypatch.setenv(VECTORS, "1")
    draw, asked = drawn
    bundle = turn(draw, k=[1, 2], start={"k": 2})._repr_mimebundle_()
    assert "<svg" in bundle["image/svg+xml"] and bundle["image/png"].startswith(PNG)
    assert set(asked) == {(2, "conv1")}


def test_turning_a_knob_draws_anew(drawn):
    draw, asked = drawn
    *controls, picture = turn(draw, k=[1, 2], layer=["conv1", "fc"]).live().children
    before = picture.value
    controls[0].value = 2
    assert asked[-1] == (2, "conv1") and picture.value != before
    controls[1].value = "fc"
    assert asked[-1] == (2, "fc")


def test_without_ipywidgets_the_picture_remains(drawn, monkeypatch):
    monkeypatch.setitem(sys.modules, "ipywidgets", None)
    knobs = turn(drawn[0], k=[1])
    assert set(knobs._repr_mimebundle_()) == {"text/plain", "image/png"}
    with pytest.raises(ImportError, match=r"ipywidgets.*pip install 'adjoint-lib\[lab\]'"):
        knobs.live()


def test_while_the_book_is_built_few_states_are_written_as_frames(drawn, tmp_path, monkeypatch):
    draw, asked = drawn
    monkeypatch.setenv(FRAMES, str(tmp_path))
    knobs = turn(draw, k=[1 / 8, 2], layer=["a", "b", "c"], start={"k": 2, "layer": "b"})
    still = knobs._repr_mimebundle_()["image/png"]
    found = json.loads((tmp_path / f"{hashlib.sha256(still).hexdigest()}.json").read_text())
    assert found["knobs"] == [
        {"name": "k", "values": ["1/8", "2"], "start": 1},
        {"name": "layer", "values": ["a", "b", "c"], "start": 1},
    ]
    assert [(k, layer) for k in (1 / 8, 2) for layer in "abc"] == asked[1:7]
    pictures = [Image.open(io.BytesIO(base64.b64decode(frame))) for frame in found["frames"]]
    assert [picture.format for picture in pictures] == ["WEBP"] * 6
    start = np.asarray(Image.open(io.BytesIO(still)).convert("RGB"))
    same = [np.array_equal(np.asarray(p.convert("RGB")), start) for p in pictures]
    assert same == [False] * 3 + [True] * 3  # what is drawn depends on k alone


def test_many_states_have_no_frames(drawn, tmp_path, monkeypatch):
    monkeypatch.setenv(FRAMES, str(tmp_path))
    turn(drawn[0], k=list(range(1, 52)))._repr_mimebundle_()
    assert not list(tmp_path.iterdir())


def test_a_start_that_is_no_choice_is_refused(drawn):
    with pytest.raises(al.InputError, match="starts at 3, not one of"):
        turn(drawn[0], k=[1, 2], start={"k": 3})
    with pytest.raises(al.InputError, match="at least one value"):
        turn(drawn[0], k=[])


def test_a_build_that_failed_before_its_pages_writes_no_frames(tmp_path):
    """Its own error is what is to be read then, not that of a folder that was never made."""
    (tmp_path / "frames").mkdir()
    (tmp_path / "frames" / "abc.json").write_text("{}")
    app = SimpleNamespace(outdir=str(tmp_path / "html"))
    extension.write_frames(app, RuntimeError("a cell of chapter 14"))
    assert not (tmp_path / "html").exists()


def test_on_a_page_the_knobs_are_turned_by_keyboard(drawn, tmp_path):
    """The still picture gives way to the frame of the state that the controls say."""
    turn(drawn[0], k=[1, 2, 3], layer=["a", "b"]).write_frames(tmp_path, b"still")
    (held,) = tmp_path.glob("*.json")
    frames = json.loads(held.read_text())["frames"]
    script = f'window.adjoint_frames = {{"{held.stem}": {held.read_text()}}};'
    held.with_suffix(".js").write_text(script)
    shutil.copy(ROOT / "book" / "_static" / "frames.js", tmp_path)
    (tmp_path / "page.html").write_text(
        '<!doctype html><html lang="en"><title>A page</title><main><figure><img alt="A line." '
        f'src="data:," data-frames="{held.stem}.js"></figure></main>'
        '<script src="frames.js"></script>'
    )
    picture = "document.querySelector('img')"
    with chromium() as browser, opened(browser, tmp_path / "page.html") as page:
        page.get_by_role("slider", name="k").press("ArrowRight")
        page.get_by_role("combobox", name="layer").select_option("b")
        assert page.evaluate(f"{picture}.alt") == "The figure at k = 2, layer = b."
        assert page.evaluate(f"{picture}.src").split(",")[1] == frames[3]
        page.get_by_role("slider", name="k").press("Home")
        page.get_by_role("combobox", name="layer").select_option("a")
        assert page.evaluate(f"{picture}.alt") == "A line."
        page.evaluate(axe_core())
        found = page.evaluate("axe.run().then(found => found.violations)")
        assert [v["id"] for v in found if v["impact"] in ("serious", "critical")] == []
