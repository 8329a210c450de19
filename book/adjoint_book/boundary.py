"""The way to the nearest other class: with one hypersurface a step, and by projected gradient.

As long as the pattern stays, the margin c_a - c_b = <x | dH_I> + <x_b | dH_b> is linear in the
image, so the images at which it is zero make a hyperplane with normal dH_I: one step leads there.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import tensorflow as tf

from adjoint_lib.core.equivalent_net import EquivalentNet

SCORES = "fc"  # the layer of the class scores
CROSSING = 1.02  # how far beyond the tie an adversarial example is taken: DeepFool's 2 %


class Margin(NamedTuple):
    """The lead of a class over the best other one, at each image of a batch.

    Attributes:
        value: (P,), negative where the other class leads.
        normal: (P, *input_shape), H_I of the difference of the two scores.
        other: (P,), the other class.
    """

    value: np.ndarray
    normal: np.ndarray
    other: np.ndarray

    @property
    def step(self) -> np.ndarray:
        """The shortest step to the tie, if the pattern stays: (P, *input_shape)."""
        squares = np.sum(self.normal**2, (1, 2, 3))
        return -self.normal * (self.value / np.maximum(squares, 1e-30))[:, None, None, None]


def margin(net: EquivalentNet, images: np.ndarray, classes: np.ndarray) -> Margin:
    """The lead over the class with the highest other score: one hypersurface an image."""
    scores = net.value(images)[SCORES].numpy()
    rows = np.arange(len(images))
    others = scores.copy()
    others[rows, classes] = -np.inf
    other = others.argmax(1)
    normal = _pulled(net, images, classes, other)
    return Margin(scores[rows, classes] - scores[rows, other], normal, other)


def nearest_margin(net: EquivalentNet, images: np.ndarray, classes: np.ndarray) -> Margin:
    """The lead over the class whose tie is nearest, as DeepFool takes it: one H for each class."""
    scores = net.value(images)[SCORES].numpy()
    rows, count = np.arange(len(images)), scores.shape[1]
    leads = scores[rows, classes][:, None] - scores
    normals = np.stack(
        [_pulled(net, images, classes, np.full_like(classes, b)) for b in range(count)]
    )
    lengths = np.sqrt(np.sum(normals**2, (2, 3, 4))).T
    distances = np.abs(leads) / np.maximum(lengths, 1e-30)
    distances[rows, classes] = np.inf
    other = distances.argmin(1)
    return Margin(leads[rows, other], normals[other, rows], other)


class Walk(NamedTuple):
    """Where the steps to the tie led.

    Attributes:
        images: (P, *input_shape), a little beyond the tie, where the other class leads.
        distances: (P,), how far that is from where they began, in Euclidean length.
        steps: (P,), how many steps, that is hypersurfaces, were taken.
        margins: (steps + 1, P), the lead before each step and after the last.
    """

    images: np.ndarray
    distances: np.ndarray
    steps: np.ndarray
    margins: np.ndarray


def walk(
    net: EquivalentNet,
    images: np.ndarray,
    classes: np.ndarray,
    nearest: bool = False,
    most: int = 50,
    stop: bool = True,
) -> Walk:
    """Step to the tie, again and again, until the class is lost: an adversarial example.

    Each step is exact in its region. A step that leaves its region is followed by another.

    Args:
        classes: (P,) those that the network chooses at first.
        nearest: choose the other class as DeepFool does, with a hypersurface for each class.
        most: steps after which to give up; such an image has an infinite distance.
        stop: stop when every class is lost; otherwise take all steps, ever nearer to the tie.
    """
    start, here = images.astype(float), images.astype(float)
    found, steps = np.full(images.shape, np.nan), np.full(len(images), most)
    leads = []
    for step in range(most + 1):
        at = (nearest_margin if nearest else margin)(net, here, classes)
        leads.append(lead := margin(net, here, classes).value if nearest else at.value)
        beyond = start + CROSSING * (here - start)
        lost = _chosen(net, beyond) != classes if step else lead < 0
        new = lost & np.isnan(found).any((1, 2, 3))
        found[new], steps[new] = beyond[new], step
        if stop and not np.isnan(found).any():
            break
        here = here + at.step
    distances = np.sqrt(np.sum((found - start) ** 2, (1, 2, 3)))
    return Walk(found, np.where(np.isnan(distances), np.inf, distances), steps, np.array(leads))


def projected_gradient(
    net: EquivalentNet,
    images: np.ndarray,
    classes: np.ndarray,
    radii: np.ndarray,
    steps: int = 20,
) -> np.ndarray:
    """How near an image of another class was met in a ball around each image; inf if none.

    Projected gradient descent of the margin in the Euclidean norm: a step of 2.5 r / steps along
    the gradient, then back into the ball.

    Args:
        radii: (P,) r of each ball.
    """
    start = here = images.astype(net.dtype.as_numpy_dtype)
    best = np.full(len(images), np.inf)
    for _ in range(steps):
        normal = margin(net, here, classes).normal
        here = here - _times(2.5 * radii / steps / np.maximum(_length(normal), 1e-30), normal)
        away = here - start
        away = _times(np.minimum(1, radii / np.maximum(_length(away), 1e-30)), away)
        here = (start + away).astype(start.dtype)
        lost = _chosen(net, here) != classes
        best = np.where(lost, np.minimum(best, _length(here - start)), best)
    return best


def smallest_ball(
    net: EquivalentNet,
    images: np.ndarray,
    classes: np.ndarray,
    first: np.ndarray,
    halvings: int = 8,
    steps: int = 20,
) -> np.ndarray:
    """The nearest image of another class that projected gradient finds, by halving the ball.

    Args:
        first: (P,) radii to begin with; doubled as often as needed, at most four times.
        halvings: how often the interval of radii is halved.
        steps: of projected gradient in each ball.
    """
    low, high = np.zeros(len(images)), np.asarray(first, float).copy()
    best = projected_gradient(net, images, classes, high, steps)
    for _ in range(4):
        missed = ~np.isfinite(best)
        if not missed.any():
            break
        low, high = np.where(missed, high, low), np.where(missed, 2 * high, high)
        best = np.minimum(best, projected_gradient(net, images, classes, high, steps))
    high = np.minimum(high, best)
    for _ in range(halvings):
        middle = (low + high) / 2
        found = projected_gradient(net, images, classes, middle, steps)
        best = np.minimum(best, found)
        met = np.isfinite(found)
        low, high = np.where(met, low, middle), np.where(met, np.minimum(found, middle), high)
    return best


def pattern_changes(net: EquivalentNet, image: np.ndarray, other: np.ndarray) -> tuple[int, int]:
    """How many ReLUs two images have in different states, and how many there are."""
    changed = total = 0
    one, two = net.freeze(image), net.freeze(other)
    for p, q in zip(one.patterns, two.patterns, strict=True):
        if p is not None:
            parts = p if isinstance(p, (tuple, list)) else (p,)
            others = q if isinstance(q, (tuple, list)) else (q,)
            for a, b in zip(parts, others, strict=True):
                changed += int(np.sum(np.asarray(a) != np.asarray(b)))
                total += int(np.size(a))
    return changed, total


def _pulled(
    net: EquivalentNet, images: np.ndarray, classes: np.ndarray, others: np.ndarray
) -> np.ndarray:
    """H_I of c_a - c_b at each image."""
    layer = net.layer(SCORES)
    a, b = (tf.one_hot(which, layer.shape[0], dtype=net.dtype) for which in (classes, others))
    return net.freeze(images).pull(layer.number, a - b)[0].numpy()


def _chosen(net: EquivalentNet, images: np.ndarray) -> np.ndarray:
    return net.value(images)[SCORES].numpy().argmax(1)


def _length(images: np.ndarray) -> np.ndarray:
    return np.sqrt(np.sum(images.astype(float) ** 2, (1, 2, 3)))


def _times(numbers: np.ndarray, images: np.ndarray) -> np.ndarray:
    return numbers[:, None, None, None] * images
