"""The network small enough to see: two pixels, three ReLUs, two ReLUs, and a unit that reads those.

Chapter 3 introduces it; those on the proof, on rounding and on what hypersurfaces show return to
it. All its numbers are small and whole, so that every result can be found by hand. Its input
v = [x; b0; b1] has seven entries.
"""

from __future__ import annotations

import numpy as np

W0 = np.array([[1.0, 0.0], [-2.0, -2.0], [-1.0, 2.0]])
"""From two pixels to three hidden units."""

W1 = np.array([[2.0, -2.0, -1.0], [1.0, -2.0, -1.0]])
"""From three hidden units to two more."""

b0 = np.array([1.0, 1.0, -2.0])
b1 = np.array([1.0, 1.0])

w = np.array([3.0, -2.0])
"""The kernel of the unit that is reconstructed."""

x = np.array([1.0, 2.0])
"""The image."""
