"""Runs of the paper's own recipe that come with the library, however far each has come.

    python -m adjoint_book.paper_runs

Everything is read from the records in `data/runs`, so that a newer one changes what is shown.
"""

from __future__ import annotations

import math

import adjoint_lib as al
from adjoint_book.paper_tables import NAMES
from adjoint_book.tables import in_percent
from adjoint_lib.core.tables import Table
from adjoint_lib.experiments import paper

DATA_NAMES = {"cifar10": "CIFAR-10", "cifar100": "CIFAR-100"}


def state(model: str = "vgg7", dataset: str = "cifar10") -> str:
    """How far a run of the paper's recipe has come, in words, with the command that goes on."""
    record = al.training.kept(model, dataset)
    begin = (
        "In a clone of the repository this command {} it:\n\n```bash\n"
        f"python -m adjoint_lib train --model {model} --dataset {dataset} --recipe paper "
        f"--folder data/runs/{model}-{dataset}-paper-0\n```"
    )
    if record is None:
        return "No such run has begun yet. " + begin.format("begins")
    time, processors = record["time"], {each["processor"]["name"] for each in record["sessions"]}
    sessions = f"{time['sittings']} session" + "s" * (time["sittings"] != 1)
    took = f"{time['wall_seconds'] / 3600:.1f} hours, in {sessions} on "
    took += " and ".join(sorted(processors))
    if test := record["accuracy"].get("test"):
        return (
            f"The run has ended, after {took}. Of the {test['count']:,} test images it is right "
            f"for {in_percent(test['value'], test['count'])}; the paper states "
            f"{paper.accuracy(model, dataset):.1f} %."
        )
    epochs, (epoch, done, steps) = record["recipe"]["epochs"], _steps(record)
    reached, so_far = record["reached"], ""
    if reached["step"]:
        so_far = f" In the present epoch the loss is {reached['train_loss']:.2f} so far, and "
        so_far += f"{100 * reached['train_accuracy']:.1f} % of the training images are right."
    return (
        f"**The run is unfinished.** It has come to epoch {epoch} of {epochs}, {done:,} of "
        f"{steps:,} steps ({100 * done / steps:.1f} %), after {took}.{so_far} The test images are "
        "looked at when it has ended, and not before. " + begin.format("goes on with")
    )


def judged(model: str, dataset: str) -> dict:
    """The training to hold against the paper's accuracy: by its own recipe, if that has ended."""
    record = al.training.kept(model, dataset)
    ended = record is not None and "test" in record["accuracy"]
    return record if record and ended else al.models.trained(model)[dataset]


def _steps(record: dict) -> tuple[int, int, int]:
    """The epochs that are whole, the steps taken and the steps of the whole run."""
    reached, recipe = record["reached"], record["recipe"]
    each = record["split"]["training"] // recipe["batch"]
    return reached["epoch"], reached["epoch"] * each + reached["step"], recipe["epochs"] * each


def stages(model: str = "vgg7", dataset: str = "cifar10") -> Table:
    """The stages of the paper's schedule, and how far the run of its recipe has come in each."""
    recipe, record = al.training.recipe("paper", model, dataset), al.training.kept(model, dataset)
    starts = [int(epoch) for epoch, _ in recipe.rates] + [recipe.epochs]
    rows = []
    for (start, rate), end in zip(recipe.rates, starts[1:], strict=True):
        done = [row for row in record["curve"] if start <= row["epoch"] < end] if record else []
        rows.append(
            [
                f"{rate:g}",
                f"[{start:g}, {end - 1}]",
                f"{len(done)} of {end - start}",
                _last(done, "train_accuracy"),
                _last(done, "validation_accuracy"),
            ]
        )
    header = ["learning rate", "epochs", "epochs done", "training images", "validation images"]
    return Table(header, rows)


def _last(rows: list[dict], what: str) -> str:
    """The last accuracy among the rows of a curve that have one, in percent."""
    found = [row[what] for row in rows if row[what] is not None]
    return f"{100 * found[-1]:.1f} %" if found else ""


def first_stages() -> Table:
    """What each run has learned in the first stage of its schedule, beside a network that guesses.

    Guessing has a loss of log(classes) and is right for one image in so many. Where no epoch is
    whole yet, the loss and the accuracy are those of the steps so far.
    """
    rows = []
    for dataset, name in DATA_NAMES.items():
        for model in NAMES:
            if record := al.training.kept(model, dataset):
                rows.append([NAMES[model], name, *_learned(record)])
    header = ["network", "data set", "learning rate", "steps", "loss", "guessing"]
    return Table([*header, "training images (95 %)", "guessing", "validation (95 %)"], rows)


def _learned(record: dict) -> list[str]:
    """The cells of one run: of the last whole epoch of the first stage, or of the steps so far."""
    (_, rate), (end, _), *_ = record["recipe"]["rates"]
    first = [row for row in record["curve"] if row["epoch"] < end]
    shown = first[-1] if first else record["reached"]
    each = record["split"]["training"] // record["recipe"]["batch"]
    steps = each if first else shown["step"]
    taken = len(first) * each if first else steps
    classes = len(al.data.CLASS_NAMES[record["dataset"]])
    seen = [row["validation_accuracy"] for row in first if row["validation_accuracy"] is not None]
    return [
        f"{rate:g}",
        f"{taken:,}",
        f"{shown['train_loss']:.2f}",
        f"{math.log(classes):.2f}",
        in_percent(shown["train_accuracy"], steps * record["recipe"]["batch"]),
        f"{100 / classes:g} %",
        in_percent(seen[-1], record["split"]["validation"]) if seen else "",
    ]


if __name__ == "__main__":
    print(state(), stages(), first_stages(), sep="\n\n")
