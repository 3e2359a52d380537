"""Steps of the symmetry derivation that consider the whole network."""

from __future__ import annotations

from collections.abc import Iterable

from symgnn.geometry.symmetry import AXIAL, LENGTHS, Symmetry
from symgnn.nn.coordinate_maps import CoordinateMap


def narrowed(kept: Symmetry, maps: Iterable[CoordinateMap], scaling: float | None) -> Symmetry:
    """What is kept, given what the inputs and maps keep one by one.

    Args:
        kept: The intersection over inputs and maps.
        maps: The coordinate maps.
        scaling: That of the specification; None where coordinates are not scaled.
    """
    # what reads along an axis keeps motions about it only as long as the axis is not turned
    if "rotation" not in kept and any(psi.turns for psi in maps):
        kept = Symmetry(kept.kinds - set(AXIAL))
    if scaling is None:
        return kept
    # the scale is that of the longest edge; where it matters, so does what keeps the edges' lengths
    kept = kept if "dilation" in kept else kept & LENGTHS
    # what happens to scaled coordinates does not depend on their scale, and is scaled back
    return kept | Symmetry(["dilation"])
