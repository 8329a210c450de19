"""What the tests compare with: the original Keras model, read without the library's engine."""

from __future__ import annotations

import contextlib

import keras
import numpy as np
import tensorflow as tf

import adjoint_lib as al


@contextlib.contextmanager
def float64():
    """Build Keras models in float64, inputs included; the settings are put back afterwards."""
    floatx, policy = keras.config.floatx(), keras.config.dtype_policy()
    keras.config.set_floatx("float64")
    keras.config.set_dtype_policy("float64")
    try:
        yield
    finally:
        keras.config.set_floatx(floatx)
        keras.config.set_dtype_policy(policy)


def random_model(build, seed=0, **options) -> keras.Model:
    """A model in float64 with random weights and random batch-normalisation statistics."""
    with float64():
        model = build(**options)
    al.models.randomise(model, seed)
    return model


def small_net() -> tuple[keras.Model, al.EquivalentNet]:
    """Two convolutions (one strided, with batch normalisation), pooling, a dense layer; float64."""

    def build():
        layers = keras.layers
        return keras.Sequential(
            [
                keras.Input((8, 7, 2)),
                layers.Conv2D(4, 3, padding="same", name="first"),
                layers.ReLU(name="relu"),
                layers.Conv2D(5, 3, strides=2, padding="same", use_bias=False, name="second"),
                layers.BatchNormalization(name="bn"),
                layers.LeakyReLU(negative_slope=0.1),
                layers.MaxPooling2D(2, padding="same", name="pool"),
                layers.Flatten(),
                layers.Dense(3, name="out"),
            ]
        )

    model = random_model(build)
    return model, al.equivalent(model)


def image_of(net: al.EquivalentNet, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=net.input_shape)


def explicit_jacobian(model: keras.Model, x: np.ndarray, variables: list) -> list[np.ndarray]:
    """d model(x) / d (x, *variables) as dense arrays, by a plain gradient tape in float64."""
    x = tf.constant(x[None])
    with tf.GradientTape() as tape:
        tape.watch(x)
        out = model(x, training=False)
    tensors = [x, *(v.value for v in variables)]
    return [j.numpy()[0] for j in tape.jacobian(out, tensors, unconnected_gradients="zero")]
