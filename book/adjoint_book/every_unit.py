"""Every unit of a network beside its reconstruction, as the chapter on rounding looks at them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import tensorflow as tf

from adjoint_book.figures.ch15_rounding import Reconstructed
from adjoint_lib.core.equivalent_net import EquivalentNet
from adjoint_lib.core.error_bounds import bound, rounding_scale
from adjoint_lib.verification.verify import reconstruct

ByLayer = dict[str, np.ndarray]


def cancelling(count: int = 400, seed: int = 15) -> tuple[np.ndarray, np.ndarray]:
    """Factors v and h of `count` inner products of 3000 terms, in float32, many of which cancel.

    Most products come in pairs +p, -p. Ten are left over, and shrunk by a random power of two.
    """
    rng = np.random.default_rng(seed)
    v, h = rng.uniform(-1, 1, (2, count, 3000)).astype(np.float32)
    v[:, 1495:-10], h[:, 1495:-10] = v[:, :1495], -h[:, :1495]
    h[:, -10:] *= 2.0 ** -rng.integers(0, 30, (count, 1))
    order = rng.permuted(np.tile(np.arange(3000), (count, 1)), axis=1)
    return np.take_along_axis(v, order, 1), np.take_along_axis(h, order, 1)


def reconstructed(net: EquivalentNet, images: np.ndarray) -> Reconstructed:
    """The value, reconstruction, rounding scale and bound of all units, of several images."""
    each = [reconstruct(net, image, layers="all") for image in images]
    return Reconstructed(
        c={name: value.numpy() for name, value in net.value(images).items()},
        found={name: np.stack([found[name] for found in each]) for name in each[0]},
        A=rounding_scale(net.freeze(images), net.layers),  # one run on absolute values
        limit={layer.name: bound(net, layer, "hypersurface") for layer in net.layers},
    )


class Judged(NamedTuple):
    """All units of one image, by layer, each from one stream through its hypersurfaces.

    Attributes:
        c: the network's value.
        exact: <v | H>.
        sizes: the sum of |v_i H_i|.
        stored: <v | H> with each H rounded to bfloat16 before.
        A: the rounding scale.
    """

    c: ByLayer
    exact: ByLayer
    sizes: ByLayer
    stored: ByLayer
    A: ByLayer

    def cancellations(self) -> tuple[ByLayer, ByLayer]:
        """A / sum |v_i H_i| and sum |v_i H_i| / |c|, of the units with a sum above 0."""
        live = {name: sizes > 0 for name, sizes in self.sizes.items()}
        inside = {name: (self.A[name] / self.sizes[name])[live[name]] for name in live}
        final = {name: (self.sizes[name] / np.abs(self.c[name]))[live[name]] for name in live}
        return inside, final


def judged(net: EquivalentNet, image: np.ndarray) -> Judged:
    """What a network in float64 says of all units of one image."""
    v = np.concatenate([image.reshape(-1), net.x_b])
    exact, sizes, stored = (
        {layer.name: np.zeros(layer.shape) for layer in net.layers} for _ in range(3)
    )
    for layer, block in net.freeze(image).hypersurfaces():
        H, weights = block.dense(), v[block.rows]
        exact[layer.name] += tf.tensordot(weights, H, 1).numpy()
        sizes[layer.name] += tf.tensordot(np.abs(weights), tf.abs(H), 1).numpy()
        stored[layer.name] += tf.tensordot(weights, bfloat16(H), 1).numpy()
    c = {name: value.numpy()[0] for name, value in net.value(image).items()}
    scale = rounding_scale(net.freeze(image), net.layers)
    return Judged(c, exact, sizes, stored, {name: A[0] for name, A in scale.items()})


def bfloat16(array: tf.Tensor) -> tf.Tensor:
    """The array rounded to 8 binary digits, and back."""
    return tf.cast(tf.cast(array, tf.bfloat16), array.dtype)
