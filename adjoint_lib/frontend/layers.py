"""The small Keras layers that the paper's networks need and Keras does not have.

All three are piecewise linear (in fact linear, given the input and the bias), hold no state beyond
their weights, and are registered under the package name ``adjoint_lib``, so that a ``.keras`` file
holding them opens by ``al.load_model``, and by Keras itself once this module has been imported.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import keras
import tensorflow as tf

from adjoint_lib.errors import InputError

BatchShape: TypeAlias = "tuple[int | None, ...]"

_register = keras.saving.register_keras_serializable(package="adjoint_lib")


@_register
class Bias(keras.layers.Layer):
    """Adds one trainable scalar to every entry: y = x + b.

    Weight: ``bias``, shape (1,), zero at first. Fixup uses it wherever batch normalisation would
    have shifted the activations.
    """

    def build(self, input_shape: BatchShape) -> None:
        self.bias = self.add_weight(name="bias", shape=(1,), initializer="zeros")

    def call(self, inputs: tf.Tensor) -> tf.Tensor:
        return inputs + self.bias

    def compute_output_shape(self, input_shape: BatchShape) -> BatchShape:
        return input_shape


@_register
class Multiplier(keras.layers.Layer):
    """Multiplies every entry by one trainable scalar: y = m x.

    Weight: ``multiplier``, shape (1,), one at first. Fixup puts one after the last convolution of
    each residual branch.
    """

    def build(self, input_shape: BatchShape) -> None:
        self.multiplier = self.add_weight(name="multiplier", shape=(1,), initializer="ones")

    def call(self, inputs: tf.Tensor) -> tf.Tensor:
        return inputs * self.multiplier

    def compute_output_shape(self, input_shape: BatchShape) -> BatchShape:
        return input_shape


@_register
class PadChannels(keras.layers.Layer):
    """Pads the last axis with zeros up to ``channels``: (..., c) becomes (..., channels).

    The paper pads "zero channels to match the quantity of out channels" and does not say on which
    side. Here, as in the TensorFlow ResNets for CIFAR, half of the new channels (rounded down) come
    first and the rest last, so the old ones sit in the middle.
    """

    def __init__(self, channels: int, **kwargs: Any):
        super().__init__(**kwargs)
        self.channels = channels

    def build(self, input_shape: BatchShape) -> None:
        if input_shape[-1] is None or input_shape[-1] > self.channels:
            raise InputError(
                f"PadChannels({self.channels}) expects an input with at most {self.channels} "
                f"channels on its last axis, but its input has shape {tuple(input_shape)}. Ask for "
                "at least as many channels as come in."
            )

    def call(self, inputs: tf.Tensor) -> tf.Tensor:
        before, after = self.padding(inputs.shape[-1])
        return keras.ops.pad(inputs, [(0, 0)] * (len(inputs.shape) - 1) + [(before, after)])

    def padding(self, channels: int) -> tuple[int, int]:
        """How many zero channels stand before and after ``channels`` incoming ones."""
        new = self.channels - channels
        return new // 2, new - new // 2

    def compute_output_shape(self, input_shape: BatchShape) -> BatchShape:
        return (*input_shape[:-1], self.channels)

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "channels": self.channels}
