"""The building blocks of an equivalent network: each can be evaluated, frozen, pushed and pulled.

A primitive is a map between tensors that is linear once its *pattern* is fixed (which piece of an
activation, which entry of a pooling window). It has four readings:

- ``value(*xs)``            what the layer computes, by TensorFlow's own operation;
- ``freeze(*xs)``           the pattern at this point: ``None`` for a primitive that is linear
  anyway;
- ``push(pattern, *dxs)``   the tangent reading, J dx, of the frozen primitive;
- ``pull(pattern, g)``      the adjoint reading, J* g, one cotangent for each input.

Tensors carry rows first: shape ``(n, *shape)``. A pattern has one row for each image, or a single
row that is broadcast over all n directions.

Parameters are float arrays stored as dataclass fields, so that `cast` (another dtype) and
`absolute` (the same primitive with |parameters|, for the rounding scale A) are one line each.
"""

from __future__ import annotations

import contextlib
import functools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
import tensorflow as tf

Pattern = Any


@dataclass(frozen=True, eq=False)
class Primitive:
    """A linear primitive: its value is its push. Subclasses give `push`, `pull` and `roundings`."""

    def value(self, *xs: tf.Tensor) -> tf.Tensor:
        return self.push(None, *xs)

    def freeze(self, *xs: tf.Tensor) -> Pattern:
        return None

    def freeze_once(self, *xs: tf.Tensor) -> Pattern:
        """The pattern for a single pull in the same graph, of as many rows as there are images."""
        return self.freeze(*xs)

    def push(self, pattern: Pattern, *dxs: tf.Tensor) -> tf.Tensor:
        raise NotImplementedError

    def pull(self, pattern: Pattern, g: tf.Tensor) -> tuple[tf.Tensor, ...]:
        raise NotImplementedError

    @property
    def roundings(self) -> int:
        """How many rounded operations a product meets on its way through, at most."""
        return 0

    def roundings_back(self, shape: tuple[int, ...]) -> int:
        """How many a product meets on its way back in a pull; `shape` is that of the output."""
        return self.roundings

    def cast(self, dtype: tf.DType) -> Primitive:
        """The same primitive with its float parameters as tensors of `dtype`."""
        return self._map_parameters(lambda p: tf.cast(p, dtype))

    def absolute(self) -> Primitive:
        """The same primitive with |parameters|."""
        return self._map_parameters(tf.abs)

    @property
    def held(self) -> dict[str, Any]:
        """All its fields by name: what tells it from another primitive of its kind."""
        return {f.name: getattr(self, f.name) for f in fields(self)}

    def _map_parameters(self, function: Callable[[tf.Tensor], tf.Tensor]) -> Primitive:
        changed = {n: function(p) for n, p in self.held.items() if is_float_array(p)}
        return replace(self, **changed)


def is_float_array(value: object) -> bool:
    """Whether `value` is a float array, scalar or tensor: a parameter, or part of a pattern."""
    if isinstance(value, (np.ndarray, np.generic, tf.Tensor)):
        with contextlib.suppress(TypeError):  # TensorFlow has no such dtype
            return bool(tf.as_dtype(value.dtype).is_floating)
    return False


def map_pattern(function: Callable[[tf.Tensor], tf.Tensor], pattern: Pattern) -> Pattern:
    """The pattern with `function` applied to each of its tensors."""
    return tf.nest.map_structure(lambda p: None if p is None else function(p), pattern)


# ------------------------------------------------------------------ layers with a kernel


@dataclass(frozen=True, eq=False)
class Kernel(Primitive):
    """A primitive with weights: the layers whose units are reconstructed.

    `scaled` multiplies the outgoing channels, which is what folding needs.
    """

    kernel: np.ndarray | tf.Tensor

    def scaled(self, factor: np.ndarray) -> Kernel:
        """The same layer followed by a multiplication of its out-channels by `factor`."""
        return replace(self, kernel=self.kernel * factor)


@dataclass(frozen=True, eq=False)
class Dense(Kernel):
    """Matrix product over the last axis; kernel (c_in, c_out)."""

    def push(self, pattern: Pattern, x: tf.Tensor) -> tf.Tensor:
        return tf.tensordot(x, self.kernel, 1)

    def pull(self, pattern: Pattern, g: tf.Tensor) -> tuple[tf.Tensor, ...]:
        return (tf.tensordot(g, self.kernel, [[-1], [1]]),)

    @property
    def roundings(self) -> int:
        return int(self.kernel.shape[0])

    def roundings_back(self, shape: tuple[int, ...]) -> int:
        return int(self.kernel.shape[1])


@dataclass(frozen=True, eq=False)
class Conv(Kernel):
    """Convolution (cross-correlation), 1 to 3 dimensions; kernel (*window, c_in/groups, c_out)."""

    strides: tuple[int, ...]
    padding: str
    dilation: tuple[int, ...]
    groups: int
    input_shape: tuple[int, ...]

    def push(self, pattern: Pattern, x: tf.Tensor) -> tf.Tensor:
        if self.groups == 1:
            return self._convolve(x, self.kernel)
        pairs = zip(self._by_group(x), self._by_group(self.kernel), strict=True)
        return tf.concat([self._convolve(xs, kernel) for xs, kernel in pairs], -1)

    def pull(self, pattern: Pattern, g: tf.Tensor) -> tuple[tf.Tensor, ...]:
        if self.groups == 1 and set(self.strides) == {1} and len(self.strides) == 2:
            return (tf.nn.conv2d(g, *self._turned),)
        kernel = spread(self.kernel, self.dilation)
        if self.groups == 1:
            return (self._transpose(g, kernel),)
        pairs = zip(self._by_group(g), self._by_group(kernel), strict=True)
        return (tf.concat([self._transpose(gs, kernel) for gs, kernel in pairs], -1),)

    @functools.cached_property
    def _turned(self) -> tuple[tf.Tensor, int, list[tuple[int, int]]]:
        """Kernel, stride and padding of the adjoint of a convolution in the plane with stride 1.

        That is a convolution too, with the kernel turned around and its channels exchanged.
        """
        with tf.init_scope():  # kept for later calls: no tensor of a graph that is being traced
            kernel = spread(self.kernel, self.dilation)
            turned = tf.transpose(kernel[::-1, ::-1], (0, 1, 3, 2))
        overlaps = [taps - 1 for taps in kernel.shape[:2]]
        if self.padding == "SAME":  # its zeros are o // 2 before and o - o // 2 after
            margins = [(o - o // 2, o // 2) for o in overlaps]
        else:
            margins = [(o, o) for o in overlaps]
        return turned, 1, [(0, 0), *margins, (0, 0)]

    def taps(self, x: tf.Tensor) -> Iterator[tuple[tuple[int, ...], tf.Tensor]]:
        """What each tap of the window reads: (its place in the kernel, (n, *positions, c_in)).

        Times the kernel at its tap, summed over taps and in-channels, that is the convolution (of
        one group). Here nothing is summed.
        """
        margins, steps = [], []
        for axis, (stride, rate) in enumerate(zip(self.strides, self.dilation, strict=True)):
            size, taps = x.shape[1 + axis], (self.kernel.shape[axis] - 1) * rate + 1
            before, outputs = padding_of(size, taps, stride, self.padding)
            last = (outputs - 1) * stride
            margins.append((before, max(0, last + taps - before - size)))
            steps.append((rate, last + 1, stride))
        x = tf.pad(x, ((0, 0), *margins, (0, 0)))
        for tap in np.ndindex(*self.kernel.shape[:-2]):
            pairs = zip(tap, steps, strict=True)
            read = [slice(t * rate, t * rate + length, step) for t, (rate, length, step) in pairs]
            index = (slice(None), *read)
            yield tap, x[index]

    def _by_group(self, x: tf.Tensor) -> list[tf.Tensor]:
        return tf.split(x, self.groups, axis=-1)

    def _convolve(self, x: tf.Tensor, kernel: tf.Tensor) -> tf.Tensor:
        x, kernel = two_channels(x, kernel, self.strides)
        return tf.nn.convolution(x, kernel, self.strides, self.padding, dilations=self.dilation)

    def _transpose(self, g: tf.Tensor, kernel: tf.Tensor) -> tf.Tensor:
        shape = (tf.shape(g)[0], *self.input_shape[:-1], kernel.shape[-2])
        return tf.nn.conv_transpose(g, kernel, shape, self.strides, self.padding)

    @property
    def roundings(self) -> int:
        return math.prod(self.kernel.shape[:-1])

    def roundings_back(self, shape: tuple[int, ...]) -> int:
        return math.prod(self.kernel.shape[:-2]) * self.kernel.shape[-1] // self.groups


@dataclass(frozen=True, eq=False)
class DepthwiseConv(Kernel):
    """Convolution of each channel by its own kernels; kernel (r1, r2, c_in, multiplier)."""

    strides: tuple[int, int]
    padding: str
    dilation: tuple[int, int]
    input_shape: tuple[int, ...]

    def push(self, pattern: Pattern, x: tf.Tensor) -> tf.Tensor:
        kernel = spread(self.kernel, self.dilation)
        return tf.nn.depthwise_conv2d(x, kernel, (1, *self.strides, 1), self.padding)

    def pull(self, pattern: Pattern, g: tf.Tensor) -> tuple[tf.Tensor, ...]:
        kernel = spread(self.kernel, self.dilation)
        shape, strides = (tf.shape(g)[0], *self.input_shape), (1, *self.strides, 1)
        adjoint = tf.nn.depthwise_conv2d_backprop_input
        return (adjoint(shape, kernel, g, strides, self.padding),)

    def scaled(self, factor: np.ndarray) -> Kernel:
        factor = np.broadcast_to(factor, math.prod(self.kernel.shape[2:]))
        return replace(self, kernel=self.kernel * factor.reshape(self.kernel.shape[2:]))

    @property
    def roundings(self) -> int:
        return math.prod(self.kernel.shape[:2])

    def roundings_back(self, shape: tuple[int, ...]) -> int:
        return self.roundings * self.kernel.shape[-1]


@dataclass(frozen=True, eq=False)
class ConvTranspose(Kernel):
    """Transposed convolution: the adjoint of a `Conv`; kernel (*window, c_out, c_in)."""

    strides: tuple[int, ...]
    padding: str
    dilation: tuple[int, ...]
    output_shape: tuple[int, ...]

    def push(self, pattern: Pattern, x: tf.Tensor) -> tf.Tensor:
        kernel = spread(self.kernel, self.dilation)
        shape = (tf.shape(x)[0], *self.output_shape)
        return tf.nn.conv_transpose(x, kernel, shape, self.strides, self.padding)

    def pull(self, pattern: Pattern, g: tf.Tensor) -> tuple[tf.Tensor, ...]:
        kernel = spread(self.kernel, self.dilation)
        g, kernel = two_channels(g, kernel, self.strides)
        return (tf.nn.convolution(g, kernel, self.strides, self.padding),)

    def scaled(self, factor: np.ndarray) -> Kernel:
        return replace(self, kernel=self.kernel * np.reshape(factor, (-1, 1)))

    @property
    def roundings(self) -> int:
        return math.prod(self.kernel.shape) // self.kernel.shape[-2]

    def roundings_back(self, shape: tuple[int, ...]) -> int:
        return math.prod(self.kernel.shape[:-1])


def two_channels(
    x: tf.Tensor, kernel: tf.Tensor, strides: tuple[int, ...]
) -> tuple[tf.Tensor, tf.Tensor]:
    """The two, with a second in-channel of zeros where TensorFlow errs with a single one.

    For strides (1, s) and an output one entry wide, oneDNN mixes up the rows of a float32 batch.
    """
    if kernel.shape[-2] > 1 or len(set(strides)) == 1:
        return x, kernel
    return tf.concat([x, tf.zeros_like(x)], -1), tf.concat([kernel, tf.zeros_like(kernel)], -2)


def padding_of(size: int, taps: int, stride: int, kind: str) -> tuple[int, int]:
    """(zeros before, size of the output) of TensorFlow's SAME and VALID padding."""
    if kind == "VALID":
        return 0, (size - taps) // stride + 1
    outputs = -(-size // stride)
    return max((outputs - 1) * stride + taps - size, 0) // 2, outputs


def spread(kernel: tf.Tensor, dilation: tuple[int, ...]) -> tf.Tensor:
    """The kernel with its taps `dilation` apart, zeros between: dilation on any CPU, exactly."""
    for axis, rate in enumerate(dilation):
        if rate > 1:
            taps = kernel.shape[axis]
            positions = tf.range(taps) * rate
            matrix = tf.one_hot(positions, (taps - 1) * rate + 1, dtype=kernel.dtype)
            kernel = along_axis(kernel, matrix, axis)
    return kernel


def along_axis(x: tf.Tensor, matrix: tf.Tensor, axis: int) -> tf.Tensor:
    """Contract `axis` of x with the first axis of `matrix`, the result in the same place."""
    product = tf.tensordot(x, matrix, [[axis], [0]])
    order = list(range(len(x.shape) - 1))
    order.insert(axis, len(x.shape) - 1)
    return tf.transpose(product, order)


# ------------------------------------------------------------------ sums and scalings


@dataclass(frozen=True, eq=False)
class Sum(Primitive):
    """Weighted sum of inputs that are broadcast to one shape: addition, subtraction, average, bias.

    A ``None`` among the inputs of `push` stands for zero.
    """

    coefficients: tuple[float, ...]
    shapes: tuple[tuple[int, ...], ...]

    def push(self, pattern: Pattern, *xs: tf.Tensor) -> tf.Tensor:
        terms = [times(c, x) for c, x in zip(self.coefficients, xs, strict=True) if x is not None]
        total = sum(terms[1:], terms[0])
        if tuple(total.shape[1:]) == self.output_shape:
            return total
        return tf.broadcast_to(total, (tf.shape(total)[0], *self.output_shape))

    def pull(self, pattern: Pattern, g: tf.Tensor) -> tuple[tf.Tensor, ...]:
        pairs = zip(self.coefficients, self.shapes, strict=True)
        return tuple(unbroadcast(times(c, g), shape) for c, shape in pairs)

    def absolute(self) -> Primitive:
        return replace(self, coefficients=tuple(abs(c) for c in self.coefficients))

    @property
    def output_shape(self) -> tuple[int, ...]:
        return tuple(np.broadcast_shapes(*self.shapes))

    @property
    def roundings(self) -> int:
        return len(self.shapes)

    def roundings_back(self, shape: tuple[int, ...]) -> int:
        return math.prod(shape) // min(math.prod(each) for each in self.shapes)


def times(coefficient: float, x: tf.Tensor) -> tf.Tensor:
    """coefficient * x, without touching x where the coefficient is one."""
    return x if coefficient == 1 else coefficient * x


def unbroadcast(g: tf.Tensor, shape: tuple[int, ...]) -> tf.Tensor:
    """The adjoint of broadcasting `shape` to the shape of g's rows: sum over the stretched axes."""
    rank = len(g.shape) - 1
    padded = (1,) * (rank - len(shape)) + tuple(shape)
    axes = [a + 1 for a in range(rank) if padded[a] == 1 and g.shape[a + 1] != 1]
    if axes:
        g = tf.reduce_sum(g, axes, keepdims=True)
    return g if g.shape[1:] == shape else tf.reshape(g, (-1, *shape))


@dataclass(frozen=True, eq=False)
class Scale(Primitive):
    """Multiplication by constants that are broadcast: batch normalisation left alone, rescaling."""

    roundings = 1
    factor: np.ndarray | tf.Tensor

    def push(self, pattern: Pattern, x: tf.Tensor) -> tf.Tensor:
        return x * self.factor

    def pull(self, pattern: Pattern, g: tf.Tensor) -> tuple[tf.Tensor, ...]:
        return (g * self.factor,)


@dataclass(frozen=True, eq=False)
class AlongAxis(Primitive):
    """A constant matrix (size_in, size_out) along one axis: upsampling."""

    matrix: np.ndarray | tf.Tensor
    axis: int

    def push(self, pattern: Pattern, x: tf.Tensor) -> tf.Tensor:
        return along_axis(x, self.matrix, self.axis)

    def pull(self, pattern: Pattern, g: tf.Tensor) -> tuple[tf.Tensor, ...]:
        return (along_axis(g, tf.transpose(self.matrix), self.axis),)

    @property
    def roundings(self) -> int:
        return int(np.count_nonzero(np.asarray(self.matrix), axis=0).max())

    def roundings_back(self, shape: tuple[int, ...]) -> int:
        return int(np.count_nonzero(np.asarray(self.matrix), axis=1).max())


@dataclass(frozen=True, eq=False)
class AveragePool(Primitive):
    """Average pooling; padded entries do not count, as TensorFlow has it."""

    window: tuple[int, int]
    strides: tuple[int, int]
    padding: str
    input_shape: tuple[int, ...]

    def push(self, pattern: Pattern, x: tf.Tensor) -> tf.Tensor:
        return tf.nn.avg_pool2d(x, self.window, self.strides, self.padding)

    def pull(self, pattern: Pattern, g: tf.Tensor) -> tuple[tf.Tensor, ...]:
        shape, strides = (tf.shape(g)[0], *self.input_shape), (1, *self.strides, 1)
        sliding = {"ksize": (1, *self.window, 1), "strides": strides, "padding": self.padding}
        return (tf.raw_ops.AvgPoolGrad(orig_input_shape=shape, grad=g, **sliding),)

    @property
    def roundings(self) -> int:
        return math.prod(self.window) + 1


@dataclass(frozen=True, eq=False)
class Mean(Primitive):
    """Mean over some axes (counted without the row axis): global average pooling."""

    axes: tuple[int, ...]
    input_shape: tuple[int, ...]

    def push(self, pattern: Pattern, x: tf.Tensor) -> tf.Tensor:
        return tf.reduce_mean(x, [a + 1 for a in self.axes])

    def pull(self, pattern: Pattern, g: tf.Tensor) -> tuple[tf.Tensor, ...]:
        kept = [1 if a in self.axes else size for a, size in enumerate(self.input_shape)]
        g = tf.reshape(g / self._count, (tf.shape(g)[0], *kept))
        return (tf.broadcast_to(g, (tf.shape(g)[0], *self.input_shape)),)

    @property
    def _count(self) -> int:
        return math.prod(self.input_shape[a] for a in self.axes)

    @property
    def roundings(self) -> int:
        return self._count + 1


# ------------------------------------------------------------------ moving entries about


@dataclass(frozen=True, eq=False)
class Reshape(Primitive):
    """Another shape for the same entries: flatten, reshape."""

    input_shape: tuple[int, ...]
    output_shape: tuple[int, ...]

    def push(self, pattern: Pattern, x: tf.Tensor) -> tf.Tensor:
        return tf.reshape(x, (tf.shape(x)[0], *self.output_shape))

    def pull(self, pattern: Pattern, g: tf.Tensor) -> tuple[tf.Tensor, ...]:
        return (tf.reshape(g, (tf.shape(g)[0], *self.input_shape)),)


@dataclass(frozen=True, eq=False)
class Permute(Primitive):
    """Axes in another order (counted without the row axis)."""

    order: tuple[int, ...]

    def push(self, pattern: Pattern, x: tf.Tensor) -> tf.Tensor:
        return tf.transpose(x, (0, *(a + 1 for a in self.order)))

    def pull(self, pattern: Pattern, g: tf.Tensor) -> tuple[tf.Tensor, ...]:
        return (tf.transpose(g, (0, *(int(a) + 1 for a in np.argsort(self.order)))),)


@dataclass(frozen=True, eq=False)
class Pad(Primitive):
    """Zeros around the entries; one (before, after) pair for each axis."""

    margins: tuple[tuple[int, int], ...]

    def push(self, pattern: Pattern, x: tf.Tensor) -> tf.Tensor:
        return tf.pad(x, ((0, 0), *self.margins))

    def pull(self, pattern: Pattern, g: tf.Tensor) -> tuple[tf.Tensor, ...]:
        return (trim(g, self.margins),)


@dataclass(frozen=True, eq=False)
class Crop(Primitive):
    """Entries cut off; one (before, after) pair for each axis."""

    margins: tuple[tuple[int, int], ...]

    def push(self, pattern: Pattern, x: tf.Tensor) -> tf.Tensor:
        return trim(x, self.margins)

    def pull(self, pattern: Pattern, g: tf.Tensor) -> tuple[tf.Tensor, ...]:
        return (tf.pad(g, ((0, 0), *self.margins)),)


def trim(x: tf.Tensor, margins: tuple[tuple[int, int], ...]) -> tf.Tensor:
    """x without `before` and `after` entries of each axis; the row axis is left whole."""
    pairs = zip(margins, x.shape[1:], strict=True)
    index = (slice(None), *(slice(before, size - after) for (before, after), size in pairs))
    return x[index]


@dataclass(frozen=True, eq=False)
class Concatenate(Primitive):
    """Inputs side by side along one axis (counted without the row axis)."""

    axis: int
    sizes: tuple[int, ...]

    def push(self, pattern: Pattern, *xs: tf.Tensor) -> tf.Tensor:
        return tf.concat(xs, self.axis + 1)

    def pull(self, pattern: Pattern, g: tf.Tensor) -> tuple[tf.Tensor, ...]:
        return tuple(tf.split(g, self.sizes, self.axis + 1))


# ------------------------------------------------------------------ what the pattern decides


@dataclass(frozen=True, eq=False)
class Activation(Primitive):
    """A piecewise-linear scalar function, jointly homogeneous in (h, constants).

    Piece p of P pieces is ``slopes[p] * h + sum_m intercepts[p, m] * constants[m]``, and it begins
    above ``breakpoints[p - 1] @ constants`` (zero without constants). The constants (the 6 of
    ReLU6, the -1 and 1 of hard tanh) are inputs like h itself: entries of x_b. So no intercept is
    left over, and J(kv) = J(v) for every k > 0.

    The pattern is (slope of each entry, [weight of each constant at each entry]).
    """

    function: Callable[..., tf.Tensor]
    slopes: np.ndarray | tf.Tensor  # (P,) or (P, *shape) for slopes of their own at each entry
    breakpoints: tuple[tuple[float, ...], ...] = ((),)  # (P - 1, M)
    intercepts: tuple[tuple[float, ...], ...] = ((), ())  # (P, M)

    def value(self, h: tf.Tensor, *constants: tf.Tensor) -> tf.Tensor:
        return self.function(h, *constants)

    def freeze(self, h: tf.Tensor, *constants: tf.Tensor) -> Pattern:
        pairs = (zip(row, constants, strict=True) for row in self.breakpoints)
        above = [h > sum(c * t for c, t in row) for row in pairs]
        weights = [
            piecewise(column, above, h.dtype) for column in zip(*self.intercepts, strict=True)
        ]
        return piecewise(self.slopes, above, h.dtype), weights

    @property
    def jumps(self) -> bool:
        """Whether two neighbouring pieces differ where they meet, as those of a threshold do."""
        if len(self.slopes.shape) > 1:  # PReLU
            return False
        rises = np.diff(self.slopes)[:, None] * np.array(self.breakpoints)
        return not np.allclose(rises, -np.diff(self.intercepts, axis=0))

    def push(self, pattern: Pattern, h: tf.Tensor, *constants: tf.Tensor) -> tf.Tensor:
        slope, weights = pattern
        terms = (w * c for w, c in zip(weights, constants, strict=True))
        return sum(terms, h * slope)

    def freeze_once(self, h: tf.Tensor, *constants: tf.Tensor) -> Pattern:
        """The pattern for one pull in the same graph, of as many rows: of a ReLU, h itself."""
        if not constants and self.slopes.shape == (2,):
            leak, slope = np.asarray(self.slopes)
            if slope == 1 and np.float32(leak) == leak:  # TensorFlow keeps leaks in float32
                return Kink(h, float(leak))
        return self.freeze(h, *constants)

    def pull(self, pattern: Pattern, g: tf.Tensor) -> tuple[tf.Tensor, ...]:
        if isinstance(pattern, Kink):
            return (pattern.pull(g),)
        slope, weights = pattern
        constants = (row_sums(g, w) for w in weights)
        rank = len(g.shape) - 1
        return g * slope, *(tf.reshape(c, (-1,) + (1,) * rank) for c in constants)

    @property
    def roundings(self) -> int:
        return 1 + len(self.intercepts[0])

    def roundings_back(self, shape: tuple[int, ...]) -> int:
        return math.prod(shape) if self.intercepts[0] else 1


@dataclass(frozen=True)
class Kink:
    """The pattern of a ReLU that is pulled once: its input, instead of slopes as large as it."""

    h: tf.Tensor
    leak: float

    def pull(self, g: tf.Tensor) -> tf.Tensor:
        """g times the slope, 1 above zero and else the leak, by TensorFlow's own operation."""
        if self.leak:
            return tf.raw_ops.LeakyReluGrad(gradients=g, features=self.h, alpha=self.leak)
        return tf.raw_ops.ReluGrad(gradients=g, features=self.h)


def row_sums(g: tf.Tensor, weights: tf.Tensor) -> tf.Tensor:
    """The sum of g * weights over each row's entries: (n,); weights have one row, or g's rows."""
    if weights.shape.rank and weights.shape[0] == 1:  # no product as large as g is made
        return tf.tensordot(g, weights[0], len(g.shape) - 1)
    return tf.reduce_sum(g * weights, axis=range(1, len(g.shape)))


class Choice(Primitive):
    """Picks entries of its input; the pattern holds which, as flat indices within a row."""

    input_shape: tuple[int, ...]

    def push(self, pattern: Pattern, x: tf.Tensor) -> tf.Tensor:
        return pick(x, pattern)

    def pull(self, pattern: Pattern, g: tf.Tensor) -> tuple[tf.Tensor, ...]:
        return (unpick(g, pattern, self.input_shape),)


def piecewise(values: Any, above: list[tf.Tensor], dtype: tf.DType) -> tf.Tensor:
    """values[p] at entries above p of the edges, which ascend: exact, faster than a gather."""
    values = np.asarray(values, dtype.as_numpy_dtype)
    steps = np.diff(values, axis=0)
    if values.ndim == 1 and steps.any() and not np.any(values % 1):  # whole numbers: add up steps
        each = [times(s, tf.cast(a, dtype)) for s, a in zip(steps, above, strict=True) if s]
        return sum(each, values[0]) if values[0] else sum(each[1:], each[0])
    chosen = values[0]
    for mask, value in zip(above, values[1:], strict=True):
        chosen = tf.where(mask, value, chosen)
    return chosen


@dataclass(frozen=True, eq=False)
class MaxPool(Choice):
    """Max-pooling: a one-hot kernel that the input chooses."""

    window: tuple[int, int]
    strides: tuple[int, int]
    padding: str
    input_shape: tuple[int, ...]

    def value(self, x: tf.Tensor) -> tf.Tensor:
        return tf.nn.max_pool2d(x, self.window, self.strides, self.padding)

    def freeze(self, x: tf.Tensor) -> Pattern:
        return tf.nn.max_pool_with_argmax(x, self.window, self.strides, self.padding)[1]

    def roundings_back(self, shape: tuple[int, ...]) -> int:
        return math.prod(self.window) - 1


@dataclass(frozen=True, eq=False)
class GlobalMax(Choice):
    """The largest entry of each channel: global max-pooling; input (*positions, c)."""

    input_shape: tuple[int, ...]

    def value(self, x: tf.Tensor) -> tf.Tensor:
        return tf.reduce_max(x, axis=range(1, len(x.shape) - 1))

    def freeze(self, x: tf.Tensor) -> Pattern:
        channels = self.input_shape[-1]
        positions = tf.argmax(tf.reshape(x, (tf.shape(x)[0], -1, channels)), axis=1)
        return positions * channels + tf.range(channels, dtype=tf.int64)


def pick(x: tf.Tensor, chosen: tf.Tensor) -> tf.Tensor:
    """Entries `chosen` (flat indices within a row) of each row; chosen has one row, or x's rows."""
    flat = tf.reshape(x, (tf.shape(x)[0], -1))
    if chosen.shape[0] == 1:
        return tf.gather(flat, chosen[0], axis=1)
    return tf.gather(flat, chosen, axis=1, batch_dims=1)


def unpick(g: tf.Tensor, chosen: tf.Tensor, shape: tuple[int, ...]) -> tf.Tensor:
    """The adjoint of `pick`: each entry of g is added where it was picked from."""
    rows, size = g.shape[0], math.prod(shape)
    first = size * tf.range(rows, dtype=tf.int64)[:, None]
    places = tf.reshape(tf.reshape(chosen, (chosen.shape[0], -1)) + first, (-1,))
    flat = tf.math.unsorted_segment_sum(tf.reshape(g, (-1,)), places, rows * size)
    return tf.reshape(flat, (rows, *shape))


@dataclass(frozen=True, eq=False)
class Extremum(Primitive):
    """Entrywise maximum (sign = 1) or minimum (sign = -1) of several inputs of one shape."""

    roundings = 1
    sign: int

    def value(self, *xs: tf.Tensor) -> tf.Tensor:
        return tf.reduce_max(xs, 0) if self.sign > 0 else tf.reduce_min(xs, 0)

    def freeze(self, *xs: tf.Tensor) -> Pattern:
        winner = tf.argmax(self.sign * tf.stack(xs), 0)
        return [tf.cast(winner == m, xs[0].dtype) for m in range(len(xs))]

    def push(self, pattern: Pattern, *xs: tf.Tensor) -> tf.Tensor:
        return sum(mask * x for mask, x in zip(pattern, xs, strict=True))

    def pull(self, pattern: Pattern, g: tf.Tensor) -> tuple[tf.Tensor, ...]:
        return tuple(mask * g for mask in pattern)
