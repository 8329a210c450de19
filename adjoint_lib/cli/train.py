"""`train`: train one of the paper's networks, or go on with its training."""

from __future__ import annotations

import argparse

from adjoint_lib.cli.options import RECIPES, add_network, command, path, whole
from adjoint_lib.experiments.machine import import_tensorflow


def add_options(parser: argparse.ArgumentParser) -> None:
    """The options of `train`."""
    add_network(parser)
    parser.add_argument(
        "--recipe",
        choices=RECIPES,
        default=RECIPES[0],
        help=f"fewest CPU minutes, or the paper's own description (default: {RECIPES[0]})",
    )
    parser.add_argument(
        "--seed",
        type=whole(0),
        default=0,
        metavar="N",
        help="of initial weights, split, order and augmentation (default: 0)",
    )
    parser.add_argument(
        "--epochs", type=whole(1), metavar="N", help="stretch or shrink the recipe to so many"
    )
    parser.add_argument(
        "--folder",
        type=path,
        metavar="FOLDER",
        help="of the run (default: runs/MODEL-DATASET-RECIPE-SEED)",
    )
    parser.add_argument(
        "--sample", action="store_true", help="train on the few embedded images, to try it out"
    )


@command(
    "train",
    add_options,
    "Train one of the paper's networks, or go on with a training that was stopped.",
    """
    examples:
      {program} train --model vgg7 --dataset cifar10
      {program} train --model vgg7 --dataset cifar10 --sample --epochs 4

    The run's folder holds its checkpoint, written every two minutes, log.csv, record.json (what
    computed it so far) and, when it has ended, MODEL-DATASET.npz (the weights with the best
    validation accuracy) with a .json that says where they come from. However a run was stopped,
    the same command goes on with it, also on another machine that has the folder.
    """,
)
def train(options: argparse.Namespace) -> bool:
    """Train, or go on training, and print what the trained weights are worth."""
    import_tensorflow()
    from adjoint_lib.experiments.training import train as run
    from adjoint_lib.experiments.weights import provenance

    path = run(
        options.model,
        options.dataset,
        options.recipe,
        options.seed,
        options.folder,
        options.epochs,
        options.sample,
    )
    print(f"weights: {path}")
    for name, found in provenance(path)["accuracy"].items():
        low, high = found["interval_95"]
        print(f"{name}: {found['value']:.2%} (95 % interval {low:.2%} to {high:.2%})")
    return True
