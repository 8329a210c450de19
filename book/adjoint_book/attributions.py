"""Methods that say which pixels a score came from, each from its own paper, beside H.

    scores, found = attribute(net, images, classes)
    found["FullGrad"].pixels, found["FullGrad"].biases      # (N, 32, 32, 3) and (N,)

A method gives numbers to the pixels, some also to the biases. It is *complete* if they add up to
the score. All are written for a network of `al.equivalent`, whose nodes know how to pull.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import tensorflow as tf

from adjoint_lib.core.equivalent_net import EquivalentNet
from adjoint_lib.core.frozen import Frozen
from adjoint_lib.core.network import evaluate
from adjoint_lib.core.primitives import Activation, Sum
from adjoint_lib.core.tables import Table
from adjoint_lib.verification.intervals import Z95

STEPS = 32  # points on the path of integrated gradients
EPSILON = 0.25  # of LRP-epsilon
SCORES = "fc"  # the layer of the class scores


class Attribution(NamedTuple):
    """What a method says of one score of each image.

    Attributes:
        pixels: (N, *input_shape), or (N, h, w) of a method that gives a coarse map.
        biases: (N,), what it gives to the biases; zero if the method knows none.
    """

    pixels: np.ndarray
    biases: np.ndarray

    @property
    def total(self) -> np.ndarray:
        """(N,) what the method accounts for."""
        return self.pixels.reshape(len(self.pixels), -1).sum(1) + self.biases

    @property
    def by_pixel(self) -> np.ndarray:
        """(N, h, w): the colours of each pixel added up."""
        return self.pixels.sum(-1) if self.pixels.ndim == 4 else self.pixels


Method = Callable[[EquivalentNet, np.ndarray, np.ndarray], Attribution]


def hypersurface(net: EquivalentNet, images: np.ndarray, classes: np.ndarray) -> Attribution:
    """x * H_I for the pixels, <x_b | H_b> for the biases."""
    image, bias = _gradient(net, images, classes)
    return Attribution(images * image, bias @ net.x_b)


def gradient_times_input(
    net: EquivalentNet, images: np.ndarray, classes: np.ndarray
) -> Attribution:
    """The gradient of the score by each pixel, times the pixel."""
    return _pixels_only(images * _gradient(net, images, classes)[0])


def integrated_gradients(
    net: EquivalentNet, images: np.ndarray, classes: np.ndarray, steps: int = STEPS
) -> Attribution:
    """The mean gradient on the way from a black image, times the image (Sundararajan et al. 2017).

    Args:
        steps: points on the way, each in the middle of its part of it.
    """
    total = np.zeros(images.shape)
    for t in (np.arange(steps) + 0.5) / steps:
        total += _gradient(net, (t * images).astype(images.dtype), classes)[0]
    return _pixels_only(images * total / steps)


def grad_cam(net: EquivalentNet, images: np.ndarray, classes: np.ndarray) -> Attribution:
    """The last feature maps, each weighted by its mean gradient, without what is negative.

    Selvaraju et al. 2017. The map is as coarse as the feature maps.
    """
    frozen, last = net.freeze(images), net.layer(SCORES).number
    at = features(net)
    g = backwards(net, last, _chosen(net, classes), _derivative(frozen))[at].numpy()
    maps = net.values_at(frozen.images, 1.0, [at])[at].numpy()
    weights = g.mean((1, 2), keepdims=True)
    return _pixels_only(np.maximum((weights * maps).sum(-1), 0))


def full_gradient(net: EquivalentNet, images: np.ndarray, classes: np.ndarray) -> Attribution:
    """Gradient x input, and every bias times the gradient at each place where it is added.

    Srinivas and Fleuret 2019; `bias_maps` has the parts of the biases as maps.
    """
    frozen, last = net.freeze(images), net.layer(SCORES).number
    arriving = backwards(net, last, _chosen(net, classes), _derivative(frozen))
    biases = sum(maps.sum((1, 2, 3)) for maps in _bias_maps(net, arriving))
    return Attribution(images * arriving[0].numpy(), np.zeros(len(images)) + biases)


def full_gradient_map(net: EquivalentNet, images: np.ndarray, classes: np.ndarray) -> np.ndarray:
    """The map usually shown of FullGrad: |parts|, each scaled to 0 ... 1, enlarged and added up."""
    frozen, last = net.freeze(images), net.layer(SCORES).number
    arriving = backwards(net, last, _chosen(net, classes), _derivative(frozen))
    total = _scaled(np.abs(images * arriving[0].numpy())).sum(-1)
    for maps in _bias_maps(net, arriving):
        total += enlarged(_scaled(np.abs(maps)).sum(-1), images.shape[1:3])
    return total


def lrp_epsilon(
    net: EquivalentNet, images: np.ndarray, classes: np.ndarray, epsilon: float = EPSILON
) -> Attribution:
    """Layer-wise relevance propagation (Bach et al. 2015); a bias keeps its share.

    Args:
        epsilon: what the denominators are moved away from zero by; it takes relevance away.
    """
    frozen, last = net.freeze(images), net.layer(SCORES).number
    plan = net.plan(frozenset([last]))
    values = {n: value for n, _, value in evaluate(net.nodes, frozen.along(*frozen.v), plan)}

    def shares(at: int, R: tf.Tensor) -> Iterable[tf.Tensor]:
        node, z = net.nodes[at], values[at]
        if isinstance(node.primitive, Activation):
            return [R]
        away = tf.cast(tf.where(z < 0, -epsilon, epsilon), z.dtype)
        pulled = node.operation.pull(frozen.patterns[at], tf.math.divide_no_nan(R, z + away))
        return [values[i] * g for i, g in zip(node.inputs, pulled, strict=True)]

    arriving = backwards(net, last, _chosen(net, classes) * values[last], shares)
    biases = sum(arriving[s.node].numpy().reshape(len(images), -1).sum(1) for s in net.sources)
    return Attribution(arriving[0].numpy(), np.zeros(len(images)) + biases)


METHODS: dict[str, Method] = {
    "gradient × input": gradient_times_input,
    "integrated gradients": integrated_gradients,
    "Grad-CAM": grad_cam,
    "LRP-ε": lrp_epsilon,
    "FullGrad": full_gradient,
    "H": hypersurface,
}


def attribute(
    net: EquivalentNet, images: np.ndarray, classes: np.ndarray, names: Sequence[str] = ()
) -> tuple[np.ndarray, dict[str, Attribution]]:
    """The scores of these classes (N,), and what each method makes of them, by its name.

    Args:
        names: of METHODS; by default all.
    """
    c = net.value(images)[SCORES].numpy()
    scores = c[np.arange(len(images)), classes]
    return scores, {name: METHODS[name](net, images, classes) for name in names or METHODS}


def accounts(scores: np.ndarray, parts: Mapping[str, tuple[np.ndarray, np.ndarray]]) -> Table:
    """Medians over the images of what each method gives to pixels, to biases, and to nobody.

    Args:
        scores: (N,).
        parts: for each method what its pixels add up to and what its biases do, (N,) each.
    """

    def row(name: str) -> list[str]:
        pixels, biases = parts[name]
        missing = np.abs(scores - pixels - biases) / np.abs(scores)
        medians = (np.median(part) for part in (pixels / scores, biases / scores, missing))
        return [name, *(f"{100 * median:.0f} %" for median in medians)]

    return Table(["method", "to the pixels", "to the biases", "missing"], list(parts), row)


# ------------------------------------------------------------------ how good is a map?

FRACTIONS = np.linspace(0, 1, 17)[:-1]  # of the pixels, made grey


def deletion(
    net: EquivalentNet,
    images: np.ndarray,
    classes: np.ndarray,
    maps: np.ndarray,
    fill: np.ndarray,
    fractions: np.ndarray = FRACTIONS,
) -> np.ndarray:
    """(N, fractions): whether the network still chooses the class, with the first pixels gone.

    Args:
        maps: (N, h, w); the pixels with the largest numbers go first.
        fill: the colour that they get.
    """
    count = images[0].shape[0] * images[0].shape[1]
    ranks = np.argsort(np.argsort(-maps.reshape(len(maps), count), 1, kind="stable"), 1)
    kept = np.empty((len(images), len(fractions)), bool)
    for i, fraction in enumerate(fractions):
        gone = (ranks < round(fraction * count)).reshape(*images.shape[:3], 1)
        changed = np.where(gone, np.asarray(fill, images.dtype), images)
        kept[:, i] = net.value(changed)[SCORES].numpy().argmax(1) == classes
    return kept


def lead(kept: np.ndarray, control: np.ndarray) -> tuple[float, float]:
    """How much smaller the area under a deletion curve is than its control's, and the 95 % reach.

    The two are compared image by image; a positive lead says that the pixels named first mattered.
    """
    each = control.mean(1) - kept.mean(1)
    return float(each.mean()), Z95 * float(each.std(ddof=1)) / math.sqrt(len(each))


def shown(net: EquivalentNet, images: np.ndarray, classes: np.ndarray, name: str) -> np.ndarray:
    """(N, h, w): the map by which a method orders the pixels.

    FullGrad's is `full_gradient_map`; a coarse one is enlarged to the size of the image.
    """
    if name == "FullGrad":
        return full_gradient_map(net, images, classes)
    return enlarged(METHODS[name](net, images, classes).by_pixel, images.shape[1:3])


# ------------------------------------------------------------------ backwards through the graph


def backwards(
    net: EquivalentNet,
    last: int,
    start: tf.Tensor,
    parts: Callable[[int, tf.Tensor], Iterable[tf.Tensor]],
) -> dict[int, tf.Tensor]:
    """What arrives at each node, if `parts(node, arriving)` is what a node hands to its inputs."""
    arriving = {last: start}
    for at in range(last, -1, -1):
        if at in arriving and net.nodes[at].primitive is not None:
            handed = parts(at, arriving[at])
            for i, part in zip(net.nodes[at].inputs, handed, strict=False):
                arriving[i] = arriving[i] + part if i in arriving else part
    return arriving


def features(net: EquivalentNet) -> int:
    """The node of the last feature maps, before they are averaged for the scores."""
    at = net.layer(SCORES).reads
    while len(net.nodes[at].shape) != 3:
        (at,) = net.nodes[at].inputs
    return at


def enlarged(maps: np.ndarray, size: tuple[int, int]) -> np.ndarray:
    """Maps (N, h, w) at another size, interpolated."""
    return tf.image.resize(maps[..., None], size, "bilinear").numpy()[..., 0]


def _derivative(frozen: Frozen) -> Callable[[int, tf.Tensor], Iterable[tf.Tensor]]:
    """The adjoint of each node: what `backwards` needs for the gradient."""
    nodes, patterns = frozen.nodes, frozen.patterns
    return lambda at, g: nodes[at].operation.pull(patterns[at], g)


def _bias_maps(net: EquivalentNet, arriving: dict[int, tf.Tensor]) -> Iterable[np.ndarray]:
    """Of each use of a bias: the bias times the gradient, at each place (N, h, w, c)."""
    biases = {source.node: source for source in net.sources}
    for at, g in arriving.items():
        node = net.nodes[at]
        if isinstance(node.primitive, Sum):
            for i, coefficient in zip(node.inputs, node.primitive.coefficients, strict=True):
                if i in biases:
                    b = net.x_b[biases[i].slice].reshape(1, *biases[i].shape)
                    yield coefficient * b * g.numpy()


def _gradient(
    net: EquivalentNet, images: np.ndarray, classes: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """H_I and H_b of one score of each image."""
    frozen = net.freeze(images)
    image, bias = frozen.pull(net.layer(SCORES).number, _chosen(net, classes))
    return image.numpy(), bias.numpy()


def _chosen(net: EquivalentNet, classes: np.ndarray) -> tf.Tensor:
    return tf.one_hot(classes, net.layer(SCORES).shape[0], dtype=net.dtype)


def _pixels_only(pixels: np.ndarray) -> Attribution:
    return Attribution(pixels, np.zeros(len(pixels)))


def _scaled(parts: np.ndarray) -> np.ndarray:
    """The maps of each image moved and scaled to 0 ... 1."""
    parts = parts - parts.min((1, 2, 3), keepdims=True)
    return parts / np.maximum(parts.max((1, 2, 3), keepdims=True), np.finfo(float).tiny)
