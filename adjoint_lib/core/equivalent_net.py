"""The equivalent network as a user meets it: the paper's Fig. 2, bottom.

Every bias, and every constant of an activation with intercepts, is an entry of x_b.
"""

from __future__ import annotations

import functools
import math
import sys
from collections.abc import Sequence

import numpy as np
import tensorflow as tf

from adjoint_lib._registry import method_from
from adjoint_lib.core.compiled import patterns_below, traced
from adjoint_lib.core.frozen import Frozen, check_range, is_finite, vectors
from adjoint_lib.core.hypersurface import MODES, Hypersurface, Mode, mode_of
from adjoint_lib.core.network import Layer, Network
from adjoint_lib.core.primitives import Activation, Pattern
from adjoint_lib.core.tables import Table
from adjoint_lib.errors import AdjointError, InputError

K = 1 / 8  # the paper's z = k [x; x_b]; a power of two, so the scaling commutes with rounding


class EquivalentNet(Network):
    """A network over v = [x; x_b], made by `al.equivalent`: read by value, tangent and adjoint.

    Attributes:
        name: the model's name.
        dtype: the dtype of all computing, tf.float32 or tf.float64; `astype` gives the other.
        input_shape: shape of x.
        x_b: (d_b,) float64, all biases and constants in the order of `sources`.
        sources: where each part of x_b comes from.
        layers: the layers with a kernel.
    """

    def __call__(self, images: np.ndarray) -> tf.Tensor | list[tf.Tensor]:
        """The model's output (a list if it has several), before any final softmax."""
        found = self._values(self.check_images(images), 1.0, self.graph.outputs)
        outputs = [found[o] for o in self.graph.outputs]
        return outputs[0] if len(outputs) == 1 else outputs

    def value(self, images: np.ndarray, k: float = 1.0) -> dict[str, tf.Tensor]:
        """Value reading: c of every unit at k [x; x_b], by layer name; each (N, *layer.shape).

        c is the unit's value before its own bias is added, computed by TensorFlow's own layers.
        """
        wanted = [layer.number for layer in self.layers]
        mantissa, exponent = math.frexp(check_k(k))
        batch = self.check_images(images)
        if exponent in (0, 1):  # k = 1, or near it
            mantissa, exponent = k, 0
        found = self._values(batch, mantissa, wanted)
        if exponent:
            found = {n: _scaled(c, exponent, k) for n, c in found.items()}
        return {layer.name: found[layer.number] for layer in self.layers}

    def _values(self, images: tf.Tensor, k: float, wanted: Sequence[int]) -> dict[int, tf.Tensor]:
        """`values_at`, traced where k is 1; an overflow is looked for where it shows."""

        def values(x: tf.Tensor) -> dict[int, tf.Tensor]:
            return self.values_at(x, k, wanted)

        key = "value", tuple(wanted), images.shape[0]
        found: dict[int, tf.Tensor] = (traced(self, key, values) if k == 1 else values)(images)
        if not is_finite(found.values()):
            self._freeze(images, k, [])
        return found

    def tangent(
        self, images: np.ndarray, dx: np.ndarray, dx_b: np.ndarray, k: float = K
    ) -> dict[str, tf.Tensor]:
        """Tangent reading: J(k[x; x_b]) [dx; dx_b] at every layer, by name.

        One image takes any number n of directions; a batch of P images takes one direction each.

        Args:
            dx: (n, *input_shape).
            dx_b: (n, d_b).
        """
        frozen = self.freeze(images, k)
        dx = vectors("dx", dx, self.input_shape, self.dtype)
        dx_b = vectors("dx_b", dx_b, self.x_b.shape, self.dtype)
        if len(dx_b) != len(dx):
            raise InputError(f"expected as many dx_b as dx, got {len(dx_b)} and {len(dx)}.")
        _check_rows("direction", len(dx), frozen)
        pushed = frozen.tangents(dx, dx_b, [layer.number for layer in self.layers])
        check_range("J [dx; dx_b]", pushed.values())
        return {layer.name: pushed[layer.number] for layer in self.layers}

    def adjoint(
        self, images: np.ndarray, layer: str, cotangent: np.ndarray, k: float = K
    ) -> tuple[tf.Tensor, tf.Tensor]:
        """Adjoint reading: J* g for cotangents g (n, *layer.shape) on the layer's units.

        Returns:
            (n, *input_shape) and (n, d_b).
        """
        frozen, found = self.freeze(images, k), self.layer(layer)
        g = vectors("cotangent", cotangent, found.shape, self.dtype)
        _check_rows("cotangent", len(g), frozen)
        pulled = frozen.pull(found.number, g)
        check_range("J* g", pulled)
        return pulled

    def freeze(self, images: np.ndarray, k: float = K) -> Frozen:
        """The network frozen at the pattern of k [x; x_b]: one linear operator J per image.

        `freeze(image).hypersurface("conv3")` is then that of `hypersurface`, for any layer.
        """
        frozen = self.frozen_below(
            self.check_images(images), self.pattern_at(k), self.graph.outputs
        )
        frozen.single = np.ndim(images) == len(self.input_shape)
        return frozen

    def frozen_below(self, images: tf.Tensor, k: float, ends: Sequence[int]) -> Frozen:
        """What these nodes depend on, frozen at the pattern of k [x; x_b], with k of `pattern_at`.

        An overflow is looked for node by node, and named, after it has shown in a sum.
        """
        if k == 1:
            key = "freeze", tuple(ends), images.shape[0]
            freeze = traced(self, key, lambda x: patterns_below(self, x, ends))
            patterns, finite = freeze(images)
            if finite:
                return Frozen(self, images, patterns, self.nodes)
        return self._freeze(images, k, [], ends)[0]

    def pattern_at(self, k: float) -> float:
        """A number in [1, 2) at which the pattern is that at k: k divided by a power of two.

        Such a division commutes with rounding, and nothing under- or overflows. An activation that
        jumps is compared with its threshold itself, at 1, where no rounding of k t enters.
        """
        return 1.0 if self._jumps else 2 * math.frexp(check_k(k))[0]

    @functools.cached_property
    def _jumps(self) -> bool:
        primitives = [node.primitive for node in self.graph.nodes]
        return any(isinstance(p, Activation) and p.jumps for p in primitives)

    def freeze_and_value(self, images: np.ndarray) -> tuple[Frozen, dict[str, tf.Tensor]]:
        """`freeze(images, 1.0)` and `value(images)`, in one forward pass."""
        numbers = [layer.number for layer in self.layers]
        frozen, found = self._freeze(self.check_images(images), 1.0, numbers)
        return frozen, {layer.name: found[layer.number] for layer in self.layers}

    def frozen_and_values(
        self, images: tf.Tensor, numbers: Sequence[int]
    ) -> tuple[Frozen, dict[int, tf.Tensor]]:
        """What these nodes depend on, frozen at [x; x_b], and their values there."""
        return self._freeze(images, 1.0, numbers, numbers)

    def _freeze(
        self, images: tf.Tensor, k: float, wanted: Sequence[int], ends: Sequence[int] = ()
    ) -> tuple[Frozen, dict[int, tf.Tensor]]:
        """The frozen network at k [x; x_b], and the values of the wanted nodes there.

        Without tracing, so that what is stored of a verification is rounded as it always was.
        """
        patterns: list[Pattern] = [None] * len(self.nodes)
        values = {}
        for number, inputs, value in self.evaluate(images, k, ends or range(len(self.nodes))):
            primitive = self.nodes[number].primitive
            if not bool(tf.reduce_all(tf.math.is_finite(value))):
                raise AdjointError(
                    f"layer '{self.nodes[number].name}' overflows {self.dtype.name} at this image; "
                    "expected finite values. Compute in float64, or scale the image."
                )
            patterns[number] = None if primitive is None else primitive.freeze(*inputs)
            if number in wanted:
                values[number] = value
        return Frozen(self, images, patterns, self.nodes), values

    def hypersurface(
        self,
        image: np.ndarray,
        layer: str,
        mode: str | None = None,
        k: float = K,
        max_bytes: int = 2**30,
    ) -> Hypersurface:
        """The effective hypersurfaces H = J* w of a layer's units: lazy, computed when indexed.

        Args:
            image: x, shape `input_shape`, or a batch (N, *input_shape).
            layer: a name of `net.layers`.
            mode: "RM0" (dense layers) or "RM1" ... "RM4"; by default RM0 or RM2.
            k: J is taken at k [x; x_b]; any k > 0.
            max_bytes: the largest result that one index may ask for.

        Only what the layer depends on is frozen, when H is indexed.
        """
        found = self.layer(layer)
        at = self.check_images(image), self.pattern_at(k)
        single = np.ndim(image) == len(self.input_shape)
        return Hypersurface(self, *at, found, mode_of(found, mode), single, max_bytes)

    def dimensions(self) -> Table[list[str]]:
        """The shape of H for every layer in every mode that fits: the paper's dimension tables."""

        def cell(layer: Layer, mode: Mode) -> str:
            return str((self.d_in, *mode.shape(layer))) if mode.name in layer.modes else ""

        rows = [[layer.name, *(cell(layer, m) for m in MODES.values())] for layer in self.layers]
        return Table(["layer", *MODES], rows)

    hypersurfaces = method_from("adjoint_lib.core.streaming", "hypersurfaces")
    contributions = method_from("adjoint_lib.core.contributions", "contributions")
    export = method_from("adjoint_lib.explorer.export", "export")
    explorer = method_from("adjoint_lib.explorer.page", "explorer")

    def __repr__(self) -> str:
        entries = " x ".join(map(str, self.input_shape))
        return (
            f"<EquivalentNet '{self.name}': x {entries}, x_b {self.x_b.size} from "
            f"{len(self.sources)} sources, {len(self.layers)} layers with a kernel, "
            f"{self.dtype.name}>"
        )


def check_k(k: float) -> float:
    """k as a float, or an error: the identity holds for k > 0."""
    number = isinstance(k, (int, float, np.floating, np.integer)) and not isinstance(k, bool)
    if not number or not 0 < k <= sys.float_info.max or not (found := float(k)):
        raise InputError(f"expected a finite k > 0 in z = k [x; x_b], got {repr(k)[:40]}.")
    return found


def _scaled(c: tf.Tensor, exponent: int, k: float) -> tf.Tensor:
    """2^exponent c, if it is in the range of c's dtype."""
    with np.errstate(over="ignore", under="ignore"):
        wide = np.ldexp(tf.cast(c, tf.float64).numpy(), exponent)
        found = wide.astype(c.dtype.as_numpy_dtype)
    tiny = np.finfo(found.dtype).tiny
    if not np.isfinite(found).all() or np.any((np.abs(found) < tiny) & (c != 0)):
        raise InputError(
            f"expected k with k c in the range of {c.dtype.name} for every unit c, got k = {k:g}."
        )
    return tf.constant(found)


def _check_rows(what: str, rows: int, frozen: Frozen) -> None:
    """Refuse so many directions or cotangents, unless each image has one or there is one image."""
    if (images := len(frozen.images)) not in (1, rows):
        raise InputError(f"expected one {what} for each of {images} images, got {rows}.")
