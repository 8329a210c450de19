"""The paper's tables beside ours, and the architecture pictures, against the live Keras models."""

from __future__ import annotations

import dataclasses
import math
import re

import keras
import pytest

import adjoint_lib as al
from adjoint_book import paper_tables
from adjoint_book.figures.ch09_to_11_architecture import rows_of
from adjoint_lib.experiments import paper

MODELS = tuple(al.models.MODELS)


# ------------------------------------------------------------------ parameters


@pytest.mark.parametrize("model", MODELS)
def test_the_papers_parameter_table_is_ours_but_for_its_second_conv16(model):
    found = {
        (name, getattr(pair.theirs, name), getattr(pair.ours, name))
        for pair in paper_tables.pairs(model)
        for name in pair.differing()
    }
    slip = {(name, "Conv16 (w16)", "Conv17 (w17)") for name in ("original", "equivalent")}
    assert found == (slip if model == "resnet20-fixup" else set())
    same, stated = paper_tables.agreement(model)
    assert same == stated - len(found) and stated > 50


@pytest.mark.parametrize("model", MODELS)
def test_each_layer_of_the_model_with_weights_has_a_line_with_its_own_sizes(model):
    built = al.models.build(model)
    lines = {line.original.split(" ")[0].lower(): line for line in paper_tables.parameters(model)}
    for layer in built.layers:
        if layer.weights:
            line = lines.pop(layer.name)
            if isinstance(layer, (keras.layers.Conv2D, keras.layers.Dense)):
                assert line.kernel == " x ".join(map(str, layer.kernel.shape))
                assert line.count == str(math.prod(layer.output.shape[1:]))
    left = {re.sub(r"\d", "", name) for name in lines}
    assert left <= {"input", "relu", "leaky_relu", "avg-pool-", "g_p"}


def test_a_changed_entry_is_marked():
    pair = paper_tables.pairs("vgg7")[4]
    assert not pair.differing()
    for name in pair.stated():
        other = dataclasses.replace(pair.theirs, **{name: "another"})
        assert paper_tables.Pair(pair.ours, other).differing() == [name]


def test_the_table_marks_the_papers_entry_beside_ours():
    table = paper_tables.parameter_table("resnet20-fixup")
    marked = [cells for cells in map(table.cells, table) if cells[-1]]
    assert [(cells[1], cells[-1]) for cells in marked] == [
        ("Conv17 (w17)", "Conv16 (w16); Conv16 (w16)")
    ]


# ------------------------------------------------------------------ dimensions


@pytest.mark.parametrize("model", MODELS)
def test_the_papers_dimensions_are_ours(model):
    stated = [entry for entry in paper_tables.dimension_entries(model) if entry[2]]
    assert len(stated) == (21 if model == "vgg7" else 73)
    assert all(theirs == ours for _, _, theirs, ours in stated)
    assert "paper" not in repr(paper_tables.dimension_table(model))


@pytest.mark.parametrize("model", MODELS)
def test_the_papers_sum_of_biases_gives_the_papers_number(model):
    number, written = paper_tables.papers_biases(model)
    if "x" in written:
        widths, times = re.fullmatch(r"\((.+)\) x (\d+)", written).groups()
        assert sum(map(int, widths.split(" + "))) * int(times) == number
    ours = paper_tables.network(model).x_b.size
    assert ours - number == (32 if model == "resnet20" else 0)


# ------------------------------------------------------------------ training


@pytest.mark.parametrize("dataset", ["cifar10", "cifar100"])
def test_the_recipe_paper_has_the_papers_schedule(dataset):
    rows = list(paper_tables.schedule_table(dataset))
    assert len(rows) == 2 * len(MODELS)
    for theirs, ours in zip(rows[::2], rows[1::2], strict=True):
        assert theirs[0] == ours[0] and theirs[2:] == ours[2:]


@pytest.mark.parametrize("dataset", ["cifar10", "cifar100"])
def test_the_training_table_has_the_papers_accuracy_and_our_record(dataset):
    rows = list(paper_tables.training_table(dataset))
    assert all(cell for row in rows for cell in row)
    for model, theirs, ours in zip(MODELS, rows[::2], rows[1::2], strict=True):
        record = al.models.trained(model)[dataset]
        assert float(theirs[4].removesuffix(" %")) == paper.accuracy(model, dataset)
        assert ours[4].startswith(f"{record['accuracy']['test']['correct'] / 100:.1f} %")
        minutes = int(ours[5].replace(",", ""))
        assert abs(60 * minutes - record["time"]["wall_seconds"]) <= 30


# ------------------------------------------------------------------ the pictures


@pytest.mark.parametrize("model", MODELS)
def test_the_picture_has_each_kernel_each_bias_and_each_shortcut_once(model):
    built = al.models.build(model)
    net = al.equivalent(built)
    slices = {source.node: f"{source.start}:{source.stop}" for source in net.sources}
    pieces = [piece for row in rows_of(net.graph, slices) for piece in row.pieces]
    kernels = [p.text.split("\n")[0].split(" ")[0] for p in pieces if p.kind in ("conv", "dense")]
    assert kernels == [layer.name for layer in net.layers]
    biases = [re.fullmatch(r"b(\d+) \[(\d+):(\d+)\]", p.bias).groups() for p in pieces if p.bias]
    starts = [int(start) for _, start, _ in biases]
    stops = [int(stop) for _, _, stop in biases]
    assert [int(number) for number, _, _ in biases] == list(range(len(net.sources)))
    assert starts == [0, *stops[:-1]] and stops[-1] == net.x_b.size
    sums = [piece for piece in pieces if piece.kind == "sum"]
    adds = [layer for layer in built.layers if isinstance(layer, keras.layers.Add)]
    assert len(sums) == len(adds)
    pools = [layer for layer in built.layers if layer.name.startswith("shortcut")]
    assert sum("avg-pool" in piece.on_skip for piece in sums) == len(pools) // 2
    for add, piece in zip(adds, sums, strict=True):
        (shortcut,) = (t for t in add.input if "m" not in _names(t) and "bn" not in _names(t))
        layer = shortcut._keras_history.operation
        while layer.name.startswith("shortcut"):
            layer = layer.input._keras_history.operation
        assert net.graph.nodes[piece.skip_from].name == layer.name


def _names(tensor) -> set[str]:
    """Kinds of the layer that gives a tensor and of the one before it: of a branch, bn or m."""
    layer = tensor._keras_history.operation
    before = layer.input._keras_history.operation if not isinstance(layer.input, list) else layer
    kinds = {re.sub(r"\d", "", layer.name)}
    return kinds | ({re.sub(r"\d", "", before.name)} if kinds == {"b"} else set())


@pytest.mark.parametrize("model", MODELS)
def test_each_line_of_the_picture_ends_in_the_shape_the_model_has_there(model):
    built = al.models.build(model)
    net = al.equivalent(built)
    rows = rows_of(net.graph, dict.fromkeys((s.node for s in net.sources), ""))
    assert len(rows) == (4 if model == "vgg7" else 11)
    for row in rows:
        name = net.graph.nodes[row.pieces[-1].number].name
        assert row.shape == built.get_layer(name).output.shape[1:]


def test_side_by_side_each_layer_has_two_lines_and_where_both_speak_they_agree():
    rows = [list(row) for row in paper_tables.dimensions_side_by_side("vgg7")]
    assert [row[1] for row in rows] == ["paper", "computed"] * (len(rows) // 2)
    for theirs, ours in zip(rows[::2], rows[1::2], strict=True):
        assert all(a in ("", b) for a, b in zip(theirs[2:], ours[2:], strict=True))
