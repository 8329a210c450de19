"""Every unit of every layer of the paper's three networks, in all five modes, in float64.

Random weights with random batch-normalisation statistics. |c_hat - c| <= 1e-12 A for every unit, A
the rounding scale, against the folded and against the original network. As A grows fast with
depth, each error is also held below 1e-12 of the layer's largest value times the depth, a much
tighter limit.
"""

import keras
import numpy as np
import pytest
import tensorflow as tf

import adjoint_lib as al
from adjoint_lib.core.error_bounds import absolute, rounding_scale
from reference import random_model

SAMPLE = 500


class Case:
    """One network, one image: c of the folded and of the original network, and the scales A."""

    def __init__(self, name: str):
        self.model = random_model(al.models.MODELS[name], seed=11)
        self.net = al.equivalent(self.model)
        image, _ = al.data.sample("cifar10")
        self.x = al.models.preprocess(name, image[:1])[0].astype(float)
        self.frozen = self.net.freeze(self.x)
        self.values = {n: c.numpy()[0] for n, c in self.net.value(self.x).items()}
        self.scales = {n: A[0] for n, A in rounding_scale(self.frozen, self.net.layers).items()}
        self.originals = self.original_values()

    def original_values(self) -> dict[str, np.ndarray]:
        """c as the original model has it: after its BN, less b'; or after its multiplier."""
        shown = {}
        for layer in self.net.layers:
            number = layer.name.removeprefix("conv")
            after = [f"bn{number}", f"m{number}"]
            present = [n for n in after if n in {x.name for x in self.model.layers}]
            shown[layer.name] = self.model.get_layer(present[0] if present else layer.name).output
        outputs = keras.Model(self.model.input, shown)(self.x[None], training=False)
        found = {}
        for layer in self.net.layers:
            folded_bn = isinstance(self.followed_by(layer.name), keras.layers.BatchNormalization)
            own = self.net.x_b[layer.bias] if folded_bn else 0.0
            found[layer.name] = outputs[layer.name].numpy()[0] - own
        return found

    def followed_by(self, name: str):
        return self.model.get_layer(name)._outbound_nodes[0].operation if name != "fc" else None

    def check(self, layer, found, folded, original, A, steps=""):
        """found is within 1e-12 A of both references, and within 1e-12 * depth of the largest."""
        depth = 1 + self.net.layers.rows.index(layer)
        largest = np.abs(folded).max()
        for reference in (folded, original):
            error = np.abs(found - reference)
            assert np.all(error <= 1e-12 * A), (layer.name, steps, float(np.max(error / A)))
            assert error.max() <= 1e-12 * depth * largest, (
                layer.name,
                steps,
                error.max() / largest,
            )


@pytest.fixture(scope="module", params=["vgg7", "resnet20", "resnet20-fixup"])
def case(request):
    return Case(request.param)


def test_every_unit_by_its_own_hypersurface(case):
    """RM2 of all convolutions and RM0 of FC, first layer included: streamed, no unit left out."""
    v = np.concatenate([case.x.reshape(-1), case.net.x_b])
    totals = {layer.name: np.zeros(layer.shape) for layer in case.net.layers}
    for layer, block in case.frozen.hypersurfaces():
        totals[layer.name] += tf.tensordot(v[block.rows], block.dense(), 1).numpy()
    for layer in case.net.layers:
        name = layer.name
        case.check(layer, totals[name], case.values[name], case.originals[name], case.scales[name])


def test_every_channel_sum(case):
    """RM1 of every convolution: the sum of an out-channel's units."""
    for layer in case.net.layers[:-1]:
        found = case.net.hypersurface(case.x, layer.name, "RM1")[...].value
        sums = [t[layer.name].sum((0, 1)) for t in (case.values, case.originals, case.scales)]
        case.check(layer, found, *sums, "RM1")


def test_a_sample_of_units_before_the_sum_over_in_channels(case):
    """RM4 and RM3 on 500 random units a layer: single in-channels, by a depthwise convolution."""
    rng = np.random.default_rng(5)
    unsigned = absolute(case.frozen)
    starts = unsigned.along(*(tf.abs(part) for part in unsigned.v))
    A_F = dict(unsigned.push(starts, [layer.reads for layer in case.net.layers]))
    read = {layer.name: case.model.get_layer(layer.name).input for layer in case.net.layers}
    F = keras.Model(case.model.input, read)
    maps = F(case.x[None], training=False)
    for layer in case.net.layers[:-1]:
        kernel = case.net.graph.nodes[layer.number].primitive.kernel
        c = per_channel(maps[layer.name], kernel, layer)
        A = per_channel(A_F[layer.reads], np.abs(kernel), layer)
        np.testing.assert_allclose(c.sum(2), case.values[layer.name], atol=1e-11 * np.abs(c).max())
        for mode, values, scale in (("RM4", c, A), ("RM3", c.sum((0, 1)), A.sum((0, 1)))):
            units = rng.integers(0, values.shape, (SAMPLE, values.ndim))
            found = case.net.hypersurface(case.x, layer.name, mode).at(units).value
            chosen = values[tuple(units.T)]
            error = np.abs(found - chosen)
            assert np.all(error <= 1e-12 * scale[tuple(units.T)]), (layer.name, mode)
            assert error.max() <= 1e-10 * np.abs(values).max(), (layer.name, mode)


def per_channel(maps, kernel, layer):
    """(h, w, c_in, c_out): each in-channel's part of each unit."""
    strides = (1, *layer.strides, 1)
    flat = tf.nn.depthwise_conv2d(tf.cast(maps, tf.float64), kernel, strides, "SAME")
    return flat.numpy()[0].reshape(*layer.shape[:-1], *kernel.shape[2:])
