"""Slides: every deck is whole, shows only what its chapter has, and works without a network."""

import json
import re

import pytest

import adjoint_lib as al
from adjoint_book.build import browser as printer
from adjoint_book.course import outline, slides
from adjoint_book.course.chapters import chapters
from browser import chromium, opened
from repository import ROOT

BOOK = ROOT / "book"
LECTURED = [1, 2, 3, 4, 5, 6, 7, 12, 15, 16, 17]
DECKS = {int(path.stem): path for path in sorted((BOOK / "slides").glob("*.md"))}


def source(number):
    (chapter,) = (found for found in chapters(BOOK) if found.number == number)
    return outline.Source(BOOK / f"{chapter.file}.ipynb")


def test_each_chapter_that_is_lectured_on_has_a_deck():
    assert sorted(DECKS) == LECTURED


@pytest.mark.parametrize("number", LECTURED)
def test_all_that_a_deck_shows_is_in_its_chapter(number):
    deck, chapter = outline.read(DECKS[number]), source(number)
    for slide in deck.slides:
        shown = [outline.resolve(block, chapter) for block in slide.blocks]
        assert all(shown) and chapter.words(slide.notes), slide.title


@pytest.mark.parametrize("number", LECTURED)
def test_a_deck_has_the_length_of_a_lecture_and_asks_before_it_tells(number):
    deck = outline.read(DECKS[number])
    whole = deck.minutes + slides.MINUTES_AROUND
    assert 12 <= len(deck.slides) + 2 <= 20 and 30 <= whole <= 50
    assert whole == sum(slide.minutes for slide in deck.slides) + 2
    kinds = [{block.kind for block in slide.blocks} for slide in deck.slides]
    assert sum("Answer" in kind for kind in kinds) >= 2 and "Answer" in kinds[-1]
    assert sum(bool(kind & {"figure", "picture"}) for kind in kinds) >= 2
    assert len({slide.title for slide in deck.slides}) == len(deck.slides)


def test_a_number_in_words_is_the_chapters():
    chapter = source(1)
    assert chapter.words("It costs {01-006}.") == "It costs 11.0."
    assert chapter.words(r"first {01-008:\[(.+?)\.}") == "first 3"
    assert chapter.words(r"$\mathit{scale}$ stays") == r"$\mathit{scale}$ stays"


@pytest.mark.parametrize(
    ("asked", "missing"),
    [
        (outline.Block("words", "costs {01-999}"), "a cell '01-999'"),
        (outline.Block("words", "costs {01-006:nothing (x)}"), "a group that matches"),
        (outline.Block("words", "all of {01-040}"), "one line"),
        (outline.Block("output", "01-002"), "an output of cell '01-002'"),
        (outline.Block("equation", "eq-nowhere"), "the equation 'eq-nowhere'"),
        (outline.Block("quote", "Theorem 9.9"), "the quotation 'Theorem 9.9'"),
        (outline.Block("figure", "no-such-figure"), "the figure 'no-such-figure'"),
    ],
)
def test_what_the_chapter_does_not_have_is_an_error(asked, missing):
    with pytest.raises(al.DataError, match=re.escape(missing)):
        outline.resolve(asked, source(1))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("## One · 3\n\nWords.\n\nNote: Say.\n", "a line 'minutes: 45'"),
        ("minutes: 4\n\n## One · 3\n\nWords.\n\nNote: Say.\n", "expected 4 minutes in all, .* 3"),
        ("minutes: 3\n\n## One · 3\n\nWords.\n", "a paragraph 'Note: ...' on 'One'"),
        (
            "minutes: 3\n\n## One · 3\n\nWords.\n\nNote: Say.\n\n## Two\n",
            "in each heading after 'One'",
        ),
    ],
)
def test_an_outline_that_lacks_something_says_what(text, expected, tmp_path):
    (tmp_path / "01.md").write_text(text)
    with pytest.raises(al.InputError, match=expected):
        outline.read(tmp_path / "01.md")


def test_what_a_cell_prints_is_whole_wherever_its_stream_was_cut(tmp_path):
    stream = [{"output_type": "stream", "text": text} for text in ("one", "\ntwo\n")]
    shown = [{"output_type": "execute_result", "data": {"text/plain": ["3"]}}] * 2
    cell = {"id": "a", "cell_type": "code", "source": [], "outputs": stream + shown}
    (tmp_path / "01-x.ipynb").write_text(json.dumps({"cells": [cell]}))
    assert outline.Source(tmp_path / "01-x.ipynb").output("a") == "one\ntwo\n3\n3"


def test_lines_of_a_text_are_counted_from_one():
    assert outline.lines("a\nb\nc", "2-3") == "b\nc" and outline.lines("a\nb", "") == "a\nb"
    with pytest.raises(al.InputError, match="expected lines 1 to 2, got 2-3"):
        outline.lines("a\nb", "2-3")


@pytest.fixture(scope="module")
def deck(tmp_path_factory):
    """The slides of chapter 2, without a PDF."""
    folder = tmp_path_factory.mktemp("slides")
    (page,) = slides.write(BOOK, folder, [2], printed=False)
    return page


def test_a_deck_is_whole_and_loads_nothing_from_elsewhere(deck):
    page, outlined = deck.read_text("utf-8"), outline.read(DECKS[2])
    assert page.count("<section") == page.count('<aside class="notes">') == len(outlined.slides) + 2
    seconds = sum(map(int, re.findall(r'data-timing="(\d+)"', page)))
    assert seconds == 60 * (outlined.minutes + 2)
    loaded = re.findall(r'(?:src|href)="([^"#]+)"', page)
    assert {"reveal/reveal.js", "reveal/notes.js", "mathjax.js", "deck.css"} <= set(loaded)
    for name in loaded:
        assert name == "data:," or (deck.parent / name).is_file(), name
    assert (deck.parent / "reveal" / "LICENSE").is_file()
    for figure in slides.figures_of(outlined):
        drawn = (deck.parent / "figures" / f"{figure}.svg").read_text("utf-8")
        assert "<path" in drawn and "<image" not in drawn


def test_a_deck_says_what_the_chapter_computes_and_students_get_no_notes(deck):
    page = deck.read_text("utf-8")
    assert "gives 1.0." in page and "(1.0, 1.0, 1.0)" in page
    assert r"\langle [x;\, b] \mid [w;\, 1] \rangle" in page and r"\tag" not in page
    handed_out = slides.NOTES.sub("", page)
    assert "notes" not in handed_out.split("</body>")[0].split("<body>")[1].split("<script")[0]
    assert handed_out.count("<section") == page.count("<section")


def test_part_of_a_figure_is_cut_from_its_drawing(tmp_path):
    path, whole = slides._vector("one-neuron", tmp_path / "one-neuron.svg", "")
    cut, half = slides._vector("one-neuron", tmp_path / "one-neuron.svg", "25-75")
    assert half == pytest.approx(2 * whole, rel=1e-3) and cut != path
    (top, height) = re.search(r'viewBox="0 ([\d.]+) [\d.]+ ([\d.]+)"', cut.read_text()).groups()
    assert float(height) == pytest.approx(2 * float(top), rel=1e-3)


def test_without_its_package_the_part_says_how_to_install_it(tmp_path, monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(al.errors.AdjointError, match=r"sphinx_revealjs.*adjoint-lib\[course\]"):
        slides.write(BOOK, tmp_path, [2], printed=False)


def test_a_missing_browser_is_one_sentence(monkeypatch):
    said = []
    monkeypatch.setattr("shutil.which", lambda name: None)
    assert printer.found(said.append) is None
    assert len(said) == 1 and said[0].count(".") == 1 and "Chromium" in said[0]


OVERFLOW = """() => [...document.querySelectorAll("section.present :is(pre, p, ul, table, img)")]
  .filter(e => !e.closest("aside"))
  .filter(e => e.getBoundingClientRect().bottom > innerHeight || e.scrollWidth > e.clientWidth + 2)
  .map(e => e.tagName + " " + e.textContent.slice(0, 40))"""


def test_no_slide_runs_over_and_each_is_a_page_of_the_pdf(deck, tmp_path):
    count = len(outline.read(DECKS[2]).slides) + 2
    size = {"width": 1280, "height": 720}
    with chromium() as found, opened(found, deck, "?light", viewport=size) as page:
        page.wait_for_function("document.querySelectorAll('mjx-container').length > 10")
        assert page.evaluate("Reveal.getTotalSlides()") == count
        for number in range(count):
            page.evaluate(f"Reveal.slide({number}, 0, 9)")
            assert page.evaluate(OVERFLOW) == []
        page.goto(f"{deck.as_uri()}?print")
        page.wait_for_function("document.querySelectorAll('mjx-container').length > 10")
        pdf = page.pdf(prefer_css_page_size=True)
    assert len(re.findall(rb"/Type\s*/Page\b", pdf)) == count
