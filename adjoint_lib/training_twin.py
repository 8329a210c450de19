"""A network for training steps that shares its weights with a model: any image size, faster norms.

Keras normalises a batch in several passes over it; TensorFlow's fused operation takes one. On a CPU
that made a training step of VGG7 1.25 times and of ResNet20 1.4 times as fast.
"""

from __future__ import annotations

import keras
import tensorflow as tf


def training_twin(model: keras.Model, size: int, norm_momentum: float | None = None) -> keras.Model:
    """``model`` for images of ``size`` x ``size`` pixels, in training mode, on the same weights.

    A training step of the twin is one of ``model``: its weights are ``model``'s variables and its
    batch normalisation updates ``model``'s running statistics. For float32 functional models whose
    weights do not depend on the image size, with batch normalisation (if any) over the last axis.

    norm_momentum: of the running statistics; None takes each layer's own.
    """

    def shared(layer):
        if isinstance(layer, keras.layers.BatchNormalization):
            return _FusedNorm(layer, norm_momentum or layer.momentum)
        return layer

    images = keras.Input((size, size, 3), name="image")
    return keras.models.clone_model(model, input_tensors=images, clone_function=shared)


class _FusedNorm(keras.layers.Layer):
    """What ``norm``, a batch normalisation layer, does in training, on its weights.

    The one difference is that the running variance follows the unbiased estimate of a batch's
    variance: a factor n / (n - 1), with n the number of values in a channel, thousands here.
    """

    def __init__(self, norm: keras.layers.BatchNormalization, momentum: float):
        super().__init__(name=f"{norm.name}_fused")
        self.norm, self.momentum = norm, momentum

    def call(self, inputs, training=None, mask=None):
        unused = tf.zeros((0,))
        outputs, mean, variance, *_ = tf.raw_ops.FusedBatchNormV3(
            x=inputs,
            scale=self.norm.gamma.value,
            offset=self.norm.beta.value,
            mean=unused,
            variance=unused,
            epsilon=self.norm.epsilon,
            is_training=True,
        )
        self._follow(self.norm.moving_mean, mean)
        self._follow(self.norm.moving_variance, variance)
        return outputs

    def _follow(self, running: keras.Variable, batch: tf.Tensor) -> None:
        running.assign(running * self.momentum + batch * (1 - self.momentum))

    def compute_output_shape(self, input_shape):
        return input_shape
