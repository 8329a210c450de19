"""Training the paper's networks: runs that can be killed at any moment and taken up again.

    train("vgg7", "cifar10", recipe="fast", seed=0)

A run lives in a folder of its own: ``checkpoint.npz`` (all it takes to go on), ``log.csv`` (a row
an epoch), ``record.json`` (how far it has come, and what computed it) and, when it has ended,
``<model>-<dataset>.npz`` with ``.json``: the weights that did best on the validation images, and
where they come from. Calling ``train`` again with the same arguments continues an unfinished run,
on this machine or on another that was given the folder, and leaves a finished one alone.

What is random (initialisation, split, order, augmentation) is a function of the seed, the epoch and
the image, so no generator's state has to be kept, and a run that was stopped goes on with exactly
the batches it would have seen. See ``train`` for how equal the results are.
"""

from __future__ import annotations

import csv
import io
import json
import math
import signal
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import NamedTuple

import numpy as np
import tensorflow as tf
from tqdm import tqdm

from adjoint_lib._storage import Header, require
from adjoint_lib.errors import DivergedError, InputError
from adjoint_lib.experiments import data, machine, models
from adjoint_lib.experiments.run_folder import RunFolder
from adjoint_lib.experiments.training.augmentation import AUGMENTATIONS, draw
from adjoint_lib.experiments.training.checkpoint import load_checkpoint, save_checkpoint
from adjoint_lib.experiments.training.evaluation import Accuracy
from adjoint_lib.experiments.training.learner import Learner
from adjoint_lib.experiments.training.recipes import Recipe
from adjoint_lib.experiments.training.recipes import recipe as named_recipe
from adjoint_lib.experiments.training.record import RECORD, data_digests, training_record
from adjoint_lib.experiments.weights import file_digest, provenance, save_weights

CHECKPOINT = "checkpoint.npz"
LOG = "log.csv"
CHECKPOINT_SECONDS = 120.0
_STOPPED = "Stopped and saved: the same command goes on from here."
_STORED = {"sessions": "sittings"}  # names of the progress that files have otherwise
_SPLIT, _ORDER = 2, 3  # keep the random streams of one seed apart


def train(
    model: str,
    dataset: str,
    recipe: str | Recipe = "fast",
    seed: int = 0,
    folder: str | Path | None = None,
    epochs: int | None = None,
    sample: bool = False,
    checkpoint_seconds: float = CHECKPOINT_SECONDS,
    progress: bool = True,
) -> Path:
    """Train a network, or go on with its training.

    The weights are those with the best validation accuracy. The test images are looked at once,
    when the run has ended, and decide nothing. Several GPUs, where there are any, share each batch.

    How equal the results of equal arguments are: the batches, their order and their augmentation
    are the same to the bit. On one machine's CPU so are the weights, whether the run was stopped
    or not; other machines, core counts or versions of TensorFlow round sums differently. On GPUs,
    TensorFlow's deterministic operations are switched on for the whole process, for the same end.

    Ctrl-C (or SIGTERM) lets the present step end, saves the run, and then stops the process.

    Args:
        model: a name in ``models.MODELS``.
        dataset: a name in ``data.CLASS_NAMES``.
        recipe: "fast", "paper" or a ``Recipe`` of your own.
        seed: decides initialisation, split, order and augmentation.
        folder: of the run; by default ``runs/<model>-<dataset>-<recipe>-<seed>``.
        epochs: stretches or shrinks the recipe to this number of epochs.
        sample: train on the few embedded images, to try things out; there is no test then.
        checkpoint_seconds: the longest time that a killed run loses.
        progress: show a progress bar, and a line for each validation.

    Returns:
        The path of the trained weights.

    Raises:
        InputError: for a wrong argument, or a folder that holds another run.
        DivergedError: if the loss is no longer a finite number.
    """
    known = (("model", model, models.MODELS), ("data set", dataset, data.CLASS_NAMES))
    for what, name, names in known:
        if name not in names:
            raise InputError(f"No {what} is called {name!r}; there are {', '.join(names)}.")
    if isinstance(recipe, str):
        recipe = named_recipe(recipe, model, dataset)
    if epochs is not None:
        recipe = recipe.stretched(epochs)
    if folder is None:
        folder = f"runs/{model}-{dataset}{'-sample' * sample}-{recipe.name}-{seed}"
    settings = {"model": model, "dataset": dataset, "sample": sample, "seed": seed}
    settings["recipe"] = asdict(recipe)
    if tf.config.list_physical_devices("GPU"):
        tf.config.experimental.enable_op_determinism()
    with RunFolder.claimed(folder, kept="What was saved before is kept") as claimed:
        weights = claimed.path / f"{model}-{dataset}.npz"
        if not _finished(weights, claimed, settings):
            run = _Run(settings, recipe, claimed, checkpoint_seconds, progress)
            run.resume()
            run.finish_epochs()
            run.finish(weights)
    return weights


def _finished(weights: Path, folder: RunFolder, settings: dict) -> bool:
    """Whether the weights of this run are there; those of another run are refused."""
    if not weights.with_suffix(".json").exists():
        return False
    record = provenance(weights)
    now = {**settings, "data": data_digests(settings)}
    del now["sample"]  # as the digests of the data say
    folder.require_same(record, now)
    return weights.is_file() and file_digest(weights) == record["sha256"]


def split(count: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Indices of the training images (nine in ten) and of the validation images, both sorted."""
    order = np.random.default_rng([seed, _SPLIT]).permutation(count)
    return np.sort(order[count // 10 :]), np.sort(order[: count // 10])


class Batch(NamedTuple):
    """The images of one step, with what is to be done with them."""

    images: np.ndarray  # uint8 (B, 32, 32, 3)
    labels: np.ndarray  # int64 (B,)
    numbers: np.ndarray  # float32 (B, numbers): random, for the augmentation
    rate: float  # the learning rate


def batches(
    images: np.ndarray,
    labels: np.ndarray,
    chosen: np.ndarray,
    recipe: Recipe,
    seed: int,
    epoch: int,
    first: int = 0,
) -> Iterator[Batch]:
    """The batches of one epoch, from step ``first`` on.

    Each image is in at most one batch; those that would not fill a last one are left out. The seed
    decides the order and, with the epoch, the random numbers of the augmentation.

    Args:
        images: uint8 (N, 32, 32, 3).
        labels: int64 (N,).
        chosen: indices of the images to train on.
    """
    order = np.random.default_rng([seed, _ORDER, epoch]).permutation(len(chosen))
    numbers = draw(AUGMENTATIONS[recipe.augmentation], seed, epoch, len(chosen))
    steps = len(chosen) // recipe.batch
    for step in range(first, steps):
        places = order[step * recipe.batch : (step + 1) * recipe.batch]
        indices = chosen[places]
        rate = recipe.learning_rate(epoch + (step + 0.5) / steps)
        yield Batch(images[indices], labels[indices], numbers[places], rate)


@dataclass
class Progress:
    """How far a run has come.

    Attributes:
        epoch: the present one, counted from 0.
        step: the next one of the present epoch.
        loss_sum: over the steps of the present epoch.
        correct: images classified rightly in the present epoch.
        input_seconds: spent on the images of the present epoch before they go into the network.
        step_seconds: spent on the steps of the present epoch, `input_seconds` included.
        seconds: of the whole run.
        cpu_seconds: of the whole run, over all cores.
        sessions: processes that have worked on the run.
        machines: for each session, the epoch and step it began at and what computed it. Runs of
            earlier versions do not say.
        best_epoch: the one with the best validation accuracy so far.
        best_accuracy: on the validation images.
        log: a record for each epoch that has ended.
    """

    epoch: int = 0
    step: int = 0
    loss_sum: float = 0.0
    correct: int = 0
    input_seconds: float = 0.0
    step_seconds: float = 0.0
    seconds: float = 0.0
    cpu_seconds: float = 0.0
    sessions: int = 0
    machines: list[dict] = field(default_factory=list)
    best_epoch: int | None = None
    best_accuracy: float = -1.0
    log: list[dict] = field(default_factory=list)

    def start_clock(self) -> None:
        """Count `seconds` and `cpu_seconds` from now on."""
        self._last = time.perf_counter(), time.process_time()

    def tick(self) -> None:
        """Add the time since the last call, or since the clock was started."""
        before = self._last
        self.start_clock()
        self.seconds += self._last[0] - before[0]
        self.cpu_seconds += self._last[1] - before[1]

    def stored(self) -> dict:
        """What checkpoints and records hold; there, sessions are called "sittings"."""
        return {_STORED.get(key, key): value for key, value in asdict(self).items()}

    @classmethod
    def restored(cls, stored: dict) -> Progress:
        """Make a `Progress` from a dictionary that `stored` gave."""
        names = {there: here for here, there in _STORED.items()}
        return cls(**{names.get(key, key): value for key, value in stored.items()})


class _Run:
    """One training run in its folder."""

    def __init__(self, settings, recipe: Recipe, folder: RunFolder, checkpoint_seconds, progress):
        name, dataset, seed = settings["model"], settings["dataset"], settings["seed"]
        self.settings, self.recipe, self.folder = settings, recipe, folder
        self.checkpoint_seconds, self.show = checkpoint_seconds, progress
        self.images, self.labels = _training_images(dataset, settings["sample"])
        self.training, self.validation = split(len(self.images), seed)
        self.steps = len(self.training) // recipe.batch
        if self.steps == 0:
            raise InputError(
                f"A batch of {recipe.batch} images was asked for, but there are only "
                f"{len(self.training)} training images. Choose a smaller batch."
            )
        classes = len(data.CLASS_NAMES[dataset])
        self.learner = Learner(name, classes, recipe, seed)
        self.progress = Progress()
        self.best: dict[str, np.ndarray] = {}
        self.saved_at = time.monotonic()

    # ---- state

    def resume(self) -> None:
        """Take up the state of the last checkpoint, if there is one."""
        found = load_checkpoint(self.folder.path / CHECKPOINT, self._accept)
        if found is not None:
            arrays, notes = found
            self.learner.set_state(_part(arrays, "learner/"))
            self.best = _part(arrays, "best/")
            self.progress = Progress.restored(notes["progress"])
        state = self.progress
        state.sessions += 1
        state.machines.append({"epoch": state.epoch, "step": state.step, **machine.description()})

    def _accept(self, notes: dict, headers: Mapping[str, Header]) -> None:
        """Refuse a checkpoint that is of another run, or not one of this run as it was saved."""
        self.folder.require_same(require(notes.get("settings"), dict, "settings"), self.settings)
        progress = Progress.restored(require(notes.get("progress"), dict, "progress"))
        for key, value in vars(Progress()).items():
            kind = (int, float) if key == "seconds" or isinstance(value, float) else type(value)
            if key != "best_epoch" and not isinstance(getattr(progress, key), kind):
                raise ValueError(f"{key} of the progress is {getattr(progress, key)!r}")
        shapes = {f"learner/{key}": value.shape for key, value in self.learner.state().items()}
        if progress.best_epoch is not None:
            shapes |= {f"best/{key}": value.shape for key, value in self.learner.weights().items()}
        if shapes != {key: header.shape for key, header in headers.items()}:
            raise ValueError("its arrays are not those of the network and its optimizer")

    def save(self) -> None:
        arrays = {f"learner/{key}": value for key, value in self.learner.state().items()}
        arrays |= {f"best/{key}": value for key, value in self.best.items()}
        notes = {"settings": self.settings, "progress": self.progress.stored()}
        with self.folder.saving(CHECKPOINT):
            save_checkpoint(self.folder.path / CHECKPOINT, arrays, notes)
        self.folder.write(LOG, _csv(self.progress.log).encode())
        self.folder.write(RECORD, (json.dumps(self._record({}), indent=1) + "\n").encode())
        self.saved_at = time.monotonic()

    # ---- epochs

    def finish_epochs(self) -> None:
        """Train until the recipe's last epoch has ended."""
        bar = tqdm(
            total=self.recipe.epochs * self.steps,
            initial=self.progress.epoch * self.steps + self.progress.step,
            desc=f"{self.settings['model']} on {self.settings['dataset']}",
            unit="step",
            mininterval=0.5 if sys.stderr.isatty() else 30,
            disable=not self.show,
        )
        self.progress.start_clock()
        with bar, _postponed_signals() as signals:
            while self.progress.epoch < self.recipe.epochs:
                for batch in self._batches():
                    self._step(batch)
                    self._report(bar)
                    self.progress.tick()
                    if signals or time.monotonic() - self.saved_at > self.checkpoint_seconds:
                        self.save()
                    if signals:
                        bar.write(_STOPPED, file=sys.stderr)
                        return
                self._end_epoch(bar)

    def _batches(self) -> Iterator[Batch]:
        """What is left of the present epoch."""
        state, recipe, seed = self.progress, self.recipe, self.settings["seed"]
        return batches(
            self.images, self.labels, self.training, recipe, seed, state.epoch, state.step
        )

    def _step(self, batch: Batch) -> None:
        state, size = self.progress, self.recipe.size(self.progress.epoch)
        start = time.perf_counter()
        inputs = self.learner.prepare(batch.images, batch.numbers, size)
        prepared = time.perf_counter()
        loss, correct = self.learner.update(inputs, batch.labels, batch.rate)
        if not math.isfinite(loss):
            raise DivergedError(
                f"The loss should be a finite number, but is {loss} in epoch {state.epoch}, step "
                f"{state.step}. Train with a lower learning rate, or another seed."
            )
        state.loss_sum += loss
        state.correct += correct
        state.input_seconds += prepared - start
        state.step_seconds += time.perf_counter() - start
        state.step += 1

    def _report(self, bar: tqdm) -> None:
        state = self.progress
        bar.set_postfix(
            epoch=state.epoch,
            loss=f"{state.loss_sum / state.step:.3f}",
            accuracy=f"{state.correct / (state.step * self.recipe.batch):.3f}",
            rate=f"{self.recipe.learning_rate(state.epoch + state.step / self.steps):.4f}",
            refresh=False,
        )
        bar.update()

    def _end_epoch(self, bar: tqdm) -> None:
        state, recipe = self.progress, self.recipe
        row = {
            "epoch": state.epoch,
            "size": recipe.size(state.epoch),
            "learning_rate": recipe.learning_rate(state.epoch + 1),
            "train_loss": round(state.loss_sum / self.steps, 5),
            "train_accuracy": round(state.correct / (self.steps * recipe.batch), 5),
            "validation_accuracy": None,
            "input_share": round(state.input_seconds / state.step_seconds, 4),
        }
        if recipe.validates(state.epoch):
            found = self._accuracy(self.validation)
            row["validation_accuracy"] = found.value
            if found.value > state.best_accuracy:
                state.best_epoch, state.best_accuracy = state.epoch, found.value
                self.best = self.learner.weights()
            if self.show:
                bar.write(
                    f"epoch {state.epoch}: training {row['train_accuracy']:.2%}, "
                    f"validation {found.value:.2%}, best {state.best_accuracy:.2%}",
                    file=sys.stderr,
                )
        state.tick()
        row |= {"seconds": round(state.seconds, 1), "cpu_seconds": round(state.cpu_seconds, 1)}
        state.log.append(row)
        state.epoch, state.step, state.correct = state.epoch + 1, 0, 0
        state.loss_sum = state.input_seconds = state.step_seconds = 0.0
        self.save()

    def _accuracy(self, chosen: np.ndarray) -> Accuracy:
        return self.learner.accuracy(self.images[chosen], self.labels[chosen])

    # ---- the end

    def finish(self, weights: Path) -> None:
        """Write the best weights and their record; look at the test images."""
        self.learner.set_weights(self.best)
        found = {"train": self._accuracy(self.training)}
        found["validation"] = self._accuracy(self.validation)
        if not self.settings["sample"]:
            found["test"] = self.learner.accuracy(*data.load(self.settings["dataset"], "test"))
        with self.folder.saving(weights.name):
            save_weights(self.learner.model, weights, self._record(found))

    def _record(self, accuracies: dict[str, Accuracy]) -> dict:
        state = self.progress.stored()
        return training_record(self.settings, state, self.training, self.validation, accuracies)


def _training_images(dataset: str, sample: bool) -> tuple[np.ndarray, np.ndarray]:
    """All images to train and validate on, as uint8, and their labels."""
    images, labels = data.sample(dataset) if sample else data.load(dataset, "train")
    return np.rint(images * 255).astype(np.uint8), labels


@contextmanager
def _postponed_signals() -> Iterator[list[int]]:
    """Collect Ctrl-C and SIGTERM in a list, and let them act when the ``with`` block is left.

    A second Ctrl-C acts at once. Signals that the process ignores, as under nohup, stay ignored.

    Yields:
        The numbers of the signals that have come.
    """
    caught: list[int] = []
    before = {}

    def note(number, frame):
        if caught:
            raise KeyboardInterrupt
        caught.append(number)

    if threading.current_thread() is threading.main_thread():  # signals arrive nowhere else
        for number in (signal.SIGINT, signal.SIGTERM):
            if signal.getsignal(number) is not signal.SIG_IGN:
                before[number] = signal.signal(number, note)
    try:
        yield caught
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        if caught:
            signal.raise_signal(caught[0])


def _part(arrays: dict[str, np.ndarray], prefix: str) -> dict[str, np.ndarray]:
    return {key[len(prefix) :]: a for key, a in arrays.items() if key.startswith(prefix)}


def _csv(log: list[dict]) -> str:
    if not log:
        return ""
    text = io.StringIO()
    writer = csv.DictWriter(text, log[0], lineterminator="\n")
    writer.writeheader()
    writer.writerows(log)
    return text.getvalue()
