"""Three syllabi, each with outcomes, exercises, quizzes and reading, made from the chapters."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from adjoint_book.course import quizzes
from adjoint_book.course.chapters import Chapter, chapters, way_to
from adjoint_book.course.parts import Build, part
from adjoint_book.course.sheet import cells_of, exercises_of


class Outcome(NamedTuple):
    """What somebody can do afterwards, and what shows it.

    Attributes:
        text: completes "Afterwards you can".
        chapter: the name of the chapter's file after its number.
        checks: exercises that need it, by the names of their checks.
        questions: numbers of the questions of the chapter's quiz that need it.
    """

    text: str
    chapter: str
    checks: tuple[str, ...]
    questions: tuple[int, ...]


OUTCOMES = (
    Outcome(
        "find the adjoint of a linear operator, and test it",
        "adjoints",
        ("check_difference_adjoint", "check_pool_adjoint"),
        (1, 5, 6, 7),
    ),
    Outcome(
        "say when the adjoint is the transpose",
        "adjoints",
        ("check_weighted_representer",),
        (2, 3),
    ),
    Outcome(
        "write a neuron with its bias as one inner product",
        "one-neuron",
        ("check_leaky_neuron", "check_neuron_hypersurface"),
        (1, 2, 3),
    ),
    Outcome(
        "tell linear, affine and positively homogeneous apart",
        "one-neuron",
        ("check_shutting_scale",),
        (4, 5, 7),
    ),
    Outcome(
        "redraw a network so that its biases are inputs",
        "equivalent-topology",
        ("check_count_biases", "check_bias_position", "check_nudged_bias"),
        (1, 2, 3, 6),
    ),
    Outcome(
        "fold batch normalisation, and say where this is not allowed",
        "folding",
        ("check_fold_by_hand", "check_fold_kernel"),
        (1, 3, 4, 8),
    ),
    Outcome(
        "prove the identity, and say which property it rests on",
        "proof",
        ("check_homogeneous", "check_first_flip"),
        (1, 2, 5, 6),
    ),
    Outcome("repair an activation with constants", "proof", ("check_hard_tanh",), (3, 4)),
    Outcome(
        "choose the cotangent for a question, and read the shape of its answer",
        "five-modes",
        ("check_mode_shape", "check_cotangent", "check_own_mode"),
        (1, 2, 3, 5),
    ),
    Outcome(
        "count what a reconstruction costs, and choose its direction",
        "computing-it-fast",
        ("check_multiply_adds", "check_break_even"),
        (1, 2, 7),
    ),
    Outcome(
        "say what the input of a network is, and what its split into parts depends on",
        "data",
        ("check_spread",),
        (3, 6, 7),
    ),
    Outcome(
        "train a network that can be stopped, and say how sure its accuracy is",
        "vgg7",
        ("check_rate", "check_interval"),
        (3, 5, 6),
    ),
    Outcome(
        "read a residual network as a sum of paths",
        "resnet20",
        ("check_paths", "check_block_jacobian"),
        (1, 2, 6),
    ),
    Outcome(
        "say what replaces normalisation in a network without it",
        "fixup",
        ("check_fixup_scalars", "check_fold_multiplier"),
        (1, 2, 4, 6),
    ),
    Outcome(
        "verify every unit of a network, and read the report",
        "verification-cifar10",
        ("check_share", "check_misses"),
        (1, 3, 5),
    ),
    Outcome(
        "count what is independent, and foretell misses",
        "verification-cifar100",
        ("check_wider", "check_one_more_bit"),
        (4, 5, 6),
    ),
    Outcome(
        "compare feature maps by more than the eye",
        "feature-maps",
        ("check_map_nonzero", "check_image_energy"),
        (1, 2, 7),
    ),
    Outcome(
        "tell rounding from a mistake",
        "rounding",
        ("check_condition", "check_smallest_value"),
        (1, 2, 4, 8),
    ),
    Outcome(
        "take a decision apart, and say what the parts do not show",
        "what-hypersurfaces-show",
        ("check_margin_hypersurface", "check_nearest_tie"),
        (1, 4, 6, 8),
    ),
    Outcome(
        "step to a tie, and say what attributions leave out",
        "what-it-is-good-for",
        ("check_distance_to_tie", "check_which_is_complete"),
        (1, 3, 4, 6),
    ),
    Outcome(
        "convert and verify a model of one's own, and use a refusal",
        "your-own-model",
        ("check_count_x_b", "check_make_it_fit"),
        (1, 3, 6),
    ),
)


class Session(NamedTuple):
    """One meeting: what is done, the chapters it rests on, and what follows at home."""

    title: str
    chapters: tuple[str, ...]
    steps: tuple[tuple[int, str], ...]
    home: str


@dataclass(frozen=True)
class Syllabus:
    """A course: whom it is for, its sessions, and when their chapters are read."""

    file: str
    title: str
    audience: str
    sessions: tuple[Session, ...]
    read: str = "beforehand"

    @property
    def subjects(self) -> list[str]:
        """The chapters of all sessions, by name, in order."""
        return list(dict.fromkeys(name for each in self.sessions for name in each.chapters))


NINETY = (
    (10, "the question of the chapter, and its smallest example at the board, with numbers"),
    (35, "the notebook, run live; at each *predict, then run* everybody writes a number first"),
    (5, "the chapter's picture, explained by one student to another"),
    (30, "two exercises: one on paper, one in code"),
    (10, "the quiz, in pairs; the answer that divides the room is talked about"),
)
HOME = "the other exercises, and the one with numbers of their own; the quiz of the next chapter"

LECTURE = Syllabus(
    "guest-lecture",
    "A guest lecture of 90 minutes",
    "People who know convolutional networks and want to know what an exact reconstruction is.",
    (
        Session(
            "One unit is one inner product",
            ("one-neuron", "proof", "what-hypersurfaces-show"),
            (
                (10, "the claim, live: one unit of VGG7, its H, and the sum that comes out"),
                (20, "one neuron: why the bias is an input; linear, affine, homogeneous"),
                (20, "the proof in two lines, and the knob k; where it breaks: ReLU6"),
                (10, "quiz questions, answered by hand signs"),
                (20, "what a decision is made of, image and biases; what this does not show"),
                (10, "questions, and what to read"),
            ),
            "the notebooks of the three chapters, and chapter 1 for whoever wants the algebra",
        ),
    ),
    read="afterwards",
)

UNIT = Syllabus(
    "two-week-unit",
    "A unit of two weeks: four sessions of 90 minutes",
    "A course on deep learning or on numerical linear algebra that has two weeks for it.",
    (
        Session("Carrying weights backwards", ("adjoints", "one-neuron"), NINETY, HOME),
        Session("The equivalent network", ("equivalent-topology", "folding"), NINETY, HOME),
        Session("The proof, and five questions", ("proof", "five-modes"), NINETY, HOME),
        Session(
            "What is left: rounding, and what it means",
            ("rounding", "what-hypersurfaces-show"),
            NINETY,
            "one open question in writing, one page",
        ),
    ),
)

SEMINAR = Syllabus(
    "ten-week-seminar",
    "A seminar of ten weeks, with a project",
    "Graduate students. One session of 90 minutes to teach and one for exercises each week; groups "
    "of two or three choose a project in week 4, and show it in week 10.",
    (
        Session("Week 1: adjoints", ("adjoints",), NINETY, HOME),
        Session("Week 2: from one neuron", ("one-neuron", "equivalent-topology"), NINETY, HOME),
        Session("Week 3: folding", ("folding",), NINETY, HOME),
        Session("Week 4: the proof", ("proof",), NINETY, f"{HOME}; choose a project"),
        Session("Week 5: five modes", ("five-modes",), NINETY, HOME),
        Session("Week 6: speed, and data", ("computing-it-fast", "data"), NINETY, HOME),
        Session("Week 7: three networks", ("vgg7", "resnet20", "fixup"), NINETY, HOME),
        Session(
            "Week 8: verification",
            ("verification-cifar10", "verification-cifar100", "feature-maps"),
            NINETY,
            f"{HOME}; one page on how the project stands",
        ),
        Session("Week 9: rounding", ("rounding",), NINETY, HOME),
        Session(
            "Week 10: what it shows, and the projects",
            ("what-hypersurfaces-show", "what-it-is-good-for", "your-own-model"),
            (
                (30, "what hypersurfaces show, and what they do not"),
                (15, "models of the students' own: what was refused, and why"),
                (45, "projects: five minutes and one figure each, and two questions"),
            ),
            "the project's report",
        ),
    ),
)

SYLLABI = (LECTURE, UNIT, SEMINAR)


@part("plans", "three syllabi with outcomes, exercises, quizzes and reading")
def plans(build: Build) -> None:
    """Write the syllabi, for students and lecturer alike."""
    found = chapters(build.book)
    for syllabus in SYLLABI:
        text = written(syllabus, found, build.book)
        for folder in (build.students("plans"), build.lecturer("plans")):
            (folder / f"{syllabus.file}.md").write_text(text, encoding="utf-8")


def written(syllabus: Syllabus, found: Sequence[Chapter], book: Path) -> str:
    """A syllabus as Markdown."""
    by_subject = {chapter.file[3:]: chapter for chapter in found}
    chosen = [by_subject[name] for name in syllabus.subjects]
    lines = [f"# {syllabus.title}", "", syllabus.audience, "", *_outcomes(chosen, book)]
    for session in syllabus.sessions:
        lines += ["", f"## {session.title}", ""]
        lines += [
            f"- [{chapter.number} {chapter.title}](../notebooks/{chapter.file}.ipynb), "
            f"{chapter.minutes} minutes to read {syllabus.read}; "
            f"[quiz](../quizzes/{chapter.file}.html)"
            for chapter in (by_subject[name] for name in session.chapters)
        ]
        if len(session.chapters) > 1 and session.steps is NINETY:
            lines += ["", "All are read beforehand; run live the one that raised most questions."]
        lines += ["", "| minutes | what |", "|---|---|"]
        lines += [f"| {minutes} | {what} |" for minutes, what in session.steps]
        lines += ["", f"At home: {session.home}."]
    return "\n".join([*lines, "", *_before(chosen, found), *_reading(chosen, book)]) + "\n"


def _outcomes(chosen: Sequence[Chapter], book: Path) -> list[str]:
    subjects = {chapter.file[3:]: chapter for chapter in chosen}
    lines = ["Afterwards you can", "", "| outcome | exercises | quiz |", "|---|---|---|"]
    for outcome in OUTCOMES:
        if outcome.chapter in subjects:
            chapter = subjects[outcome.chapter]
            tasks = {task.check: task for task in exercises_of(cells_of(_path(chapter, book)))}
            numbers = ", ".join(tasks[check].number for check in outcome.checks)
            asked = ", ".join(map(str, outcome.questions))
            lines.append(f"| {outcome.text} | {numbers} | {chapter.number}: {asked} |")
    return lines


def _before(chosen: Sequence[Chapter], found: Sequence[Chapter]) -> list[str]:
    """What the chapters need that is not among them."""
    numbers = {chapter.number for chapter in chosen}
    missing = sorted(set(way_to(found, numbers)) - numbers)
    if not missing:
        return []
    titles = {chapter.number: chapter.title for chapter in found}
    listed = "; ".join(f"{number} {titles[number]}" for number in missing)
    return [
        f"Not taught here, but built on: {listed}. Say in three sentences what they show, or give "
        "them to read.",
        "",
    ]


def _reading(chosen: Sequence[Chapter], book: Path) -> list[str]:
    lines = ["## Reading", ""]
    for chapter in chosen:
        items = further_reading(_path(chapter, book))
        if items:
            lines += [f"Chapter {chapter.number}, {chapter.title}:", "", *items, ""]
    return lines[:-1]


def further_reading(path: Path) -> list[str]:
    """The list under the heading "Further reading" of a chapter."""
    text = "\n\n".join(c["source"] for c in cells_of(path) if c["cell_type"] == "markdown")
    items = re.findall(r"^- .+$", text.partition("## Further reading")[2], re.M)
    return [item.replace("](bibliography.md", "](../notebooks/bibliography.md") for item in items]


def quiz_of(outcome: Outcome, book: Path) -> list[quizzes.Question]:
    """The questions that show an outcome."""
    (path,) = book.glob(f"[0-9][0-9]-{outcome.chapter}.ipynb")
    asked = quizzes.of_chapter(path)
    return [asked[number - 1] for number in outcome.questions]


def _path(chapter: Chapter, book: Path) -> Path:
    return book / f"{chapter.file}.ipynb"
