"""The record of a training run: how it is made again, what computed it, how far it has come.

It is the ``.json`` beside trained weights, and ``record.json`` in the folder of a run on its way.
"""

from __future__ import annotations

import hashlib
from dataclasses import asdict

import numpy as np
import tensorflow as tf

from adjoint_lib._storage import read_json
from adjoint_lib.experiments import machine, resources
from adjoint_lib.experiments.data.cifar import DATASETS
from adjoint_lib.experiments.training.evaluation import Accuracy
from adjoint_lib.experiments.training.recipes import RECIPES
from adjoint_lib.experiments.training.recipes import recipe as named_recipe

RECORD = "record.json"


def training_record(
    settings: dict,
    progress: dict,
    training: np.ndarray,
    validation: np.ndarray,
    accuracies: dict[str, Accuracy],
) -> dict:
    """All that is needed to make the weights again, and what they are worth so far.

    Args:
        settings, progress: of the run, as in a checkpoint's notes.
        training, validation: indices of these images.
        accuracies: of the selected weights, in inference mode on unchanged images, by split; none
            before the run has ended.
    """
    log = progress["log"]
    shares = [row["input_share"] for row in log]
    return {
        "command": command(settings),
        "model": settings["model"],
        "dataset": settings["dataset"],
        "seed": settings["seed"],
        "recipe": settings["recipe"],
        "reached": _reached(progress, settings["recipe"]["batch"]),
        "selected_epoch": progress["best_epoch"],
        "accuracy": {
            name: {
                "value": found.value,
                "correct": found.correct,
                "count": found.count,
                "interval_95": [round(end, 5) for end in found.interval()],
            }
            for name, found in accuracies.items()
        },
        "split": {
            "training": len(training),
            "validation": len(validation),
            "validation_indices_sha256": hashlib.sha256(
                validation.astype("<i8").tobytes()
            ).hexdigest(),
        },
        "data": data_digests(settings),
        "time": {
            "wall_seconds": round(progress["seconds"], 1),
            "cpu_seconds": round(progress["cpu_seconds"], 1),
            "cores": machine.cores(),
            "gpus": len(tf.config.list_physical_devices("GPU")),
            "sittings": progress["sittings"],
            "input_share": round(float(np.mean(shares)), 4) if shares else None,
        },
        "versions": machine.versions(),
        "sessions": progress["machines"],
        "curve": log,
    }


def _reached(progress: dict, batch: int) -> dict:
    """Where the run is, with the mean loss and accuracy of the present epoch's steps so far."""
    step = progress["step"]
    found = {"epoch": progress["epoch"], "step": step}
    if step:
        found["train_loss"] = round(progress["loss_sum"] / step, 5)
        found["train_accuracy"] = round(progress["correct"] / (step * batch), 5)
    return found


def kept(model: str, dataset: str, recipe: str = "paper", seed: int = 0) -> dict | None:
    """The record of a run whose folder comes with the library in `data/runs`; None if none does.

    It is that of the trained weights if the run has ended, and otherwise says how far it has come.
    """
    folder = f"runs/{model}-{dataset}-{recipe}-{seed}"
    for name in (f"{folder}/{model}-{dataset}.json", f"{folder}/{RECORD}"):
        if resources.has(name):
            what = "the record of a training run", "Restore it from the repository."
            return read_json(resources.path(name), *what)
    return None


def command(settings: dict) -> str:
    """The command that starts, or continues, the run with these settings."""
    recipe, seed = settings["recipe"], settings["seed"]
    model, dataset, name, epochs = (
        settings["model"],
        settings["dataset"],
        recipe["name"],
        recipe["epochs"],
    )
    known = named_recipe(name, model, dataset) if name in RECIPES else None
    if known is None or asdict(known.stretched(epochs)) != recipe:
        return f"adjoint_lib.training.train({model!r}, {dataset!r}, <the recipe below>, {seed})"
    words = f"python -m adjoint_lib train --model {model} --dataset {dataset}"
    words += f" --recipe {name} --seed {seed}"
    words += f" --epochs {epochs}" * (epochs != known.epochs)
    return words + " --sample" * settings["sample"]


def data_digests(settings: dict) -> dict[str, str]:
    """The sha256 of every data file that the run has read."""
    dataset = DATASETS[settings["dataset"]]
    files = (dataset.sample,) if settings["sample"] else dataset.files
    return {file.name: file.sha256 for file in files}
