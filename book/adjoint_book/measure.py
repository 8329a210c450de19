"""What the chapter "What it is good for" measures at full scale, and stores in data/results.

    python -m adjoint_book.measure decisions --model vgg7 --dataset cifar10 --images 10000
    python -m adjoint_book.measure boundary --model vgg7 --dataset cifar10 --images 300
    python -m adjoint_book.measure attributions --model vgg7 --dataset cifar10 --images 300

A file grows by some images at a time, so the same command goes on where it was stopped.
"""

from __future__ import annotations

import argparse
import json
import shlex
import sys
import time
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from adjoint_lib._storage import read_json, replacing
from adjoint_lib.errors import AdjointError, DataError, InputError

Columns = dict[str, Any]  # a list with an entry for each image, or a text with a letter for each

BATCHES = {"decisions": 500, "boundary": 20, "attributions": 20}  # images at a time
DELETED = (  # H orders the pixels as gradient × input does
    "gradient × input",
    "integrated gradients",
    "Grad-CAM",
    "LRP-ε",
    "FullGrad",
    "random pixels",
    "random clouds",
)
DEFAULTS = {"decisions": 10_000, "boundary": 300, "attributions": 300}


def decisions(net: Any, images: np.ndarray, labels: np.ndarray) -> Columns:
    """A hexadecimal digit for each image: see `adjoint_book.decisions`."""
    from adjoint_book.decisions import decisions, split

    return {"digits": decisions(*split(net, images), labels).digits}


def boundary(net: Any, images: np.ndarray, labels: np.ndarray) -> Columns:
    """How far away another class is: by one hypersurface a step, DeepFool, projected gradient."""
    from adjoint_book.boundary import SCORES, smallest_ball, walk

    exact = net.astype("float64")
    images64 = images.astype(float)
    classes = exact.value(images64)[SCORES].numpy().argmax(1)
    one, all_ = (walk(exact, images64, classes, nearest=nearest) for nearest in (False, True))
    ball = smallest_ball(net, images, classes, 2 * one.distances)
    return {
        "one H a step": _rounded(one.distances),
        "steps": one.steps.tolist(),
        "DeepFool": _rounded(all_.distances),
        "DeepFool steps": all_.steps.tolist(),
        "projected gradient": _rounded(ball),
    }


def attributions(net: Any, images: np.ndarray, labels: np.ndarray) -> Columns:
    """What each method accounts for, and how long its deletions leave the class as it is."""
    from adjoint_book import attributions as methods

    classes = net.value(images)[methods.SCORES].numpy().argmax(1)
    scores, found = methods.attribute(net, images, classes)
    columns: Columns = {"score": _rounded(scores)}
    for name, each in found.items():
        columns[f"{name}: pixels"] = _rounded(each.total - each.biases)
        columns[f"{name}: biases"] = _rounded(each.biases)
    fill = grey()
    for name in DELETED:
        kept = methods.deletion(net, images, classes, order(net, images, classes, name), fill)
        columns[f"{name}: kept"] = ["".join(map(str, map(int, row))) for row in kept]
    return columns


def order(net: Any, images: np.ndarray, classes: np.ndarray, name: str) -> np.ndarray:
    """The map by which pixels are deleted: a method's, or random numbers seeded by the image."""
    from adjoint_book.attributions import enlarged, shown

    if not name.startswith("random"):
        return shown(net, images, classes, name)
    size = images.shape[1:3] if name == "random pixels" else (4, 4)
    seeds = (zlib.crc32(image.tobytes()) for image in images)
    return enlarged(
        np.stack([np.random.default_rng(s).random(size) for s in seeds]), images.shape[1:3]
    )


def grey() -> np.ndarray:
    """The mean colour of the embedded images."""
    from adjoint_lib.experiments import data

    return data.sample("cifar10")[0].mean((0, 1, 2))


MEASURES: dict[str, Callable[[Any, np.ndarray, np.ndarray], Columns]] = {
    "decisions": decisions,
    "boundary": boundary,
    "attributions": attributions,
}


def load(what: str, model: str, dataset: str) -> dict[str, Any]:
    """A stored measurement: its columns by name, "images" and "provenance"."""
    from adjoint_lib.experiments import resources

    path = resources.path(f"results/{what}-{model}-{dataset}.json")
    return read_json(
        path, "a measurement", f"Compute it: python -m adjoint_book.measure {what} ..."
    )


def network(model: str, dataset: str) -> Any:
    """One of the six trained networks."""
    from adjoint_lib.experiments import models
    from adjoint_lib.frontend.equivalent import equivalent

    return equivalent(models.build(model, weights=dataset))


def measure(options: argparse.Namespace) -> Path:
    """Measure what is missing of the file, and write it after every few images."""
    from tqdm.auto import tqdm

    from adjoint_lib.experiments import data, models

    net = network(options.model, options.dataset)
    if options.sample:
        images, labels = data.sample(options.dataset)
    else:
        images, labels = data.load(options.dataset, "test")
    if options.model == "resnet20-fixup" and options.what != "decisions":
        raise InputError(
            f"{options.what}: expected a network that takes images, got {options.model}."
        )
    if not 0 < options.images <= len(images):
        raise InputError(f"--images: expected 1 to {len(images)}, got {options.images}.")
    images = models.preprocess(options.model, images[: options.images])
    path = options.output / f"{options.what}-{options.model}-{options.dataset}.json"
    origin = _origin(options, net, images)
    record = _stored(path, origin)
    done, step = record["images"], BATCHES[options.what]
    with tqdm(total=len(images), initial=done, unit="image", desc=path.stem) as bar:
        for first in range(done, len(images), step):
            began, some = time.process_time(), slice(first, first + step)
            found = MEASURES[options.what](net, images[some], labels[some])
            for name, new in found.items():
                record["columns"][name] = record["columns"].get(name, type(new)()) + new
            record["images"] += len(images[some])
            record["provenance"]["cpu_seconds"] += time.process_time() - began
            _write(path, record)
            bar.update(len(images[some]))
    return path


def _origin(options: argparse.Namespace, net: Any, images: np.ndarray) -> dict[str, Any]:
    """Where the numbers come from, but for the time that they took."""
    from adjoint_lib.experiments import machine, resources, runs
    from adjoint_lib.experiments.weights import provenance

    weights = f"{options.model}-{options.dataset}.npz"
    command = ["python", "-m", "adjoint_book.measure", options.what, "--model", options.model]
    command += ["--dataset", options.dataset, "--images", str(options.images)]
    return {
        "command": shlex.join(command),
        "weights": {
            "file": weights,
            "sha256": provenance(resources.path(f"weights/{weights}"))["sha256"],
            "network_sha256": net.digest,
        },
        "images": {"split": "test", "count": len(images), "sha256": runs.images_digest(images)},
        "processor": machine.processor(),
        "versions": machine.versions(),
    }


def _stored(path: Path, origin: dict[str, Any]) -> dict[str, Any]:
    """The file as far as it goes, if it is of the same command, weights and images; else empty."""
    if not path.exists():
        return {"provenance": {**origin, "cpu_seconds": 0.0}, "images": 0, "columns": {}}
    record = read_json(path, "a measurement", "Remove it.")
    there = record["provenance"]
    different = [key for key in ("command", "weights", "images") if there[key] != origin[key]]
    if different:
        raise DataError(
            f"{path}: expected the same {', '.join(different)} as now, found others. Name another "
            "folder, or remove the file."
        )
    return record


def _write(path: Path, record: dict[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    columns = (f"  {json.dumps(n)}: {json.dumps(c)}" for n, c in record["columns"].items())
    head = json.dumps({key: record[key] for key in ("provenance", "images")}, indent=1)
    text = head.rstrip("}\n") + ',\n "columns": {\n' + ",\n".join(columns) + "\n }\n}\n"
    with replacing(path) as file:
        file.write(text.encode())


def _rounded(numbers: np.ndarray) -> list[float]:
    """Six significant digits of each."""
    return [float(f"{number:.6g}") for number in numbers]


def main(arguments: list[str] | None = None) -> int:
    """Measure what the command line asks for."""
    options = _options(arguments)
    options.images = options.images or DEFAULTS[options.what]
    try:
        print(measure(options))
    except AdjointError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


def _options(arguments: list[str] | None) -> argparse.Namespace:
    from adjoint_lib.cli.options import DATASETS, MODELS

    parser = argparse.ArgumentParser(
        prog="python -m adjoint_book.measure",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("what", choices=list(MEASURES))
    parser.add_argument("--model", choices=MODELS, required=True)
    parser.add_argument("--dataset", choices=DATASETS, required=True)
    parser.add_argument("--images", type=int, help="of the test split, from its first on")
    parser.add_argument("--sample", action="store_true", help="the images that come with the book")
    parser.add_argument("--output", type=Path, default=Path("data/results"), help="a folder")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
