"""Exact reconstruction of any unit of a piecewise-linear Keras model, as <[x; x_b] | H>.

net = al.equivalent(model)                                # folded, every bias collected in net.x_b
H = net.hypersurface(image, layer="conv10", mode="RM2")   # lazy
H[5, 7, 12].value                                         # the unit's activation, reconstructed
al.verify(net, images)                                    # every unit, compared with the network
"""

import importlib
import importlib.util
import sys
from typing import TYPE_CHECKING, Any

from adjoint_lib.errors import AdjointError, DataError, InputError, TooLarge, UnsupportedLayer

if TYPE_CHECKING:
    from adjoint_lib import data, models
    from adjoint_lib.core.equivalent_net import EquivalentNet, equivalent
    from adjoint_lib.report import Report
    from adjoint_lib.verification import verify

__version__ = "0.1.0"

__all__ = [
    "AdjointError",
    "DataError",
    "EquivalentNet",
    "InputError",
    "Report",
    "TooLarge",
    "UnsupportedLayer",
    "data",
    "equivalent",
    "models",
    "verify",
]

_HOMES = {
    "EquivalentNet": "core.equivalent_net",
    "Report": "report",
    "equivalent": "core.equivalent_net",
    "verify": "verification",
}


def __getattr__(name: str) -> Any:
    """The names above and every submodule, imported when first asked for."""
    if name in _HOMES:
        found = getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
    elif not name.startswith("_") and importlib.util.find_spec(f"{__name__}.{name}"):
        found = importlib.import_module(f"{__name__}.{name}")
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


# Registers the library's Keras layers, so that any .keras file with them opens from here on. That
# imports TensorFlow; `python -m adjoint_lib --help`, which runs this file first, need not wait.
if sys.argv[:1] != ["-m"]:
    from adjoint_lib import layers  # noqa: F401
