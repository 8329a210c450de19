"""Random changes to training images, a whole batch at a time, from numbers drawn beforehand.

The random part and the image part are kept apart. ``draw`` gives every image of an epoch its own
row of uniform numbers, as a function of (seed, epoch, image) and of nothing else; ``apply`` turns
images and their rows into training images and is deterministic. So an epoch can be taken up again
in its middle, and the batch size or the number of devices changes nothing in what an image becomes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import tensorflow as tf

REACH = 4
_DRAW = 1  # keeps these random streams apart from those of other uses of the same seed


@dataclass(frozen=True)
class Augmentation:
    """``apply(images, numbers)``: uint8 (B, H, W, 3) and float32 (B, ``numbers``) to float images.

    The result has the shape of the images; [0, 1] is the range of pixels that are left unchanged.
    """

    numbers: int
    apply: Callable[[tf.Tensor, tf.Tensor], tf.Tensor]


def draw(augmentation: Augmentation, seed: int, epoch: int, count: int) -> np.ndarray:
    """Uniform numbers in [0, 1) for ``count`` images in one epoch: float32 (count, numbers)."""
    rng = np.random.default_rng([seed, _DRAW, epoch])
    return rng.random((count, augmentation.numbers), np.float32)


def crop_and_flip(images: tf.Tensor, numbers: tf.Tensor) -> tf.Tensor:
    """Shift by up to 4 pixels each way, filling in by reflection, and mirror one image in two.

    Both together are one choice of rows and one of columns, so no padded image is ever made.
    """
    height, width = images.shape[1:3]
    offsets = tf.cast(numbers[:, 1:] * (2 * REACH + 1), tf.int32) - REACH
    rows = _reflected(tf.range(height)[None] + offsets[:, :1], height)
    columns = _reflected(tf.range(width)[None] + offsets[:, 1:], width)
    columns = tf.where(_flips(numbers), columns[:, ::-1], columns)
    return unit_range(_pick(images, rows, columns))


def paper(images: tf.Tensor, numbers: tf.Tensor) -> tf.Tensor:
    """The paper's changes in its order: flip, saturation, contrast, brightness, resize and crop.

    Saturation is multiplied by a factor in [0, 2], contrast by one in [0.4, 1.6], up to 0.5 either
    way is added to all pixels, and 32x32 pixels are cut from the image enlarged to 36x36. As with
    TensorFlow's functions of these names, pixels may leave [0, 1].
    """
    height, width = images.shape[1:3]
    x = unit_range(images)
    x = tf.where(_flips(numbers)[:, :, None, None], x[:, :, ::-1], x)
    factor = numbers[:, 1:4, None, None, None]
    x = saturate(x, 2 * factor[:, 0])
    mean = tf.reduce_mean(x, (1, 2), keepdims=True)
    x = (x - mean) * (0.4 + 1.2 * factor[:, 1]) + mean
    x += factor[:, 2] - 0.5
    x = tf.image.resize(x, (height + REACH, width + REACH))
    offsets = tf.cast(numbers[:, 4:] * (REACH + 1), tf.int32)
    rows = tf.range(height)[None] + offsets[:, :1]
    columns = tf.range(width)[None] + offsets[:, 1:]
    return _pick(x, rows, columns)


def saturate(images: tf.Tensor, factor: tf.Tensor) -> tf.Tensor:
    """Multiply the saturation of HSV by ``factor``, (B, 1, 1, 1), up to saturation 1.

    Hue and value stay. Since value is the largest channel and saturation the relative distance of
    the smallest from it, this stretches every channel's distance from the largest one.
    """
    value = tf.reduce_max(images, -1, keepdims=True)
    spread = value - tf.reduce_min(images, -1, keepdims=True)
    return value - (value - images) * tf.minimum(factor, tf.math.divide_no_nan(value, spread))


def unit_range(images: tf.Tensor) -> tf.Tensor:
    """uint8 pixels as float32 in [0, 1], to the bit as ``data.load`` gives them."""
    return tf.cast(images, tf.float32) / 255


AUGMENTATIONS = {
    "none": Augmentation(numbers=0, apply=lambda images, _: unit_range(images)),
    "crop-flip": Augmentation(numbers=3, apply=crop_and_flip),
    "paper": Augmentation(numbers=6, apply=paper),
}


def _flips(numbers: tf.Tensor) -> tf.Tensor:
    """Which images are mirrored: bool (B, 1)."""
    return numbers[:, :1] < 0.5


def _reflected(index: tf.Tensor, size: int) -> tf.Tensor:
    """Indices just outside 0 ... size-1 mirrored back at the border pixel, which is not doubled."""
    return (size - 1) - tf.abs((size - 1) - tf.abs(index))


def _pick(images: tf.Tensor, rows: tf.Tensor, columns: tf.Tensor) -> tf.Tensor:
    """Each image's own choice of rows (B, h) and columns (B, w): the result is (B, h, w, C)."""
    return tf.gather(tf.gather(images, rows, batch_dims=1), columns, axis=2, batch_dims=1)
