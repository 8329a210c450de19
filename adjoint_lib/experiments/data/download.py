"""Download one file of known length and digest by HTTP: resumable, atomic, of bounded patience."""

import os
import re
import time
from http.client import HTTPException, HTTPResponse
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import Request, urlopen

from tqdm import tqdm

from adjoint_lib.errors import DataError
from adjoint_lib.experiments.data.checked import CHUNK, KnownFile, part_of, problem

TIMEOUT = 20.0  # seconds of silence, in connecting or amid the body, that end an attempt
ATTEMPTS = 20  # in all: a connection that drops now and then is worth going on with
STALLED_ATTEMPTS = 3  # in a row that bring the file no further: the server is out of reach
BACKOFF = 1.0  # seconds before the next attempt; doubled after each that brought nothing
_TRANSIENT_STATUS = {408, 425, 429, 500, 502, 503, 504}


def download(url: str, target: Path, known: KnownFile, progress: bool = True) -> Path:
    """Make `target` hold exactly the file `known`, and return it; one caller at a time.

    Bytes are gathered in `<target>.part`, which survives failures and Ctrl-C and with which the
    next call goes on; it takes the target's name only once length and digest are right. A finished
    `.part` with a wrong digest is removed. If an earlier call had begun it, its bytes may be the
    wrong ones: the file is then fetched once more from its first byte before giving up.

    Raises:
        DataError: if the server does not deliver this file.
    """
    if target.exists() and problem(target, known) is None:
        return target
    part = part_of(target)
    while True:
        inherited = _length(part) > 0
        _fill(part, url, known, progress)
        wrong = problem(part, known)
        if wrong is None:
            os.replace(part, target)
            return target
        part.unlink()
        if not inherited:
            raise DataError(
                f"{url}: the download is complete but is not the expected file ({wrong}); "
                "it was removed. Try again later or from another source."
            )


class _Transient(Exception):
    """This attempt failed, another may succeed."""


def _fill(part: Path, url: str, known: KnownFile, progress: bool) -> None:
    """Bring `part` to its full length in a bounded number of requests, each going on at its end."""
    reasons: list[str] = []
    stalled = 0
    with tqdm(
        total=known.size, desc=known.name, unit="B", unit_scale=True, disable=not progress
    ) as bar:
        while len(reasons) < ATTEMPTS and stalled < STALLED_ATTEMPTS:
            if reasons:
                time.sleep(BACKOFF * 2**stalled)
            had = _length(part)
            try:
                _receive(part, url, known, bar)
                return
            except _Transient as error:
                reasons.append(str(error))
                stalled = 0 if _length(part) > had else stalled + 1
    have = _length(part)
    if not have:
        part.unlink(missing_ok=True)
    kept = f" What came is kept in {part}: the next call goes on from there." if have else ""
    raise DataError(
        f"{url}: expected {known.size} bytes, have {have} after {len(reasons)} attempts "
        f"({'; '.join(dict.fromkeys(reasons))}). Check the network and try again.{kept}"
    )


def _receive(part: Path, url: str, known: KnownFile, bar: tqdm) -> None:
    """Append what is missing in `part` from one request; start over if the server wants it so."""
    have = _length(part)
    if have > known.size:
        part.unlink()
        have = 0
    if have < known.size:
        with _open(part, url, have) as response:
            have = _first_byte(part, url, response, have, known)
            with open(part, "ab" if have else "wb") as file:
                bar.update(have - bar.n)
                while chunk := _read(response, min(CHUNK, known.size + 1 - have)):
                    file.write(chunk)
                    have += len(chunk)
                    bar.update(len(chunk))
    if have > known.size:
        part.unlink()
        raise DataError(
            f"{url}: expected {known.size} bytes, the server sends more. It offers another file: "
            "try another source."
        )
    if have < known.size:
        raise _Transient("the connection ended early")


def _open(part: Path, url: str, have: int) -> HTTPResponse:
    headers = {"User-Agent": "adjoint_lib"}
    if have:
        headers["Range"] = f"bytes={have}-"
    try:
        return urlopen(Request(url, headers=headers), timeout=TIMEOUT)
    except HTTPError as error:
        error.close()
        if error.code == 416:  # what we hold does not fit that file: begin anew
            part.unlink(missing_ok=True)
            raise _Transient("the server has no such range") from error
        if error.code in _TRANSIENT_STATUS:
            raise _Transient(f"HTTP status {error.code}") from error
        raise DataError(
            f"{url}: expected {part.stem}, got HTTP status {error.code} ({error.reason}). "
            "Check the address, or use another source."
        ) from error
    except (OSError, HTTPException) as error:
        raise _Transient(str(getattr(error, "reason", None) or error) or repr(error)) from error


def _first_byte(part: Path, url: str, response: HTTPResponse, have: int, known: KnownFile) -> int:
    """Offset of the body's first byte in the file: `have`, or 0 if the server ignores the range.

    Refuses a body that announces another total length before a byte of ours is overwritten.
    """
    if response.status == 206:
        span = re.fullmatch(r"bytes (\d+)-\d+/(\d+|\*)", response.headers.get("Content-Range", ""))
        if span is None or int(span[1]) != have:
            part.unlink()
            raise _Transient("the server answered with another range")
        start, total = have, span[2]
    else:
        start, total = 0, response.headers.get("Content-Length", "*")
    if total.isdigit() and int(total) != known.size:
        raise DataError(
            f"{url}: expected {known.size} bytes, the server announces {total}. It offers another "
            "file (a login page of the network, perhaps): try another network or source."
        )
    return start


def _read(response: HTTPResponse, size: int) -> bytes:
    try:
        return response.read1(size)  # what has come, without waiting for all of `size`
    except (OSError, HTTPException) as error:
        raise _Transient(str(error) or repr(error)) from error


def _length(part: Path) -> int:
    return part.stat().st_size if part.exists() else 0
