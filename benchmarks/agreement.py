"""Whether two contenders have computed the same, in multiples of the unit roundoff u = 2^-24."""

from __future__ import annotations

import numpy as np

UNIT_ROUNDOFF = 2.0**-24

TOLERANCE = 256
"""How many unit roundoffs of their scale two values may differ by and still count as equal."""


def agreement(ours: dict[str, np.ndarray], theirs: dict[str, np.ndarray]) -> dict[str, dict]:
    """The largest differences between what `worker.Checks` kept of two runs, by layer.

    "H": between entries of the hypersurfaces of the sampled units, in u of the largest entry of
    the same unit's H. "activations": between the reconstructed activations, sum of v_i H_i, of all
    units, in u of the sum of |v_i H_i|; left out of a sampled run. NaN is infinitely different.
    """
    found = {}
    for layer in [key.removesuffix("/columns") for key in ours if key.endswith("/columns")]:
        both = [run[f"{layer}/columns"] for run in (ours, theirs)]
        common = min(columns.shape[1] for columns in both)
        reference, columns = (columns[:, :common] for columns in both)
        found[layer] = {"H": in_u(columns - reference, np.abs(reference).max(axis=0))}
        if f"{layer}/reconstruction" in theirs:
            values, reference = theirs[f"{layer}/reconstruction"], ours[f"{layer}/reconstruction"]
            found[layer]["activations"] = in_u(values - reference, ours[f"{layer}/scale"])
    return found


def against_truth(run: dict[str, np.ndarray], true: dict[str, np.ndarray]) -> dict[str, dict]:
    """The same for reconstructed activations against what the network computes, (units,) each."""
    return {
        layer: {"activations": in_u(run[f"{layer}/reconstruction"] - units, run[f"{layer}/scale"])}
        for layer, units in true.items()
    }


def largest(found: dict[str, dict]) -> float:
    """The largest difference of any layer."""
    return max(value for row in found.values() for value in row.values())


def in_u(difference: np.ndarray, scale: np.ndarray) -> float:
    """The largest |difference| / (u scale), to one decimal; 0/0 is 0."""
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(difference == 0, 0, np.abs(difference) / (UNIT_ROUNDOFF * scale))
    return round(float(np.nan_to_num(ratio, nan=np.inf).max()), 1)
