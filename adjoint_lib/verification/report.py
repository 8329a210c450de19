"""Reports of a verification: counts that add up exactly, in whatever order the images were seen."""

from __future__ import annotations

import json
import math
import operator
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from adjoint_lib._storage import decoding, read_json, replacing, require
from adjoint_lib.core.tables import Table, Tabular
from adjoint_lib.errors import InputError
from adjoint_lib.verification.intervals import clustered, wilson

if TYPE_CHECKING:
    from adjoint_lib.core.network import Layer, Network

LEVELS = (1e-2, 1e-3, 1e-4)  # |epsilon| <= 1 %, 0.1 %, 0.01 %
EDGES = np.linspace(-1e-4, 1e-4, 201)  # the paper's histograms
PER_DECADE = 20
DECADES = (-20, 60)  # of the log histogram; below and above go to its first and last bin
ENOUGH = 30  # images: with fewer, nothing is said about all images like them
FORMAT = 2  # of the JSON files
ABOUT = {"net": str, "digest": str, "dtype": str, "method": str, "k": float, "modes": dict}
MOST = 2**62  # of a count


@dataclass
class LayerReport:
    """The errors of one layer's units, as integer counts and maxima.

    Attributes:
        images, units: how many were compared; each image has the same number of units.
        within: how many units have |epsilon| <= 1 %, 0.1 %, 0.01 %.
        squares: the sum over the images of (how many of its units have not)^2, level by level.
        histogram: counts of epsilon in the 200 bins of `EDGES`; `under` and `over` lie outside.
        exact: how many have epsilon = 0.
        magnitudes: log histogram of the nonzero |epsilon|, `PER_DECADE` bins a decade.
        worst: the largest |c_hat - c| / (u A), A the rounding scale and u the unit roundoff.
        normwise: the largest |c_hat - c| / (u max |c|), max |c| over the layer's units of an image.
        bound: the rigorous limit of `worst`; also the limit `normwise` is held to.

    A grows with the depth like the product of all |weights|, so in deep layers `worst` is far below
    its bound even for a wrong c_hat. `normwise` is sharp at any depth, but its limit is not a
    theorem: it presumes that the layer as a whole does not cancel.
    """

    images: int
    units: int
    within: np.ndarray
    squares: np.ndarray
    histogram: np.ndarray
    under: int
    over: int
    exact: int
    magnitudes: np.ndarray
    worst: float
    normwise: float
    bound: float

    @classmethod
    def empty(cls) -> LayerReport:
        """The report of no image."""
        return cls.of(np.zeros((0, 1)), 0.0, 0.0, 0.0)

    @classmethod
    def of(cls, epsilon: np.ndarray, worst: float, normwise: float, bound: float) -> LayerReport:
        """The report of these relative errors: (images, ...)."""
        by_image = np.abs(epsilon).reshape(len(epsilon), math.prod(epsilon.shape[1:]))
        beyond = [np.count_nonzero(by_image > level, axis=1) for level in LEVELS]
        size = by_image.reshape(-1)
        nonzero = size[size > 0]
        low, high = DECADES
        bins = np.floor((np.log10(nonzero) - low) * PER_DECADE).astype(int)
        bins = np.clip(bins, 0, (high - low) * PER_DECADE - 1)
        return cls(
            images=len(epsilon),
            units=size.size,
            within=np.array([size.size - counts.sum() for counts in beyond], np.int64),
            squares=np.array([(counts**2).sum() for counts in beyond], np.int64),
            histogram=np.histogram(epsilon, EDGES)[0].astype(np.int64),
            under=int(np.count_nonzero(epsilon < EDGES[0])),
            over=int(np.count_nonzero(epsilon > EDGES[-1])),
            exact=size.size - nonzero.size,
            magnitudes=np.bincount(bins, minlength=(high - low) * PER_DECADE).astype(np.int64),
            worst=worst,
            normwise=normwise,
            bound=bound,
        )

    @classmethod
    def restored(cls, stored: Mapping[str, Any]) -> LayerReport:
        """The report of a layer from plain numbers; ValueError if they contradict each other."""
        blank = vars(cls.empty())
        if stored.keys() != blank.keys():
            raise ValueError(f"a layer with {sorted(blank.keys() ^ stored.keys())} or without them")
        r = cls(**{key: _restored(stored[key], zero) for key, zero in blank.items()})
        missed = [r.units - int(n) for n in r.within]
        each = r.units // r.images if r.images else 0
        consistent = (
            r.images > 0
            and r.units == each * r.images > 0
            and 0 <= missed[0] <= missed[1] <= missed[2] <= r.units
            and all(m <= int(s) <= m * each for m, s in zip(missed, r.squares, strict=True))
            and sum(r.histogram.tolist()) + r.under + r.over == r.units
            and sum(r.magnitudes.tolist()) + r.exact == r.units
            and math.isfinite(r.bound)
        )
        if not consistent:
            raise ValueError(f"counts that contradict each other ({r.units} units)")
        return r

    def __add__(self, other: LayerReport) -> LayerReport:
        theirs, largest = vars(other), {"worst", "normwise", "bound"}
        add = {name: max if name in largest else operator.add for name in theirs}
        return LayerReport(**{n: add[n](mine, theirs[n]) for n, mine in vars(self).items()})

    @property
    def passed(self) -> bool:
        """Whether every unit lies within the rigorous bound, and the errors are small normwise."""
        return self.worst <= self.bound and self.normwise <= self.bound

    def share(self, level: float = 1e-2) -> float:
        """The share of units with |epsilon| <= level, one of `LEVELS`."""
        return self.within[_index(level)] / self.units if self.units else float("nan")

    def interval(
        self, level: float = 1e-2, independent: bool = False
    ) -> tuple[float, float] | None:
        """A 95 % interval for `share` among the units of all images of which these are a sample.

        It allows for the units of one image being correlated, see `intervals.clustered`. None for
        fewer than 30 images, from which that cannot be told; but with `independent`, as units drawn
        at random are, the interval for the share among all units of these images.
        """
        at = _index(level)
        if self.images < ENOUGH:
            return wilson(self.share(level), self.units) if independent else None
        missed = self.units - int(self.within[at])
        return clustered(missed, self.units, int(self.squares[at]), self.images)

    def quantile(self, q: float) -> float:
        """An upper limit of the q-quantile of |epsilon|, at most 13 % above it (a bin's edge)."""
        if not 0 <= q <= 1:
            raise InputError(f"expected q between 0 and 1, got {q!r}.")
        if not self.units:
            return float("nan")
        rank = max(1, int(np.ceil(q * self.units)))
        if rank <= self.exact:
            return 0.0
        index = int(np.searchsorted(np.cumsum(self.magnitudes), rank - self.exact))
        return float(10 ** (DECADES[0] + (index + 1) / PER_DECADE))


@dataclass
class Report(Tabular):
    """What a verification found: one `LayerReport` for each layer, and how it was made.

    ``a + b`` merges reports of the same network, method and settings; nothing depends on the order.
    """

    about: dict[str, Any]
    layers: dict[str, LayerReport]
    images: int = 0

    @classmethod
    def empty(
        cls,
        net: Network,
        layers: Sequence[Layer],
        method: str,
        k: float,
        weights_rounded: str | None = None,
    ) -> Report:
        """The report of no image; the arguments are those of `verify`."""
        about = {
            "net": net.name,
            "digest": net.digest,
            "dtype": net.dtype.name,
            "method": method,
            "k": float(k),
            "weights_rounded": weights_rounded,
            "modes": {layer.name: layer.default_mode for layer in layers},
        }
        return cls(about, {layer.name: LayerReport.empty() for layer in layers})

    def __add__(self, other: Report) -> Report:
        if not isinstance(other, Report):
            return NotImplemented
        if self.about != other.about:
            pairs = ((key, mine, other.about.get(key)) for key, mine in self.about.items())
            differing = (f"{key}: {a!r} and {b!r}" for key, a, b in pairs if a != b)
            raise InputError(
                "reports can be added if they come from the same network, dtype, method, k and "
                f"layers; {'; '.join(differing)}"
            )
        layers = {name: report + other.layers[name] for name, report in self.layers.items()}
        return Report(self.about, layers, self.images + other.images)

    @property
    def passed(self) -> bool:
        """Whether every layer has passed, see `LayerReport.passed`."""
        return all(layer.passed for layer in self.layers.values())

    def table(self, paper: Mapping[str, float] | None = None) -> Table[list[str]]:
        """The paper's percentage table, with more columns, one of them `paper`'s own if given."""
        some = "units" in self.about  # of each layer, drawn at random
        sampled = some or any(r.images >= ENOUGH for r in self.layers.values())
        header = ["layer", "mode", "units", "<= 1 %"]
        header += ["95 % interval"] * sampled + ["paper"] * (paper is not None)
        header += ["<= 0.1 %", "<= 0.01 %", "median", "99.9 %"]
        header += ["worst/(uA)", "worst/(u max|c|)", "bound"]
        rows = []
        for name, r in self.layers.items():
            first, *others = (f"{100 * r.share(level):.4f}" for level in LEVELS)
            row = [name, self.about["modes"][name], f"{r.units:,}", first]
            if sampled:
                row.append(percentages(r.interval(independent=some)))
            if paper is not None:
                row.append(f"{paper[name]:.4f}" if name in paper else "")
            row += [*others, f"{r.quantile(0.5):.1e}", f"{r.quantile(0.999):.1e}"]
            rows.append([*row, f"{r.worst:.2g}", f"{r.normwise:.2g}", f"{r.bound:.2g}"])
        return Table(header, rows)

    def records(self) -> Table[list[Any]]:
        """The table with the numbers in full; the shares are parts of 1."""
        header = ["layer", "mode", "images", "units", *(f"within {level:g}" for level in LEVELS)]
        header += ["median", "quantile 0.999", "worst", "normwise", "bound", "passed"]
        rows = [
            [name, self.about["modes"][name], r.images, r.units]
            + [float(r.share(level)) for level in LEVELS]
            + [r.quantile(0.5), r.quantile(0.999), r.worst, r.normwise, r.bound, r.passed]
            for name, r in self.layers.items()
        ]
        return Table(header, rows, lambda row: list(map(str, row)), list)

    def histogram(self, layer: str) -> tuple[np.ndarray, np.ndarray]:
        """(counts, edges) of epsilon on [-1e-4, 1e-4]; a layer's `.under`, `.over` lie outside."""
        if layer not in self.layers:
            raise InputError(f"no layer {layer!r} in this report; it has {', '.join(self.layers)}.")
        return self.layers[layer].histogram, EDGES

    def save(self, path: str | Path) -> None:
        """Write the report as JSON; the file appears whole or not at all."""
        with replacing(path) as file:
            file.write(json.dumps(self.to_dict(), indent=1).encode())

    @classmethod
    def load(cls, path: str | Path) -> Report:
        """Read a report written by `save`."""
        expected = f"a report of adjoint_lib (format {FORMAT})"
        return cls.from_dict(read_json(path, expected, "Run the verification again."), path)

    def to_dict(self) -> dict[str, Any]:
        """The report in plain numbers and lists; zeros of the histograms are left out."""
        head = {"format": FORMAT, "about": self.about, "images": self.images, "passed": self.passed}
        layers = {n: {k: _plain(v) for k, v in vars(r).items()} for n, r in self.layers.items()}
        return {**head, "layers": layers}

    @classmethod
    def from_dict(cls, found: dict[str, Any], path: str | Path = "the report") -> Report:
        """The report that `to_dict` gave; `path` is where it comes from, for messages.

        Raises:
            DataError: for another format, or a report that contradicts itself.
        """
        with decoding(path, f"a report (format {FORMAT})", "Run the verification again."):
            if found["format"] != FORMAT:
                raise ValueError(f"format {found['format']!r}")
            about = require(found["about"], dict, "what was verified")
            layers = {name: LayerReport.restored(r) for name, r in found["layers"].items()}
            report = cls(about, layers, found["images"])
            for key, kind in ABOUT.items():
                require(about[key], kind, f"{key} as {kind.__name__}")
            require(about["weights_rounded"] or "", str, "weights_rounded as a text or null")
            if not layers or list(about["modes"]) != list(layers):
                raise ValueError(f"layers {list(layers)}, modes of {list(about['modes'])}")
            if any(layer.images != report.images for layer in layers.values()):
                raise ValueError(f"layers of other than {report.images} images")
            if report.passed is not found["passed"]:
                raise ValueError(f"passed {found['passed']}, but its errors say {report.passed}")
            return report

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Report) and self.to_dict() == other.to_dict()

    def text(self, paper: Mapping[str, float] | None = None) -> str:
        """What was verified, the `table` and the verdict, in lines."""
        a = self.about
        head = (
            f"{a['net']}, {self.images} images, {a['method']} method, {a['dtype']}, k = {a['k']:g}"
        )
        if "units" in a:
            head += f", {a['units']:,} units of each layer (seed {a['seed']})"
        if a["weights_rounded"]:
            head += f", weights of H rounded to {a['weights_rounded']}"
        failed = [name for name, layer in self.layers.items() if not layer.passed]
        tail = "every unit within its rounding bound"
        if failed:
            tail = f"UNITS BEYOND THE ROUNDING BOUND in {', '.join(failed)}"
        return f"{head}\n{self.table(paper)!r}\n{tail}"

    def __repr__(self) -> str:
        return self.text()


def percentages(interval: tuple[float, float] | None) -> str:
    """An interval of shares in percent, as text."""
    return "" if interval is None else f"{100 * interval[0]:.4f} to {100 * interval[1]:.4f}"


def _index(level: float) -> int:
    if level not in LEVELS:
        raise InputError(f"expected a level among {LEVELS}, got {level!r}.")
    return LEVELS.index(level)


def _plain(value: Any) -> Any:
    """An array of counts as {index: count}."""
    if isinstance(value, np.ndarray):
        return {str(i): int(value[i]) for i in np.flatnonzero(value)}
    return value


def _restored(stored: Any, blank: Any) -> Any:
    """The value that `_plain` made plain, if it is of the kind of `blank` and not below zero."""
    if isinstance(blank, np.ndarray):
        counts = blank.copy()
        for index, count in stored.items():
            counts[range(len(blank)).index(int(index))] = _restored(count, 0)
        return counts
    if isinstance(stored, bool) or not isinstance(stored, (int, type(blank))) or not stored >= 0:
        raise ValueError(f"expected a number of at least 0, found {stored!r}")
    if isinstance(blank, int) and stored > MOST:
        raise ValueError(f"a count of {stored:.3g}")
    return stored
