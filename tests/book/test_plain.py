"""Plain Markdown becomes MyST's: admonitions, captions, targets, folded cells; numbers count up."""

import json

import pytest

from adjoint_book.build import numbering, plain

CAPTION = '<a id="fig-a"></a>\n**Figure 1.1.** What is *seen*.'


def markdown(text):
    return {"cell_type": "markdown", "metadata": {}, "source": text}


def code(text="draw()", **metadata):
    return {"cell_type": "code", "metadata": metadata, "source": text, "outputs": []}


@pytest.mark.parametrize(
    ("title", "look"),
    [
        ("Predict, then run", "tip"),
        ("Theorem 1.1 (Riesz)", "important"),
        ("Warning", "warning"),
        ("Two words: a and b", "note"),
    ],
)
def test_a_quotation_with_a_bold_lead_becomes_an_admonition(title, look):
    found = plain.markdown(f"Before.\n\n> **{title}.** One\n> line.\n>\n> - two\n\nAfter.\n")
    fence = "``````"
    assert found == (
        f"Before.\n\n{fence}{{admonition}} {title}\n:class: {look}\n\n"
        f"One\nline.\n\n- two\n{fence}\n\nAfter.\n"
    )


def test_a_lead_alone_on_its_line_is_a_title_and_the_rest_the_body():
    found = plain.markdown("> **Overview**\n>\n> **Time:** 5 minutes\n")
    assert found == "``````{admonition} Overview\n\n**Time:** 5 minutes\n``````\n"


def test_a_quotation_may_end_the_cell():
    assert plain.markdown("> **Note.** One.").endswith("\n\nOne.\n``````\n")


def test_a_quotation_without_a_lead_and_a_quotation_in_code_stay():
    for text in ("> As they say.\n", "```\n> **Note.** Code.\n```\n"):
        assert plain.markdown(text) == text


def test_an_equation_keeps_its_number_and_becomes_a_target():
    found = plain.markdown('<a id="eq-a"></a>\n\n$$\nx \\tag{1.2}\n$$\n\n$$\ny\n$$\n')
    assert found == ("(eq-a)=\n\n\\begin{equation*}\nx \\tag{1.2}\n\\end{equation*}\n\n$$\ny\n$$\n")


def test_an_exercise_can_be_linked_to():
    found = plain.markdown("## Exercises\n\n### Exercise 1.2: sum\n\nHow many?")
    assert found == "## Exercises\n\n(exercise-1-2)=\n### Exercise 1.2: sum\n\nHow many?"


def test_links_to_a_place_in_a_file_go_to_the_place():
    assert (
        plain.markdown("[a](b.md#c), [d](./e.ipynb#f), [g](h.md)") == "[a](#c), [d](#f), [g](h.md)"
    )


def test_a_link_to_the_explorer_alone_in_a_paragraph_becomes_one():
    place = '<div data-adjoint-explorer="net=a&amp;unit=1,2" data-address="{}"><p>{}</p></div>'
    link = '<a href="explorer.html#net=a&amp;unit=1,2">See it</a>'
    source = "[See it](explorer.md#net=a&unit=1,2)"
    assert plain.markdown(f"A.\n\n{source}\n\nB.\n") == (
        f"A.\n\n{place.format('explorer.html', link)}\n\nB.\n"
    )
    assert plain.markdown(source) == place.format("explorer.html", link)
    assert plain.markdown(f"A {source} and\n{source}\nb.") == f"A {link} and\n{link}\nb."
    whole = plain.markdown("<!-- explorer: net=a&unit=1,2 -->\n")
    assert whole == place.format("here", plain.NO_SCRIPTS) + "\n"


def test_a_caption_goes_to_the_picture_before_it():
    found = plain.notebook({"cells": [code(), markdown(CAPTION), markdown("More.")]})["cells"]
    assert [cell["source"] for cell in found] == ["draw()", "More."]
    assert found[0]["metadata"]["mystnb"]["figure"] == {
        "name": "fig-a",
        "caption": "**Figure 1.1.** What is *seen*.",
    }


def test_a_caption_without_a_picture_stops_the_build():
    with pytest.raises(ValueError, match="fig-a: expected the caption"):
        plain.notebook({"cells": [markdown("Text."), markdown(CAPTION)]})


def test_set_up_solution_and_prediction_are_folded_under_their_names():
    question = markdown("Text.\n\n> **Predict, then run.** Which?\n> Why?")
    cells = [code(tags=["setup"]), code(tags=["hide-cell"]), question, code(), code()]
    setup, solution, _, predicted, other = plain.notebook({"cells": cells})["cells"]
    folded = [
        (cell["metadata"]["tags"], cell["metadata"]["mystnb"].get("code_prompt_show"))
        for cell in (setup, solution, predicted, other)
    ]
    assert folded == [
        (["setup", "hide-cell"], "Set-up"),
        (["hide-cell"], "Solution"),
        (["hide-output"], "Show what it prints"),
        ([], None),
    ]


def test_the_notebook_itself_is_not_touched():
    cells = {"cells": [code(tags=["setup"]), markdown(CAPTION)]}
    before = json.dumps(cells)
    plain.page_source(before, is_notebook=True)
    plain.notebook(cells)
    assert json.dumps(cells) == before


# ---- numbers

CHAPTER = [
    '<a id="fig-b"></a>\n**Figure 9.9.** New.',
    "[Figure 2.1](#fig-a), [(1.1)](#eq-a), [Figure 0.0](#fig-b), [words](#fig-a)",
    '<a id="eq-a"></a>\n\n$$\nx \\tag{0}\n$$',
    '<a id="fig-a"></a>\n**Figure 2.1.** Old.',
    "> **Theorem 0.0 (Riesz).** So.\n\n### Exercise 1: one\n\n### Exercise 1: two",
]


def test_numbers_and_the_words_that_link_to_them_are_set_right():
    new = numbering.renumbered({"02-two": CHAPTER, "03-three": ["[Figure 0](02-two.ipynb#fig-a)"]})
    assert new["02-two"] == [
        '<a id="fig-b"></a>\n**Figure 2.1.** New.',
        "[Figure 2.2](#fig-a), [(2.1)](#eq-a), [Figure 2.1](#fig-b), [words](#fig-a)",
        '<a id="eq-a"></a>\n\n$$\nx \\tag{2.1}\n$$',
        '<a id="fig-a"></a>\n**Figure 2.2.** Old.',
        "> **Theorem 2.1 (Riesz).** So.\n\n### Exercise 2.1: one\n\n### Exercise 2.2: two",
    ]
    assert new["03-three"] == ["[Figure 2.2](02-two.ipynb#fig-a)"]
    assert numbering.renumbered(new) == new
