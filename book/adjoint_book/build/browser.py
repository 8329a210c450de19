"""Chromium, where there is one, as a printer: a page becomes a PDF."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path

from adjoint_lib.errors import DataError

PROGRAMS = ("chromium", "chromium-browser", "google-chrome", "chrome")
OPTIONS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--allow-file-access-from-files",
    "--no-pdf-header-footer",
    "--generate-pdf-document-outline",
)
SECONDS = 600  # for one page, however busy the machine


def found(say: Callable[[str], None]) -> str | None:
    """The browser, or nothing and one sentence about it."""
    for name in PROGRAMS:
        if program := shutil.which(name):
            return program
    say(
        f"No PDF is made: that takes Chromium or Chrome, and none of {', '.join(PROGRAMS)} is here."
    )
    return None


def print_to_pdf(program: str, address: str, path: Path, wait: int = 60_000) -> None:
    """Print a page to a PDF, once its scripts have come to rest.

    Args:
        program: the browser.
        address: of the page.
        path: of the PDF.
        wait: for how many milliseconds, by the page's own clock, its scripts may run.
    """
    path.unlink(missing_ok=True)
    with tempfile.TemporaryDirectory() as profile:
        kept = f"--user-data-dir={profile}"
        given = [f"--virtual-time-budget={wait}", f"--print-to-pdf={path}", address]
        run = subprocess.run(
            [program, *OPTIONS, kept, *given], capture_output=True, text=True, timeout=SECONDS
        )
    if not path.exists():
        raise DataError(
            f"{path}: expected {program} to print a PDF, it did not (exit code {run.returncode}): "
            f"{run.stderr.strip()[-300:]}"
        )
