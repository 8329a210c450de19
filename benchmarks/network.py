"""The network that all contenders differentiate, as plain numbers: no library's code, no library's
tensors.

``read_keras`` reads a Keras model layer by layer and folds it into a network over [x; b], every
bias an entry of b (the paper's reduced form). It shares no code with ``adjoint_lib``, so that equal
values mean something. ``save`` and ``load`` carry the network to processes without Keras, and
``run`` evaluates it with the operations of any library.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol

import numpy as np

Tensor = Any


@dataclass(frozen=True)
class Node:
    """An operation on earlier nodes: one of the methods of `Operations`, "image" or "bias".

    Attributes:
        options: its plain arguments. For a bias, [start, stop] of b.
        kernel: (r, r, c_in, c_out) of a convolution, (c_in, c_out) of a dense layer.
    """

    name: str
    op: str
    inputs: tuple[int, ...] = ()
    options: dict[str, int | float] = field(default_factory=dict)
    kernel: np.ndarray | None = None


class Operations(Protocol):
    """What `run` needs of a library. Rows come first; which axis the channels have is its own."""

    def conv(self, node: Node, x: Tensor) -> Tensor:
        """Convolution with node.kernel, "same" padding, square stride."""

    def conv_valid(self, node: Node, x: Tensor) -> Tensor:
        """The same without padding."""

    def depthwise(self, node: Node, x: Tensor) -> Tensor:
        """Convolution of each channel with node.kernel (r, r, c, 1), "same" padding."""

    def depthwise_valid(self, node: Node, x: Tensor) -> Tensor:
        """The same without padding."""

    def dense(self, node: Node, x: Tensor) -> Tensor:
        """Matrix product with node.kernel."""

    def bias(self, x: Tensor, values: Tensor) -> Tensor:
        """x plus one value for all channels, or one for each."""

    def leaky_relu(self, x: Tensor, slope: float) -> Tensor: ...

    def relu6(self, x: Tensor) -> Tensor: ...

    def max_pool(self, x: Tensor, window: int, stride: int) -> Tensor:
        """Max-pooling without padding."""

    def zero_pad(self, x: Tensor, top: int, bottom: int, left: int, right: int) -> Tensor: ...

    def average(self, x: Tensor, window: int, stride: int) -> Tensor:
        """Average pooling, "same" padding that does not count."""

    def pad_channels(self, x: Tensor, before: int, after: int) -> Tensor: ...

    def mean(self, x: Tensor) -> Tensor:
        """Mean over all positions: (n, c)."""


@dataclass(frozen=True)
class Network:
    """Nodes in the order of computing; `image` is x, (h, w, c), and `b`, (d2,), all biases."""

    name: str
    nodes: list[Node]
    image: np.ndarray
    b: np.ndarray

    @property
    def layers(self) -> list[int]:
        """The numbers of the nodes with a kernel, whose units are reconstructed."""
        return [i for i, node in enumerate(self.nodes) if node.kernel is not None]

    @property
    def v(self) -> np.ndarray:
        """[x; b], flat."""
        return np.concatenate([self.image.reshape(-1), self.b])

    def run(self, ops: Operations, x: Tensor, b: Tensor, until: int | None = None) -> list[Tensor]:
        """The values of all nodes, up to and with number `until`, at images x, rows first."""
        values: list[Tensor] = []
        for node in self.nodes if until is None else self.nodes[: until + 1]:
            inputs = [values[i] for i in node.inputs]
            if node.op == "image":
                values.append(x)
            elif node.op == "bias":
                values.append(ops.bias(*inputs, b[node.options["start"] : node.options["stop"]]))
            elif node.op == "add":
                values.append(inputs[0] + inputs[1])
            elif node.kernel is not None:
                values.append(getattr(ops, node.op)(node, *inputs))
            else:
                values.append(getattr(ops, node.op)(*inputs, **node.options))
        return values

    def units(self, ops: Operations, x: Tensor, b: Tensor) -> dict[str, Tensor]:
        """The units of every layer with a kernel, before its own bias, by name: (n, ...)."""
        values = self.run(ops, x, b, self.layers[-1])
        return {self.nodes[i].name: values[i] for i in self.layers}


def counts(size: int, window: int, stride: int) -> tuple[int, int, np.ndarray]:
    """TensorFlow's "same" padding along one axis: zeros before, zeros after, and how many entries
    of each window lie inside."""
    outputs = -(-size // stride)
    padding = max((outputs - 1) * stride + window - size, 0)
    first = np.arange(outputs) * stride - padding // 2
    inside = np.minimum(first + window, size) - np.maximum(first, 0)
    return padding // 2, padding - padding // 2, inside


# ------------------------------------------------------------------ reading a Keras model


def read_keras(model: Any, image: np.ndarray) -> Network:
    """The folded network of a Keras model at an image (h, w, c).

    Batch normalisation, w' = gamma w / sqrt(var + eps) and b' = beta - gamma mean / sqrt(var +
    eps), and multipliers disappear into the convolution before them.
    """
    reader = _Reader()
    where = {id(model.inputs[0]): reader.add(Node("image", "image"))}
    for layer in model.layers:
        if type(layer).__name__ == "InputLayer":
            continue
        inputs = layer.input if isinstance(layer.input, list) else [layer.input]
        where[id(layer.output)] = reader.read(layer, tuple(where[id(t)] for t in inputs))
    return Network(model.name, reader.nodes, image, np.concatenate(reader.b))


class _Reader:
    """Collects nodes and biases."""

    def __init__(self):
        self.nodes: list[Node] = []
        self.b: list[np.ndarray] = []

    def add(self, node: Node) -> int:
        self.nodes.append(node)
        return len(self.nodes) - 1

    def read(self, layer: Any, inputs: tuple[int, ...]) -> int:
        """Add a Keras layer; returns the node that has its output."""
        kind = type(layer).__name__
        if kind not in _READERS:
            raise ValueError(f"expected one of {', '.join(_READERS)}, got layer {kind}.")
        return _READERS[kind](self, layer, inputs)

    def plain(self, layer: Any, inputs: tuple[int, ...], op: str, **options) -> int:
        return self.add(Node(layer.name, op, inputs, options))

    def kernel(self, layer: Any, inputs: tuple[int, ...], op: str, **options) -> int:
        number = self.add(Node(layer.name, op, inputs, options, layer.kernel.numpy()))
        return self.bias(layer, number, layer.bias.numpy()) if layer.use_bias else number

    def bias(self, layer: Any, number: int, values: np.ndarray) -> int:
        values = values.astype(np.float32)
        start = sum(part.size for part in self.b)
        self.b.append(values)
        place = {"start": start, "stop": start + values.size}
        return self.add(Node(f"{layer.name}/bias", "bias", (number,), place))

    def scale(self, number: int, factor: np.ndarray, read_by: int | None = None) -> None:
        """Multiply the out-channels of a layer that nothing reads but perhaps this node."""
        node = self.nodes[number]
        readers = {i for i, other in enumerate(self.nodes) if number in other.inputs}
        if node.kernel is None or readers - {read_by}:
            raise ValueError(f"expected a scale right after a convolution, got {node.name}.")
        factor = np.reshape(factor, (-1, 1)) if node.op.startswith("depthwise") else factor
        scaled = node.kernel.astype(np.float64) * factor
        self.nodes[number] = replace(node, kernel=scaled.astype(np.float32))

    def batch_norm(self, layer: Any, inputs: tuple[int, ...]) -> int:
        moments = (layer.gamma, layer.beta, layer.moving_mean, layer.moving_variance)
        gamma, beta, mean, var = (m.numpy().astype(np.float64) for m in moments)
        factor = gamma / np.sqrt(var + layer.epsilon)
        (number,) = inputs
        if self.nodes[number].op != "bias":
            self.scale(number, factor)
            return self.bias(layer, number, beta - mean * factor)
        return self.after_bias(number, factor, beta - mean * factor)

    def after_bias(self, number: int, factor: np.ndarray, shift: np.ndarray) -> int:
        """Fold factor * (c + b) + shift into the kernel of c and into b."""
        node = self.nodes[number]
        self.scale(node.inputs[0], factor, read_by=number)
        starts = np.cumsum([0, *(part.size for part in self.b)])
        part = int(np.flatnonzero(starts == node.options["start"])[0])
        self.b[part] = (self.b[part] * factor + shift).astype(np.float32)
        return number

    def multiplier(self, layer: Any, inputs: tuple[int, ...]) -> int:
        self.scale(inputs[0], layer.multiplier.numpy().astype(np.float64))
        return inputs[0]

    def pad_channels(self, layer: Any, inputs: tuple[int, ...]) -> int:
        before, after = layer.padding(layer.input.shape[-1])
        return self.plain(layer, inputs, "pad_channels", before=before, after=after)


SIDES = ("top", "bottom", "left", "right")


def _padding(layer: Any) -> str:
    return "_valid" if layer.padding == "valid" else ""


_READERS: dict[str, Callable[[_Reader, Any, tuple[int, ...]], int]] = {
    "Conv2D": lambda r, layer, i: r.kernel(
        layer, i, "conv" + _padding(layer), stride=layer.strides[0]
    ),
    "DepthwiseConv2D": lambda r, layer, i: r.kernel(
        layer, i, "depthwise" + _padding(layer), stride=layer.strides[0]
    ),
    "ZeroPadding2D": lambda r, layer, i: r.plain(
        layer, i, "zero_pad", **dict(zip(SIDES, sum(layer.padding, ()), strict=True))
    ),
    "MaxPooling2D": lambda r, layer, i: r.plain(
        layer, i, "max_pool", window=layer.pool_size[0], stride=layer.strides[0]
    ),
    "Activation": lambda r, layer, i: r.plain(layer, i, "leaky_relu", slope=0.0),
    "Dense": lambda r, layer, i: r.kernel(layer, i, "dense"),
    "BatchNormalization": _Reader.batch_norm,
    "Multiplier": _Reader.multiplier,
    "Bias": lambda r, layer, i: r.bias(layer, i[0], layer.bias.numpy()),
    "ReLU": lambda r, layer, i: (
        r.plain(layer, i, "relu6")
        if layer.max_value == 6
        else r.plain(layer, i, "leaky_relu", slope=0.0)
    ),
    "Dropout": lambda r, layer, i: i[0],
    "LeakyReLU": lambda r, layer, i: r.plain(layer, i, "leaky_relu", slope=layer.negative_slope),
    "AveragePooling2D": lambda r, layer, i: r.plain(
        layer, i, "average", window=layer.pool_size[0], stride=layer.strides[0]
    ),
    "GlobalAveragePooling2D": lambda r, layer, i: r.plain(layer, i, "mean"),
    "Add": lambda r, layer, i: r.plain(layer, i, "add"),
    "PadChannels": _Reader.pad_channels,
}


# ------------------------------------------------------------------ files


def save(network: Network, path: Path) -> None:
    """Write the network as an .npz of plain arrays, the nodes as JSON among them."""
    kernels = {f"kernel {i}": network.nodes[i].kernel for i in network.layers}
    nodes = [asdict(replace(node, kernel=None)) for node in network.nodes]
    about = json.dumps({"name": network.name, "nodes": nodes})
    np.savez(path, about=about, image=network.image, b=network.b, **kernels)


def load(path: Path) -> Network:
    """Read what `save` wrote."""
    with np.load(path) as file:
        about = json.loads(str(file["about"]))
        nodes = []
        for i, node in enumerate(about["nodes"]):
            kernel = file[f"kernel {i}"] if f"kernel {i}" in file.files else None
            nodes.append(Node(**{**node, "inputs": tuple(node["inputs"]), "kernel": kernel}))
        return Network(about["name"], nodes, file["image"], file["b"])
