"""JAX: ``jax.linearize`` of all layers at [x; b], ``jax.vmap`` over the unit directions, jitted."""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from benchmarks.contender import Pass, Piece
from benchmarks.network import Network, counts

CHOICES = [{"batch": batch} for batch in (32, 64, 128, 256)]


class Jax:
    """`network.Operations`; channels last, as XLA likes best on a CPU."""

    def conv(self, node, x, padding="SAME", groups=1):
        strides, axes = (node.options["stride"],) * 2, ("NHWC", "HWIO", "NHWC")
        kernel = (
            node.kernel.reshape(*node.kernel.shape[:2], -1, x.shape[-1])
            if groups > 1
            else node.kernel
        )
        return lax.conv_general_dilated(
            x, kernel, strides, padding, dimension_numbers=axes, feature_group_count=groups
        )

    def conv_valid(self, node, x):
        return self.conv(node, x, "VALID")

    def depthwise(self, node, x):
        return self.conv(node, x, "SAME", x.shape[-1])

    def depthwise_valid(self, node, x):
        return self.conv(node, x, "VALID", x.shape[-1])

    def relu6(self, x):
        return jax.nn.relu6(x)

    def max_pool(self, x, window, stride):
        area, steps = (1, window, window, 1), (1, stride, stride, 1)
        return lax.reduce_window(x, -jnp.inf, lax.max, area, steps, "VALID")

    def zero_pad(self, x, top, bottom, left, right):
        return jnp.pad(x, ((0, 0), (top, bottom), (left, right), (0, 0)))

    def dense(self, node, x):
        return x @ node.kernel

    def bias(self, x, values):
        return x + values

    def leaky_relu(self, x, slope):
        return jax.nn.relu(x) if slope == 0 else jax.nn.leaky_relu(x, slope)

    def average(self, x, window, stride):
        if window > 1:
            inside = np.outer(*(counts(size, window, stride)[2] for size in x.shape[1:3]))
            area, steps = (1, window, window, 1), (1, stride, stride, 1)
            total = lax.reduce_window(x, 0.0, lax.add, area, steps, "SAME")
            return total / inside[:, :, None].astype(np.float32)
        return x[:, ::stride, ::stride]

    def pad_channels(self, x, before, after):
        return jnp.pad(x, ((0, 0), (0, 0), (0, 0), (before, after)))

    def mean(self, x):
        return x.mean((1, 2))


def prepare(network: Network, batch: int, directions: int | None = None) -> Pass:
    """batch: directions at a time. directions: how many in all; by default the whole basis."""
    v, pixels = network.v, network.image.size
    directions = min(directions or v.size, v.size)

    def units(v):
        x = v[:pixels].reshape(1, *network.image.shape)
        return {name: c[0] for name, c in network.units(Jax(), x, v[pixels:]).items()}

    # Linearising inside costs one forward pass per batch, and a new image compiles nothing anew.
    @functools.partial(jax.jit, static_argnums=2)
    def push(v, start, rows):
        _, tangent = jax.linearize(units, v)
        return jax.vmap(tangent)(jax.nn.one_hot(start + jnp.arange(rows), v.size))

    def surfaces():
        for start in range(0, directions, batch):
            rows = min(batch, directions - start)
            found = jax.block_until_ready(push(v, start, rows))
            index = np.arange(start, start + rows)
            for name, H in found.items():
                yield Piece(name, index, lambda H=H: np.asarray(H))

    return surfaces
