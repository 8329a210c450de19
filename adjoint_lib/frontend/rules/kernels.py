"""Layers with a kernel, with what follows it inside a Keras layer: its bias and its activation."""

from __future__ import annotations

from dataclasses import replace

import keras
import numpy as np

from adjoint_lib.core import primitives as p
from adjoint_lib.core.graph import Shape
from adjoint_lib.errors import UnsupportedLayer
from adjoint_lib.frontend.rules.activating import activate
from adjoint_lib.frontend.rules.call import Call, before_activation, rule, weight

L = keras.layers


@rule(L.Conv1D, L.Conv2D, L.Conv3D)
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


@rule(L.Conv1DTranspose, L.Conv2DTranspose, L.Conv3DTranspose)
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


@rule(L.DepthwiseConv2D)
def depthwise_conv(call: Call) -> int:
    layer = call.layer
    return finish(call, call.add(_depthwise(call, weight(layer.kernel))))


@rule(L.SeparableConv2D)
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


@rule(L.Dense)
def dense(call: Call) -> int:
    return finish(call, call.add(p.Dense(weight(call.layer.kernel))))


def finish(call: Call, h: int) -> int:
    """What follows the kernel inside a Keras layer: its bias and its activation."""
    if call.layer.use_bias:
        h = call.add_bias(h, weight(call.layer.bias))
    call.graph.hold(h, before_activation(call.name))
    return activate(call, h, call.layer.activation)
