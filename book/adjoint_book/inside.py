"""What the chapters show of the library's inside.

None of this is public: it may change from one version of adjoint_lib to the next, and this list
with it. The chapters take it from here, so that one file says what they depend on.
"""

from adjoint_book.misses import expected_misses
from adjoint_lib.cli.main import main
from adjoint_lib.core.folding import batch_norm
from adjoint_lib.core.hypersurface import readable
from adjoint_lib.core.primitives import Conv
from adjoint_lib.core.strategy import batch_rows, live_entries
from adjoint_lib.core.tables import Table
from adjoint_lib.core.windows import Patch
from adjoint_lib.experiments import paper
from adjoint_lib.experiments.data.checked import KnownFile, read
from adjoint_lib.experiments.data.cifar import DATASETS
from adjoint_lib.experiments.weights import provenance
from adjoint_lib.frontend.activations import PIECEWISE
from adjoint_lib.frontend.layers import Bias
from adjoint_lib.frontend.rules.call import RULES
from adjoint_lib.verification.coarse_weights import rounded
from adjoint_lib.verification.verify import reconstruct, relative_error

__all__ = [
    "DATASETS",
    "PIECEWISE",
    "RULES",
    "Bias",
    "Conv",
    "KnownFile",
    "Patch",
    "Table",
    "batch_norm",
    "batch_rows",
    "expected_misses",
    "live_entries",
    "main",
    "paper",
    "provenance",
    "read",
    "readable",
    "reconstruct",
    "relative_error",
    "rounded",
]
