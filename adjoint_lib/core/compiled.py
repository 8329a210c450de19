"""Readings as graphs: what recurs is traced once by `tf.function`, for each batch size.

A trace costs as much as tens of eager calls, so the first call with a key stays eager, and the
second traces. A traced function must hold nothing but the network: it outlives the call. Tracing
changes no bit of a result: `evaluate` keeps TensorFlow from fusing sums into convolutions.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable, Sequence
from typing import Any

import tensorflow as tf

from adjoint_lib.core.network import Network
from adjoint_lib.core.primitives import Pattern

MOST = 64  # functions kept for a network; the one used longest ago goes first
FEW = 16  # units of an image: the operations of more are so long that a trace saves nothing
MAX_BATCH = 64  # images in one pass: their feature maps should not outgrow the caches by far

_lock = threading.Lock()


def traced(net: Network, key: Hashable, function: Callable[..., Any]) -> Callable[..., Any]:
    """The function; from the second call with this key on, as a graph."""
    with _lock:
        found = net.traces.pop(key, None)
        if found is None:
            found = function
        elif not isinstance(found, _Graph):
            found = _Graph(function)
        net.traces[key] = found
        if len(net.traces) > MOST:
            net.traces.pop(next(iter(net.traces)))
    return found


class _Graph:
    """A function for arguments of one kind, traced at its first call.

    TensorFlow warns of a function that is traced often, and takes the functions of many keys for
    one; a concrete function is not counted.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = tf.function(function, autograph=False)
        self._concrete: Callable[..., Any] | None = None
        self._tracing = threading.Lock()

    def __call__(self, *args: tf.Tensor) -> Any:
        with self._tracing:
            if self._concrete is None:
                self._concrete = self._function.get_concrete_function(*args)
        return self._concrete(*args)


def patterns_below(
    net: Network, images: tf.Tensor, ends: Sequence[int], once: bool = False
) -> tuple[list[Pattern], tf.Tensor]:
    """The patterns of all that these nodes depend on, at [x; x_b], and whether nothing overflows.

    For a single pull of a row for each image they may be others, see `freeze_once`.

    Sums tell: one term that is infinite or NaN makes a sum so. Only what decides a pattern could
    hide it, and the inputs of that are added up.
    """
    patterns: list[Pattern] = [None] * (max(ends) + 1)
    sums = []
    for number, inputs, value in net.evaluate(images, 1.0, ends):
        primitive = net.nodes[number].primitive
        if primitive is not None:
            patterns[number] = (primitive.freeze_once if once else primitive.freeze)(*inputs)
        checked = [] if patterns[number] is None else inputs
        sums += [tf.reduce_sum(x) for x in (*checked, *([value] if number in ends else ()))]
    return patterns, tf.reduce_all(tf.math.is_finite(tf.stack(sums)))
