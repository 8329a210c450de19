"""A real browser for tests: Chromium without a window and without a network."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
NEEDED = "ADJOINT_NEEDS_BROWSER"  # set where a missing browser is a failure, not a skip


def missing(what: str) -> None:
    """Skip the test, or fail where a browser is needed."""
    if os.environ.get(NEEDED):
        pytest.fail(f"{what}, and {NEEDED} is set")
    pytest.skip(what)


@contextlib.contextmanager
def chromium() -> Iterator:
    """The browser, or a skip."""
    program = next(filter(None, map(shutil.which, NAMES)), None)
    if program is None:
        missing(f"needs Chromium, found none of {', '.join(NAMES)}")
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        missing("needs playwright: pip install playwright")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        yield browser
        browser.close()


@contextlib.contextmanager
def opened(browser, path: Path, address: str = "", **options) -> Iterator:
    """A page from a file, without a network; whatever it says in the console is an error."""
    said: list[str] = []
    context = browser.new_context(offline=True, **options)
    page = context.new_page()
    page.set_default_timeout(60_000)
    page.on("console", lambda message: said.append(f"{message.type}: {message.text}"))
    page.on("pageerror", lambda error: said.append(str(error)))
    page.on("requestfailed", lambda request: said.append(f"failed: {request.url[:100]}"))
    page.goto(path.as_uri() + address)
    yield page
    context.close()
    assert said == []


def settled(page, expected: str | None = None) -> str:
    """The live region's text, once it says this, or anything."""
    condition = (
        "expected => {"
        "const said = document.querySelector('[data-adjoint-explorer]').shadowRoot"
        ".querySelector('[data-part=said]').textContent;"
        "return (expected ? said.includes(expected) : said) && said; }"
    )
    return page.wait_for_function(condition, arg=expected).json_value()
