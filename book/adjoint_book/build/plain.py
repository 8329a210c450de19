r"""Turns the chapters' plain Markdown into what Sphinx makes a page of.

The sources hold nothing that a plain renderer (JupyterLab, GitHub, nbconvert) would show raw. There
a quotation stays a quotation; on the page, what begins with a bold lead is more:

    > **Note.** Text.                       an admonition; see LOOKS for its colours

    <a id="fig-x"></a>                      the caption of the picture in the cell before it;
    **Figure 1.2.** Text.                   this is a cell of its own

    <a id="eq-x"></a>                       an equation that `[(1.2)](#eq-x)` links to

    $$
    x = 1 \tag{1.2}
    $$

    ### Exercise 1.2: title                 a heading that the index of exercises links to

    <!-- index-of: NAME -->                what the function NAME of `indexes` writes

    [Text](explorer.md#net=...)            alone in a paragraph, an explorer that starts so
    <!-- explorer: net=... -->             an explorer whose state is in the page's address

The numbers stand in the source; `numbering` keeps them right.
"""

from __future__ import annotations

import html
import json
import re
from typing import Any

ANCHOR = re.compile(r'^<a id="([\w-]+)"></a>$', re.M)
CAPTION = re.compile(r'<a id="(fig-[\w-]+)"></a>\n(\*\*Figure \d+\.\d+\.\*\* .+)', re.S)
EQUATION = re.compile(r"^\$\$\n(.*?\\tag\{[\d.]+\})\n\$\$$", re.M | re.S)
LINK = re.compile(r"\]\([\w./-]+\.(?:ipynb|md)#([\w-]+)\)")
EXERCISE = re.compile(r"^### (Exercise|Question) (\d+)\.(\d+): ", re.M)
INDEX = re.compile(r"^<!-- index-of: (\w+) -->$", re.M)
STATE = re.compile(r"\[([^\]]+)\]\((?:\./)?explorer\.md#(net=[^)\s]+)\)")
EXPLORER = re.compile(rf"^{STATE.pattern}$(?=\n\n|\n?\Z)", re.M)
WHOLE_EXPLORER = re.compile(r"^<!-- explorer: (net=\S+) -->$", re.M)
LEAD = re.compile(r"\*\*(.+?)\*\* ?(.*)")

NO_SCRIPTS = "This explorer computes in your browser: it needs JavaScript, which is switched off."

# The look of an admonition, by the first word of its title; any other is a note.
LOOKS = {
    "Overview": "",
    "Predict,": "tip",
    "Definition": "important",
    "Remember": "important",
    "Theorem": "important",
    "Warning": "warning",
}
FOLDED = {"setup": "Set-up", "hide-cell": "Solution"}  # what a folded cell is called, by its tag


def page_source(text: str, is_notebook: bool) -> str:
    """The source of a page, a notebook's or a Markdown file's, as MyST reads it."""
    return json.dumps(notebook(json.loads(text))) if is_notebook else markdown(text)


def notebook(plain: dict[str, Any]) -> dict[str, Any]:
    """The notebook with its Markdown as MyST has it, captions given to pictures, cells folded."""
    cells: list[dict[str, Any]] = []
    predicting = False
    for cell in plain["cells"]:
        text = "".join(cell["source"])
        if cell["cell_type"] != "markdown":
            cells.append(_folded(cell, predicting))
        elif caption := CAPTION.fullmatch(text.strip()):
            _give_caption(cells, *caption.groups())
        else:
            cells.append({**cell, "source": markdown(text)})
        predicting = cell["cell_type"] == "markdown" and asks_to_predict(text)
    return {**plain, "cells": cells}


def asks_to_predict(text: str) -> bool:
    """Whether the text ends in a question about what the next cell will show."""
    return text.rstrip().rpartition("\n\n")[2].startswith("> **Predict, then run.**")


def _folded(cell: dict[str, Any], predicting: bool) -> dict[str, Any]:
    metadata = cell["metadata"]
    tags = [*metadata.get("tags", []), *(["hide-output"] if predicting else [])]
    options = dict(metadata.get("mystnb", {}))
    if title := next((title for tag, title in FOLDED.items() if tag in tags), ""):
        tags = [*dict.fromkeys([*tags, "hide-cell"])]
        options |= {"code_prompt_show": title, "code_prompt_hide": title}
    if predicting:
        options |= {"code_prompt_show": "Show what it prints", "code_prompt_hide": "Hide it"}
    return {**cell, "metadata": {**metadata, "tags": tags, "mystnb": options}}


def _give_caption(cells: list[dict[str, Any]], name: str, caption: str) -> None:
    if not cells or cells[-1]["cell_type"] != "code":
        raise ValueError(
            f"{name}: expected the caption in the cell after the picture's, found it elsewhere."
        )
    options = cells[-1]["metadata"]["mystnb"]
    options["figure"] = {"name": name, "caption": markdown(caption)}


def markdown(text: str) -> str:
    """Plain Markdown as MyST: quotations with a bold lead, anchors, equations, links, indexes."""
    blocks = re.split(r"(^```.*?^```$)", text, flags=re.M | re.S)  # code stays as it is
    return "".join(block if n % 2 else _prose(block) for n, block in enumerate(blocks))


def _prose(text: str) -> str:
    text = re.sub(r"(?:^>.*(?:\n|\Z))+", _admonition, text, flags=re.M)
    text = ANCHOR.sub(r"(\1)=", text)
    text = EXERCISE.sub(lambda m: f"({m[1].lower()}-{m[2]}-{m[3]})=\n{m[0]}", text)
    text = EQUATION.sub(r"\\begin{equation*}\n\1\n\\end{equation*}", text)
    text = LINK.sub(r"](#\1)", text)
    text = EXPLORER.sub(lambda found: _explorer(found[2], "explorer.html", _state(found)), text)
    text = WHOLE_EXPLORER.sub(lambda found: _explorer(found[1], "here", NO_SCRIPTS), text)
    text = STATE.sub(_state, text)
    return INDEX.sub(r"```{index-of} \1\n```", text)


def _state(link: re.Match) -> str:
    """A link to a state of the explorer."""
    return f'<a href="explorer.html#{html.escape(link[2])}">{link[1]}</a>'


def _explorer(state: str, address: str, without: str) -> str:
    """The place of an explorer, and what is there where it cannot run."""
    given = f'data-adjoint-explorer="{html.escape(state)}" data-address="{address}"'
    return f"<div {given}><p>{without}</p></div>"


def _admonition(quotation: re.Match) -> str:
    body = re.sub(r"^> ?", "", quotation[0], flags=re.M)
    lead = LEAD.match(body)
    if not lead:
        return quotation[0]
    title = lead[1].removesuffix(".")
    look = LOOKS.get(title.split()[0], "note")
    options = f":class: {look}\n" if look else ""
    text = (lead[2] + body[lead.end() :]).strip("\n")
    return f"``````{{admonition}} {title}\n{options}\n{text}\n``````\n"
