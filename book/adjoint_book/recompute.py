"""What the chapters compute again of what is stored: a part, and with ADJOINT_FULL=1 all of it.

book.recompute.evaluation("vgg7", trained, equivalent)            # which test images are right
book.recompute.verification("vgg7", "cifar10", net, images[:32])  # errors, against the stored ones
"""

from __future__ import annotations

import os

import keras
import numpy as np

from adjoint_book.magnitudes import below
from adjoint_lib.core.equivalent_net import EquivalentNet
from adjoint_lib.errors import DataError
from adjoint_lib.experiments import data, models, results, training
from adjoint_lib.verification.report import Report
from adjoint_lib.verification.verify import verify

TIES = 2  # images of two equal scores, which rounding may decide otherwise on another processor


def evaluation(name: str, trained: keras.Model, equivalent: EquivalentNet) -> None:
    """Print how many CIFAR-10 test images are classified rightly, as stored with the weights.

    With ADJOINT_FULL=1 they are counted anew, and both networks' classes are compared.

    Raises:
        DataError: if the count is another, or the networks disagree on more than a tie.
    """
    stored = models.trained(name)["cifar10"]["accuracy"]["test"]
    print(f"stored: {stored['correct']:,} of {stored['count']:,} test images are right")
    if not full():
        return
    images, labels = data.load("cifar10", "test")
    scores = training.Scorer(trained, name)(images)
    folded = training.equivalent_scores(equivalent, name, images)
    correct = training.accuracy(scores, labels).correct
    decided = [one for one in training.disagreements(scores, folded) if not one.tied]
    if abs(correct - stored["correct"]) > TIES or decided:
        raise DataError(
            f"{name}: expected {stored['correct']} images right, and the same class from both "
            f"networks, found {correct} and {len(decided)} other classes. Are these the stored "
            "weights?"
        )
    print(f"counted: {correct:,}, and both networks choose the same classes")


def verification(name: str, dataset: str, net: EquivalentNet, images: np.ndarray) -> None:
    """Verify some images in one pass, and print what that says of the stored result.

    With ADJOINT_FULL=1 these are all test images, and as many as are stored are verified through
    each unit's own hypersurface too.

    Raises:
        DataError: if the stored result is of another network, of other units, or has another bound.
    """
    if full():
        images = data.load(dataset, "test")[0]
    stored = results.load(name, dataset, method="tangent").report
    _compare(verify(net, images, method="tangent", progress=full()), stored)
    for mode in ("RM2", "RM0") if full() else ():
        stored = results.load(name, dataset, mode=mode).report
        _compare(verify(net, images[: stored.images], mode=mode), stored)


def full() -> bool:
    """Whether all that is stored is to be computed again."""
    return os.environ.get("ADJOINT_FULL") == "1"


def _compare(found: Report, stored: Report) -> None:
    """Print how far both are below the bounds that they share."""
    same = found.about["digest"] == stored.about["digest"]
    for name, layer in found.layers.items():
        kept = stored.layers[name]
        same &= layer.bound == kept.bound and layer.passed and kept.passed
        same &= kept.units * found.images == layer.units * stored.images
    if not same:
        raise DataError(
            "expected the network, the units and the bounds of the stored result, found others, or "
            "an error above its bound. Load the stored weights."
        )
    print(f"{found.images:,} images: the stored network, and its units, layer by layer")
    for which, report in (("here", found), ("stored", stored)):
        share = max(layer.worst / layer.bound for layer in report.layers.values())
        print(f"{which}: every error is below {below(max(share, 5e-3))} of its rounding bound")
