"""What every notebook of the book has, and what none may have.

That they run, and print what they printed when they were written, is compared by nbval: see the
target `test` of the Makefile, and book/conftest.py, whose strictness is tested here.
"""

import itertools
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

import adjoint_lib as al
from adjoint_book.build import numbering
from repository import ROOT, text

NOTEBOOKS = sorted((ROOT / "book").glob("*.ipynb"))
PLAIN_PAGES = [
    ROOT / "book" / f"{name}.md"
    for name in ("bibliography", "exercises-index", "reproduction-index")
]
CHAPTERS = [path for path in NOTEBOOKS if re.match(r"(0[1-9]|1\d)-", path.name)]


def cells(path: Path, kind: str | None = None) -> list[dict]:
    found = json.loads(path.read_text("utf-8"))["cells"]
    return [cell for cell in found if kind in (None, cell["cell_type"])]


def source(cell: dict) -> str:
    return "".join(cell["source"])


def prose(path: Path) -> str:
    """The text of a notebook, with what its cells show as Markdown, or of a Markdown file."""
    if path.suffix == ".md":
        return path.read_text("utf-8")
    shown = [
        "".join(output.get("data", {}).get("text/markdown", ""))
        for cell in cells(path, "code")
        for output in cell["outputs"]
    ]
    return "\n\n".join([*(source(cell) for cell in cells(path, "markdown")), *shown])


each_notebook = pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
each_chapter = pytest.mark.parametrize("path", CHAPTERS, ids=lambda path: path.stem)


# ---- what is stored


@each_notebook
def test_it_is_in_the_table_of_contents(path):
    assert f"- file: book/{path.stem}\n" in text("_toc.yml")


@each_notebook
def test_it_runs_on_any_kernel_and_carries_no_state(path):
    metadata = json.loads(path.read_text("utf-8"))["metadata"]
    assert metadata["kernelspec"]["name"] == "python3"
    assert "widgets" not in metadata, "the state of widgets is stored: clear it before saving"
    timed = [n for n, cell in enumerate(cells(path)) if "execution" in cell["metadata"]]
    assert not timed, "the times of a run are stored: clear them before saving"


@each_notebook
def test_its_outputs_are_there_and_clean(path):
    for number, cell in enumerate(cells(path, "code")):
        where = f"code cell {number}: {source(cell)[:60]!r}"
        for output in cell["outputs"]:
            assert output["output_type"] != "error", where
            assert output.get("name") != "stderr", f"{where} has warnings or a progress bar"
            shown = json.dumps([output.get("text"), output.get("data", {}).get("text/plain")])
            assert not re.search(r" at 0x[0-9a-f]{6,}|\d+(\.\d+)?(it|image)/s", shown), where
    shows = [cell for cell in cells(path, "code") if cell["outputs"]]
    assert shows, "no cell has an output: execute the notebook before saving"


# ---- figures


def pictures(path: Path) -> list[dict]:
    """The cells that show a picture."""
    return [
        cell
        for cell in cells(path, "code")
        if any(
            key.startswith("image/") for output in cell["outputs"] for key in output.get("data", {})
        )
    ]


CAPTION = r'<a id="(fig-[a-z0-9-]+)"></a>\n\*\*Figure \d+\.\d+\.\*\* (.{20,}[.?!])\n?'


@each_notebook
def test_every_figure_has_alt_text_and_the_next_cell_is_its_caption(path):
    found = cells(path)
    for cell in pictures(path):
        where = f"the cell {source(cell)[:60]!r}"
        alt = cell["metadata"].get("mystnb", {}).get("image", {}).get("alt", "")
        assert len(alt) > 20, f"{where} has no alt text"
        caption = source(found[found.index(cell) + 1])
        assert re.fullmatch(CAPTION, caption, re.S), f"{where} has no caption in the next cell"


@each_notebook
def test_a_picture_inside_the_text_has_alt_text(path):
    html = [
        "".join(output["data"]["text/html"])
        for cell in cells(path, "code")
        for output in cell["outputs"]
        if "text/html" in output.get("data", {})
    ]
    for found in [prose(path), *html]:
        for image in re.findall(r"<img\b[^>]*>", found):
            assert re.search(r'\balt="[^"]{20,}"', image), image[:80]
        assert not re.search(r"!\[\]\(", found)
        for block in re.findall(r"^[`:]{3,}\{(?:figure|image)\}.*?^[`:]{3,}$", found, re.M | re.S):
            assert ":alt:" in block, block[:80]


def test_every_label_is_given_once():
    names = [name for path in NOTEBOOKS for name in re.findall(r'<a id="([^"]+)"', prose(path))]
    assert len(names) == len(set(names)), sorted({n for n in names if names.count(n) > 1})


# ---- tables

TABLE_CAPTION = r'<a id="(tab-[a-z0-9-]+)"></a>\n\*\*Table \d+\.\d+\.\*\* (.{20,}\.)\n?'
OF_RESULTS = (
    r"\b(paper_tables|paper_runs|book\.(tables|timings|pieces|course)|decisions|attributions)\.\w+\(|"
    r"\bTable\(|\bstored_accounts\("
)


@each_chapter
def test_a_table_of_results_has_its_caption_in_the_next_cell(path):
    """What the library shows of a network, such as net.layers, is no such table."""
    found = cells(path)
    for cell, following in itertools.pairwise(found):
        html = ["".join(o.get("data", {}).get("text/html", "")) for o in cell.get("outputs", [])]
        if any("<table" in text for text in html) and re.search(OF_RESULTS, source(cell)):
            where = f"the table of {source(cell)[-60:]!r} has no caption in the next cell"
            assert re.fullmatch(TABLE_CAPTION, source(following), re.S), where


# ---- cells


@each_notebook
def test_a_cell_that_is_read_is_short(path):
    for cell in cells(path, "code"):
        if "hide-cell" not in cell["metadata"].get("tags", []):
            lines = [line for line in source(cell).splitlines() if line.strip()]
            assert len(lines) <= 17, f"split it, or move a part to adjoint_book: {lines[0]!r}"


@each_notebook
def test_what_is_run_on_request_only_is_not_in_the_way(path):
    """A run over all that is stored is `adjoint_book.recompute`'s."""
    assert not [cell for cell in cells(path, "code") if "os.environ" in source(cell)]


# ---- chapters


@each_chapter
def test_a_chapter_begins_with_its_title_and_an_overview(path):
    first = source(cells(path)[0])
    assert re.match(r"# \S", first)
    assert "Overview" in first
    assert re.search(r"\d+ minutes", first), "how long does it take?"
    objectives = re.findall(r"^> - ", first, re.M)
    assert 3 <= len(objectives) <= 6, "what will the reader learn?"


@each_chapter
def test_a_chapter_says_about_how_long_it_takes(path):
    """200 words and two thirds of a code cell a minute; three minutes where one is to predict."""
    minutes = 0.0
    for cell in cells(path):
        text, _, exercises = source(cell).partition("\n## Exercises")
        if cell["cell_type"] == "markdown":
            words = re.sub(r"\$\$.*?\$\$|\]\([^)]*\)", "", text, flags=re.S).split()
            minutes += len(words) / 200 + 1.5 * text.count("**Predict, then run.**")
        elif text.count("\n") >= 2 and "setup" not in cell["metadata"].get("tags", []):
            minutes += 1.5
        if exercises or text.startswith("## Exercises"):
            break
    stated = int(re.search(r"\*\*Time:\*\* (\d+) minutes", source(cells(path)[0]))[1])
    assert abs(stated - minutes) <= 15, f"{path.stem}: {minutes:.0f} minutes by its length"


def test_the_book_has_enough_exercises_of_every_kind():
    from adjoint_book.exercises import Choice, checks

    text = "\n\n".join(prose(path) for path in CHAPTERS)
    code = "\n".join(source(cell) for path in CHAPTERS for cell in cells(path, "code"))
    choices = [name for name, check in checks().items() if isinstance(check, Choice)]
    functions = re.findall(r"answer = None  # (?:a function|a Keras model)", code)
    asked = re.findall(r"^### Question [\d.]+: (.+)$", text, re.M)
    everything = len(re.findall(r"^### (?:Exercise|Question) ", text, re.M))
    assert everything >= 110
    assert len(choices) + len(functions) + len(asked) >= everything / 3
    assert {"explain", "prove", "find the bug", "project"} <= set(asked)
    unused = [name for name in choices if f"exercises.{name}(answer)" not in code]
    assert not unused, "no chapter asks these"


@each_chapter
def test_a_chapter_has_three_exercises_each_with_a_check_and_a_folded_solution(path):
    chapter = int(path.name[:2])
    found = cells(path)
    at = [n for n, cell in enumerate(found) if re.search(r"^### Exercise ", source(cell), re.M)]
    assert len(at) >= 3
    for count, (start, end) in enumerate(zip(at, [*at[1:], len(found)], strict=True), 1):
        title = re.search(r"^### Exercise (?:(\d+)\.)?(\d+): \S", source(found[start]), re.M)
        assert title and int(title[2]) == count and int(title[1] or chapter) == chapter
        checking = [cell for cell in found[start:end] if "check_" in source(cell)]
        open_, solved = (
            [cell for cell in checking if ("hide-cell" in cell["metadata"].get("tags", [])) == hid]
            for hid in (False, True)
        )
        assert open_ and solved, f"exercise {chapter}.{count} needs a check and a folded solution"
        printed = [
            "".join("".join(output.get("text", "")) for output in part[-1]["outputs"])
            for part in (open_, solved)
        ]
        assert "not answered yet" in printed[0], f"exercise {chapter}.{count} gives itself away"
        assert "Correct" in printed[1], f"the solution of {chapter}.{count} is not right"
        assert "Not yet" not in printed[1]


@each_chapter
def test_every_exercise_says_how_hard_it_is_and_how_long_it_takes(path):
    found = re.findall(r"^### (?:Exercise|Question) .+\n\n(.*)$", prose(path), re.M)
    wrong = [
        line for line in found if not re.fullmatch(r"\*(Easy|Medium|Hard), \d+ minutes\.\*", line)
    ]
    assert found and not wrong


@each_chapter
def test_a_chapter_ends_with_summary_exercises_and_further_reading(path):
    last = re.findall(r"^## (.+)$", prose(path), re.M)
    last = [heading for heading in last if heading != "Questions without a check"][-3:]
    assert last == ["Summary", "Exercises", "Further reading"]
    reading = prose(path).partition("## Further reading")[2]
    listed = r"^- \[([^\]]+ \d{4}[a-z]?)\]\(bibliography\.md#(\w+)\): \S"
    references = re.findall(listed, reading, re.M)
    assert 2 <= len(references) <= 5


@each_chapter
def test_what_a_citation_says_is_said_of_one_work_only(path):
    cited = set(re.findall(r"\[([^\]]+ \d{4}[a-z]?)\]\(bibliography\.md#(\w+)\)", prose(path)))
    assert len({name for name, _ in cited}) == len(cited), sorted(cited)


# ---- plain Markdown

MYST = {
    "a directive": r"^ *[`:~]{3,} *\{",
    "a fence of colons": r"^ *:{3,}",
    "a role": r"\{[a-z][\w:.+-]*\}`",
    "a target": r"^\([\w-]+\)= *$",
    "a label after an equation": r"\$\$ *\([\w-]+\)",
    "a definition list": r"^: ",
    "a comment": r"^% ",
    "a substitution": r"\{\{",
    "attributes": r"[\])`]\{[.#]",
    "an amsmath environment outside of $$": r"^\\begin\{",
    "a link without words": r"(?<!!)\[\]\(",
}


each_plain_page = pytest.mark.parametrize(
    "path", [*NOTEBOOKS, *PLAIN_PAGES], ids=lambda path: path.stem
)


def myst_only(prose: str) -> list[str]:
    """What a plain renderer would show raw, or lose."""
    without_code = re.sub(r"^```$.*?^```$|^```[a-z]+$.*?^```$", "", prose, flags=re.M | re.S)
    words = re.sub(r"(?<![`}])`[^`\n]+`", "", without_code)
    words = re.sub(r"\$\$\n.*?\n\$\$(?=\n|$)", "", words, flags=re.S)
    found = {name: re.search(pattern, words, re.M) for name, pattern in MYST.items()}
    return [f"{name}: {match[0]}" for name, match in found.items() if match]


@each_plain_page
def test_a_plain_renderer_shows_nothing_raw(path):
    """What only MyST understands; adjoint_book.build.plain says what to write instead."""
    assert not myst_only(prose(path))


@pytest.mark.parametrize(
    "text",
    [
        "```{math}\nx\n```",
        ":::{note}\nText.\n:::",
        "See {numref}`fig-a`.",
        "See {cite:t}`higham2002accuracy`.",
        "There are {glue:text}`number` of them.",
        "(a-target)=\n# Title",
        "$$\nx\n$$ (eq-a)",
        "word\n: what it means",
        "{{ name }}",
        "\\begin{align}\nx\n\\end{align}",
        "[](01-adjoints.ipynb)",
    ],
)
def test_the_test_of_plain_markdown_sees(text):
    assert myst_only(f"Before.\n\n{text}\n\nAfter.")
    assert not myst_only(f"Before.\n\n```\n{text}\n```\n\nAfter.") or "```" in text


@each_plain_page
def test_a_link_leads_to_a_file_and_a_place_in_it(path):
    for target in re.findall(r"\]\(([^)\s]+)\)", prose(path)):
        if re.match(r"https?:|mailto:", target):
            continue
        name, _, place = target.partition("#")
        file = path.parent / name if name else path
        assert file.is_file(), f"{target}: there is no such file"
        if file.name == "explorer.md" and place.startswith("net="):
            continue  # a state: see test_explorer.py
        assert not place or f'<a id="{place}"></a>' in prose(file), f"{target}: no such place"


def test_numbers_count_up_within_each_chapter():
    found = {path.stem: [source(c) for c in cells(path, "markdown")] for path in CHAPTERS}
    wrong = [name for name, texts in numbering.renumbered(found).items() if texts != found[name]]
    assert not wrong, f"{wrong}: run `python -m adjoint_book.build.numbering`"


# ---- spelling


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_the_prose_is_spelt_right(path, tmp_path):
    (tmp_path / "prose.md").write_text(prose(path), encoding="utf-8")
    code = "\n".join(source(cell) for cell in cells(path, "code"))
    (tmp_path / "code.txt").write_text(code, encoding="utf-8")
    command = ["codespell_lib", "--toml", str(ROOT / "pyproject.toml"), "--skip", ""]
    run = subprocess.run(
        [sys.executable, "-m", *command, "prose.md", "code.txt"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert run.returncode == 0, run.stdout


@each_notebook
def test_the_spelling_is_british(path):
    american = r"\b(\w*(?:ormaliz|inimiz|ptimiz|eneraliz|isualiz|nitializ|ummariz|ecogniz)\w*)\b"
    american += r"|\b(colors?|behaviors?|centers?|gray|neighbors?)\b"
    plain = re.sub(
        r"`[^`]*`|\{\w+\}`[^`]*`|\$[^$]*\$|\]\([^)]*\)|```.*?```", "", prose(path), flags=re.S
    )
    assert not [match[0] for match in re.finditer(american, plain)]


# ---- the comparison of outputs is strict


def nbval(folder: Path, code: str, outputs: list[dict], tags: tuple[str, ...] = ()) -> str:
    """What nbval says of a notebook with one cell, as `make test` calls it."""
    for name in ("conftest.py", "sanitize.cfg"):
        (folder / name).write_text(text(f"book/{name}"), encoding="utf-8")
    cell = {
        "cell_type": "code",
        "execution_count": 1,
        "id": "a",
        "metadata": {"tags": list(tags)},
        "outputs": outputs,
        "source": code,
    }
    kernel = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
    (folder / "one.ipynb").write_text(
        json.dumps({"cells": [cell], "metadata": kernel, "nbformat": 4, "nbformat_minor": 5})
    )
    makefile = text("Makefile").replace("\\\n", "")
    (command,) = re.findall(r"-m (pytest .*--nbval.*) \$\(NOTEBOOKS\)", makefile)
    options = command.replace("book/", "").replace("-n 2 --dist loadfile", "").split()
    run = subprocess.run(
        [sys.executable, "-m", *options, "-p", "no:cacheprovider", "one.ipynb"],
        cwd=folder,
        capture_output=True,
        text=True,
    )
    return run.stdout


def printed(what: str, stream: str = "stdout") -> dict:
    return {"name": stream, "output_type": "stream", "text": what}


PICTURE = {
    "data": {"image/png": "iVBORw0KGgoAAAA", "text/plain": "<Figure size 100x100 with 1 Axes>"},
    "metadata": {},
    "output_type": "display_data",
}
DRAW = "%matplotlib inline\nimport matplotlib.pyplot as plt\nplt.plot([1, 2])\nplt.show()"


@pytest.mark.parametrize(
    ("code", "outputs", "tags", "passes"),
    [
        ("print(1)", [printed("1\n")], (), True),
        ("print(2)", [printed("1\n")], (), False),
        ("print(1)", [], (), False),
        ("import sys; print(1, file=sys.stderr)", [], (), False),
        ("import sys; print(1, file=sys.stderr)", [], ("setup",), True),
        ("1 / 0", [], ("setup",), False),
        (DRAW, [PICTURE], (), True),
        (DRAW, [], (), False),
        ("pass", [PICTURE], (), False),
        ("print('3e-14 of the largest')", [printed("no difference\n")], (), True),
        ("print('3e-07 of the largest')", [printed("1e-07 of the largest\n")], (), True),
        ("print('3e-05 of the largest')", [printed("1e-07 of the largest\n")], (), False),
        ("print('3e-07 of the largest')", [printed("1e-16 of the largest\n")], (), False),
    ],
)
def test_nbval_sees_what_differs(tmp_path, code, outputs, tags, passes):
    said = nbval(tmp_path, code, outputs, tags)
    assert ("1 passed" if passes else "1 failed") in said, said


# ---- what a notebook may use of the library


@each_notebook
def test_it_uses_public_names_only(path):
    """What `al.` offers and the package `adjoint_book`, whose `inside` lists the exceptions."""
    code = "\n".join(source(cell) for cell in cells(path, "code"))
    used = set(re.findall(r"\bal\.(\w+)", code))
    assert used <= set(al.__all__), used - set(al.__all__)
    imported = re.findall(r"^\s*(?:from|import) (adjoint_lib[\w.]*)(.*)$", code, re.M)
    assert {name for name, _ in imported} <= {"adjoint_lib"}, imported
    names = {
        n.strip()
        for _, rest in imported
        if rest.startswith(" import ")
        for n in rest[8:].split(",")
    }
    assert names <= set(al.__all__), names - set(al.__all__)
