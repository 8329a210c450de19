"""The engine in a V8 without a browser: networks and arrays go in as text, results come out so.

JavaScript and Python both write the shortest decimal number that stands for a double, so text loses
no bit.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from py_mini_racer import MiniRacer

from adjoint_lib.explorer import bundle


class JavaScript:
    """One V8 with the engine in it."""

    def __init__(self, v8: MiniRacer):
        self.v8 = v8
        self.run(bundle.engine())

    def run(self, script: str) -> None:
        self.v8.eval(f"{script}; null")

    def __call__(self, expression: str, **given: Any) -> Any:
        """The value of an expression in which arrays, numbers and texts are given by name."""
        values = {name: self._plain(value) for name, value in given.items()}
        text = self.v8.eval(
            f"(({', '.join(values)}) => JSON.stringify({expression}, plain))"
            f"({', '.join(json.dumps(v) for v in values.values())})"
        )
        return json.loads(text)

    @staticmethod
    def _plain(value: Any) -> Any:
        return np.asarray(value).reshape(-1).tolist() if isinstance(value, np.ndarray) else value

    def load(self, net, dtype: str = "float64", numbers: str = "float64") -> None:
        """Export the net with numbers of one dtype; read as `net`, to compute in another."""
        text = bundle.base64_of(net, numbers)
        self.run(f'var net = adjoint.unpacked(adjoint.bytes_of("{text}"), "{dtype}")')


@contextmanager
def javascript() -> Iterator[JavaScript]:
    """A V8 that is closed in the end; one that is left to the interpreter's end may never end."""
    with MiniRacer() as v8:
        v8.eval("var plain = (key, x) => ArrayBuffer.isView(x) ? Array.from(x) : x; null")
        yield JavaScript(v8)
