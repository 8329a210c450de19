"""What the commands `train` and `evaluate` of `python -m adjoint_lib` do, given their options.

Each returns whether all is as it should be. Results go to stdout, progress and messages to stderr.
TensorFlow is imported when a command runs.
"""

from __future__ import annotations

import argparse
import dataclasses
import json

from adjoint_lib import cli


def train(options: argparse.Namespace) -> bool:
    """Train, or go on training, and print what the trained weights are worth."""
    cli.import_tensorflow()
    from adjoint_lib.training import train as run
    from adjoint_lib.weights import provenance

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


def evaluate(options: argparse.Namespace) -> bool:
    """Print the test accuracy of a trained network, and whether its equivalent network agrees.

    True if both choose the same class for every image, but for ties within rounding.
    """
    cli.import_tensorflow()
    from adjoint_lib import data, evaluation, models
    from adjoint_lib.core import equivalent_net as topology

    images, labels = (
        data.sample(options.dataset) if options.sample else data.load(options.dataset, "test")
    )
    model = models.build(
        options.model,
        classes=len(data.CLASS_NAMES[options.dataset]),
        weights=options.weights or options.dataset,
        final_activation=False,
    )
    scores = evaluation.Scorer(model, options.model)(images, progress=True)
    others = evaluation.equivalent_scores(
        topology.equivalent(model), options.model, images, progress=True
    )
    found = evaluation.accuracy(scores, labels)
    differing = evaluation.disagreements(scores, others)
    hidden = int((scores.max(-1) <= 0).sum())
    if options.json:
        record = {
            "model": options.model,
            "dataset": options.dataset,
            "images": "sample" if options.sample else "test",
            "correct": found.correct,
            "count": found.count,
            "accuracy": found.value,
            "interval_95": found.interval(),
            "no_positive_score": hidden,
            "equivalent_disagrees": [dataclasses.asdict(one) for one in differing],
        }
        print(json.dumps(record, indent=1))
    else:
        print(f"{options.model} on {options.dataset}: {found}")
        print(f"no score above 0, so that a final ReLU hides the choice: {hidden} images")
        print(f"equivalent network chooses another class: {len(differing)} images")
        for one in differing:
            tie = "a tie within rounding" if one.tied else "NOT A TIE"
            print(f"  image {one.index}: {one.classes}, margin {one.margin:.1e}, {tie}")
    return all(one.tied for one in differing)
