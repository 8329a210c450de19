"""The stored benchmark: how long all hypersurfaces of one image take, by the library and its peers.

`make bench` writes it, and `benchmarks/__main__.py` says what is compared, and how.
"""

from __future__ import annotations

import json

from adjoint_lib.core.tables import Table
from adjoint_lib.experiments import resources

NETWORKS = {"vgg7": "VGG7", "resnet20": "ResNet20", "resnet20_fixup": "Fixup"}
CONTENDERS = {
    "adjoint_lib": "adjoint_lib",
    "jax": "JAX",
    "pytorch": "PyTorch",
    "algorithm_1": "Algorithm 1",
    "one_unit_at_a_time": "one by one",
}

USES = {
    "batch_64_one_score": "one score of 64 images",
    "one_unit_new_image": "one score, new image",
    "one_unit_frozen": "one score, frozen image",
    "resnet50_224": "one score, 224 x 224",
    "mobilenetv2_224": "one score, 224 x 224",
}
LARGE = {"resnet50_224": "ResNet50", "mobilenetv2_224": "MobileNetV2"}
GRADIENTS = {
    "adjoint_lib": "adjoint_lib",
    "tensorflow": "TensorFlow",
    "jax": "JAX",
    "pytorch": "PyTorch",
    "captum": "captum",
}


def stored() -> dict:
    """What `make bench` wrote when it was last run for the book."""
    return json.loads(resources.path("results/benchmark.json").read_text("utf-8"))


def compared(results: dict | None = None) -> Table:
    """Seconds and peak memory of each contender, for each network, the quickest first.

    Args:
        results: what `make bench` writes; by default the results that come with the library.
    """
    results = results or stored()
    rows = []
    for network, entry in _measured(results):
        seconds, memory = entry["seconds"], entry["peak_mb"]
        for who in sorted(seconds, key=seconds.get):
            times = f"{seconds[who] / seconds['adjoint_lib']:.1f}"
            used = f"{memory[who] / 1000:.1f} GB"
            rows.append([network, CONTENDERS[who], _seconds(seconds[who]), times, used])
    return Table(["network", "by", "seconds", "times as long", "peak memory"], rows)


def work(results: dict | None = None) -> Table:
    """What the library convolves, how fast, and how fast the machine convolves at best.

    Args:
        results: what `make bench` writes; by default the results that come with the library.
    """
    results = results or stored()
    rows = []
    for network, entry in _measured(results):
        flop = entry["flop"]
        rows.append(
            [
                network,
                f"{flop['dense'] / 1e9:,.0f}",
                f"{flop['pushed'] / 1e9:,.0f}",
                f"{flop['gflop_per_second']:.0f}",
                f"{100 * flop['share_of_convolution_rate']:.0f} %",
            ]
        )
    header = ["network", "GFLOP with all zeros", "without most", "GFLOP/s", "of the best"]
    return Table(header, rows)


def profile(results: dict | None = None) -> Table:
    """Where the time of a pass of the library goes: the share of each kind of operation.

    Args:
        results: what `make bench` writes; by default the results that come with the library.
    """
    rows, header = [], ["network"]
    for network, entry in _measured(results or stored()):
        shares = entry["profile"]["shares"]
        header = ["network", *shares]
        rows.append([network, *(f"{100 * share:.0f} %" for share in shares.values())])
    return Table(header, rows)


def parts(results: dict | None = None) -> Table:
    """How long the library takes for one unit, and for all units of one layer in each mode.

    First, to compare with, a forward and a backward pass of the Keras model, for one image.

    Args:
        results: what `make bench` writes; by default the results that come with the library.
    """
    results = results or stored()
    one, modes = results["one_unit"], results["modes"]
    seconds = one["seconds"]
    rows = [
        ["forward and backward pass", "", "", seconds["forward_and_backward"]],
        ["RM2", one["layer"], "1", seconds["call_to_arrays"]],
    ]
    rows += [[name, x["layer"], f"{x['units']:,}", x["seconds"]] for name, x in modes.items()]
    header = ["mode", "layer", "units", "milliseconds"]
    return Table(header, [[*names, f"{1000 * found:,.0f}"] for *names, found in rows])


def uses(results: dict | None = None) -> Table:
    """Milliseconds of what is asked for most often, by the library and by compiled gradients.

    Args:
        results: what `make bench` writes; by default the results that come with the library.
    """
    rows = []
    for row, entry in (results or stored())["uses"].items():
        use, _, model = row.partition("/")
        network = LARGE.get(row) or NETWORKS[model.replace("-", "_")]
        seconds = entry["seconds"]
        times = (f"{1e3 * seconds[who]:.3g}" if who in seconds else "" for who in GRADIENTS)
        share = f"{seconds['adjoint_lib'] / seconds['tensorflow']:.2f}"
        rows.append([USES[use], network, *times, share])
    return Table(["asked for", "network", *GRADIENTS.values(), "of TensorFlow's"], rows)


def shut(results: dict | None = None) -> Table:
    """Milliseconds of a convolution behind a ReLU, and of products of its open entries alone.

    Args:
        results: what `make bench` writes; by default the results that come with the library.
    """
    rows = (results or stored())["open_entries"]["rows"]
    found = [[f"{100 * o:.0f} %", f"{1e3 * c:.2g}", f"{1e3 * g:.2g}"] for o, c, g in rows]
    return Table(["open", "convolution", "open entries alone"], found)


def ceiling(network: str, results: dict | None = None) -> float:
    """`ahead`, if the library took time for nothing but its convolutions."""
    results = results or stored()
    return ahead(network, results) / results[network]["profile"]["shares"]["convolutions"]


def ahead(network: str, results: dict | None = None) -> float:
    """How many times as long as the library the quicker of JAX and PyTorch takes.

    Args:
        network: one of `NETWORKS`.
        results: what `make bench` writes; by default the results that come with the library.
    """
    seconds = (results or stored())[network]["seconds"]
    return min(seconds["jax"], seconds["pytorch"]) / seconds["adjoint_lib"]


def _seconds(found: float) -> str:
    return f"{found:.3g}" if found < 1000 else f"{found:,.0f}"


def _measured(results: dict) -> list[tuple[str, dict]]:
    return [(title, results[key]) for key, title in NETWORKS.items() if key in results]
