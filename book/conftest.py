"""How `make test` compares the notebooks' outputs: printed text strictly, pictures by presence."""

import pytest

PICTURES = ("image/png", "image/jpeg", "image/svg+xml")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        notebook = item.parent
        if not hasattr(notebook, "skip_compare"):
            continue
        # nbval leaves pictures out. Here only their bytes are left out (see sanitize.cfg).
        notebook.skip_compare = tuple(key for key in notebook.skip_compare if key not in PICTURES)
        # What TensorFlow writes when it starts is not the book's.
        if "setup" in item.cell.metadata.get("tags", []):
            item.options["check"] = False
