"""Figures with knobs: live in a notebook and on the book's pages, a still picture everywhere else.

    book.widgets.turn(book.figures.linear_regions, k=[0.5, 1, 2])

The result shows itself in two ways at once. A notebook with a running kernel and ipywidgets takes
the controls; a page, or a notebook without them, takes the picture drawn with the starting values.

While the book is built, FRAMES names a folder: a figure of few states also writes a picture of each
into it, and the page (`_static/frames.js`) puts controls above the still picture that they replace.
"""

from __future__ import annotations

import base64
import hashlib
import io
import itertools
import json
import os
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

from adjoint_book._extras import MissingPackage, require
from adjoint_lib.errors import InputError

if TYPE_CHECKING:
    import ipywidgets
    from matplotlib.figure import Figure

LIVE = "application/vnd.jupyter.widget-view+json"
FRAMES = "ADJOINT_FRAMES"  # an environment variable
VECTORS = "ADJOINT_VECTORS"  # another: set where still pictures are wanted as SVG as well
MAX_STATES = 50


def turn(
    draw: Callable[..., Figure], start: Mapping[str, Any] | None = None, **knobs: Sequence
) -> Knobs:
    """A figure with one control for each argument of `draw` named in `knobs`.

    Args:
        draw: draws the figure from one value of each knob.
        start: the values at first, and of the still picture; by default the first of each knob.
        knobs: the values that each argument can take; numbers get a slider, words a menu.
    """
    start = dict(start or {})
    for name, values in knobs.items():
        if not values:
            raise InputError(f"knob {name!r}: expected at least one value, got none.")
        if start.setdefault(name, values[0]) not in values:
            raise InputError(f"knob {name!r}: it starts at {start[name]!r}, not one of {values}.")
    return Knobs(draw, {name: list(values) for name, values in knobs.items()}, start)


class Knobs:
    """A figure and its controls; made by `turn`."""

    def __init__(self, draw: Callable[..., Figure], knobs: dict[str, list], start: dict[str, Any]):
        self.draw = draw
        self.knobs = knobs
        self.start = start

    def still(self) -> bytes:
        """The picture with the starting values, as PNG."""
        return _picture(self.draw(**self.start))

    def live(self) -> ipywidgets.Widget:
        """The controls above a picture that follows them; they need ipywidgets."""
        require("ipywidgets")
        import ipywidgets

        picture = ipywidgets.Image(value=self.still(), format="png", layout={"max_width": "100%"})
        controls = {name: self._control(name) for name in self.knobs}

        def redraw(_change: Any) -> None:
            values = {name: control.value for name, control in controls.items()}
            picture.value = _picture(self.draw(**values))

        for control in controls.values():
            control.observe(redraw, names="value")
        return ipywidgets.VBox([*controls.values(), picture])

    def _control(self, name: str) -> ipywidgets.Widget:
        import ipywidgets

        values = self.knobs[name]
        options = [(_written(value), value) for value in values]
        given = {"options": options, "value": self.start[name], "description": name}
        if all(isinstance(value, (int, float)) for value in values):
            return ipywidgets.SelectionSlider(**given, continuous_update=False)
        return ipywidgets.Dropdown(**given)

    def write_frames(self, folder: Path, still: bytes) -> None:
        """Write the pictures of all states, if they are few, to a file named after the still one.

        The file holds {"knobs": [{"name", "values", "start": which of them}], "frames": [...]}; the
        frames are WebP in base64, and the last knob turns fastest.
        """
        states = list(itertools.product(*self.knobs.values()))
        if len(states) > MAX_STATES:
            return
        drawn = (self.draw(**dict(zip(self.knobs, values, strict=True))) for values in states)
        frames = [base64.b64encode(_picture(figure, "webp")).decode() for figure in drawn]
        knobs = [
            {"name": name, "values": [*map(_written, values)], "start": values.index(start)}
            for (name, values), start in zip(self.knobs.items(), self._starts, strict=True)
        ]
        path = folder / f"{hashlib.sha256(still).hexdigest()}.json"
        path.write_text(json.dumps({"knobs": knobs, "frames": frames}), "utf-8")

    @property
    def _starts(self) -> list[Any]:
        return [self.start[name] for name in self.knobs]

    def _repr_mimebundle_(self, include=None, exclude=None) -> dict[str, Any]:
        still = self.still()
        bundle = {"text/plain": repr(self), "image/png": still}
        if os.environ.get(VECTORS):
            bundle["image/svg+xml"] = _picture(self.draw(**self.start), "svg").decode()
        if folder := os.environ.get(FRAMES):
            self.write_frames(Path(folder), still)
        try:
            shown = self.live()._repr_mimebundle_()
        except MissingPackage:  # without ipywidgets, the picture
            return bundle
        return {**bundle, LIVE: shown[LIVE]}

    def __repr__(self) -> str:
        at = ", ".join(f"{name} = {_written(value)}" for name, value in self.start.items())
        return f"<A figure with knobs, at {at}>"


def _picture(figure: Figure, kind: str = "png") -> bytes:
    buffer = io.BytesIO()
    options: dict[str, Any] = {"pil_kwargs": {"lossless": True}} if kind == "webp" else {}
    figure.savefig(buffer, format=kind, bbox_inches="tight", **options)
    return buffer.getvalue()


def _written(value: Any) -> str:
    """A value as a reader would write it: 1/8 rather than 0.125."""
    if isinstance(value, float) and not value.is_integer():
        fraction = Fraction(value).limit_denominator(1024)
        if fraction.numerator == 1 and float(fraction) == value:
            return str(fraction)
    return f"{value:g}" if isinstance(value, (int, float)) else str(value)
