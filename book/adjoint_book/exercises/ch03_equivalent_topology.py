"""Checks of the chapter on the equivalent topology."""

from __future__ import annotations

from typing import Any

import numpy as np

from adjoint_book.exercises._registry import exercise
from adjoint_book.exercises.checking import compare
from adjoint_book.exercises.choices import choice
from adjoint_book.tiny import W0, W1, b0, b1, w, x


@choice(
    a=("Max-pooling, 2 by 2.", "It chooses among its inputs; nothing of its own is added."),
    b=("Dropout.", "It does nothing once training is over."),
    c=("A leaky ReLU.", "It multiplies by one of two slopes. No constant is added."),
    d=(
        "Batch normalisation after a convolution without a bias.",
        "Its shift is a constant that is added, one for each channel: the next chapter computes "
        "it.",
    ),
)
def check_adds_to_x_b() -> str:
    """Which layer adds entries to x_b; found by asking the library."""
    import keras

    import adjoint_lib as al

    L = keras.layers
    tried = {
        "b": L.Dropout(0.5),
        "a": L.MaxPooling2D(2),
        "d": L.BatchNormalization(),
        "c": L.LeakyReLU(),
    }
    adding = []
    for letter, layer in tried.items():
        conv = L.Conv2D(2, 3, use_bias=False)
        model = keras.Sequential([keras.Input((6, 6, 1)), conv, layer])
        if al.equivalent(al.models.randomise(model)).x_b.size:
            adding.append(letter)
    (letter,) = adding
    return letter


@choice(
    a=(
        "$\\langle x_b \\mid H_b \\rangle$, but not $H_b$.",
        "It would, if H_b were not zero in those entries. But a bias of a later layer never "
        "reaches the unit.",
    ),
    b=(
        "$H_b$ alone, in the entries of the last layer.",
        "H says how much each entry counts, and not how large the entry is. These count zero "
        "before as after.",
    ),
    c=(
        "All of it: $x_b$ is an input of the whole network.",
        "An input, yes, but what a unit does not read cannot change it: the unit is computed "
        "before that layer.",
    ),
    d=(
        "Nothing at all.",
        "The unit is computed before the last layer, so its value, its pattern and its H stay.",
    ),
)
def check_later_bias() -> str:
    """What changes for a unit of the first layer when biases of the last layer do."""
    return "d"


def _unit(b0: np.ndarray) -> float:
    """c of the chapter's tiny network, with these biases in its first layer."""
    p0 = np.maximum(W0 @ x + b0, 0)
    return float(w @ np.maximum(W1 @ p0 + b1, 0))


@exercise
def check_count_biases(answer: Any) -> None:
    """Entries of x_b: conv 16, conv 32, conv 32 without bias, dense 10."""
    compare(
        answer,
        16 + 32 + 10,
        correct="one entry for each out-channel of each layer that has a bias, whatever the size "
        "of the feature maps.",
        hints=[
            (16 + 32 + 32 + 10, "One of the layers has no bias."),
            (16 + 32, "The dense layer has biases too."),
            (
                16 * 32 * 32 + 32 * 32 * 32 + 10,
                "A convolution's bias is one number for a channel, shared by all positions.",
            ),
        ],
        hint="Add up the out-channels of the layers with a bias.",
    )


@exercise
def check_bias_position(answer: Any) -> None:
    """Where in v = [x; x_b] the bias of channel 5 of conv2 is: after 3072 pixels, 8 and 12."""
    place = 32 * 32 * 3 + 8 + 12 + 5
    compare(
        answer,
        place,
        correct="net.layer('conv2').bias.start + 5 counts within x_b; the pixels come first.",
        hints=[
            (place - 32 * 32 * 3, "That is its place in x_b; v begins with the image."),
            (place + 1, "Counting begins at 0, so channel 5 is the sixth."),
        ],
        hint="Pixels first, then the biases of conv0, then those of conv1, then 0, 1, 2, ...",
    )


@exercise
def check_nudged_bias(answer: Any) -> None:
    """c of the tiny network after the last bias of the first layer has grown by 0.5."""
    compare(
        answer,
        _unit(b0 + np.array([0, 0, 0.5])),
        correct="the old value plus 0.5 times its entry of H_b, exactly: no neuron changed sides.",
        hints=[
            (_unit(b0) + 0.5, "Its weight in c is not 1; look it up in H_b."),
            (_unit(b0), "Its entry of H_b is not 0."),
            (_unit(b0) - 1, "That is for a step of 1; this one is 0.5."),
        ],
        hint="c changes by the step times the bias's entry of H_b.",
    )


@exercise
def check_bias_room(answer: Any) -> None:
    """How far the shut neuron's bias may grow before the pattern, and so H, changes."""
    compare(
        answer,
        float(-(W0 @ x + b0)[1]),
        correct="until its sum reaches 0. Beyond that the neuron opens, and H is another one.",
        hints=[(6.0, "That is without the bias it has already.")],
        hint="What is the sum of the neuron that is shut?",
    )
