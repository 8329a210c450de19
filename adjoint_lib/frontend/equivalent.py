"""`equivalent(model)`: a piecewise-linear Keras model as a network over [x; x_b], checked."""

from __future__ import annotations

import keras
import numpy as np
import tensorflow as tf

from adjoint_lib.core.equivalent_net import EquivalentNet
from adjoint_lib.core.folding import fold
from adjoint_lib.core.primitives import AlongAxis
from adjoint_lib.errors import AdjointError
from adjoint_lib.frontend.lowering import lower
from adjoint_lib.frontend.refusals import precision_of


def equivalent(model: keras.Model) -> EquivalentNet:
    """The equivalent network of a built Keras model of piecewise-linear layers.

    Batch normalisation, multipliers and rescalings are folded into kernels where the wiring allows
    it; a final softmax is dropped with a warning. The result is compared with the model on random
    images before it is returned.

    Raises:
        UnsupportedLayer: the model holds a layer that is not piecewise linear, or not known.
        InputError: the model is not built, has no fixed input size, or mixes precisions.
    """
    graph, softmaxed = lower(model)
    net = EquivalentNet(model.name, fold(graph), precision_of(model))
    _compare(model, net, softmaxed)
    return net


def _compare(model: keras.Model, net: EquivalentNet, softmaxed: list[int]) -> None:
    """Refuse a network that does not compute what the model computes, on two random images.

    The model gets them one by one: where a sum's second term has one number for each image, Keras
    takes it for a bias if there are as many images as channels.
    """
    images = np.random.default_rng(0).normal(size=(2, *net.input_shape)).astype(np.float32)
    each = [
        tf.nest.flatten(model(tf.constant(image[None], net.dtype), training=False))
        for image in images
    ]
    expected = [tf.concat(both, 0) for both in zip(*each, strict=True)]
    outputs = tf.nest.flatten(net(images))
    interpolates = any(isinstance(n.primitive, AlongAxis) for n in net.nodes)
    precision = np.float32 if interpolates else net.dtype.as_numpy_dtype  # tf.image.resize: float32
    tolerance = 4 * np.sqrt(np.finfo(precision).eps)
    for i, (theirs, ours) in enumerate(zip(expected, outputs, strict=True)):
        ours = tf.nn.softmax(ours) if i in softmaxed else ours
        scale = float(tf.reduce_max(tf.abs(theirs)))
        error = float(tf.reduce_max(tf.abs(theirs - ours)))
        if not error <= tolerance * scale:
            raise AdjointError(
                f"the equivalent network of '{model.name}' differs from the model at output {i} by "
                f"{error:.3g}, where the output is at most {scale:.3g}; expected at most "
                f"{tolerance * scale:.3g}. Either the model overflows, or this is a bug in "
                "adjoint_lib: please report it with the model."
            )
