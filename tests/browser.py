"""A real browser for tests: Chromium without a window and without a network.

Nothing here is timed: a busy machine makes tests slow, not red. What is waited for is a condition,
and PATIENCE only says when to give a broken page up.
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
NEEDED = "ADJOINT_NEEDS_BROWSER"  # set where a missing browser is a failure, not a skip
PATIENCE = 300_000  # milliseconds
ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",  # a container may have little shared memory
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-quic",
    "--disable-sync",
    "--no-first-run",
]
HOST = "document.querySelector('[data-adjoint-explorer]')"


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
        from playwright.sync_api import Error, sync_playwright
    except ImportError:
        missing("needs playwright: pip install playwright")
    with sync_playwright() as playwright:
        how = {"executable_path": program, "args": ARGUMENTS, "timeout": PATIENCE}
        try:
            browser = playwright.chromium.launch(**how)
        except Error as error:
            missing(f"needs a Chromium that starts; {program} says: {error}")
        yield browser
        browser.close()


@contextlib.contextmanager
def opened(browser, path: Path, address: str = "", script: str = "", **options) -> Iterator:
    """A page from a file, without a network; whatever it says in the console is an error.

    The script runs before those of the page.
    """
    said: list[str] = []
    context = browser.new_context(offline=True, **options)
    page = context.new_page()
    page.set_default_timeout(PATIENCE)
    page.add_init_script(script)
    page.on("console", lambda message: said.append(f"{message.type}: {message.text}"))
    page.on("pageerror", lambda error: said.append(str(error)))
    page.on("requestfailed", lambda request: said.append(f"failed: {request.url[:100]}"))
    page.goto(path.as_uri() + address)
    yield page
    context.close()
    assert not said, said


def settled(page, expected: str | None = None) -> str:
    """The live region's text, once it says this, or anything, and nothing is being computed."""
    condition = (
        "expected => {"
        f"const said = {HOST}.shadowRoot.querySelector('[data-part=said]').textContent;"
        f"if ({HOST}.ariaBusy !== 'false') return false;"
        "return (expected ? said.includes(expected) : said) && said; }"
    )
    return page.wait_for_function(condition, arg=expected).json_value()


def shown(page, *parts: str) -> None:
    """Wait until the explorer shows a state that has these parts, such as "light=0.5"."""
    condition = (
        f"parts => {HOST}.ariaBusy === 'false' && "
        f"parts.every(part => `&${{{HOST}.dataset.shown}}&`.includes(`&${{part}}&`))"
    )
    page.wait_for_function(condition, arg=list(parts))


def axe_core() -> str:
    """The script that looks for what keeps people out; a package has it."""
    found = importlib.util.find_spec("axe_playwright_python")
    if found is None:
        missing("needs axe-core: pip install axe-playwright-python")
    return Path(found.origin).with_name("axe.min.js").read_text("utf-8")
