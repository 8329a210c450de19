"""Training: what an epoch sees, what a step does, and that a broken run ends as an unbroken one.

The runs here are short ones on the embedded sample; the file takes about a minute.
"""

import csv
import hashlib
import json
import shutil
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import keras
import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given
from hypothesis import strategies as st

import adjoint_lib as al
from adjoint_lib import data
from adjoint_lib.cli import main as command_line
from adjoint_lib.cli.options import RECIPES
from adjoint_lib.errors import DataError, DivergedError, InputError
from adjoint_lib.experiments import machine, models, resources
from adjoint_lib.experiments.data.cifar import DATASETS
from adjoint_lib.experiments.training import augmentation, checkpoint, evaluation, recipes
from adjoint_lib.experiments.training import run as training
from adjoint_lib.experiments.training.learner import Learner
from adjoint_lib.experiments.training.orthogonal import orthogonal
from adjoint_lib.experiments.training.recipes import Recipe, recipe
from adjoint_lib.experiments.training.twin import convolve, training_twin
from adjoint_lib.experiments.weights import provenance

ROOT = Path(__file__).resolve().parents[2]
NETWORKS = [(model, dataset) for model in models.MODELS for dataset in data.CLASS_NAMES]


@pytest.fixture(scope="module")
def pixels() -> np.ndarray:
    """200 sample images as uint8."""
    images, _ = data.sample("cifar10")
    return np.rint(images[:200] * 255).astype(np.uint8)


def tiny(**changes) -> Recipe:
    """A recipe for the sample: small batches, both sizes, a few steps an epoch."""
    usual = {"epochs": 3, "batch": 45, "rates": ((0, 0.05), (3, 0.0)), "sizes": ((0, 8), (2, 32))}
    return replace(recipe("fast", "vgg7", "cifar10"), **{"name": "tiny", **usual, **changes})


def recorded(record: dict) -> Recipe:
    """The recipe in a record; the momentum of running statistics was an option of it once."""
    fields = {name: value for name, value in record.items() if name != "norm_momentum"}
    return Recipe(**{**fields, **{n: tuple(map(tuple, fields[n])) for n in ("rates", "sizes")}})


# ---- augmentation


def test_crop_and_flip_is_a_window_of_the_reflected_image(pixels):
    numbers = np.random.default_rng(0).random((len(pixels), 3), np.float32)
    found = augmentation.crop_and_flip(tf.constant(pixels), tf.constant(numbers)).numpy()
    padded = np.pad(pixels, [(0, 0), (4, 4), (4, 4), (0, 0)], mode="reflect")
    for image, (flip, down, right), result in zip(padded, numbers, found, strict=True):
        top, left = int(down * 9), int(right * 9)
        window = image[top : top + 32, left : left + 32]
        expected = window[:, ::-1] if flip < 0.5 else window
        np.testing.assert_array_equal(result, expected.astype(np.float32) / 255)


def test_every_image_is_changed_on_its_own_and_every_change_happens(pixels):
    same = np.repeat(pixels[:1], 4000, axis=0)
    kind = augmentation.AUGMENTATIONS["crop-flip"]
    numbers = augmentation.draw(kind, seed=0, epoch=0, count=len(same))
    found = kind.apply(tf.constant(same), tf.constant(numbers)).numpy()
    _, counts = np.unique(found.reshape(len(found), -1), axis=0, return_counts=True)
    assert len(counts) == 9 * 9 * 2
    # The sum of the squared, scaled deviations is about 161 +- 18 if all are equally likely.
    expected = len(same) / len(counts)
    assert ((counts - expected) ** 2 / expected).sum() < 161 + 5 * 18


def test_numbers_depend_on_seed_epoch_and_image_alone():
    kind = augmentation.AUGMENTATIONS["paper"]
    numbers = augmentation.draw(kind, seed=1, epoch=2, count=50)
    assert numbers.dtype == np.float32 and numbers.shape == (50, kind.numbers)
    assert numbers.min() >= 0 and numbers.max() < 1
    np.testing.assert_array_equal(numbers[:20], augmentation.draw(kind, 1, 2, 20))
    others = [augmentation.draw(kind, seed, epoch, 50) for seed, epoch in ((1, 3), (2, 2), (2, 1))]
    assert all((numbers != other).mean() > 0.99 for other in others)
    assert len(np.unique(numbers, axis=0)) == 50


@pytest.mark.parametrize("name", augmentation.AUGMENTATIONS)
@pytest.mark.parametrize("number", [0.0, np.nextafter(np.float32(1), np.float32(0))])
def test_the_extreme_numbers_stay_within_the_image(pixels, name, number):
    kind = augmentation.AUGMENTATIONS[name]
    numbers = np.full((4, kind.numbers), number, np.float32)
    found = kind.apply(tf.constant(pixels[:4]), tf.constant(numbers))
    assert found.shape == (4, 32, 32, 3) and np.isfinite(found).all()


def test_the_papers_augmentation_is_tensorflows_in_the_papers_order(pixels):
    batch = pixels[:20]
    numbers = np.random.default_rng(1).random((len(batch), 6), np.float32)
    found = augmentation.paper(tf.constant(batch), tf.constant(numbers)).numpy()
    for image, row, result in zip(batch, numbers, found, strict=True):
        flip, saturation, contrast, brightness, down, right = (float(number) for number in row)
        x = tf.constant(image, tf.float32) / 255
        x = tf.image.flip_left_right(x) if flip < 0.5 else x
        x = tf.image.adjust_saturation(x, 2 * saturation)
        x = tf.image.adjust_contrast(x, 0.4 + 1.2 * contrast)
        x = tf.image.adjust_brightness(x, brightness - 0.5)
        x = tf.image.resize(x, (36, 36))
        x = tf.image.crop_to_bounding_box(x, int(down * 5), int(right * 5), 32, 32)
        np.testing.assert_allclose(result, x, atol=2e-5)


@given(st.lists(st.integers(0, 255), min_size=3, max_size=3), st.floats(0, 2, width=32))
def test_saturate_is_the_hsv_one(colour, factor):
    image = tf.constant(np.reshape(colour, (1, 1, 1, 3)), tf.float32) / 255
    found = augmentation.saturate(image, tf.fill((1, 1, 1, 1), factor))
    np.testing.assert_allclose(found, tf.image.adjust_saturation(image, factor), atol=1e-5)


# ---- split, order, batches


@pytest.mark.parametrize("seed", [0, 1])
def test_the_split_is_45000_and_5000_and_disjoint(seed):
    chosen, held_out = training.split(50_000, seed)
    assert (len(chosen), len(held_out)) == (45_000, 5_000)
    assert not np.intersect1d(chosen, held_out).size
    assert len(np.union1d(chosen, held_out)) == 50_000
    np.testing.assert_array_equal(held_out, training.split(50_000, seed)[1])
    assert len(np.intersect1d(held_out, training.split(50_000, seed + 7)[1])) < 1_000
    assert 0.45 < (held_out < 25_000).mean() < 0.55


def numbered_images(count: int) -> tuple[np.ndarray, np.ndarray]:
    """Images that can be told apart, each with its own number as its label."""
    labels = np.arange(count)
    images = np.zeros((count, 32, 32, 3), np.uint8)
    images[:, 0, 0, 0], images[:, 0, 0, 1] = labels % 256, labels // 256
    return images, labels


def test_an_epoch_shows_each_training_image_once_with_its_label():
    images, labels = numbered_images(1000)
    chosen, held_out = training.split(1000, seed=0)
    orders = []
    for epoch in (0, 1):
        seen = list(training.batches(images, labels, chosen, tiny(batch=90), 0, epoch))
        assert [len(batch.labels) for batch in seen] == [90] * 10
        order = np.concatenate([batch.labels for batch in seen])
        shown = np.concatenate([batch.images for batch in seen]).astype(int)
        np.testing.assert_array_equal(shown[:, 0, 0, 0] + 256 * shown[:, 0, 0, 1], order)
        np.testing.assert_array_equal(np.sort(order), chosen)
        assert not np.intersect1d(order, held_out).size
        orders.append(order)
    assert (orders[0] == orders[1]).mean() < 0.1


def test_an_epoch_taken_up_in_its_middle_goes_on_as_it_was():
    images, labels = numbered_images(300)
    arguments = images, labels, training.split(300, 0)[0], tiny(), 5, 2
    whole = list(training.batches(*arguments))
    for first in range(len(whole) + 1):
        rest = list(training.batches(*arguments, first))
        assert len(rest) == len(whole) - first
        for one, other in zip(whole[first:], rest, strict=True):
            assert all(np.array_equal(a, b) for a, b in zip(one, other, strict=True))


def test_an_image_gets_the_same_numbers_whatever_the_batch():
    images, labels = numbered_images(300)
    chosen, _ = training.split(300, 0)

    def numbers_of(batch):
        seen = list(training.batches(images, labels, chosen, tiny(batch=batch), 0, 0))
        return {n: tuple(row) for b in seen for n, row in zip(b.labels, b.numbers, strict=True)}

    assert numbers_of(45) == numbers_of(90)


# ---- recipes


@pytest.mark.parametrize(("model", "dataset"), NETWORKS)
def test_the_papers_recipe_has_the_papers_schedule(model, dataset):
    text = (ROOT / "data" / "paper" / "training.csv").read_text()
    (row,) = (
        row
        for row in csv.DictReader(text.splitlines())
        if row["dataset"] == dataset and row["model"] == model.replace("-", "_")
    )
    found = recipe("paper", model, dataset)
    assert found.epochs == int(row["total_epochs"])
    for stage in "123":
        first, last = map(int, row[f"epochs_{stage}"].split("-"))
        for position in (first, last, last + 0.999):
            assert found.learning_rate(position) == float(row[f"lr_{stage}"])
    assert (found.batch, found.momentum, found.l2, found.size(0)) == (100, 0, 0, 32)
    assert found.l1 > 0 and found.augmentation == "paper"
    assert [epoch for epoch in range(6) if found.validates(epoch)] == [1, 3, 5]
    assert found.validates(found.epochs - 1)


@pytest.mark.parametrize(("model", "dataset"), NETWORKS)
@pytest.mark.parametrize("epochs", [None, 4])
def test_the_fast_recipe_is_one_cycle_that_ends_at_full_size(model, dataset, epochs):
    found = recipe("fast", model, dataset)
    found = found.stretched(epochs) if epochs else found
    assert found.epochs == (epochs or found.epochs)
    rates = [found.learning_rate(found.epochs * part) for part in np.linspace(0, 1, 101)]
    peak = int(np.argmax(rates))
    assert rates[0] < rates[peak] and rates[-1] == 0 and 10 <= peak <= 50
    assert (np.diff(rates[: peak + 1]) > 0).all() and (np.diff(rates[peak:]) < 0).all()
    assert found.size(found.epochs - 1) == 32


def test_the_command_line_offers_the_recipes_there_are():
    assert RECIPES == recipes.RECIPES
    with pytest.raises(InputError, match="there are fast, paper"):
        recipe("slow", "vgg7", "cifar10")


# ---- one step


def trained_once(network, model, images) -> list[np.ndarray]:
    """Outputs, gradients of the cross-entropy, and running statistics after one call."""
    labels = tf.constant(np.arange(len(images)) % 10)
    with tf.GradientTape() as tape:
        outputs = network(images, training=True)
        loss = tf.nn.sparse_softmax_cross_entropy_with_logits(labels, outputs)
    gradients = tape.gradient(loss, [variable.value for variable in model.trainable_variables])
    results = [outputs, *gradients, *model.non_trainable_variables]
    return [keras.ops.convert_to_numpy(result) for result in results]


def follow_quickly(model: keras.Model) -> None:
    """Running statistics that one batch changes visibly."""
    for layer in model.layers:
        if isinstance(layer, keras.layers.BatchNormalization):
            layer.momentum = 0.9


def test_the_twin_in_training_is_the_model_in_training(pixels):
    """As Keras's own training mode, computed in float64, on inputs that leave no sign in doubt."""
    images = tf.image.resize(pixels[:4], (8, 8)).numpy() / 255
    model = models.randomise(models.vgg7(final_activation=False), seed=1)
    weights = model.get_weights()
    follow_quickly(model)
    found = trained_once(training_twin(model, 8), model, images)
    before = keras.config.dtype_policy()
    keras.config.set_dtype_policy("float64")
    try:
        exact = models.vgg7(final_activation=False)
    finally:
        keras.config.set_dtype_policy(before)
    exact.set_weights(weights)
    follow_quickly(exact)
    small = keras.Input((8, 8, 3), dtype="float64")
    small = keras.models.clone_model(exact, input_tensors=small, clone_function=lambda layer: layer)
    images = images.astype(np.float64)
    values = images
    for layer in exact.layers[1:]:
        if layer.name.startswith("relu"):
            assert np.abs(values).min() > 1e-5  # float32 computes them to about 1e-6
        values = layer(values, training=True)
    exact.set_weights(weights)
    expected = trained_once(small, exact, images)
    assert len(found) == 1 + (6 * 3 + 1) + 6 * 2
    for index, count in enumerate((256, 256, 64, 64, 16, 16)):  # values in a channel
        statistic, old = -11 + 2 * index, 0.9 * weights[5 * index + 4]
        expected[statistic] = old + (expected[statistic] - old) * count / (count - 1)
        assert np.abs(expected[statistic] - weights[5 * index + 4]).max() > 0.01
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-4 * np.abs(other).max())


@pytest.mark.parametrize("name", models.MODELS)
def test_the_twin_takes_other_sizes_and_shares_every_weight(name):
    model = models.build(name, final_activation=False)
    twin = training_twin(model, 24)
    assert twin(np.zeros((2, 24, 24, 3), np.float32)).shape == (2, 10)
    ids = {id(variable) for variable in model.weights}
    assert {id(variable) for variable in twin.weights} <= ids
    kernels = {id(layer.kernel) for layer in model.layers if hasattr(layer, "kernel")}
    assert kernels <= {id(variable) for variable in twin.weights}


def test_a_step_is_gradient_descent_on_cross_entropy_and_penalties(pixels):
    """Re-derived with a plain tape: w - rate (gradient + l1 sign(w) + l2 w), kernels only."""
    plain = tiny(momentum=0.0, l1=0.003, l2=0.02, batch=16, sizes=((0, 32),))
    learner = Learner("vgg7", 10, plain, seed=3)
    models.randomise(learner.model, seed=4)
    inputs = tf.constant(pixels[:16], tf.float32) / 255
    labels = np.arange(16) % 10
    before = learner.weights()
    with tf.GradientTape() as tape:
        outputs = learner.model(inputs, training=True)
        losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels, outputs)
        mean = tf.reduce_mean(losses)
    variables = learner.model.trainable_variables
    gradients = tape.gradient(mean, [variable.value for variable in variables])
    learner.set_weights(before)
    loss, correct = learner.update(inputs, labels, rate=0.1)
    new = learner.weights()
    assert loss == pytest.approx(float(mean), rel=1e-5)
    assert correct == (np.argmax(outputs, -1) == labels).sum()
    for variable, gradient in zip(variables, gradients, strict=True):
        old = before[variable.path]
        step = gradient.numpy()
        if variable.path.endswith("kernel"):
            step = step + 0.003 * np.sign(old) + 0.02 * old
        scale = np.abs(step).max()
        np.testing.assert_allclose(new[variable.path], old - 0.1 * step, atol=1e-4 * scale + 1e-7)


@pytest.mark.parametrize("shape", [(130, 9, 7, 5), (3, 8, 8, 4)])
def test_the_gradients_of_a_convolution_are_convolutions(shape):
    """More and fewer images than are taken at a time; a kernel that is not square."""
    rng = np.random.default_rng(0)
    inputs, kernel = (tf.constant(rng.normal(size=s)) for s in (shape, (3, 5, shape[-1], 6)))
    found = []
    for convolution in (convolve, lambda x, w: tf.nn.conv2d(x, w, 1, "SAME")):
        with tf.GradientTape() as tape:
            tape.watch([inputs, kernel])
            outputs = convolution(inputs, kernel)
            total = tf.reduce_sum(tf.sin(outputs))
        found.append([outputs, *tape.gradient(total, [inputs, kernel])])
    for one, other in zip(*found, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-11)


def near_one(value: np.ndarray) -> np.ndarray:
    """What orthogonal steps make of singular values: Muon's quintic, four times."""
    for _ in range(4):
        value = 3.4445 * value - 4.7750 * value**3 + 2.0315 * value**5
    return value


def orthogonal_by_svd(kernel: np.ndarray) -> np.ndarray:
    left, values, right = np.linalg.svd(kernel.reshape(-1, kernel.shape[-1]), full_matrices=False)
    values = near_one(values / np.linalg.norm(values))
    return ((left * values) @ right).reshape(kernel.shape)


@pytest.mark.parametrize("shape", [(3, 3, 32, 32), (3, 3, 3, 32), (1, 1, 8, 4), (3, 3, 96, 96)])
def test_orthogonal_keeps_singular_vectors_and_evens_out_singular_values(shape):
    kernel = np.random.default_rng(0).normal(size=shape)
    found = orthogonal(tf.constant(kernel)).numpy()
    np.testing.assert_allclose(found, orthogonal_by_svd(kernel), atol=1e-6)
    values = np.linalg.svd(found.reshape(-1, shape[-1]), compute_uv=False)
    assert values.min() > 0.6 and values.max() < 1.3


@pytest.mark.parametrize(("momentum", "decay"), [(0.0, None), (0.8, None), (0.8, 2.0)])
def test_two_steps_of_muon(pixels, momentum, decay):
    """Re-derived with a plain tape and a singular value decomposition; all but kernels as ever.

    With a decay of their own, kernels are left out of the penalty.
    """
    penalty = 0.0 if decay is None else 3.0
    turned = tiny(kernel_rate=0.5, kernel_decay=decay, momentum=momentum, l2=penalty, batch=16)
    ordinary = replace(turned, kernel_rate=None, kernel_decay=None)
    inputs = tf.constant(pixels[:16], tf.float32) / 255
    labels = np.arange(16) % 10
    learner, other = Learner("vgg7", 10, turned, seed=3), Learner("vgg7", 10, ordinary, seed=3)
    mean = 0.0
    for rate in (0.1, 0.02):
        old = learner.weights()
        with tf.GradientTape() as tape:
            outputs = learner.model(inputs, training=True)
            losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels, outputs)
            loss = tf.reduce_mean(losses)
        (kernel,) = (v for v in learner.model.trainable_variables if v.path == "conv3/kernel")
        gradient = tape.gradient(loss, kernel.value).numpy().astype(np.float64)
        learner.set_weights(old)
        learner.update(inputs, labels, rate)
        mean = momentum * mean + gradient
        before = old["conv3/kernel"].astype(np.float64)
        before *= 64**0.5 / np.linalg.norm(before) if decay is None else 1 - decay * rate
        step = orthogonal_by_svd(gradient + momentum * mean)
        found = learner.weights()["conv3/kernel"]
        np.testing.assert_allclose(found, before - 0.5 * rate * step, atol=1e-3 * rate)
        if rate == 0.1:
            other.update(inputs, labels, rate)
            new, same = learner.weights(), other.weights()
            changed = {key for key in new if not np.allclose(new[key], same[key], atol=1e-6)}
            assert changed == {f"conv{index}/kernel" for index in range(6)}


def test_kernels_that_begin_at_zero_learn_by_orthogonal_steps(pixels):
    learner = Learner("resnet20-fixup", 10, tiny(batch=16, kernel_rate=0.1, kernel_decay=0.0), 0)
    images = learner.prepare(pixels[:16], np.full((16, 3), 0.5, np.float32), 8)
    first, *_, last = (learner.update(images, np.arange(16) % 10, 0.05)[0] for _ in range(12))
    assert np.linalg.norm(learner.weights()["conv2/kernel"]) > 0
    assert last < first


def test_orthogonal_steps_where_they_make_no_sense_are_refused():
    with pytest.raises(InputError, match=r"batch normalisation; 'resnet20-fixup' has none.*decay"):
        Learner("resnet20-fixup", 10, tiny(kernel_rate=0.1), 0)
    with pytest.raises(InputError, match="kernel_rate is None"):
        Learner("vgg7", 10, tiny(kernel_decay=0.1), 0)


def test_the_inputs_of_fixup_are_normalised(pixels):
    still = np.array([[0.9, 0.5, 0.5]], np.float32)  # no flip, no shift
    for name in ("vgg7", "resnet20-fixup"):
        learner = Learner(name, 10, tiny(), seed=0)
        found = learner.prepare(pixels[:1], still, 32).numpy()
        expected = models.preprocess(name, pixels[:1].astype(np.float32) / 255)
        np.testing.assert_allclose(found, expected, atol=1e-6)
        assert learner.prepare(pixels[:1], still, 24).shape == (1, 24, 24, 3)


TWO_DEVICES = """
import sys
import numpy as np, tensorflow as tf
cpu = tf.config.list_physical_devices("CPU")[0]
tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
sys.path[:0] = ["tests", "tests/experiments"]
from test_training import tiny
from adjoint_lib.experiments.training.learner import Learner
rng = np.random.default_rng(0)
images, labels = rng.random((3, 16, 8, 8, 3), np.float32), rng.integers(0, 10, (3, 16))
results = []
for strategy in (None, tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])):
    learner = Learner("resnet20-fixup", 10, tiny(batch=16), 0, strategy)
    print([learner.update(tf.constant(x), y, 0.1) for x, y in zip(images, labels)])
    results.append(learner.weights())
one, two = results
assert learner.strategy.num_replicas_in_sync == 2
moved = Learner("resnet20-fixup", 10, tiny(batch=16), 0).weights()
for key in one:
    np.testing.assert_allclose(one[key], two[key], atol=1e-5, err_msg=key)
assert sum((one[key] != moved[key]).any() for key in one) > 20
learner = Learner("vgg7", 10, tiny(batch=16), 0, strategy)   # batch normalisation, too
before = learner.weights()
learner.update(tf.constant(images[0]), labels[0], 0.1)
assert (learner.weights()["bn5/moving_mean"] != before["bn5/moving_mean"]).any()
learner.set_state(learner.state())
twice = tf.repeat(images[0, :8], 2, axis=0), np.repeat(labels[0, :8], 2)  # the same to each device
turned = [Learner("vgg7", 10, tiny(batch=16, kernel_rate=0.1), 0, s) for s in (None, strategy)]
for each in turned:
    each.update(*twice, 0.1)
one, two = (each.weights() for each in turned)
for key in one:
    np.testing.assert_allclose(one[key], two[key], atol=1e-3, err_msg=key)
assert all((one[key] != before[key]).any() for key in one if "kernel" in key)
try:
    Learner("vgg7", 10, tiny(batch=15), 0, strategy)
except ValueError as error:
    print("refused:", error)
"""


def test_two_devices_do_together_what_one_does():
    run = subprocess.run(
        [sys.executable, "-c", TWO_DEVICES], cwd=ROOT, capture_output=True, text=True
    )
    assert run.returncode == 0, run.stderr[-3000:]
    assert "refused: A batch of 15 cannot be shared evenly by 2 devices" in run.stdout


# ---- runs


@pytest.fixture(scope="module")
def finished(tmp_path_factory) -> Path:
    """The weights of a short run on the sample that was never stopped."""
    folder = tmp_path_factory.mktemp("finished")
    return training.train("vgg7", "cifar10", tiny(), 0, folder, sample=True, progress=False)


def log_of(folder: Path) -> list[dict]:
    return list(csv.DictReader((folder / "log.csv").read_text().splitlines()))


def test_a_run_leaves_weights_with_their_record(finished):
    record = provenance(finished)
    digest = hashlib.sha256(finished.read_bytes()).hexdigest()
    assert record["sha256"] == digest
    model = models.vgg7(weights=finished)  # in the network with its final activation
    assert model.layers[-1].name == "relu6"
    images, labels = data.sample("cifar10")
    chosen, held_out = training.split(300, 0)
    bare = models.vgg7(weights=finished, final_activation=False)
    scores = evaluation.Scorer(bare, "vgg7")(images)
    for name, indices in (("train", chosen), ("validation", held_out)):
        assert record["accuracy"][name]["correct"] == int(
            (scores[indices].argmax(-1) == labels[indices]).sum()
        )
    assert "test" not in record["accuracy"]  # there are no images left for that
    assert record["split"]["training"] == 270 and record["split"]["validation"] == 30
    assert record["data"] == {"samples/cifar10.npz": DATASETS["cifar10"].sample.sha256}
    assert record["time"]["cores"] >= 1 and record["time"]["cpu_seconds"] > 0
    assert 0 < record["time"]["input_share"] < 1
    assert record["versions"]["tensorflow"] == tf.__version__
    assert str(ROOT) not in json.dumps(record)


def test_the_log_has_a_row_an_epoch_and_the_best_validation_is_kept(finished):
    record, rows = provenance(finished), log_of(finished.parent)
    assert [int(row["epoch"]) for row in rows] == [0, 1, 2]
    assert [int(row["size"]) for row in rows] == [8, 8, 32]
    found = {int(r["epoch"]): r["validation_accuracy"] for r in rows if r["validation_accuracy"]}
    assert set(found) == {1, 2}  # every second epoch, and the last
    best = max(found.values(), key=float)
    assert found[record["selected_epoch"]] == best
    assert record["accuracy"]["validation"]["value"] == float(best)
    assert len(record["curve"]) == 3


def test_a_finished_run_is_left_alone(finished):
    def state():
        return {p.name: p.stat().st_mtime_ns for p in finished.parent.iterdir()}

    before = state()
    again = training.train(
        "vgg7", "cifar10", tiny(), 0, finished.parent, sample=True, progress=False
    )
    assert again == finished and state() == before


def test_a_finished_run_is_not_taken_for_another(finished, tmp_path):
    """Without its checkpoint, the weights of seed 0 were given to who asked for seed 1."""

    def again(seed=0, model="vgg7"):
        return training.train(
            model, "cifar10", tiny(), seed, tmp_path, sample=True, progress=False
        ).read_bytes()

    shutil.copytree(finished.parent, tmp_path, dirs_exist_ok=True)
    whole = finished.read_bytes()
    (tmp_path / finished.name).write_bytes(whole[:-9])
    assert again() == whole  # written once more, from the checkpoint
    (tmp_path / "checkpoint.npz").write_bytes(b"damaged")
    assert again() == whole  # which a finished run does not need
    (tmp_path / "checkpoint.npz").unlink()
    assert again() == whole
    with pytest.raises(InputError, match="seed 0 there, 1 now"):
        again(seed=1)


def test_equal_seeds_give_equal_weights_and_other_seeds_others(finished, tmp_path):
    def digest(seed):
        path = training.train(
            "vgg7", "cifar10", tiny(), seed, tmp_path / str(seed), sample=True, progress=False
        )
        return provenance(path)["sha256"]

    assert digest(0) == provenance(finished)["sha256"] != digest(1)


BREAKABLE = """
import os, sys
sys.path[:0] = ["tests", "tests/experiments"]
from test_training import tiny
from adjoint_lib.experiments.training import run as training

folder, number, after = sys.argv[1], *map(int, sys.argv[2:])
save = training._Run.save

def save_and_signal(run):
    save(run)
    if after and 6 * run.progress.epoch + run.progress.step == after:
        os.kill(os.getpid(), number)

training._Run.save = save_and_signal
training.train("vgg7", "cifar10", tiny(), 0, folder, sample=True, checkpoint_seconds=0)
"""


def broken_off(folder: Path, number: int = 0, after: int = 0) -> tuple[int, str]:
    """Runs BREAKABLE, to which a signal comes ``after`` so many steps; exit code and messages."""
    program = [sys.executable, "-c", BREAKABLE, str(folder), str(int(number)), str(after)]
    done = subprocess.run(program, cwd=ROOT, capture_output=True, text=True)
    return done.returncode, done.stderr


def steps_done(folder: Path) -> int:
    """By the checkpoint."""
    found = checkpoint.load_checkpoint(folder / "checkpoint.npz")
    return 0 if found is None else found[1]["progress"]["epoch"] * 6 + found[1]["progress"]["step"]


@pytest.mark.skipif(sys.platform == "win32", reason="needs POSIX signals")
def test_a_run_killed_and_interrupted_ends_as_an_unbroken_one(finished, tmp_path):
    """kill -9 in the first epoch, Ctrl-C in the second, then to the end: equal to the bit."""
    code, _ = broken_off(tmp_path, signal.SIGKILL, after=3)
    assert code == -signal.SIGKILL and steps_done(tmp_path) == 3
    (tmp_path / "checkpoint.npz.1.partial").write_bytes(b"as if killed while writing")
    code, messages = broken_off(tmp_path, signal.SIGINT, after=8)
    assert code != 0 and "Stopped and saved" in messages
    assert steps_done(tmp_path) == 8 and not (tmp_path / finished.name).exists()
    on_its_way = json.loads((tmp_path / "record.json").read_text())
    assert on_its_way["accuracy"] == {} and len(on_its_way["curve"]) == 1
    reached = on_its_way["reached"]
    assert (reached["epoch"], reached["step"]) == (1, 2)
    assert 0 <= reached["train_accuracy"] <= 1 and 1 < reached["train_loss"] < 5
    code, messages = broken_off(tmp_path)
    assert code == 0, messages
    record, unbroken = provenance(tmp_path / finished.name), provenance(finished)
    assert record["sha256"] == unbroken["sha256"]
    assert record["time"]["sittings"] == 3 and unbroken["time"]["sittings"] == 1
    begun = [(each["epoch"], each["step"]) for each in record["sessions"]]
    assert begun == [(0, 0), (0, 3), (1, 2)]  # where each session took up
    assert all(each["processor"] == machine.processor() for each in record["sessions"])
    assert record["reached"] == {"epoch": 3, "step": 0}
    one, other = (
        [{k: v for k, v in row.items() if "seconds" not in k and k != "input_share"} for row in log]
        for log in (log_of(tmp_path), log_of(finished.parent))
    )
    assert one == other
    assert not list(tmp_path.glob("*.partial"))


def test_the_test_images_are_looked_at_once_and_last(tmp_path, monkeypatch):
    events = []
    images, labels = data.sample("cifar10")

    def load(name, split):
        rows = len(log_of(tmp_path)) if (tmp_path / "log.csv").exists() else 0
        events.append((split, rows))
        return images, labels

    monkeypatch.setattr(data, "load", load)
    short = tiny(epochs=2, sizes=((0, 8),))
    for _ in range(2):
        path = training.train("vgg7", "cifar10", short, 0, tmp_path, progress=False)
    tests = [rows for split, rows in events if split == "test"]
    assert tests == [2]  # once, when both epochs had ended
    assert provenance(path)["accuracy"]["test"]["count"] == 300


def test_a_folder_of_another_run_is_refused(finished):
    with pytest.raises(InputError, match="holds another run: seed 0 there, 1 now"):
        training.train("vgg7", "cifar10", tiny(), 1, finished.parent, sample=True)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"model": "vgg8"}, "there are vgg7"),
        ({"dataset": "mnist"}, "cifar100"),
        ({"recipe": tiny(batch=500)}, "only 270 training images"),
        ({"epochs": 0}, "at least 1"),
    ],
)
def test_wrong_arguments_are_refused(tmp_path, arguments, said):
    usual = {"model": "vgg7", "dataset": "cifar10", "folder": tmp_path / "run", "sample": True}
    with pytest.raises(InputError, match=said):
        training.train(**usual | arguments)


def test_a_diverging_run_says_so_and_keeps_its_last_checkpoint(tmp_path):
    wild = tiny(rates=((0, 0.0), (1, 0.0), (1.01, 1e30), (3, 1e30)), sizes=((0, 8),))
    with pytest.raises(DivergedError, match="lower learning rate"):
        training.train("vgg7", "cifar10", wild, 0, tmp_path, sample=True, progress=False)
    assert steps_done(tmp_path) == 6


# ---- checkpoints


def test_a_checkpoint_is_kept_when_the_next_one_fails(tmp_path, monkeypatch):
    path = tmp_path / "checkpoint.npz"
    assert checkpoint.load_checkpoint(path) is None
    checkpoint.save_checkpoint(path, {"a": np.arange(3.0)}, {"epoch": 1})

    def full_disk(file, **arrays):
        file.write(b"half a file")
        raise OSError("no space left")

    monkeypatch.setattr(np, "savez", full_disk)
    with pytest.raises(OSError, match="no space"):
        checkpoint.save_checkpoint(path, {"a": np.zeros(3)}, {"epoch": 2})
    arrays, notes = checkpoint.load_checkpoint(path)
    np.testing.assert_array_equal(arrays["a"], [0.0, 1.0, 2.0])
    assert notes == {"epoch": 1}


def test_a_damaged_checkpoint_is_refused(tmp_path):
    path = tmp_path / "checkpoint.npz"
    checkpoint.save_checkpoint(path, {"a": np.arange(300.0)}, {"epoch": 1})
    whole = path.read_bytes()
    for damaged in (whole[:500], b"", b"no archive", whole[:200] + b"\xff" * 9 + whole[209:]):
        path.write_bytes(damaged)
        with pytest.raises(DataError, match="Remove it to start the run again"):
            checkpoint.load_checkpoint(path)


# ---- evaluation


@given(st.integers(1, 10_000).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_the_interval_holds_the_shares_that_the_count_does_not_rule_out(case):
    """Wilson's: both ends p solve (found - p)^2 = z^2 p (1 - p) / n, and enclose what was found."""
    correct, count = case
    found = evaluation.Accuracy(correct, count)
    low, high = found.interval()
    assert 0 <= low <= found.value <= high <= 1
    for p in (low, high):
        assert (found.value - p) ** 2 == pytest.approx(1.96**2 * p * (1 - p) / count, abs=2e-4)


def test_accuracy_counts_the_largest_score():
    scores = np.array([[0.0, 2.0], [3.0, 1.0], [1.0, 1.0]])
    assert evaluation.accuracy(scores, np.array([1, 1, 0])) == evaluation.Accuracy(2, 3)
    with pytest.raises(InputError, match="3 outputs and 2 labels"):
        evaluation.accuracy(scores, np.array([1, 1]))


def test_scores_are_those_of_the_model_for_either_kind_of_image(pixels):
    model = models.randomise(models.resnet20_fixup(final_activation=False))
    scorer = evaluation.Scorer(model, "resnet20-fixup")
    images = pixels[:7].astype(np.float32) / 255
    expected = keras.ops.convert_to_numpy(model(models.normalise(images)))
    np.testing.assert_allclose(scorer(images), expected, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(scorer(pixels[:7]), expected, rtol=1e-4, atol=1e-4)


def test_disagreements_are_listed_and_ties_told_apart():
    scores = np.array([[1.0, 0.0, 0.0], [0.0, 2.0, 1.0], [4.0, 3.99999, 0.0]])
    others = np.array([[1.0, 0.9, 0.0], [0.0, 1.0, 2.0], [3.99999, 4.0, 0.0]])
    real, tie = evaluation.disagreements(scores, others)
    assert (real.index, real.classes, real.margin, real.tied) == (1, (1, 2), 0.5, False)
    assert (tie.index, tie.classes, tie.tied) == (2, (0, 1), True)


def test_the_equivalent_network_has_the_models_scores(pixels):
    model = models.randomise(models.vgg7(final_activation=False), seed=2)
    images = pixels[:20].astype(np.float32) / 255
    scores = evaluation.Scorer(model, "vgg7")(images)
    others = evaluation.equivalent_scores(al.equivalent(model), "vgg7", images)
    np.testing.assert_allclose(scores, others, atol=1e-4 * np.abs(scores).max())


def test_the_commands_train_and_evaluate(tmp_path, capsys):
    which = ["--model", "vgg7", "--dataset", "cifar100", "--sample"]
    # 18 training images of CIFAR-100 do not fill a batch: refused, with the reason.
    assert command_line.main(["train", *which, "--folder", str(tmp_path)]) == 2
    assert "only 18 training images" in capsys.readouterr().err
    which[3] = "cifar10"
    assert command_line.main(["train", *which, "--epochs", "1", "--folder", str(tmp_path)]) == 0
    out, err = capsys.readouterr()
    assert "vgg7-cifar10.npz" in out and "validation:" in out
    assert "rate=" in err and "loss=" in err and "accuracy=" in err  # the progress bar
    path = tmp_path / "vgg7-cifar10.npz"
    assert provenance(path)["command"] == (
        "python -m adjoint_lib train --model vgg7 --dataset cifar10 --recipe fast --seed 0 "
        "--epochs 1 --sample"
    )
    assert command_line.main(["evaluate", *which, "--weights", str(path), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    images, labels = data.sample("cifar10")
    expected = (np.array(models.vgg7(weights=path, final_activation=False)(images))).argmax(-1)
    assert found["correct"] == (expected == labels).sum() and found["count"] == 300
    assert all(one["margin"] <= 1e-4 for one in found["equivalent_disagrees"])
    assert command_line.main(["evaluate", *which, "--weights", str(path)]) == 0
    out = capsys.readouterr().out
    assert f"{found['correct']} of 300" in out and "95 % interval" in out


# ---- the trained weights that come with the library


@pytest.mark.parametrize(("model", "dataset"), NETWORKS)
def test_trained_weights_are_recorded_and_as_good_as_the_papers(model, dataset):
    record = provenance(ROOT / "data" / "weights" / f"{model}-{dataset}.npz")
    (row,) = (
        row
        for row in csv.DictReader((ROOT / "data/paper/training.csv").read_text().splitlines())
        if (row["dataset"], row["model"]) == (dataset, model.replace("-", "_"))
    )
    assert record["accuracy"]["test"]["count"] == 10_000
    assert record["accuracy"]["test"]["value"] >= float(row["test_accuracy_percent"]) / 100
    assert (record["model"], record["dataset"]) == (model, dataset)
    # Selected by validation, among all epochs that were validated.
    validated = {r["epoch"]: r["validation_accuracy"] for r in record["curve"]}
    best = max(value for value in validated.values() if value is not None)
    assert validated[record["selected_epoch"]] == best
    assert record["accuracy"]["validation"]["value"] == pytest.approx(best, abs=5e-4)
    assert len(record["curve"]) == record["recipe"]["epochs"]
    # The split, the data and the command are those that the library has now.
    held_out = training.split(50_000, record["seed"])[1]
    digest = hashlib.sha256(held_out.astype("<i8").tobytes()).hexdigest()
    assert record["split"]["validation_indices_sha256"] == digest
    assert record["data"] == {file.name: file.sha256 for file in DATASETS[dataset].files}
    words = record["command"].removeprefix("python -m adjoint_lib ").split()
    options = command_line.parser().parse_args(words)
    found = recipe(options.recipe, options.model, options.dataset)
    found = found.stretched(options.epochs) if options.epochs else found
    assert found == recorded(record["recipe"])
    for layer in models.build(model).layers:
        if isinstance(layer, keras.layers.BatchNormalization):
            assert layer.momentum == record["recipe"].get("norm_momentum", layer.momentum)


@pytest.mark.parametrize(("model", "dataset"), NETWORKS)
def test_trained_weights_do_on_the_sample_as_on_the_test_images(model, dataset):
    record = provenance(ROOT / "data" / "weights" / f"{model}-{dataset}.npz")
    trained = models.build(model, weights=dataset, final_activation=False)
    images, labels = data.sample(dataset)
    scores = evaluation.Scorer(trained, model)(images)
    found, share = evaluation.accuracy(scores, labels), record["accuracy"]["test"]["value"]
    assert abs(found.value - share) < 4 * (share * (1 - share) / found.count) ** 0.5
    others = evaluation.equivalent_scores(al.equivalent(trained), model, images)
    assert all(one.tied for one in evaluation.disagreements(scores, others))


# ---- the runs on their way that come with the library

KEPT = sorted(path.name for path in (ROOT / "data" / "runs").glob("*/"))


def test_the_record_of_a_kept_run_is_that_of_its_weights_once_it_has_ended(tmp_path, monkeypatch):
    monkeypatch.setattr(resources, "_root", lambda: tmp_path)
    assert al.training.kept("vgg7", "cifar10") is None
    folder = tmp_path / "runs" / "vgg7-cifar10-paper-0"
    folder.mkdir(parents=True)
    (folder / "record.json").write_text('{"reached": {"epoch": 3}}')
    assert al.training.kept("vgg7", "cifar10") == {"reached": {"epoch": 3}}
    assert (
        al.training.kept("vgg7", "cifar100") is None
        and al.training.kept("vgg7", "cifar10", "fast") is None
    )
    (folder / "vgg7-cifar10.json").write_text('{"reached": {"epoch": 501}}')
    assert al.training.kept("vgg7", "cifar10") == {"reached": {"epoch": 501}}


@pytest.mark.parametrize("name", KEPT)
def test_a_kept_run_is_one_of_its_recipe_and_says_what_computed_it(name):
    model, dataset, kind, seed = name.rsplit("-", 3)
    found = al.training.kept(model, dataset, kind, int(seed))
    assert recorded(found["recipe"]) == recipe(kind, model, dataset)
    words = f"train --model {model} --dataset {dataset} --recipe {kind} --seed {seed}"
    assert found["command"] == f"python -m adjoint_lib {words}"
    assert found["data"] == {file.name: file.sha256 for file in DATASETS[dataset].files}
    assert found["time"]["sittings"] == len(found["sessions"]) > 0
    for each in found["sessions"]:
        assert set(each["processor"]) == {"name", "rounding"} and each["versions"]["tensorflow"]
    steps = 45_000 // found["recipe"]["batch"]
    begun = [steps * each["epoch"] + each["step"] for each in found["sessions"]]
    reached = steps * found["reached"]["epoch"] + found["reached"]["step"]
    assert begun[0] == 0 and begun == sorted(begun) and begun[-1] <= reached
    assert [row["epoch"] for row in found["curve"]] == list(range(found["reached"]["epoch"]))


@pytest.mark.parametrize(
    "name", [n for n in KEPT if (ROOT / "data/runs" / n / training.CHECKPOINT).exists()]
)
def test_a_kept_checkpoint_goes_on_and_does_on_the_sample_as_its_record_says(name):
    model, dataset, kind, seed = name.rsplit("-", 3)
    found = al.training.kept(model, dataset, kind, int(seed))
    arrays, notes = checkpoint.load_checkpoint(ROOT / "data/runs" / name / training.CHECKPOINT)
    progress = training.Progress.restored(notes["progress"])
    assert {"epoch": progress.epoch, "step": progress.step}.items() <= found["reached"].items()
    assert progress.log == found["curve"]
    learner = Learner(
        model, len(data.CLASS_NAMES[dataset]), recipe(kind, model, dataset), int(seed)
    )

    def part(prefix):
        return {k.removeprefix(prefix): a for k, a in arrays.items() if k.startswith(prefix)}

    learner.set_state(part("learner/"))
    numbers = np.zeros((100, 6), np.float32)
    images, labels = data.sample(dataset)
    inputs = learner.prepare(np.rint(images[:100] * 255).astype(np.uint8), numbers, 32)
    loss, _ = learner.update(inputs, labels[:100], rate=0.01)
    assert np.isfinite(loss)
    if progress.best_epoch is not None:
        learner.set_weights(part("best/"))
        share, seen = progress.best_accuracy, learner.accuracy(images, labels)
        assert abs(seen.value - share) < 4 * (share * (1 - share) / seen.count) ** 0.5
