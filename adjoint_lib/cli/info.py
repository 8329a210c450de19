"""`info`: the tables of an equivalent network."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from adjoint_lib.cli.console import equivalent_of, load_model, print_json
from adjoint_lib.cli.options import add_json, add_model, command
from adjoint_lib.errors import InputError
from adjoint_lib.experiments.machine import import_tensorflow

if TYPE_CHECKING:
    from adjoint_lib.core.equivalent_net import EquivalentNet


def add_options(parser: argparse.ArgumentParser) -> None:
    """The options of `info`."""
    add_model(parser)
    parser.add_argument(
        "--classes", type=int, choices=(10, 100), help="outputs of --model (default: 10)"
    )
    add_json(parser, "the network's tables")


@command(
    "info",
    add_options,
    "Show the equivalent network over [x; x_b]: layers, sources of x_b, dimensions of H.",
    """
    examples:
      {program} info --model resnet20-fixup
      {program} info --file my.keras --json
    """,
)
def info(options: argparse.Namespace) -> bool:
    """Show the tables of an equivalent network."""
    if options.file and options.classes:
        raise InputError("--classes is for --model: a file has the classes it was saved with.")
    if options.file:
        model = load_model(options.file)
    else:
        import_tensorflow()
        from adjoint_lib.experiments import models

        model = models.build(options.model, classes=options.classes)
    net = equivalent_of(model)
    if options.json:
        print_json(_described(net))
        return True
    d_x = net.d_in - net.x_b.size
    print(f"{net!r}\nd_in = {d_x} + {net.x_b.size} = {net.d_in}")
    print(f"\nLayers with a kernel\n\n{net.layers!r}")
    print(f"\nSources of x_b\n\n{net.sources!r}")
    print(f"\nDimensions of H\n\n{net.dimensions()!r}")
    return True


def _described(net: EquivalentNet) -> dict[str, Any]:
    """The tables of `info` in plain numbers and lists."""
    from adjoint_lib.core.hypersurface import MODES

    layers = [
        {
            "name": layer.name,
            "kind": layer.kind,
            "kernel": layer.kernel,
            "strides": layer.strides,
            "output": layer.shape,
            "bias": layer.bias and [layer.bias.start, layer.bias.stop],
            "H": {mode: (net.d_in, *MODES[mode].shape(layer)) for mode in layer.modes},
        }
        for layer in net.layers
    ]
    sources = [
        {"name": s.name, "origin": s.origin, "slice": [s.start, s.stop], "shape": s.shape}
        for s in net.sources
    ]
    return {
        "name": net.name,
        "dtype": net.dtype.name,
        "input": net.input_shape,
        "d_b": net.x_b.size,
        "d_in": net.d_in,
        "layers": layers,
        "sources": sources,
    }
