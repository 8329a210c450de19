"""What was computed of some units: their hypersurfaces, and what [x; x_b] gives them by parts."""

from __future__ import annotations

import math

import numpy as np

from adjoint_lib.core.network import Layer, Network
from adjoint_lib.errors import AdjointError


class Units:
    """The computed hypersurfaces of some units, stacked along the sliced axes.

    Attributes:
        H: (*chosen, d_in), the hypersurfaces, image part first.
    """

    def __init__(
        self, net: Network, layer: Layer, rows: np.ndarray, x: np.ndarray, kept: tuple[int, ...]
    ):
        self._net = net
        self._x = x.reshape(len(x), -1)
        self._kept = kept
        self.H = rows.reshape(*kept, net.d_in)
        if not np.isfinite(self.H).all():
            raise AdjointError(f"H of '{layer.name}' overflows {net.dtype.name}. Try float64.")

    @property
    def image(self) -> np.ndarray:
        """H_I: (*chosen, *input_shape)."""
        return self.H[..., : self._pixels].reshape(*self._kept, *self._net.input_shape)

    @property
    def bias(self) -> np.ndarray:
        """H_b: (*chosen, d_b)."""
        return self.H[..., self._pixels :]

    @property
    def contributions(self) -> np.ndarray:
        """<x | H_I>, then <x_b | H_b> of each part of x_b: (*chosen, 1 + sources); sum: `value`."""
        rows = self.H.reshape(len(self._x), -1, self._net.d_in)  # (images, units of each, d_in)
        image = np.einsum("nud,nd->nu", rows[..., : self._pixels], self._x)
        weighed = rows[..., self._pixels :] * self._net.x_b.astype(rows.dtype)
        parts = [weighed[..., s.slice].sum(-1) for s in self._net.sources]
        return np.stack([image, *parts], axis=-1).reshape(*self._kept, 1 + len(parts))

    @property
    def sources(self) -> list[str]:
        """What the entries of `contributions` come from."""
        return ["image", *(s.name for s in self._net.sources)]

    @property
    def value(self) -> np.ndarray:
        """The reconstructed activation <x | H_I> + <x_b | H_b>: (*chosen,)."""
        return self.contributions.sum(-1)

    @property
    def _pixels(self) -> int:
        return math.prod(self._net.input_shape)

    def __repr__(self) -> str:
        what = (
            f"value {self.value:.6g}"
            if not self._kept
            else f"{' x '.join(map(str, self._kept))} units"
        )
        return f"<Units: {what}; .image, .bias, .value, .contributions>"
