"""What the library promises and the tests that hold it to that, counted from the tests themselves.

Nothing is run: the tests are read as text, so a page can be made where no test tool is installed.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

TESTS = Path(__file__).resolve().parents[3] / "tests"
ANY = "frontend/test_random_architectures.py"
WRONG = "frontend/test_wrong_answers.py"
FILES = "experiments/test_damaged_files.py"


class Promise(NamedTuple):
    """A sentence, and where it is tested.

    Attributes:
        text: the promise.
        file: of the tests, below `tests/`.
        begin: the tests are those whose names begin so, after `test_`.
        figure: what to say in numbers; `{NAME}` is that constant of the file.
    """

    text: str
    file: str
    begin: tuple[str, ...] = ("",)
    figure: str = ""


PROMISES = [
    Promise(
        "Every unit is the inner product of [x; x_b] with its H, in every mode, for any supported "
        "network; and H is its Jacobian, entry by entry",
        ANY,
        ("random_architecture",),
        "identity to {EXACT} of the rounding scale A in float64, Jacobian to {CLOSE} of its "
        "largest entry; {EXAMPLES} random architectures in each run of the tests",
    ),
    Promise(
        "In float32 every unit is within its rigorous rounding bound",
        "core/test_exactness.py",
        figure="the bound is computed for each layer, and is never widened",
    ),
    Promise(
        "A layer that is not exactly piecewise linear is refused, and the message names it",
        "frontend/test_bad_input.py",
        figure="{UNSUPPORTED} kinds of model",
    ),
    Promise(
        "The equivalent network is compared with the Keras model, layer by layer, before it is "
        "given out; `verify(model=…)` compares on your images",
        WRONG,
        (
            *("a_wrong_", "a_kernel_", "verify_", "a_layer_that", "a_layer_is", "a_softmax"),
            *("an_image_i", "interpolation", "the_stream", "a_model_that"),
        ),
    ),
    Promise(
        "An input exactly at a breakpoint, a threshold or a tie of pooling gives what the model "
        "gives",
        WRONG,
        ("an_input_equal", "an_input_at", "equal_entries", "one_channel", "a_limit"),
        "{TIES} activations at each of their breakpoints, {PRECISIONS}, k among {SCALES}",
    ),
    Promise(
        "Models whose code, precision, names or calls cannot be read are refused; code of one's "
        "own is read by tracing it",
        WRONG,
        (
            *("a_nested", "a_call", "a_constant", "a_subclass", "a_method", "a_quantised"),
            *(
                "a_name",
                "any_other_name",
                "an_input_that",
                "an_input_inside",
                "a_layer_without",
                "a_layer_of",
            ),
            *("an_operation_is_refused", "an_operation_in_float", "one_matrix", "a_mask"),
            *("joining", "a_function", "a_model_or_layer", "a_model_of", "a_network_without"),
            *("an_augmentation", "a_tensor_without", "a_reduction", "a_sum"),
        ),
    ),
    Promise(
        "What leaves the range of a precision is refused: k, images, weights, values, H",
        WRONG,
        (
            *("any_positive", "a_value", "an_image_outside", "weights_", "a_network_that"),
            *("units_", "a_hypersurface_that", "small_"),
        ),
    ),
    Promise(
        "A damaged file, or one made to do harm, is read or refused in words, within memory",
        FILES,
        figure="{READERS} readers, {COUNT} damaged files each in a run of the tests; at most "
        "{ALLOWED} more memory",
    ),
    Promise(
        "No call allocates more than it was allowed",
        "verification/test_memory.py",
    ),
    Promise(
        "A run that is stopped at any moment goes on to the same report, to the bit, and never "
        "where sums are rounded differently",
        "experiments/test_runs.py",
    ),
    Promise(
        "A worker that dies costs its shard only",
        "experiments/test_cluster.py",
    ),
    Promise(
        "A command exits with 1 if a check has failed, and with nothing else; wrong input is 2, "
        "what could not be done 3, without a traceback",
        "cli/test_cli.py",
        figure="{BAD_INPUT} wrong commands",
    ),
    Promise(
        "A file appears whole or not at all, and one process works in a folder at a time",
        "experiments/test_run_folder.py",
    ),
    Promise(
        "No download is believed: every byte is compared with a digest",
        "experiments/test_download.py",
    ),
]


def table() -> str:
    """The promises in Markdown: what is promised, its tests, how many there are, in figures."""
    lines = ["| promise | tested in | tests | in figures, or for instance |", "|---|---|---|---|"]
    for promise in PROMISES:
        names = tests(promise)
        instance = names[0].removeprefix("test_").replace("_", " ")
        cells = [promise.text, f"`tests/{promise.file}`", str(len(names))]
        lines.append(f"| {' | '.join([*cells, figure(promise) or f'“{instance}”'])} |")
    return "\n".join(lines)


def tests(promise: Promise) -> list[str]:
    """The names of the tests of a promise, in their order."""
    names = [node.name for node in _parsed(promise) if isinstance(node, ast.FunctionDef)]
    begin = tuple(f"test_{words}" for words in promise.begin)
    return [name for name in names if name.startswith(begin)]


def figure(promise: Promise) -> str:
    """What a promise says in numbers, with the constants of its tests put in."""
    return promise.figure.format_map(dict(_constants(promise)))


def _constants(promise: Promise) -> Iterator[tuple[str, str]]:
    """(name, value as text) of the constants in a file of tests; of a table, how many rows."""
    for node in _parsed(promise):
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            value = _value(node.value)
            if value is not None:
                yield node.targets[0].id, value


def _value(node: ast.expr) -> str | None:
    if isinstance(node, ast.Constant):
        return f"{node.value:g}" if isinstance(node.value, float) else str(node.value)
    if isinstance(node, ast.Dict):
        return str(len(node.keys))
    if isinstance(node, ast.List):
        return ", ".join(map(str, _plain(node) or []))
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.LShift):
        return f"{ast.literal_eval(node.left) << ast.literal_eval(node.right) >> 20} MiB"
    if isinstance(node, ast.Call) and ast.unparse(node).startswith("int(os.environ.get("):
        return str(ast.literal_eval(node.args[0].args[1]))  # type: ignore[attr-defined]
    return None


def _plain(node: ast.expr) -> Any:
    try:
        return ast.literal_eval(node)
    except ValueError:
        return None


def _parsed(promise: Promise) -> list[ast.stmt]:
    return ast.parse((TESTS / promise.file).read_text("utf-8")).body
