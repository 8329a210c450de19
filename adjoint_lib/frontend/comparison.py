"""A network against the Keras model it was made from: every layer, on the model's own inputs.

The model is run layer by layer. Each stretch of the network, from what one layer of the model gives
to what the next one gives, gets the model's values as its inputs, and what it computes is held
against the model's next value, entry by entry:

    |ours - theirs| <= (2 n + 64) u A,    A = |inputs| through |weights| of that stretch

with n its roundings and 64 for those that only the model makes (a batch normalisation that we
fold). Errors do not add up from layer to layer, so this is as sharp in the last layer as in the
first, and no activation is on another piece by rounding. Where batch normalisation is folded into a
kernel, the stretch ends after it. If every stretch agrees, so do the network and the model.
"""

from __future__ import annotations

import warnings
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from adjoint_lib.core.equivalent_net import EquivalentNet
from adjoint_lib.core.error_bounds import unit_roundoff
from adjoint_lib.core.graph import IMAGE, Shape
from adjoint_lib.core.network import smallest
from adjoint_lib.core.primitives import AlongAxis, is_float_array, map_pattern
from adjoint_lib.errors import AdjointError, InputError, UnsupportedLayer
from adjoint_lib.frontend._keras_graph import (
    Node,
    arguments,
    carries_mask,
    has_code_of_its_own,
    has_entries,
    without_activation,
)
from adjoint_lib.frontend.lowering import Walk
from adjoint_lib.frontend.refusals import ending_of, readable
from adjoint_lib.frontend.rules.call import before_activation, running

THEIRS = 64  # roundings that folding saves


def trial_images(net: EquivalentNet) -> np.ndarray:
    """Images at several scales: zeros, N(0, 1), [0, 1], 0 ... 255, and one constant."""
    rng, shape = np.random.default_rng(0), net.input_shape
    some = [np.zeros(shape), rng.normal(size=shape), rng.uniform(size=shape)]
    return np.stack([*some, rng.integers(0, 256, shape), np.full(shape, 0.5)]).astype(float)


def compare(
    model: keras.Model, net: EquivalentNet, images: np.ndarray, warn: bool = False
) -> dict[str, float]:
    """The largest error of each layer of the model, divided by what rounding allows.

    With `warn`, layers that read zeros only, so that nothing could be compared, are warned of.

    Raises:
        AdjointError: some layer differs by more than rounding.
        InputError: the model is not that of the network, or overflows at each image.
    """
    if not any(node.holds for node in net.nodes):
        raise InputError(
            f"expected a network as adjoint_lib.equivalent makes it, but '{net.name}' does not say "
            "which of its nodes are layers of a model: it was read from an export."
        )
    worst: dict[str, float] = {}
    read: set[int] = set()  # layers that have read anything but zeros
    overflows, compared = "", None  # the last image that was compared, unless it is all zero
    found = readable(model, model.name)
    for image in net.check_images(images).numpy():
        theirs = _Execution(model, found, image[None])
        if theirs.overflows:
            overflows = theirs.overflows
        else:
            _compare_one(net, image[None], theirs, worst, read)
            compared = image if image.any() else compared
    if overflows and compared is None:
        if any(overflows in n.holds for n in net.nodes if isinstance(n.primitive, AlongAxis)):
            raise _saturated(overflows)
        raise InputError(
            f"model '{model.name}' overflows {net.dtype.name} in layer '{overflows}' at every "
            "image tried; expected finite values. Check its weights, or build it in float64."
        )
    if compared is not None and has_code_of_its_own(model):
        _check_batch(model, tf.constant(compared[None], found.inputs[0].dtype))
    silent = [layer.name for layer in net.layers if layer.number not in read]
    if warn and silent:
        warnings.warn(
            f"layers {', '.join(map(repr, silent))} of '{model.name}' read zeros only at all "
            "images tried: their kernels could not be compared with the model.",
            stacklevel=3,
        )
    return worst


class _Execution(Walk[tf.Tensor]):
    """The model run on one image, with what each layer gives kept by name in `found`."""

    def __init__(self, model: keras.Model, graph: keras.Model, image: np.ndarray):
        super().__init__()
        self.found: dict[str, tf.Tensor] = {}
        self.before: dict[int, tf.Tensor] = {}  # what a final activation reads, by what it gives
        self.overflows = ""
        x = tf.constant(image, graph.inputs[0].dtype)
        self.outputs = self.run(graph, [x], "", [True] * len(graph.outputs))
        with running(model.name):
            whole = tf.nest.flatten(model(x, training=False))
        for a, b in zip(self.outputs, whole, strict=True):
            if not self.overflows and not _close(a, b, 1e-5):
                raise AdjointError(
                    f"model '{model.name}' gives other outputs than its layers one after the other."
                    " Expected a model that computes its graph, and the same at each call."
                )

    def shape_of(self, value: tf.Tensor) -> Shape:
        return tuple(value.shape[1:])

    def run(self, model: keras.Model, inputs: list[Any], *args: Any) -> list[tf.Tensor]:
        pairs = zip(inputs, model.inputs, strict=True)
        return super().run(model, [tf.cast(x, t.dtype) for x, t in pairs], *args)

    def leave(self, node: Node, name: str, inputs: list[Any], found: list[Any]) -> list[Any]:
        """What the layer gives when it is called: it was traced, and may do something else."""
        args, kwargs = arguments(node, inputs)
        with running(name):
            given = list(filter(has_entries, tf.nest.flatten(node.operation(*args, **kwargs))))
        if found and id(found[0]) in self.before:
            self.before[id(given[0])] = self.before[id(found[0])]
        return given if len(given) > 1 else [self._keep(name, given[0])]

    def apply(self, node: Node, name: str, inputs: list[Any], last: bool = False) -> tf.Tensor:
        layer = node.operation
        args, kwargs = arguments(node, inputs)
        if hasattr(layer, "activation") and (
            hasattr(layer, "use_bias") or hasattr(layer, "bias_axes")
        ):
            with running(name):
                before = without_activation(layer).call(tf.cast(args[0], layer.compute_dtype))
                out = before if layer.activation is None else layer.activation(before)
            self._keep(before_activation(name), before)
        else:
            with running(name):
                before, out = inputs[0], layer(*args, **kwargs)
        if last and ending_of(layer):
            self.before[id(out)] = before
        return self._keep(name, out)

    def _keep(self, name: str, value: tf.Tensor) -> tf.Tensor:
        if carries_mask(value):
            raise UnsupportedLayer(
                f"layer '{name}' gives its output a mask, by which later layers leave entries out: "
                "that is not piecewise linear. Expected layers without masks."
            )
        if not self.overflows and not bool(tf.reduce_all(tf.math.is_finite(value))):
            self.overflows = name
        self.found[name] = value
        return value


def _check_batch(model: keras.Model, image: tf.Tensor) -> None:
    """Refuse a model that computes another thing of two equal images than of one."""
    with running(model.name):
        alone, twice = (
            tf.nest.flatten(model(tf.repeat(image, n, 0), training=False)) for n in (1, 2)
        )
    for a, b in zip(alone, twice, strict=True):
        if b.shape != (2, *a.shape[1:]) or not _close(a, b, 1e-3):
            raise UnsupportedLayer(
                f"model '{model.name}' computes another thing of a batch of two equal images than "
                "of one: a layer of its own depends on the batch. Expected each image by itself."
            )


def _close(a: tf.Tensor, b: tf.Tensor, tolerance: float) -> bool:
    return np.allclose(a, b, rtol=tolerance, atol=tolerance * np.abs(b).max(initial=0))


def _compare_one(
    net: EquivalentNet,
    image: np.ndarray,
    theirs: _Execution,
    worst: dict[str, float],
    read: set[int],
) -> None:
    values: dict[int, Any] = {}
    scales: dict[int, Any] = {}
    counts: dict[int, int] = {}
    ends = _outputs(net, theirs)
    rough: dict[int, bool] = {}  # what tf.image.resize may have rounded to float32
    for number, finished in net.plan(frozenset(range(len(net.nodes)))):
        node = net.nodes[number]
        if node.primitive is None:
            x = image if number == IMAGE else node.bias.values[None]
            size = np.abs(image) if number == IMAGE else node.bias.size[None]
            ours, A, n = tf.cast(x, net.dtype), tf.cast(size, net.dtype), 1
            rough[number] = False
        else:
            inputs = [values[i] for i in node.inputs]
            ours = node.operation.value(*inputs)
            A = _scale(net, number, inputs, [scales[i] for i in node.inputs])
            n = max(counts[i] for i in node.inputs) + node.operation.roundings
            rough[number] = isinstance(node.primitive, AlongAxis) or any(
                rough[i] for i in node.inputs
            )
        dtype = tf.float32 if rough[number] else net.dtype
        held = [theirs.found.get(name) for name in node.holds]
        for name, given in zip(node.holds, held, strict=True):
            if given is None or given.shape != ours.shape:
                raise _another(net, f"layer '{name}' is not in this one, or has another shape")
            error = ours - tf.cast(given, net.dtype)
            ratio = _largest_ratio(error, (2 * n + THEIRS) * unit_roundoff(dtype) * A, dtype)
            worst[name] = max(worst.get(name, 0.0), ratio)
            if not ratio <= 1:
                if rough[number] and np.abs(ours).max() > dtype.max:
                    raise _saturated(name)
                raise _difference(net, name, error)
        if any(not any(given is end for given in held) for end in ends.get(number, ())):
            raise _another(net, f"what node '{node.name}' gives is not among its outputs")
        if held:
            ours = tf.cast(held[-1], net.dtype)
            A, n, rough[number] = tf.abs(ours), 0, False
        values[number], scales[number], counts[number] = ours, A, n
        if node.primitive is not None and np.abs(inputs[0]).max() > smallest(net.dtype):
            read.add(number)
        for old in finished:
            del values[old], scales[old]


def _outputs(net: EquivalentNet, theirs: _Execution) -> dict[int, list[tf.Tensor]]:
    """What the model's layers give as its outputs, by the node of the network that gives each.

    Of an output with a final activation, what that reads.
    """
    if len(net.graph.outputs) != len(theirs.outputs):
        raise _another(net, f"it has {len(theirs.outputs)} outputs, not {len(net.graph.outputs)}")
    layers = {id(value) for value in theirs.found.values()}
    found: dict[int, list[tf.Tensor]] = {}
    for number, out in zip(net.graph.outputs, theirs.outputs, strict=True):
        end = theirs.before.get(id(out), out)
        if number != IMAGE and id(end) in layers:
            found.setdefault(number, []).append(end)
    return found


def _scale(net: EquivalentNet, number: int, inputs: list[Any], scales: list[Any]) -> tf.Tensor:
    """A of a node: its inputs' A through |weights| and |slopes|."""
    pattern = map_pattern(
        lambda p: tf.abs(p) if is_float_array(p) else p, net.nodes[number].operation.freeze(*inputs)
    )
    return net.nodes[number].operation.absolute().push(pattern, *scales)


def _largest_ratio(error: tf.Tensor, limit: tf.Tensor, dtype: tf.DType) -> float:
    """max |error| / limit, where what underflows this dtype does not count."""
    return float(np.max(np.abs(error) / (np.asarray(limit) + smallest(dtype))))


def _another(net: EquivalentNet, found: str) -> InputError:
    return InputError(f"expected the model that '{net.name}' was made from, but {found}.")


def _saturated(name: str) -> InputError:
    return InputError(
        f"layer '{name}' interpolates in float32, whatever the model's precision, and what it "
        "reads overflows that. Expected smaller weights or images."
    )


def _difference(net: EquivalentNet, name: str, error: tf.Tensor) -> AdjointError:
    channel = int(np.argmax(np.abs(error)) % error.shape[-1])
    return AdjointError(
        f"the equivalent network of '{net.name}' differs from the model at layer '{name}', channel "
        f"{channel}, by {np.max(np.abs(error)):.3g}, which is more than rounding explains. Either "
        "the layer's code or weights were changed since, or this is a bug in adjoint_lib: please "
        "report it with the model."
    )
