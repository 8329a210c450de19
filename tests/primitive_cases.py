"""Every primitive with options that matter, and a point to try it at."""

import numpy as np
import tensorflow as tf

from adjoint_lib.core import primitives as p
from adjoint_lib.frontend import activations

RNG = np.random.default_rng(7)
ROWS = 3


def normal(*shape):
    return RNG.normal(size=shape)


def alone(primitive, *shapes):
    """A case without extra inputs: (primitive, shapes of its inputs, constants)."""
    return primitive, shapes, ()


def activation(lowered, shape=(3, 4, 2)):
    primitive, constants = lowered
    return primitive, (shape, *((1,) * len(shape) for _ in constants)), constants


CASES = {
    "Dense": alone(p.Dense(normal(5, 3)), (5,)),
    "Dense on maps": alone(p.Dense(normal(5, 3)), (2, 3, 5)),
    "Conv": alone(p.Conv(normal(3, 2, 4, 5), (1, 1), "SAME", (1, 1), 1, (5, 7, 4)), (5, 7, 4)),
    "Conv valid": alone(
        p.Conv(normal(4, 3, 2, 3), (1, 1), "VALID", (1, 2), 1, (5, 7, 2)), (5, 7, 2)
    ),
    "Conv strided same": alone(
        p.Conv(normal(3, 3, 2, 3), (2, 2), "SAME", (1, 1), 1, (6, 7, 2)), (6, 7, 2)
    ),
    "Conv strided valid": alone(
        p.Conv(normal(2, 3, 2, 3), (2, 3), "VALID", (1, 1), 1, (8, 7, 2)), (8, 7, 2)
    ),
    "Conv dilated": alone(
        p.Conv(normal(3, 2, 2, 3), (1, 1), "SAME", (2, 3), 1, (7, 8, 2)), (7, 8, 2)
    ),
    "Conv in groups": alone(
        p.Conv(normal(3, 3, 2, 6), (2, 2), "SAME", (1, 1), 3, (5, 6, 6)), (5, 6, 6)
    ),
    "Conv 1-D": alone(p.Conv(normal(3, 2, 4), (2,), "SAME", (1,), 1, (9, 2)), (9, 2)),
    "Conv 3-D": alone(
        p.Conv(normal(2, 3, 2, 2, 3), (1, 2, 1), "SAME", (1, 1, 1), 1, (3, 5, 4, 2)), (3, 5, 4, 2)
    ),
    "DepthwiseConv": alone(
        p.DepthwiseConv(normal(3, 3, 2, 2), (2, 2), "SAME", (1, 1), (5, 6, 2)), (5, 6, 2)
    ),
    "DepthwiseConv dilated": alone(
        p.DepthwiseConv(normal(2, 3, 3, 1), (1, 1), "VALID", (2, 2), (6, 7, 3)), (6, 7, 3)
    ),
    "ConvTranspose": alone(
        p.ConvTranspose(normal(3, 3, 4, 2), (2, 2), "SAME", (1, 1), (6, 10, 4)), (3, 5, 2)
    ),
    "ConvTranspose valid": alone(
        p.ConvTranspose(normal(2, 3, 4, 2), (2, 2), "VALID", (1, 1), (6, 9, 4)), (3, 4, 2)
    ),
    "Sum": alone(
        p.Sum((1.0, -0.5, 1.0), ((3, 4, 2), (1, 1, 2), (3, 1, 1))), (3, 4, 2), (1, 1, 2), (3, 1, 1)
    ),
    "Scale": alone(p.Scale(normal(2)), (3, 4, 2)),
    "AlongAxis": alone(p.AlongAxis(normal(4, 6), 2), (3, 4, 2)),
    "AveragePool": alone(p.AveragePool((3, 3), (2, 2), "SAME", (5, 6, 2)), (5, 6, 2)),
    "AveragePool valid": alone(p.AveragePool((2, 3), (1, 2), "VALID", (5, 6, 2)), (5, 6, 2)),
    "Mean": alone(p.Mean((0, 1), (3, 4, 2)), (3, 4, 2)),
    "Reshape": alone(p.Reshape((3, 4, 2), (4, 6)), (3, 4, 2)),
    "Permute": alone(p.Permute((2, 0, 1)), (3, 4, 2)),
    "Pad": alone(p.Pad(((1, 0), (2, 1), (0, 3))), (3, 4, 2)),
    "Crop": alone(p.Crop(((1, 0), (0, 2), (0, 0))), (3, 4, 2)),
    "Concatenate": alone(p.Concatenate(2, (2, 3)), (3, 4, 2), (3, 4, 3)),
    "MaxPool": alone(p.MaxPool((3, 3), (2, 2), "SAME", (5, 6, 2)), (5, 6, 2)),
    "MaxPool valid": alone(p.MaxPool((2, 2), (1, 1), "VALID", (5, 6, 2)), (5, 6, 2)),
    "GlobalMax": alone(p.GlobalMax((3, 4, 2)), (3, 4, 2)),
    "Extremum max": alone(p.Extremum(1), (3, 4, 2), (3, 4, 2), (3, 4, 2)),
    "Extremum min": alone(p.Extremum(-1), (3, 4, 2), (3, 4, 2)),
    "Activation relu": activation(activations.relu()),
    "Activation leaky": activation(activations.leaky_relu(0.3)),
    "Activation prelu": activation(activations.prelu(normal(1, 4, 2))),
    "Activation relu6": activation(activations.relu(max_value=0.6)),
    "Activation leaky relu6": activation(activations.relu(negative_slope=0.2, max_value=0.6)),
    "Activation threshold": activation(activations.relu(negative_slope=0.2, threshold=0.4)),
    "Activation threshold, ceiling": activation(activations.relu(0.1, 0.9, 0.3)),
    "Activation ceiling below threshold": activation(activations.relu(0.1, 0.3, 0.9)),
    "Activation hard tanh": activation(activations.hard_tanh()),
    "Activation hard sigmoid": activation(activations.ramp_to_one(1 / 6), (5,)),
    "Activation sparse sigmoid": activation(activations.ramp_to_one(1 / 2)),
    "Activation soft shrink": activation(activations.soft_shrink()),
}


def concrete(name):
    """The primitive in float64, and a point with several rows; constants are the same in each."""
    primitive, shapes, constants = CASES[name]
    free = len(shapes) - len(constants)
    point = [tf.constant(4 * normal(ROWS, *s)) for s in shapes[:free]]
    given = zip(shapes[free:], constants, strict=True)
    point += [tf.constant(np.full((ROWS, *s), c)) for s, c in given]
    return primitive.cast(tf.float64), point
