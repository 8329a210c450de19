"""Hypersurfaces over data sets: against a loop, from all that yields images, in bounded memory."""

import itertools

import numpy as np
import pytest
import tensorflow as tf

import adjoint_lib as al
from adjoint_lib.core import streaming
from reference import image_of, small_net

NET = small_net()[1]
IMAGES = np.stack([image_of(NET, seed) for seed in range(7)])
UNITS = np.array([[0, 1, 2], [3, 3, 4], [2, 0, 0]])


def looped(layer, units):
    """One image and one unit at a time."""
    return np.array([[NET.hypersurface(x, layer)[tuple(unit)].H for unit in units] for x in IMAGES])


SOURCES = {
    "an array": lambda: IMAGES,
    "images": lambda: iter(IMAGES),
    "batches of several sizes": lambda: (IMAGES[:3], IMAGES[3:4], IMAGES[4:]),
    "a list": lambda: list(IMAGES),
    "tf.data": lambda: tf.data.Dataset.from_tensor_slices(IMAGES).batch(2),
    "tf.data with labels": lambda: tf.data.Dataset.from_tensor_slices((IMAGES, range(7))).batch(4),
    "tf.data of single images": lambda: tf.data.Dataset.from_tensor_slices(IMAGES),
}


@pytest.mark.parametrize("source", SOURCES.values(), ids=SOURCES)
def test_whatever_yields_images_gives_what_a_loop_gives(source, monkeypatch):
    monkeypatch.setattr(streaming, "MAX_BATCH", 3)
    parts = list(NET.hypersurfaces(source(), "second", UNITS))
    assert [len(part.x) for part in parts] == [3, 3, 1]
    H = np.concatenate([part.H for part in parts])
    np.testing.assert_allclose(H, looped("second", UNITS), atol=1e-13)
    assert np.concatenate([part.images for part in parts]).tolist() == list(range(7))
    np.testing.assert_array_equal(np.concatenate([part.x for part in parts]), IMAGES)


@pytest.mark.parametrize("count", [2, 40])
def test_few_units_and_many_in_every_mode(count):
    """Many are pulled image by image, few for many images at a time."""
    for mode in ("RM1", "RM2", "RM3", "RM4"):
        H = NET.hypersurface(IMAGES, "second", mode)
        units = np.random.default_rng(0).integers(0, H.shape[2:], (count, len(H.shape) - 2))
        (part,) = NET.hypersurfaces(IMAGES, "second", units, mode)
        expected = [[H[(n, *unit)].H for unit in units] for n in range(0, 7, 3)]
        np.testing.assert_allclose(part.H[::3], expected, atol=1e-13)


def test_only_values_or_contributions():
    (whole,) = NET.hypersurfaces(IMAGES, "out", [2, 0])
    (values,) = NET.hypersurfaces(IMAGES, "out", [2, 0], only="value")
    (parts,) = NET.hypersurfaces(IMAGES, "out", [2, 0], only="contributions")
    np.testing.assert_allclose(values, NET.value(IMAGES)["out"].numpy()[:, [2, 0]], atol=1e-12)
    np.testing.assert_allclose(parts.sum(-1), values, atol=1e-12)
    np.testing.assert_array_equal(parts, whole.contributions)


def test_images_without_end_are_read_as_they_are_asked_for():
    read = itertools.count()
    endless = (image_of(NET, next(read)) for _ in itertools.repeat(None))
    found = NET.hypersurfaces(endless, "out", [0], max_bytes=2 * NET.d_in * 8)
    first = [next(found).value for _ in range(3)]
    assert next(read) == 6 and [v.shape for v in first] == [(2, 1)] * 3


def test_what_does_not_fit_is_refused_in_words():
    with pytest.raises(al.InputError, match="'value'"):
        NET.hypersurfaces(IMAGES, "out", [0], only="values")
    with pytest.raises(al.InputError, match="3 integers"):
        NET.hypersurfaces(IMAGES, "second", [0])
    with pytest.raises(al.InputError, match="Did you mean"):
        NET.hypersurfaces(IMAGES, "oot", [0])
    with pytest.raises(al.InputError, match="out of range"):
        next(NET.hypersurfaces(IMAGES, "out", [3]))
    with pytest.raises(al.InputError, match="8 x 7 x 2"):
        next(NET.hypersurfaces([IMAGES[0, :5]], "out", [0]))
    with pytest.raises(al.TooLarge):
        next(NET.hypersurfaces(IMAGES, "out", [0], max_bytes=100))
    assert list(NET.hypersurfaces([], "out", [0])) == []
