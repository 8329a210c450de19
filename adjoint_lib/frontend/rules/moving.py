"""Entries moved about, repeated or left as they are."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import keras
import numpy as np

from adjoint_lib.core import primitives as p
from adjoint_lib.errors import InputError, UnsupportedLayer
from adjoint_lib.frontend import layers
from adjoint_lib.frontend.rules.call import Call, axes_of, operator, reshaped, rule

L = keras.layers


@rule(L.SpatialDropout1D, L.SpatialDropout2D, L.SpatialDropout3D, L.Dropout, L.GaussianDropout)
@rule(L.AlphaDropout, L.GaussianNoise, L.Identity, L.ActivityRegularization)
def identity(call: Call) -> int:
    return call.inputs[0]


AUGMENTATIONS = """RandomBrightness RandomColorDegeneration RandomColorJitter RandomContrast
    RandomErasing RandomFlip RandomGaussianBlur RandomGrayscale RandomHue RandomInvert
    RandomPerspective RandomPosterization RandomRotation RandomSaturation RandomSharpness
    RandomShear RandomTranslation RandomZoom RandomElasticTransform AugMix CutMix MixUp
    RandAugment Equalization""".split()  # nothing at inference
rule(*(getattr(L, name) for name in AUGMENTATIONS if hasattr(L, name)))(identity)


@rule(L.Flatten, L.Reshape)
def reshape(call: Call) -> int:
    return call.add(p.Reshape(call.input_shapes[0], call.shape))


@operator("Squeeze", "ExpandDims", "Reshape", "Transpose", "Moveaxis", "Swapaxes", "Ravel")
@operator("GetItem", "Flip", "Roll", "Repeat", "Tile", "Take")
@rule(L.Permute, L.Cropping1D, L.Cropping2D, L.Cropping3D)
@rule(L.UpSampling1D, L.UpSampling3D, L.RepeatVector, L.RandomCrop)
def move(call: Call) -> int:
    """Entries moved, repeated or left out, read off from where the layer itself puts 0, 1, ..."""
    shape, size = call.input_shapes[0], math.prod(call.input_shapes[0])
    numbers = np.arange(size, dtype=float).reshape(1, *shape)
    if isinstance(call.layer, L.Layer):
        return _taken(call, call.evaluate(numbers)[0].astype(int))
    try:
        found = call.evaluate(np.concatenate([numbers, numbers + size])).astype(int)
        kept = len(found) == 2 and found.shape[1:] == call.shape
    except InputError:  # a batch of two is impossible
        kept = False
    if not kept or np.any(found[1] - found[0] != size):
        raise UnsupportedLayer(
            f"operation '{call.name}' mixes the images of a batch; expected one that leaves their "
            "axis, the first, as it is. Give shapes as (-1, *shape of one image)."
        )
    if type(call.layer).__name__ in ("Flip", "Roll", "Repeat", "Take"):
        axes_of(call)  # whatever two images show: to roll them by two is to leave them
    return _taken(call, found[0])


def _taken(call: Call, taken: np.ndarray) -> int:
    """The entries `taken` (flat indices) of the input, in the shape of that array.

    Each axis of the input goes along at most one axis of the output.
    """
    h, shape = call.inputs[0], call.input_shapes[0]
    if np.array_equal(taken.reshape(-1), np.arange(math.prod(shape))):
        return reshaped(call, h, taken.shape)
    places = np.unravel_index(taken, shape)
    goes = [
        [a for a, n in enumerate(taken.shape) if n > 1 and np.diff(c, axis=a).any()] for c in places
    ]
    used = [a for along in goes for a in along]
    if max(map(len, goes)) > 1 or len(set(used)) < len(used):
        raise UnsupportedLayer(
            f"layer '{call.name}' moves entries across axes; expected one axis at a time. Write it "
            "as slices, reshapes and transpositions, one after the other."
        )
    new = [a for a, n in enumerate(taken.shape) if n > 1 and [a] not in goes]
    if new:  # the axes along which entries are repeated
        shape = (*shape, *(1 for _ in new))
        h = call.add(p.Reshape(call.input_shapes[0], shape), [h], shape)
        places, goes = (*places, *(np.zeros_like(taken) for _ in new)), [*goes, *([a] for a in new)]
    margins = []
    for axis, (place, along) in enumerate(zip(places, goes, strict=True)):
        rest = tuple(slice(None) if [a] == along else 0 for a in range(taken.ndim))
        index = np.atleast_1d(place[rest])
        contiguous = np.all(np.diff(index) == 1)
        margins.append((int(index[0]), int(shape[axis] - 1 - index[-1])) if contiguous else (0, 0))
        if not contiguous:
            matrix = np.eye(shape[axis])[:, index]
            shape = (*shape[:axis], len(index), *shape[axis + 1 :])
            h = call.add(p.AlongAxis(matrix, axis + 1), [h], shape)
    if any(map(any, margins)):
        shape = tuple(n - sum(m) for n, m in zip(shape, margins, strict=True))
        h = call.add(p.Crop(tuple(margins)), [h], shape)
    order = sorted(range(len(shape)), key=lambda a: goes[a] or [-1])
    longer = [a for a in order if shape[a] > 1]
    if longer != sorted(longer):
        permuted = tuple(shape[a] for a in order)
        h, shape = call.add(p.Permute(tuple(order)), [h], permuted), permuted
    return reshaped(call, h, taken.shape)


@rule(L.ZeroPadding1D, L.ZeroPadding2D, L.ZeroPadding3D)
def zero_padding(call: Call) -> int:
    return call.add(p.Pad((*_margins(call.layer.padding), (0, 0))))


def _margins(margins: Sequence[Any]) -> tuple[tuple[int, int], ...]:
    """Keras writes ((top, bottom), (left, right)) for images, (before, after) for sequences."""
    pairs = margins if isinstance(margins[0], Sequence) else [margins]
    return tuple((int(before), int(after)) for before, after in pairs)


@rule(layers.PadChannels)
def pad_channels(call: Call) -> int:
    margins = call.layer.padding(call.input_shapes[0][-1])
    return call.add(p.Pad((*((0, 0),) * (len(call.shape) - 1), margins)))


@operator("Pad")
def pad(call: Call) -> int:
    """Zeros around the entries; reflected entries are moved ones."""
    if call.layer.mode != "constant":
        return move(call)
    if any(np.any(a) for a in call.args[1:] if a is not None):
        raise UnsupportedLayer(
            f"operation '{call.name}' pads by {call.args[1]}; expected zeros. Subtract it before, "
            "pad by zeros, and add it after."
        )
    margins = [(int(before), int(after)) for before, after in call.layer.pad_width]
    margins = margins * (len(call.shape) + 1) if len(margins) == 1 else margins
    if any(margins[0]):
        raise UnsupportedLayer(f"operation '{call.name}' pads the batch; expected (0, 0) there.")
    return call.add(p.Pad(tuple(margins[1:])))


@operator("Resize")
@rule(L.Resizing, L.UpSampling2D, L.CenterCrop)
def resize(call: Call) -> int:
    """Repeat, crop or interpolate: a matrix along each axis, read off from the layer itself.

    TensorFlow rounds the weights of an interpolation to float32; it is those that are taken.
    """
    layer, shape = call.layer, call.input_shapes[0]
    if isinstance(layer, L.CenterCrop) and layer.height <= shape[0] and layer.width <= shape[1]:
        return move(call)
    if getattr(layer, "pad_to_aspect_ratio", False) and layer.fill_value:
        raise UnsupportedLayer(
            f"layer '{call.name}' pads by fill_value={layer.fill_value}; expected 0. Pad before it."
        )
    h, rounds = call.inputs[0], getattr(layer, "interpolation", "bilinear") != "nearest"
    for axis in (0, 1):
        matrix = _along_one_axis(call, axis)
        if rounds or not np.array_equal(matrix, np.eye(len(matrix))):
            shape = (*shape[:axis], matrix.shape[1], *shape[axis + 1 :])
            h = call.add(p.AlongAxis(matrix, axis + 1), [h], shape)
    return h


def _along_one_axis(call: Call, axis: int) -> np.ndarray:
    """(size in, size out): what the layer makes of images with a single bright line."""
    height, width, _ = call.input_shapes[0]
    size = (height, width)[axis]
    lines = np.eye(size)[:, :, None, None] if axis == 0 else np.eye(size)[:, None, :, None]
    at_once = max(1, 2**22 // (height * width))
    found = []
    for start in range(0, size, at_once):
        some = lines[start : start + at_once]
        out = call.evaluate(np.broadcast_to(some, (len(some), height, width, 1)))[..., 0]
        found.append(out.take(out.shape[2 - axis] // 2, 2 - axis))
    return np.concatenate(found).astype(float)
