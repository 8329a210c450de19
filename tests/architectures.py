"""Random architectures of piecewise-linear Keras layers, for hypothesis.

A `Plan` is a list of small choices. `build` applies those that fit the shape at hand, so that every
plan is a valid model, and dropping a step or lowering a number gives a simpler one: shrinking works
without rejecting anything. In every list of options the simplest comes first.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import keras
import numpy as np
from hypothesis import strategies as st

from adjoint_lib.experiments import models
from adjoint_lib.frontend import layers
from adjoint_lib.frontend.activations import PIECEWISE
from adjoint_lib.frontend.rules.moving import AUGMENTATIONS

L = keras.layers
LARGEST = 220  # entries of one feature map: the whole Jacobian of a layer stays small
ACTIVATIONS = [None, *PIECEWISE]


@dataclass(frozen=True)
class Step:
    """A kind of layer, and the numbers that settle its options in turn."""

    kind: str
    numbers: tuple[int, ...] = ()


@dataclass(frozen=True)
class Plan:
    """A model: its input shape, steps, ending, the seed of its weights and image, their scale."""

    shape: tuple[int, ...]
    steps: tuple[Step, ...]
    ending: str = "plain"
    seed: int = 0
    scale: float = 1.0

    def image(self) -> np.ndarray:
        return self.scale * np.random.default_rng(self.seed).normal(size=self.shape)


def build(plan: Plan) -> keras.Model:
    """The Keras model of a plan, in float64, with random weights. Layers are named by their kind.

    The caller sets the float64 policy; an input must say float64 by itself.
    """
    builder = Builder()
    x = inputs = builder.input(plan.shape, "image")
    x = builder.run(plan.steps, x)
    if not builder.kernels:
        x = builder.dense(x, Options())
    x = ENDINGS[plan.ending](builder, x)
    outputs = [x, *(t for t in builder.outputs if t is not x)]
    outputs = list({id(t): t for t in outputs}.values())
    model = keras.Model(inputs, outputs if len(outputs) > 1 else x, name="drawn")
    return models.randomise(model, plan.seed)


class Options:
    """Reads the numbers of a step: each call takes the next one to choose among its options."""

    def __init__(self, numbers: Sequence[int] = ()):
        self.left = list(numbers)

    def __call__(self, options: Sequence):
        return options[(self.left.pop(0) if self.left else 0) % len(options)]

    def each(self, count: int, options: Sequence) -> tuple:
        """`count` choices: all equal, or one for each axis."""
        if self([True, False]):
            return (self(options),) * count
        return tuple(self(options) for _ in range(count))


@dataclass
class Builder:
    """Applies steps to Keras tensors, and remembers what later steps may refer to."""

    used: dict[str, int] = field(default_factory=dict)
    outputs: list = field(default_factory=list)  # of the model that is being built
    seen: list = field(default_factory=list)  # tensors of that model: partners for merging
    reusable: list = field(default_factory=list)  # (layer, shape it takes) of that model
    kernels: int = 0
    training: ClassVar[bool | None] = None  # what calls are told of it, if anything
    odd_names: ClassVar[bool] = False
    input_dtype: ClassVar[str | None] = None  # by default that of the layers

    def input(self, shape: tuple[int, ...], name: str):
        dtype = self.input_dtype or keras.config.dtype_policy().compute_dtype
        return keras.Input(shape, dtype=dtype, name=name)

    def run(self, steps: Sequence[Step], x):
        """Apply the steps that fit."""
        steps = list(steps)
        while steps:
            step, kernels = steps.pop(0), self.kernels
            options = Options(step.numbers)
            if step.kind == "nested":
                inner = [steps.pop(0) for _ in range(min(len(steps), options([1, 2, 3])))]
                y = self.nested(x, inner, options)
            else:
                y = KINDS[step.kind](self, x, options)
            if y is None or size(y) > LARGEST:
                self.kernels = kernels
            else:
                self.seen.append(x)
                x = y
        return x

    def name(self, kind: str) -> str:
        self.used[kind] = count = self.used.get(kind, 0) + 1
        if self.odd_names:  # the second layer is called as the second use of the first one is
            return f"ä {kind}, %s" if count == 1 else f"ä {kind}, %s#{count}"
        return f"{kind}{count}"

    def apply(self, kind: type, x, *args, **options):
        """A new layer of this kind on x; it may be used again."""
        layer = kind(*args, name=self.name(kind.__name__.lower()), **options)
        shape = tuple(x.shape[1:])
        self.reusable.append((layer, shape))
        return layer(x, **self.flags(layer))

    def flags(self, layer) -> dict[str, bool]:
        """What a call of this layer or model is told of training."""
        found = inspect.signature(layer.call).parameters.get("training")
        takes = found is not None and found.default is not True  # as that of augmentations is
        return {"training": self.training} if takes and self.training is not None else {}

    def kernel(self, kind: type, x, *args, **options):
        self.kernels += 1
        return self.apply(kind, x, *args, **options)

    # -------------------------------------------------------------- layers with a kernel

    def conv(self, x, pick: Options):
        rank = len(x.shape) - 2
        if rank < 1:
            return self.dense(x, pick)
        filters, bias, activation = self.head(pick)
        window = pick.each(rank, [1, 2, 3])
        strides = pick.each(rank, [1, 2, 3])
        dilation = pick.each(rank, [1, 2, 3])
        if max(strides) > 1:
            dilation = (1,) * rank
        padding = pick(["same", "valid", "causal"] if rank == 1 else ["same", "valid"])
        groups = pick([1, 1, 1, 2, 1, 1, 4])
        if x.shape[-1] % groups or filters % groups:
            groups = 1
        if padding == "valid" and not fits(x, window, dilation):
            padding = "same"
        strides = self.defined(strides, window, padding)
        return self.kernel(
            [L.Conv1D, L.Conv2D, L.Conv3D][rank - 1],
            x,
            filters,
            window,
            strides,
            padding,
            dilation_rate=dilation,
            groups=groups,
            use_bias=bias,
            activation=activation,
        )

    def transposed(self, x, pick: Options):
        """Without dilation: Keras cannot run a dilated transposed convolution on a CPU."""
        rank = len(x.shape) - 2
        if rank < 1:
            return None
        filters, bias, activation = self.head(pick)
        window = pick.each(rank, [1, 2, 3])
        strides = pick.each(rank, [1, 2, 3])
        padding = pick(["same", "valid"])
        strides = self.defined(strides, window, padding)
        extra = None
        if min(strides) > 1 and pick([False, True]):
            # "same" with an even window needs at least one entry more, or Keras cannot run it
            least = [1 if padding == "same" and w % 2 == 0 else 0 for w in window]
            extra = tuple(min(pick([a, 1, 2]), s - 1) for a, s in zip(least, strides, strict=True))
        grown = math.prod(n * s + w for n, s, w in zip(x.shape[1:-1], strides, window, strict=True))
        if grown * filters > LARGEST:
            return None
        return self.kernel(
            [L.Conv1DTranspose, L.Conv2DTranspose, L.Conv3DTranspose][rank - 1],
            x,
            filters,
            window,
            strides,
            padding,
            output_padding=extra,
            use_bias=bias,
            activation=activation,
        )

    def depthwise(self, x, pick: Options):
        if len(x.shape) not in (3, 4):
            return None
        _, bias, activation = self.head(pick)
        window, strides, dilation, padding = self.equal_strides(x, pick)
        return self.kernel(
            [L.DepthwiseConv1D, L.DepthwiseConv2D][len(x.shape) - 3],
            x,
            window,
            strides,
            padding,
            depth_multiplier=pick([1, 2]),
            dilation_rate=dilation,
            use_bias=bias,
            activation=activation,
        )

    def separable(self, x, pick: Options):
        if len(x.shape) not in (3, 4):
            return None
        filters, bias, activation = self.head(pick)
        window, strides, dilation, padding = self.equal_strides(x, pick)
        return self.kernel(
            [L.SeparableConv1D, L.SeparableConv2D][len(x.shape) - 3],
            x,
            filters,
            window,
            strides,
            padding,
            depth_multiplier=pick([1, 2]),
            dilation_rate=dilation,
            use_bias=bias,
            activation=activation,
        )

    def block(self, x, pick: Options):
        """A kernel with one or two scalings after it, as folding meets them, then an activation."""
        kernel = pick([self.conv, self.dense, self.depthwise, self.transposed])
        y = kernel(x, Options([pick([1, 2, 3]), pick([0, 1]), 0, *pick.left]))
        if y is None:
            return None
        scalings = ["batch_norm", "affine", "affine batch_norm", "batch_norm idle affine"]
        for scaling in pick(scalings).split():
            y = getattr(self, scaling)(y, pick)
        return self.activation(y, pick) if pick([False, True]) else y

    def dense(self, x, pick: Options):
        units, bias, activation = self.head(pick)
        return self.kernel(L.Dense, x, units, use_bias=bias, activation=activation)

    def einsum_dense(self, x, pick: Options):
        """A kernel over the last axis, with or without a bias."""
        units, _, activation = self.head(pick)
        axes = "abcdef"[: len(x.shape) - 1]  # Keras may mistake the shape that dots stand for
        equation, shape = f"{axes}x,xy->{axes}y", (*x.shape[1:-1], units)
        bias = pick(["y", None])
        self.kernels += 1
        return self.apply(L.EinsumDense, x, equation, shape, bias_axes=bias, activation=activation)

    def at_each_time(self, x, pick: Options):
        """A layer used once for each step of the first axis."""
        rank = len(x.shape) - 2
        if not 1 <= rank <= 3 or x.shape[1] > 5:
            return None
        units, bias, activation = self.head(pick)
        options = {"use_bias": bias, "activation": activation, "name": self.name("step")}
        if rank > 1 and pick([False, True]):
            window = pick([2, 1, 3])
            inner = [L.Conv1D, L.Conv2D][rank - 2](units, window, padding="same", **options)
        elif pick([True, True, False]):
            inner = L.Dense(units, **options)
        else:
            return self.apply(L.TimeDistributed, x, L.LeakyReLU(0.3, name=self.name("steprelu")))
        return self.kernel(L.TimeDistributed, x, inner)

    def own_layer(self, x, pick: Options):
        """A layer of one's own, which the library traces."""
        return self.kernel(Halfway, x, x.shape[-1])

    def product(self, x, pick: Options):
        """keras.ops.matmul with a constant."""
        self.kernels += 1
        units = pick([1, 2, 3])
        kernel = np.random.default_rng(pick(range(60))).normal(size=(x.shape[-1], units))
        return keras.ops.matmul(x, kernel)

    @staticmethod
    def head(pick: Options) -> tuple[int, bool, str | None]:
        return pick([1, 2, 3, 4]), pick([False, True]), pick([None, None, *ACTIVATIONS])

    @staticmethod
    def defined(strides: tuple, window: tuple, padding: str) -> tuple:
        """Strides for which TensorFlow's 3-D convolution has the gradient that it says it has."""
        if len(strides) < 3 or padding != "same":
            return strides
        return tuple(min(s, w + 1) for s, w in zip(strides, window, strict=True))

    @staticmethod
    def equal_strides(x, pick: Options):
        """Window, strides (equal, as TensorFlow wants them here), dilation, padding."""
        rank = len(x.shape) - 2
        window, stride = pick.each(rank, [1, 2, 3]), pick([1, 2, 3])
        dilation = pick.each(rank, [1, 2, 3]) if stride == 1 else (1,) * rank
        padding = pick(["same", "valid"])
        if padding == "valid" and not fits(x, window, dilation):
            padding = "same"
        return window, (stride,) * rank, dilation, padding

    # -------------------------------------------------------------- activations and scalings

    def activation(self, x, pick: Options):
        kind = pick(["relu", "leaky", "named", "prelu", "family"])
        if kind == "relu":
            return self.apply(L.ReLU, x)
        if kind == "leaky":
            return self.apply(L.LeakyReLU, x, negative_slope=pick([0.5, 0.1, 0.3]))
        if kind == "named":
            return self.apply(L.Activation, x, pick([*PIECEWISE, "linear"]))
        if kind == "prelu":
            axes = [a for a in range(1, len(x.shape) - 1) if pick([True, False])]
            return self.apply(L.PReLU, x, shared_axes=axes or None)
        return self.apply(
            L.ReLU,
            x,
            max_value=pick([None, 1.0, 0.3, 6.0]),
            negative_slope=pick([0.0, 0.5, 0.1]),
            threshold=pick([0.0, 0.5, 0.2]),
        )

    def batch_norm(self, x, pick: Options):
        center, scale = pick([True, True, False]), pick([True, True, False])
        axis = pick([-1, -1, -1, 1])
        return self.apply(
            L.BatchNormalization,
            x,
            axis=axis,
            center=center,
            scale=scale,
            epsilon=pick([1e-3, 0.1]),
        )

    def affine(self, x, pick: Options):
        kind = pick(["bias", "multiplier", "rescaling", "normalization", "given"])
        if kind == "bias":
            return self.apply(layers.Bias, x)
        if kind == "multiplier":
            return self.apply(layers.Multiplier, x)
        if kind == "rescaling":
            scale, offset = pick([2.0, -0.3, 1.0]), pick([0.0, 0.7, -0.2])
            return self.apply(L.Rescaling, x, scale, offset)
        invert = pick([False, True])
        if kind == "normalization":  # `randomise` gives it statistics
            return self.apply(L.Normalization, x, axis=-1, invert=invert)
        channels = range(x.shape[-1])
        mean, variance = [0.3 * c - 0.4 for c in channels], [0.5 + 0.2 * c for c in channels]
        return self.apply(L.Normalization, x, axis=-1, mean=mean, variance=variance, invert=invert)

    def operator(self, x, pick: Options):
        """Arithmetic with constants, written on the tensor itself."""
        constant = pick([2.0, -0.7, 0.3])
        if pick([False, True]):
            constant = constant * (1 + np.arange(x.shape[-1], dtype=float))
        operation: Callable = pick(
            [
                lambda: x * constant,
                lambda: x + constant,
                lambda: x - constant,
                lambda: x / constant,
                lambda: -x,
                lambda: keras.ops.subtract(constant, x),
                lambda: keras.ops.multiply(constant, x),
                lambda: keras.ops.add(constant, x),
                lambda: keras.ops.divide(x, constant),
            ]
        )
        return operation()

    def operation(self, x, pick: Options):
        """An operation of keras.ops on one tensor and constants."""
        ops, rank = keras.ops, len(x.shape)
        axis, other = pick(range(1, rank)), pick(range(1, rank))
        constant = pick([0.3, 0.0, -0.7])
        several = constant * (1 + np.arange(x.shape[-1], dtype=float))
        keep, n = pick([True, False]), x.shape[axis]
        before = (slice(None),) * axis
        margins = [(0, 0), *((pick([0, 1]), pick([1, 0])) for _ in range(rank - 1))]
        shape = tuple(x.shape[1:])
        operation: Callable = pick(
            [
                lambda: ops.relu(x),
                lambda: ops.leaky_relu(x, 0.3),
                lambda: ops.relu6(x),
                lambda: ops.hard_tanh(x),
                lambda: ops.hard_sigmoid(x),
                lambda: ops.sparse_sigmoid(x),
                lambda: ops.soft_shrink(x, 0.2),
                lambda: keras.activations.relu(x, 0.1, 2.0, 0.25),
                lambda: ops.maximum(x, constant),
                lambda: ops.minimum(several, x),
                lambda: ops.maximum(x, -x),
                lambda: ops.abs(x),
                lambda: ops.absolute(x),
                lambda: ops.clip(x, -0.4, 0.8),
                lambda: ops.mean(x, tuple({axis, other}), keepdims=keep),
                lambda: ops.sum(x, tuple({axis, other}), keepdims=keep),
                lambda: ops.max(x, axis, keepdims=keep),
                lambda: ops.min(x, axis, keepdims=keep),
                lambda: ops.max(x, axis, keepdims=keep, initial=constant),
                lambda: ops.min(x, axis, keepdims=keep, initial=constant),
                lambda: ops.concatenate([x, x], axis),
                lambda: ops.stack([x, x], axis),
                lambda: ops.reshape(x, (-1, *shape[1:], shape[0])),
                lambda: ops.swapaxes(x, axis, other),
                lambda: ops.moveaxis(x, axis, other),
                lambda: ops.transpose(x, (0, *range(rank - 1, 0, -1))),
                lambda: ops.pad(x, margins),
                lambda: ops.pad(x, margins, mode="symmetric"),
                lambda: x[(*before, slice(None, None, 2))],
                lambda: x[(*before, slice(1, None))] if n > 1 else None,
                lambda: x[(*before, slice(None, None, -1))],
                lambda: x[(*before, n - 1)],
                lambda: x[(*before, None)],
                lambda: ops.split(x, [n // 2], axis)[1],
                lambda: ops.subtract(*ops.split(x, 2, axis)) if n % 2 == 0 else None,
                lambda: ops.unstack(x, n, axis)[0],
                lambda: ops.flip(x, axis),
                lambda: ops.roll(x, 1, axis),
                lambda: ops.repeat(x, 2, axis),
                lambda: ops.tile(x, [2 if a == axis else 1 for a in range(rank)]),
                lambda: ops.take(x, [n - 1, 0, 0], axis),
                lambda: ops.expand_dims(x, axis),
                lambda: ops.squeeze(x[(*before, slice(0, 1))], axis),
                lambda: ops.cast(x, x.dtype),
            ]
        )
        y = operation()
        return y if y is None or len(y.shape) in (2, 3, 4, 5) else None

    def augment(self, x, pick: Options):
        """Augmentation layers, which do nothing at inference."""
        if len(x.shape) != 4 or x.shape[-1] != 3:
            return None
        if pick([False, False, True]):
            return self.apply(L.RandomCrop, x, x.shape[1], x.shape[2])
        kind = getattr(L, pick([name for name in AUGMENTATIONS if hasattr(L, name)]))
        numbers = {"RandomPosterization": (4,), "RandomTranslation": (0.2, 0.2)}
        plain = "RandomFlip RandomColorJitter RandomErasing RandomGaussianBlur RandomGrayscale "
        plain += "RandomInvert RandomPerspective RandomShear RandomElasticTransform AugMix CutMix "
        plain += "MixUp RandAugment Equalization"
        given = () if kind.__name__ in plain.split() else numbers.get(kind.__name__, (0.2,))
        return self.apply(kind, x, *given)

    def resize(self, x, pick: Options):
        """Other heights and widths; bilinear where its weights are exact in float32."""
        if len(x.shape) == 2:
            return self.apply(L.RepeatVector, x, pick([2, 1, 3]))
        if len(x.shape) == 5:
            return self.apply(L.UpSampling3D, x, pick.each(3, [1, 2, 3]))
        if len(x.shape) != 4:
            return None
        height, width = x.shape[1:3]
        kind = pick(["nearest", "bilinear", "crop", "aspect"])
        if kind == "crop":
            return self.apply(
                L.CenterCrop, x, pick(range(1, height + 1)), pick(range(1, width + 1))
            )
        if kind == "bilinear":
            factors = pick.each(2, [2, 1, 4])
            return self.apply(L.Resizing, x, height * factors[0], width * factors[1])
        options = {pick(["crop_to_aspect_ratio", "pad_to_aspect_ratio"]): True}
        return self.apply(
            L.Resizing,
            x,
            pick(range(1, 9)),
            pick(range(1, 9)),
            interpolation="nearest",
            **(options if kind == "aspect" else {}),
        )

    def idle(self, x, pick: Options):
        """Layers that do nothing at inference."""
        rank = len(x.shape) - 2
        spatial = [L.SpatialDropout1D, L.SpatialDropout2D, L.SpatialDropout3D]
        kinds = [L.Dropout, L.GaussianNoise, L.GaussianDropout, L.AlphaDropout]
        kind = pick([*kinds, *spatial[rank - 1 : rank]] if rank else kinds)
        if pick([False, False, True]):
            return self.apply(pick([L.Identity, L.ActivityRegularization]), x)
        return self.apply(kind, x, 0.3)

    # -------------------------------------------------------------- pooling

    def pool(self, x, pick: Options):
        rank = len(x.shape) - 2
        if rank not in (1, 2) and not (rank == 3 and x.dtype == "float32"):
            return None  # TensorFlow pools volumes on a CPU in float32 only
        largest = pick([True, False])
        kinds = [L.MaxPooling1D, L.MaxPooling2D, L.MaxPooling3D]
        averages = [L.AveragePooling1D, L.AveragePooling2D, L.AveragePooling3D]
        kinds = kinds if largest else averages
        window, strides = pick.each(rank, [2, 1, 3]), pick.each(rank, [2, 1, 3])
        padding = pick(["same", "valid"])
        if padding == "valid" and not fits(x, window, (1,) * rank):
            padding = "same"
        window, strides = (window, strides) if rank > 1 else (window[0], strides[0])
        return self.apply(kinds[rank - 1], x, window, strides, padding)

    def global_pool(self, x, pick: Options):
        rank = len(x.shape) - 2
        if rank < 1:
            return None
        largest, keep = pick([False, True]), pick([True, False])
        kinds = [L.GlobalMaxPooling1D, L.GlobalMaxPooling2D, L.GlobalMaxPooling3D]
        if not largest:
            kinds = [
                L.GlobalAveragePooling1D,
                L.GlobalAveragePooling2D,
                L.GlobalAveragePooling3D,
            ]
        return self.apply(kinds[rank - 1], x, keepdims=keep)

    # -------------------------------------------------------------- moving entries about

    def margins(self, x, pick: Options):
        rank = len(x.shape) - 2
        if rank < 1:
            return None
        pairs = [(pick([0, 1, 2]), pick([1, 0, 2])) for _ in range(rank)]
        crop = pick([False, True])
        if crop and any(sum(p) >= n for p, n in zip(pairs, x.shape[1:-1], strict=True)):
            return None
        kinds = [L.ZeroPadding1D, L.ZeroPadding2D, L.ZeroPadding3D]
        kinds = [L.Cropping1D, L.Cropping2D, L.Cropping3D] if crop else kinds
        return self.apply(kinds[rank - 1], x, pairs[0] if rank == 1 else tuple(pairs))

    def pad_channels(self, x, pick: Options):
        return self.apply(layers.PadChannels, x, x.shape[-1] + pick([1, 2, 3]))

    def reshape(self, x, pick: Options):
        """Flatten, or any shape of one to four axes with as many entries."""
        rank = pick([1, 2, 3, 4])
        if rank == 1:
            return self.apply(L.Flatten, x)
        left, shape = size(x), []
        for _ in range(rank - 1):
            shape.append(pick([d for d in range(1, left + 1) if left % d == 0]))
            left //= shape[-1]
        return self.apply(L.Reshape, x, (left, *shape))

    def permute(self, x, pick: Options):
        left, order = list(range(1, len(x.shape))), []
        while left:
            order.append(left.pop(pick([-1, 0, 1]) % len(left)))
        return self.apply(L.Permute, x, tuple(order))

    def up_sample(self, x, pick: Options):
        rank = len(x.shape) - 2
        if rank not in (1, 2):
            return None
        if rank == 2 and pick([False, True]):
            factors = pick.each(2, [2, 1, 4])
            interpolation = "bilinear"
        else:
            factors, interpolation = pick.each(rank, [2, 1, 3]), "nearest"
        if size(x) * math.prod(factors) > LARGEST:
            return None
        if rank == 1:
            return self.apply(L.UpSampling1D, x, factors[0])
        return self.apply(L.UpSampling2D, x, factors, interpolation=interpolation)

    # -------------------------------------------------------------- wiring

    def merge(self, x, pick: Options):
        """Join x with an earlier tensor of its shape, or with a new branch from it."""
        kind = pick(["add", "concatenate", "subtract", "average", "maximum", "minimum", "operator"])
        earlier = [t for t in self.seen if t.shape == x.shape]
        origin = pick(["branch", "earlier", "mean", "third"])
        if origin == "mean" and kind in ("add", "subtract", "average", "operator"):
            other = self.mean(x)
        elif origin == "earlier":
            other = pick([x, *reversed(earlier)])
        else:
            other = self.branch(x, pick)
        if kind == "concatenate":
            axis = pick([-1, *range(1, len(x.shape))])
            if 2 * size(x) > LARGEST:
                return None
            return L.Concatenate(axis, name=self.name("concatenate"))([x, other])
        if kind == "operator":
            return x - other if pick([False, True]) else x + other
        joined = {
            "add": L.Add,
            "subtract": L.Subtract,
            "average": L.Average,
            "maximum": L.Maximum,
            "minimum": L.Minimum,
        }[kind]
        tensors = [x, other] if pick([True, False]) else [other, x]
        if origin == "third" and kind != "subtract":
            tensors.append(pick([x, *earlier]))
        return self.apply_merge(joined, tensors)

    def apply_merge(self, kind: type, tensors: list):
        return kind(name=self.name(kind.__name__.lower()))(tensors)

    def branch(self, x, pick: Options):
        """A tensor of x's shape with a kernel of its own before it."""
        _, bias, activation = self.head(pick)
        channels = x.shape[-1]
        if len(x.shape) == 2 or pick([False, True]):
            return self.kernel(L.Dense, x, channels, use_bias=bias, activation=activation)
        kind = [L.Conv1D, L.Conv2D, L.Conv3D][len(x.shape) - 3]
        return self.kernel(
            kind, x, channels, 2, padding="same", use_bias=bias, activation=activation
        )

    def mean(self, x):
        """The mean over positions, still with its axes: broadcast when it is added."""
        rank = len(x.shape) - 2
        if rank < 1:
            return x
        kinds = [L.GlobalAveragePooling1D, L.GlobalAveragePooling2D, L.GlobalAveragePooling3D]
        return self.apply(kinds[rank - 1], x, keepdims=True)

    def shared(self, x, pick: Options):
        """Use an earlier layer once more; or a new one twice in a row, with its bias."""
        shape = tuple(x.shape[1:])
        again = [layer for layer, takes in reversed(self.reusable) if takes == shape]
        if again and pick([True, True, False]):
            return pick(again)(x)
        _, bias, activation = self.head(pick)
        self.kernels += 1
        layer = L.Dense(
            shape[-1], use_bias=bias, activation=activation, name=self.name("shareddense")
        )
        x = layer(x)
        if pick([False, True]):
            x = L.BatchNormalization(name=self.name("batchnormalization"))(x)
        return layer(x)

    def last(self, x):
        """A nested model that ends in a sigmoid."""
        inputs = keras.Input(x.shape[1:], dtype=x.dtype, name="head_image")
        out = self.kernel(L.Dense, inputs, 2, activation="sigmoid")
        return keras.Model(inputs, out, name=self.name("head"))(x)

    def output(self, x, pick: Options):
        self.outputs.append(x)
        return None

    def nested(self, x, steps: Sequence[Step], pick: Options):
        """The steps as a model of their own: used once, twice in a row or twice side by side."""
        inner = Builder()
        inputs = self.input(x.shape[1:], "inner_image")
        y = inner.run(steps, inputs)
        if y is inputs:
            y = inner.dense(y, Options())
        self.kernels += inner.kernels
        extra = list({id(t): t for t in inner.outputs if t is not y and t is not inputs}.values())
        name = self.name("inner")
        model = keras.Model(inputs, [y, *extra] if extra else y, name=name)
        if not extra and pick([False, False, True]):
            again = self.input(x.shape[1:], "chain_image")
            model = keras.Sequential([again, model], name=self.name("chain"))
        use = pick(["once", "in a row", "side by side"])
        y = self.call(model, x)
        if use == "in a row" and y.shape == x.shape:
            return self.call(model, y)
        if use == "side by side":
            other = self.call(model, -x)
            return self.apply_merge(pick([L.Add, L.Subtract, L.Maximum]), [y, other])
        return y

    def call(self, model: keras.Model, x):
        """Use a nested model; its further outputs become outputs."""
        y = model(x, **self.flags(model))
        if isinstance(y, list):
            y, *extra = y
            self.outputs.extend(extra)
        return y


@keras.saving.register_keras_serializable(package="tests")
class Halfway(keras.layers.Layer):
    """Half of relu(dense(x)), and x: a layer of one's own, made of others and of keras.ops."""

    def __init__(self, units: int, **options):
        super().__init__(**options)
        self.dense = L.Dense(units, name="inside")

    def build(self, shape):
        self.dense.build(shape)

    def call(self, x, training=None):
        return 0.5 * keras.ops.relu(self.dense(x)) + x


def size(x) -> int:
    return math.prod(x.shape[1:])


def fits(x, window: Sequence[int], dilation: Sequence[int]) -> bool:
    """Whether a window without padding has at least one position."""
    extents = [(w - 1) * d + 1 for w, d in zip(window, dilation, strict=True)]
    return all(e <= n for e, n in zip(extents, x.shape[1:-1], strict=True))


KINDS: dict[str, Callable] = {
    "conv": Builder.conv,
    "block": Builder.block,
    "dense": Builder.dense,
    "activation": Builder.activation,
    "batch_norm": Builder.batch_norm,
    "merge": Builder.merge,
    "pool": Builder.pool,
    "depthwise": Builder.depthwise,
    "separable": Builder.separable,
    "transposed": Builder.transposed,
    "affine": Builder.affine,
    "operator": Builder.operator,
    "margins": Builder.margins,
    "pad_channels": Builder.pad_channels,
    "reshape": Builder.reshape,
    "permute": Builder.permute,
    "up_sample": Builder.up_sample,
    "global_pool": Builder.global_pool,
    "shared": Builder.shared,
    "output": Builder.output,
    "idle": Builder.idle,
    "operation": Builder.operation,
    "product": Builder.product,
    "einsum_dense": Builder.einsum_dense,
    "at_each_time": Builder.at_each_time,
    "own_layer": Builder.own_layer,
    "augment": Builder.augment,
    "resize": Builder.resize,
}
OFTEN = "conv conv block block block block transposed depthwise separable dense".split()
OFTEN += "activation activation batch_norm batch_norm merge merge pool up_sample nested".split()
OFTEN += "operation operation operation".split()
ENDINGS: dict[str, Callable] = {
    "plain": lambda builder, x: x,
    "dense softmax": lambda builder, x: builder.kernel(L.Dense, x, 3, activation="softmax"),
    "softmax": lambda builder, x: builder.apply(L.Softmax, x),
    "activation softmax": lambda builder, x: builder.apply(L.Activation, x, "softmax"),
    "softmax along the first axis": lambda builder, x: L.Softmax(axis=1)(x),
    "dense sigmoid": lambda builder, x: builder.kernel(L.Dense, x, 2, activation="sigmoid"),
    "tanh of keras.ops": lambda builder, x: keras.ops.tanh(x),
    "sigmoid in a last model": lambda builder, x: builder.last(x),
}

_steps = st.builds(
    Step,
    st.sampled_from([*KINDS, "nested", *OFTEN]),
    st.tuples(*[st.integers(0, 59)] * 20),
)
_shapes = st.one_of(
    st.tuples(st.integers(1, 7), st.integers(1, 7), st.integers(1, 4)),
    st.sampled_from([(5, 7, 2), (4, 4, 1), (3, 5, 3), (6, 5, 2), (7, 4, 4)]),
    st.sampled_from([(9, 2), (7, 3), (3, 4, 3, 2), (2, 3, 3, 1), (5,)]),
)


def plans() -> st.SearchStrategy[Plan]:
    """Plans of one to eight steps."""
    return st.builds(
        Plan,
        _shapes,
        st.one_of(
            st.lists(_steps, min_size=1, max_size=8), st.lists(_steps, min_size=5, max_size=8)
        ).map(tuple),
        st.one_of(st.just("plain"), st.sampled_from(list(ENDINGS))),
        st.integers(0, 2**32 - 1),
        st.sampled_from([1.0, 4.0]),
    )
