"""What a comparison with the paper comes to: same, better, weaker because of something, corrected.

Each function takes numbers, the paper's and ours, and can give each of its answers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from adjoint_lib.errors import DataError
from adjoint_lib.verification.report import LayerReport


def of_number(
    theirs: float, interval: tuple[float, float], recipe: str, papers_recipe: str = "paper"
) -> str:
    """Whether the paper's number lies in the interval around ours, below it or above it."""
    low, high = interval
    by = ", by the same recipe" if recipe == papers_recipe else f", by another recipe ({recipe})"
    if low <= theirs <= high:
        return f"same within the interval{by}"
    return f"better{by}" if theirs < low else f"weaker{by}"


def of_count(ours: int, theirs: int, what: str) -> str:
    """Whether we have as many of something as the paper."""
    if ours == theirs:
        return f"same number of {what}"
    return f"{'more' if ours > theirs else 'weaker because of fewer'} {what}: {ours} for {theirs}"


def of_entries(same: int, stated: int, differing: Sequence[str]) -> str:
    """Whether the entries of a table are ours; those that are not are the paper's slips."""
    if same == stated:
        return f"same in all {stated} entries"
    return f"corrected in {stated - same} of {stated} entries: {', '.join(differing)}"


def of_shares(
    ours: Mapping[str, LayerReport], theirs: Mapping[str, float], least: float = 99.97
) -> str:
    """Layer by layer, whether the paper's percentage lies in our interval, below it or above it.

    Args:
        ours: the reports of the layers.
        theirs: the paper's percentages, of the same layers.
        least: the percentage that the paper grants every layer.
    """
    places = {"same": 0, "higher": 0, "lower": 0}
    for name, layer in ours.items():
        found = layer.interval()
        if found is None:
            raise DataError(f"{name}: expected images enough for an interval, got {layer.images}.")
        low, high = (100 * end for end in found)
        # The paper rounds to four digits after the point.
        near = low - 5e-5 <= theirs[name] <= high + 5e-5
        places["same" if near else "higher" if theirs[name] < low else "lower"] += 1
    below = [name for name, layer in ours.items() if 100 * layer.share() < least]
    under = f"below {least} % in {', '.join(below)}" if below else f"none below {least} %"
    also = f"better in {places['higher']}, same within the interval in {places['same']}; {under}"
    if places["lower"]:
        why = reason(list(ours.values()))
        return f"weaker in {places['lower']} of {len(ours)} layers because {why}, {also}"
    if places["higher"]:
        return also
    return f"same within the interval in all {len(ours)} layers; {under}"


def reason(layers: Sequence[LayerReport]) -> str:
    """Why units miss: rounding, if every one of them is within its rigorous bound."""
    beyond = [layer for layer in layers if not layer.passed]
    if beyond:
        return f"{len(beyond)} layers have units beyond their rounding bound"
    return "float32 rounds (every unit within its bound)"


def of_histograms(
    panels: int, papers_panels: int, end: float, papers_end: float, images: int, papers_images: int
) -> str:
    """Whether there is a panel for each of the paper's, over the same range, of as many images."""
    short = []
    if panels != papers_panels:
        short.append(f"{panels} panels for {papers_panels}")
    if not np.isclose(end, papers_end):
        short.append(f"a range up to {end:g} for {papers_end:g}")
    if images < papers_images:
        short.append(f"{images:,} images for {papers_images:,}")
    return f"weaker because of {', '.join(short)}" if short else "same panels, range and images"


def of_maps(
    shown: tuple[int, int, int],
    stated: tuple[int, int, int],
    size: float,
    papers_size: float,
    worst: float,
) -> str:
    """Whether pictures, maps and maps in a row are the paper's, and the difference is as small.

    Args:
        shown, stated: pictures, maps, and maps in a row.
        size: the largest difference, in parts of the largest unit.
        papers_size: about how large the paper says it is; up to ten times of it is about that.
        worst: the largest difference in parts of its rigorous bound.
    """
    if shown != stated:
        return f"weaker because of {shown} pictures, maps and maps in a row for {stated}"
    if worst > 1:
        return "does not hold: a difference is beyond its rounding bound"
    if size <= 10 * papers_size:
        return "same pictures and maps, difference as small"
    return (
        f"same pictures and maps; difference {size / papers_size:.0f} times as large, "
        "weaker because float32 rounds (every unit within its bound)"
    )
