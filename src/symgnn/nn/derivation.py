"""Steps of the symmetry derivation that consider the whole network."""

from __future__ import annotations

from collections.abc import Iterable

from symgnn.geometry.symmetry import AXIAL, LENGTHS, Symmetry
from symgnn.nn.coordinate_maps import CoordinateMap


def narrowed(kept: Symmetry, maps: Iterable[CoordinateMap], scaling: float | None) -> Symmetry:
    """The symmetry of a network, given the intersection of those of its inputs and maps.

    Args:
        kept: The intersection over inputs and maps.
        maps: The coordinate maps.
        scaling: That of the specification; None if coordinates are not scaled.
    """
    # a measure along an axis is invariant to motions about it only if no map turns the axis
    if "rotation" not in kept and any(psi.turns for psi in maps):
        kept = Symmetry(kept.kinds - set(AXIAL))
    if scaling is None:
        return kept
    # the scale is the longest edge; if the network depends on it, only maps that keep edge lengths
    # remain
    kept = kept if "dilation" in kept else kept & LENGTHS
    # scaled coordinates do not depend on the original scale, and outputs are scaled back
    return kept | Symmetry(["dilation"])
