"""What each ingredient of the fast recipe is worth: training runs with it and without it.

    python -m benchmarks.ingredients --model vgg7 --epochs 10 --seeds 3

Runs are compared by their validation accuracy, never by test images, and what costs less time gets
as much of it: without small images there are fewer epochs. Each run can be stopped and goes on with
the same command. The result is written after each; what it holds already is not run again, so more
seeds, or some more of one variant, can be added to it. With as many epochs as the recipe has,
`fast` is the run that made the stored weights.
"""

from __future__ import annotations

import argparse
import itertools
import json
import shlex
from dataclasses import asdict, replace
from pathlib import Path

from adjoint_book.tables import ingredients
from adjoint_lib._storage import replacing
from adjoint_lib.cli.console import note
from adjoint_lib.errors import DivergedError, InputError
from adjoint_lib.experiments.machine import import_tensorflow
from adjoint_lib.experiments.training.recipes import IMAGE_SIZE, Recipe, recipe

ROOT = Path(__file__).resolve().parent.parent
KERNEL_RATE = recipe("fast", "resnet20", "cifar10").kernel_rate  # of orthogonal steps

NORM_MOMENTUM = 0.99  # of every batch normalisation in `models`


def recorded(record: dict) -> Recipe:
    """The recipe that a record holds as plain numbers and text.

    Records of earlier versions also name the momentum of batch normalisation's running statistics,
    which was an option then. It is the models' own now, and a run with another is refused.
    """
    if record.get("norm_momentum", NORM_MOMENTUM) != NORM_MOMENTUM:
        raise InputError(
            f"expected running statistics of momentum {NORM_MOMENTUM}, as the models have, found "
            f"a run with {record['norm_momentum']}: no recipe describes it."
        )
    fields = {name: value for name, value in record.items() if name != "norm_momentum"}
    for name in ("rates", "sizes"):
        fields[name] = tuple(map(tuple, fields[name]))
    return Recipe(**fields)


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
        "no crop, no flip": replace(fast, augmentation="none"),
    }
    if fast.kernel_rate is not None:
        plain = replace(fast, kernel_rate=None, kernel_decay=None)
        slower = tuple((epoch, rate / 2) for epoch, rate in fast.rates)
        found["no orthogonal steps"] = plain
        found["no orthogonal steps, half the rates"] = replace(plain, rates=slower)
    elif normalised:
        found["orthogonal steps as well"] = replace(fast, kernel_rate=KERNEL_RATE)
    return {name: replace(variant, name=name) for name, variant in found.items()}


def main(arguments: list[str] | None = None) -> int:
    options = _options(arguments)
    import_tensorflow()

    fast = recipe("fast", options.model, options.dataset).stretched(options.epochs)
    planned = variants(fast, normalised(options.model))
    for name in options.variants or ():
        if name not in planned:
            raise InputError(f"No variant is called {name!r}; there are {', '.join(planned)}.")
    output = options.output or ROOT / "data" / "results" / _name(options)
    chosen = {name: getattr(options, name) for name in ("model", "dataset", "epochs")}
    found = stored(output, chosen, planned)
    for name, seed in itertools.product(options.variants or planned, range(options.seeds)):
        if (name, seed) in found:
            note(f"{name}, seed {seed}: in {output} already")
            continue
        note(f"{name}, seed {seed}: {planned[name].epochs} epochs")
        folder = options.folder / f"{name.replace(' ', '-')}-{seed}"
        found[name, seed] = run(options, planned[name], seed, folder)
        save(output, chosen, planned, found)
    print(ingredients(path=output))
    note(f"result: {output}")
    return 0


def _name(options: argparse.Namespace) -> str:
    return f"ingredients-{options.model}-{options.dataset}-{options.epochs}.json"


Found = dict[tuple[str, int], dict]  # what came of a variant with a seed


def stored(path: Path, chosen: dict, planned: dict[str, Recipe]) -> Found:
    """What a result holds already; it must be of the same network, data set, epochs and recipes."""
    if not path.exists():
        return {}
    content = json.loads(path.read_text())
    there = {name: content.get(name) for name in chosen}
    found = {(run["recipe"]["name"], run["seed"]): run for run in content["runs"]}
    same = all(recorded(run["recipe"]) == planned.get(name) for (name, _), run in found.items())
    if there != chosen or not same:
        raise InputError(
            f"{path} holds runs of {there} or of other recipes, expected {chosen}. Name another "
            "file for these, or remove that."
        )
    return found


def save(path: Path, chosen: dict, planned: dict[str, Recipe], found: Found) -> None:
    """Write the runs, in the order of the plan and of their seeds, and the command for them all."""
    names = list(planned)
    keys = sorted(found, key=lambda key: (names.index(key[0]), key[1]))
    content = {"command": _command(chosen, keys), **chosen, "runs": [found[key] for key in keys]}
    with replacing(path) as file:
        file.write(json.dumps(content, indent=1).encode() + b"\n")


def _command(chosen: dict, keys: list[tuple[str, int]]) -> str:
    """A command that makes all of these runs, and no other variant."""
    options = [word for name, value in chosen.items() for word in (f"--{name}", str(value))]
    seeds = max(seed for _, seed in keys) + 1
    names = dict.fromkeys(name for name, _ in keys)
    program = ["python", "-m", "benchmarks.ingredients"]
    return shlex.join([*program, *options, "--seeds", str(seeds), "--variants", *names])


def normalised(model: str) -> bool:
    """Whether a network has batch normalisation."""
    from keras.layers import BatchNormalization

    from adjoint_lib.experiments import models

    return any(isinstance(layer, BatchNormalization) for layer in models.build(model).layers)


def run(options: argparse.Namespace, variant: Recipe, seed: int, folder: Path) -> dict:
    """What came of one variant: its accuracy, or that it diverged.

    The run that made the weights which come with the library is not made again.
    """
    from adjoint_lib.experiments.models import trained
    from adjoint_lib.experiments.training.run import train
    from adjoint_lib.experiments.weights import provenance

    facts = {"seed": seed, "recipe": asdict(variant)}
    record = None if options.sample else trained(options.model).get(options.dataset)
    if record is None or (recorded(record["recipe"]), record["seed"]) != (variant, seed):
        try:
            path = train(
                options.model, options.dataset, variant, seed, folder, sample=options.sample
            )
        except DivergedError as error:
            return {**facts, "diverged": str(error)}
        record = provenance(path)
    return {
        **facts,
        "train": record["accuracy"]["train"],
        "validation": record["accuracy"]["validation"],
        "cpu_seconds": record["time"]["cpu_seconds"],
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
    parser.add_argument("--seeds", type=int, default=1, help="how many, from 0 (default: 1)")
    parser.add_argument("--variants", nargs="+", help="only these, by name (default: all)")
    parser.add_argument("--folder", type=Path, default=Path("runs/ingredients"), help="of the runs")
    parser.add_argument("--sample", action="store_true", help="the embedded images, to try it out")
    parser.add_argument(
        "--output",
        type=Path,
        help="a JSON file (default: data/results/ingredients-MODEL-DATASET-EPOCHS.json)",
    )
    return parser.parse_args(arguments)


if __name__ == "__main__":
    try:
        raise SystemExit(main())
    except InputError as error:
        raise SystemExit(f"error: {error}") from None
