"""Frameworks of rigid bars that move: coordinates at a given state, and the bars as edges."""

from __future__ import annotations

import math

import torch
from torch import Tensor


def _both_ways(pairs: Tensor) -> Tensor:
    """Undirected edges `[E, 2]` as `edge_index` `[2, 2E]`."""
    return torch.cat([pairs, pairs.flip(1)]).T.contiguous()


def folding_square(angle: float, *, dtype: torch.dtype = torch.float64) -> tuple[Tensor, Tensor]:
    """A square of four bars of length 1 with hinges at the corners, folded by an angle.

    Args:
        angle: The interior angle at node 0, in `[0, pi]`: `pi / 2` is the square, 0 and `pi` are
            the two ways to fold it to a line.
        dtype: Of the coordinates.

    Returns:
        `pos` and `edge_index`.

    Shapes:
        pos `[4, 2]`, edge_index `[2, 8]`.

    Example:
        >>> pos, edge_index = symgnn.geometry.folding_square(torch.pi / 3)
        >>> (pos[edge_index[0]] - pos[edge_index[1]]).norm(dim=-1).allclose(torch.ones(8).double())
        True
    """
    if not 0 <= angle <= math.pi:
        raise ValueError(f"angle: must lie in [0, pi], got {angle}; pass the angle in radians")
    x, y = math.cos(angle), math.sin(angle)
    pos = torch.tensor([[0.0, 0.0], [1.0, 0.0], [1.0 + x, y], [x, y]], dtype=dtype)
    return pos, _both_ways(torch.tensor([[0, 1], [1, 2], [2, 3], [3, 0]]))


def _icosidodecahedron() -> tuple[Tensor, Tensor]:
    """The unit vectors to the 30 vertices `[30, 3]`, and the 60 edges `[60, 2]`."""
    golden = (1 + math.sqrt(5)) / 2
    corners = torch.tensor(
        [
            [[0, a, b * golden], [a, b * golden, 0], [b * golden, 0, a]]
            for a in (-1.0, 1.0)
            for b in (-1.0, 1.0)
        ],
        dtype=torch.float64,
    ).reshape(12, 3)
    # the icosahedron's edges have length 2, its next distance is larger by the golden ratio
    i, j = (torch.cdist(corners, corners) < 2.5).triu(1).nonzero().T
    vertices = torch.nn.functional.normalize(corners[i] + corners[j], dim=1)
    # neighbours are 36 degrees apart, the next vertices 60
    return vertices, (vertices @ vertices.T > math.cos(math.radians(48))).triu(1).nonzero()


def hoberman_sphere(opening: float, *, dtype: torch.dtype = torch.float64) -> tuple[Tensor, Tensor]:
    """A Hoberman sphere: a sphere of scissor linkages that opens and keeps all edge lengths.

    There are two hubs on each ray through a vertex of the icosidodecahedron, the outer (nodes 0 to
    29) and the inner (30 to 59), and one pivot over each of its edges (60 to 119). Each pivot joins
    two bent bars of arms of length 1, each from the outer hub at one end to the inner hub at the
    other. The edges are the arms and, since the bars are rigid, the chords between the bars' ends.

    Args:
        opening: From 0, nearly folded, to 1, where the outer hubs are farthest out. No two nodes
            ever meet.
        dtype: Of the coordinates.

    Returns:
        `pos` and `edge_index`.

    Shapes:
        pos `[120, 3]`, edge_index `[2, 720]`.

    Example:
        >>> closed, edge_index = symgnn.geometry.hoberman_sphere(0.0)
        >>> opened, _ = symgnn.geometry.hoberman_sphere(1.0)
        >>> bool(opened.norm(dim=-1).max() > closed.norm(dim=-1).max())
        True
    """
    if not 0 <= opening <= 1:
        raise ValueError(f"opening: must lie in [0, 1], got {opening}; 0 is folded, 1 is open")
    directions, ends = _icosidodecahedron()
    half = math.radians(18)
    # With the pivots at distance rho, the hubs on both sides of an arm's length 1 are at the roots
    # of x^2 - 2 rho cos(half) x + rho^2 - 1. Inner hubs meet in the middle at rho = 1; the outer
    # ones turn back at rho = cot(half).
    rho = 1.05 + (1 / math.tan(half) - 1.05) * float(opening)
    root = math.sqrt(1 - (rho * math.sin(half)) ** 2)
    outer, inner = rho * math.cos(half) + root, rho * math.cos(half) - root
    p, q = ends.T
    middles = torch.nn.functional.normalize(directions[p] + directions[q], dim=1)
    pos = torch.cat([outer * directions, inner * directions, rho * middles]).to(dtype)
    pivot = 60 + torch.arange(60)
    arms = [torch.stack([pivot, hub], 1) for hub in (p, q, 30 + p, 30 + q)]
    chords = [torch.stack([p, 30 + q], 1), torch.stack([q, 30 + p], 1)]
    return pos, _both_ways(torch.cat(arms + chords))
