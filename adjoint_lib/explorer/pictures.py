"""An image, an H_I and what each pixel gives, as pictures: (height, width, 3 or 4) bytes."""

from __future__ import annotations

import base64

import numpy as np
import tensorflow as tf

POSITIVE, NEGATIVE = (214, 96, 77), (67, 147, 195)  # told apart with any colour vision


def picture(x: np.ndarray) -> np.ndarray:
    """An image in its own range: in colour with three channels, else the mean of them in grey."""
    x = _in_the_plane(x)
    x = x if x.shape[-1] == 3 else np.repeat(x.mean(-1, keepdims=True), 3, -1)
    low, high = x.min(), x.max()
    return np.rint(255 * (x - low) / ((high - low) or 1)).astype(np.uint8)


def signed(values: np.ndarray) -> np.ndarray:
    """Numbers summed over channels: red above zero, blue below, the fainter the nearer to it."""
    total = _in_the_plane(values).sum(-1)
    strength = np.abs(total) / (np.abs(total).max() or 1)
    colour = np.where(total[..., None] > 0, POSITIVE, NEGATIVE)
    return np.concatenate([colour, np.rint(255 * strength)[..., None]], -1).astype(np.uint8)


def overlay(x: np.ndarray, values: np.ndarray) -> np.ndarray:
    """The image in light grey, `signed` over it."""
    grey = 255 - (255 - picture(x).mean(-1, keepdims=True)) / 2
    colour = signed(values)
    alpha = colour[..., 3:] / 255
    return np.rint(grey * (1 - alpha) + colour[..., :3] * alpha).astype(np.uint8)


def largest(values: np.ndarray) -> float:
    """What `signed` shows in full colour."""
    return float(np.abs(_in_the_plane(values).sum(-1)).max())


def as_address(pixels: np.ndarray) -> str:
    """A picture as a `data:` address of a PNG."""
    png = tf.io.encode_png(pixels).numpy()
    return f"data:image/png;base64,{base64.b64encode(png).decode()}"


def _in_the_plane(x: np.ndarray) -> np.ndarray:
    """The entries as (height, width, channels): series and vectors too, volumes slice by slice."""
    x = np.asarray(x, float)
    if x.ndim < 3:
        return np.atleast_2d(x)[..., None]
    return x.reshape(-1, *x.shape[-2:])
