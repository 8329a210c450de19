"""The paper's tables of parameters, dimensions and training, entry by entry beside ours.

    python -m adjoint_book.paper_tables parameters resnet20-fixup
    python -m adjoint_book.paper_tables training cifar100

The paper's entries are read from `data/paper`; ours from the live models, their equivalent networks
and the records of the trained weights. Nothing here is typed from a result.
"""

from __future__ import annotations

import ast
import functools
import math
import sys
from collections.abc import Iterator
from dataclasses import dataclass, fields

import keras

import adjoint_lib as al
from adjoint_lib.core.tables import Table
from adjoint_lib.experiments import paper
from adjoint_lib.frontend.layers import Bias, Multiplier, PadChannels

MODES = ("RM4", "RM3", "RM2", "RM1", "RM0")
NOT_STATED = ("N/S", "N/A", "")  # the paper's marks for "it is not necessary for our method"
SAME = {"global-pool (g_p)": "g_p"}  # two names of one thing in the paper's tables
NAMES = {"vgg7": "VGG7", "resnet20": "ResNet20", "resnet20-fixup": "ResNet20-Fixup"}


# ------------------------------------------------------------------ parameters


@dataclass(frozen=True)
class Line:
    """A line of a parameter table; the fields are the paper's columns."""

    block: str
    shortcut: str
    original: str
    equivalent: str
    kernel: str = ""
    output: str = ""
    count: str = ""


COLUMNS = [field.name for field in fields(Line)]


@dataclass(frozen=True)
class Pair:
    """A line of ours and the paper's line in the same place."""

    ours: Line
    theirs: Line

    def stated(self) -> list[str]:
        """The columns in which the paper states something."""
        return [name for name in COLUMNS if getattr(self.theirs, name) not in NOT_STATED]

    def differing(self) -> list[str]:
        """Those of them in which ours is something else."""
        found = ((name, getattr(self.theirs, name)) for name in self.stated())
        return [n for n, said in found if getattr(self.ours, n) != SAME.get(said, said)]


@functools.cache
def parameters(model: str) -> tuple[Line, ...]:
    """The lines of a network's parameter table, read off the live model and its equivalent."""
    built = al.models.randomise(al.models.build(model))
    net = al.equivalent(built)
    lines: list[Line] = []
    start, shortcut, blocks = 0, "identity", 0
    after_sum = False
    for layer in built.layers:
        if isinstance(layer, keras.layers.Add):
            for at in range(start, len(lines)):
                lines[at] = _in_block(lines[at], f"Residual {blocks}", shortcut)
            blocks, shortcut, after_sum = blocks + 1, "identity", True
        elif layer.name.startswith("shortcut"):
            shortcut = "avg-pool+pad" if isinstance(layer, PadChannels) else "avg-pool"
        else:
            lines.append(_line(layer, built, net))
            if isinstance(layer, (keras.layers.ReLU, keras.layers.LeakyReLU)):
                first = start == 0
                start, after_sum = (len(lines), False) if after_sum or first else (start, after_sum)
    return tuple(lines)


def _in_block(line: Line, block: str, shortcut: str) -> Line:
    given = {name: getattr(line, name) for name in COLUMNS}
    return Line(**given | {"block": block, "shortcut": shortcut})


def _line(layer: keras.layers.Layer, model: keras.Model, net) -> Line:
    number = "".join(filter(str.isdigit, layer.name))
    if isinstance(layer, keras.layers.InputLayer):
        return Line("", "", "Input (x)", "Input ([x; b'])")
    if isinstance(layer, (keras.layers.Conv2D, Multiplier)):
        conv = model.get_layer(f"conv{number}")
        own = f"Conv{number} (w{number}{_stride(conv)})"
        times = any(other.name == f"m{number}" for other in model.layers)
        folded = f"w{number}'" if _is_folded(conv, net) else f"w{number}"
        sum_ = f" = w{number} x M{number}" if times else ""
        equivalent = f"Conv{number} ({folded}{sum_}{_stride(conv)})"
        original = f"M{number} (M{number})" if isinstance(layer, Multiplier) else own
        return Line("", "", original, equivalent, *_sizes(net.layer(conv.name)))
    if isinstance(layer, keras.layers.Dense):
        return Line("", "", "FC (wfc)", "FC (wfc)", *_sizes(net.layer(layer.name)))
    if isinstance(layer, keras.layers.BatchNormalization):
        return Line("", "", f"BN{number}", f"B{number} (b'[b{number}'])")
    if isinstance(layer, Bias):
        return Line("", "", f"B{number} (b{number})", f"B{number} (b'[b{number}])")
    if isinstance(layer, keras.layers.AveragePooling2D):
        name = f"Avg-pool-{layer.strides[0]}"
    elif isinstance(layer, keras.layers.GlobalAveragePooling2D):
        name = "g_p"
    else:
        leaky = isinstance(layer, keras.layers.LeakyReLU)
        name = f"{'Leaky_' if leaky else ''}ReLU{number}"
    return Line("", "", name, name)


def _stride(conv: keras.layers.Conv2D) -> str:
    return "" if conv.strides == (1, 1) else f", s={conv.strides[0]}"


def _is_folded(conv: keras.layers.Conv2D, net) -> bool:
    """Whether the equivalent network's kernel is another than the model's."""
    kernel = net.graph.nodes[net.layer(conv.name).number].operation.kernel
    return bool(abs(keras.ops.convert_to_numpy(conv.kernel) - kernel).max() > 0)


def _sizes(layer) -> tuple[str, str, str]:
    """Kernel, output, and how many units that is."""
    return _times(layer.kernel), _times(layer.shape), str(math.prod(layer.shape))


def _times(shape: tuple[int, ...]) -> str:
    return " x ".join(map(str, shape))


def pairs(model: str) -> list[Pair]:
    """Our lines with the paper's, in order; the tables have to be of the same length."""
    name = model.replace("-", "_")
    theirs = [row for row in paper.table("parameters") if row["model"] == name]
    given = [Line(**{column: row[column] for column in COLUMNS}) for row in theirs]
    return [Pair(a, b) for a, b in zip(parameters(model), given, strict=True)]


def parameter_table(model: str) -> Table:
    """The paper's parameter table with our entries, and the paper's where it says another thing."""

    def cells(pair: Pair) -> list[str]:
        line = pair.ours
        block = f"{line.block} ({line.shortcut})" if line.block else ""
        output = f"{line.output} = {int(line.count):,}" if " x " in line.output else line.output
        marked = "; ".join(getattr(pair.theirs, name) for name in pair.differing())
        return [block, line.original, line.equivalent, line.kernel, output, marked]

    header = ["block (shortcut)", "original", "equivalent", "kernel", "output", "the paper's"]
    return Table(header, pairs(model), cells)


def agreement(model: str) -> tuple[int, int]:
    """How many entries of the paper's parameter table ours equal, and how many it states."""
    found = pairs(model)
    stated = sum(len(pair.stated()) for pair in found)
    return stated - sum(len(pair.differing()) for pair in found), stated


# ------------------------------------------------------------------ dimensions


@functools.cache
def network(model: str):
    """The equivalent network of a model as built, without training."""
    return al.equivalent(al.models.build(model))


def dimension_entries(model: str) -> Iterator[tuple[str, str, str, str]]:
    """Layer, mode, the paper's dimensions of H and ours, without the d_in in front of each.

    Where the paper states none the third is empty; ResNet20's table serves both ResNets.
    """
    name = "vgg7" if model == "vgg7" else "resnet20"
    printed = {row["layer"]: row for row in paper.table("dimensions") if row["model"] == name}
    table = network(model).dimensions()
    for layer, *texts in table:
        for mode, text in zip(table.header[1:], texts, strict=True):
            ours = _times(ast.literal_eval(text)[1:]) if text else ""
            yield layer, mode, printed[layer][mode].removeprefix("d_in x "), ours


def dimension_table(model: str) -> Table:
    """The dimensions of H, d_in in front of each; the paper's beside ours where it has another."""
    found: dict[str, dict[str, str]] = {}
    for layer, mode, theirs, ours in dimension_entries(model):
        differs = theirs not in NOT_STATED and theirs != ours
        found.setdefault(layer, {})[mode] = f"{ours} (paper: {theirs})" if differs else ours
    rows = [[layer, *(modes[mode] for mode in MODES)] for layer, modes in found.items()]
    return Table(["layer", *MODES], rows)


def dimensions_side_by_side(model: str) -> Table:
    """The dimensions of H, d_in in front of each: for each layer the paper's line, then ours."""
    lines: dict[tuple[str, str], dict[str, str]] = {}
    for layer, mode, theirs, ours in dimension_entries(model):
        for who, text in (("paper", theirs), ("computed", ours)):
            lines.setdefault((layer, who), {})[mode] = text.replace(" x ", "×")
    rows = [
        [layer if who == "paper" else "", who, *(modes[mode] for mode in MODES)]
        for (layer, who), modes in lines.items()
    ]
    return Table(["layer", "", *MODES], rows)


def papers_biases(model: str) -> tuple[int, str]:
    """How many entries the paper gives x_b, and the sum by which it counts them."""
    (row,) = (r for r in paper.table("inputs") if r["model"] == model.replace("-", "_"))
    return int(row["biases"]), row["sum"]


# ------------------------------------------------------------------ training


def schedule_table(dataset: str) -> Table:
    """The learning rates of the paper's training table, and those of our recipe `paper`."""
    rows = []
    for model, name in NAMES.items():
        theirs = paper.training(model, dataset)
        stated = [f"{theirs[f'lr_{n}']}, [{_interval(theirs[f'epochs_{n}'])}]" for n in (1, 2, 3)]
        recipe = al.training.recipe("paper", model, dataset)
        rows.append([name, "paper", *stated, theirs["total_epochs"]])
        rows.append([name, "recipe paper", *_stages(recipe), str(recipe.epochs)])
    return Table(["network", "whose", "1st rate, [epochs]", "2nd", "3rd", "total"], rows)


def _interval(text: str) -> str:
    return text.replace("-", ", ")


def _stages(recipe) -> list[str]:
    """The stages of a recipe whose rate goes down in steps, in the paper's notation."""
    starts = [epoch for epoch, _ in recipe.rates] + [recipe.epochs]
    rates = [rate for _, rate in recipe.rates]
    return [f"{rate:g}, [{starts[n]:.0f}, {starts[n + 1] - 1:.0f}]" for n, rate in enumerate(rates)]


def training_table(dataset: str) -> Table:
    """Training of the three networks: the paper's, then ours, with the minutes it took here."""
    rows = []
    for model, name in NAMES.items():
        theirs = paper.training(model, dataset)
        stages = [f"{theirs[f'lr_{n}']}, [{_interval(theirs[f'epochs_{n}'])}]" for n in (1, 2, 3)]
        accuracy = f"{paper.accuracy(model, dataset):.1f} %"
        rows.append(
            [name, "paper", "; ".join(stages), theirs["total_epochs"], accuracy, "not said"]
        )
        record = al.models.trained(model)[dataset]
        rows.append([name, record["recipe"]["name"], *_trained(record)])
    header = ["network", "recipe", "rate, [epochs]", "epochs", "test accuracy (95 %)", "minutes"]
    return Table(header, rows)


def _trained(record: dict) -> list[str]:
    recipe, test = record["recipe"], record["accuracy"]["test"]
    knots = "; ".join(f"{rate:g} at {epoch:g}" for epoch, rate in recipe["rates"])
    low, high = test["interval_95"]
    accuracy = f"{100 * test['value']:.1f} % ({100 * low:.1f} to {100 * high:.1f})"
    minutes = f"{record['time']['wall_seconds'] / 60:,.0f}"
    joined = ", in straight lines" if recipe["linear"] else ""
    return [knots + joined, str(recipe["epochs"]), accuracy, minutes]


# ------------------------------------------------------------------ the command

TABLES = {
    "parameters": parameter_table,
    "dimensions": dimension_table,
    "schedules": schedule_table,
    "training": training_table,
}


def main(words: list[str]) -> int:
    """Print one table: of a model, or for schedules and training of a data set."""
    kind, of = (*words, "", "")[:2]
    known = ("cifar10", "cifar100") if kind in ("schedules", "training") else tuple(NAMES)
    if kind not in TABLES or of not in known or len(words) != 2:
        print(f"expected one of {', '.join(TABLES)} and one of {', '.join(known)}, got {words}.")
        return 2
    print(TABLES[kind](of))
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
