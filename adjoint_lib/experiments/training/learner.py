"""A network in training: its weights, its optimiser, and one step on one batch."""

from __future__ import annotations

import functools

import keras
import numpy as np
import tensorflow as tf

from adjoint_lib.errors import InputError
from adjoint_lib.experiments import models
from adjoint_lib.experiments.training.augmentation import AUGMENTATIONS
from adjoint_lib.experiments.training.evaluation import Accuracy, Scorer, accuracy
from adjoint_lib.experiments.training.orthogonal import Muon
from adjoint_lib.experiments.training.recipes import IMAGE_SIZE, Recipe
from adjoint_lib.experiments.training.twin import training_twin


class Learner:
    """A network in training: its weights, the optimiser and one step of it.

    The devices share each batch when there are several GPUs. Batch normalisation then takes its
    statistics from each device's own part.
    """

    def __init__(
        self,
        name: str,
        classes: int,
        recipe: Recipe,
        seed: int,
        strategy: tf.distribute.Strategy | None = None,
    ):
        if keras.backend.backend() != "tensorflow":
            raise InputError(
                f"Training needs Keras on TensorFlow, but it runs on {keras.backend.backend()}. "
                "Unset KERAS_BACKEND, or set it to tensorflow."
            )
        self.name, self.recipe = name, recipe
        self.strategy = strategy or _strategy()
        if recipe.batch % self.strategy.num_replicas_in_sync:
            raise InputError(
                f"A batch of {recipe.batch} cannot be shared evenly by "
                f"{self.strategy.num_replicas_in_sync} devices. Choose a multiple."
            )
        with self.strategy.scope():
            self.model = models.build(name, classes=classes, final_activation=False, seed=seed)
            _check_orthogonal_steps(self.model, recipe)
            self.optimizer = _optimizer(recipe)
            self.optimizer.build(self.model.trainable_variables)
        self._scorer = Scorer(self.model, name)

    # ---- state

    def state(self) -> dict[str, np.ndarray]:
        """All that a step changes, by name."""
        optimizer = {f"optimizer/{v.path}": v for v in self.optimizer.variables}
        return self.weights() | {key: _copy(variable) for key, variable in optimizer.items()}

    def set_state(self, arrays: dict[str, np.ndarray]) -> None:
        """Go on from what `state` gave."""
        self.set_weights(arrays)
        for variable in self.optimizer.variables:
            variable.assign(arrays[f"optimizer/{variable.path}"])

    def weights(self) -> dict[str, np.ndarray]:
        """A copy of the model's weights."""
        return {variable.path: _copy(variable) for variable in self.model.weights}

    def set_weights(self, arrays: dict[str, np.ndarray]) -> None:
        """Give the model weights that `weights` gave."""
        for variable in self.model.weights:
            variable.assign(arrays[variable.path])

    # ---- work

    def prepare(self, images: np.ndarray, numbers: np.ndarray, size: int) -> tf.Tensor:
        """uint8 images (B, 32, 32, 3) as the network's training inputs (B, size, size, 3)."""
        return self._preparation(size)(tf.constant(images), tf.constant(numbers))

    def update(self, inputs: tf.Tensor, labels: np.ndarray, rate: float) -> tuple[float, int]:
        """One step of gradient descent; the mean cross-entropy and the number of right answers."""
        update = self._update(int(inputs.shape[1]))
        loss, correct = update(inputs, tf.constant(labels), tf.constant(rate, tf.float32))
        return float(loss), int(correct)

    def accuracy(self, images: np.ndarray, labels: np.ndarray) -> Accuracy:
        """Top-1 accuracy, in inference mode, on uint8 or float images as they are."""
        return accuracy(self._scorer(images), labels)

    @functools.cache  # noqa: B019 (a learner lives as long as its run)
    def _preparation(self, size: int):
        augment = AUGMENTATIONS[self.recipe.augmentation].apply

        @tf.function(autograph=False)
        def prepare(images, numbers):
            images = augment(images, numbers)
            if size != IMAGE_SIZE:
                images = tf.image.resize(images, (size, size))
            return models.preprocess(self.name, images)

        return prepare

    @functools.cache  # noqa: B019
    def _update(self, size: int):
        recipe, strategy = self.recipe, self.strategy
        variables = self.model.trainable_variables
        with strategy.scope():
            twin = training_twin(self.model, size)

        def one_device(inputs, labels):
            context = tf.distribute.get_replica_context()
            part = slice(context.replica_id_in_sync_group, None, context.num_replicas_in_sync)
            inputs, labels = inputs[part], labels[part]
            with tf.GradientTape() as tape:
                outputs = twin(inputs, training=True)
                losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels, outputs)
                loss = tf.reduce_sum(losses) / recipe.batch
                objective = loss + _penalty(variables, recipe) / context.num_replicas_in_sync
            gradients = tape.gradient(objective, [v.value for v in variables])
            self.optimizer.apply_gradients(zip(gradients, variables, strict=True))
            right = tf.equal(tf.argmax(outputs, -1), labels)
            return loss, tf.reduce_sum(tf.cast(right, tf.int32))

        @tf.function(autograph=False)
        def update(inputs, labels, rate):
            self.optimizer.learning_rate.assign(rate)
            results = strategy.run(one_device, (inputs, labels))
            return [strategy.reduce("sum", result, axis=None) for result in results]

        return update


def _copy(variable: keras.Variable) -> np.ndarray:
    return np.array(variable.value.numpy())


def _optimizer(recipe: Recipe) -> keras.optimizers.Optimizer:
    options = {"learning_rate": 0.0, "momentum": recipe.momentum, "name": "sgd"}
    if recipe.kernel_rate is None:
        return keras.optimizers.SGD(nesterov=recipe.momentum > 0, **options)
    return Muon(recipe.kernel_rate, recipe.kernel_decay, **options)


def _check_orthogonal_steps(model: keras.Model, recipe: Recipe) -> None:
    """A decay is one of orthogonal steps; without it, batch normalisation has to forget norms."""
    rate, decay = recipe.kernel_rate, recipe.kernel_decay
    if rate is None and decay is not None:
        raise InputError(
            f"kernel_decay {decay:g} is for kernels learned by orthogonal steps, but kernel_rate "
            "is None. Give kernel_rate, too, or l2 instead of both."
        )
    normalised = any(isinstance(x, keras.layers.BatchNormalization) for x in model.layers)
    if rate is not None and decay is None and not normalised:
        raise InputError(
            f"The recipe holds kernels at a fixed norm (kernel_rate {rate:g} without "
            f"kernel_decay), which needs batch normalisation; '{model.name}' has none. "
            "Give kernel_decay a number."
        )


def _penalty(variables: list[keras.Variable], recipe: Recipe) -> tf.Tensor:
    """The recipe's L1 and L2 terms of all kernels but those that decay otherwise."""
    kernels = [
        variable.value
        for variable in variables
        if variable.name == "kernel" and (recipe.kernel_decay is None or len(variable.shape) != 4)
    ]
    total = tf.constant(0.0)
    if recipe.l1:
        total += recipe.l1 * tf.add_n([tf.reduce_sum(tf.abs(kernel)) for kernel in kernels])
    if recipe.l2:
        total += recipe.l2 * tf.add_n([tf.nn.l2_loss(kernel) for kernel in kernels])
    return total


def _strategy() -> tf.distribute.Strategy:
    several = len(tf.config.list_physical_devices("GPU")) > 1
    return tf.distribute.MirroredStrategy() if several else tf.distribute.get_strategy()
