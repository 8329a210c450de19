"""The build is strict, its pages need no other host, and its indexes have no empty row.

A book of two small pages and the library's reference is built with the real settings; the whole one
is checked by the same tool at the end of `make book`.
"""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from adjoint_book.build import check_site, indexes
from repository import ROOT, text


def small_book(folder: Path, code: str = "1 + 1", prose: str = "Text.", **page: str) -> Path:
    """The settings of this book, with a first page and one notebook."""
    shutil.copytree(ROOT / "book" / "_static", folder / "book" / "_static")
    shutil.copy(ROOT / "book" / "references.bib", folder / "book")
    shutil.copy(ROOT / "_config.yml", folder)
    (folder / "_toc.yml").write_text(
        "format: jb-book\nroot: book/intro\nchapters:\n  - file: book/page\n"
    )
    (folder / "book" / "intro.md").write_text("# First\n\nMathematics: $x^2$. [](./page.ipynb)\n")
    cells = [
        {"cell_type": "markdown", "id": "a", "metadata": {}, "source": f"# Page\n\n{prose}"},
        {
            "cell_type": "code",
            "execution_count": None,
            "id": "b",
            "metadata": {},
            "outputs": [],
            "source": code,
        },
    ]
    kernel = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
    (folder / "book" / "page.ipynb").write_text(
        json.dumps({"cells": cells, "metadata": kernel, "nbformat": 4, "nbformat_minor": 5})
    )
    return folder


def build(folder: Path) -> subprocess.CompletedProcess:
    """What `make book` does, in this folder."""
    recipe = re.search(r"^book: .*\n((?:\t.*\n)+)", text("Makefile"), re.M)[1]
    commands = [line.strip() for line in recipe.splitlines() if not line.startswith("\t@")]
    bin_folder = str(Path(sys.executable).parent)
    script = " && ".join(commands).replace("$(BIN)", bin_folder)
    path = os.pathsep.join([bin_folder, os.environ["PATH"]])
    return subprocess.run(
        script,
        shell=True,
        cwd=folder,
        capture_output=True,
        text=True,
        env={**os.environ, "PATH": path},
    )


PLAIN = r"""
> **Note.** What *plain* Markdown says, after [He et al. 2016](bibliography.md#he2016deep).

<a id="eq-one"></a>

$$
x = 1 \tag{1.1}
$$

See [(1.1)](#eq-one), and

> a quotation.
"""

WIDGET = """
from IPython.display import display
import ipywidgets
from IPython.display import Markdown
display(Markdown("Computed, [there](bibliography.md#he2016deep)."))
slider = ipywidgets.IntSlider()
class Both:
    def _repr_mimebundle_(self, **ignored):
        return {**slider._repr_mimebundle_(), "text/html": "<p>the still picture</p>"}
display(Both())
import matplotlib.pyplot as plt
from adjoint_book import widgets
def draw(k):
    figure, ax = plt.subplots(figsize=(1, 1))
    ax.plot([0, k])
    plt.close(figure)
    return figure
display(widgets.turn(draw, k=[1, 2, 3]))
"""


@pytest.fixture(scope="module")
def built(tmp_path_factory) -> Path:
    folder = small_book(tmp_path_factory.mktemp("small"), WIDGET, PLAIN)
    with (folder / "_toc.yml").open("a") as file:
        api = sorted(path.stem for path in (ROOT / "book").glob("api-*.md"))
        for name in (*api, "bibliography"):  # the first have every docstring of the library
            shutil.copy(ROOT / "book" / f"{name}.md", folder / "book")
            file.write(f"  - file: book/{name}\n")
    run = build(folder)
    assert run.returncode == 0, run.stdout[-3000:] + run.stderr[-3000:]
    return folder / "_build" / "html"


def test_the_pages_need_no_other_host_and_no_link_is_broken(built):
    assert list(check_site.problems(built)) == []


def test_mathematics_is_set_by_a_script_of_the_books_own(built):
    page = check_site.Page((built / "book" / "intro.html").read_text("utf-8"))
    scripts = [url for url in page.loads if "mathjax" in url.lower()]
    assert scripts
    for url in scripts:
        assert check_site._resolve(built / "book" / "intro.html", url)[0].exists()


def test_a_page_shows_a_widgets_still_picture_and_not_the_widget(built):
    page = (built / "book" / "page.html").read_text("utf-8")
    assert "<p>the still picture</p>" in page
    assert "jupyter.widget-view" not in page


def test_a_quotation_with_a_bold_lead_is_an_admonition_and_another_is_not(built):
    page = (built / "book" / "page.html").read_text("utf-8")
    title = r'<p class="admonition-title">Note</p>'
    assert re.search(rf'<div class="(admonition note|note admonition)">\s*{title}', page)
    assert re.search(r"<blockquote>\s*<div><p>a quotation\.</p>", page)


def test_an_equation_keeps_the_number_that_its_source_gives_it(built):
    page = (built / "book" / "page.html").read_text("utf-8")
    assert r"x = 1 \tag{1.1}" in page
    assert re.search(r'href="#eq-one"[^>]*>(<span[^>]*>)?\(1\.1\)<', page)


def test_a_page_has_the_frames_of_a_figure_with_knobs(built):
    page = (built / "book" / "page.html").read_text("utf-8")
    (frames,) = re.findall(r'<img[^>]* data-frames="([^"]+)"', page)
    assert 'src="../_static/frames.js' in page
    script = (built / "book" / frames).read_text("utf-8")
    found = json.loads(script.partition(" = ")[2].rstrip(";\n"))
    assert found["knobs"] == [{"name": "k", "values": ["1", "2", "3"], "start": 0}]
    assert len(set(found["frames"])) == 3


def test_pages_have_buttons_for_colab_and_binder(built):
    page = (built / "book" / "page.html").read_text("utf-8")
    settings = yaml.safe_load(text("_config.yml"))
    address = settings["repository"]["url"].removeprefix("https://")
    assert "colab.research.google.com/github" in page and "mybinder.org" in page
    if address.startswith("github.com/"):
        assert f"/{address.removeprefix('github.com/')}/blob/main/book/page.ipynb" in page


@pytest.mark.parametrize(
    ("mistake", "said"),
    [
        ({"code": "raise ValueError('this cell fails')"}, "this cell fails"),
        ({"prose": "See [Figure 1.1](#fig-nowhere)."}, "fig-nowhere"),
        ({"prose": "See [a page](./nowhere.ipynb)."}, "nowhere"),
        ({"prose": "See [Nobody](bibliography.md#nobody1900nothing)."}, "nobody1900nothing"),
    ],
    ids=["a failing cell", "a missing figure", "a missing page", "a missing paper"],
)
def test_a_mistake_stops_the_build(tmp_path, mistake, said):
    run = build(small_book(tmp_path, **mistake))
    assert run.returncode != 0
    assert said in run.stdout + run.stderr


def test_a_second_build_sees_that_the_library_has_changed(tmp_path):
    small_book(tmp_path, "import helper\nprint(helper.WORD)")
    for word in ("first", "second"):
        (tmp_path / "book" / "helper.py").write_text(f"WORD = 'the {word} version'")
        run = build(tmp_path)
        assert run.returncode == 0, run.stdout[-3000:] + run.stderr[-3000:]
        page = (tmp_path / "_build" / "html" / "book" / "page.html").read_text("utf-8")
        assert f"the {word} version" in page


# ---- the tool that checks


@pytest.mark.parametrize(
    ("html", "said"),
    [
        ('<script src="https://cdn.example/x.js"></script>', "cdn.example"),
        ('<script src="//cdn.example/x.js"></script>', "cdn.example"),
        ('<link rel="stylesheet" href="https://fonts.example/f.css">', "fonts.example"),
        ('<img src="http://example.org/a.png">', "example.org"),
        ('<img srcset="a.png 1x, https://example.org/a.png 2x" src="a.png">', "example.org"),
        ('<iframe src="https://video.example/"></iframe>', "video.example"),
        ("<style>@import 'https://fonts.example/f.css';</style>", "fonts.example"),
        ('<p style="background: url(https://example.org/b.png)">', "example.org"),
        ('<script>const U = "https://unpkg.example/t/index.js"</script>', "unpkg.example"),
        ('<img src="missing.png">', "loads missing.png, which is not there"),
        ('<a href="missing.html">', "link to missing.html, which is not there"),
        ("<p>the end.``````</p>", "shows ``````"),
        ("<p>See {numref}`fig-a`.</p>", "shows {numref}`"),
        ('<a href="#nowhere">', "a place which is not in that page"),
        ('<a href="other.html#nowhere">', "a place which is not in that page"),
    ],
)
def test_the_tool_finds(tmp_path, html, said):
    (tmp_path / "page.html").write_text(html)
    (tmp_path / "other.html").write_text('<p id="here">')
    (tmp_path / "a.png").write_bytes(b"")
    found = list(check_site.problems(tmp_path))
    assert len(found) == 1 and said in found[0]


def test_the_tool_finds_what_a_style_sheet_loads(tmp_path):
    (tmp_path / "page.html").write_text("")
    (tmp_path / "a.css").write_text("@font-face { src: url(https://fonts.example/a.woff2) }")
    (found,) = check_site.problems(tmp_path)
    assert "fonts.example" in found


def test_the_tool_is_content_with_what_is_well(tmp_path):
    (tmp_path / "other.html").write_text('<p id="here">')
    (tmp_path / "page.html").write_text(
        '<a href="https://example.org/">elsewhere</a> <a href="other.html#here">x</a>'
        "<p>A fence is <code>```</code></p><pre>$$</pre>"
        '<a href="mailto:a@example.org">y</a> <img src="data:image/png;base64,AAAA">'
    )
    assert list(check_site.problems(tmp_path)) == []


def test_an_empty_site_is_no_site(tmp_path):
    assert check_site.main([str(tmp_path)]) == 1


# ---- the indexes


def test_the_bibliography_is_the_one_in_bibtex():
    written = text("book/bibliography.md")
    assert written == indexes.bibliography(ROOT / "book"), (
        "run `python -m adjoint_book.build.indexes`"
    )
    assert "{" not in written and "\\" not in written


@pytest.mark.parametrize(
    "name", ["exercises", "figures", "tables", "equations", "claims", "promises"]
)
def test_an_index_has_no_empty_cell(name):
    rows = getattr(indexes, name)(ROOT / "book").splitlines()
    assert len(rows) > 10
    for row in rows[2:]:
        cells = [cell.strip(" `") for cell in row.strip("|").split(" | ")]
        assert len(cells) == len(rows[0].strip("|").split("|")) and all(cells), row
