"""The export of an equivalent network: one file that any language can read, without pickle.

The file is four parts, one after the other:

    adjoint-network 1                    the format and its version, a line
    9f86d081884c7d65...                  SHA-256 of all that follows, 64 hexadecimal digits, a line
    {"name": ..., "nodes": [...], ...}   the graph as JSON, a line; spaces at its end make the three
                                         lines together a multiple of 8 bytes long
    the numbers                          float32 or float64, little-endian, one after the other

The JSON object holds

    name      the model's name
    digest    `net.digest`, which says what network it was made from
    dtype     "float32" or "float64", that of the numbers
    outputs   numbers of nodes
    nodes     in an order in which each comes after its inputs; the first is the image x. A node has
              a name and a shape, and either

        source      {"origin": text} of x itself; with "values", an array, of a part of x_b
        primitive   {"kind": the class of `core.primitives`, and its fields by name}; "inputs" are
                    the numbers of the nodes that it reads

An array is {"start": its first number, counted in numbers, "shape": [...]}, in row-major order.
An `Activation` is what its slopes, breakpoints and intercepts say: a function is not written.
"""

from __future__ import annotations

import hashlib
import json
import math
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

from adjoint_lib._storage import decoding, ordinary, parse_json, replacing, require
from adjoint_lib.core.equivalent_net import EquivalentNet
from adjoint_lib.core.graph import Bias, Graph, Node, Source
from adjoint_lib.core.primitives import Activation, Primitive, is_float_array
from adjoint_lib.errors import AdjointError, DataError, InputError, UnsupportedLayer

FORMAT = b"adjoint-network 1\n"
ALIGNMENT = 8  # the numbers begin at a multiple of this
DTYPES = {"float32": "<f4", "float64": "<f8"}


def export(net: EquivalentNet, path: str | Path, dtype: str | None = None) -> None:
    """Write the network to a file: its graph as JSON, its numbers as flat little-endian floats.

    `adjoint_lib/explorer/export.py` describes the format; `read` reads it back.

    Args:
        dtype: of the numbers, "float32" or "float64"; by default the net's own.
    """
    with replacing(path) as file:
        file.write(packed(net, dtype))


def read(path: str | Path) -> EquivalentNet:
    """The network of an exported file; a file that is damaged or something else is refused."""
    with decoding(path, "a file written by net.export", "Export the network again."):
        content = ordinary(path).read_bytes()
        try:
            return unpacked(content)
        except AdjointError as error:  # numbers that no network computes with
            raise DataError(f"{path}: {error}") from error


def packed(net: EquivalentNet, dtype: str | None = None) -> bytes:
    """The exported file as bytes."""
    kind = dtype or net.dtype.name
    if kind not in DTYPES:
        raise InputError(f"expected dtype float32 or float64, got {kind!r}.")
    numbers = Numbers(DTYPES[kind])
    graph = {
        "name": net.name,
        "digest": net.digest,
        "dtype": kind,
        "outputs": net.graph.outputs,
        "nodes": [_described(node, numbers) for node in net.graph.nodes],
    }
    line = json.dumps(graph, allow_nan=False, separators=(",", ":")).encode()
    before = len(FORMAT) + 2 * hashlib.sha256().digest_size + 1
    line += b" " * (-(before + len(line) + 1) % ALIGNMENT) + b"\n"
    content = line + b"".join(numbers.parts)
    return FORMAT + hashlib.sha256(content).hexdigest().encode() + b"\n" + content


def unpacked(data: bytes) -> EquivalentNet:
    """The network of an exported file's bytes."""
    if not data.startswith(FORMAT):
        found = data[: len(FORMAT)]
        raise ValueError(f"it begins with {found!r}, not {FORMAT!r}")
    digest, _, content = data[len(FORMAT) :].partition(b"\n")
    if hashlib.sha256(content).hexdigest().encode() != digest:
        raise ValueError("the content does not have the digest that is written above it")
    line, _, numbers = content.partition(b"\n")
    graph = parse_json(line)
    flat = np.frombuffer(numbers, DTYPES[graph["dtype"]]).astype(float)
    nodes: list[Node] = []
    for written in graph["nodes"]:
        nodes.append(_node(written, nodes, flat))
    outputs = [range(len(nodes))[number] for number in graph["outputs"]]
    net = EquivalentNet(
        require(graph["name"], str, "a name"), Graph(nodes, outputs), graph["dtype"]
    )
    return net


class Numbers:
    """The arrays of an export, one after the other."""

    def __init__(self, dtype: str):
        self.dtype = np.dtype(dtype)
        self.parts: list[bytes] = []
        self.count = 0

    def add(self, array: np.ndarray) -> dict[str, Any]:
        """Append an array; returns how the JSON refers to it."""
        array = np.asarray(array)
        with np.errstate(over="ignore"):
            flat = np.ascontiguousarray(array, self.dtype)
        if not np.isfinite(flat).all():
            found = array[~np.isfinite(flat)][0]
            raise InputError(f"expected numbers finite in {self.dtype.name}, got {found}.")
        start, self.count = self.count, self.count + flat.size
        self.parts.append(flat.tobytes())
        return {"start": start, "shape": list(array.shape)}


def _described(node: Node, numbers: Numbers) -> dict[str, Any]:
    described: dict[str, Any] = {"name": node.name, "shape": node.shape}
    if node.source is not None:
        source: dict[str, Any] = {"origin": node.source.origin}
        if node.is_bias:
            source["values"] = numbers.add(node.bias.values)
        return {**described, "source": source}
    kind = type(node.operation)
    if kind.__module__ != Primitive.__module__:
        raise UnsupportedLayer(
            f"node '{node.name}': expected a primitive of adjoint_lib, which readers of an export "
            f"know, got {kind.__name__} of {kind.__module__}. Write the layer in al.primitives."
        )
    held = {n: v for n, v in node.operation.held.items() if not callable(v)}
    written = {n: numbers.add(v) if is_float_array(v) else v for n, v in held.items()}
    primitive = {"kind": kind.__name__, **written}
    return {**described, "inputs": node.inputs, "primitive": primitive}


def _node(written: dict[str, Any], before: list[Node], flat: np.ndarray) -> Node:
    """A node as `_described` wrote it."""
    name, shape = written["name"], _tuples(written["shape"])
    if ("source" in written) == ("primitive" in written) or ("source" in written) != (
        "values" in written.get("source", ()) or not before
    ):
        raise ValueError(f"node '{name}' is neither the image, nor a part of x_b, nor a primitive")
    if "source" in written:
        source, origin = written["source"], written["source"]["origin"]
        if "values" not in source:
            return Node(name, shape, source=Source(origin=origin))
        found = _array(source["values"], flat)
        if found.shape != shape:
            raise ValueError(f"source '{name}' has values {found.shape} for a node {shape}")
        return Node(name, shape, source=Bias(origin=origin, values=found, size=np.abs(found)))
    inputs = _tuples(written["inputs"])
    if not inputs or not all(isinstance(i, int) and 0 <= i < len(before) for i in inputs):
        raise ValueError(f"node '{name}' reads {inputs}, expected numbers of earlier nodes")
    return Node(name, shape, inputs, _primitive(dict(written["primitive"]), flat))


def _primitive(written: dict[str, Any], flat: np.ndarray) -> Primitive:
    kind = _kinds(Primitive)[written.pop("kind")]
    held = {n: _array(v, flat) if isinstance(v, dict) else _tuples(v) for n, v in written.items()}
    if kind is Activation:
        held["function"] = lambda h, *constants: _by_pieces(made, h, *constants)
    expected = {f.name for f in fields(kind)}
    if held.keys() != expected:
        raise ValueError(f"{kind.__name__} has fields {sorted(held)}, expected {sorted(expected)}")
    made: Primitive = kind(**held)
    return made


def _by_pieces(activation: Primitive, *inputs: tf.Tensor) -> tf.Tensor:
    """The value of an activation of which only the pieces are known."""
    return activation.push(activation.freeze(*inputs), *inputs)


def _kinds(base: type[Primitive]) -> dict[str, type[Primitive]]:
    """All primitives by the names of their classes."""
    found = {}
    for kind in base.__subclasses__():
        found.update({kind.__name__: kind, **_kinds(kind)})
    return found


def _array(written: dict[str, Any], flat: np.ndarray) -> np.ndarray:
    start, shape = written["start"], _tuples(written["shape"])
    stop = start + math.prod(shape)
    if not 0 <= start <= stop <= flat.size:
        raise ValueError(f"numbers {start} to {stop} of {flat.size}")
    return flat[start:stop].reshape(shape)


def _tuples(value: Any) -> Any:
    return tuple(_tuples(v) for v in value) if isinstance(value, list) else value
