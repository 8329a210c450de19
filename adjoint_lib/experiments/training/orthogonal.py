"""Gradient descent that turns convolution kernels by orthogonal steps: the optimiser Muon.

A kernel of shape (h, w, C, D) is a matrix, (h w C) x D, from windows to outputs. Its gradient has a
few large singular values and many small ones, so a gradient step moves it along a few directions.
Muon (Jordan et al., 2024) steps along the nearest matrix with orthogonal columns instead, in which
all directions weigh the same.
"""

from __future__ import annotations

import keras
import tensorflow as tf

# The odd quintic that Jordan et al. found: iterated, it takes every singular value in (0, 1] to
# somewhere near 1, the small ones in few rounds.
QUINTIC = (3.4445, -4.7750, 2.0315)
ROUNDS = 4


class Muon(keras.optimizers.SGD):
    """Nesterov's gradient descent, but for convolution kernels, which turn by orthogonal steps.

    A kernel is moved by ``kernel_rate`` times the learning rate along ``orthogonal`` of Nesterov's
    mean of its gradients. Before that it is scaled:

    - ``kernel_decay`` None: to norm sqrt(D) for D outputs, as D orthonormal columns have it. For
      networks with batch normalisation after each convolution, which makes them independent of
      norms.
    - ``kernel_decay`` a number: by 1 - kernel_decay * learning rate, so norms are learned, too.
    """

    def __init__(self, kernel_rate: float, kernel_decay: float | None = None, **options):
        super().__init__(nesterov=True, **options)
        self.kernel_rate, self.kernel_decay = kernel_rate, kernel_decay

    def update_step(self, gradient, variable, learning_rate):
        """Change one variable along its gradient, as Keras asks for it."""
        if len(variable.shape) != 4:
            super().update_step(gradient, variable, learning_rate)
            return
        if self.momentum:
            mean = self.momentums[self._get_variable_index(variable)]
            self.assign(mean, self.momentum * mean + gradient)
            gradient += self.momentum * mean
        kernel = self._scaled(tf.convert_to_tensor(variable), learning_rate)
        self.assign(variable, kernel - self.kernel_rate * learning_rate * orthogonal(gradient))

    def _scaled(self, kernel: tf.Tensor, learning_rate: tf.Tensor) -> tf.Tensor:
        if self.kernel_decay is None:
            return kernel * (kernel.shape[-1] ** 0.5 / tf.norm(kernel))
        return kernel * (1 - self.kernel_decay * learning_rate)


def orthogonal(kernel: tf.Tensor) -> tf.Tensor:
    """A kernel (h, w, C, D) of the same singular vectors, with singular values between 0.6 and 1.3.

    As in the optimiser's own code the singular values are not exactly 1: the polynomial reaches the
    neighbourhood of 1 sooner so. Values below about 1/100 of the norm are still smaller after four
    rounds.
    """
    a, b, c = QUINTIC
    columns = kernel.shape[-1]
    matrix = tf.reshape(kernel, (-1, columns))
    if wide := matrix.shape[0] < columns:
        matrix = tf.transpose(matrix)
    matrix /= tf.norm(matrix) + 1e-7
    for _ in range(ROUNDS):
        gram = tf.matmul(matrix, matrix, transpose_a=True)
        matrix = a * matrix + tf.matmul(matrix, b * gram + c * tf.matmul(gram, gram))
    return tf.reshape(tf.transpose(matrix) if wide else matrix, kernel.shape)
