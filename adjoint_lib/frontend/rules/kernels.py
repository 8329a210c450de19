"""Layers with a kernel, with what follows it inside a Keras layer: its bias and its activation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import keras
import numpy as np

from adjoint_lib.core import primitives as p
from adjoint_lib.core.graph import Shape
from adjoint_lib.errors import UnsupportedLayer
from adjoint_lib.frontend.rules.activating import activate
from adjoint_lib.frontend.rules.call import (
    Call,
    before_activation,
    each_axis,
    kernel,
    one_tensor,
    operator,
    rule,
    weight,
)

L = keras.layers


@rule(L.Conv1D, L.Conv2D, L.Conv3D)
def conv(call: Call) -> int:
    layer, primitive = call.layer, _conv(call, kernel(call.layer.kernel))
    if layer.padding == "causal":
        margin = (layer.kernel_size[0] - 1) * layer.dilation_rate[0]
        length, channels = call.input_shapes[0]
        shape = (length + margin, channels)
        padded = call.add(p.Pad(((margin, 0), (0, 0))), shape=shape)
        primitive = replace(primitive, padding="VALID", input_shape=shape)
        return finish(call, call.add(primitive, [padded]))
    return finish(call, call.add(primitive))


@operator("Conv")
def convolve(call: Call) -> int:
    """keras.ops.conv by a constant kernel."""
    return call.add(_conv(call, one_tensor(call, first=True)[0]))


def _conv(call: Call, w: np.ndarray) -> p.Conv:
    layer, shape = call.layer, call.input_shapes[0]
    strides, dilation = (each_axis(n, w.ndim - 2) for n in (layer.strides, layer.dilation_rate))
    _refuse_skipped_edges(call, w.shape[:-2], strides, shape)
    groups = shape[-1] // w.shape[-2]
    return p.Conv(w, strides, layer.padding.upper(), dilation, groups, shape)


@rule(L.Conv1DTranspose, L.Conv2DTranspose, L.Conv3DTranspose)
def conv_transpose(call: Call) -> int:
    layer = call.layer
    _refuse_skipped_edges(call, layer.kernel_size, layer.strides, call.shape)
    primitive = p.ConvTranspose(
        kernel(layer.kernel),
        tuple(layer.strides),
        layer.padding.upper(),
        tuple(layer.dilation_rate),
        call.shape,
    )
    return finish(call, call.add(primitive))


def _refuse_skipped_edges(
    call: Call, window: Sequence[int], strides: Sequence[int], shape: Shape
) -> None:
    """Refuse a 3-D convolution whose forward and gradient disagree in TensorFlow on a CPU.

    With padding "same" and a stride well above the window the padding would be negative. The
    forward pass then skips entries at the edge, the gradient does not. `shape`: of the larger side.
    """
    layer = call.layer
    sizes = zip(shape[:-1], window, strides, strict=True)
    padding = [(-(-size // stride) - 1) * stride + taps - size for size, taps, stride in sizes]
    if len(shape) == 4 and layer.padding == "same" and min(padding) < -1:
        raise UnsupportedLayer(
            f"layer '{call.name}' ({type(layer).__name__}) has padding 'same', window "
            f"{tuple(window)} and strides {tuple(strides)} on "
            f"{' x '.join(map(str, shape[:-1]))} entries: TensorFlow's forward pass and gradient "
            "begin at different entries there, so its result is not defined. Use padding 'valid', "
            "or strides at most one above the window."
        )


@rule(L.DepthwiseConv1D, L.DepthwiseConv2D)
def depthwise_conv(call: Call) -> int:
    return finish(call, call.add(_depthwise(call, kernel(call.layer.kernel))))


@operator("DepthwiseConv")
def convolve_depthwise(call: Call) -> int:
    """keras.ops.depthwise_conv by a constant kernel."""
    return call.add(_depthwise(call, one_tensor(call, first=True)[0]))


@rule(L.SeparableConv1D, L.SeparableConv2D)
def separable_conv(call: Call) -> int:
    """A depthwise convolution, then one with a window of 1: two layers with kernels."""
    first, second = kernel(call.layer.depthwise_kernel), kernel(call.layer.pointwise_kernel)
    middle = (*call.shape[:-1], first.shape[-2] * first.shape[-1])
    depthwise = call.graph.add(
        f"{call.name}/depthwise", _depthwise(call, first), call.inputs, middle
    )
    ones = (1,) * (first.ndim - 2)
    pointwise = p.Conv(second, ones, "VALID", ones, 1, middle)
    out = call.graph.add(f"{call.name}/pointwise", pointwise, [depthwise], call.shape)
    return finish(call, out)


def _depthwise(call: Call, w: np.ndarray) -> p.DepthwiseConv | p.Conv:
    """Each channel by its own kernels (*window, c_in, multiplier); in sequences, as groups of 1."""
    layer, shape = call.layer, call.input_shapes[0]
    if w.ndim == 3:
        return _conv(call, w.reshape(len(w), 1, -1))
    (down, across), (rate, rate_across) = (
        each_axis(n, 2) for n in (layer.strides, layer.dilation_rate)
    )
    return p.DepthwiseConv(w, (down, across), layer.padding.upper(), (rate, rate_across), shape)


@rule(L.Dense)
def dense(call: Call) -> int:
    return finish(call, call.add(p.Dense(kernel(call.layer.kernel))))


def finish(call: Call, h: int) -> int:
    """What follows the kernel inside a Keras layer: its bias and its activation."""
    if call.layer.use_bias:
        h = call.add_bias(h, weight(call.layer.bias))
    call.graph.hold(h, before_activation(call.name))
    return activate(call, h, call.layer.activation)
