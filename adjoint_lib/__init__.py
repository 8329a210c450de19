"""Exact reconstruction of any unit of a piecewise-linear Keras model, as <[x; x_b] | H>.

net = al.equivalent(model)                                # folded, every bias collected in net.x_b
H = net.hypersurface(image, layer="conv10", mode="RM2")   # lazy
H[5, 7, 12].value                                         # the unit's activation, reconstructed
al.verify(net, images)                                    # every unit, compared with the network
"""

__version__ = "0.1.0"

from adjoint_lib import data, models
from adjoint_lib.errors import AdjointError, DataError, InputError, TooLarge, UnsupportedLayer
from adjoint_lib.report import Report
from adjoint_lib.topology import EquivalentNet, equivalent
from adjoint_lib.verification import verify

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
