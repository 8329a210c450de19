"""The exercise that the preface shows."""

from __future__ import annotations

from typing import Any

from adjoint_book.exercises._registry import exercise
from adjoint_book.exercises.checking import compare


@exercise
def check_number_of_biases(answer: Any) -> None:
    """How many biases ResNet20 has in total: one for each channel of its 19 convolutions."""
    channels = [32] * 7 + [64] * 6 + [96] * 6
    compare(
        answer,
        sum(channels),
        correct="nineteen convolutions, and one bias for each of their channels.",
        hints=[(sum(channels) - channels[0], "Was the first convolution counted?")],
        hint="Add the channels of all convolutions; net.x_b has them all.",
    )
