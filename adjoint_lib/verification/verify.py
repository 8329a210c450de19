"""Verification: reconstruct every unit and compare it with what the network computes.

This is the paper's Eq. (14) to (16). `reconstruction` says what the two methods,
"hypersurface" and "tangent", compute and what they prove.

The reference c is the value reading of the equivalent network: TensorFlow's own layers at [x; x_b],
before the unit's own bias. Relative errors are (c_hat - c) / c, zeros in the denominator replaced
by the smallest positive normal float32.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import keras
import numpy as np

from adjoint_lib.core._threads import run_in_thread
from adjoint_lib.core.equivalent_net import EquivalentNet, K, check_k
from adjoint_lib.core.error_bounds import bound, largest_ratio, rounding_scale, unit_roundoff
from adjoint_lib.core.frozen import Frozen
from adjoint_lib.core.hypersurface import mode_of
from adjoint_lib.core.network import Layer, smallest
from adjoint_lib.core.strategy import WORKSPACE
from adjoint_lib.errors import AdjointError, InputError, check_whole
from adjoint_lib.frontend.comparison import compare
from adjoint_lib.frontend.refusals import check_model, precision_of
from adjoint_lib.verification import reconstruction
from adjoint_lib.verification.coarse_weights import check_format, rounded
from adjoint_lib.verification.progress import Advance, Progress, ignore
from adjoint_lib.verification.reconstruction import METHODS, Reconstructed
from adjoint_lib.verification.report import LayerReport, Report

SMALLEST = float(np.finfo(np.float32).tiny)
BATCH = 16  # images that are frozen in one pass, where no unit direction is pushed


def verify(
    net: EquivalentNet,
    images: np.ndarray,
    layers: Sequence[str] | str | None = None,
    mode: str | None = None,
    method: str = "hypersurface",
    dtype: str | None = None,
    k: float = K,
    weights_rounded: str | None = None,
    max_bytes: int = WORKSPACE,
    progress: bool = True,
    model: keras.Model | None = None,
    units: int | None = None,
    seed: int = 0,
) -> Report:
    """Reconstruct every unit of these layers for every image, and collect the errors.

    Args:
        images: (N, *input_shape) or one image.
        layers: names; by default every layer after the first (there J is the identity); or "all".
        mode: "RM2" takes the convolutions only, "RM0" the dense layers only; by default both.
        method: "hypersurface" or "tangent", see above.
        dtype: "float32" or "float64"; by default the net's.
        k: J is taken at k [x; x_b].
        weights_rounded: "bfloat16" takes H from weights rounded to it, see `coarse_weights`.
        max_bytes: memory for the tensors of one push or pull; two run at a time.
        progress: show a progress bar if it takes longer than two seconds, and say what is cheaper
            if it takes longer than a minute.
        model: the Keras model that the net was made from. If given, the net is first compared with
            it on these images, layer by layer, each on the model's own inputs (a layer with its
            folded batch normalisation after that); a difference beyond rounding is an
            `AdjointError`. The report's numbers stay the same.
        units: take so many units of each layer, drawn at random, the same for each image; the table
            then has intervals for all. By default every unit is taken.
        seed: of that drawing.
    """
    if model is not None:
        compare_with_model(net, images, model)
    plan = Plan(net, layers, mode, method, dtype, k, weights_rounded, max_bytes, units, seed)
    images = plan.net.check_images(images).numpy()
    report = plan.empty()
    with Progress(len(images), plan.cheaper, disable=not progress) as bar:
        for part in plan.reports(images, bar.batch):
            report += part
            bar.finished(report.images)
    return report


def compare_with_model(
    net: EquivalentNet, images: np.ndarray, model: keras.Model
) -> dict[str, float]:
    """The largest error of each layer of the model, divided by what rounding allows: at most 1.

    Unlike `verify`, this takes its reference from the model itself; see `frontend.comparison`.
    """
    check_model(model)
    return compare(model, net.astype(precision_of(model)), images)


def reconstruct(
    net: EquivalentNet,
    image: np.ndarray,
    layers: Sequence[str] | str | None = None,
    **options: Any,
) -> dict[str, np.ndarray]:
    """c_hat of every unit of these layers for one image: by layer, an array of its shape.

    This is what `verify` compares with `net.value(image)`; `options` are those of `verify`.
    """
    plan = Plan(net, layers, **options)
    batch = plan.net.check_images(image).numpy()
    if len(batch) != 1:
        raise InputError(f"expected one image, got {len(batch)}. Call this for each of them.")
    found = plan.reconstructed(plan.net.freeze(batch, plan.k))
    return {layer.name: c_hat[0] for layer, c_hat in found}


class Plan:
    """What a verification does to each image: the arguments of `verify` but the images, checked."""

    def __init__(
        self,
        net: EquivalentNet,
        layers: Sequence[str] | str | None = None,
        mode: str | None = None,
        method: str = "hypersurface",
        dtype: str | None = None,
        k: float = K,
        weights_rounded: str | None = None,
        max_bytes: int = WORKSPACE,
        units: int | None = None,
        seed: int = 0,
    ):
        if not isinstance(net, EquivalentNet):
            raise InputError(
                f"expected a network as al.equivalent makes it, got {type(net).__name__}."
            )
        if method not in METHODS:
            raise InputError(f"unknown method {method!r}; expected one of {', '.join(METHODS)}.")
        self.net = net if dtype is None else net.astype(dtype)
        self.layers = chosen_layers(self.net, layers, mode)
        self.method, self.k = method, check_k(k)
        self.max_bytes = check_whole("max_bytes", max_bytes, 1)
        self.weights_rounded = check_format(weights_rounded)
        self.units = None if units is None else check_whole("units", units, 1)
        self.seed = check_whole("seed", seed, 0)

    def settings(self) -> dict[str, Any]:
        """The arguments besides the net that give this plan, in plain numbers and text."""
        return {
            "layers": [layer.name for layer in self.layers],
            "method": self.method,
            "dtype": self.net.dtype.name,
            "k": self.k,
            "weights_rounded": self.weights_rounded,
            "max_bytes": self.max_bytes,
            **self._drawing,
        }

    @property
    def _drawing(self) -> dict[str, int]:
        return {} if self.units is None else {"units": self.units, "seed": self.seed}

    @functools.cached_property
    def sample(self) -> dict[str, np.ndarray] | None:
        """The units to take of each layer: flat, ascending, the same in every process."""
        if self.units is None:
            return None
        found = {}
        for layer in self.layers:
            size = math.prod(layer.shape)
            rng = np.random.default_rng([self.seed, *layer.name.encode()])
            found[layer.name] = np.sort(rng.choice(size, min(size, self.units), replace=False))
        return found

    @functools.cached_property
    def takes_batches(self) -> bool:
        """Whether several images go through the network at once."""
        if self.sample is not None and self.method == "hypersurface":
            return False
        return reconstruction.takes_batches(self.net, self.layers, self.method)

    @property
    def batch_size(self) -> int:
        """How many images go through the network at once.

        The sums of a batch may be rounded in another order than those of one image. For results
        that do not depend on how the images are divided, parts begin at multiples of this.
        """
        return BATCH if self.takes_batches else 1

    def empty(self) -> Report:
        """The report of no image."""
        found = Report.empty(self.net, self.layers, self.method, self.k, self.weights_rounded)
        found.about.update(self._drawing)
        return found

    @property
    def cheaper(self) -> str:
        """What takes less time than this, if anything does."""
        sampled = "" if self.units else " units=200 takes so many of each layer."
        tangent = "method='tangent' takes all units in one pass along [x; x_b]."
        return "" if self.method == "tangent" else tangent + sampled

    def reports(
        self, images: np.ndarray, advance: Callable[[int], Advance] = lambda images: ignore
    ) -> Iterator[Report]:
        """The reports of the images, batch by batch; they add up to that of them all.

        Args:
            advance: what a batch of so many images tells of its progress.
        """
        for i in range(0, len(images), self.batch_size):
            batch = images[i : i + self.batch_size]
            yield run_in_thread(self.report, batch, advance(len(batch)))

    def report(self, batch: np.ndarray, advance: Advance = ignore) -> Report:
        """The report of one batch of images."""
        net, method, rough = self.net, self.method, self.weights_rounded
        at_one, values = net.freeze_and_value(batch)
        rescaled = net.pattern_at(self.k) != 1
        frozen = net.freeze(batch, self.k) if rescaled else at_one
        scales = rounding_scale(frozen, self.layers, at_one if rescaled else None)
        u = unit_roundoff(rough or net.dtype)
        report = self.empty()
        report.images = len(batch)
        advance(0.0)
        for layer, found in self.reconstructed(frozen, advance):
            c, A = values[layer.name].numpy(), scales[layer.name]
            largest = np.abs(c.astype(float)).max(axis=tuple(range(1, c.ndim)), keepdims=True)
            if self.sample is not None:
                some = self.sample[layer.name]
                c, A = (each.reshape(len(c), -1)[:, some] for each in (c, A))
                largest = largest.reshape(-1, 1)
            if not np.isfinite(found).all() or not np.isfinite(c).all():
                raise AdjointError(
                    f"layer '{layer.name}' has units that are NaN or infinite: the network "
                    f"overflows {net.dtype.name} at these images. Verify in float64, or check the "
                    "weights."
                )
            if 0 < A.max() < smallest(net.dtype):
                raise AdjointError(
                    f"layer '{layer.name}' has units of at most {A.max():.1e}, which underflow "
                    f"{net.dtype.name} at these images. Verify in float64, or scale the images."
                )
            if not np.isfinite(A).all():
                raise AdjointError(
                    f"layer '{layer.name}' has a rounding scale A that overflows float64, so no "
                    "bound can be stated. Expected weights and images of moderate size."
                )
            pulled = self.sample is not None
            limit = bound(net, layer, method, rough, pulled, rescaled)
            report.layers[layer.name] += measure(c, found, A, largest, limit, u)
        return report

    def reconstructed(self, frozen: Frozen, advance: Advance = ignore) -> Reconstructed:
        """c_hat of every unit, layer by layer: (P, *layer.shape), for P frozen images.

        Of a sample: (P, units).
        """
        if self._coarse is not None:
            frozen = Frozen(self._coarse, frozen.images, frozen.patterns, self._coarse.nodes)
        options = self.method, self.max_bytes, advance
        if self.sample is not None:
            return reconstruction.reconstruct_some(frozen, self.layers, self.sample, *options)
        return reconstruction.reconstruct(frozen, self.layers, *options)

    @functools.cached_property
    def _coarse(self) -> EquivalentNet | None:
        """The network that H is taken from, if its weights are rounded."""
        return rounded(self.net, self.weights_rounded) if self.weights_rounded else None


def relative_error(c: np.ndarray, found: np.ndarray) -> np.ndarray:
    """The paper's epsilon = (c_hat - c) / c, with zeros of c replaced by the smallest float32."""
    c, found = c.astype(float), found.astype(float)
    return (found - c) / np.where(c == 0, SMALLEST, c)


def measure(
    c: np.ndarray, found: np.ndarray, A: np.ndarray, largest: np.ndarray, limit: float, u: float
) -> LayerReport:
    """The statistics of one layer's units (P, *layer.shape): c_hat against c, A and `largest`.

    `limit` is that of |c_hat - c| / (u A); `largest` is max |c| over all units of each image.
    """
    error = np.abs(found.astype(float) - c.astype(float)) / u
    ratios = largest_ratio(error, A), largest_ratio(error, largest)
    return LayerReport.of(relative_error(c, found), *ratios, limit)


def chosen_layers(
    net: EquivalentNet, names: Sequence[str] | str | None, mode: str | None
) -> list[Layer]:
    """The layers that `layers=` and `mode=` of `verify` mean."""
    if mode not in (None, "RM2", "RM0"):
        raise InputError(
            f"expected mode 'RM2' (convolutions), 'RM0' (dense) or None (both), got {mode!r}."
        )
    known = list(net.layers)
    if names is None:
        found = [layer for layer in known if layer.number != known[0].number] or known
    elif isinstance(names, str) and names == "all":
        found = known
    else:
        found = net.named(names)
        for layer in found:
            mode_of(layer, mode)
    found = [layer for layer in found if mode is None or mode in layer.modes]
    if not found:
        raise InputError(
            f"no layer of '{net.name}' has a kernel, so there are no units to verify."
            if not known
            else f"expected at least one layer of '{net.name}', got layers={names!r} and "
            f"mode={mode!r}, which none fits."
        )
    return sorted(found, key=lambda layer: layer.number)
