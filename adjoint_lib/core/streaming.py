"""Hypersurfaces of some units over any number of images, in bounded memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import tensorflow as tf

from adjoint_lib.core.compiled import MAX_BATCH
from adjoint_lib.core.equivalent_net import EquivalentNet
from adjoint_lib.core.hypersurface import checked_units, mode_of
from adjoint_lib.core.strategy import WORKSPACE, itemsize
from adjoint_lib.errors import InputError, check_whole

ONLY = (None, "contributions", "value")


def hypersurfaces(
    net: EquivalentNet,
    images: np.ndarray | Iterable[Any],
    layer: str,
    units: np.ndarray | Any,
    mode: str | None = None,
    only: str | None = None,
    max_bytes: int = WORKSPACE,
) -> Iterator[Any]:
    """H of these units for one batch of images after the other, in the images' order.

        for part in net.hypersurfaces(dataset, "fc", [3, 5]):
            part.H, part.images                       # (n, 2, d_in), the numbers of the n images

    Args:
        images: an array (N, *input_shape), a `tf.data.Dataset`, or any iterable of images or of
            batches, without end if you like. Of tuples, such as (images, labels), the first is
            taken.
        layer: a name of `net.layers`.
        units: (m, axes), an index tuple in each row; for a dense layer plain numbers will do.
        mode: as of `net.hypersurface`.
        only: "contributions" yields arrays (n, m, 1 + sources), "value" (n, m), in place of
            `Units`: what is kept of each image is then small.
        max_bytes: how large the H of a batch may be. Images that fit go through together.
    """
    if only not in ONLY:
        raise InputError(f"expected only as one of {', '.join(map(repr, ONLY))}, got {only!r}.")
    chosen = checked_units(units, mode_of(net.layer(layer), mode).shape(net.layer(layer)))
    each = len(chosen) * net.d_in * itemsize(net.dtype)
    size = max(1, min(MAX_BATCH, check_whole("max_bytes", max_bytes, 1) // each))

    def parts() -> Iterator[Any]:
        first = 0
        for batch in _batches(net, images, size):
            part = net.hypersurface(batch, layer, mode, max_bytes=max_bytes).at(chosen)
            part.images = np.arange(first, first + len(batch))
            yield getattr(part, only) if only else part
            first += len(batch)

    return parts()


def _batches(net: EquivalentNet, images: Any, size: int) -> Iterator[np.ndarray]:
    """The images in batches of one size, but for the last."""
    held: list[np.ndarray] = []
    for image in _one_by_one(net, images, size):
        held.append(image)
        if len(held) == size:
            yield np.stack(held)
            held = []
    if held:
        yield np.stack(held)


def _one_by_one(net: EquivalentNet, images: Any, size: int) -> Iterator[np.ndarray]:
    """Each image, of an array or of what yields images or batches of them."""
    if isinstance(images, (np.ndarray, tf.Tensor)):
        whole = images[None] if len(images.shape) == len(net.input_shape) else images
        images = (whole[i : i + size] for i in range(0, len(whole), size))
    if not isinstance(images, Iterable):
        raise InputError(
            "expected images as an array, a tf.data.Dataset or another iterable, got "
            f"{type(images).__name__}."
        )
    for element in images:
        found = element[0] if isinstance(element, tuple) else element
        yield from net.check_images(found).numpy()
