"""Where trained weights come from: the record kept in the ``.json`` beside them."""

from __future__ import annotations

import hashlib
from dataclasses import asdict

import numpy as np
import tensorflow as tf

from adjoint_lib.experiments import machine
from adjoint_lib.experiments.data.cifar import DATASETS
from adjoint_lib.experiments.training.evaluation import Accuracy
from adjoint_lib.experiments.training.recipes import RECIPES
from adjoint_lib.experiments.training.recipes import recipe as named_recipe


def training_record(
    settings: dict,
    progress: dict,
    training: np.ndarray,
    validation: np.ndarray,
    accuracies: dict[str, Accuracy],
) -> dict:
    """All that is needed to make the weights again, and what they are worth.

    Args:
        settings, progress: of the run, as in a checkpoint's notes.
        training, validation: indices of these images.
        accuracies: of the selected weights, in inference mode on unchanged images, by split.
    """
    log = progress["log"]
    steps = [row["input_share"] for row in log]
    return {
        "command": command(settings),
        "model": settings["model"],
        "dataset": settings["dataset"],
        "seed": settings["seed"],
        "recipe": settings["recipe"],
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
            "input_share": round(float(np.mean(steps)), 4),
        },
        "versions": machine.versions(),
        "curve": log,
    }


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
