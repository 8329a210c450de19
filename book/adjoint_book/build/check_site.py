"""Checks a built book.

No page needs anything from another host or shows raw markup, and no link leads nowhere.

"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urljoin, urlsplit

# Attributes by which a page loads something at once, without the reader's asking.
LOADS = {"src", "srcset", "poster", "data", "background", "action", "data-frames"}
STYLE_URL = re.compile(r"url\(\s*['\"]?([^'\")]+)|@import\s+['\"]([^'\"]+)", re.I)
SCRIPT_URL = re.compile(r"['\"`]((?:https?:)?//[^'\"`\s]+?\.(?:m?js|css|wasm|woff2?))\b")


# Markup that should have become something else; code may show it.
RAW = re.compile(r"`{3,}|\{[a-z]+(?::[a-z]+)?\}`|^\([\w-]+\)=$|&lt;!--|\$\$", re.M)
CODE = re.compile(r"<(pre|code|script|style|title)\b.*?</\1>", re.S)


class Page(HTMLParser):
    """What a page loads, where it links to, and which places in it can be linked to."""

    def __init__(self, html: str):
        super().__init__()
        self.loads: list[str] = []
        self.links: list[str] = []
        self.places: set[str] = set()
        self.explores = False
        self._inside = ""
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note where the page leads, and what it loads."""
        self._inside = tag
        given = {name: value or "" for name, value in attrs}
        self.explores |= "data-adjoint-explorer" in given
        self.places |= {given[name] for name in ("id", "name") if name in given}
        if tag == "a" and "href" in given:
            self.links.append(given["href"])
        if tag == "link" and not {"canonical", "author", "license"} & set(
            given.get("rel", "").split()
        ):
            self.loads.append(given.get("href", ""))
        for name, value in given.items():
            if name == "srcset":
                self.loads += [part.split()[0] for part in value.split(",") if part.split()]
            elif name == "style":
                self.loads += style_urls(value)
            elif name in LOADS and tag != "form":
                self.loads.append(value)

    handle_startendtag = handle_starttag

    def handle_endtag(self, tag: str) -> None:
        """Text that follows is in no style sheet."""
        self._inside = ""

    def handle_data(self, data: str) -> None:
        """Note what a style sheet in the page loads."""
        if self._inside == "style":
            self.loads += style_urls(data)
        if self._inside == "script":
            self.loads += SCRIPT_URL.findall(data)


def style_urls(css: str) -> list[str]:
    """What a style sheet loads."""
    return [first or second for first, second in STYLE_URL.findall(css)]


def problems(site: Path) -> Iterator[str]:
    """Assets from another host or missing, raw markup and broken links, of all pages of a site."""
    # What is below _static is no page, but a theme's templates.
    files = [path for path in sorted(site.rglob("*.html")) if "_static" not in path.parts]
    pages = {path: Page(path.read_text("utf-8")) for path in files}
    if not pages:
        yield f"{site}: expected a built book, found no page. Run `make book` first."
    for path, page in pages.items():
        name = path.relative_to(site)
        for found in RAW.findall(CODE.sub("", path.read_text("utf-8"))):
            yield f"{name}: shows {found} as it stands in the source"
        for url in page.loads:
            yield from _asset_problem(site, path, url)
        for url in sorted(set(page.links)):
            target, place = _resolve(path, url)
            if target is None:
                continue
            target = target / "index.html" if target.is_dir() else target
            if not target.exists():
                yield f"{name}: link to {url}, which is not there"
            elif place.startswith("net=") and target in pages and pages[target].explores:
                continue  # a state of the explorer
            elif place and target in pages and place not in pages[target].places:
                yield f"{name}: link to {url}, a place which is not in that page"
    if any(page.explores for page in pages.values()):
        yield from _explorer_problems(site)
    for path in sorted(site.rglob("*.css")):
        for url in style_urls(path.read_text("utf-8")):
            yield from _asset_problem(site, path, url)


def _explorer_problems(site: Path) -> Iterator[str]:
    """The scripts that an explorer loads when they are wanted."""
    from adjoint_book.build import explorer

    for name in explorer.FILES:
        path = site / explorer.FOLDER / f"{name}.js"
        if not path.exists():
            yield f"{path.relative_to(site)}: the explorer loads it, and it is not there"
        elif found := SCRIPT_URL.search(path.read_text("utf-8")):
            yield f"{path.relative_to(site)}: loads {found[1]} from another host"


def _asset_problem(site: Path, path: Path, url: str) -> Iterator[str]:
    name = path.relative_to(site)
    if urlsplit(url).scheme == "data" or not url or url.startswith("#"):
        return
    if urlsplit(url).netloc:
        yield f"{name}: loads {url} from another host"
        return
    target, _ = _resolve(path, url)
    if target is not None and not target.exists():
        yield f"{name}: loads {url}, which is not there"


def _resolve(page: Path, url: str) -> tuple[Path | None, str]:
    """The file a relative address means, and the place in it; no file for one that is elsewhere."""
    parts = urlsplit(url)
    if parts.scheme or parts.netloc:
        return None, ""
    if not parts.path:
        return page, unquote(parts.fragment)
    whole = urljoin(page.resolve().as_uri(), parts.path)
    return Path(unquote(urlsplit(whole).path)), unquote(parts.fragment)


def main(arguments: list[str]) -> int:
    """Print the problems of a built site; the exit code is 1 if there are any."""
    site = Path(arguments[0] if arguments else "_build/html").resolve()
    found = list(problems(site))
    for problem in found:
        print(problem, file=sys.stderr)
    print(f"{len(found)} problems in the built book at {site.name}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
