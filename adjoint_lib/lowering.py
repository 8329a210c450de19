"""Keras layers in terms of primitives: one short function for each kind of layer.

`lower(model)` walks a built functional or Sequential model (nested ones too) and writes it as a
`Graph`. Nothing is computed. A layer it does not know raises `UnsupportedLayer` with the reason
and the remedy, because an equivalent network that is only nearly right would be worse than none.

Layers are matched by their exact type: a subclass may compute something else.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import keras
import numpy as np

from adjoint_lib import activations, folding, layers
from adjoint_lib import primitives as p
from adjoint_lib.errors import InputError, UnsupportedLayer
from adjoint_lib.graph import IMAGE, Graph, Shape

L = keras.layers


def lower(model: keras.Model) -> tuple[Graph, list[int]]:
    """The model as a graph over the image and x_b, before folding.

    Returns the graph and the positions among its outputs that a softmax was dropped from.
    """
    check_model(model)
    plan = list(_flatten(functional(model), prefix=""))
    for operation, name, _ in plan:
        handler_for(operation, name)
    writer = _Writer(Graph())
    writer.graph.image(tuple(model.inputs[0].shape[1:]))
    softmaxed = _final_softmaxes(model)
    writer.skip = set(softmaxed)
    writer.graph.outputs = writer.run(functional(model), [IMAGE], prefix="")
    tensors = functional(model).outputs
    return writer.graph, [i for i, t in enumerate(tensors) if _history(t)[0] in softmaxed]


@dataclass
class Call:
    """One use of a Keras layer: what a handler needs to write it down."""

    graph: Graph
    layer: keras.layers.Layer
    name: str
    inputs: list[int]  # node numbers
    args: tuple  # positional arguments, node numbers as `Ref`
    keep_softmax: bool = True

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
        primitive = p.replace(primitive, padding="VALID", input_shape=shape)
        return finish(call, call.add(primitive, [padded]))
    return finish(call, call.add(primitive))


def conv_transpose(call: Call) -> int:
    layer = call.layer
    primitive = p.ConvTranspose(
        weight(layer.kernel),
        tuple(layer.strides),
        layer.padding.upper(),
        tuple(layer.dilation_rate),
        call.shape,
    )
    return finish(call, call.add(primitive))


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
    if name == "linear" or (name == "softmax" and not call.keep_softmax):
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


def softmax(call: Call) -> int:
    return identity(call)  # reached only where a final softmax is dropped


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
    return (
        call.add(p.Reshape(call.graph.nodes[h].shape, call.shape), [h])
        if call.layer.keepdims
        else h
    )


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
            f"layer '{call.name}' takes the {'maximum' if sign > 0 else 'minimum'} of shapes "
            "that differ, "
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
    before = (call.shape[-1] - call.input_shapes[0][-1]) // 2
    after = call.shape[-1] - call.input_shapes[0][-1] - before
    return call.add(p.Pad((*((0, 0),) * (len(call.shape) - 1), (before, after))))


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
        "piecewise "
        "linear. Only products with constants are supported."
    )


# ------------------------------------------------------------------ what is supported, and why not

HANDLERS: dict[type, Callable[[Call], int]] = {
    L.Conv1D: conv, L.Conv2D: conv, L.Conv3D: conv,
    L.Conv1DTranspose: conv_transpose, L.Conv2DTranspose: conv_transpose, L.Conv3DTranspose:
    conv_transpose, L.DepthwiseConv2D: depthwise_conv, L.SeparableConv2D: separable_conv, L.Dense:
    dense, L.Activation: activation, L.ReLU: relu, L.LeakyReLU: leaky_relu, L.PReLU: prelu,
    L.Softmax: softmax, L.BatchNormalization: batch_norm, L.Rescaling: rescaling, L.Normalization:
    normalization, layers.Multiplier: multiplier, layers.Bias: scalar_bias, layers.PadChannels:
    pad_channels, L.MaxPooling1D: max_pool, L.MaxPooling2D: max_pool, L.AveragePooling1D:
    average_pool, L.AveragePooling2D: average_pool, L.GlobalAveragePooling1D: global_average,
    L.GlobalAveragePooling2D: global_average, L.GlobalAveragePooling3D: global_average,
    L.GlobalMaxPooling1D: global_max, L.GlobalMaxPooling2D: global_max, L.GlobalMaxPooling3D:
    global_max, L.Add: add, L.Subtract: subtract, L.Average: average, L.Maximum: maximum,
    L.Minimum: minimum, L.Concatenate: concatenate, L.Flatten: reshape, L.Reshape: reshape,
    L.Permute: permute, L.ZeroPadding1D: zero_padding, L.ZeroPadding2D: zero_padding,
    L.ZeroPadding3D: zero_padding, L.Cropping1D: cropping, L.Cropping2D: cropping, L.Cropping3D:
    cropping, L.UpSampling1D: up_sampling, L.UpSampling2D: up_sampling, L.Identity: identity,
    L.Dropout: identity, L.SpatialDropout1D: identity, L.SpatialDropout2D: identity,
    L.SpatialDropout3D: identity, L.GaussianNoise: identity, L.GaussianDropout: identity,
    L.AlphaDropout: identity, L.ActivityRegularization: identity,
}  # fmt: skip

OPERATORS: dict[str, Callable[[Call], int]] = {
    "Add": plus, "Subtract": minus, "Multiply": times, "Divide": divided, "TrueDivide": divided,
    "Negative": negative,
}  # fmt: skip

SMOOTH = "it is not piecewise linear, so no hypersurface reconstructs its units exactly"
STATISTIC = "it divides by a statistic of its own input, which is not piecewise linear"
PRODUCT = "it multiplies activations by each other, which is not piecewise linear"
REASONS = {
    "LayerNormalization": STATISTIC, "GroupNormalization": STATISTIC,
    "UnitNormalization": STATISTIC,
    "RMSNormalization": STATISTIC, "MultiHeadAttention": PRODUCT, "GroupedQueryAttention": PRODUCT,
    "Attention": PRODUCT, "AdditiveAttention": PRODUCT, "Multiply": PRODUCT, "Dot": PRODUCT,
    "ELU": SMOOTH, "Softmax": SMOOTH,
}  # fmt: skip
REMEDY = (
    "Remedy: cut the model before it (keras.Model(model.inputs, layer.input)), or train with a "
    "piecewise-linear layer in its place (ReLU, LeakyReLU, PReLU, ReLU6, hard_tanh, hard_sigmoid; "
    "BatchNormalization for other normalisations)."
)


def handler_for(operation: keras.Operation, name: str) -> Callable[[Call], int]:
    """The function that writes this layer down, or the error that says why there is none."""
    if isinstance(operation, keras.layers.Layer):
        _check_layer(operation, name)
        if type(operation) in HANDLERS:
            return HANDLERS[type(operation)]
    elif type(operation).__name__ in OPERATORS and type(operation).__module__.startswith("keras."):
        return OPERATORS[type(operation).__name__]
    kind = type(operation).__name__
    reason = REASONS.get(kind, "its exact equivalent is not known")
    raise UnsupportedLayer(
        f"layer '{name}' ({kind}) is not supported: {reason}. {REMEDY} {_supported()}"
    )


def _check_layer(layer: keras.layers.Layer, name: str) -> None:
    """What can be wrong with a layer of a kind that is supported."""
    kind = type(layer).__name__
    if getattr(layer, "data_format", "channels_last") != "channels_last":
        raise UnsupportedLayer(
            f"layer '{name}' ({kind}) has data_format='{layer.data_format}'; expected "
            "'channels_last'. "
            "Rebuild the model with channels last (keras.config.set_image_data_format)."
        )
    function = getattr(layer, "activation", None)
    if function is not None and type(layer) in HANDLERS:
        known = activation_name(function)
        if known not in {*activations.PIECEWISE, "linear", "softmax"}:
            raise UnsupportedLayer(
                f"layer '{name}' ({kind}) has the activation '{known}': {SMOOTH}. {REMEDY} "
                f"Supported activations: {', '.join(sorted(activations.PIECEWISE))}."
            )


def check_model(model: keras.Model) -> None:
    """Refuse what is not a built model of one fixed-size input in one precision."""
    if not isinstance(model, keras.Model):
        raise InputError(f"expected a Keras 3 model, got {type(model).__name__}.")
    if isinstance(model, keras.Sequential) and not model.built:
        raise InputError(
            f"model '{model.name}' is not built, so its layers have no weights yet. Build it "
            "first: "
            "begin with keras.Input(shape), or call model.build((None, *shape))."
        )
    if not hasattr(functional(model), "_nodes_by_depth"):
        raise UnsupportedLayer(
            f"model '{model.name}' ({type(model).__name__}) is a subclass of keras.Model with a "
            "call of "
            "its own, which cannot be read as a graph. Expected a Sequential or functional model."
        )
    if len(model.inputs) != 1:
        raise InputError(f"model '{model.name}' has {len(model.inputs)} inputs; expected one.")
    if None in model.inputs[0].shape[1:]:
        raise InputError(
            f"model '{model.name}' takes inputs of shape {tuple(model.inputs[0].shape[1:])}; "
            "expected a "
            "fixed size. Call it on keras.Input((height, width, channels)) and use that model."
        )
    for layer in _all_layers(model):
        if layer.compute_dtype != layer.variable_dtype or layer.compute_dtype not in (
            "float32",
            "float64",
        ):
            raise InputError(
                f"layer '{layer.name}' computes in {layer.compute_dtype} with "
                f"{layer.variable_dtype} "
                "weights (mixed precision); expected float32 or float64 throughout. Rebuild the "
                "model "
                "under keras.config.set_dtype_policy('float32') and set its weights."
            )


def _all_layers(model: keras.Model):
    for layer in model.layers:
        if isinstance(layer, keras.Model):
            yield from _all_layers(layer)
        elif layer.weights:
            yield layer


def _supported() -> str:
    return "Supported: " + ", ".join(sorted(kind.__name__ for kind in HANDLERS)) + "."


def weight(variable: keras.Variable | keras.KerasTensor) -> np.ndarray:
    """A variable's value in float64: folding is done in float64 whatever the model's dtype."""
    return np.asarray(keras.ops.convert_to_numpy(variable), float)


# ------------------------------------------------------------------ walking a Keras model


def functional(model: keras.Model) -> keras.Model:
    """The functional model behind a Sequential one; any other model itself."""
    return getattr(model, "_functional", None) or model


def _nodes(model: keras.Model):
    """The calls of a functional model, each after those it depends on."""
    for depth in sorted(model._nodes_by_depth, reverse=True):
        for node in model._nodes_by_depth[depth]:
            if not node.is_input:
                yield node


def _flatten(model: keras.Model, prefix: str):
    """Every (operation, name, node) of a model and of the models nested in it."""
    for node in _nodes(model):
        operation, name = node.operation, prefix + node.operation.name
        if isinstance(operation, keras.Model):
            check_nested(operation, name)
            yield from _flatten(functional(operation), f"{name}/")
        else:
            yield operation, name, node


def check_nested(model: keras.Model, name: str) -> None:
    if not hasattr(functional(model), "_nodes_by_depth"):
        raise UnsupportedLayer(
            f"layer '{name}' ({type(model).__name__}) is a subclass of keras.Model with a call "
            "of its own, "
            "which cannot be read as a graph. Expected a Sequential or functional model."
        )


def _history(tensor):
    history = tensor._keras_history
    return history.operation, history.node_index


def _final_softmaxes(model: keras.Model) -> set:
    """Layers that end the network with a softmax which nothing else reads; warns of each."""
    graph = functional(model)
    read = {id(t) for node in _nodes(graph) for t in node.input_tensors}
    found = set()
    for tensor in graph.outputs:
        operation, _ = _history(tensor)
        is_softmax = type(operation) is L.Softmax or (
            type(operation) in HANDLERS
            and activation_name(getattr(operation, "activation", None)) == "softmax"
        )
        if is_softmax and id(tensor) not in read and len(operation._inbound_nodes) == 1:
            found.add(operation)
            warnings.warn(
                f"the final softmax of '{operation.name}' is dropped: the equivalent network "
                "gives the "
                "values before it, which have the same order.",
                stacklevel=4,
            )
    return found


class _Writer:
    """Writes the calls of a functional model, and of the models nested in it, into a graph."""

    def __init__(self, graph: Graph):
        self.graph = graph
        self.skip: set = set()  # layers whose softmax is dropped
        self.used: dict[str, int] = {}

    def run(self, model: keras.Model, inputs: list[int], prefix: str) -> list[int]:
        """Write one use of `model` on these nodes; returns the nodes of its outputs."""
        where = {id(t): n for t, n in zip(model.inputs, inputs, strict=True)}
        for node in _nodes(model):
            found = [where[id(t)] for t in node.input_tensors]
            for tensor, number in zip(node.outputs, self.write(node, found, prefix), strict=True):
                where[id(tensor)] = number
        return [where[id(t)] for t in model.outputs]

    def write(self, node, inputs: list[int], prefix: str) -> list[int]:
        operation = node.operation
        name = self.unique(prefix + operation.name)
        if isinstance(operation, keras.Model):
            return self.run(functional(operation), inputs, f"{name}/")
        self.refuse_training(node, name)
        index = {id(t): Ref(i) for i, t in enumerate(node.input_tensors)}
        args = tuple(
            index.get(id(a), a) for a in (*node.arguments.args, *node.arguments.kwargs.values())
        )
        handler = handler_for(operation, name)
        keep = operation not in self.skip
        self.refuse_softmax(operation, name, keep)
        return [handler(Call(self.graph, operation, name, inputs, args, keep))]

    def unique(self, name: str) -> str:
        """A layer used again is named 'name#2', 'name#3', ...: each use has its own bias slice."""
        self.used[name] = self.used.get(name, 0) + 1
        return name if self.used[name] == 1 else f"{name}#{self.used[name]}"

    @staticmethod
    def refuse_training(node, name: str) -> None:
        if node.arguments.kwargs.get("training"):
            raise UnsupportedLayer(
                f"layer '{name}' is called with training=True inside the model, so its output "
                "depends on "
                "the batch. Call it without, so that inference uses its stored statistics."
            )

    @staticmethod
    def refuse_softmax(operation, name: str, keep: bool) -> None:
        function = getattr(operation, "activation", None)
        inside = type(operation) is L.Softmax or (
            type(operation) in HANDLERS and activation_name(function) == "softmax"
        )
        if inside and keep:
            raise UnsupportedLayer(
                f"layer '{name}' ({type(operation).__name__}) applies a softmax inside the "
                "network: "
                f"{SMOOTH}. Only a softmax that ends the network is dropped. {REMEDY}"
            )
