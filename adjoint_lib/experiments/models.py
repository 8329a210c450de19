"""The paper's three networks as plain Keras models, layer by layer as in its appendix tables.

===============  ===========  ==========================  =======  =================
model            activation   biases                      x_b      input
===============  ===========  ==========================  =======  =================
VGG7             ReLU         batch normalisation         384      image in [0, 1]
ResNet20         leaky ReLU   batch normalisation         1184     image in [0, 1]
ResNet20-Fixup   ReLU         37 scalars, 9 multipliers   37       normalised image
===============  ===========  ==========================  =======  =================

Input (32, 32, 3), output (classes,). Every convolution is 3x3 with zero padding "same" and no bias;
the final dense layer, ``fc``, has no bias either. Layers are named as in the tables, in lower case:
``conv1``, ``bn1``, ``relu1`` (also for leaky ReLUs), ``b1``, ``m2``, ``fc``.

The paper lists an activation *after* ``fc`` (ReLU, or leaky ReLU for ResNet20), and the models have
it by default: that is the network whose units are reconstructed. Training leaves it off with
``final_activation=False``, since a final ReLU passes no gradient to any class whose score is
negative. It has no weights and nothing comes after it, so the weights fit both forms and every unit
up to and including ``fc`` is the same in both.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from pathlib import Path

import keras
import numpy as np

from adjoint_lib._registry import did_you_mean
from adjoint_lib.errors import DataError, InputError, check_whole
from adjoint_lib.experiments import resources
from adjoint_lib.experiments.weights import load_weights, provenance
from adjoint_lib.frontend.layers import Bias, Multiplier, PadChannels

MEAN = (0.4914, 0.4822, 0.4465)
STD = (0.2023, 0.1994, 0.2010)
LEAK = 0.1

_CLASSES = {"cifar10": 10, "cifar100": 100}
_RESIDUAL_WIDTHS = (32, 32, 32, 64, 64, 64, 96, 96, 96)
_CHANNELS_LAST = {"data_format": "channels_last"}


def _network(name: str, last: int, head=None, activation=keras.layers.ReLU):
    """Make a function of (image, seed) that gives the last feature maps a network of this name.

    Args:
        last: the number of its dense layer, and of the activation after that.
        head: initialiser of the dense layer; He normal by default.
        activation: makes the layer after it.
    """

    def decorate(features: Callable) -> Callable[..., keras.Model]:
        known = name

        def network(
            classes: int | None = None,
            weights: str | Path | None = None,
            final_activation: bool = True,
            seed: int = 0,
            name: str = known,
        ) -> keras.Model:
            classes = _classes(classes, weights)
            # The precision of the weights: left to itself Keras would make the input float32 under
            # a float64 policy, and silently round every image.
            dtype = keras.config.dtype_policy().variable_dtype
            inputs = keras.Input((32, 32, 3), dtype=dtype, name="image")
            x = features(inputs, seed)
            x = keras.layers.GlobalAveragePooling2D(name="global_pool", **_CHANNELS_LAST)(x)
            initial = head or _he_normal(seed, last)
            dense = keras.layers.Dense
            x = dense(classes, use_bias=False, kernel_initializer=initial, name="fc")(x)
            if final_activation:
                x = activation(name=f"relu{last}")(x)
            return _with_weights(keras.Model(inputs, x, name=name), known, weights)

        network.__name__ = network.__qualname__ = features.__name__
        network.__doc__ = f"{features.__doc__}\n{_ARGUMENTS}"
        return network

    return decorate


_ARGUMENTS = """
    Args:
        classes: outputs; by default what ``weights`` was trained for, or 10.
        weights: None for a fresh initialisation from ``seed`` (He normal; batch normalisation at
            the identity), "cifar10" or "cifar100" for the trained ones that come with the library,
            or the path of a file written by ``adjoint_lib.experiments.weights.save_weights``.
        final_activation: False leaves off the activation after ``fc``, as training needs; True,
            the network of the paper, is for everything else.
        seed: of the initialisation; equal seeds give equal weights (in the same dtype).
        name: of the Keras model.
    """

_leaky = functools.partial(keras.layers.LeakyReLU, negative_slope=LEAK)


@_network("vgg7", last=6)
def vgg7(x, seed: int):
    """VGG7: six convolutions with batch normalisation and ReLU, two average pools, one dense layer.

    The pools (the paper's Avg-pool-2, after ``relu1`` and ``relu3``) have window 3 and stride 2,
    with padding "same" that does not count towards the average: 32 -> 16 -> 8. The last activation,
    ``relu6``, is the seventh ReLU and not the clipped function of that name.
    """
    pool = functools.partial(keras.layers.AveragePooling2D, 3, 2, "same", **_CHANNELS_LAST)
    for index, filters in enumerate((32, 32, 64, 64, 96, 96)):
        x = keras.layers.ReLU(name=f"relu{index}")(_conv_bn(x, index, filters, seed))
        if index in (1, 3):
            x = pool(name=f"pool{index}")(x)
    return x


@_network("resnet20", last=19, activation=_leaky)
def resnet20(x, seed: int):
    """ResNet20 with leaky ReLUs: one convolution, nine residual blocks of two, one dense layer.

    A block is conv, bn, leaky ReLU, conv, bn; its shortcut is added; a leaky ReLU follows the sum.
    Blocks 3 and 6 begin with a convolution of stride 2 (``conv7``, ``conv13``); their shortcut is
    an average pool of window 1 and stride 2, then zero channels (see ``PadChannels``). The leak is
    0.1: the paper does not state it, the TensorFlow ResNet that it cites uses that.
    """
    x = _leaky(name="relu0")(_conv_bn(x, 0, 32, seed))
    for block, filters in enumerate(_RESIDUAL_WIDTHS):
        first, second = 2 * block + 1, 2 * block + 2
        stride = 1 if x.shape[-1] == filters else 2
        branch = _leaky(name=f"relu{first}")(_conv_bn(x, first, filters, seed, stride))
        branch = _conv_bn(branch, second, filters, seed)
        shortcut = x if stride == 1 else _reduce(x, block, filters)
        x = keras.layers.Add(name=f"add{block}")([branch, shortcut])
        x = _leaky(name=f"relu{second}")(x)
    return x


@_network("resnet20-fixup", last=19, head="zeros")
def resnet20_fixup(x, seed: int):
    """ResNet20 without batch normalisation: scalar biases, multipliers and Fixup initialisation.

    Its input is the normalised image (see ``normalise``). A block is bias, conv, bias, ReLU, bias,
    conv, multiplier, bias; its shortcut is added; a ReLU follows the sum. The table gives no more
    than that order; where it is silent, this follows the code that the paper cites
    (hongyi-zhang/Fixup, for CIFAR): an identity shortcut leaves *before* the block's first bias,
    the down-sampling shortcut of blocks 3 and 6 (average pool of window 1 and stride 2, then zero
    channels) *after* it, so that ``b13`` and ``b25`` reach both branches. Unlike that code, there
    is no bias before or in ``fc``, since the table has none, and the zero channels are placed as in
    ``resnet20``, to whose table the paper refers, where that code appends them all at the end.

    Initialisation: ``conv0`` He normal; the first convolution of each block He normal times
    L^(-1/(2m-2)) = 1/3, with L = 9 blocks of m = 2 convolutions; the second one and ``fc`` zero;
    biases 0, multipliers 1. So at first every branch gives 0, a block whose shortcut is the
    identity is the identity, and all scores are 0.
    """
    gain = len(_RESIDUAL_WIDTHS) ** -0.5
    x = Bias(name="b0")(_conv(x, 0, 32, _he_normal(seed, 0)))
    x = keras.layers.ReLU(name="relu0")(x)
    for block, filters in enumerate(_RESIDUAL_WIDTHS):
        first, second, bias = 2 * block + 1, 2 * block + 2, 4 * block + 1
        stride = 1 if x.shape[-1] == filters else 2
        shifted = Bias(name=f"b{bias}")(x)
        branch = _conv(shifted, first, filters, _he_normal(seed, first, gain), stride)
        branch = Bias(name=f"b{bias + 1}")(branch)
        branch = keras.layers.ReLU(name=f"relu{first}")(branch)
        branch = Bias(name=f"b{bias + 2}")(branch)
        branch = _conv(branch, second, filters, "zeros")
        branch = Multiplier(name=f"m{second}")(branch)
        branch = Bias(name=f"b{bias + 3}")(branch)
        shortcut = x if stride == 1 else _reduce(shifted, block, filters)
        x = keras.layers.Add(name=f"add{block}")([branch, shortcut])
        x = keras.layers.ReLU(name=f"relu{second}")(x)
    return x


MODELS: dict[str, Callable[..., keras.Model]] = {
    "vgg7": vgg7,
    "resnet20": resnet20,
    "resnet20-fixup": resnet20_fixup,
}


def build(name: str, **options) -> keras.Model:
    """The model called ``name`` in ``MODELS``; ``options`` are those of ``vgg7``."""
    return MODELS[_known(name)](**options)


def normalise(images):
    """(images - mean) / std per colour channel: what ResNet20-Fixup takes as its input.

    The numbers are the paper's; it calls the second three "variance", but they are used as standard
    deviations (and CIFAR-10's own are nearer to 0.25). Takes arrays or tensors of floats in [0, 1],
    of shape (..., 3), and gives the same kind.
    """
    dtype = keras.backend.standardize_dtype(images.dtype)
    if images.shape[-1] != 3 or not keras.backend.is_float_dtype(dtype):
        raise InputError(
            "normalise expects float images in [0, 1] with 3 colour channels on the last axis, but "
            f"got dtype {dtype} and shape {tuple(images.shape)}. Divide integers by 255 first."
        )
    return (images - np.asarray(MEAN, dtype)) / np.asarray(STD, dtype)


def preprocess(name: str, images):
    """``images`` (floats in [0, 1]) in the form that the model called ``name`` takes.

    That is ``normalise(images)`` for ResNet20-Fixup, and the images themselves for the others.
    """
    return normalise(images) if _known(name) == "resnet20-fixup" else images


def trained(name: str) -> dict[str, dict]:
    """The records of the trained weights that come with the library, by data set.

    A record says how the weights were made and what they are worth (see ``training_record``). A
    data set without trained weights is left out.
    """
    records = {}
    for dataset in _CLASSES:
        try:
            path = resources.path(f"weights/{_known(name)}-{dataset}.npz")
        except DataError:
            continue
        records[dataset] = provenance(path)
    return records


def randomise(model: keras.Model, seed: int = 0) -> keras.Model:
    """Give every weight of any Keras model a random value, in place, and return the model.

    For showing and testing exactness without training: no weight is left at 0 or 1, where a mistake
    could hide. Kernels are He normal; batch normalisation gets scales of either sign with
    magnitude in [0.5, 1.5], variances in [0.5, 1.5], and normal shifts and means; biases are
    normal. These keep the activations of ordinary networks within a few orders of magnitude of the
    input. Equal seeds give equal values, whatever the model's dtype.
    """
    rng = np.random.default_rng(check_whole("seed", seed, 0))
    for layer in _leaves(model):
        for variable in layer.weights:
            if keras.backend.is_float_dtype(variable.dtype):
                variable.assign(_random_value(rng, layer, variable))
        if isinstance(layer, keras.layers.Normalization):
            layer.finalize_state()
    return model


def _conv(x, index: int, filters: int, initial, stride: int = 1):
    options = {"padding": "same", "use_bias": False, "name": f"conv{index}", **_CHANNELS_LAST}
    return keras.layers.Conv2D(filters, 3, stride, kernel_initializer=initial, **options)(x)


def _conv_bn(x, index: int, filters: int, seed: int, stride: int = 1):
    """A convolution and its batch normalisation.

    Epsilon is TensorFlow's default, as the paper says. So is the momentum of the running
    statistics, which it does not state: they follow the last hundred or so batches.
    """
    x = _conv(x, index, filters, _he_normal(seed, index), stride)
    return keras.layers.BatchNormalization(momentum=0.99, epsilon=1e-3, name=f"bn{index}")(x)


def _reduce(x, block: int, channels: int):
    """The shortcut of a block that halves the resolution and widens."""
    x = keras.layers.AveragePooling2D(1, 2, name=f"shortcut{block}_pool", **_CHANNELS_LAST)(x)
    return PadChannels(channels, name=f"shortcut{block}_pad")(x)


def _he_normal(seed: int, index: int, gain: float = 1.0) -> keras.initializers.Initializer:
    """He normal times ``gain``, with a stream of its own for each (seed, index)."""
    stream = np.random.SeedSequence([check_whole("seed", seed, 0), index]).generate_state(1)[0]
    return keras.initializers.VarianceScaling(
        2 * gain**2, "fan_in", "truncated_normal", seed=int(stream)
    )


def _classes(classes: int | None, weights: str | Path | None) -> int:
    trained = _CLASSES.get(weights) if isinstance(weights, str) else None
    if classes is None:
        return trained or 10
    classes = check_whole("classes", classes, 1)
    if trained and trained != classes:
        raise InputError(
            f'weights="{weights}" has {trained} classes, but classes={classes} was asked for. '
            "Leave classes out, or choose other weights."
        )
    return classes


def _with_weights(model: keras.Model, name: str, weights: str | Path | None) -> keras.Model:
    if weights is None:
        return model
    if weights not in _CLASSES:
        path = Path(weights)
        if path.suffix != ".npz":
            raise InputError(
                f"weights should be None, {' or '.join(map(repr, _CLASSES))}, or the path of an "
                f".npz file, but is {str(weights)!r}."
            )
        load_weights(model, path)
        return model
    file = f"weights/{name}-{weights}.npz"
    try:
        path = resources.path(file)
    except DataError as error:
        raise DataError(
            f'weights="{weights}" of {name} should be in data/{file}, but there is no such file. '
            "Train the model and save its weights there, pass the path of a weights file of your "
            "own, or use weights=None for a fresh initialisation."
        ) from error
    load_weights(model, path, sha256=provenance(path)["sha256"])
    return model


def _known(name: str) -> str:
    if name not in MODELS:
        raise InputError(
            f"No model is called {name!r}; there are {', '.join(MODELS)}."
            + did_you_mean(name, MODELS)
        )
    return name


def _leaves(model: keras.Model) -> list[keras.layers.Layer]:
    """All layers of ``model``, with nested models opened, each once."""
    found: dict[int, keras.layers.Layer] = {}
    for layer in model.layers:
        inner = _leaves(layer) if isinstance(layer, keras.Model) else [layer]
        found.update((id(leaf), leaf) for leaf in inner)
    return list(found.values())


def _random_value(rng: np.random.Generator, layer, variable) -> np.ndarray:
    """A value for one weight, chosen by the name that Keras gives to weights of its kind."""
    name, shape = variable.name, tuple(variable.shape)
    if "variance" in name:
        return rng.uniform(0.5, 1.5, shape)
    if name in ("gamma", "multiplier"):
        return rng.uniform(0.5, 1.5, shape) * rng.choice([1, 1, 1, -1], shape)
    if name == "alpha":
        return rng.uniform(0.05, 0.5, shape)
    if "kernel" in name:
        return rng.normal(0, np.sqrt(2 / _fan_in(layer, name, shape)), shape)
    return rng.normal(0, 0.25, shape)


def _fan_in(layer, name: str, shape: tuple[int, ...]) -> float:
    """How many terms a unit sums, given the kernel's layout in its kind of layer."""
    kind = type(layer).__name__
    if kind.endswith("Transpose"):  # (..., out, in), and a stride spreads the terms out
        return max(1, math.prod(shape[:-2]) * shape[-1] / math.prod(layer.strides))
    if kind.startswith("DepthwiseConv") or name == "depthwise_kernel":  # (..., in, multiplier)
        return max(1, math.prod(shape[:-2]))
    return max(1, math.prod(shape[:-1]))
