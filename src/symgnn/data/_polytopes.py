"""The regular convex polytopes as graphs: vertices with coordinates, joined along the edges."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import permutations, product

import numpy as np
import torch
from scipy.spatial import cKDTree
from torch import Tensor
from torch_geometric.data import Data

from symgnn._argument_checks import check_count, unknown_name

_PHI = (1.0 + math.sqrt(5.0)) / 2.0


def _is_even(order: Sequence[int]) -> bool:
    """Whether the permutation `order` has an even number of inversions."""
    n = len(order)
    return sum(order[i] > order[j] for i in range(n) for j in range(i + 1, n)) % 2 == 0


def _orbit(values: Sequence[float], even: bool = False) -> np.ndarray:
    """All distinct sign changes and permutations (only the even ones if `even`), `[M, n]`."""
    points = set()
    for signed in product(*[(v, -v) if v else (v,) for v in values]):
        for order in permutations(range(len(values))):
            if not even or _is_even(order):
                points.add(tuple(signed[i] for i in order))
    return np.array(sorted(points, reverse=True), dtype=np.float64)


def _simplex(n: int) -> np.ndarray:
    """`[n + 1, n]`: vertex i is the first one not determined by the coordinates before i."""
    points = np.zeros((n + 1, n))
    for i in range(n):
        height = math.sqrt((n + 1) * (n - i) / (n * (n - i + 1)))
        points[i, i] = height
        points[i + 1 :, i] = -height / (n - i)
    return points


def _hypercube(n: int) -> np.ndarray:
    """`[2 ** n, n]`."""
    bits = (np.arange(2**n)[:, None] >> np.arange(n)[::-1]) & 1
    return (1.0 - 2.0 * bits) / math.sqrt(n)


def _orthoplex(n: int) -> np.ndarray:
    """`[2 n, n]`."""
    return np.concatenate([np.eye(n), -np.eye(n)])


def _dodecahedron() -> np.ndarray:
    """`[20, 3]`."""
    points = [_orbit((1, 1, 1)), _orbit((0, 1 / _PHI, _PHI), even=True)]
    return np.concatenate(points) / math.sqrt(3)


def _icosahedron() -> np.ndarray:
    """`[12, 3]`."""
    return _orbit((0, 1, _PHI), even=True) / math.sqrt(1 + _PHI**2)


def _cell24() -> np.ndarray:
    """`[24, 4]`."""
    return np.concatenate([_orbit((1, 0, 0, 0)), _orbit((0.5, 0.5, 0.5, 0.5))])


def _cell120() -> np.ndarray:
    """`[600, 4]`."""
    p, root5 = _PHI, math.sqrt(5)
    points = [
        _orbit((0, 0, 2, 2)),
        _orbit((1, 1, 1, root5)),
        _orbit((1 / p**2, p, p, p)),
        _orbit((1 / p, 1 / p, 1 / p, p**2)),
        _orbit((0, 1 / p**2, 1, p**2), even=True),
        _orbit((0, 1 / p, p, root5), even=True),
        _orbit((1 / p, 1, p, 2), even=True),
    ]
    return np.concatenate(points) / math.sqrt(8)


def _cell600() -> np.ndarray:
    """`[120, 4]`."""
    return np.concatenate([_cell24(), _orbit((_PHI, 1, 1 / _PHI, 0), even=True) / 2])


# name -> (smallest dimension, vertices), in the order of the classes
_FAMILIES: dict[str, tuple[int, Callable[[int], np.ndarray]]] = {
    "simplex": (1, _simplex),
    "hypercube": (1, _hypercube),
    "orthoplex": (2, _orthoplex),
}
# name -> (its only dimension, vertices), in the order of the classes
_SPECIALS: dict[str, tuple[int, Callable[[], np.ndarray]]] = {
    "dodecahedron": (3, _dodecahedron),
    "icosahedron": (3, _icosahedron),
    "24-cell": (4, _cell24),
    "120-cell": (4, _cell120),
    "600-cell": (4, _cell600),
}


def _vertices(name: str, dimension: int | None) -> np.ndarray:
    """Vertices of one polytope, `[N, n]` in float64, centred, with circumradius 1."""
    if dimension is not None:
        dimension = check_count("dimension", dimension)
    if name in _SPECIALS:
        own, special = _SPECIALS[name]
        if dimension not in (None, own):
            raise ValueError(
                f"dimension: is {dimension}, but the {name} has dimension {own}; pass {own} or "
                "remove it"
            )
        return special()
    if name in _FAMILIES:
        least, family = _FAMILIES[name]
        if dimension is None:
            raise ValueError(f"dimension: is missing; pass that of the {name}, such as 3")
        if dimension < least:
            raise ValueError(f"dimension: is {dimension}; the {name} needs at least {least}")
        return family(dimension)
    known = [*_FAMILIES, *_SPECIALS]
    raise ValueError(unknown_name("name", name, known, "a regular polytope"))


def _edges(points: np.ndarray) -> Tensor:
    """Pairs at the minimal distance, `[2, E]`, both directions, sorted by (source, target)."""
    tree = cKDTree(points)
    shortest = tree.query(points, k=2)[0][:, 1].min()
    pairs = tree.query_pairs(shortest * (1 + 1e-9), output_type="ndarray").astype(np.int64)
    both = np.concatenate([pairs, pairs[:, ::-1]])
    order = np.lexsort((both[:, 1], both[:, 0]))
    return torch.from_numpy(np.ascontiguousarray(both[order].T))


def polytope(name: str, dimension: int | None = None, dtype: torch.dtype = torch.float32) -> Data:
    """A regular polytope as a graph, centred at the origin, with circumradius 1.

    Args:
        name: "simplex", "hypercube" or "orthoplex" (any dimension, which must be given; the
            orthoplex from 2 on), "dodecahedron" or "icosahedron" (3-d), "24-cell", "120-cell" or
            "600-cell" (4-d).
        dimension: dimension n of the space; optional for polytopes of one dimension only.
        dtype: dtype of the coordinates, which are computed in float64.

    Returns:
        `Data` with `pos [N, n]`, `edge_index [2, E]` (pairs at the minimal distance, in both
        directions, sorted by source and then target) and `name`.

    Raises:
        ValueError: for an unknown name or a dimension in which the polytope does not exist.

    Example:
        >>> cube = symgnn.data.polytope("hypercube", dimension=3)
        >>> cube.pos.shape, cube.edge_index.shape
        (torch.Size([8, 3]), torch.Size([2, 24]))
    """
    points = _vertices(name, dimension)
    return Data(pos=torch.from_numpy(points).to(dtype), edge_index=_edges(points), name=name)


def polytopes(dimension: int, dtype: torch.dtype = torch.float32) -> list[Data]:
    """All regular convex polytopes of one dimension, each with its class number `y [1]`.

    The order is simplex, hypercube, orthoplex, then in 3-d dodecahedron, icosahedron and in 4-d
    24-cell, 120-cell, 600-cell. Duplicates are omitted: in 2-d the orthoplex is also the square,
    and in 1-d there is only the segment. (Regular polygons with more than four sides are not
    included.)

    Args:
        dimension: dimension n of the space, at least 1.
        dtype: type of the coordinates.

    Returns:
        One `Data` per class, as from `polytope`, with `y`.

    Example:
        >>> [solid.name for solid in symgnn.data.polytopes(3)]
        ['simplex', 'hypercube', 'orthoplex', 'dodecahedron', 'icosahedron']
    """
    dimension = check_count("dimension", dimension)
    names = list(_FAMILIES)[: min(dimension, 3)]
    names += [name for name, (own, _) in _SPECIALS.items() if own == dimension]
    graphs = [polytope(name, dimension, dtype) for name in names]
    for number, graph in enumerate(graphs):
        graph.y = torch.tensor([number])
    return graphs
