"""How well a network classifies: scores, accuracy and what the accuracy is worth."""

from __future__ import annotations

from dataclasses import dataclass

import keras
import numpy as np
import tensorflow as tf
from tqdm import tqdm

from adjoint_lib.core.equivalent_net import EquivalentNet
from adjoint_lib.errors import InputError
from adjoint_lib.experiments import models
from adjoint_lib.verification.intervals import wilson

BATCH = 250


@dataclass(frozen=True)
class Accuracy:
    """``correct`` of ``count`` images are classified rightly."""

    correct: int
    count: int

    @property
    def value(self) -> float:
        """The share of images classified rightly, in [0, 1]."""
        return self.correct / self.count

    def interval(self) -> tuple[float, float]:
        """Wilson's 95 % interval for the share among all images of which these are a sample."""
        return wilson(self.value, self.count)

    def __str__(self) -> str:
        low, high = self.interval()
        return (
            f"{self.value:.2%} ({self.correct} of {self.count}; "
            f"95 % interval {low:.2%} to {high:.2%})"
        )


class Scorer:
    """``scorer(images)``: the outputs of ``model``, called ``name`` in ``models.MODELS``.

    The scores before the final activation decide the class: to get those, build the model with
    ``final_activation=False``. Weights may change between two calls.
    """

    def __init__(self, model: keras.Model, name: str):
        @tf.function(autograph=False, reduce_retracing=True)
        def run(batch):
            if batch.dtype == tf.uint8:
                batch = tf.cast(batch, tf.float32) / 255
            return model(models.preprocess(name, batch), training=False)

        self.name, self._run = name, run

    def __call__(self, images: np.ndarray, progress: bool = False) -> np.ndarray:
        """float32 (N, classes) for images (N, 32, 32, 3), float32 in [0, 1] or uint8."""
        starts = range(0, len(images), BATCH)
        bar = tqdm(starts, desc=f"{self.name}: evaluating", unit="batch", disable=not progress)
        return np.concatenate([self._run(tf.constant(images[i : i + BATCH])).numpy() for i in bar])


def equivalent_scores(
    net: EquivalentNet, name: str, images: np.ndarray, progress: bool = False
) -> np.ndarray:
    """The outputs (N, classes) of the equivalent network of a model called ``name``.

    The images are float32 in [0, 1], of shape (N, 32, 32, 3).
    """
    starts = range(0, len(images), BATCH)
    bar = tqdm(starts, desc=f"{name}: equivalent network", unit="batch", disable=not progress)
    return np.concatenate([net(models.preprocess(name, images[i : i + BATCH])) for i in bar])


def accuracy(outputs: np.ndarray, labels: np.ndarray) -> Accuracy:
    """Top-1 accuracy of ``outputs`` (N, classes) for ``labels`` (N,); of equal scores the first."""
    if len(outputs) != len(labels) or len(labels) == 0:
        raise InputError(
            f"Expected one label for each of at least one output, but got {len(outputs)} outputs "
            f"and {len(labels)} labels."
        )
    return Accuracy(int((outputs.argmax(-1) == labels).sum()), len(labels))


@dataclass(frozen=True)
class Disagreement:
    """An image for which two sets of scores choose different classes.

    Attributes:
        index: of the image.
        classes: that the first and the second set choose.
        margin: by how much the first set prefers its class to the other's, relative to its largest
            absolute score.
    """

    index: int
    classes: tuple[int, int]
    margin: float

    @property
    def tied(self) -> bool:
        """Whether the margin is within what float32 rounding can do."""
        return self.margin <= 1e-4


def disagreements(scores: np.ndarray, others: np.ndarray) -> list[Disagreement]:
    """The images for which ``scores`` and ``others``, both (N, classes), choose differently."""
    first, second = scores.argmax(-1), others.argmax(-1)
    found = []
    for index in np.flatnonzero(first != second):
        row, classes = scores[index], (int(first[index]), int(second[index]))
        margin = float(row[classes[0]] - row[classes[1]]) / float(np.abs(row).max())
        found.append(Disagreement(int(index), classes, margin))
    return found
