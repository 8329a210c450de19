"""Checks for the chapter 'Your own model'."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

from adjoint_book.exercises._registry import exercise
from adjoint_book.exercises.checking import compare, named, say, unanswered
from adjoint_lib.errors import AdjointError

if TYPE_CHECKING:
    import keras

    from adjoint_lib.core.equivalent_net import EquivalentNet


@exercise
def check_count_x_b(answer: int | None) -> None:
    """How many entries x_b has for the model of the exercise."""
    import keras

    import adjoint_lib as al

    layers = keras.layers
    model = keras.Sequential(
        [
            keras.Input((16, 16, 3)),
            layers.Conv2D(8, 3),
            layers.ReLU(6.0),
            layers.Conv2D(16, 3, use_bias=False),
            layers.BatchNormalization(),
            layers.Activation("hard_tanh"),
            layers.GlobalAveragePooling2D(),
            layers.Dense(10),
        ]
    )
    truth = al.equivalent(model).x_b.size
    compare(
        answer,
        truth,
        correct="8 + 1 + 16 + 2 + 10: biases, the 6, the shift of BN, -1 and 1, biases.",
        hints=[
            (truth - 3, "Those are the biases; the constants of ReLU6 and hard tanh count too."),
            (truth - 2, "Hard tanh has two constants."),
            (truth - 1, "ReLU6 has a constant, or hard tanh has two."),
            (truth + 16, "The scale of a batch normalisation goes into the kernel."),
            (truth - 16, "Batch normalisation leaves a shift for each channel."),
        ],
        hint="Add the biases of each layer, the shift of the BN, and the activations' constants.",
    )


@exercise
def check_shared(answer: int | None) -> None:
    """Entries of x_b from a dense layer of 4 outputs that is used three times."""
    compare(
        answer,
        12,
        correct="each use adds its bias at another place, so each has its own four entries.",
        hints=[(4, "Its values are stored once in the model, but they come in at three places.")],
        hint="Count four entries for each use.",
    )


@exercise
def check_make_it_fit(answer: keras.Model | None) -> None:
    """A model like the refused one that `al.equivalent` takes."""
    net = _accepted(answer)
    if net is None:
        return
    from adjoint_lib.core.primitives import Activation

    wanted = {"first": (14, 14, 8), "second": (12, 12, 8), "scores": (3,)}
    found = {layer.name: layer.shape for layer in net.layers}
    wrong = [name for name, shape in wanted.items() if found.get(name) != shape]
    if net.input_shape != (16, 16, 3) or wrong:
        say(
            "Not yet: it is accepted, but it should keep an input of (16, 16, 3) and the layers "
            f"{wanted}; it has input {net.input_shape} and layers {found}."
        )
        return
    if not any(isinstance(node.primitive, Activation) for node in net.nodes):
        say("Not yet: it is accepted, but no activation is left in it. Put ReLUs there.")
        return
    say("Correct: accepted and exact. Train it, and its hypersurfaces mean something.")


@exercise
def check_own_model(answer: keras.Model | None) -> None:
    """Any Keras model: accepted, and every unit reconstructed on a random image."""
    net = _accepted(answer)
    if net is None:
        return
    import numpy as np

    import adjoint_lib as al

    image = np.random.default_rng(0).normal(size=net.input_shape)
    report = al.verify(net, image, layers="all", method="tangent", dtype="float64", progress=False)
    units = sum(layer.units for layer in report.layers.values())
    if not report.passed:
        say("Not yet: it is accepted, but some units are off. That is a bug: please report it.")
        return
    say(
        f"Correct: '{net.name}' has {len(net.layers)} layers with a kernel and {net.x_b.size:,} "
        f"entries in x_b; all {units:,} units are reconstructed."
    )


def _accepted(model: keras.Model | None) -> EquivalentNet | None:
    """The equivalent network of a copy with random weights, or None after saying what is wrong."""
    if unanswered(model):
        return None
    import keras

    import adjoint_lib as al

    if not isinstance(model, keras.Model):
        say(f"Not yet: expected a Keras model, got {named(model)}.")
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a final softmax is dropped; that is fine here
            al.equivalent(model)
            return al.equivalent(al.models.randomise(keras.models.clone_model(model)))
    except AdjointError as error:
        say(f"Not yet: {error}")
        return None
