"""A web server on this machine that serves one body and misbehaves as told, for tests."""

import threading
from collections.abc import Callable
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class FaultyServer:
    """Serves `body` at every path; the n-th request is answered by the n-th of `answers`.

    The last answer is repeated. An answer is a function of the request's handler, see below.
    `ranges` lists the Range header of every request (None where there was none).
    """

    def __init__(self) -> None:
        self.body = b""
        self.answers: list[Callable] = [whole]
        self.ranges: list[str | None] = []
        self.release = threading.Event()  # ends every stall
        owner = self

        class Handler(BaseHTTPRequestHandler):
            server_owner = owner

            def do_GET(self) -> None:
                owner.ranges.append(self.headers.get("Range"))
                answer = owner.answers[min(len(owner.ranges), len(owner.answers)) - 1]
                with suppress(ConnectionError):  # the client may hang up on us
                    answer(self, owner.body)

            def log_message(self, *args) -> None:
                """Keep the output of the tests clean."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(
            target=self._server.serve_forever, args=(0.01,), daemon=True
        )

    def __enter__(self) -> "FaultyServer":
        self._thread.start()
        return self

    def __exit__(self, *args) -> None:
        self.release.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


def _offset(handler) -> int:
    span = handler.headers.get("Range")
    return int(span.removeprefix("bytes=").removesuffix("-")) if span else 0


def _begin(handler, body: bytes, start: int) -> None:
    handler.send_response(206 if start else 200)
    if start:
        handler.send_header("Content-Range", f"bytes {start}-{len(body) - 1}/{len(body)}")
    handler.send_header("Content-Length", str(len(body) - start))
    handler.end_headers()


def whole(handler, body: bytes) -> None:
    """A sound server: the whole body, or the rest of it from the range asked for."""
    start = _offset(handler)
    _begin(handler, body, start)
    handler.wfile.write(body[start:])


def drop_after(count: int) -> Callable:
    """Promise everything that was asked for, send `count` bytes of it, close the connection."""

    def answer(handler, body: bytes) -> None:
        start = _offset(handler)
        _begin(handler, body, start)
        handler.wfile.write(body[start : start + count])

    return answer


def stall_after(count: int, then: Callable = lambda: None) -> Callable:
    """Send `count` bytes, call `then`, and say nothing more until the test is over."""

    def answer(handler, body: bytes) -> None:
        start = _offset(handler)
        _begin(handler, body, start)
        handler.wfile.write(body[start : start + count])
        handler.wfile.flush()
        then()
        handler.server_owner.release.wait()

    return answer


def ignore_range(handler, body: bytes) -> None:
    """Send the whole body whatever was asked for."""
    _begin(handler, body, 0)
    handler.wfile.write(body)


def ignore_range_and_drop_after(count: int) -> Callable:
    """Begin at the first byte whatever was asked for, and close after `count` bytes."""

    def answer(handler, body: bytes) -> None:
        _begin(handler, body, 0)
        handler.wfile.write(body[:count])

    return answer


def wrong_range(handler, body: bytes) -> None:
    """Answer a request for a range with another range, eight bytes earlier."""
    start = max(_offset(handler) - 8, 0)
    _begin(handler, body, start)
    handler.wfile.write(body[start:])


def status(code: int) -> Callable:
    """Answer with an error status."""
    return lambda handler, body: handler.send_error(code)


def other_body(body: bytes) -> Callable:
    """A sound server, but of another file."""
    return lambda handler, _: whole(handler, body)


def unannounced(body: bytes) -> Callable:
    """Another body, without saying how long it is."""

    def answer(handler, _: bytes) -> None:
        handler.send_response(200)
        handler.end_headers()
        handler.wfile.write(body)

    return answer
