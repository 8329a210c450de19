"""What the paper claims, sentence by sentence, and what became of it when it was tried.

A claim holds, holds with a condition, or does not hold. Which, is worked out here from numbers each
time the page is built; the words say what the numbers are.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import NamedTuple

import keras
import numpy as np
import tensorflow as tf

import adjoint_lib as al
from adjoint_book import equations, paper_runs, paper_tables, tables
from adjoint_book.paper_tables import NAMES
from adjoint_lib.experiments import models, paper, resources
from adjoint_lib.frontend.layers import PadChannels

HOLDS, CONDITION, FAILS = "holds", "holds with a condition", "does not hold"
PAIRS = [(model, dataset) for dataset in ("cifar10", "cifar100") for model in NAMES]


class Finding(NamedTuple):
    """What came out: one of the three verdicts, and the numbers behind it."""

    verdict: str
    numbers: str


class Claim(NamedTuple):
    """A claim of the paper, where it makes it, what was found, and the label of what shows it."""

    sentence: str
    place: str
    find: Callable[[], Finding]
    label: str


CLAIMS: list[Claim] = []


def claim(sentence: str, place: str, label: str) -> Callable:
    """Register the function below as what tries this claim."""

    def register(find: Callable[[], Finding]) -> Callable[[], Finding]:
        CLAIMS.append(Claim(sentence, place, find, label))
        return find

    return register


def _verdict(holds: bool, with_condition: bool = False) -> str:
    return HOLDS if holds else CONDITION if with_condition else FAILS


def _all_layers():
    """Model, data set, layer and its report, of all that is verified through H."""
    for model, dataset in PAIRS:
        for name, layer in tables.every_layer(model, dataset).items():
            yield model, dataset, name, layer


# ------------------------------------------------------------------ the identity


@claim(
    "The hypersurface, multiplied by the input, precisely replicates the value of each unit.",
    "Abstract",
    "eq-claim",
)
def _exact() -> Finding:
    layers = [layer for *_, layer in _all_layers()]
    units = sum(layer.units for layer in layers)
    within = sum(layer.units for layer in layers if layer.passed)
    exact = equations.EQUATIONS["4"]
    holds = within == units and exact.check().printed <= exact.limit
    return Finding(
        _verdict(holds),
        f"in float64 off by {exact.check().printed:.0e}; in float32 "
        f"{within:,} of {units:,} units are in layers within their rounding bounds",
    )


@claim("Any $k > 0$ in $z = k[x; x_b]$ gives the equality.", "Section 3.2", "fig-flips-against-k")
def _any_k() -> Finding:
    off = equations.EQUATIONS["a13"].check().printed
    net = al.equivalent(al.models.vgg7(weights="cifar10"))
    images = al.data.sample("cifar10")[0][:20]

    def states(k: float) -> np.ndarray:
        patterns = tf.nest.flatten(net.freeze(images, k).patterns)
        return np.concatenate([p.numpy().ravel() for p in patterns if p is not None])

    start = states(1)
    flips = {k: int((states(k) != start).sum()) for k in (1 / 8, 1 / 10)}
    balanced = _balanced(1)
    turned = {k: int((_balanced(k) != balanced).sum()) for k in flips}
    holds = off <= equations.EXACT and flips[1 / 8] == turned[1 / 8] == 0
    text = f"in float64 off by {off:.0e} for three $k$; in float32 $k = 1/8$ turns "
    text += f"{turned[1 / 8]} of {balanced.size:,} neurons balanced at zero and {flips[1 / 8]} of "
    text += f"{start.size:,} ReLUs of VGG7, $k = 1/10$ turns {turned[1 / 10]:,} and "
    text += f"{flips[1 / 10]}: in floating point $k$ has to be a power of two"
    return Finding(_verdict(holds and not turned[1 / 10] and not flips[1 / 10], holds), text)


def _balanced(k: float, count: int = 10_000) -> np.ndarray:
    """Which of many float32 neurons are open at k [x; b], if each b is what makes them zero."""
    rng = np.random.default_rng(0)
    x, w = rng.normal(size=(2, count, 27)).astype("float32")
    b = -(x * w).sum(1)
    return ((np.float32(k) * x) * w).sum(1) + np.float32(k) * b > 0


@claim(
    "$z = [x; x_b]/8$ achieves the equality in every layer but the first.",
    "Section 4.2",
    "fig-histograms-vgg7-cifar10",
)
def _eighth() -> Finding:
    found = [layer for *_, layer in _all_layers()]
    stated = paper.statement("k")
    used = {al.results.load(m, d, mode="RM2").report.about["k"] for m, d in PAIRS}
    passed = sum(layer.passed for layer in found)
    return Finding(
        _verdict(passed == len(found) and used == {stated}),
        f"k = {stated:g}: {passed} of {len(found)} layers of the six networks have all units "
        "within their rounding bounds",
    )


@claim(
    "Over 99.97 % of the units have a relative error of at most 1 %.",
    "Section 4.3",
    "fig-misses-cifar100",
)
def _share() -> Finding:
    least = paper.statement("share_percent")
    by_network: dict[tuple[str, str], list[int]] = {}
    low = []
    for model, dataset, name, layer in _all_layers():
        counts = by_network.setdefault((model, dataset), [0, 0])
        counts[0] += int(layer.within[0])
        counts[1] += layer.units
        if 100 * layer.share() <= least:
            low.append(f"{name} of {NAMES[model]} on {dataset} ({100 * layer.share():.3f} %)")
    shares = [100 * within / units for within, units in by_network.values()]
    layers = sum(1 for _ in _all_layers())
    text = f"{min(shares):.3f} % or more of all units of each network; in "
    text += f"{layers - len(low)} of {layers} layers"
    text += f", not in {', '.join(low)}" if low else ""
    return Finding(_verdict(min(shares) > least and not low, min(shares) > least), text)


@claim(
    "The proof works for any piecewise-linear activation, since $\\sigma(x) = x\\,\\sigma'(x)$.",
    "Appendix, proof",
    "note-homogeneous",
)
def _any_activation() -> Finding:
    found = equations.EQUATIONS["a14"].check()
    holds = found.printed <= equations.EXACT
    return Finding(
        _verdict(holds, found.corrected is not None and found.corrected <= equations.EXACT),
        f"off by {found.printed:.0f} times the value for ReLU6 and hard tanh, by "
        f"{found.corrected:.0f} for ReLU and leaky ReLU: each piece has to go through the origin, "
        "or its constant has to be an input",
    )


@claim(
    "Shortcuts, concatenation, kernels of several sizes and max-pooling keep the equality.",
    "Section 3.3",
    "note-maxpool",
)
def _architectures() -> Finding:
    layers = keras.layers
    inputs = keras.Input((8, 8, 3))
    x = layers.Conv2D(4, 3, padding="same", activation="relu")(inputs)
    wide = layers.Conv2D(4, 5, padding="same")(x)
    x = layers.MaxPooling2D()(layers.Concatenate()([layers.Add()([x, wide]), wide]))
    x = layers.LeakyReLU(0.25)(layers.Conv2D(6, 1)(PadChannels(12)(x)))
    outputs = layers.Dense(5)(layers.Flatten()(x))
    net = al.equivalent(al.models.randomise(keras.Model(inputs, outputs)))
    images = np.random.default_rng(0).normal(size=(4, 8, 8, 3)).astype("float32")
    report = al.verify(net, images, dtype="float64", progress=False)
    units = sum(layer.units for layer in report.layers.values())
    return Finding(
        _verdict(report.passed),
        f"a random network with all four: {units:,} units in float64, "
        f"{'all' if report.passed else 'not all'} within their bounds; max-pooling's choice is "
        "frozen with the signs",
    )


@claim(
    "Functions whose derivative is not piecewise constant (tanh) are out of reach.",
    "Section 3.3",
    "eq-perspective",
)
def _smooth() -> Finding:
    inside = keras.layers.Dense(3, activation="tanh", name="inside")
    model = keras.Sequential([keras.Input((4,)), inside, keras.layers.Dense(2)])
    try:
        al.equivalent(model)
    except al.UnsupportedLayer as error:
        said = str(error).split(". ")[0]
        return Finding(_verdict(True), f"refused: {said}")
    return Finding(_verdict(False), "accepted")


@claim("The map from $[x; x_b]$ to $J$ is not linear.", "Section 3.2, property 1", "fig-rays")
def _not_linear() -> Finding:
    at = equations.example()
    v, w = (np.random.default_rng(seed).normal(size=at.v.size) for seed in (4, 5))
    off = max(
        equations.deviation(both, one + other)
        for both, one, other in zip(*map(at.jacobians, (v + w, v, w)), strict=True)
    )
    return Finding(
        _verdict(off > equations.EXACT), f"J(v + w) is off J(v) + J(w) by {off:.1f} of its size"
    )


@claim(
    "With all biases zero the earlier theory without biases comes back.",
    "Section 3.2, property 3",
    "fig-unit-parts",
)
def _no_biases() -> Finding:
    layers = keras.layers
    model = keras.Sequential(
        [
            keras.Input((6, 6, 2)),
            layers.Conv2D(3, 3, use_bias=False, activation="relu"),
            layers.Conv2D(4, 3, use_bias=False, name="last"),
        ]
    )
    net = al.equivalent(al.models.randomise(model)).astype("float64")
    x = np.random.default_rng(0).normal(size=(6, 6, 2))
    H = np.asarray(net.hypersurface(x, "last"))
    c = net.value(x)["last"].numpy()[0]
    off = equations.deviation(np.tensordot(x.ravel(), H, 1), c)
    return Finding(
        _verdict(net.x_b.size == 0 and off <= equations.EXACT),
        f"$x_b$ has {net.x_b.size} entries, and $\\langle x \\mid H \\rangle$ is off by {off:.0e}",
    )


@claim(
    "The first layer's kernels need no carrying back.",
    "Section 3.3",
    "fig-hypersurface-gallery",
)
def _first_layer() -> Finding:
    at = equations.example()
    H = equations.hypersurfaces("conv0", "RM2")[: at.x.size].reshape(*at.x.shape, 6, 6, 3)
    off = max(
        equations.deviation(H[y - 1 : y + 2, x - 1 : x + 2, :, y, x], at.kernels[0])
        for y in range(1, 5)
        for x in range(1, 5)
    )
    return Finding(
        _verdict(off <= equations.EXACT), f"H of conv0 is its kernel in its place, to {off:.0e}"
    )


# ------------------------------------------------------------------ what follows from it


@claim(
    "Verifying RM2 is equivalent to verifying RM4, RM3 and RM1, which are sums.",
    "Section 4.2",
    "note-modes",
)
def _one_for_all() -> Finding:
    """A wrong RM4 whose RM2 is right would refute it."""
    right = equations.hypersurfaces("conv1", "RM4")
    wrong = right.copy()
    wrong[..., 0, :] += 1.0
    wrong[..., 1, :] -= 1.0
    unseen = equations.deviation(wrong.sum(3), right.sum(3))
    moved = equations.deviation(wrong, right)
    own = max(equations.EQUATIONS[n].check().printed for n in ("8", "10", "11", "12"))
    return Finding(
        _verdict(unseen > equations.EXACT),
        f"an RM4 wrong by {moved:.0f} times its size gives the same RM2 to {unseen:.0e}; RM1 does "
        f"follow. Each mode tried on its own is off by {own:.0e} at most",
    )


@claim(
    "Every rebuilt model achieves the accuracy of the one it was made from.",
    "Section 4.1",
    "fig-batch-norm",
)
def _rebuilt() -> Finding:
    images = al.data.sample("cifar10")[0][:100]
    other = 0
    for model in NAMES:
        trained = al.models.build(model, weights="cifar10")
        x = al.models.preprocess(model, images)
        ours = np.asarray(al.equivalent(trained)(x)).argmax(1)
        other += int((ours != np.asarray(trained(x)).argmax(1)).sum())
    return Finding(
        _verdict(other == 0),
        f"{other} of {len(NAMES) * len(images)} sample images get another class "
        "(`evaluate` takes all 10,000)",
    )


@claim(
    "Folding batch normalisation significantly reduces computations and memory.",
    "Section 3.3",
    "eq-bn-reduced",
)
def _cheaper() -> Finding:
    model = al.models.vgg7()
    net = paper_tables.network("vgg7")
    products = sum(
        int(np.prod(layer.kernel)) * int(np.prod(layer.shape[:-1])) for layer in net.layers
    )
    units = sum(
        int(np.prod(layer.output.shape[1:]))
        for layer in model.layers
        if isinstance(layer, keras.layers.BatchNormalization)
    )
    numbers = model.count_params()
    kept = sum(int(np.prod(layer.kernel)) for layer in net.layers) + net.x_b.size
    work = 2 * units / (products + 2 * units)  # Eq. (6) multiplies and divides each unit
    memory = 1 - kept / numbers
    return Finding(
        _verdict(min(work, memory) >= 0.1, min(work, memory) > 0),
        f"in VGG7 {100 * work:.1f} % of the multiplications and {100 * memory:.1f} % of the "
        "numbers go: it reduces both, but by less than a tenth",
    )


@claim("ResNet20's $x_b$ has 1,152 entries.", "Appendix, table 5", "note-biases")
def _entries() -> Finding:
    stated, _ = paper_tables.papers_biases("resnet20")
    ours = paper_tables.network("resnet20").x_b.size
    return Finding(_verdict(ours == stated), f"{ours:,} in the live model, {stated:,} stated")


@claim(
    "ResNet20-Fixup's input is normalised with the variance (0.2023, 0.1994, 0.2010).",
    "Section 4.1",
    "note-variance",
)
def _variance() -> Finding:
    found = json.loads(resources.path("results/data-statistics.json").read_text("utf-8"))
    std = np.array(found["cifar10"]["train"]["std"])
    stated = np.array(models.STD)
    off = {"variance": np.abs(std**2 - stated).max(), "deviation": np.abs(std - stated).max()}
    return Finding(
        _verdict(off["variance"] < 1e-3),
        f"CIFAR-10's variances differ by up to {off['variance']:.2f}, its standard deviations by "
        f"up to {off['deviation']:.2f}; the code that the paper cites divides by the numbers",
    )


@claim(
    "The three networks reach the test accuracies of Tables 1 and 2.",
    "Section 4.1",
    "fig-vgg7-curve",
)
def _accuracies() -> Finding:
    reached, same_recipe = 0, 0
    for model, dataset in PAIRS:
        record = paper_runs.judged(model, dataset)
        _, high = record["accuracy"]["test"]["interval_95"]
        reached += 100 * high >= paper.accuracy(model, dataset)
        same_recipe += record["recipe"]["name"] == "paper"
    return Finding(
        _verdict(reached == same_recipe == len(PAIRS), reached == len(PAIRS)),
        f"{reached} of {len(PAIRS)} reach them within the interval, {same_recipe} of them by the "
        "paper's own recipe",
    )
