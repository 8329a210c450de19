"""What each ingredient of the fast recipe is worth: short training runs with it and without it.

    python -m benchmarks.ingredients --model vgg7 --epochs 10

Runs are compared by their validation accuracy, never by test images, and what costs less time gets
as much of it: without small images there are fewer epochs. Each run can be stopped and goes on with
the same command; the result is written when all have ended.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict, replace
from pathlib import Path

from adjoint_lib import cli
from adjoint_lib.errors import DivergedError
from adjoint_lib.files import replacing
from adjoint_lib.recipes import IMAGE_SIZE, Recipe, ingredients, recipe

ROOT = Path(__file__).resolve().parent.parent
KERNEL_RATE = recipe("fast", "resnet20", "cifar10").kernel_rate  # of orthogonal steps


def variants(fast: Recipe, normalised: bool) -> dict[str, Recipe]:
    """The recipe, and the recipe without each of its ingredients, for about the same time.

    Orthogonal steps are put in where the recipe has none, if the network suits them as they are.

    normalised: whether the network has batch normalisation.
    """
    cost = sum((fast.size(epoch) / IMAGE_SIZE) ** 2 for epoch in range(fast.epochs))
    large = replace(fast, sizes=((0, IMAGE_SIZE),))
    decay = None if fast.kernel_decay is None else 0.0
    found = {
        "fast": fast,
        "all images at 32 pixels": large.stretched(round(cost)),
        "no weight decay": replace(fast, l2=0.0, kernel_decay=decay),
        "no momentum": replace(fast, momentum=0.0),
    }
    if normalised:
        found["running statistics over 10 batches"] = replace(fast, norm_momentum=None)
    if fast.kernel_rate is not None:
        plain = replace(fast, kernel_rate=None, kernel_decay=None)
        slower = tuple((epoch, rate / 2) for epoch, rate in fast.rates)
        found["no orthogonal steps"] = plain
        found["no orthogonal steps, half the rates"] = replace(plain, rates=slower)
    elif normalised:
        found["orthogonal steps as well"] = replace(fast, kernel_rate=KERNEL_RATE)
    return found


def main(arguments: list[str] | None = None) -> int:
    options = _options(arguments)
    cli.import_tensorflow()

    fast = recipe("fast", options.model, options.dataset).stretched(options.epochs)
    found = {}
    for name, variant in variants(fast, normalised(options.model)).items():
        cli.note(f"{name}: {variant.epochs} epochs")
        folder = options.folder / name.replace(" ", "-")
        found[name] = run(options, replace(variant, name=name), folder)
    chosen = {name: getattr(options, name) for name in ("model", "dataset", "epochs")}
    words = [f"--{name} {value}" for name, value in chosen.items()]
    command = " ".join(["python -m benchmarks.ingredients", *words])
    facts = {"command": command, **chosen, "seed": 0, "runs": found}
    output = options.output or ROOT / "data" / "results" / f"ingredients-{options.model}.json"
    with replacing(output) as file:
        file.write(json.dumps(facts, indent=1).encode() + b"\n")
    print(ingredients(output))
    cli.note(f"result: {output}")
    return 0


def normalised(model: str) -> bool:
    """Whether a network has batch normalisation."""
    from keras.layers import BatchNormalization

    from adjoint_lib import models

    return any(isinstance(layer, BatchNormalization) for layer in models.build(model).layers)


def run(options: argparse.Namespace, variant: Recipe, folder: Path) -> dict:
    """What came of one variant: its accuracy, or that it diverged."""
    from adjoint_lib.training import train
    from adjoint_lib.weights import provenance

    try:
        path = train(options.model, options.dataset, variant, 0, folder, sample=options.sample)
    except DivergedError as error:
        return {"epochs": variant.epochs, "diverged": str(error), "recipe": asdict(variant)}
    record = provenance(path)
    return {
        "epochs": variant.epochs,
        "validation": record["accuracy"]["validation"],
        "cpu_seconds": record["time"]["cpu_seconds"],
        "recipe": record["recipe"],
        "versions": record["versions"],
    }


def _options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.ingredients",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--model", default="vgg7")
    parser.add_argument("--dataset", default="cifar10")
    parser.add_argument("--epochs", type=int, default=10, help="of the recipe (default: 10)")
    parser.add_argument("--folder", type=Path, default=Path("runs/ingredients"), help="of the runs")
    parser.add_argument("--sample", action="store_true", help="the embedded images, to try it out")
    parser.add_argument(
        "--output", type=Path, help="a JSON file (default: data/results/ingredients-MODEL.json)"
    )
    return parser.parse_args(arguments)


if __name__ == "__main__":
    raise SystemExit(main())
