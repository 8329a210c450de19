"""Networks nobody here designed: keras.applications, random weights, reduced size, float64."""

import keras
import numpy as np
import pytest

import adjoint_lib as al
from reference import random_model

NETWORKS = {
    "MobileNetV2": (keras.applications.MobileNetV2, {"alpha": 0.35}),  # ReLU6, depthwise, residual
    "ResNet50": (keras.applications.ResNet50, {}),  # residual, BN after convolutions with a bias
    "DenseNet121": (keras.applications.DenseNet121, {}),  # BN before convolutions, concatenation
}


@pytest.mark.parametrize("name", NETWORKS)
def test_an_application_is_exact(name):
    """All units by one tangent; hypersurfaces of units of every tenth layer and of the last."""
    build, options = NETWORKS[name]
    fixed = {
        "weights": None,
        "input_shape": (32, 32, 3),
        "classes": 7,
        "classifier_activation": None,
    }
    model = random_model(build, seed=2, **fixed, **options)
    net = al.equivalent(model)
    x = np.random.default_rng(0).normal(size=(32, 32, 3))
    theirs, ours = model(x[None], training=False).numpy(), net(x).numpy()
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-10 * np.abs(theirs).max())

    report = al.verify(net, x, layers="all", method="tangent", progress=False)
    assert report.passed and all(r.share(1e-4) == 1 for r in report.layers.values())

    values = net.value(x)
    rng = np.random.default_rng(1)
    for layer in [*net.layers[::10], net.layers[-1]]:
        H = net.hypersurface(x, layer.name)
        units = rng.integers(0, layer.shape, (4, len(layer.shape)))
        c = values[layer.name].numpy()[0]
        found = H.at(units).value
        np.testing.assert_allclose(found, c[tuple(units.T)], rtol=0, atol=1e-10 * np.abs(c).max())
