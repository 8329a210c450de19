"""What one does most often: one score of 64 images, one unit of one image, up to 224 x 224.

``python -m benchmarks uses`` runs all of it. The contenders, with the same weights and images:

  adjoint_lib   net.hypersurface(...), image and biases, from the call to NumPy arrays
  tensorflow    a gradient of the original Keras model with respect to the image, by tf.function
  jax           jit of vjp of the folded network with respect to image and biases
  pytorch       torch.func.vjp of it, by torch.compile or eager, whichever is faster
  captum        NeuronGradient of it, with respect to the image

Each contender has a process of its own for each row. Calls that compile or trace are not timed.
"Frozen" is what can be done again at the same image: a pull for adjoint_lib, the function that vjp
returns for JAX and PyTorch; the others have nothing to keep. The gradients are compared with ours:
the norm of the difference over the norm of ours.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable
from datetime import date
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from benchmarks import network as networks
from benchmarks.report import machine

ROOT = Path(__file__).resolve().parent.parent
LATEST = ROOT / "benchmarks" / "latest.json"
FOR_THE_BOOK = ROOT / "data" / "results" / "benchmark.json"
SMALL = ("vgg7", "resnet20", "resnet20-fixup")
LARGE = {"resnet50_224": "ResNet50", "mobilenetv2_224": "MobileNetV2"}
USES = {"batch_64_one_score": 64, "one_unit_new_image": 1, "one_unit_frozen": 1}
ROWS = {f"{use}/{model}": (model, use) for use in USES for model in SMALL}
ROWS |= {row: (model, "one_unit_new_image") for row, model in LARGE.items()}
PACKAGES = {"jax": "jax", "pytorch": "torch", "captum": "captum"}
SCORE = 3
TOLERANCE = 0.01
"""A ReLU at a near-zero input may open in one library and not in another, by rounding."""

WARM_UP, CALLS = 4, 200
"""Calls before the clock starts; the most calls that are timed."""


def main(arguments: list[str] | None = None) -> int:
    options = _options(arguments)
    if options.worker:
        return _worker(*options.worker, options.seconds)
    found: dict[str, dict] = {}
    failures = []
    with tempfile.TemporaryDirectory() as folder:
        for row in options.rows:
            out = Path(folder) / "ours.npz"
            entry = found.setdefault(row, {"seconds": {}, "peak_mb": {}, "difference": {}})
            ours = None
            for who in options.contenders:
                print(f"{row}: {who}", file=sys.stderr)
                command = [
                    sys.executable,
                    "-m",
                    "benchmarks",
                    "uses",
                    "--seconds",
                    str(options.seconds),
                    "--worker",
                    row,
                    who,
                    str(out),
                ]
                env = {"TF_CPP_MIN_LOG_LEVEL": "2", **os.environ}
                done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True)
                if done.returncode:
                    failures.append(f"{row}, {who}: {done.stderr[-1500:]}")
                    continue
                with np.load(out) as file:
                    told, gradient = json.loads(str(file["told"])), file["gradient"].astype(float)
                ours = gradient if who == "adjoint_lib" else ours
                for what in ("seconds", "peak_mb"):
                    entry[what][who] = told[what]
                if ours is None:
                    continue
                away = float(np.linalg.norm(gradient - ours) / np.linalg.norm(ours))
                entry["difference"][who] = float(f"{away:.2g}")
                if not away <= TOLERANCE:
                    failures.append(f"{row}: the gradient of {who} differs by {away:.2g} of ours.")
            print(line(row, entry))
            if options.output:
                save(options.output, row, entry)
    for failure in failures:
        print(failure, file=sys.stderr)
    return 1 if failures else 0


def line(row: str, entry: dict) -> str:
    """A row of the table: milliseconds, and as a multiple of TensorFlow's compiled gradient."""
    seconds = entry["seconds"]
    compiled = seconds.get("tensorflow", float("nan"))
    cells = (f"{who} {1e3 * s:.1f} ms ({s / compiled:.2f})" for who, s in seconds.items())
    return f"{row:36} " + ", ".join(cells)


def save(path: Path, row: str, entry: dict) -> None:
    """Put a row under "uses", beside what other runs have written."""
    report = json.loads(path.read_text()) if path.exists() else {"machine": machine()}
    uses = report.setdefault("uses", {})
    uses[row] = {**entry, "machine": machine(), "date": date.today().isoformat()}
    part = path.with_suffix(".part")
    part.write_text(json.dumps(report, indent=2) + "\n")
    part.replace(path)
    if path == LATEST:
        shutil.copyfile(LATEST, FOR_THE_BOOK)


# ------------------------------------------------------------------ one contender, one row


def _worker(row: str, who: str, out: str, most: float) -> int:
    from benchmarks.worker import peak_mb

    model, use = ROWS[row]
    call = CONTENDERS[who](model, use)
    seconds = timed(call, most)
    told = {"seconds": round(statistics.median(seconds), 6), "peak_mb": round(peak_mb())}
    np.savez(out, told=json.dumps(told), gradient=np.asarray(call()))
    return 0


def timed(call: Callable[[], Any], most: float = 2.0) -> list[float]:
    """Seconds of each call after a few that are not timed; fewer calls after so many seconds."""
    for _ in range(WARM_UP):
        call()
    seconds: list[float] = []
    while len(seconds) < 5 or (len(seconds) < CALLS and sum(seconds) < most):
        start = perf_counter()
        call()
        seconds.append(perf_counter() - start)
    return seconds


def keras_model(name: str) -> Any:
    """The model without a final softmax."""
    import keras

    from benchmarks import problem

    if name in SMALL:
        model = problem.keras_model(name, 32)
        return keras.Model(model.inputs, model.get_layer("fc").output)
    keras.utils.set_random_seed(0)
    return getattr(keras.applications, name)(weights=None, classifier_activation=None)


def images_of(name: str, use: str) -> np.ndarray:
    """(n, h, w, 3): the same random images in every process."""
    size = 32 if name in SMALL else 224
    return np.random.default_rng(1).normal(size=(USES[use], size, size, 3)).astype(np.float32)


def ours(name: str, use: str) -> Callable[[], np.ndarray]:
    import adjoint_lib as al

    net, x = al.equivalent(keras_model(name)), images_of(name, use)
    last = net.layers[-1].name
    if use == "one_unit_frozen":
        frozen = net.freeze(x)
        return lambda: frozen.hypersurface(last, "RM0")[:, SCORE].image
    return lambda: net.hypersurface(x, last, "RM0")[:, SCORE].image


def tensorflow(name: str, use: str) -> Callable[[], np.ndarray]:
    import tensorflow as tf

    model, x = keras_model(name), images_of(name, use)

    @tf.function
    def gradient(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            score = model(x, training=False)[:, SCORE]
        return tape.gradient(score, x)

    return lambda: gradient(tf.constant(x)).numpy()


def folded(name: str, use: str) -> networks.Network:
    """The network of the peers; Keras is imported in a process of its own, which it may fill."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "network.npz"
        code = (
            "from pathlib import Path; from benchmarks import network, uses; network.save("
            f"network.read_keras(uses.keras_model({name!r}), uses.images_of({name!r}, {use!r})[0]),"
            f" Path({str(path)!r}))"
        )
        subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True, capture_output=True)
        return networks.load(path)


def jax(name: str, use: str) -> Callable[[], np.ndarray]:
    import jax
    import jax.numpy as jnp

    from benchmarks.jax_peer import Jax

    network, x = folded(name, use), images_of(name, use)

    def scores(x, b):
        return network.run(Jax(), x, b)[-1]

    one = jnp.zeros(jax.eval_shape(scores, x, network.b).shape).at[:, SCORE].set(1.0)
    if use == "one_unit_frozen":
        _, pull = jax.jit(lambda x, b: jax.vjp(scores, x, b))(x, network.b)
        again = jax.jit(lambda pull, g: pull(g))
        return lambda: np.asarray(jax.block_until_ready(again(pull, one))[0])
    gradient = jax.jit(lambda x, b, g: jax.vjp(scores, x, b)[1](g))
    return lambda: np.asarray(jax.block_until_ready(gradient(x, network.b, one))[0])


def pytorch(name: str, use: str) -> Callable[[], np.ndarray]:
    import torch

    network, scores = _torch(name, use)
    x, b = _channels_first(images_of(name, use)), torch.from_numpy(network.b)
    one = torch.zeros_like(scores(x, b).detach())
    one[:, SCORE] = 1

    def back(g: torch.Tensor) -> np.ndarray:
        return g.permute(0, 2, 3, 1).numpy()

    if use == "one_unit_frozen":
        _, pull = torch.func.vjp(scores, x, b)
        return lambda: back(pull(one)[0].detach())

    def gradient(x, b, g):
        return torch.func.vjp(scores, x, b)[1](g)

    choices = [lambda: back(gradient(x, b, one)[0].detach())]
    compiled = torch.compile(gradient)
    try:
        compiled(x, b, one)
        choices.append(lambda: back(compiled(x, b, one)[0].detach()))
    except Exception as error:  # no compiler here, or what it cannot compile
        print(f"torch.compile: {type(error).__name__}: {error}", file=sys.stderr)
    return min(choices, key=lambda call: statistics.median(timed(call)))


def captum(name: str, use: str) -> Callable[[], np.ndarray]:
    import torch
    from captum.attr import NeuronGradient

    network, scores = _torch(name, use)
    b = torch.from_numpy(network.b)

    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.scores = torch.nn.Identity()

        def forward(self, x):
            return self.scores(scores(x, b))

    model = Model()
    gradient, x = NeuronGradient(model, model.scores), _channels_first(images_of(name, use))

    def call() -> np.ndarray:
        found = gradient.attribute(x.clone().requires_grad_(), neuron_selector=SCORE)
        return found.detach().permute(0, 2, 3, 1).numpy()

    return call


def _torch(name: str, use: str) -> tuple[networks.Network, Callable]:
    """The folded network, and its scores as a function of images and biases."""
    import torch

    from benchmarks.pytorch_peer import PyTorch

    network = folded(name, use)
    ops = PyTorch(network, torch.channels_last)
    return network, lambda x, b: network.run(ops, x, b)[-1]


def _channels_first(x: np.ndarray) -> Any:
    import torch

    channels_first = torch.from_numpy(x).permute(0, 3, 1, 2)
    return channels_first.contiguous(memory_format=torch.channels_last)


CONTENDERS: dict[str, Callable[[str, str], Callable[[], np.ndarray]]] = {
    "adjoint_lib": ours,
    "tensorflow": tensorflow,
    "jax": jax,
    "pytorch": pytorch,
    "captum": captum,
}


def _options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks uses",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--rows", nargs="+", choices=ROWS, default=list(ROWS), metavar="ROW")
    parser.add_argument(
        "--contenders", nargs="+", choices=CONTENDERS, default=list(CONTENDERS), metavar="NAME"
    )
    parser.add_argument(
        "--seconds", type=float, default=8.0, help="that are timed, at most (default 8)"
    )
    parser.add_argument(
        "--quick", action="store_true", help="time one second of each; printed, not written"
    )
    parser.add_argument(
        "--output", type=Path, metavar="FILE", help="(default benchmarks/latest.json)"
    )
    parser.add_argument("--worker", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.quick:
        options.seconds = 1.0
    elif options.output is None:
        options.output = LATEST
    installed = importlib.util.find_spec
    missing = [c for c in options.contenders if c in PACKAGES and not installed(PACKAGES[c])]
    if missing and not options.worker:
        print(f"Left out, since not installed: {', '.join(missing)}.", file=sys.stderr)
    options.contenders = [c for c in CONTENDERS if c in options.contenders and c not in missing]
    return options
