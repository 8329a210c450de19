"""The equivalent network against explicit Jacobians, on random architectures.

For each architecture and one random image, in float64, the original Keras model is run layer by
layer under a plain `tf.GradientTape`, on as many copies of the image as a layer has units: the
gradient of "unit i of copy i" is then the whole Jacobian of the layer at once. So that each copy
has biases of its own, a tensor of zeros with one row for each copy is added wherever the model adds
a bias (of a layer with a kernel, a batch normalisation's beta, a `Bias`). Nothing of the
equivalent network is used for this reference.

Covered for every use of every layer with a kernel, all units:

- c, before the bias, with the scales that follow it folded in;
- the hypersurface's image part H_I = dc/dx, entry by entry;
- the bias part H_b, along a random direction of all bias variables: x_b is an affine function of
  the biases, so their Jacobian times the direction must be H_b times the change of x_b. A shared
  layer has one slice of x_b for each use, which this adds up;
- the identity c = <x | H_I> + <x_b | H_b>, all five modes, their sums, and partial sums of RM3 and
  RM4 against the original layer applied to one in-channel alone;
- H of some units pulled within their receptive fields;
- the same H at other k; <J u, w> = <u, J* w>; the model's outputs.

The constants of activations in x_b (the 6 of ReLU6) are not variables of the model; they are
covered by the identity. Not drawn: dilated transposed convolutions, which Keras itself cannot run
on a CPU, nor, in float64, pooling of volumes; interpolation but bilinear by factors of 2 and 4,
which is not exact in float32; and
3-D convolutions with padding "same" and strides far above the window, whose gradient TensorFlow
gets wrong and which the library refuses.

    ADJOINT_EXAMPLES=5000 pytest tests/frontend/test_random_architectures.py \
        --hypothesis-profile=explore --hypothesis-seed=1
"""

from __future__ import annotations

import contextlib
import functools
import gc
import itertools
import math
import os
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from unittest import mock

import keras
import numpy as np
import tensorflow as tf
from hypothesis import event, given, settings
from hypothesis import strategies as st

import adjoint_lib as al
from adjoint_lib.core import compiled, fields, windows
from adjoint_lib.core.equivalent_net import K
from adjoint_lib.core.error_bounds import absolute, rounding_scale
from adjoint_lib.core.fields import fields_of, pull_rows
from adjoint_lib.core.folding import fold
from adjoint_lib.core.network import Network
from adjoint_lib.frontend import layers
from adjoint_lib.frontend._keras_graph import asks_for_training
from adjoint_lib.frontend.lowering import lower
from adjoint_lib.frontend.rules.call import OPERATORS, RULES
from adjoint_lib.frontend.rules.moving import AUGMENTATIONS
from architectures import KINDS, Builder, Halfway, Options, Plan, build, plans

L = keras.layers
EXAMPLES = int(os.environ.get("ADJOINT_EXAMPLES", "120"))
DROPPED = ("softmax", "sigmoid", "tanh")
CLOSE = 1e-10  # of the largest entry of a layer
EXACT = 1e-12  # of the rounding scale A
FLOOR = 1e-14  # of A, or of |J|: what is left of a value that cancels altogether
KERNELS = (
    *(L.Conv1D, L.Conv2D, L.Conv3D, L.Dense, L.EinsumDense),
    *(L.DepthwiseConv1D, L.DepthwiseConv2D, L.SeparableConv1D, L.SeparableConv2D),
    *(L.Conv1DTranspose, L.Conv2DTranspose, L.Conv3DTranspose),
)
SCALINGS = (
    *(L.BatchNormalization, L.Rescaling, L.Normalization, layers.Multiplier, layers.Bias),
    *(L.Activation, L.Identity, L.ActivityRegularization),
)

SEPARABLE = (L.SeparableConv1D, L.SeparableConv2D)
ARITHMETIC = ("Add", "Subtract", "Multiply", "Divide", "TrueDivide", "Negative")
OUTER = (L.TimeDistributed, Halfway)  # with a kernel inside

examples_since_clearing = itertools.count(1)


@settings(max_examples=EXAMPLES)
@given(plans())
def test_random_architecture(plan: Plan):
    with float64(), small_windows(), some_traced(plan), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "You are using a softmax over axis")  # of one channel
        check(plan)
    if next(examples_since_clearing) % 20 == 0:
        forget()


@dataclass(frozen=True)
class Case:
    """A plan, and what may be odd about its model and image."""

    plan: Plan
    dtype: str
    ties: bool  # weights and image of small multiples of a half
    image_scale: float
    kernel_scale: float
    k: float
    subclass: bool
    training: bool | None  # what every call is told of it
    odd_names: bool
    input_dtype: str | None  # if it is given, and maybe another than that of the layers

    def build(self) -> tuple[keras.Model, np.ndarray]:
        """The model and an image."""
        policy = keras.config.dtype_policy()
        keras.config.set_dtype_policy(self.dtype)
        told = {"training": self.training, "odd_names": self.odd_names}
        told |= {"input_dtype": self.input_dtype}
        try:
            with mock.patch.multiple(Builder, **told):
                model, image = build(self.plan), self.plan.image()
        finally:
            keras.config.set_dtype_policy(policy)
        if self.ties:
            model.set_weights([np.round(2 * np.abs(w)) / 2 for w in model.get_weights()])
            image = np.round(image)
        for variable in model.weights:
            if variable.name == "kernel":
                variable.assign(self.kernel_scale * variable)
        if self.subclass:
            kind = Subclass if self.training is None else PlainSubclass
            model = kind(model.inputs, model.outputs, name="drawn")
        return model, self.image_scale * image


cases = st.builds(
    Case,
    plans(),
    st.sampled_from(["float32", "float64"]),
    st.booleans(),
    st.sampled_from([1.0, 1.0, 1e-6, 1e6, 1e-25, 1e25, 1e-40]),
    st.sampled_from([1.0, 1.0, 1.0, 1e-5, 1e5, 1e-14, 1e14]),
    st.sampled_from([1 / 8, 0.1, 1.0, 3.0, 1e-40, 1e30]),
    st.booleans(),
    st.sampled_from([None, None, False, True]),
    st.booleans(),
    st.sampled_from([None, None, None, "float32", "float64"]),
)
RANGE = ("overflow", "underflow", "in the range of")  # words of an error that are in order
CASTS = ("takes images in float32", "computes in float")  # where layers have another precision


@settings(max_examples=int(os.environ.get("ADJOINT_EXAMPLES", "25")))
@given(cases)
def test_random_architecture_against_the_model(case: Case):
    """Precisions, ties, scales, k, subclasses, training flags and names, with a second reference.

    `verify(model=...)` compares each layer with the Keras model. The model is read, or refused for
    a reason that it has.
    """
    model, image = case.build()
    trains = any(map(asks_for_training, nodes_of(model)))  # not by the default of augmentations
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            net = al.equivalent(model)
            report = al.verify(net, image, "all", k=case.k, model=model, progress=False)
        except al.UnsupportedLayer as error:
            untraced = case.subclass and "of its own computes cannot be read" in str(error)
            event("refused: a call that is not traced" if untraced else "refused: training mode")
            assert untraced or (trains and "training=True" in str(error)), error
            return
        except al.AdjointError as error:
            clash = case.odd_names and "two layers would be" in str(error)
            casts = CASTS if case.input_dtype not in (None, case.dtype) else ()
            found = [words for words in (*RANGE, *casts) if words in str(error)]
            event("refused: two layers of one name" if clash else f"refused: {found}")
            assert clash or found, error
            return
    event("verified")
    assert not trains
    for name, layer in report.layers.items():
        assert layer.worst <= layer.bound, name
    if next(examples_since_clearing) % 20 == 0:
        forget()


def nodes_of(model: keras.Model) -> Iterator:
    """Every call in a model and in those nested in it."""
    for nodes in functional(model)._nodes_by_depth.values():
        for node in nodes:
            yield node
            if isinstance(node.operation, keras.Model):
                yield from nodes_of(node.operation)


class PlainSubclass(keras.Model):
    """A functional model with a class of its own, and Keras's call."""


class Subclass(keras.Model):
    """A functional model with a class and a call of its own, which the library traces."""

    def call(self, inputs, training=None, mask=None):
        return super().call(inputs, training=training, mask=mask)


def test_every_supported_layer_is_drawn():
    """Each kind of step, on inputs of one to four axes, with every first few options."""
    drawn, operations, rng = set(), set(), np.random.default_rng(0)
    for shape in ((6,), (8, 2), (4, 4, 3), (3, 3, 3, 2)):
        builder, x = Builder(), keras.Input(shape, dtype="float32")
        for kind, _ in itertools.product(KINDS, range(20)):
            y = KINDS[kind](builder, x, Options(rng.integers(0, 60, 20)))
            operations |= {type(y._keras_history.operation).__name__} if y is not None else set()
        for number in range(44):
            y = builder.operation(x, Options([0, 0, 0, 0, *[0] * 2 * len(shape), number]))
            operations |= {type(y._keras_history.operation).__name__} if y is not None else set()
        for number in range(9):
            y = builder.operator(x, Options([0, 0, number]))
            operations |= {type(y._keras_history.operation).__name__}
        for number in range(len(AUGMENTATIONS)):
            builder.augment(x, Options([0, number]))
        drawn |= {type(layer) for layer, _ in builder.reusable}
        drawn |= {getattr(L, name.capitalize(), None) for name in builder.used}
    assert set(RULES) <= drawn
    elsewhere = {"Conv", "DepthwiseConv", "MaxPool", "AveragePool", "Resize", "ConvertToTensor"}
    elsewhere |= {"Einsum", "Ravel", "Amax", "Amin", "Abs", "TrueDivide", "Squeeze"}
    assert set(OPERATORS) - operations <= elsewhere  # tests/frontend/test_equivalent.py has them


@contextlib.contextmanager
def float64() -> Iterator[None]:
    """Keras layers are made in float64, as long as this lasts."""
    policy = keras.config.dtype_policy()
    keras.config.set_dtype_policy("float64")
    try:
        yield
    finally:
        keras.config.set_dtype_policy(policy)


@contextlib.contextmanager
def small_windows() -> Iterator[None]:
    """Tiles of 2 x 2 pixels; windows and receptive fields are kept however large they grow."""
    tiles = mock.patch.multiple(windows, TILE=2, DENSE=1.01)
    with tiles, mock.patch.object(fields, "DENSE", np.inf):
        yield


def some_traced(plan: Plan) -> contextlib.AbstractContextManager:
    """Readings are traced by `tf.function` in one of four plans: that takes half of the time."""
    if plan.seed % 4 == 0:
        return contextlib.nullcontext()
    return mock.patch.object(compiled, "_Graph", Untraced)


class Untraced:
    """In place of a trace: the function itself."""

    def __new__(cls, function: Callable) -> Callable:
        return function


def forget() -> None:
    """Free the memory of earlier models. Keras would also forget its policy with them."""
    policy = keras.config.dtype_policy()
    keras.utils.clear_session()
    keras.config.set_dtype_policy(policy)
    gc.collect()


def check(plan: Plan) -> None:
    """Everything the module's docstring lists, for one architecture."""
    model, image, rng = build(plan), plan.image(), np.random.default_rng(plan.seed)
    net = equivalent(model, plan.ending)
    reference = Reference(model, image)
    assert sorted(layer.name for layer in net.layers) == sorted(u.name for u in reference.uses)
    check_outputs(model, net, image, reference)

    directions = [rng.normal(size=b.shape) for b in reference.biases]
    change = change_of_x_b(model, net, reference.biases, directions)
    remember_patterns(net)
    values, scales = net.value(image), rounding_scale(net.freeze(image), net.layers)
    elsewhere = [dense(net.freeze(image, k)) for k in (1.0, float(rng.uniform(0.01, 3)))]
    sizes = dense(absolute(net.freeze(image)))
    for use in reference.uses:
        layer = net.layer(use.name)
        factor = folded_factor(use, values[use.name][0].numpy())
        expected = factor * use.c[0].numpy()
        H = np.asarray(net.hypersurface(image, use.name))
        H_I, H_b = H[: image.size], H[image.size :]

        floor = FLOOR * sizes[use.name].max(initial=0.0)
        J_image, J_biases = reference.jacobian(use, floor / np.abs(factor).max())
        J_image = J_image.reshape(*layer.shape, -1) * factor[:, None]
        same(H_I, np.moveaxis(J_image, -1, 0), floor, f"{use.name}: image Jacobian")
        along = sum(J @ d.reshape(-1) for J, d in zip(J_biases, directions, strict=True))
        if reference.biases:
            expected_change = factor * along.reshape(layer.shape)
            longer = floor * np.abs(change).sum()
            found = np.tensordot(change, H_b, 1)
            same(found, expected_change, longer, f"{use.name}: bias Jacobian")

        A = scales[use.name][0]
        check_identity(net, image, layer, use, H, expected, factor, A, floor, rng)
        for other in elsewhere:
            same(other[use.name], H, floor, f"{use.name}: another k")
        check_adjoint(net, image, layer, rng)
        check_fields(net, image, layer, H, floor, rng)


def check_fields(net, image, layer, H, floor, rng) -> None:
    """Some units pulled within their receptive fields, against their rows of H."""
    if reached := fields_of(net, layer.number):
        units = rng.integers(0, layer.shape, (5, 3))
        found = pull_rows(net.freeze(image), layer.number, reached, units)
        same(
            found.numpy(),
            H[(slice(None), *units.T)].T,
            floor,
            f"{layer.name}: within receptive fields",
        )


def equivalent(model: keras.Model, ending: str) -> al.EquivalentNet:
    """The equivalent network; a final softmax or the like, and nothing else, is warned of."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        net = al.equivalent(model)
    ours = [str(w.message) for w in caught if "is dropped" in str(w.message)]
    assert len(ours) == (ending != "plain")
    assert all(any(f" {name} of " in message for name in DROPPED) for message in ours)
    return net


def remember_patterns(net: al.EquivalentNet) -> None:
    """Freeze once for each k: every reading below is of the same image, and asks for it again."""
    freeze, known = net.freeze, {}

    def remembered(image: np.ndarray, k: float = K):
        if k not in known:
            known[k] = freeze(image, k)
        return known[k]

    net.freeze = remembered


def check_outputs(model, net, image: np.ndarray, reference: Reference) -> None:
    """Model, reference and equivalent network agree."""
    theirs = tf.nest.flatten(model(image[None], training=False))
    ours = tf.nest.flatten(net(image))
    for shown, expected, found in zip(theirs, reference.outputs, ours, strict=True):
        scale = max(np.abs(shown).max(), 1e-300)
        # TensorFlow interpolates in float32; the reference does not
        limit = 1e-5 if reference.rounds else CLOSE
        assert np.abs(shown[0] - expected.value[0]).max() <= limit * scale
        found = found if expected.ending is None else expected.ending(found)
        assert np.abs(found[0] - expected.value[0]).max() <= CLOSE * scale


def check_identity(net, image, layer, use, H, expected, factor, A, floor, rng) -> None:
    """c = <v | H> in every mode that fits, and the sums between modes."""
    v = np.concatenate([image.reshape(-1), net.x_b])
    size = np.abs(expected).max()

    def exact(found, expected, A, what):
        error = np.abs(found - expected)
        assert np.all(error <= EXACT * A), f"{use.name}: {what}"
        assert np.all(error <= np.maximum(CLOSE * size, FLOOR * A)), f"{use.name}: {what}"

    exact(np.tensordot(v, H, 1), expected, A, "identity")
    some = np.stack([rng.integers(0, n, 3) for n in layer.shape], -1)
    units = net.hypersurface(image, layer.name).at(some)
    exact(units.value, expected[tuple(some.T)], A[tuple(some.T)], "scattered units")
    same(units.H, H[(slice(None), *some.T)].T, floor, f"{use.name}: scattered units")
    if layer.modes == ("RM0",):
        return

    spots = tuple(range(len(layer.shape) - 1))
    everywhere = (slice(None),) * len(spots)
    RM1, RM3, RM4 = (net.hypersurface(image, layer.name, m) for m in ("RM1", "RM3", "RM4"))
    i, j = int(rng.integers(layer.shape[-1])), int(rng.integers(layer.channels))
    spot = tuple(int(rng.integers(n)) for n in layer.shape[:-1])
    total = A.sum(spots)

    exact(RM1[:].value, expected.sum(spots), total, "RM1")
    partial = factor[i] * use.alone(j)[0, ..., i].numpy()
    all_spots = RM4[(*everywhere, j, i)]
    exact(all_spots.value, partial, A[..., i], "RM4")
    exact(RM3[j, i].value, partial.sum(), total[i], "RM3")

    largest = np.abs(H).max()
    for found, sum_of, what in (
        (RM3[j, i].H, all_spots.H.sum(spots), "RM4 to RM3"),
        (RM1[i].H, RM3[:, i].H.sum(0), "RM3 to RM1"),
        (H[(slice(None), *spot, i)], RM4[(*spot, slice(None), i)].H.sum(0), "RM4 to RM2"),
        (RM1[i].H, H[..., i].sum(tuple(s + 1 for s in spots)), "RM2 to RM1"),
    ):
        count = math.prod(layer.shape[:-1])
        limit = count * max(CLOSE * largest, floor)
        assert np.abs(found - sum_of).max() <= limit, f"{use.name}: {what}"


def check_adjoint(net, image, layer, rng) -> None:
    """<J u, w> = <u, J* w>."""
    dx, dx_b = rng.normal(size=(1, *image.shape)), rng.normal(size=(1, net.x_b.size))
    w = rng.normal(size=(1, *layer.shape))
    pushed = net.tangent(image, dx, dx_b)[layer.name].numpy()
    pulled = [part.numpy() for part in net.adjoint(image, layer.name, w)]
    left = pushed * w
    right = [dx * pulled[0], dx_b * pulled[1]]
    unsigned = absolute(net.freeze(image))
    starts = unsigned.along(tf.abs(dx), tf.abs(dx_b))
    ((_, largest),) = unsigned.push(starts, [layer.number])
    scale = np.sum(largest * np.abs(w))
    assert abs(left.sum() - sum(r.sum() for r in right)) <= 1e-12 * scale, layer.name


def dense(frozen) -> dict[str, np.ndarray]:
    """H of all layers, from the stream of blocks."""
    H = {x.name: np.zeros((frozen.net.d_in, *x.shape)) for x in frozen.net.layers}
    for layer, block in frozen.hypersurfaces():
        H[layer.name][block.rows] = block.dense()
    return H


def same(found: np.ndarray, expected: np.ndarray, floor: float, what: str) -> None:
    """Equal to rounding of the largest entry; `floor` is what is left where all cancels."""
    assert found.shape == expected.shape, what
    scale = np.abs(expected).max(initial=0.0)
    worst = np.abs(found - expected).max(initial=0.0)
    assert worst <= max(CLOSE * scale, floor), f"{what}: {worst:.3g} of {scale:.3g}"


def change_of_x_b(model, net, biases: list, directions: list) -> np.ndarray:
    """By how much x_b changes with the biases: to rounding, because it is affine in them."""
    before = [b.numpy() for b in biases]
    for bias, value, direction in zip(biases, before, directions, strict=True):
        bias.assign(value + direction)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "the final .* is dropped")
        moved = Network("moved", fold(lower(model, "float64")), "float64").x_b
    for bias, value in zip(biases, before, strict=True):
        bias.assign(value)
    return moved - net.x_b


# ------------------------------------------------------------------ the reference


@dataclass
class Use:
    """One use of a layer with a kernel in the original model.

    Attributes:
        c: (n, *shape), what the kernel alone gives, on the tape.
        kernel_alone: the same as a function of the layer's input.
        factors: the products of scales that directly follow c, one (c_out,) for each of 0, 1, ...
            scales: what folding may multiply the kernel with.
    """

    name: str
    x: tf.Tensor
    c: tf.Tensor
    kernel_alone: Callable
    out: tf.Tensor | None
    factors: list[np.ndarray] = field(default_factory=list)

    def alone(self, channel: int) -> tf.Tensor:
        """The part of c that comes from one in-channel."""
        mask = np.zeros(self.x.shape[-1])
        mask[channel] = 1.0
        return self.kernel_alone(self.x[:1] * mask)


@dataclass
class Output:
    value: tf.Tensor
    ending: Callable | None


@dataclass
class Made:
    """What one call read and made; `affine` computes it again on another tensor, if it is one."""

    inputs: list[tf.Tensor]
    out: tf.Tensor
    affine: Callable | None
    ending: Callable | None


class Reference:
    """The original model run on copies of one image, under a tape, with a bias for each copy."""

    def __init__(self, model: keras.Model, image: np.ndarray):
        self.copies = copies_for(model)
        self.images = tf.constant(np.repeat(image[None], self.copies, 0))
        self.biases = [bias for layer in leaves(model) if (bias := bias_of(layer)) is not None]
        self.zeros = {id(b): tf.zeros((self.copies, *b.shape), tf.float64) for b in self.biases}
        self.uses: list[Use] = []
        self.calls: list[Made] = []
        self.count: Counter[str] = Counter()
        self.rounds = False
        with tf.GradientTape(persistent=True) as self.tape:
            self.tape.watch([self.images, *self.zeros.values()])
            outputs = tf.nest.flatten(self.run(model, self.images, ""))
        endings = {id(call.out): call.ending for call in self.calls}
        self.outputs = [Output(o, endings.get(id(o))) for o in outputs]
        self.find_factors(outputs)

    def jacobian(self, use: Use, floor: float) -> tuple[np.ndarray, list[np.ndarray]]:
        """dc/dx (units, pixels), and dc/d(bias) (units, size) for each bias variable.

        `floor` is what may be left of an entry that cancels altogether.
        """
        units = math.prod(use.c.shape[1:])
        with self.tape:
            flat = tf.reshape(use.c, (self.copies, -1))
            each_its_own = tf.reduce_sum(tf.linalg.diag_part(flat[:units]))
        zeros = [self.zeros[id(b)] for b in self.biases]
        variables = [b.value for b in self.biases]
        J_image, *rest = self.tape.gradient(
            each_its_own, [self.images, *zeros, *variables], unconnected_gradients="zero"
        )
        J_biases, gradients = rest[: len(zeros)], rest[len(zeros) :]
        for J, gradient in zip(J_biases, gradients, strict=True):  # the real variables: all copies
            atol = max(1e-9 * np.abs(J).max(initial=0.0), units * floor)
            np.testing.assert_allclose(tf.reduce_sum(J, 0), gradient, rtol=1e-9, atol=atol)
        return (
            J_image.numpy()[:units].reshape(units, -1),
            [J.numpy()[:units].reshape(units, -1) for J in J_biases],
        )

    # -------------------------------------------------------------- running the model

    def run(self, model: keras.Model, inputs, prefix: str):
        return functional(model)._run_through_graph(
            inputs, lambda operation: functools.partial(self.call, operation, prefix)
        )

    def call(self, operation, prefix: str, *args, **kwargs):
        name = prefix + operation.name
        self.count[name] += 1
        name = name if self.count[name] == 1 else f"{name}#{self.count[name]}"
        if isinstance(operation, keras.Model):
            return self.run(operation, args[0], f"{name}/")
        if kwargs.get("training"):  # as augmentation layers have it by default
            kwargs = {**kwargs, "training": False}
        inputs = [a for a in tf.nest.flatten([args, kwargs]) if isinstance(a, tf.Tensor)]
        out = self.compute(operation, name, args, kwargs)
        scaling = affine(operation, args, kwargs, out)
        self.calls.append(Made(inputs, out, scaling, ending(operation)))
        return out

    def compute(self, operation, name: str, args, kwargs):
        if isinstance(operation, KERNELS):
            return self.kernel_layer(operation, name, *args)
        resizes = isinstance(operation, (L.Resizing, L.UpSampling2D))  # and augments nothing
        if resizes and operation.interpolation == "bilinear":
            self.rounds = True
            return interpolate(operation, *args)
        if isinstance(operation, L.TimeDistributed):
            (x,) = args
            steps = [self.call(operation.layer, f"{name}/", x[:, t]) for t in range(x.shape[1])]
            return tf.stack(steps, 1)
        if isinstance(operation, Halfway):
            (x,) = args
            return 0.5 * tf.nn.relu(self.call(operation.dense, f"{name}/", x)) + x
        out = operation(*args, **kwargs)
        if type(operation).__name__ == "Matmul":
            x, kernel = args
            self.uses.append(Use(name, x, out, lambda x: tf.tensordot(x, kernel, 1), out))
        if isinstance(operation, L.BatchNormalization) and operation.center:
            out += self.per_copy(operation.beta, out, operation.axis)
        elif isinstance(operation, layers.Bias):
            out += self.per_copy(operation.bias, out, -1)
        return out

    def kernel_layer(self, layer, name: str, x: tf.Tensor) -> tf.Tensor:
        """The layer's own output; what it is before bias and activation is noted as c."""
        activation, y = layer.activation, None

        def tap(before: tf.Tensor) -> tf.Tensor:
            nonlocal y
            y = before
            own = 0.0 if bias_of(layer) is None else self.per_copy(layer.bias, y, -1)
            return activation(y + own)

        layer.activation = tap
        try:
            out = layer(x)
        finally:
            layer.activation = activation
        c = without_bias(layer, x)  # y less its bias would have lost digits
        linear = activation is keras.activations.linear
        if not isinstance(layer, SEPARABLE):
            alone = functools.partial(without_bias, layer)
            self.uses.append(Use(name, x, c, alone, out if linear else None))
            return out
        first, second = depthwise_part(layer), pointwise_part(layer)
        middle = first(x)
        self.uses.append(Use(f"{name}/depthwise", x, middle, first, None))
        self.uses.append(Use(f"{name}/pointwise", middle, c, second, out if linear else None))
        return out

    def per_copy(self, bias: keras.Variable, out: tf.Tensor, axis: int) -> tf.Tensor:
        """The zeros of a bias, shaped to be added to `out` along `axis`."""
        shape = [1] * len(out.shape)
        shape[0], shape[axis] = self.copies, bias.shape[0]
        return tf.reshape(self.zeros[id(bias)], shape)

    # -------------------------------------------------------------- scales that follow a kernel

    def find_factors(self, outputs: list[tf.Tensor]) -> None:
        """Follow each kernel's output while one layer reads it and only scales and shifts it."""
        readers: dict[int, list[Made | None]] = {}
        for call in self.calls:
            for tensor in call.inputs:
                if tensor is not call.out:
                    readers.setdefault(id(tensor), []).append(call)
        for tensor in outputs:
            readers.setdefault(id(tensor), []).append(None)
        for use in self.uses:
            factor, tensor = np.ones(use.c.shape[-1]), use.out
            use.factors = [factor]
            while tensor is not None and len(found := readers.get(id(tensor), [])) == 1:
                (reader,) = found
                scale = None if reader is None else channel_scale(reader, tensor)
                if scale is None:
                    break
                factor, tensor = factor * scale, reader.out
                use.factors.append(factor)


def folded_factor(use: Use, c: np.ndarray) -> np.ndarray:
    """The product of following scales that the equivalent network has put into this kernel."""
    original = use.c[0].numpy()
    size = np.abs(original).max()
    for factor in reversed(use.factors):
        if np.abs(c - factor * original).max() <= CLOSE * size * np.abs(factor).max():
            return factor
    raise AssertionError(f"{use.name}: c is not that of the original model, nor scaled")


def channel_scale(reader: Made, tensor: tf.Tensor) -> np.ndarray | None:
    """By how much a layer multiplies each channel, if that is all it does, and shifting."""
    if reader.affine is None:
        return None
    scale = reader.affine(tf.ones_like(tensor[:1])) - reader.affine(tf.zeros_like(tensor[:1]))
    if scale.shape != tensor[:1].shape:
        return None
    rows = scale.numpy().reshape(-1, scale.shape[-1])
    return rows[0] if np.allclose(rows, rows[:1], rtol=1e-12, atol=0) else None


def affine(operation, args, kwargs, out: tf.Tensor | list[tf.Tensor]) -> Callable | None:
    """The operation as a function of its only tensor, if it scales and shifts entries.

    So does one that moves entries, where it leaves all in their places.
    """
    name = type(operation).__name__
    arithmetic = not isinstance(operation, L.Layer) and name in ARITHMETIC
    if isinstance(operation, L.Activation):
        arithmetic = operation.activation is keras.activations.linear
    elif isinstance(operation, SCALINGS) or "Dropout" in name or "Noise" in name:
        arithmetic = True
    tensors = [a for a in tf.nest.flatten([args, kwargs]) if isinstance(a, tf.Tensor)]
    if len(tensors) != 1 or not isinstance(out, tf.Tensor):
        return None

    def apply(x: tf.Tensor) -> tf.Tensor:
        replaced = tf.nest.map_structure(lambda a: x if a is tensors[0] else a, [args, kwargs])
        return operation(*replaced[0], **replaced[1])

    (x,) = tensors
    return apply if arithmetic or (equal(out, x) and equal(apply(-x[:1]), -x[:1])) else None


def equal(a: tf.Tensor, b: tf.Tensor) -> bool:
    return a.shape == b.shape and bool(tf.reduce_all(a == b))


def without_bias(layer, x: tf.Tensor) -> tf.Tensor:
    """A layer's kernel alone: no bias, no activation."""
    if isinstance(layer, (L.Dense, L.EinsumDense)):  # which adds its bias whatever `use_bias` says
        return keras.ops.matmul(x, layer.kernel)
    activation, use_bias = layer.activation, layer.use_bias
    layer.activation, layer.use_bias = keras.activations.linear, False
    try:
        return layer(x)
    finally:
        layer.activation, layer.use_bias = activation, use_bias


def depthwise_part(layer) -> Callable:
    def apply(x):
        if isinstance(layer, L.SeparableConv1D):
            return in_a_plane(layer, x)
        return keras.ops.depthwise_conv(
            x,
            layer.depthwise_kernel,
            layer.strides,
            layer.padding,
            "channels_last",
            layer.dilation_rate,
        )

    return apply


def in_a_plane(layer, x: tf.Tensor) -> tf.Tensor:
    """The depthwise part of a separable convolution of sequences, as images one pixel high."""
    kernel, stride = layer.depthwise_kernel.value[None], layer.strides[0]
    rate = (1, layer.dilation_rate[0])
    return tf.nn.depthwise_conv2d(
        x[:, None], kernel, (1, stride, stride, 1), layer.padding.upper(), dilations=rate
    )[:, 0]


def pointwise_part(layer) -> Callable:
    kernel = layer.pointwise_kernel
    return lambda x: keras.ops.matmul(x, tf.reshape(kernel, kernel.shape[-2:]))


def ending(operation) -> Callable | None:
    """What a final operation does to the values that the equivalent network gives."""
    if type(operation).__name__ in ("Softmax", "Tanh"):
        return operation
    activation = getattr(operation, "activation", None)
    return activation if getattr(activation, "__name__", "") in DROPPED else None


def interpolate(layer, x: tf.Tensor) -> tf.Tensor:
    """Bilinear upsampling in float64: its matrix is read off the layer, where it is exact."""
    pixels = math.prod(x.shape[1:])
    basis = tf.reshape(tf.eye(pixels, dtype=tf.float64), (pixels, *x.shape[1:]))
    matrix = layer(basis)
    out = tf.matmul(tf.reshape(x, (-1, pixels)), tf.reshape(matrix, (pixels, -1)))
    return tf.reshape(out, (-1, *matrix.shape[1:]))


def bias_of(layer) -> keras.Variable | None:
    """The variable that this layer adds."""
    if isinstance(layer, L.BatchNormalization):
        return layer.beta if layer.center else None
    if isinstance(layer, KERNELS) and not getattr(layer, "use_bias", True):
        return None
    return layer.bias if isinstance(layer, (*KERNELS, layers.Bias)) else None


def leaves(model: keras.Model) -> list:
    """Every layer once, those of nested models too."""
    found = []
    for operation in functional(model).operations:
        found += leaves(operation) if isinstance(operation, keras.Model) else [operation]
        if isinstance(operation, OUTER):
            found.append(getattr(operation, "layer", None) or operation.dense)
    return list({id(o): o for o in found}.values())


def functional(model: keras.Model):
    return getattr(model, "_functional", None) or model


def copies_for(model: keras.Model) -> int:
    """At least as many as any layer has units, and not the length of an axis: Keras takes a term
    with one number for each image for a bias, where there are as many images as channels."""
    lengths = {
        length
        for layer in leaves(model)
        for node in layer._inbound_nodes
        for tensor in (*node.input_tensors, *node.outputs)
        for length in tensor.shape[1:]
    }
    return next(n for n in itertools.count(most_units(model)) if n not in lengths)


def most_units(model: keras.Model) -> int:
    """The largest number of entries that any layer with a kernel gives."""
    sizes = [1]
    for layer in leaves(model):
        if isinstance(layer, (*KERNELS, *OUTER)) or type(layer).__name__ == "Matmul":
            for node in layer._inbound_nodes:
                sizes.append(math.prod(node.outputs[0].shape[1:]))
                if isinstance(layer, SEPARABLE):
                    multiplier = layer.depthwise_kernel.shape[-1] * layer.depthwise_kernel.shape[-2]
                    sizes.append(math.prod(node.outputs[0].shape[1:-1]) * multiplier)
    return max(sizes)
