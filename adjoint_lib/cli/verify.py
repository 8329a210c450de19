"""What the command `verify` of `python -m adjoint_lib` does, given its options.

It returns whether every unit is within its rounding bound. The report goes to stdout, progress and
messages to stderr. TensorFlow is imported when all that can be checked without it is in order.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

from adjoint_lib.cli.console import equivalent_of, load_model, note, print_json
from adjoint_lib.cli.images import read_images
from adjoint_lib.cli.options import DATASETS, add_json, add_model, command, path, positive, whole
from adjoint_lib.errors import AdjointError, DataError, InputError, UnsupportedLayer
from adjoint_lib.experiments import paper, resources
from adjoint_lib.experiments.machine import import_tensorflow

if TYPE_CHECKING:
    import keras
    import numpy as np

    from adjoint_lib.core.equivalent_net import EquivalentNet
    from adjoint_lib.experiments.results import Result
    from adjoint_lib.experiments.runs import Compute, Outcome
    from adjoint_lib.verification.report import Report
    from adjoint_lib.verification.verify import Plan

DEFAULT_IMAGES = 2
AGAINST_MODEL = 16  # images on which the network is compared with the Keras model itself


def add_options(parser: argparse.ArgumentParser) -> None:
    """The options of `verify`."""
    add_model(parser)
    parser.add_argument(
        "--weights",
        metavar="cifar10|cifar100|random|PATH.npz",
        help="the trained ones of --model, random ones, or a file of weights (default: for --model "
        "the trained ones, random ones while there are none; for --file its own)",
    )
    parser.add_argument(
        "--seed", type=whole(0), metavar="N", help="of --weights random (default: 0)"
    )
    parser.add_argument(
        "--dataset",
        choices=DATASETS,
        help="whose test images (default: that of --weights, or cifar10); --file gets their pixels "
        "in [0, 1]",
    )
    parser.add_argument(
        "--data",
        type=path,
        metavar="FILE.npy|FOLDER",
        help="images of your own in place of a test set, scaled as in training, or a folder of "
        ".npy files and pictures; bytes become numbers in [0, 1]",
    )
    parser.add_argument(
        "--images",
        type=whole(1),
        metavar="N",
        help="how many, from the first on (default: 2, or the one that --data has)",
    )
    parser.add_argument(
        "--full",
        action="store_true",
        help="fetch the full test set if it is not here; without it, the embedded sample will do",
    )
    parser.add_argument(
        "--layers", metavar="A,B|all", help="by default every layer but the first, whose J is 1"
    )
    parser.add_argument(
        "--mode",
        choices=("RM2", "RM0"),
        help="only the convolutions (RM2) or only the dense layers (RM0)",
    )
    parser.add_argument(
        "--units", type=whole(1), metavar="N", help="take N units of each layer, drawn at random"
    )
    parser.add_argument(
        "--method",
        choices=("hypersurface", "tangent"),
        default="hypersurface",
        help="through each unit's own H (default), or all at once along [x; x_b], much faster",
    )
    parser.add_argument(
        "--dtype", choices=("float32", "float64"), help="of all computing (default: the model's)"
    )
    parser.add_argument(
        "--k",
        type=positive,
        default=0.125,
        metavar="K",
        help="J is taken at K [x; x_b] (default: 0.125)",
    )
    parser.add_argument(
        "--weights-rounded",
        choices=("bfloat16",),
        help="take H from weights rounded to so few bits, and compare with the full ones",
    )
    parser.add_argument(
        "--folder",
        type=path,
        metavar="FOLDER",
        help="of the run (default: runs/verify-NET-METHOD-DIGEST; none for a single shard)",
    )
    where = parser.add_mutually_exclusive_group()
    where.add_argument(
        "--workers", type=whole(1), metavar="N", help="compute in N processes of this machine"
    )
    where.add_argument(
        "--scheduler", metavar="tcp://HOST:PORT", help="compute on the Dask cluster there"
    )
    parser.add_argument(
        "--threads",
        type=whole(1),
        metavar="N",
        help="that TensorFlow uses in each process (default: as many as cores here); sums are "
        "rounded in an order that depends on it, so it is part of what a run is",
    )
    parser.add_argument(
        "--output",
        metavar="RESULT.json",
        help="also write the report there, with all that made it; a trained --model's goes under "
        "its own name if this is a folder",
    )
    parser.add_argument(
        "--onto",
        metavar="RESULT.json",
        help="go on from the result of the same verification on fewer images: only those that it "
        "has not are computed, and the report is of them all",
    )
    add_json(parser, "the report")


@command(
    "verify",
    add_options,
    "Reconstruct every unit of a network on test images, and compare it with the network.",
    """
    examples:
      {program} verify --model vgg7
      {program} verify --file my.keras --layers conv1,conv2 --dtype float64
      {program} verify --file my.keras --data photos.npy --images 5 --units 200
      {program} verify --model resnet20 --method tangent --full --images 10000 --output r.json
      {program} verify --model vgg7 --full --images 2000 --mode RM2 --workers 4

    Many images are divided into shards. Each is saved in the run's folder when it is done, and
    however a run was stopped, the same command goes on with it. With --workers or --scheduler,
    Dask computes the shards in several processes or on a cluster (pip install
    adjoint_lib[cluster]); the report is the same to the bit, on machines alike.

    From 30 images on, the table has 95 percent intervals. They allow for the units of one image
    being correlated. For trained weights, the paper's percentages stand beside ours.

    The exit code is 0 if every unit is within its rounding bound, 1 if not. The bound is held
    against the unit's rounding scale A (rigorous, but loose in deep layers) and against the
    largest value of the layer.
    """,
)
def verify(options: argparse.Namespace) -> bool:
    """Verify a network on test images, show the report and, if asked to, write it."""
    _settle(options)
    output = _writable(options)
    if options.workers or options.scheduler:
        from adjoint_lib.experiments import cluster

        cluster.require()
    found = None if options.data else _images(options)
    import_tensorflow()
    from adjoint_lib.experiments import machine, models, results, runs

    if options.threads:
        machine.use_threads(options.threads)
    model = _model(options)
    plan = _plan(options, model)
    images, origin = found or _own_images(options, plan)
    if images.shape[1:] != plan.net.input_shape:
        raise InputError(
            f"expected a network that takes images of shape {images.shape[1:]}, as the data sets "
            f"have, but '{plan.net.name}' takes {plan.net.input_shape}. Give images of your own: "
            "--data FILE.npy."
        )
    if options.model:
        images = models.preprocess(options.model, images)
    before = _before(options, plan, images)
    rest = images[before.report.images if before else 0 :]
    folder = options.folder
    if folder is None and len(rest) > runs.shard_size(plan):
        folder = runs.default_folder(plan, rest)
    if not _agrees(plan.net, images[:AGAINST_MODEL], model):
        return False
    note(f"verifying {plan.net!r} by the {plan.method} method")
    if folder is not None:
        note(f"shards are kept in {folder}; after any stop the same command goes on")
    outcome = runs.run(plan, rest, folder, _compute(options, model))
    if before and (outcome.processor or {}).get("rounding") != _rounding(before):
        raise InputError(
            f"--onto {options.onto}: the shards in {folder} were not computed on a processor that "
            "rounds as that of the result. Name another folder."
        )
    report = before.report + outcome.report if before else outcome.report
    try:
        if output:
            record = _provenance(options, origin, plan, images, outcome)
            if before:
                record["continues"] = before.provenance
            _write(output, results.Result(report, record))
    finally:  # an unwritable file must not cost the result
        _show(options, report)
    return report.passed


def _agrees(net: EquivalentNet, images: np.ndarray, model: keras.Model) -> bool:
    """Whether the network gives what the Keras model gives; says by how much they differ."""
    from adjoint_lib.verification.verify import compare_with_model

    try:
        errors = compare_with_model(net, images, model)
    except (InputError, UnsupportedLayer):
        raise
    except AdjointError as difference:
        note(str(difference))
        return False
    note(
        f"the Keras model agrees on {len(images)} images: its layers differ by at most "
        f"{max(errors.values(), default=0.0):.2g} of what rounding allows"
    )
    return True


def _write(output: Path, result: Result) -> None:
    from adjoint_lib.experiments import results

    try:
        results.write(output, result)
    except OSError as error:
        raise InputError(
            f"--output {output}: could not be written ({error}). The report is on stdout."
        ) from error
    note(f"result: {output}")


def _show(options: argparse.Namespace, report: Report) -> None:
    """Print the report, beside the paper's numbers if it has any, and name what has not passed."""
    if options.json:
        print_json(report.to_dict())
    else:
        known = _of_the_paper(options)
        theirs = paper.percentages(options.model, options.dataset) if known else None
        print(report.text(theirs))
    beyond = [
        f"{layer} (worst {r.worst:.3g} u A and {r.normwise:.3g} u max|c|, bound {r.bound:.3g})"
        for layer, r in report.layers.items()
        if not r.passed
    ]
    if beyond:
        note(f"units beyond the rounding bound: {', '.join(beyond)}.")


# ------------------------------------------------------------------ what the options mean


def _settle(options: argparse.Namespace) -> None:
    """Put the data set and the weights into the options that are to be used, if none were given.

    Weights stay None for those of a file itself.
    """
    from adjoint_lib.experiments import data

    weights = options.weights
    if options.data and (options.dataset or options.full):
        raise InputError("--data takes images of your own: leave out --dataset and --full.")
    if not options.data:
        options.images = options.images or DEFAULT_IMAGES
    if options.scheduler is not None and not options.scheduler.strip():
        raise InputError(
            f"--scheduler: expected an address such as tcp://host:8786, got {options.scheduler!r}."
        )
    if options.seed is not None and weights != "random" and not (options.model and weights is None):
        raise InputError("--seed is for --weights random; nothing else here is drawn by chance.")
    if options.file and weights in data.CLASS_NAMES:
        raise InputError(
            f"--weights {weights} is for --model. With --file, leave it out to use the file's own, "
            "or give random or the path of an .npz file."
        )
    trained = weights if weights in data.CLASS_NAMES else None
    options.dataset = options.dataset or trained or "cifar10"
    if weights is None and options.model:
        there = options.seed is None and _shipped(options.model, options.dataset)
        options.weights = options.dataset if there else "random"
    options.seed = options.seed or 0


def _of_the_paper(options: argparse.Namespace) -> bool:
    """Whether this is a network of the paper, trained, with images of the set it was trained on."""
    others = {"random", "cifar10", "cifar100"} - {options.dataset}
    return bool(options.model) and not options.data and options.weights not in others


def _shipped(model: str, dataset: str) -> Path | None:
    """The trained weights that come with the library, if they do."""
    try:
        return resources.path(f"weights/{model}-{dataset}.npz")
    except DataError:
        return None


def _images(options: argparse.Namespace) -> tuple[np.ndarray, dict[str, str]]:
    """The images asked for, and the digest of the file they come from.

    They are taken from the full test set if it is here or to be fetched, otherwise from the sample.
    Both begin with the same images.
    """
    from adjoint_lib.experiments import data
    from adjoint_lib.experiments.data.cifar import DATASETS

    dataset = options.dataset
    (test,) = (s for s in data.status() if (s.name, s.split) == (dataset, "test"))
    if options.full and not test.ok:
        data.fetch(dataset)
    full = options.full or test.ok
    images, _ = data.load(dataset, "test") if full else data.sample(dataset)
    origin = f"the full test set of {dataset}" if full else f"the embedded sample of {dataset}"
    if options.images > len(images):
        remedy = "" if full else " Add --full to fetch the full test set, which has 10,000."
        raise InputError(
            f"--images {options.images}: expected at most {len(images)}, which is all of "
            f"{origin}.{remedy}"
        )
    damaged = "" if full or test.source == "missing" else f" (not the full set: {test.problem})"
    note(f"images: the first {options.images} of {origin}{damaged}")
    known = DATASETS[dataset]
    files = known.splits["test"] if full else (known.sample,)
    return images[: options.images], {file.name: file.sha256 for file in files}


def _model(options: argparse.Namespace) -> keras.Model:
    """The model with the weights asked for; a random one has an output for each class."""
    from adjoint_lib.experiments import data, models
    from adjoint_lib.experiments.weights import load_weights

    weights = options.weights
    trained = weights if weights in data.CLASS_NAMES else None
    if trained:
        note(f"weights: those trained on {trained}")
    classes = len(data.CLASS_NAMES[trained or options.dataset])
    model = (
        load_model(options.file)
        if options.file
        else models.build(options.model, classes=classes, weights=trained)
    )
    if weights == "random":
        note(f"weights: random, seed {options.seed}")
        models.randomise(model, options.seed)
    elif weights is not None and not trained:
        load_weights(model, weights)
    return model


def _own_images(options: argparse.Namespace, plan: Plan) -> tuple[np.ndarray, dict[str, str]]:
    """The images of --data, and the digests of their files."""
    shape, wanted = plan.net.input_shape, options.images
    images, files = read_images("--data", options.data, shape, wanted or DEFAULT_IMAGES)
    if wanted and wanted > len(images):
        raise InputError(
            f"--images {wanted}: expected at most {len(images)}, which is all of {options.data}."
        )
    options.images = len(images)
    note(f"images: the first {len(images)} of {options.data}")
    return images, files


def _plan(options: argparse.Namespace, model: keras.Model) -> Plan:
    from adjoint_lib.verification.verify import Plan

    net = equivalent_of(model)
    layers = options.layers
    if layers not in (None, "all"):
        layers = [part.strip() for part in layers.split(",")]
    o = options
    how = o.mode, o.method, o.dtype, o.k, o.weights_rounded
    return Plan(net, layers, *how, units=o.units)


def _before(options: argparse.Namespace, plan: Plan, images: np.ndarray) -> Result | None:
    """The result that this run goes on from: of the same plan, on the first of the images."""
    from adjoint_lib.experiments import machine, results, runs

    if options.onto is None:
        return None
    found = results.read(options.onto)
    count = found.report.images
    if found.report.about != plan.empty().about:
        problem = "it is of another network, method, precision or choice of layers"
    elif found.provenance["images"]["sha256"] != runs.images_digest(images[:count]):
        problem = f"its {count} images are not the first of these {len(images)}"
    elif count >= len(images):
        problem = f"it has all {len(images)} images that were asked for"
    elif count % plan.batch_size:
        problem = f"it ends at image {count}, amid {plan.batch_size} that are computed together"
    elif _rounding(found) is None:
        problem = "it does not say how the processor rounds that computed it"
    elif _rounding(found) != (here := machine.processor())["rounding"]:
        problem = (
            f"it was computed on a processor ({found.provenance['processor']['name']}) that rounds "
            f"TensorFlow's sums differently than this one ({here['name']})"
        )
    else:
        note(f"the first {count} images are in {options.onto}: going on from there")
        return found
    raise InputError(
        f"--onto {options.onto}: expected the result of the same verification on some of the first "
        f"images, but {problem}. Leave --onto out to compute them all."
    )


def _rounding(found: Result) -> str | None:
    """How the processor rounds that computed a result, if it says so."""
    return (found.provenance.get("processor") or {}).get("rounding")


def _compute(options: argparse.Namespace, model: keras.Model) -> Compute | None:
    from adjoint_lib.experiments import cluster

    if options.workers:
        return cluster.on_workers(model, options.workers)
    if options.scheduler:
        return cluster.on_scheduler(model, options.scheduler)
    return None


# ------------------------------------------------------------------ what is written


def _writable(options: argparse.Namespace) -> Path | None:
    """Where the result goes, or an error before any computing if nothing can be written there."""
    if options.output is None:
        return None
    path = Path(options.output).resolve()  # the file itself is replaced, not a link to it
    whole = options.layers is None and options.units is None
    if path.is_dir() and _of_the_paper(options) and whole:
        from adjoint_lib.experiments import results

        what = options.method, options.mode, options.dtype, options.weights_rounded
        path = path / results.name(options.model, options.dataset, *what)
    if path.exists() and not path.is_file():
        raise InputError(
            f"--output {options.output}: expected a new or an ordinary file, found a folder or a "
            "device. Name another; --json prints the report. (A folder will do for all layers of a "
            "trained --model, whose result has a name.)"
        )
    if not path.parent.is_dir() or not os.access(path.parent, os.W_OK):
        raise InputError(
            f"--output {options.output}: expected a folder that exists and can be written to, got "
            f"{path.parent}. Make it, or name another."
        )
    return path


def _provenance(
    options: argparse.Namespace,
    origin: dict[str, str],
    plan: Plan,
    images: np.ndarray,
    outcome: Outcome,
) -> dict[str, Any]:
    """All that is needed to make the result again, and what its computing took this time."""
    from adjoint_lib.experiments import machine, runs

    return {
        "command": _command(options),
        "model": options.model or Path(options.file).name,
        "dataset": Path(options.data).name if options.data else options.dataset,
        "weights": {**_weights_file(options), "network_sha256": plan.net.digest},
        "images": {
            "split": "own" if options.data else "test",
            "first": 0,
            "count": len(images),
            "sha256": runs.images_digest(images),
            "files": origin,
        },
        "time": {
            "seconds": outcome.seconds,
            "shards": outcome.shards,
            "cores": outcome.cores,
            "threads": machine.threads(),
        },
        **({"processor": outcome.processor} if outcome.processor else {}),
        "versions": machine.versions(),
    }


def _weights_file(options: argparse.Namespace) -> dict[str, Any]:
    weights = options.weights
    if weights == "random":
        return {"random": True, "seed": options.seed}
    shipped = _shipped(options.model, weights) if weights in ("cifar10", "cifar100") else None
    path = Path(shipped or weights or options.file)
    return {"file": path.name, "sha256": hashlib.sha256(path.read_bytes()).hexdigest()}


def _command(options: argparse.Namespace) -> str:
    """What computes the same: without the options that decide only where and how fast."""
    words = ["--model", options.model] if options.model else ["--file", Path(options.file).name]
    if options.weights is not None:
        words += ["--weights", Path(options.weights).name]
    if options.weights == "random":
        words += ["--seed", str(options.seed)]
    of = ["--data", Path(options.data).name] if options.data else ["--dataset", options.dataset]
    words += [*of, "--images", str(options.images)]
    words += ["--full"] * options.full
    words += ["--method", options.method]
    words += ["--units", str(options.units)] if options.units else []
    for name in ("layers", "mode", "dtype", "weights_rounded"):
        value = getattr(options, name)
        words += [f"--{name.replace('_', '-')}", value] if value is not None else []
    words += ["--k", f"{options.k:g}"] if options.k != 0.125 else []
    return shlex.join(["python", "-m", "adjoint_lib", "verify", *words])
