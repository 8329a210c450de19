"""The gallery: a small picture of every figure of the chapters, from what their notebooks store."""

from __future__ import annotations

import base64
import html
import io
import itertools
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

CAPTION = re.compile(r'<a id="(fig-[\w-]+)"></a>\n\*\*(Figure [\d.]+)\.\*\* (.+)', re.S)
CALL = re.compile(r"book\.figures\.(\w+)\(")
SIZE = (360, 240)  # pixels, at most


@dataclass(frozen=True)
class Picture:
    """A figure of a chapter: where it is, what is said of it, and the PNG that its notebook has."""

    chapter: str
    label: str
    number: str
    caption: str
    alt: str
    call: str
    photo: bool
    png: bytes

    def thumbnail(self) -> bytes:
        """The figure, small, as WebP."""
        from PIL import Image

        small = Image.open(io.BytesIO(self.png)).convert("RGBA")
        small.thumbnail(SIZE)
        out = io.BytesIO()
        small.save(out, "webp", quality=80)
        return out.getvalue()


def pictures(book: Path) -> Iterator[Picture]:
    """The figures of all chapters, in order."""
    for path in sorted(book.glob("[0-9][0-9]-*.ipynb")):
        cells = json.loads(path.read_text("utf-8"))["cells"]
        for cell, after in itertools.pairwise(cells):
            caption = CAPTION.fullmatch("".join(after["source"]).strip())
            png = _png(cell)
            if not (caption and png):
                continue
            call = CALL.search("".join(cell["source"]))
            yield Picture(
                chapter=path.stem,
                label=caption[1],
                number=caption[2],
                caption=caption[3].split(". ")[0].rstrip(".") + ".",
                alt=cell["metadata"].get("mystnb", {}).get("image", {}).get("alt", ""),
                call=call[1] if call else "",
                photo="photo" in cell["metadata"].get("tags", []),
                png=base64.b64decode(png),
            )


def _png(cell: dict) -> str:
    found = [
        o["data"]["image/png"] for o in cell.get("outputs", []) if "image/png" in o.get("data", {})
    ]
    return "".join(found[0]) if found else ""


def page(book: Path) -> str:
    """The gallery as Markdown: for each chapter a row of pictures that lead to their places."""
    lines: list[str] = []
    chapter = ""
    for picture in pictures(book):
        if picture.chapter != chapter:
            lines += ["</div>", ""] if chapter else []
            chapter = picture.chapter
            lines += [f"[](./{chapter}.ipynb)", "", '<div class="gallery">']
        kind = "photo" if picture.photo else "drawing"
        call = f"<code>{picture.call}</code>" if picture.call else ""
        lines.append(
            f'<a href="{chapter}.html#{picture.label}"><img class="{kind}" loading="lazy" '
            f'src="../_static/gallery/{picture.label}.webp" alt="{html.escape(picture.alt)}">'
            f"<span>{picture.number}</span>{call}</a>"
        )
    return "\n".join([*lines, "</div>"])


def write(book: Path, site: Path) -> None:
    """Write the small pictures into a built site."""
    folder = site / "_static" / "gallery"
    folder.mkdir(parents=True, exist_ok=True)
    for picture in pictures(book):
        (folder / f"{picture.label}.webp").write_bytes(picture.thumbnail())
