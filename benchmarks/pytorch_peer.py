"""PyTorch: ``torch.func.linearize`` of all layers at [x; b], ``vmap`` over the unit directions."""

from __future__ import annotations

import functools
import warnings

import numpy as np
import torch
import torch.nn.functional as F

from benchmarks.contender import Pass, Piece
from benchmarks.network import Network, Node, counts

CHOICES = [
    {"batch": batch, "channels_last": channels_last}
    for batch in (64, 128, 256)
    for channels_last in (False, True)
]


class PyTorch:
    """`network.Operations`; channels first, in one of PyTorch's two layouts in memory."""

    def __init__(self, network: Network, layout: torch.memory_format):
        self.kernels = {
            node.name: _kernel(node, layout) for node in network.nodes if node.kernel is not None
        }

    def conv(self, node, x, groups=1):
        kernel, stride = self.kernels[node.name], node.options["stride"]
        (top, bottom, _), (left, right, _) = (
            counts(size, kernel.shape[-1], stride) for size in x.shape[2:]
        )
        if (top, left) == (bottom, right):
            return F.conv2d(x, kernel, stride=stride, padding=(top, left), groups=groups)
        return self.conv_valid(node, F.pad(x, (left, right, top, bottom)), groups)

    def conv_valid(self, node, x, groups=1):
        return F.conv2d(x, self.kernels[node.name], stride=node.options["stride"], groups=groups)

    def depthwise(self, node, x):
        return self.conv(node, x, x.shape[1])

    def depthwise_valid(self, node, x):
        return self.conv_valid(node, x, x.shape[1])

    def relu6(self, x):
        return F.relu6(x)

    def max_pool(self, x, window, stride):
        return F.max_pool2d(x, window, stride)

    def zero_pad(self, x, top, bottom, left, right):
        return F.pad(x, (left, right, top, bottom))

    def dense(self, node, x):
        return x @ self.kernels[node.name]

    def bias(self, x, values):
        return x + (values if x.ndim == 2 else values.reshape(-1, 1, 1))

    def leaky_relu(self, x, slope):
        return F.relu(x) if slope == 0 else F.leaky_relu(x, slope)

    def average(self, x, window, stride):
        if window == 1:
            return x[:, :, ::stride, ::stride]
        (top, bottom, rows), (left, right, columns) = (
            counts(size, window, stride) for size in x.shape[2:]
        )
        weights = torch.from_numpy(window**2 / np.outer(rows, columns)).to(x.dtype)
        return F.avg_pool2d(F.pad(x, (left, right, top, bottom)), window, stride) * weights

    def pad_channels(self, x, before, after):
        return F.pad(x, (0, 0, 0, 0, before, after))

    def mean(self, x):
        return x.mean((2, 3))


def prepare(
    network: Network, batch: int, channels_last: bool, directions: int | None = None
) -> Pass:
    """batch: directions at a time. directions: how many in all; by default the whole basis."""
    layout = torch.channels_last if channels_last else torch.contiguous_format
    ops = PyTorch(network, layout)
    v, pixels = torch.from_numpy(network.v), network.image.size
    height, width, channels = network.image.shape
    directions = min(directions or v.numel(), v.numel())

    def units(v):
        x = v[:pixels].reshape(1, height, width, channels).permute(0, 3, 1, 2)
        return network.units(ops, x.contiguous(memory_format=layout), v[pixels:])

    # Traced in the first pass and kept, to PyTorch's advantage: another image would need it anew.
    @functools.cache
    def push():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about how linearize folds its own constants
            return torch.vmap(torch.func.linearize(units, v)[1])

    @torch.no_grad()
    def surfaces():
        for start in range(0, directions, batch):
            index = torch.arange(start, min(start + batch, directions))
            basis = F.one_hot(index, v.numel()).to(v.dtype)
            for name, H in push()(basis).items():
                yield Piece(name, index.numpy(), lambda H=H: _channels_last(H[:, 0]))

    return surfaces


def _kernel(node: Node, layout: torch.memory_format) -> torch.Tensor:
    kernel = torch.from_numpy(node.kernel)
    if node.op == "dense":
        return kernel
    if node.op.startswith("depthwise"):
        kernel = kernel.transpose(2, 3)  # one kernel for each channel
    return kernel.permute(3, 2, 0, 1).contiguous(memory_format=layout)


def _channels_last(H: torch.Tensor) -> np.ndarray:
    """(n, c, h, w) as (n, h, w, c); (n, c) stays."""
    return (H.permute(0, 2, 3, 1) if H.ndim == 4 else H).numpy()
