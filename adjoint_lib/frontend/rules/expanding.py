"""Layers that are written in other layers and operations, which are then read in their place."""

from __future__ import annotations

from typing import Any

import keras

from adjoint_lib.frontend._keras_graph import call_of
from adjoint_lib.frontend.rules.call import expands


@expands(keras.layers.TimeDistributed)
def at_each_time(layer: keras.layers.TimeDistributed, x: Any, **_: Any) -> Any:
    """The layer inside, used once for each step: each use has its own bias slice."""
    return keras.ops.stack([layer.layer(x[:, t]) for t in range(x.shape[1])], axis=1)


@expands(keras.layers.Lambda)
def lambda_function(layer: keras.layers.Lambda, *args: Any, **kwargs: Any) -> Any:
    return call_of(layer)(*args, **kwargs)


@expands("Split")
def split(operation: Any, x: Any) -> list[Any]:
    """keras.ops.split, as slices."""
    axis, where = operation.axis % len(x.shape), operation.indices_or_sections
    size = x.shape[axis]
    edges = range(size // where, size, size // where) if isinstance(where, int) else where
    pairs = zip([0, *edges], [*edges, size], strict=True)
    before = (slice(None),) * axis
    return [x.__getitem__((*before, slice(start, stop))) for start, stop in pairs]


@expands("Unstack")
def unstack(operation: Any, x: Any) -> list[Any]:
    """keras.ops.unstack, as slices."""
    axis = operation.axis % len(x.shape)
    before = (slice(None),) * axis
    return [x.__getitem__((*before, i)) for i in range(x.shape[axis])]
