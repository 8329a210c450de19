"""Networks nobody here designed: keras.applications, random weights, reduced size, float64.

`data/applications.json` says of one network of each family whether it is exact or which smooth
layer it is refused by; chapter 18 shows it. These tests compute it; all of it, in some minutes, by

    ADJOINT_FULL=1 pytest tests/frontend/test_applications.py
"""

import json
import os
import re
from pathlib import Path

import keras
import numpy as np
import pytest

import adjoint_lib as al
from reference import random_model

FILE = Path(__file__).parents[2] / "data" / "applications.json"
ROWS = {row["model"]: row for row in json.loads(FILE.read_text())["rows"]}
QUICK = ("MobileNetV2", "ResNet50", "DenseNet121")  # ReLU6; BN after biases; BN before kernels
REFUSED = [name for name, row in ROWS.items() if row["refused"]]
EXACT = [name for name in ROWS if name not in REFUSED]
CHOSEN = EXACT if os.environ.get("ADJOINT_FULL") else QUICK


def application(name: str) -> keras.Model:
    side = ROWS[name]["side"]
    return random_model(
        getattr(keras.applications, name),
        seed=2,
        weights=None,
        input_shape=(side, side, 3),
        classes=7,
        classifier_activation=None,
        **({"alpha": 0.35} if name == "MobileNetV2" else {}),
    )


@pytest.mark.parametrize("name", CHOSEN)
def test_an_application_is_exact(name):
    """All units by one tangent; hypersurfaces of units of every tenth layer and of the last."""
    model = application(name)
    net = al.equivalent(model)
    x = np.random.default_rng(0).normal(size=net.input_shape)
    theirs, ours = model(x[None], training=False).numpy(), net(x).numpy()
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-10 * np.abs(theirs).max())
    assert len(net.layers) == ROWS[name]["layers"]

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


@pytest.mark.parametrize("name", REFUSED)
def test_an_application_is_refused_by_the_name_of_its_smooth_layer(name):
    row = ROWS[name]
    # Keras numbers layers without a name of their own, from process to process
    layer = re.escape(re.sub(r"_\d+$", "", row["refused"])) + r"(_\d+)?"
    with pytest.raises(
        al.UnsupportedLayer, match=rf"'{layer}' \({row['kind']}\).*{row['because']}"
    ):
        al.equivalent(application(name))


def test_every_family_is_in_the_table():
    """A family is a module of keras.applications that builds networks."""
    modules = {n for n in dir(keras.applications) if n.islower() and not n.startswith("_")}
    assert modules - {"imagenet_utils", "resnet50"} == {row["family"] for row in ROWS.values()}
