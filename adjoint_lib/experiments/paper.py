"""The numbers that the paper states, read from its tables in `data/paper`."""

from __future__ import annotations

import csv
import functools

from adjoint_lib.errors import InputError
from adjoint_lib.experiments import resources


@functools.cache
def table(name: str) -> list[dict[str, str]]:
    """The rows of `data/paper/NAME.csv`, such as "training" or "percentages"."""
    with resources.path(f"paper/{name}.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def training(model: str, dataset: str) -> dict[str, str]:
    """The row of the training table: schedule and test accuracy of one network on one data set."""
    for row in table("training"):
        if (row["model"], row["dataset"]) == (model.replace("-", "_"), dataset):
            return row
    raise InputError(f"The paper has no schedule for model {model!r} on {dataset!r}.")


def accuracy(model: str, dataset: str) -> float:
    """The paper's test accuracy, in percent."""
    return float(training(model, dataset)["test_accuracy_percent"])


def statement(name: str) -> float:
    """A number that the paper states in its text, by its name in `data/paper/statements.csv`."""
    return float({row["name"]: row["value"] for row in table("statements")}[name])


def percentages(model: str, dataset: str) -> dict[str, float]:
    """The paper's shares of units with a relative error of at most 1 %, in percent, by layer.

    The table numbers the layers after the first: the convolutions in order, then the dense layer.
    """
    column = model.replace("-", "_")
    rows = (row for row in table("percentages") if row["dataset"] == dataset)
    *convolutions, dense = [float(row[column]) for row in rows if row[column]]
    return {f"conv{n}": share for n, share in enumerate(convolutions, 1)} | {"fc": dense}
