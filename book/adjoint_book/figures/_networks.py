"""The networks that figures show when they are not given one, each made once."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np

    from adjoint_lib.core.equivalent_net import EquivalentNet


@functools.cache
def network(model: str = "vgg7", dataset: str = "cifar10") -> tuple[EquivalentNet, np.ndarray]:
    """One of the paper's networks, trained, and the sample images in the form that it takes."""
    from adjoint_lib.experiments import data, models
    from adjoint_lib.frontend.equivalent import equivalent

    images, _ = data.sample(dataset)
    net = equivalent(models.build(model, weights=dataset))
    return net, models.preprocess(model, images)
