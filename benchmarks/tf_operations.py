"""`network.Operations` in plain TensorFlow; channels last."""

from __future__ import annotations

import tensorflow as tf


class TensorFlow:
    def conv(self, node, x):
        return tf.nn.conv2d(x, tf.constant(node.kernel, x.dtype), node.options["stride"], "SAME")

    def conv_valid(self, node, x):
        return tf.nn.conv2d(x, tf.constant(node.kernel, x.dtype), node.options["stride"], "VALID")

    def depthwise(self, node, x, padding="SAME"):
        strides = (1, *(node.options["stride"],) * 2, 1)
        return tf.nn.depthwise_conv2d(x, tf.constant(node.kernel, x.dtype), strides, padding)

    def depthwise_valid(self, node, x):
        return self.depthwise(node, x, "VALID")

    def relu6(self, x):
        return tf.nn.relu6(x)

    def max_pool(self, x, window, stride):
        return tf.nn.max_pool2d(x, window, stride, "VALID")

    def zero_pad(self, x, top, bottom, left, right):
        return tf.pad(x, ((0, 0), (top, bottom), (left, right), (0, 0)))

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
