"""Exact reconstruction of any unit of a piecewise-linear Keras model, as <[x; x_b] | H>.

net = al.equivalent(model)                                # folded, every bias collected in net.x_b
H = net.hypersurface(image, layer="conv10", mode="RM2")   # lazy
H[5, 7, 12].value                                         # the unit's activation, reconstructed
al.verify(net, images)                                    # every unit, compared with the network

What `__all__` lists is public; everything else may change from one version to the next. Each name
is imported when it is first used, so that `import adjoint_lib` does not wait for TensorFlow.
"""

import importlib
from typing import TYPE_CHECKING, Any

from adjoint_lib.errors import (
    AdjointError,
    DataError,
    DivergedError,
    InputError,
    TooLarge,
    UnsupportedLayer,
)

if TYPE_CHECKING:
    from adjoint_lib.core import primitives
    from adjoint_lib.core.contributions import Contributions
    from adjoint_lib.core.equivalent_net import EquivalentNet
    from adjoint_lib.core.hypersurface import MODES, Hypersurface
    from adjoint_lib.core.units import Units
    from adjoint_lib.experiments import data, models, results, training
    from adjoint_lib.explorer.explain import explain
    from adjoint_lib.frontend.equivalent import equivalent
    from adjoint_lib.frontend.loading import load_model
    from adjoint_lib.frontend.rules.call import supports
    from adjoint_lib.verification.report import Report
    from adjoint_lib.verification.verify import verify

__version__ = "0.1.0"

__all__ = [
    "MODES",
    "AdjointError",
    "Contributions",
    "DataError",
    "DivergedError",
    "EquivalentNet",
    "Hypersurface",
    "InputError",
    "Report",
    "TooLarge",
    "Units",
    "UnsupportedLayer",
    "data",
    "equivalent",
    "explain",
    "load_model",
    "models",
    "primitives",
    "results",
    "supports",
    "training",
    "verify",
]

_HOMES = {
    "MODES": "core.hypersurface",
    "Contributions": "core.contributions",
    "EquivalentNet": "core.equivalent_net",
    "Hypersurface": "core.hypersurface",
    "Report": "verification.report",
    "Units": "core.units",
    "equivalent": "frontend.equivalent",
    "explain": "explorer.explain",
    "load_model": "frontend.loading",
    "supports": "frontend.rules.call",
    "verify": "verification.verify",
}
_NAMESPACES = {
    **{name: f"experiments.{name}" for name in ("data", "models", "results", "training")},
    "primitives": "core.primitives",
}


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used."""
    if name in _HOMES:
        found = getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
    elif name in _NAMESPACES:
        found = importlib.import_module(f"{__name__}.{_NAMESPACES[name]}")
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
