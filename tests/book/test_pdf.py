"""The book as a PDF: pages joined, solutions at the end, links and page numbers that work."""

import re

import nbformat
import pytest

from adjoint_book.build import browser as printer
from adjoint_book.build import pdf
from browser import missing
from repository import ROOT, text

PAGE = """<html><body><form class="bd-search"></form><article class="bd-article"><section id="top">
<h1>{title}<a class="headerlink" href="#top">#</a></h1>
{content}</section></article></body></html>"""

ONE = """<div class="cell tag_setup">set-up</div>
<p>See <a href="02-two.html#fig-x">Figure 2.1</a>, <a href="#here">here</a>, <a href="api.html">a
page on the screen</a> and <a href="https://example.org">elsewhere</a>.</p>
<h2 id="here">Exercises</h2><span id="exercise-1-1"></span>
<section><span id="also-1-1"></span>
<h3><span class="section-number">1.2.1. </span>Exercise 1.1: count</h3>
<p><em>Easy, 5 minutes.</em></p>
<p>How many?</p>
<div class="cell">answer = None<pre>not answered yet: put it here</pre></div>
<div class="cell tag_hide-cell"><details><summary>Solution</summary>
<pre>answer = 42</pre></details></div>
<h3>Exercise 1.2: choose \\(x\\)</h3><p>a. One.</p><details><summary>If you choose a</summary>Not
so.</details><p>b. Two.</p><details><summary>If you choose b</summary>Just so.</details>
</section><p>No program can mark these; below each stands what an answer should have.</p>
<h3>Question 1.1: explain</h3>
<details><summary>What it should have</summary><p>Reasons.</p></details>
<section class="quiz"><h2>Quiz</h2><p>Choose.</p>
<form class="quiz-question"><fieldset><legend>1. Two?</legend>
<label><input type="radio">Yes</label></fieldset><button>Check</button>
<details><summary>All</summary><ol><li>Two it is.</li></ol></details></form></section>
<table><tr><td><code>train --model a&lt;b --full-size</code></td></tr></table>
<p id="tab-one"><strong>Table 1.1.</strong> A number.</p>
<p>Click on a unit. (In a notebook this is a link to the book’s page.)</p>
<div class="sd-card"><p>A page to touch.</p>
<a class="sd-stretched-link" href="explorer.html">Touch it</a></div>
<h2><span class="section-number">1.3. </span>Further reading</h2>
<details><summary>More</summary><p>Shown where it is.</p></details>"""

TWO = """<figure id="fig-x"><img src="../_images/x.svg">
<figcaption>Figure 2.1.</figcaption></figure>
<p>Back to <a href="01-one.html">chapter 1</a>, <span class="math">\\(x^2\\)</span>.</p>"""

SVG = '<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"><path d="M0 0L9 9"/></svg>'


@pytest.fixture
def site(tmp_path, monkeypatch):
    """A book of a title page and two chapters."""
    for name, title, content in (
        ("intro", "The book", "<p>Words.</p>"),
        ("01-one", "1. One", ONE),
        ("02-two", "2. Two", TWO),
    ):
        path = tmp_path / "book" / f"{name}.html"
        path.parent.mkdir(exist_ok=True)
        path.write_text(PAGE.format(title=title, content=content))
    (tmp_path / "_images").mkdir()
    (tmp_path / "_images" / "x.svg").write_text(SVG)
    monkeypatch.setattr(pdf, "contents", lambda: ["book/intro", "book/01-one", "book/02-two"])
    return tmp_path


@pytest.fixture
def joined(site, monkeypatch):
    """The joined page, as it is printed first and last."""
    seen = []

    def keep(program, address, path, wait):
        (page,) = site.glob("*.html")
        seen.append(page.read_text("utf-8"))

    monkeypatch.setattr(printer, "print_to_pdf", keep)
    monkeypatch.setattr(
        pdf, "places", lambda path: {"02-two--fig-x": 7, "01-one": 3, "01-one--solution-1": 9}
    )
    pdf.write(site, site / "out.pdf", "no browser")
    return seen


def test_solutions_and_answers_go_to_the_end(joined):
    body = joined[-1].partition("<body>")[2]
    chapters, _, end = body.partition('id="solutions"')
    assert "answer = 42" not in chapters and "Reasons." not in chapters
    assert "Shown where it is." in chapters and "<details" not in body and "<summary" not in body
    assert end.index("Exercise 1.1: count") < end.index("answer = 42") < end.index("Reasons.")
    assert '<a class="elsewhere" href="#01-one--solution-1">Solution</a>' in chapters
    assert 'id="01-one--solution-1"' in end
    assert end.count('Exercise 1.2: choose <span class="math">\\(x\\)</span>') == 1
    assert (
        chapters.index("b. Two.") < chapters.rindex(">Solution</a>")
        and chapters.count(">Solution</a>") == 2
    )
    assert "at the end of the book stands what an answer should have" in chapters
    assert end.index("If you choose a") < end.index("Not\nso.") < end.index("If you choose b")
    assert "Two?" in chapters and "Two it is." not in chapters
    assert end.index("Quiz, question 1") < end.index("Two it is.")
    assert chapters.count("Answers to this quiz") == 1 and "<input" not in body


def test_a_heading_is_kept_with_what_follows_it(joined):
    from bs4 import BeautifulSoup

    heading = BeautifulSoup(joined[-1], "html.parser").find(id="01-one--here")
    assert heading.parent["class"] == ["kept"]
    assert heading.find_next_sibling().find("h3").get_text() == "Exercise 1.1: count"
    assert heading.find(id="01-one--exercise-1-1") is not None
    assert heading.find(id="01-one--also-1-1") is not None


def test_an_exercise_has_one_number_and_is_kept_with_what_it_asks(joined):
    from bs4 import BeautifulSoup

    body = BeautifulSoup(joined[-1], "html.parser")
    kept = body.find("h3").parent.get_text()
    assert kept.strip().startswith("Exercise 1.1: count") and "How many?" in kept
    assert "1.3. Further reading" in body.get_text()  # which has no other


def test_a_caption_is_on_the_page_of_its_table(joined):
    from bs4 import BeautifulSoup

    caption = BeautifulSoup(joined[-1], "html.parser").find(id="01-one--tab-one")
    assert caption["class"] == ["caption"]
    assert ".caption, .solved { break-before: avoid; }" in joined[-1]


def test_no_line_ends_within_the_name_of_an_option(joined):
    options = ('<span class="option">--model</span>', '<span class="option">--full-size</span>')
    assert "<code>train {} a&lt;b {}</code>".format(*options) in joined[-1]
    assert ".option { white-space: nowrap; }" in joined[-1]


def test_what_is_for_the_screen_only_is_left_out(joined):
    body = joined[-1].partition("<body>")[2]
    assert "Touch it" not in body and "A page to touch." in body
    assert "Click on a unit. (This works on the book’s page, not on paper.)" in body
    for gone in ("not answered yet", "set-up", "headerlink"):
        assert gone not in body
    assert "a\npage on the screen" in body and "api.html" not in body


def test_every_link_within_the_book_leads_to_a_place_in_it(joined):
    body = joined[-1].partition("<body>")[2]
    places = set(re.findall(r'id="([^"]+)"', body))
    links = set(re.findall(r'href="#([^"]+)"', body))
    assert {"02-two--fig-x", "01-one--here", "01-one"} <= links <= places
    assert 'href="https://example.org"' in body and 'src="_images/x.svg"' in body


def test_references_to_another_chapter_say_their_page_from_the_second_printing_on(joined):
    first, last = joined
    assert "(p. 000)" in first and 'Figure 2.1</a><span class="at"> (p. 7)' in last
    assert '<a href="#01-one">1. One</a><span>3</span>' in last
    assert "here</a><span" not in last  # in the same chapter


def test_each_chapter_has_its_running_head(joined):
    assert "@page p01one {" in joined[-1] and '@top-right { content: "1. One"; }' in joined[-1]
    assert "@top-left { content: 'The Adjoint Book'; }" in joined[-1]
    assert joined[-1].count('class="chapter p') == 3  # with the solutions


def test_the_contents_are_the_books_without_what_lives_on_a_screen():
    names = list(pdf.contents())
    assert names[0] == "book/intro" and "book/05-proof" in names
    assert not {"book/explorer", "book/api"} & set(names)
    assert all(f"file: {name}" in text("_toc.yml") for name in names[1:])


def test_a_printed_book_has_the_pages_that_it_promises(site):
    said = []
    program = printer.found(said.append)
    if program is None:
        missing(said[0])
    path = site / "out.pdf"
    pdf.write(site, path, program)
    from pypdf import PdfReader

    reader, places = PdfReader(path), pdf.places(path)
    texts = [page.extract_text() for page in reader.pages]
    for name, title in (("01-one", "1. One"), ("02-two", "2. Two"), ("solutions", "Solutions")):
        assert (
            texts[places[name] - 1].count(title) >= 2
        )  # the heading, and above it the running head
    contents = next(page for page in texts if "Contents" in page)
    assert re.search(rf"2\. Two\s*{places['02-two']}\b", contents)
    assert f"Figure 2.1 (p. {places['02-two--fig-x']})" in " ".join(
        texts[places["01-one"] - 1].split()
    )
    assert not (site / "the-adjoint-book.html").exists()


def test_the_book_is_built_once_more_with_its_figures_as_vectors(tmp_path, monkeypatch):
    drawn = nbformat.v4.new_code_cell("from matplotlib import pyplot\npyplot.plot([1, 2]);")
    title = nbformat.v4.new_markdown_cell("# A book")
    kernel = {"kernelspec": {"name": "python3", "display_name": "Python 3"}}
    (tmp_path / "book").mkdir()
    page = nbformat.v4.new_notebook(cells=[title, drawn], metadata=kernel)
    nbformat.write(page, tmp_path / "book" / "intro.ipynb")
    (tmp_path / "book" / "_toc.yml").write_text("format: jb-book\nroot: intro\n")
    (tmp_path / "book" / "_config.yml").write_text("execute:\n  execute_notebooks: force\n")
    monkeypatch.setattr(pdf, "ROOT", tmp_path / "book")
    built = pdf.build_site(tmp_path / "built")
    assert (built / "intro.html").is_file()
    (picture,) = (built / "_images").glob("*")
    assert picture.suffix == ".svg"


def test_without_a_browser_there_is_one_sentence_and_no_build(monkeypatch):
    said = []
    monkeypatch.setattr(printer, "found", lambda say: say("No browser is here."))
    monkeypatch.setattr(pdf, "build_site", lambda folder: pytest.fail("it was built all the same"))
    assert pdf.main([], ROOT / "_build" / "nothing.pdf", said.append) == 1
    assert said == ["No browser is here."]
