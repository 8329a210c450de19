"""The networks that figures show when they are not given one, each made once."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np

    from adjoint_lib.topology import EquivalentNet


@functools.cache
def network(model: str = "vgg7", dataset: str = "cifar10") -> tuple[EquivalentNet, np.ndarray]:
    """One of the paper's networks, and the sample images in the form that it takes.

    It is trained if its weights come with the library, and random otherwise; see `is_trained`.
    """
    from adjoint_lib import data, models
    from adjoint_lib.topology import equivalent

    if is_trained(model, dataset):
        built = models.build(model, weights=dataset)
    else:
        classes = len(data.CLASS_NAMES[dataset])
        built = models.randomise(models.build(model, classes=classes))
    images, _ = data.sample(dataset)
    return equivalent(built), models.preprocess(model, images)


def is_trained(model: str, dataset: str) -> bool:
    """Whether trained weights of this network come with the library."""
    from adjoint_lib import models

    return dataset in models.trained(model)


def which_weights(model: str, dataset: str) -> str:
    """In words, the weights that `network` takes."""
    return "trained weights" if is_trained(model, dataset) else "random weights"
