"""Training the paper's networks: recipes, resumable runs, and what a trained network reaches.

al.training.train("vgg7", "cifar10", recipe="fast", seed=0)
"""

from adjoint_lib.experiments.training.augmentation import AUGMENTATIONS, draw
from adjoint_lib.experiments.training.evaluation import (
    Accuracy,
    Disagreement,
    Scorer,
    accuracy,
    disagreements,
    equivalent_scores,
)
from adjoint_lib.experiments.training.orthogonal import orthogonal
from adjoint_lib.experiments.training.recipes import Recipe, recipe
from adjoint_lib.experiments.training.record import kept
from adjoint_lib.experiments.training.run import split, train

__all__ = [
    "AUGMENTATIONS",
    "Accuracy",
    "Disagreement",
    "Recipe",
    "Scorer",
    "accuracy",
    "disagreements",
    "draw",
    "equivalent_scores",
    "kept",
    "orthogonal",
    "recipe",
    "split",
    "train",
]
