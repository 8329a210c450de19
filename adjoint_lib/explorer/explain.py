"""One unit at one image, explained in one HTML file that needs no network."""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence
from pathlib import Path
from string import Template
from typing import NamedTuple

import numpy as np

from adjoint_lib.core.equivalent_net import EquivalentNet
from adjoint_lib.core.error_bounds import bound, rounding_scale, unit_roundoff
from adjoint_lib.core.network import Layer
from adjoint_lib.core.units import Units
from adjoint_lib.errors import InputError
from adjoint_lib.explorer.page import Page
from adjoint_lib.explorer.pictures import as_address, largest, overlay, picture, signed

TOP = 10  # single entries of [x; x_b] that are listed


class Check(NamedTuple):
    """A unit's value c as the network computes it, and c_hat as its hypersurface gives it.

    Attributes:
        ratio: |c_hat - c| / (u A), A the rounding scale.
        bound: its rigorous limit.
    """

    c: float
    c_hat: float
    ratio: float
    bound: float

    @property
    def epsilon(self) -> float:
        """The paper's relative error (c_hat - c) / c; NaN for a unit that is zero."""
        return (self.c_hat - self.c) / self.c if self.c else float("nan")

    @property
    def passed(self) -> bool:
        """Whether c_hat is c but for rounding."""
        return self.ratio <= self.bound


def explain(net: EquivalentNet, image: np.ndarray, unit: Sequence[str | int] | str) -> Explanation:
    """A page about one unit at one image.

    It shows the image, H_I, what each pixel gives, what each bias vector gives, the largest single
    contributors, and the check c_hat = c. It shows itself in a notebook; `save(path)` writes it.

        al.explain(net, image, ("conv10", 5, 7, 12)).save("unit.html")

    Args:
        net: the network.
        image: x, of shape `net.input_shape`, scaled as in training.
        unit: the layer's name and the unit's index.
    """
    if not isinstance(unit, Sequence):
        raise InputError(
            f"expected a unit as the layer's name and numbers, ('conv10', 5, 7, 12), got {unit!r}."
        )
    name, *index = (unit,) if isinstance(unit, str) else unit
    layer = net.layer(str(name))
    if len(index) != len(layer.shape) or np.shape(image) != net.input_shape:
        raise InputError(
            f"expected one image of shape {net.input_shape} and a unit as ('{layer.name}', and "
            f"{len(layer.shape)} numbers below {layer.shape}), got an image of shape "
            f"{np.shape(image)} and {unit!r}."
        )
    units = net.hypersurface(image, layer.name)[tuple(index)]
    return Explanation(net, layer, units, _checked(net, layer, units))


def _checked(net: EquivalentNet, layer: Layer, units: Units) -> Check:
    """The unit against what the network computes."""
    place = (0, *units.units[0])
    c = net.value(units.x)[layer.name].numpy()[place]
    frozen = net.frozen_below(net.check_images(units.x), 1.0, [layer.number])
    A = rounding_scale(frozen, [layer])[layer.name][place]
    error = abs(float(units.value) - float(c))
    ratio = error / (unit_roundoff(net.dtype) * A) if A else (np.inf if error else 0.0)
    limit = bound(net, layer, "hypersurface", pulled=True)
    return Check(float(c), float(units.value), float(ratio), limit)


class Explanation(Page):
    """A page about one unit, made by `explain`.

    Attributes:
        title: the page's.
        units: the unit and its H.
        check: c and c_hat.
    """

    def __init__(self, net: EquivalentNet, layer: Layer, units: Units, check: Check):
        self._net, self._layer = net, layer
        self.units, self.check = units, check
        place = ", ".join(map(str, units.units[0]))
        self.title = f"Unit [{place}] of {layer.name} in {net.name}"

    def html(self) -> str:
        """The whole page."""
        x, H_I = self.units.x[0], self.units.image
        pictures = [
            ("The image x", "the image", picture(x)),
            (f"H<sub>I</sub>, summed over channels, to ±{largest(H_I):.3g}",
             "the hypersurface's image part", signed(H_I)),
            (f"x ∘ H<sub>I</sub>: what each pixel gives, to ±{largest(x * H_I):.3g}",
             "the image with what each pixel gives", overlay(x, x * H_I)),
        ]  # fmt: skip
        page = Template((Path(__file__).parent / "explain.html").read_text("utf-8"))
        return page.substitute(
            title=html.escape(self.title),
            pictures="".join(_figure(*each) for each in pictures),
            summary=self._summary(),
            check=_rows(self._check_lines()),
            verdict="within its rounding bound" if self.check.passed else "BEYOND ITS BOUND",
            passed="good" if self.check.passed else "bad",
            sources=_bars(self._sources()),
            entries=_bars(self._entries()),
            count=min(TOP, self.units.H.size),
            origin=html.escape(f"{self._net!r}, digest {self._net.digest[:16]}"),
        )

    def _summary(self) -> str:
        image, *biases = self.units.contributions.tolist()
        own = self._own_bias()
        after = (
            ""
            if own is None
            else f" With its own bias {own:.6g} added it is {own + self.check.c:.6g}."
        )
        return _signed(
            f"{self.check.c_hat:.6g} = {image:.6g} from the image and {sum(biases):.6g} from "
            f"{len(biases) - biases.count(0)} bias vectors.{after}"
        )

    def _own_bias(self) -> float | None:
        """The unit's own bias, if it has one for its channel."""
        place = self._layer.bias
        if place is None or place.stop - place.start != self._layer.shape[-1]:
            return None
        return float(self._net.x_b[place][self.units.units[0][-1]])

    def _check_lines(self) -> list[tuple[str, str]]:
        c, c_hat, ratio, limit = self.check
        return [
            ("c, as the network computes it", _signed(f"{c:.9g}")),
            (
                "ĉ = ⟨x | H<sub>I</sub>⟩ + ⟨x<sub>b</sub> | H<sub>b</sub>⟩",
                _signed(f"{c_hat:.9g}"),
            ),
            ("ε = (ĉ − c) / c", _signed(f"{self.check.epsilon:.3g}")),
            ("|ĉ − c| / (u A)", _signed(f"{ratio:.3g}")),
            ("its rigorous bound", f"{limit:,.0f}"),
        ]

    def _sources(self) -> list[tuple[str, float]]:
        """Each source that gives anything, in the order of the network."""
        pairs = zip(self.units.sources, self.units.contributions.tolist(), strict=True)
        return [(name, part) for name, part in pairs if part or name == "image"]

    def _entries(self) -> list[tuple[str, float]]:
        """The single entries of [x; x_b] that give most."""
        x_b = self._net.x_b.astype(self.units.H.dtype)
        parts = np.concatenate([self.units.x.reshape(-1), x_b]) * self.units.H
        first = np.argsort(-np.abs(parts), kind="stable")[:TOP]
        return [(self._name(int(i)), float(parts[i])) for i in first]

    def _name(self, entry: int) -> str:
        """What an entry of [x; x_b] is."""
        pixels = self.units.x.size
        if entry < pixels:
            place = np.unravel_index(entry, self._net.input_shape)
            return f"x[{', '.join(map(str, place))}]"
        (source,) = (s for s in self._net.sources if s.start <= entry - pixels < s.stop)
        return f"{source.name}[{entry - pixels - source.start}]"

    def __repr__(self) -> str:
        return (
            f"<Explanation of {self.title}: c_hat {self.check.c_hat:.6g}, c {self.check.c:.6g}; "
            "save(path) writes the page>"
        )


def _signed(number: str) -> str:
    """A number, or a text with some, with a minus as wide as a plus."""
    return number.replace("-", "−")


def _figure(caption: str, alt: str, pixels: np.ndarray) -> str:
    return (
        f'<figure><img src="{as_address(pixels)}" alt="{alt}">'
        f"<figcaption>{caption}</figcaption></figure>"
    )


def _rows(lines: Iterable[tuple[str, str]]) -> str:
    return "".join(f'<tr><th scope="row">{a}</th><td>{b}</td></tr>' for a, b in lines)


def _bars(parts: Sequence[tuple[str, float]]) -> str:
    """Rows of a table: a name, a bar from the middle to the right or left, the number."""
    most = max((abs(part) for _, part in parts), default=0) or 1
    rows = []
    for name, part in parts:
        width = 50 * abs(part) / most
        side, kind = ("left", "positive") if part > 0 else ("right", "negative")
        bar = f'<span class="{kind}" style="{side}: 50%; width: {width:.2f}%"></span>'
        rows.append(
            f'<tr><th scope="row">{html.escape(name)}</th><td class="bar" aria-hidden="true">{bar}'
            f"</td><td>{_signed(f'{part:#.4g}')}</td></tr>"
        )
    return "".join(rows)
