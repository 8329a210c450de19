"""The explorer: a page in which any unit of a network can be touched, and its H is computed.

    net.explorer(images).save("explorer.html")

The page is one file that needs no server and no network: the engine (`engine/*.js`), the page's own
modules (`ui/`), the network's export and the images are all in it. The modules are told what there
is to explore by one JSON object,

    networks   [{"key", "name", "exports": {key of a data set: name of a text}}]
    datasets   [{"key", "name", "file": name of a text, "shape": of an image, "kind": "uint8" or
               "float32", "range": [low, high] of pixels or null, "labels", "classes"}]
    start      the state at first, in the words of an address: {"net", "data", "layer", ...}

and find the texts, which are base64, in the page or in scripts beside it.
"""

from __future__ import annotations

import base64
import html
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from string import Template
from typing import Any, NamedTuple

import numpy as np

from adjoint_lib._storage import replacing
from adjoint_lib.core.equivalent_net import EquivalentNet
from adjoint_lib.errors import InputError, TooLarge
from adjoint_lib.explorer.bundle import ENGINE, base64_of, bundled
from adjoint_lib.explorer.export import packed

UI = Path(__file__).parent / "ui"
MAX_BYTES = 64 << 20  # of a page: beyond this, browsers take long to open it
RANGES = ((0, 1), (-1, 1), (0, 255))  # that pixels are usually scaled to


class Page:
    """A page of HTML, which shows itself in a notebook; a subclass gives `title` and `html`."""

    title: str

    def html(self) -> str:
        """The whole page."""
        raise NotImplementedError

    def save(self, path: str | Path) -> None:
        """Write the page to a file, which any browser opens."""
        with replacing(path) as file:
            file.write(self.html().encode())

    def _repr_html_(self) -> str:
        return (
            f'<iframe srcdoc="{html.escape(self.html())}" title="{html.escape(self.title)}" '
            'style="width: 100%; height: 900px; border: 0"></iframe>'
        )


def explorer(
    net: EquivalentNet,
    images: np.ndarray,
    labels: Sequence[int] | np.ndarray | None = None,
    names: Sequence[str] | None = None,
    dtype: str | None = None,
    max_bytes: int = MAX_BYTES,
) -> Explorer:
    """The page in which every unit of the network can be explored at these images.

    It shows itself in a notebook; `save(path)` writes it to a file.

    Args:
        net: the network.
        images: (N, *input_shape), scaled as in training.
        labels: the class of each image, if known.
        names: of the classes, in the order of the scores.
        dtype: of the network's numbers in the page, "float32" or "float64"; by default the net's.
        max_bytes: the largest page that may be made.

    Raises:
        TooLarge: for a network whose page would be larger; the message says what would fit.
    """
    x = net.check_images(images).numpy()
    if labels is not None and np.shape(labels) != (len(x),):
        raise InputError(
            f"expected one label for each of {len(x)} images, got labels of shape "
            f"{np.shape(labels)}."
        )
    _check_size(net, x, dtype or net.dtype.name, max_bytes)
    samples = Samples.of(x, None if labels is None else [int(n) for n in labels], names)
    config = {
        "networks": [{"key": net.name, "name": net.name, "exports": {"images": "network"}}],
        "datasets": [samples.described("images", "images", "samples")],
        "start": {"net": net.name, "data": "images"},
    }
    texts = {"network": base64_of(net, dtype), "samples": samples.text}
    return Explorer(f"Explore {net.name}", config, texts)


class Explorer(Page):
    """A page with a network and images, made by `explorer`.

    Attributes:
        title: the page's.
        config: what there is to explore, see the module.
        texts: the networks and images as base64, by name.
    """

    def __init__(self, title: str, config: Mapping[str, Any], texts: Mapping[str, str]):
        self.title = title
        self.config = config
        self.texts = texts

    def html(self) -> str:
        """The whole page."""
        data = [
            f'<script type="text/plain" data-adjoint="{name}">{text}</script>'
            for name, text in self.texts.items()
        ]
        page = Template((UI / "page.html").read_text("utf-8"))
        return page.substitute(
            title=html.escape(self.title), data="\n".join(data), script=script(self.config)
        )

    def __repr__(self) -> str:
        size = sum(map(len, self.texts.values()))
        return f"<Explorer '{self.title}': {size / 1e6:.1f} MB; save(path) writes it to a file>"


class Samples(NamedTuple):
    """Images as a page holds them: bytes, if they are pixels in a usual range; else float32."""

    text: str
    shape: tuple[int, ...]
    kind: str
    range: tuple[int, int] | None
    labels: list[int] | None
    names: list[str] | None

    @classmethod
    def of(
        cls, x: np.ndarray, labels: list[int] | None, names: Sequence[str] | None = None
    ) -> Samples:
        """These images; (N, *shape)."""
        kind, content = "float32", np.asarray(x, "<f4")
        low, high = float(x.min()), float(x.max())
        within = [(a, b) for a, b in RANGES if a <= low and high <= b]
        for a, b in within:
            pixels = np.rint((x - a) * (255 / (b - a))).astype(np.uint8)
            if np.array_equal((a + (b - a) * pixels.astype(float) / 255).astype("<f4"), content):
                kind, content, within = "uint8", pixels, [(a, b)]
                break
        is_picture = x.ndim == 4 and x.shape[-1] in (1, 3)
        return cls(
            base64.b64encode(content.tobytes()).decode(),
            x.shape[1:],
            kind,
            within[0] if within and (is_picture or kind == "uint8") else None,
            labels,
            None if names is None else [str(name) for name in names],
        )

    def described(self, key: str, name: str, file: str) -> dict[str, Any]:
        """The samples as an entry of the page's `datasets`."""
        about = {"shape": self.shape, "kind": self.kind, "range": self.range}
        return {
            "key": key, "name": name, "file": file, **about,
            "labels": self.labels, "classes": self.names,
        }  # fmt: skip


def script(config: Mapping[str, Any]) -> str:
    """The script that starts all explorers of a page: every `<div data-adjoint-explorer="...">`.

    The attribute is the state it starts with, in the words of an address.
    """
    looks = {kind: (UI / f"explorer.{kind}").read_text("utf-8") for kind in ("html", "css")}
    given = f"{_in_script(config)}, adjoint_engine, {_in_script(looks)}"
    return (
        "(() => {\n"
        f"{bundled(sorted(ENGINE.glob('*.js')), 'adjoint_engine')}"
        f"{bundled(sorted(UI.glob('*.js')), 'adjoint_explorer')}"
        f"adjoint_explorer().start({given});\n"
        "})();\n"
    )


def _in_script(value: object) -> str:
    """A value as JSON that may stand in a script element."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).replace("</", "<\\/")


def _check_size(net: EquivalentNet, x: np.ndarray, dtype: str, max_bytes: int) -> None:
    """Refuse a network whose page would be larger than `max_bytes`."""
    each = np.dtype(dtype).itemsize
    network = len(packed(net, dtype))
    size = (network + x.nbytes) * 4 // 3  # as base64
    if size <= max_bytes:
        return
    advice = "Export it by net.export, and explore a smaller one."
    if network * 4 // 3 <= max_bytes:
        fit = (max_bytes * 3 // 4 - network) // x[0].nbytes
        advice = f"With {fit} images it would fit."
    elif dtype == "float64":
        advice = "In float32 it takes half: dtype='float32'."
    raise TooLarge(
        f"{net.name}: expected a page of at most {max_bytes / 1e6:.3g} MB, which holds "
        f"{max_bytes * 3 // 4 // each:,} numbers in {dtype}; got {network // each:,} of the "
        f"network and {x.size:,} of {len(x)} images, {size / 1e6:.3g} MB. {advice}"
    )
