"""What chapters 6 and 7 count, against the paper's tables and the library's own choices."""

import ast
import csv
import math

import pytest

import adjoint_lib as al
from adjoint_book.figures.ch07_computing_it_fast import costs, multiply_adds, reaching
from adjoint_lib.core import strategy
from adjoint_lib.experiments import resources

with resources.path("paper/dimensions.csv").open() as file:
    PAPER = list(csv.DictReader(file))
NETS = {name: al.equivalent(al.models.build(name)) for name in ("vgg7", "resnet20")}
FIXUP = al.equivalent(al.models.resnet20_fixup())


@pytest.mark.parametrize("net, table", [*((NETS[n], n) for n in NETS), (FIXUP, "resnet20")])
def test_the_dimensions_are_the_papers(net, table):
    """Every dimension it prints; of the first layer, it prints none."""
    found = net.dimensions()
    rows = {row[0]: dict(zip(found.header[1:], row[1:], strict=True)) for row in found}
    printed = [row for row in PAPER if row["model"] == table]
    assert [row["layer"] for row in printed] == [layer.name for layer in net.layers]
    for row in printed[1:]:
        for mode in found.header[1:]:
            shape = ast.literal_eval(rows[row["layer"]][mode] or "()")
            expected = row[mode].split(" x ")[1:]
            assert list(map(str, shape[1:])) == expected
            assert not shape or shape[0] == net.d_in


def test_the_paper_leaves_32_biases_of_resnet20_out():
    assert NETS["resnet20"].x_b.size == (32 + 64 + 96) * 6 + 32


@pytest.mark.parametrize("name", NETS)
def test_the_break_even_is_the_librarys(name):
    """`strategy` pushes when more units are asked for than directions can reach them."""
    net = NETS[name]
    for layer in net.layers:
        assert reaching(net, layer) == strategy.reaching(net, layer.number)


def test_costs_of_a_dense_network_are_products_of_sizes():
    import keras

    layers = keras.layers
    net = al.equivalent(
        keras.Sequential([keras.Input((5,)), layers.Dense(7, "relu"), layers.Dense(2)])
    )
    first, last = net.layers
    assert (multiply_adds(first), multiply_adds(last)) == (35, 14)
    assert costs(net)[last.name] == {
        "Algorithm 1": 7 * 35 + net.d_in * 14,  # one pull for each entry read, then all rows
        "pull": 2 * (35 + 14),
        "push": (5 + 7) * (35 + 14),
    }


def test_a_convolution_uses_every_weight_at_every_position():
    conv7 = NETS["resnet20"].layer("conv7")
    assert multiply_adds(conv7) == 3 * 3 * 32 * 64 * 16 * 16
    assert conv7.strides == (2, 2) and math.prod(conv7.shape[:-1]) == 256
