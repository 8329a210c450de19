"""How a network is trained: schedule, batch, regularisation, augmentation. Facts, no TensorFlow.

``fast`` is meant to reach the paper's test accuracy in few CPU minutes; the records beside trained
weights say what it did reach, and how long it took. ``paper`` follows the paper's own description;
its schedules are read from the paper's table.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from adjoint_lib.errors import InputError, check_whole
from adjoint_lib.experiments import paper

IMAGE_SIZE = 32


@dataclass(frozen=True)
class Recipe:
    """Everything that decides, with a seed, what a training run does.

    Attributes:
        name: "fast" or "paper".
        epochs: passes over the training images.
        batch: images per step; an incomplete last batch is left out (images are shuffled each
            epoch).
        rates: learning rates as (epoch, rate) knots, by increasing epoch.
        linear: True joins the knots by straight lines; False holds each rate until the next knot.
        momentum: of gradient descent, in Nesterov's form; 0 is plain gradient descent.
        l1: the loss gets l1 * sum |w| over all kernels (of conv and dense layers, never biases,
            multipliers or batch normalisation).
        l2: the loss gets l2/2 * sum w^2 over all kernels.
        augmentation: a name in ``augmentation.AUGMENTATIONS``.
        sizes: resolution of the training images as (first epoch, pixels a side); all of these
            networks end in global pooling, so the same weights serve any size.
        kernel_rate: None learns the kernels of convolutions like all other weights; a number learns
            them by steps of ``orthogonal.Muon``, at this multiple of the learning rate.
        kernel_decay: of the kernels that are learned by such steps. None holds each at a fixed
            norm, for networks with batch normalisation. With a number, l1 and l2 leave them out,
            and each step shrinks them by the share of this number times the learning rate.
        validate_every: epochs between two looks at the validation images; the last epoch always
            has one.
    """

    name: str
    epochs: int
    batch: int
    rates: tuple[tuple[float, float], ...]
    linear: bool
    momentum: float
    l1: float
    l2: float
    augmentation: str
    sizes: tuple[tuple[int, int], ...] = ((0, IMAGE_SIZE),)
    kernel_rate: float | None = None
    kernel_decay: float | None = None
    validate_every: int = 2

    def learning_rate(self, position: float) -> float:
        """The learning rate at ``position``, in epochs from the start (0.5: half of the first)."""
        epochs, rates = zip(*self.rates, strict=True)
        if self.linear:
            return float(np.interp(position, epochs, rates))
        return rates[max(0, int(np.searchsorted(epochs, position, side="right")) - 1)]

    def size(self, epoch: int) -> int:
        """Pixels a side of the training images in ``epoch``."""
        return [pixels for first, pixels in self.sizes if first <= epoch][-1]

    def validates(self, epoch: int) -> bool:
        """Whether the validation images are looked at when ``epoch`` (from 0) ends."""
        return (epoch + 1) % self.validate_every == 0 or epoch + 1 == self.epochs

    def stretched(self, epochs: int) -> Recipe:
        """This recipe over another number of epochs, every knot moved in proportion.

        Sizes change with a whole epoch, and early enough that the last one is as large as before.
        """
        epochs = check_whole("epochs", epochs, 1)
        scale = epochs / self.epochs
        return replace(
            self,
            epochs=epochs,
            rates=tuple((epoch * scale, rate) for epoch, rate in self.rates),
            sizes=tuple((int(epoch * scale), pixels) for epoch, pixels in self.sizes),
        )


def recipe(name: str, model: str, dataset: str) -> Recipe:
    """The recipe called ``name`` ("fast" or "paper") for one network on one data set."""
    if name not in _RECIPES:
        raise InputError(f"No recipe is called {name!r}; there are {', '.join(_RECIPES)}.")
    return _RECIPES[name](model, dataset)


def _fast(model: str, dataset: str) -> Recipe:
    """One cycle: the rate climbs to its peak over a quarter of the run and falls to 0 in a line.

    All have momentum, weight decay on kernels, crop and flip, and small images first, while large
    learning rates would wash out fine detail anyway. Runs of VGG7 without each of these, and with
    orthogonal steps, are stored, and shown by `adjoint_book.tables.ingredients`. In 5 epochs
    momentum, small images and orthogonal steps gain more than the 95 % intervals leave in doubt;
    weight decay gains with both seeds, but less. Crop and flip gain nothing in 5 or 10 epochs, and
    cost accuracy in 10 on CIFAR-100; in as many as VGG7's recipe has, they gain more than the
    intervals leave in doubt.
    """
    return _FAST[model, dataset]


def _one_cycle(epochs: int, **options) -> Recipe:
    return Recipe(
        name="fast",
        epochs=epochs,
        batch=128,
        rates=((0, 0.0), (epochs / 4, 0.2), (epochs, 0.0)),
        linear=True,
        momentum=0.9,
        l1=0.0,
        l2=5e-4,
        augmentation="crop-flip",
        **options,
    )


_SMALL_FIRST = ((0, 24), (30, IMAGE_SIZE))

# Orthogonal steps with decay: ResNet20-Fixup in 3 epochs of 16x16 pixels came to 76.6 % of the
# validation images (77.1 % with a tenth of the decay); without them, at the same learning rates,
# its loss was no finite number any more before the first epoch ended.
_FAST = {
    ("vgg7", "cifar10"): _one_cycle(60, sizes=_SMALL_FIRST),
    ("vgg7", "cifar100"): _one_cycle(60, sizes=_SMALL_FIRST),
    ("resnet20", "cifar10"): _one_cycle(
        20, sizes=((0, 16), (8, 24), (15, IMAGE_SIZE)), kernel_rate=0.1
    ),
    ("resnet20", "cifar100"): _one_cycle(
        28, sizes=((0, 16), (12, 24), (23, IMAGE_SIZE)), kernel_rate=0.1
    ),
    ("resnet20-fixup", "cifar10"): _one_cycle(
        22, sizes=((0, 16), (9, 24), (16, IMAGE_SIZE)), kernel_rate=0.1, kernel_decay=5e-3
    ),
    ("resnet20-fixup", "cifar100"): _one_cycle(
        14, sizes=((0, 16), (6, 24), (11, IMAGE_SIZE)), kernel_rate=0.1, kernel_decay=5e-3
    ),
}


def _paper(model: str, dataset: str) -> Recipe:
    """The paper's description, with the schedule from its tables.

    It does not state the weight of the L1 term: 1e-5 is a choice.
    """
    row = paper.training(model, dataset)
    rates = tuple(
        (int(row[f"epochs_{stage}"].split("-")[0]), float(row[f"lr_{stage}"]))
        for stage in (1, 2, 3)
    )
    return Recipe(
        name="paper",
        epochs=int(row["total_epochs"]),
        batch=100,
        rates=rates,
        linear=False,
        momentum=0.0,
        l1=1e-5,
        l2=0.0,
        augmentation="paper",
    )


_RECIPES = {"fast": _fast, "paper": _paper}
RECIPES = tuple(_RECIPES)
