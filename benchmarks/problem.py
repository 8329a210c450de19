"""The problem that all contenders solve: a model, with random weights or trained, and one image.

``python -m benchmarks.problem MODEL --size N --out FILE --true FILE``; started by ``python -m
benchmarks``.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import keras
import numpy as np
import tensorflow as tf

from adjoint_lib.experiments import data, models
from benchmarks.network import Network, read_keras, save
from benchmarks.tf_operations import TensorFlow

IMAGES = 64
"""How many images the one with the clearest pattern is chosen from."""

TRAINED = "-trained"
"""What the name of a model ends with that has the weights trained on CIFAR-10, and its images."""

NAMES = [*models.MODELS, *(name + TRAINED for name in models.MODELS)]


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.problem", description=__doc__)
    parser.add_argument("model", choices=NAMES)
    parser.add_argument("--size", type=int, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--true", type=Path, required=True)
    options = parser.parse_args(arguments)
    network = pose(options.model, options.size)
    save(network, options.out)
    np.savez(options.true, **true_units(network))


def keras_model(name: str, size: int) -> keras.Model:
    """The model called `name`, one of `NAMES`, for images of (size, size, 3)."""
    if name.endswith(TRAINED):
        model = models.build(name.removesuffix(TRAINED), weights="cifar10")
    else:
        model = models.randomise(models.build(name), seed=0)
    if size != 32:
        smaller = keras.models.clone_model(model, input_tensors=keras.Input((size, size, 3)))
        smaller.set_weights(model.get_weights())
        model = smaller
    return model


def pose(name: str, size: int = 32) -> Network:
    """The network to differentiate, at an image whose activation pattern is beyond doubt.

    Where an activation's input is zero up to rounding, two libraries may well choose different
    pieces, and both be right. Of `IMAGES` images, random ones or of the test set, this takes the
    one that keeps farthest from that: the largest of the smallest |input|, relative to the largest
    of its layer.
    """
    if name.endswith(TRAINED):
        images = data.sample("cifar10")[0][:IMAGES, :size, :size]
    else:
        images = np.random.default_rng(0).random((IMAGES, size, size, 3), dtype=np.float32)
    images = models.preprocess(name.removesuffix(TRAINED), images)
    network = read_keras(keras_model(name, size), images[0])
    values = network.run(TensorFlow(), tf.constant(images), tf.constant(network.b))
    margins = [_margin(values[n.inputs[0]]) for n in network.nodes if n.op == "leaky_relu"]
    best = int(np.min(margins, axis=0).argmax())
    return Network(name, network.nodes, images[best], network.b)


def true_units(network: Network) -> dict[str, np.ndarray]:
    """What the network computes at [x; b], by layer, before the layer's own bias: (units,)."""
    units = network.units(
        TensorFlow(), tf.constant(network.image[np.newaxis]), tf.constant(network.b)
    )
    return {name: c.numpy().reshape(-1) for name, c in units.items()}


def _margin(h: tf.Tensor) -> np.ndarray:
    """The smallest |h| of each image over its largest."""
    size = tf.reshape(tf.abs(h), (h.shape[0], -1))
    return (tf.reduce_min(size, 1) / tf.reduce_max(size, 1)).numpy()


if __name__ == "__main__":
    main()
