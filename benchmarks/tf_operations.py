"""`network.Operations` in plain TensorFlow; channels last."""

from __future__ import annotations

import tensorflow as tf


class TensorFlow:
    def conv(self, node, x):
        return tf.nn.conv2d(x, tf.constant(node.kernel, x.dtype), node.options["stride"], "SAME")

    def dense(self, node, x):
        return tf.matmul(x, tf.constant(node.kernel, x.dtype))

    def bias(self, x, values):
        return x + values

    def leaky_relu(self, x, slope):
        return tf.nn.relu(x) if slope == 0 else tf.nn.leaky_relu(x, slope)

    def average(self, x, window, stride):
        return tf.nn.avg_pool2d(x, window, stride, "SAME")

    def pad_channels(self, x, before, after):
        return tf.pad(x, ((0, 0), (0, 0), (0, 0), (before, after)))

    def mean(self, x):
        return tf.reduce_mean(x, (1, 2))
