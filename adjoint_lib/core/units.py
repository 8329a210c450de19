"""What was computed of some units: their hypersurfaces, and what [x; x_b] gives them by parts."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from adjoint_lib._registry import method_from
from adjoint_lib._storage import Header, decoding, parse_json, read_arrays, replacing, require
from adjoint_lib.core.network import BiasSource, Network
from adjoint_lib.core.tables import Table, Tabular
from adjoint_lib.errors import AdjointError, InputError

FORMAT = 1  # of a file of units
KINDS = {"H": "f", "x": "f", "x_b": "f", "units": "iu", "images": "iu", "about": "u"}
ABOUT = {"net": str, "digest": str, "layer": str, "mode": str, "kept": list, "single": bool,
         "input_shape": list, "sources": list}  # fmt: skip


@dataclass(frozen=True)
class Origin:
    """What saved units say of the network that they are of.

    Attributes:
        name, digest, input_shape, x_b, sources: those of the network.
    """

    name: str
    digest: str
    input_shape: tuple[int, ...]
    x_b: np.ndarray
    sources: Sequence[BiasSource]


class Units(Tabular):
    """The computed hypersurfaces of some units, stacked along the sliced axes.

    Attributes:
        H: (*chosen, d_in), the hypersurfaces, image part first.
        x: (N, *input_shape), the images.
        layer, mode: names.
        units: (m, axes) the index of each unit within the layer, in this mode.
        images: (N,) the numbers of the images in the batch that was asked about.
    """

    def __init__(
        self,
        net: Network | Origin,
        layer: str,
        mode: str,
        rows: np.ndarray,
        x: np.ndarray,
        kept: tuple[int, ...],
        units: np.ndarray,
        images: Sequence[int] | np.ndarray | None = None,
    ):
        self._net = net
        self._kept = kept
        self._single = images is None
        self.layer, self.mode = layer, mode
        self.x = x
        self.units = units
        self.images = np.arange(len(x)) if images is None else np.asarray(images)
        self.H = rows.reshape(*kept, rows.shape[-1])
        if not np.isfinite(self.H).all():
            raise AdjointError(f"H of '{layer}' overflows {rows.dtype.name}. Try float64.")

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
        rows = self._rows.reshape(len(self.x), -1, self.H.shape[-1])  # images, units of each, d_in
        x = self.x.reshape(len(self.x), -1)
        image = np.einsum("nud,nd->nu", rows[..., : self._pixels], x)
        weighted = rows[..., self._pixels :] * self._net.x_b.astype(rows.dtype)
        parts = [weighted[..., s.slice].sum(-1) for s in self._net.sources]
        return np.stack([image, *parts], axis=-1).reshape(*self._kept, 1 + len(parts))

    @property
    def sources(self) -> list[str]:
        """What the entries of `contributions` come from."""
        return ["image", *(s.name for s in self._net.sources)]

    @property
    def value(self) -> np.ndarray:
        """The reconstructed activation <x | H_I> + <x_b | H_b>: (*chosen,)."""
        return self.contributions.sum(-1)

    def table(self) -> Table[list[Any]]:
        """A row for each unit: its value, and what each source contributes to it."""
        parts = self.contributions.reshape(len(self._rows), -1)
        numbers = zip(self.value.reshape(-1).tolist(), *parts.T.tolist(), strict=True)
        names = [", ".join(map(str, unit)) for unit in self.units.tolist()]
        numbered: list[list[int]] = [[] if self._single else [int(n)] for n in self.images]
        where = [[*number, unit] for number in numbered for unit in names]
        rows = [[*place, *each] for place, each in zip(where, numbers, strict=True)]
        header = ["image number"] * (not self._single) + ["unit", "value", *self.sources]
        return Table(
            header,
            rows,
            lambda r: [f"{v:.4g}" if isinstance(v, float) else str(v) for v in r],
            list,
        )

    plot = method_from("adjoint_lib.explorer.plot", "plot")

    # -------------------------------------------------------------- files

    def save(self, path: str | Path) -> None:
        """Write the units to an `.npz` file, with the images and the network's digest."""
        net = self._net
        about = {
            "format": FORMAT, "net": net.name, "digest": net.digest,
            "layer": self.layer, "mode": self.mode, "kept": self._kept, "single": self._single,
            "input_shape": net.input_shape, "sources": [asdict(s) for s in net.sources],
        }  # fmt: skip
        arrays = {
            "H": self._rows,
            "x": self.x,
            "x_b": net.x_b,
            "units": self.units,
            "images": self.images,
            "about": np.frombuffer(json.dumps(about).encode(), np.uint8),
        }
        with replacing(path) as file:
            np.savez(file, **arrays)  # type: ignore[arg-type]  # names of arrays

    @classmethod
    def load(cls, path: str | Path, net: Network | None = None) -> Units:
        """Read what `save` wrote.

        Args:
            net: the network that the units should be of; by default any.

        Raises:
            DataError: for a file that is damaged, or contradicts itself.
            InputError: for units of another network.
        """
        expected, remedy = "units saved by adjoint_lib", "Compute and save them again."
        with decoding(path, expected, remedy):
            path = Path(path)
            size = path.stat().st_size

        def accept(headers: Mapping[str, Header]) -> None:
            found = {name: header.dtype.kind for name, header in headers.items()}
            if found.keys() != KINDS.keys() or any(found[n] not in KINDS[n] for n in KINDS):
                raise ValueError(f"arrays {found}")
            if sum(header.nbytes for header in headers.values()) > size:
                raise ValueError("compressed arrays, which `save` does not write")

        arrays = read_arrays(path, expected, remedy, accept)
        with decoding(path, expected, remedy):
            found = _restored(arrays)
        if net is not None and net.digest != found._net.digest:
            raise InputError(
                f"{path}: expected units of '{net.name}', got units of '{found._net.name}', whose "
                "weights or graph differ (digest). Load them without `net`, or compute them again."
            )
        return found

    @property
    def _rows(self) -> np.ndarray:
        return self.H.reshape(-1, self.H.shape[-1])

    @property
    def _pixels(self) -> int:
        return math.prod(self._net.input_shape)

    def __repr__(self) -> str:
        sizes = " x ".join(map(str, self._kept))
        what = f"{sizes} units" if sizes else f"value {self.value:.6g}"
        return f"<Units: {what}; .image, .bias, .value, .contributions>"


def _restored(arrays: Mapping[str, np.ndarray]) -> Units:
    """The units that these arrays are, or a ValueError if they contradict each other."""
    about = parse_json(arrays["about"].tobytes())
    if about.get("format") != FORMAT:
        raise ValueError(f"format {about.get('format')!r}")
    for key, kind in ABOUT.items():
        require(about[key], kind, f"{key} as {kind.__name__}")
    H, x, x_b, units, images = (arrays[name] for name in ("H", "x", "x_b", "units", "images"))
    kept, shape = (_sizes(about[key]) for key in ("kept", "input_shape"))
    sources = [_source(each) for each in about["sources"]]
    starts = [0, *(s.stop for s in sources)]
    consistent = (
        H.ndim == 2
        and H.shape == (len(x) * len(units), math.prod(shape) + x_b.size)
        and x.shape == (len(images), *shape)
        and x.dtype == H.dtype
        and math.prod(kept) == len(H) > 0
        and units.ndim == 2
        and x_b.shape == (starts[-1],)
        and all(s.start == start <= s.stop for s, start in zip(sources, starts, strict=False))
        and (len(images) == 1 or not about["single"])
    )
    if not consistent or not all(np.isfinite(each).all() for each in (H, x, x_b)):
        raise ValueError(f"arrays that contradict each other (H {H.shape}, x {x.shape})")
    net = Origin(about["net"], about["digest"], shape, x_b, sources)
    numbers = None if about["single"] else images
    return Units(net, about["layer"], about["mode"], H, x, kept, units, numbers)


def _sizes(found: list[Any]) -> tuple[int, ...]:
    """Sizes of axes, if they are that."""
    if any(require(size, int, "a size") < 0 for size in found):
        raise ValueError(f"sizes {found}")
    return tuple(found)


def _source(found: Any) -> BiasSource:
    """A part of x_b from its fields."""
    fields = {**require(found, dict, "a source"), "shape": _sizes(found["shape"])}
    for name in ("name", "origin"):
        require(fields[name], str, name)
    for name in ("start", "stop", "node"):
        require(fields[name], int, name)
    return BiasSource(**fields)
