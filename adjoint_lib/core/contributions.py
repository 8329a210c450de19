"""How much of each unit comes from the image, and how much from each part of x_b.

The identity c = <x | H_I> + <x_b | H_b> splits further: x_b is made of the biases of the layers
before, and <x_b | H_b> is the sum of what each gives. With J that of the frozen network, what one
source gives to all units of all layers is one tangent: J along [x; x_b] with everything but that
source put to zero. So no H is made, and all takes as many forward passes as there are sources.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import NoReturn

import numpy as np
import tensorflow as tf

from adjoint_lib._registry import did_you_mean
from adjoint_lib.core.compiled import MAX_BATCH
from adjoint_lib.core.equivalent_net import EquivalentNet
from adjoint_lib.core.error_bounds import largest_ratio, rounding_scale, roundings, unit_roundoff
from adjoint_lib.core.frozen import dense
from adjoint_lib.core.graph import IMAGE
from adjoint_lib.core.hypersurface import readable
from adjoint_lib.core.network import BiasSource, Layer
from adjoint_lib.core.strategy import WORKSPACE, batch_rows, entries_below, itemsize
from adjoint_lib.core.tables import Table, Tabular
from adjoint_lib.errors import AdjointError, InputError, TooLarge, check_whole


def contributions(
    net: EquivalentNet,
    images: np.ndarray,
    layers: Sequence[str] | str | None = None,
    max_bytes: int = 2**30,
) -> Contributions:
    """What the image and each part of x_b give to every unit of these layers, as maps.

    The images go through in batches. The parts of every unit are added up and compared with what
    the network computes.

    Args:
        images: one image, or a batch (N, *input_shape).
        layers: names; by default all layers with a kernel.
        max_bytes: the largest result. Take a larger data set in parts.

    Raises:
        AdjointError: if the parts of a unit miss its value by more than rounding allows.
    """
    chosen = list(net.layers) if layers is None else net.named(layers)
    batch = net.check_images(images)
    _check_budget(net, chosen, len(batch), check_whole("max_bytes", max_bytes, 1))
    found = Contributions(
        {layer.name: LayerContributions(net, layer, len(batch)) for layer in chosen}
    )
    size = _batch_size(net, chosen)
    for first in range(0, len(batch), size):
        _fill(found, net, batch[first : first + size], first)
    if np.ndim(images) == len(net.input_shape):
        for each in found.values():
            each.parts = each.parts[:, 0]
    return found


class LayerContributions(Mapping[str, np.ndarray]):
    """What each source gives to the units of one layer: a map for each name in `sources`.

    Attributes:
        layer: the layer.
        sources: "image", then the names of the parts of x_b that the layer depends on.
        parts: (sources, *layer.shape), or (sources, N, *layer.shape) of a batch.
        place: which row of `parts` each source's node has.
        worst: the largest |sum of the parts - c| / (u A), A the unit's rounding scale.
        normwise: the same with the largest sum of |parts| of the image in place of A, which is far
            larger than any value in deep layers.
        bound: the rigorous limit of `worst`; `normwise` is held to it too.
    """

    def __init__(self, net: EquivalentNet, layer: Layer, images: int):
        self.layer = layer
        biases = _reaching(net, layer)
        self.sources = ["image", *(source.name for source in biases)]
        self.place = {node: i for i, node in enumerate([IMAGE, *(s.node for s in biases)])}
        shape = len(self.sources), images, *layer.shape
        self.parts = np.zeros(shape, net.dtype.as_numpy_dtype)
        m = 2 * roundings(net, layer)  # of a part and of c; the sum is taken in float64
        self.worst, self.normwise, self.bound = 0.0, 0.0, m / (1 - m * unit_roundoff(net.dtype))

    @property
    def image(self) -> np.ndarray:
        """<x | H_I>: what the image gives."""
        return self.parts[0]

    @property
    def bias(self) -> np.ndarray:
        """<x_b | H_b>: what all of x_b gives."""
        return self.parts[1:].sum(0)

    @property
    def value(self) -> np.ndarray:
        """The sum of all parts: c of each unit, before its own bias is added."""
        return self.parts.sum(0)

    def __getitem__(self, source: str) -> np.ndarray:
        places = [i for i, name in enumerate(self.sources) if name == source]
        if len(places) != 1:
            problem = "several sources are" if places else "no source is"
            raise InputError(
                f"expected one of the sources that layer '{self.layer.name}' depends on, but "
                f"{problem} called {source!r}.{did_you_mean(source, self.sources)} "
                f"They are {', '.join(self.sources)}, in the order of `.parts`."
            )
        return self.parts[places[0]]

    def __contains__(self, source: object) -> bool:
        return source in self.sources

    def __iter__(self) -> Iterator[str]:
        return iter(self.sources)

    def __len__(self) -> int:
        return len(self.sources)

    def __repr__(self) -> str:
        shape = " x ".join(map(str, self.parts.shape[1:]))
        return (
            f"<contributions to '{self.layer.name}': maps {shape} from {len(self)} sources; "
            ".image, .bias, .value, .sources, ['name of a source']>"
        )


class Contributions(Tabular, dict[str, LayerContributions]):
    """What each source gives to the units of each layer: `found["conv3"]["conv1"]` is a map."""

    def table(self) -> Table[tuple[str, str, float, float, float]]:
        """Of each source in each layer: mean, mean |part|, and the share of the latter."""
        rows = []
        for name, layer in self.items():
            parts = layer.parts.reshape(len(layer), -1)
            means, sizes = (each.mean(1, dtype=float) for each in (parts, np.abs(parts)))
            shares = sizes / (sizes.sum() or 1)
            columns = (column.tolist() for column in (means, sizes, shares))
            rows += [(name, *row) for row in zip(layer, *columns, strict=True)]
        header = ["layer", "source", "mean", "mean size", "share"]
        return Table(
            header, rows, lambda r: [*r[:2], f"{r[2]:.4g}", f"{r[3]:.4g}", f"{r[4]:.2%}"], list
        )

    def __missing__(self, layer: str) -> NoReturn:
        hint = did_you_mean(layer, self)
        raise InputError(f"no layer {layer!r} here.{hint} Layers: {', '.join(self)}.")

    def __repr__(self) -> str:
        return repr(self.table())

    def _repr_html_(self) -> str:
        return self.table()._repr_html_()


def _check_budget(net: EquivalentNet, layers: Sequence[Layer], images: int, most: int) -> None:
    """Refuse maps that take more than `most` bytes."""
    maps = sum((1 + len(_reaching(net, layer))) * math.prod(layer.shape) for layer in layers)
    if (size := maps * images * itemsize(net.dtype)) > most:
        raise TooLarge(
            f"the contributions to {len(layers)} layers for {images} images take {readable(size)}, "
            f"above the budget of {readable(most)}. Name fewer layers, take fewer images at a "
            "time, or raise max_bytes."
        )


def _reaching(net: EquivalentNet, layer: Layer) -> list[BiasSource]:
    """The parts of x_b that a layer's units depend on."""
    below = {number for number, _ in net.plan(frozenset([layer.reads]))}
    return [source for source in net.sources if source.node in below]


def _batch_size(net: EquivalentNet, layers: Sequence[Layer]) -> int:
    """How many images go through the network at once, in a bounded workspace."""
    numbers = [layer.number for layer in layers]
    patterns = entries_below(net, max(numbers)) * itemsize(net.dtype)
    return max(1, min(MAX_BATCH, batch_rows(net, numbers), WORKSPACE // patterns))


def _fill(found: Contributions, net: EquivalentNet, batch: tf.Tensor, first: int) -> None:
    """Put in the parts of these images, number `first` and on, and check that they add up to c."""
    layers = {each.layer.number: each for each in found.values()}
    some = slice(first, first + len(batch))
    frozen, c = net.frozen_and_values(batch, list(layers))
    starts = frozen.along(*frozen.v)
    for source, start in starts.items():
        for number, tangent in frozen.push({source: start}, layers):
            if tangent is not None:
                layers[number].parts[layers[number].place[source], some] = dense(tangent)
    scales = rounding_scale(frozen, [each.layer for each in found.values()])
    for each in found.values():
        _compare(each, some, c[each.layer.number].numpy(), scales[each.layer.name])


def _compare(found: LayerContributions, some: slice, c: np.ndarray, A: np.ndarray) -> None:
    """Hold the sums of some images' parts against c."""
    parts = found.parts[:, some]
    error = np.abs(parts.sum(0, dtype=float) - c) / unit_roundoff(c.dtype)
    largest = np.abs(parts).sum(0, dtype=float).max(axis=tuple(range(1, c.ndim)), keepdims=True)
    found.worst = max(found.worst, largest_ratio(error, A))
    found.normwise = max(found.normwise, largest_ratio(error, largest))
    if not found.worst <= found.bound or not found.normwise <= found.bound:
        raise AdjointError(
            f"the contributions to layer '{found.layer.name}' miss its values by up to "
            f"{found.worst:.3g} u A and {found.normwise:.3g} u max sum|parts|, where rounding "
            f"allows {found.bound:.3g}. Compute in float64: net.astype('float64')."
        )
