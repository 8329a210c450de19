"""Entries moved about, repeated or left as they are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import keras
import numpy as np

from adjoint_lib.core import primitives as p
from adjoint_lib.errors import UnsupportedLayer
from adjoint_lib.frontend import layers
from adjoint_lib.frontend.rules.call import Call, rule

L = keras.layers


@rule(
    L.Softmax,
    L.SpatialDropout1D,
    L.SpatialDropout2D,
    L.SpatialDropout3D,
    L.Dropout,
    L.GaussianDropout,
    L.AlphaDropout,
    L.GaussianNoise,
    L.Identity,
    L.ActivityRegularization,
)
def identity(call: Call) -> int:
    return call.inputs[0]


@rule(L.Flatten, L.Reshape)
def reshape(call: Call) -> int:
    return call.add(p.Reshape(call.input_shapes[0], call.shape))


@rule(L.Permute)
def permute(call: Call) -> int:
    return call.add(p.Permute(tuple(d - 1 for d in call.layer.dims)))


@rule(L.ZeroPadding1D, L.ZeroPadding2D, L.ZeroPadding3D)
def zero_padding(call: Call) -> int:
    return call.add(p.Pad((*_margins(call.layer.padding), (0, 0))))


@rule(L.Cropping1D, L.Cropping2D, L.Cropping3D)
def cropping(call: Call) -> int:
    return call.add(p.Crop((*_margins(call.layer.cropping), (0, 0))))


def _margins(margins: Sequence[Any]) -> tuple[tuple[int, int], ...]:
    """Keras writes ((top, bottom), (left, right)) for images, (before, after) for sequences."""
    pairs = margins if isinstance(margins[0], Sequence) else [margins]
    return tuple((int(before), int(after)) for before, after in pairs)


@rule(layers.PadChannels)
def pad_channels(call: Call) -> int:
    margins = call.layer.padding(call.input_shapes[0][-1])
    return call.add(p.Pad((*((0, 0),) * (len(call.shape) - 1), margins)))


@rule(L.UpSampling1D, L.UpSampling2D)
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
