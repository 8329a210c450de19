"""Which class the image's part of the scores would choose, and which the biases' part.

A score is <x | H_I> + <x_b | H_b>. Two tangents give both parts of every score: J along [x; 0] and
along [0; x_b].
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import tensorflow as tf

from adjoint_lib.core.equivalent_net import EquivalentNet
from adjoint_lib.core.tables import Table
from adjoint_lib.errors import AdjointError
from adjoint_lib.verification.intervals import wilson

SCORES = "fc"  # the layer of the class scores
BATCH = 100  # images at a time
RIGHT, SAME, IMAGE_RIGHT, BIASES_SAME = 8, 4, 2, 1


def split(net: EquivalentNet, images: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The parts of the image and of the biases in every score: twice (N, classes).

    Raises:
        AdjointError: if they do not add up to the network's scores.
    """
    parts = [_split(net, images[n : n + BATCH]) for n in range(0, len(images), BATCH)]
    image, biases = (np.concatenate(part) for part in zip(*parts, strict=True))
    return image, biases


def _split(net: EquivalentNet, images: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    frozen, number = net.freeze(images), net.layer(SCORES).number
    x, x_b = frozen.v
    image = frozen.tangents(x, tf.zeros_like(x_b), [number])[number].numpy()
    biases = frozen.tangents(tf.zeros_like(x), x_b, [number])[number].numpy()
    scores = net.value(images)[SCORES].numpy()
    error = np.abs(image + biases - scores).max() / (np.abs(image) + np.abs(biases)).max()
    if not error < 2e4 * np.finfo(scores.dtype).eps:
        raise AdjointError(
            f"expected the parts of the image and of the biases to add up to the scores, but they "
            f"miss them by {error:.1g} of the largest."
        )
    return image, biases


class Decisions(NamedTuple):
    """What was decided for each image: arrays of truth values, (N,).

    Attributes:
        right: the network's class is the label.
        same: the image's part alone chooses the network's class.
        image_right: the image's part alone chooses the label.
        biases_same: the biases' part alone chooses the network's class.
    """

    right: np.ndarray
    same: np.ndarray
    image_right: np.ndarray
    biases_same: np.ndarray

    @property
    def digits(self) -> str:
        """One hexadecimal digit an image, of the four truth values as bits."""
        weighted = RIGHT * self.right + SAME * self.same
        weighted = weighted + IMAGE_RIGHT * self.image_right + BIASES_SAME * self.biases_same
        return "".join(f"{digit:x}" for digit in weighted)


def decisions(image: np.ndarray, biases: np.ndarray, labels: np.ndarray) -> Decisions:
    """What the parts of the scores, (N, classes) each, decide."""
    chosen, by_image, by_biases = (part.argmax(1) for part in (image + biases, image, biases))
    return Decisions(chosen == labels, by_image == chosen, by_image == labels, by_biases == chosen)


def from_digits(digits: str) -> Decisions:
    """The decisions that `Decisions.digits` wrote."""
    bits = np.array([int(digit, 16) for digit in digits])
    return Decisions(*(bits & bit > 0 for bit in (RIGHT, SAME, IMAGE_RIGHT, BIASES_SAME)))


def table(found: Mapping[str, Decisions]) -> Table:
    """A line for each network, with half a 95 % interval: what it and its parts alone decide."""
    header = ["%", "right", "image alone: same", "image alone: right", "biases alone: same"]

    def cell(truths: np.ndarray) -> str:
        low, high = wilson(float(truths.mean()), truths.size)
        return f"{100 * truths.mean():.1f} ± {50 * (high - low):.1f}"

    return Table(header, list(found), lambda name: [name, *map(cell, found[name])])


def share(truths: np.ndarray) -> str:
    """How many of them hold, in per cent, with the 95 % interval."""
    low, high = wilson(float(truths.mean()), truths.size)
    return f"{100 * truths.mean():.1f} % [{100 * low:.1f}, {100 * high:.1f}]"
