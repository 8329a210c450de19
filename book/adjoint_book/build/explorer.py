"""The explorer's scripts in the built book: one that starts it, one for each network and data set.

A page with `<div data-adjoint-explorer="net=vgg7&amp;layer=conv5">` has an explorer in its place,
once it is scrolled to; what the element holds, such as a link to the explorer's page, is there
without it. The scripts are made from the trained weights at each build, and loaded when wanted.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import adjoint_lib as al
from adjoint_lib.explorer.bundle import base64_of
from adjoint_lib.explorer.page import Samples, script

FOLDER = "_static/explorer"
NETWORKS = {"vgg7": "VGG7", "resnet20": "ResNet20", "resnet20-fixup": "ResNet20-Fixup"}
DATASETS = {"cifar10": "CIFAR-10", "cifar100": "CIFAR-100"}
IMAGES = 20  # of each data set

FILES = [
    "explorer",
    *DATASETS,
    *(f"{network}-{dataset}" for network in NETWORKS for dataset in DATASETS),
]


def write(site: Path) -> None:
    """Write all scripts into a built site."""
    folder = site / FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    samples = {name: _samples(name) for name in DATASETS}
    networks = [
        {"key": key, "name": name, "exports": {dataset: f"{key}-{dataset}" for dataset in DATASETS}}
        for key, name in NETWORKS.items()
    ]
    datasets = [samples[key].described(key, name, key) for key, name in DATASETS.items()]
    start = {"net": "vgg7", "data": "cifar10"}
    config = {"networks": networks, "datasets": datasets, "start": start}
    (folder / "explorer.js").write_text(script(config), "utf-8")
    for name, text in _texts(samples):
        (folder / f"{name}.js").write_text(
            f'(window.adjoint_data ??= {{}})["{name}"] = "{text}";\n'
        )


def _samples(dataset: str) -> Samples:
    images, labels = al.data.sample(dataset)
    names = al.data.CLASS_NAMES[dataset]
    return Samples.of(images[:IMAGES], labels[:IMAGES].tolist(), names)


def _texts(samples: dict[str, Samples]) -> Iterator[tuple[str, str]]:
    """The texts that pages load, by name."""
    for dataset, some in samples.items():
        yield dataset, some.text
        for network in NETWORKS:
            classes = len(al.data.CLASS_NAMES[dataset])
            net = al.equivalent(al.models.build(network, classes=classes, weights=dataset))
            yield f"{network}-{dataset}", base64_of(net, "float32")
