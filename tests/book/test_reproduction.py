"""The comparison with the paper: nothing left out, and verdicts that numbers can overturn."""

from __future__ import annotations

import csv
import dataclasses
import json
import re

import numpy as np
import pytest

import adjoint_lib as al
from adjoint_book import equations, figures, paper_tables
from adjoint_book.build import claims, reproduction, verdicts
from adjoint_lib.verification.report import LayerReport
from repository import ROOT, text

ROWS = {row.title: row for row in reproduction.ROWS}


def read(name: str) -> list[dict[str, str]]:
    """A table of the paper, without the code that the index uses."""
    with (ROOT / "data" / "paper" / f"{name}.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


STATED = {row["name"]: float(row["value"]) for row in read("statements")}


# ------------------------------------------------------------------ nothing is left out


def test_the_index_has_every_figure_table_and_equation_of_the_paper():
    titles = " | ".join(ROWS)
    for row in read("figures"):
        named = f"Fig. {row['number']}: " if row["place"] == "main" else ""
        assert (named or f"appendix fig. {row['number']}: ") in titles
    for n in range(1, 5):
        assert f"Table {n}: " in titles
    for n in range(1, 6):
        assert f"appendix table {n}: " in titles
    for n in range(1, int(STATED["equations"]) + 1):
        assert titles.count(f"| Eq. ({n}): ") == 1
    for n in range(1, int(STATED["appendix_equations"]) + 1):
        assert titles.count(f"| appendix eq. ({n}): ") == 1
    assert "Algorithm 1: " in titles
    assert len(ROWS) == len(reproduction.ROWS) == 17 + 6 * 3 + 6 + 1 + 16 + 14


def test_the_panels_add_up_to_the_papers():
    assert sum(int(row["panels"]) for row in read("figures")) == 13 + 2 * (6 + 19 + 19) + 6 * 4


COMMANDS = sorted({command for row in reproduction.ROWS for command in row.commands})


@pytest.mark.parametrize("command", COMMANDS)
def test_the_command_of_a_row_is_one(command):
    from adjoint_lib.cli.main import parser

    words = command.split()
    if words[:2] == ["python", "-m"]:
        known = {
            "adjoint_book.equations": set(equations.EQUATIONS),
            "adjoint_book.paper_tables": {
                *(
                    f"{kind} {of}"
                    for kind in ("schedules", "training")
                    for of in al.data.CLASS_NAMES
                ),
                *(
                    f"{kind} {of}"
                    for kind in ("parameters", "dimensions")
                    for of in al.models.MODELS
                ),
            },
        }
        assert " ".join(words[3:]) in known[words[2]]
    else:
        parser().parse_args(words)
        if words[0] == "figure":
            assert words[1] in figures.names()


@pytest.mark.parametrize("row", reproduction.ROWS, ids=lambda row: row.title)
def test_the_chapter_of_a_row_is_there(row):
    assert (ROOT / "book" / f"{row.chapter}.ipynb").is_file()


@pytest.mark.parametrize(
    ("command", "words"),
    [
        (equations.main, ["2", "a12"]),
        (paper_tables.main, ["dimensions", "vgg7"]),
        (paper_tables.main, ["schedules", "cifar100"]),
    ],
)
def test_the_commands_print_what_the_row_is_about(command, words, capsys):
    assert command(words) == 0
    said = capsys.readouterr().out
    assert "holds" in said or "d_in" in said or "conv1" in said or "501" in said or "701" in said


@pytest.mark.parametrize("command", [equations.main, paper_tables.main])
def test_the_commands_say_what_they_expected(command, capsys):
    assert command(["nothing"]) == 2
    assert capsys.readouterr().out.startswith("expected")


# ------------------------------------------------------------------ verdicts, from the files


@pytest.mark.parametrize(("model", "dataset"), reproduction.PAIRS)
def test_the_verdict_on_the_shares_is_what_the_files_say(model, dataset):
    column = model.replace("-", "_")
    theirs = [
        float(r[column]) for r in read("percentages") if r["dataset"] == dataset and r[column]
    ]
    counts = {"weaker": 0, "better": 0, "same": 0}
    below = []
    found = {}
    for mode in ("RM2", "RM0"):
        path = ROOT / "data" / "results" / f"{model}-{dataset}-hypersurface-{mode}.json"
        found |= al.results.read(path).report.layers
    names = [name for name in found if name != "fc"] + ["fc"]
    for name, stated in zip(names, theirs, strict=True):
        layer = found[name]
        low, high = (100 * end for end in layer.interval())
        kind = "weaker" if stated > high + 5e-5 else "better" if stated < low - 5e-5 else "same"
        counts[kind] += 1
        if 100 * layer.within[0] / layer.units < STATED["share_percent"]:
            below.append(name)
    (row,) = (
        row
        for title, row in ROWS.items()
        if title.endswith(
            f"units within 1 %, {paper_tables.NAMES[model]} on {reproduction.DATASETS[dataset]}"
        )
    )
    cells = row.cells()
    said = cells.verdict
    for kind, words in (("weaker", r"weaker in (\d+)"), ("better", r"better in (\d+)")):
        match = re.search(words, said)
        assert int(match[1] if match else 0) == counts[kind]
    assert (f"below 99.97 % in {', '.join(below)}" if below else "none below") in said
    assert f"{found['conv1'].images:,} images" in cells.on


@pytest.mark.parametrize(("model", "dataset"), reproduction.PAIRS)
def test_the_verdict_on_the_accuracy_is_what_the_files_say(model, dataset):
    folders = ROOT / "data" / "runs" / f"{model}-{dataset}-paper-0", ROOT / "data" / "weights"
    paths = [folder / f"{model}-{dataset}.json" for folder in folders]
    record = json.loads(next(path for path in paths if path.exists()).read_text("utf-8"))
    low, high = record["accuracy"]["test"]["interval_95"]
    key = model.replace("-", "_"), dataset
    (row,) = (r for r in read("training") if (r["model"], r["dataset"]) == key)
    stated = float(row["test_accuracy_percent"]) / 100
    (said,) = (
        row.cells().verdict
        for title, row in ROWS.items()
        if title.endswith(
            f"test accuracy of {paper_tables.NAMES[model]}, {reproduction.DATASETS[dataset]}"
        )
    )
    expected = "better" if stated < low else "weaker" if stated > high else "same"
    assert said.startswith(expected)
    same_recipe = record["recipe"]["name"] == "paper"
    assert ("by the same recipe" in said) == same_recipe


def test_the_equations_that_need_correcting_are_four():
    verdict = {number: one.verdict() for number, one in equations.EQUATIONS.items()}
    corrected = {number for number, said in verdict.items() if said.startswith("corrected")}
    assert corrected == {"a3", "a5", "a10", "a14"}
    assert all(said.startswith("holds") for n, said in verdict.items() if n not in corrected)


def test_the_notes_speak_of_every_entry_that_is_corrected():
    corrected = [
        row.cells().verdict
        for row in reproduction.ROWS
        if row.kind == "table" and "corrected" in row.cells().verdict
    ]
    assert len(corrected) == 2
    notes = text("book/notes-on-the-paper.ipynb")
    for word in ("1,184", "Conv17"):
        assert word in notes and any(word in said for said in corrected)


# ------------------------------------------------------------------ verdicts can be otherwise


def test_an_equation_that_is_off_does_not_hold():
    one = equations.EQUATIONS["4"]
    off = dataclasses.replace(one, check=lambda: equations.Found(1e-9, 3))
    assert off.verdict() == "does not hold"
    mended = dataclasses.replace(one, check=lambda: equations.Found(1.0, 3, 0.0, "so"))
    assert mended.verdict() == "corrected: so"
    not_mended = dataclasses.replace(one, check=lambda: equations.Found(1.0, 3, 1e-9, "so"))
    assert not_mended.verdict() == "does not hold"


def test_a_check_sees_a_wrong_kernel(monkeypatch):
    """The library's values are compared with matrices of their own, so a slip in those is seen."""
    right = equations.example()
    wrong = dataclasses.replace(right, W=(right.W[0], right.W[1] * 1.000001, right.W[2]))
    monkeypatch.setattr(equations, "example", lambda: wrong)
    for number in ("3", "4", "13", "a4", "a6", "a8"):
        one = equations.EQUATIONS[number]
        found = one.check.__wrapped__()
        assert found.printed > one.limit, number


@pytest.mark.parametrize(
    ("theirs", "said"), [(89.0, "better"), (90.0, "same within"), (91.0, "weaker")]
)
def test_an_accuracy_is_better_same_or_weaker(theirs, said):
    assert verdicts.of_number(theirs, (89.5, 90.5), "fast").startswith(said)


def report(missed: int, units: int = 1_000_000, images: int = 100, **more) -> LayerReport:
    """A layer of which so many units miss 1 %, evenly spread over the images."""
    layer = LayerReport.of(np.zeros((1, 1)), worst=0.5, normwise=0.5, bound=1.0)
    within = np.array([units - missed, 0, 0])
    squares = np.array([missed**2 // images, 0, 0])
    given = {"images": images, "units": units, "within": within, "squares": squares}
    return dataclasses.replace(layer, **given | more)


@pytest.mark.parametrize(
    ("ours", "theirs", "said"),
    [
        (report(100), 99.99, "same within the interval in all 1 layers"),
        (report(100), 99.95, "better in 1"),
        (report(100), 99.999, "weaker in 1 of 1 layers because float32 rounds"),
        (report(100, worst=2.0), 99.999, "because 1 layers have units beyond"),
        (report(400), 99.999, "below 99.97 % in conv1"),
    ],
)
def test_shares_are_same_better_or_weaker(ours, theirs, said):
    assert said in verdicts.of_shares({"conv1": ours}, {"conv1": theirs})


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ((6, 6, 1e-4, 1e-4, 10_000, 10_000), "same panels, range and images"),
        ((5, 6, 1e-4, 1e-4, 10_000, 10_000), "5 panels for 6"),
        ((6, 6, 1e-3, 1e-4, 10_000, 10_000), "a range"),
        ((6, 6, 1e-4, 1e-4, 500, 10_000), "weaker because of 500 images for 10,000"),
    ],
)
def test_histograms_are_the_papers_or_fall_short(given, said):
    assert said in verdicts.of_histograms(*given)


@pytest.mark.parametrize(
    ("shown", "size", "worst", "said"),
    [
        ((4, 32, 4), 5e-7, 0.1, "difference as small"),
        ((4, 8, 4), 5e-7, 0.1, "weaker because of (4, 8, 4)"),
        ((4, 32, 4), 5e-6, 0.1, "difference 50 times as large"),
        ((4, 32, 4), 5e-7, 1.5, "does not hold"),
    ],
)
def test_maps_are_the_papers_or_fall_short(shown, size, worst, said):
    assert said in verdicts.of_maps(shown, (4, 32, 4), size, 1e-7, worst)


def test_counts_and_entries():
    assert verdicts.of_count(2, 2, "panels") == "same number of panels"
    assert verdicts.of_count(1, 2, "panels").startswith("weaker")
    assert verdicts.of_entries(5, 5, []) == "same in all 5 entries"
    assert verdicts.of_entries(4, 5, ["b, not a"]) == "corrected in 1 of 5 entries: b, not a"


# ------------------------------------------------------------------ claims


@pytest.fixture(scope="module")
def found() -> dict[str, claims.Finding]:
    return {claim.sentence: claim.find() for claim in claims.CLAIMS}


def test_claims_have_one_of_three_verdicts_and_numbers(found):
    kinds = {finding.verdict for finding in found.values()}
    assert kinds == {claims.HOLDS, claims.CONDITION, claims.FAILS}
    for sentence, finding in found.items():
        assert re.search(r"\d|refused|accepted", finding.numbers), sentence
    (tanh,) = (finding for sentence, finding in found.items() if "tanh" in sentence)
    assert tanh.verdict == claims.HOLDS and "'inside'" in tanh.numbers


def test_the_claim_on_the_share_of_units_is_what_the_files_say(found):
    (finding,) = (f for sentence, f in found.items() if sentence.startswith("Over 99.97"))
    low = []
    for path in sorted((ROOT / "data" / "results").glob("*-hypersurface-RM[02].json")):
        for name, layer in al.results.read(path).report.layers.items():
            if 100 * layer.within[0] / layer.units <= STATED["share_percent"]:
                low.append(name)
    assert finding.verdict == (claims.CONDITION if low else claims.HOLDS)
    assert all(name in finding.numbers for name in low)


def test_each_claim_leads_to_a_place_in_the_book():
    labels = set()
    for path in (ROOT / "book").glob("*.ipynb"):
        labels |= set(re.findall(r'<a id=\\"([\w-]+)\\">', path.read_text("utf-8")))
    missing = [claim.label for claim in claims.CLAIMS if claim.label not in labels]
    assert not missing


@pytest.mark.parametrize(("model", "dataset"), reproduction.PAIRS)
def test_the_commands_of_the_shares_are_those_that_made_the_stored_results(model, dataset):
    from adjoint_lib.cli.main import parser

    about = f"units within 1 %, {paper_tables.NAMES[model]} on {reproduction.DATASETS[dataset]}"
    (row,) = (row for title, row in ROWS.items() if title.endswith(about))
    for mode, command in zip(("RM2", "RM0"), row.commands, strict=True):
        path = ROOT / "data" / "results" / f"{model}-{dataset}-hypersurface-{mode}.json"
        made = json.loads(path.read_text())["provenance"]["command"]
        made = parser().parse_args(made.removeprefix("python -m adjoint_lib ").split())
        ours = parser().parse_args(command.split())
        for name in ("model", "weights", "images", "full", "mode"):
            assert getattr(made, name) == getattr(ours, name), name
        assert ours.method in (made.method, None) and ours.dataset in (made.dataset, None)
