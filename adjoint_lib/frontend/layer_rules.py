"""How each Keras layer is written in primitives: one short function for each kind of layer.

A handler takes a `Call`, one use of a layer, appends primitives to the graph and returns the node
that holds the layer's output. `HANDLERS` says which function serves which layer. Layers are
matched by their exact type, because a subclass may compute something else.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import keras
import numpy as np

from adjoint_lib.core import folding
from adjoint_lib.core import primitives as p
from adjoint_lib.core.graph import Graph, Shape
from adjoint_lib.errors import UnsupportedLayer
from adjoint_lib.frontend import activations, layers

L = keras.layers


@dataclass
class Call:
    """One use of a Keras layer: what a handler needs to write it down."""

    graph: Graph
    layer: keras.layers.Layer
    name: str
    inputs: list[int]  # node numbers
    args: tuple  # positional arguments, node numbers as `Ref`
    drops_softmax: bool = False

    @property
    def input_shapes(self) -> list[Shape]:
        return [self.graph.nodes[i].shape for i in self.inputs]

    @functools.cached_property
    def shape(self) -> Shape:
        """The shape of one row of the layer's output."""
        batched = [(None, *s) for s in self.input_shapes]
        return tuple(
            self.layer.compute_output_shape(batched[0] if len(batched) == 1 else batched)[1:]
        )

    def add(
        self,
        primitive: p.Primitive,
        inputs: Sequence[int] | None = None,
        shape: Shape | None = None,
    ):
        """Append a primitive; by default on the call's inputs and with the layer's output shape."""
        inputs = self.inputs if inputs is None else inputs
        return self.graph.add(self.name, primitive, inputs, self.shape if shape is None else shape)

    def add_bias(self, h: int, values: np.ndarray, origin: str = "bias") -> int:
        return self.graph.bias(self.name, h, values, f"{origin} of {self.name}")

    def add_activation(self, h: int, lowered: activations.Lowered) -> int:
        """Append an activation with its constants as entries of x_b."""
        primitive, constants = lowered
        shape = self.graph.nodes[h].shape
        scalar = (1,) * len(shape)
        sources = [
            self.graph.source(self.name, f"constant {c:g} of {self.name}", np.reshape(c, scalar))
            for c in constants
        ]
        return self.add(primitive, [h, *sources], shape)


@dataclass(frozen=True)
class Ref:
    """The place of a tensor among the arguments of a call: an index into its inputs."""

    index: int


# ------------------------------------------------------------------ layers with a kernel


def conv(call: Call) -> int:
    layer = call.layer
    _refuse_skipped_edges(call, call.input_shapes[0])
    primitive = p.Conv(
        weight(layer.kernel),
        tuple(layer.strides),
        layer.padding.upper(),
        tuple(layer.dilation_rate),
        layer.groups,
        call.input_shapes[0],
    )
    if layer.padding == "causal":
        margin = (layer.kernel_size[0] - 1) * layer.dilation_rate[0]
        length, channels = call.input_shapes[0]
        shape = (length + margin, channels)
        padded = call.add(p.Pad(((margin, 0), (0, 0))), shape=shape)
        primitive = replace(primitive, padding="VALID", input_shape=shape)
        return finish(call, call.add(primitive, [padded]))
    return finish(call, call.add(primitive))


def conv_transpose(call: Call) -> int:
    layer = call.layer
    _refuse_skipped_edges(call, call.shape)
    primitive = p.ConvTranspose(
        weight(layer.kernel),
        tuple(layer.strides),
        layer.padding.upper(),
        tuple(layer.dilation_rate),
        call.shape,
    )
    return finish(call, call.add(primitive))


def _refuse_skipped_edges(call: Call, shape: Shape) -> None:
    """Refuse a 3-D convolution whose forward and gradient disagree in TensorFlow on a CPU.

    With padding "same" and a stride well above the window the padding would be negative. The
    forward pass then skips entries at the edge, the gradient does not. `shape`: of the larger side.
    """
    layer = call.layer
    sizes = zip(shape[:-1], layer.kernel_size, layer.strides, strict=True)
    padding = [(-(-size // stride) - 1) * stride + window - size for size, window, stride in sizes]
    if len(shape) == 4 and layer.padding == "same" and min(padding) < -1:
        raise UnsupportedLayer(
            f"layer '{call.name}' ({type(layer).__name__}) has padding 'same', window "
            f"{tuple(layer.kernel_size)} and strides {tuple(layer.strides)} on "
            f"{' x '.join(map(str, shape[:-1]))} entries: TensorFlow's forward pass and gradient "
            "begin at different entries there, so its result is not defined. Use padding 'valid', "
            "or strides at most one above the window."
        )


def depthwise_conv(call: Call) -> int:
    layer = call.layer
    return finish(call, call.add(_depthwise(call, weight(layer.kernel))))


def separable_conv(call: Call) -> int:
    """A depthwise convolution, then a 1 x 1 convolution: two layers with kernels."""
    layer = call.layer
    kernel = weight(layer.depthwise_kernel)
    middle = (*call.shape[:-1], kernel.shape[2] * kernel.shape[3])
    depthwise = call.graph.add(
        f"{call.name}/depthwise", _depthwise(call, kernel), call.inputs, middle
    )
    pointwise = p.Conv(weight(layer.pointwise_kernel), (1, 1), "VALID", (1, 1), 1, middle)
    out = call.graph.add(f"{call.name}/pointwise", pointwise, [depthwise], call.shape)
    return finish(call, out)


def _depthwise(call: Call, kernel: np.ndarray) -> p.DepthwiseConv:
    layer = call.layer
    return p.DepthwiseConv(
        kernel,
        tuple(layer.strides),
        layer.padding.upper(),
        tuple(layer.dilation_rate),
        call.input_shapes[0],
    )


def dense(call: Call) -> int:
    return finish(call, call.add(p.Dense(weight(call.layer.kernel))))


def finish(call: Call, h: int) -> int:
    """What follows the kernel inside a Keras layer: its bias and its activation."""
    if call.layer.use_bias:
        h = call.add_bias(h, weight(call.layer.bias))
    return activate(call, h, call.layer.activation)


# ------------------------------------------------------------------ activations


def activate(call: Call, h: int, function: Callable | None) -> int:
    name = activation_name(function)
    if name == "linear" or (name == "softmax" and call.drops_softmax):
        return h
    return call.add_activation(h, activations.PIECEWISE[name]())


def activation(call: Call) -> int:
    return activate(call, call.inputs[0], call.layer.activation)


def relu(call: Call) -> int:
    layer = call.layer
    lowered = activations.relu(layer.negative_slope, layer.max_value, layer.threshold)
    return call.add_activation(call.inputs[0], lowered)


def leaky_relu(call: Call) -> int:
    return call.add_activation(call.inputs[0], activations.leaky_relu(call.layer.negative_slope))


def prelu(call: Call) -> int:
    return call.add_activation(call.inputs[0], activations.prelu(weight(call.layer.alpha)))


def activation_name(function: Callable | None) -> str:
    """The Keras name of an activation function; a function that is not Keras's own has none."""
    if function is None:
        return "linear"
    name = getattr(function, "__name__", type(function).__name__)
    known = getattr(keras.activations, name, None)
    return name if known is function else f"{name} (not one of keras.activations)"


# ------------------------------------------------------------------ normalisation and scaling


def batch_norm(call: Call) -> int:
    layer = call.layer
    mean, variance = weight(layer.moving_mean), weight(layer.moving_variance)
    gamma = weight(layer.gamma) if layer.scale else np.ones_like(mean)
    beta = weight(layer.beta) if layer.center else np.zeros_like(mean)
    scale, bias = folding.batch_norm(gamma, beta, mean, variance, layer.epsilon)
    axis = layer.axis if layer.axis < 0 else layer.axis - len(call.shape) - 1
    return _affine(
        call, along(scale, axis), along(bias, axis), "beta - gamma mean / sqrt(variance + epsilon)"
    )


def rescaling(call: Call) -> int:
    """Keras casts plain numbers through float32, even in a float64 model: so do we."""
    layer = call.layer
    cast = [keras.ops.cast(value, layer.compute_dtype) for value in (layer.scale, layer.offset)]
    scale, offset = (weight(value) for value in cast)
    return _affine(call, scale, offset, "offset") if offset.any() else call.add(p.Scale(scale))


def normalization(call: Call) -> int:
    layer = call.layer
    rank = len(call.shape)
    mean, variance = (np.asarray(m, float) for m in (layer.mean, layer.variance))
    mean, variance = (
        m.reshape(m.shape[m.ndim - rank :]) if m.ndim > rank else m for m in (mean, variance)
    )
    deviation = np.maximum(np.sqrt(variance), keras.config.epsilon())
    if layer.invert:
        return _affine(call, deviation, mean, "mean")
    return _affine(call, 1 / deviation, -mean / deviation, "- mean / deviation")


def multiplier(call: Call) -> int:
    return call.add(p.Scale(weight(call.layer.multiplier)))


def scalar_bias(call: Call) -> int:
    return call.add_bias(call.inputs[0], weight(call.layer.bias))


def _affine(call: Call, scale: np.ndarray, bias: np.ndarray, origin: str) -> int:
    return call.add_bias(call.add(p.Scale(scale)), bias, origin)


def along(values: np.ndarray, axis: int) -> np.ndarray:
    """A vector shaped to broadcast along `axis` (negative, from the end)."""
    return np.reshape(values, (-1, *(1,) * (-axis - 1)))


# ------------------------------------------------------------------ pooling


def max_pool(call: Call) -> int:
    return _pool(call, p.MaxPool)


def average_pool(call: Call) -> int:
    return _pool(call, p.AveragePool)


def _pool(call: Call, primitive: type[p.MaxPool] | type[p.AveragePool]) -> int:
    """Pooling over two axes; a sequence is pooled as an image one pixel high."""
    layer, shape = call.layer, call.input_shapes[0]
    window, strides, padding = layer.pool_size, layer.strides, layer.padding.upper()
    if len(shape) == 3:
        return call.add(primitive(tuple(window), tuple(strides), padding, shape))
    flat, out = (1, *shape), (1, *call.shape)
    h = call.add(p.Reshape(shape, flat), shape=flat)
    h = call.add(primitive((1, window[0]), (1, strides[0]), padding, flat), [h], out)
    return call.add(p.Reshape(out, call.shape), [h])


def global_average(call: Call) -> int:
    shape = call.input_shapes[0]
    h = call.add(p.Mean(tuple(range(len(shape) - 1)), shape), shape=shape[-1:])
    return _keepdims(call, h)


def global_max(call: Call) -> int:
    shape = call.input_shapes[0]
    return _keepdims(call, call.add(p.GlobalMax(shape), shape=shape[-1:]))


def _keepdims(call: Call, h: int) -> int:
    if not call.layer.keepdims:
        return h
    return call.add(p.Reshape(call.graph.nodes[h].shape, call.shape), [h])


# ------------------------------------------------------------------ merging


def add(call: Call) -> int:
    return _sum(call, [1.0] * len(call.inputs))


def subtract(call: Call) -> int:
    return _sum(call, [1.0, -1.0])


def average(call: Call) -> int:
    return _sum(call, [1 / len(call.inputs)] * len(call.inputs))


def maximum(call: Call) -> int:
    return _extremum(call, 1)


def minimum(call: Call) -> int:
    return _extremum(call, -1)


def _sum(call: Call, coefficients: list[float]) -> int:
    _refuse_ranks(call, call.input_shapes)
    return call.add(p.Sum(tuple(coefficients), tuple(call.input_shapes)))


def _refuse_ranks(call: Call, shapes: Sequence[Shape]) -> None:
    if len({len(shape) for shape in shapes}) > 1:
        raise UnsupportedLayer(
            f"layer '{call.name}' combines tensors with different numbers of axes, {list(shapes)}; "
            "expected the same number. Reshape them first."
        )


def _extremum(call: Call, sign: int) -> int:
    if len(set(call.input_shapes)) > 1:
        raise UnsupportedLayer(
            f"layer '{call.name}' ({type(call.layer).__name__}) compares tensors of shapes "
            f"{call.input_shapes}; expected equal shapes. Repeat the smaller one first."
        )
    return call.add(p.Extremum(sign))


def concatenate(call: Call) -> int:
    axis = call.layer.axis
    axis = axis - 1 if axis > 0 else axis + len(call.shape)
    return call.add(p.Concatenate(axis, tuple(s[axis] for s in call.input_shapes)))


# ------------------------------------------------------------------ moving entries about


def identity(call: Call) -> int:
    return call.inputs[0]


def reshape(call: Call) -> int:
    return call.add(p.Reshape(call.input_shapes[0], call.shape))


def permute(call: Call) -> int:
    return call.add(p.Permute(tuple(d - 1 for d in call.layer.dims)))


def zero_padding(call: Call) -> int:
    return call.add(p.Pad((*_margins(call.layer.padding), (0, 0))))


def cropping(call: Call) -> int:
    return call.add(p.Crop((*_margins(call.layer.cropping), (0, 0))))


def _margins(margins: Sequence) -> tuple[tuple[int, int], ...]:
    """Keras writes ((top, bottom), (left, right)) for images, (before, after) for sequences."""
    pairs = margins if isinstance(margins[0], Sequence) else [margins]
    return tuple((int(before), int(after)) for before, after in pairs)


def pad_channels(call: Call) -> int:
    margins = call.layer.padding(call.input_shapes[0][-1])
    return call.add(p.Pad((*((0, 0),) * (len(call.shape) - 1), margins)))


def up_sampling(call: Call) -> int:
    """Repeat, or interpolate linearly, each axis by a constant matrix."""
    factors = call.layer.size if isinstance(call.layer.size, Sequence) else (call.layer.size,)
    kind = getattr(call.layer, "interpolation", "nearest")
    if kind not in INTERPOLATION:
        raise UnsupportedLayer(
            f"layer '{call.name}' (UpSampling2D) interpolates by '{kind}'; "
            f"supported: {', '.join(INTERPOLATION)}."
        )
    h, shape = call.inputs[0], list(call.input_shapes[0])
    for axis, factor in enumerate(factors):
        matrix = INTERPOLATION[kind](shape[axis], factor)
        shape[axis] *= factor
        h = call.add(p.AlongAxis(matrix, axis + 1), [h], tuple(shape))
    return h


def nearest(size: int, factor: int) -> np.ndarray:
    """(size, size * factor): every entry repeated."""
    return np.repeat(np.eye(size), factor, axis=1)


def bilinear(size: int, factor: int) -> np.ndarray:
    """(size, size * factor): linear interpolation between pixel centres, edges continued."""
    centres = (np.arange(size * factor) + 0.5) / factor - 0.5
    centres = np.clip(centres, 0, size - 1)
    return np.maximum(0, 1 - np.abs(np.arange(size)[:, None] - centres[None, :]))


INTERPOLATION = {"nearest": nearest, "bilinear": bilinear}


# ------------------------------------------------------------------ operators on symbolic tensors


def plus(call: Call) -> int:
    return _combine(call, 1.0)


def minus(call: Call) -> int:
    return _combine(call, -1.0)


def _combine(call: Call, sign: float) -> int:
    """x + y and x - y, where one of the two may be a constant: an entry of x_b then."""
    x, y = (_operand(call, a) for a in call.args[:2])
    _refuse_ranks(call, [call.graph.nodes[n].shape for n in (x, y)])
    shapes = tuple(call.graph.nodes[n].shape for n in (x, y))
    shape = tuple(np.broadcast_shapes(*shapes))
    return call.add(p.Sum((1.0, sign), shapes), (x, y), shape)


def _operand(call: Call, argument: Ref | float) -> int:
    if isinstance(argument, Ref):
        return call.inputs[argument.index]
    values = call.graph.aligned(argument, call.inputs[0])
    return call.graph.source(call.name, f"constant of {call.name}", values)


def times(call: Call) -> int:
    return _scale_by_constant(call, *call.args[:2])


def divided(call: Call) -> int:
    x, divisor = call.args[:2]
    if isinstance(divisor, Ref):
        raise product_of_activations(call.name)
    return _scale_by_constant(call, x, 1 / np.asarray(divisor, float))


def _scale_by_constant(call: Call, a: Ref | float, b: Ref | float) -> int:
    x, factor = (a, b) if isinstance(a, Ref) else (b, a)
    if isinstance(factor, Ref):
        raise product_of_activations(call.name)
    x, factor = call.inputs[x.index], np.asarray(factor, float)
    shape = tuple(np.broadcast_shapes(call.graph.nodes[x].shape, factor.shape))
    if shape != call.graph.nodes[x].shape:
        raise UnsupportedLayer(
            f"operation '{call.name}' multiplies {call.graph.nodes[x].shape} by a "
            f"constant of shape {factor.shape}, which changes the shape."
        )
    return call.add(p.Scale(factor), [x], shape)


def negative(call: Call) -> int:
    shape = call.input_shapes[0]
    return call.add(p.Scale(np.array(-1.0)), shape=shape)


def product_of_activations(name: str) -> UnsupportedLayer:
    return UnsupportedLayer(
        f"operation '{name}' multiplies or divides activations by each other, which is not "
        "piecewise linear. Only products with constants are supported."
    )


def weight(variable: keras.Variable) -> np.ndarray:
    """A variable's value in float64: folding is done in float64 whatever the model's dtype."""
    return np.asarray(keras.ops.convert_to_numpy(variable), float)


# ------------------------------------------------------------------ which function for which layer

HANDLERS: dict[type, Callable[[Call], int]] = {
    **dict.fromkeys((L.Conv1D, L.Conv2D, L.Conv3D), conv),
    **dict.fromkeys((L.Conv1DTranspose, L.Conv2DTranspose, L.Conv3DTranspose), conv_transpose),
    L.DepthwiseConv2D: depthwise_conv,
    L.SeparableConv2D: separable_conv,
    L.Dense: dense,
    L.Activation: activation,
    L.ReLU: relu,
    L.LeakyReLU: leaky_relu,
    L.PReLU: prelu,
    L.Softmax: identity,  # only one that ends the network comes here, and is dropped
    L.BatchNormalization: batch_norm,
    L.Rescaling: rescaling,
    L.Normalization: normalization,
    layers.Multiplier: multiplier,
    layers.Bias: scalar_bias,
    layers.PadChannels: pad_channels,
    **dict.fromkeys((L.MaxPooling1D, L.MaxPooling2D), max_pool),
    **dict.fromkeys((L.AveragePooling1D, L.AveragePooling2D), average_pool),
    L.GlobalAveragePooling1D: global_average,
    L.GlobalAveragePooling2D: global_average,
    L.GlobalAveragePooling3D: global_average,
    **dict.fromkeys((L.GlobalMaxPooling1D, L.GlobalMaxPooling2D, L.GlobalMaxPooling3D), global_max),
    L.Add: add,
    L.Subtract: subtract,
    L.Average: average,
    L.Maximum: maximum,
    L.Minimum: minimum,
    L.Concatenate: concatenate,
    **dict.fromkeys((L.Flatten, L.Reshape), reshape),
    L.Permute: permute,
    **dict.fromkeys((L.ZeroPadding1D, L.ZeroPadding2D, L.ZeroPadding3D), zero_padding),
    **dict.fromkeys((L.Cropping1D, L.Cropping2D, L.Cropping3D), cropping),
    **dict.fromkeys((L.UpSampling1D, L.UpSampling2D), up_sampling),
    **dict.fromkeys((L.SpatialDropout1D, L.SpatialDropout2D, L.SpatialDropout3D), identity),
    **dict.fromkeys((L.Dropout, L.GaussianDropout, L.AlphaDropout, L.GaussianNoise), identity),
    **dict.fromkeys((L.Identity, L.ActivityRegularization), identity),
}

OPERATORS: dict[str, Callable[[Call], int]] = {
    "Add": plus,
    "Subtract": minus,
    "Multiply": times,
    "Divide": divided,
    "TrueDivide": divided,
    "Negative": negative,
}
