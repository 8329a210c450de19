"""`evaluate`: the test accuracy of a trained network, and whether its equivalent agrees."""

from __future__ import annotations

import argparse
import dataclasses

from adjoint_lib.cli.console import print_json
from adjoint_lib.cli.options import add_json, add_network, command
from adjoint_lib.experiments.machine import import_tensorflow


def add_options(parser: argparse.ArgumentParser) -> None:
    """The options of `evaluate`."""
    add_network(parser)
    parser.add_argument(
        "--weights",
        metavar="PATH.npz",
        help="a file of weights (default: those that come with the library)",
    )
    parser.add_argument(
        "--sample", action="store_true", help="on the embedded images instead of the full test set"
    )
    add_json(parser, "the counts")


@command(
    "evaluate",
    add_options,
    "Show the test accuracy of a trained network, and whether its equivalent network agrees.",
    """
    examples:
      {program} evaluate --model vgg7 --dataset cifar10 --sample
      {program} evaluate --model vgg7 --dataset cifar10 --weights my.npz

    The accuracy comes with its 95 percent interval. The exit code is 0 if the equivalent
    network chooses the same class for every image, but for ties within rounding, and 1 if not.
    """,
)
def evaluate(options: argparse.Namespace) -> bool:
    """Print the test accuracy of a trained network, and whether its equivalent network agrees.

    True if both choose the same class for every image, but for ties within rounding.
    """
    import_tensorflow()
    from adjoint_lib.experiments import data, models
    from adjoint_lib.experiments.training import evaluation
    from adjoint_lib.frontend.equivalent import equivalent

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
    others = evaluation.equivalent_scores(equivalent(model), options.model, images, progress=True)
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
        print_json(record)
    else:
        print(f"{options.model} on {options.dataset}: {found}")
        print(f"no score above 0, so that a final ReLU hides the choice: {hidden} images")
        print(f"equivalent network chooses another class: {len(differing)} images")
        for one in differing:
            tie = "a tie within rounding" if one.tied else "NOT A TIE"
            print(f"  image {one.index}: {one.classes}, margin {one.margin:.1e}, {tie}")
    return all(one.tied for one in differing)
