"""Neighbours in periodic cells: edges with the shift of the image that they come from.

The search itself is that of `vesin`; ties are kept as in :mod:`symgnn.graphs.neighbours`: the list
depends on the geometry alone, not on the choice of the cell, on the order of the atoms or on the
rounding of a rotation.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.transforms import BaseTransform

from symgnn._argument_checks import check_at_least
from symgnn.graphs.budget import require_memory
from symgnn.graphs.neighbours import _EACH, _SLACK, _TIE, _TIE_LEAST, _check_pos, _sizes

#: Cells whose volume is less than this part of the product of their sides are flat.
FLAT = 1e-9


def check_cell(cell: Any, pbc: Any, n: int) -> tuple[np.ndarray, np.ndarray]:
    """The cell `[n, n]` in float64, one vector in each row, and along which of them it repeats."""
    found = np.asarray(cell.detach().cpu() if isinstance(cell, Tensor) else cell, dtype=np.float64)
    if found.shape == (1, n, n):
        found = found[0]
    if found.shape != (n, n):
        raise ValueError(
            f"cell: has shape {list(found.shape)}; give [{n}, {n}], one vector in each row"
        )
    repeats = np.asarray(pbc.detach().cpu() if isinstance(pbc, Tensor) else pbc)
    if repeats.dtype != np.bool_ or repeats.size not in (1, n):
        raise ValueError(f"pbc: is {pbc!r}; give True, False, or one of them for each cell vector")
    repeats = np.broadcast_to(repeats.reshape(-1), (n,)).copy()
    if not np.isfinite(found).all():
        raise ValueError("cell: holds numbers that are not finite; repair it")
    sides = np.linalg.norm(found[repeats], axis=1)
    if not (sides > 0).all():
        axis = "abc"[int(np.flatnonzero(repeats)[int(np.argmin(sides))])]
        raise ValueError(
            f"cell: vector {axis} has no length, but pbc says that it repeats; correct one of them"
        )
    spanned = np.linalg.svd(found[repeats] / sides[:, None], compute_uv=False)
    if repeats.any() and spanned.min() < FLAT:
        raise ValueError("cell: its periodic vectors lie in one plane or line; correct it")
    return found, repeats


def periodic_graph(
    pos: Tensor,
    cell: Tensor,
    r: float,
    pbc: bool | Sequence[bool] | Tensor = True,
    batch: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """Edges between all nodes and periodic images of nodes at distance at most r.

    A node may be a neighbour several times, by different images, and may be its own neighbour.
    Nodes need not lie inside the cell, and r may be larger than the cell.

    Args:
        pos: Coordinates `[N, n]`, n at most 3.
        cell: The vectors of the cell in rows `[n, n]`, or of each graph `[G, n, n]`.
        r: Radius, at least 0.
        pbc: Whether the cell is periodic, or along which vectors `[n]`; for each graph `[G, n]`.
        batch: Graph of each node `[N]`, sorted; one graph if not given.

    Returns:
        `edge_index [2, E]`, sorted by target, source and shift, and `edge_shift [E, n]`: the edge
        j -> i with the shift s comes from `pos[j] + s`. The shifts of an edge and of its reverse
        are exactly opposite.

    Raises:
        ValueError: if an argument is out of its range, naming it, if `vesin` is not installed, or
            if the edges do not fit into memory.

    Example:
        >>> pos, cell = torch.zeros(1, 3), 2.0 * torch.eye(3)
        >>> edge_index, edge_shift = symgnn.graphs.periodic_graph(pos, cell, r=2.0)
        >>> edge_index.shape, sorted(edge_shift.norm(dim=1).unique().tolist())
        (torch.Size([2, 6]), [2.0])
    """
    r = check_at_least("r", r, 0)
    _check_pos(pos)
    n = pos.shape[1]
    if n > 3:
        raise ValueError(f"pos: has {n} coordinates; periodic cells have at most 3")
    sizes = _sizes(pos, batch)
    cells = cell.reshape(-1, n, n) if isinstance(cell, Tensor) and cell.dim() == 3 else [cell]
    if len(cells) not in (1, len(sizes)):
        raise ValueError(f"cell: there are {len(cells)} for {len(sizes)} graphs; give one each")
    several = isinstance(pbc, Tensor) and pbc.dim() == 2
    points = pos.detach().cpu().double().numpy()
    edges, shifts = [np.empty((2, 0), dtype=np.int64)], [np.empty((0, n))]
    start = 0
    for number, size in enumerate(sizes):
        one = cells[number if len(cells) > 1 else 0]
        repeats = pbc[number if len(pbc) > 1 else 0] if several else pbc  # type: ignore[index, arg-type]
        index, shift = _images(points[start : start + size], *check_cell(one, repeats, n), r, pos)
        edges.append(index + start)
        shifts.append(shift)
        start += size
    kind = pos.dtype if pos.is_floating_point() else torch.get_default_dtype()
    found = torch.from_numpy(np.concatenate(edges, axis=1)).to(pos.device)
    return found, torch.from_numpy(np.concatenate(shifts)).to(kind).to(pos.device)


def _images(
    points: np.ndarray, cell: np.ndarray, pbc: np.ndarray, r: float, pos: Tensor
) -> tuple[np.ndarray, np.ndarray]:
    """Edges `[2, E]` and shifts `[E, n]` of one graph."""
    if find_spec("vesin") is None:
        raise ValueError(
            "pbc: periodic cells need vesin; install it with pip install symgnn[atoms]"
        )
    from vesin import NeighborList

    n = points.shape[1]
    limit = r + _tolerance(points, cell, pbc, r, pos.dtype)
    box = _box(points, cell, pbc, limit)
    wide, repeats = np.zeros((len(points), 3)), np.zeros(3, dtype=bool)
    wide[:, :n], repeats[:n] = points, pbc
    # inside the cell, so that images are counted from near ones
    home = np.zeros((len(points), 3))
    home[:, repeats] = np.floor(wide @ np.linalg.inv(box))[:, repeats]
    inside = wide - _combined(home, box)
    expected = len(points) ** 2 * 4.2 * limit**3 / max(abs(np.linalg.det(box)), 1e-300)
    if repeats.all():
        require_memory(
            f"r: a radius of {r:g} joins {len(points):,} nodes of a cell by about {{count}} edges",
            int(min(expected, 1e15)),
            _EACH,
            "give a smaller radius",
        )
    rounding = 8 * np.finfo(np.float64).eps * float(np.abs(inside).max(initial=0.0))
    search = NeighborList(cutoff=max(limit * _SLACK + rounding, 1e-12), full_list=True)
    i, j, s = search.compute(_without_gaps(inside, box, repeats, limit), box, repeats, "ijS")
    i, j = i.astype(np.int64), j.astype(np.int64)
    # of the nodes as they were given, whichever image they are
    s = s.astype(np.float64) - home[j] + home[i]
    shift = _combined(s, box)[:, :n]
    near = np.linalg.norm(points[j] + shift - points[i], axis=1) <= limit
    near &= (i != j) | (s != 0).any(1)
    i, j, s, shift = i[near], j[near], s[near], shift[near]
    order = np.lexsort((s[:, 2], s[:, 1], s[:, 0], j, i))
    return np.stack([j[order], i[order]]), shift[order]


def _without_gaps(
    points: np.ndarray, box: np.ndarray, repeats: np.ndarray, limit: float
) -> np.ndarray:
    """Points moved together along directions that do not repeat, where nothing is between them.

    Points that are more than the limit apart along such a direction are so afterwards, and others
    are as far apart as before. The search counts its cells in integers, and stops the process if
    there are too many, as with an atom that has flown away.
    """
    moved = points.copy()
    for axis in box[~repeats]:  # at right angles to each other and to those that repeat
        along = axis / np.linalg.norm(axis)
        place = points @ along
        order = np.argsort(place, kind="stable")
        gaps = np.diff(place[order], prepend=place[order[:1]])
        gone = np.cumsum(np.maximum(gaps - 4 * limit, 0.0))
        if gone.size and gone[-1] > 0:
            moved[order] -= gone[:, None] * along
    return moved


def _combined(numbers: np.ndarray, box: np.ndarray) -> np.ndarray:
    """`numbers @ box`, whose rows do not depend on their place: opposite ones are opposite."""
    first, second, third = (numbers[:, [k]] * box[k] for k in range(3))
    return first + second + third + 0.0


def _tolerance(
    points: np.ndarray, cell: np.ndarray, pbc: np.ndarray, r: float, dtype: torch.dtype
) -> float:
    """Difference up to which two distances tie, as in :mod:`symgnn.graphs.neighbours`."""
    info = torch.finfo(dtype if dtype.is_floating_point else torch.float64)
    size = float(np.abs(points).max(initial=0.0))
    sides = np.linalg.norm(cell[pbc], axis=1)
    inner = (_TIE if info.bits >= 32 else _TIE_LEAST) * max(r, float(sides.max(initial=0.0)))
    return float(info.eps * max(inner, _TIE_LEAST * size))


def _box(points: np.ndarray, cell: np.ndarray, pbc: np.ndarray, limit: float) -> np.ndarray:
    """A cell `[3, 3]` with a vector across everything for each direction that does not repeat."""
    n = points.shape[1]
    box = np.zeros((3, 3))
    rows = np.flatnonzero(pbc)
    box[rows, :n] = cell[rows]
    free = [k for k in range(3) if k not in rows]
    if free:
        _, _, basis = np.linalg.svd(box[rows], full_matrices=True)
        across = float(np.ptp(points, axis=0).max(initial=0.0)) * 2 + 2 * limit + 1.0
        box[free] = basis[len(rows) :] * across
    return box


class PeriodicGraph(BaseTransform):
    """Transform that joins atoms within a radius, across the boundaries of a periodic cell.

    It sets `edge_index` and `edge_shift` of a graph with `cell [1, n, n]` and, if the cell is not
    periodic in all directions, `pbc [1, n]`. Features of previous edges are removed.

    Example:
        >>> from torch_geometric.data import Data
        >>> crystal = Data(pos=torch.zeros(1, 2), cell=torch.eye(2)[None])
        >>> symgnn.graphs.PeriodicGraph(r=1.0)(crystal).edge_index
        tensor([[0, 0, 0, 0],
                [0, 0, 0, 0]])
    """

    def __init__(self, r: float) -> None:
        self.r = check_at_least("r", r, 0)

    def forward(self, data: Data) -> Data:
        """Set `data.edge_index [2, E]` and `data.edge_shift [E, n]`."""
        if data.pos is None or getattr(data, "cell", None) is None:
            lacks = "pos" if data.pos is None else "cell"
            raise ValueError(f"data.{lacks} is missing; a periodic graph needs pos and cell")
        pbc = getattr(data, "pbc", None)
        index, shift = periodic_graph(data.pos, data.cell, self.r, True if pbc is None else pbc)
        data.edge_index, data.edge_shift = index, shift
        for name in ("edge_attr", "edge_weight", "edge_type", "angle_attr", "ray_ranks"):
            data[name] = None
        data["topology"] = None
        return data

    def __repr__(self) -> str:
        return f"{type(self).__name__}(r={self.r})"
