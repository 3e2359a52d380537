"""Christie and Aston's test against closed forms and on sets whose symmetry is known."""

from typing import Any

import pytest
import torch
from torch import Tensor
from torch_geometric.data import Data

from symgnn.data._task_of_graphs import with_task
from symgnn.discovery._packing import pack
from symgnn.discovery._target_rows import target_rows
from symgnn.discovery._variation_test import ISOMETRIES, largest, offset, variation_test

LINE = torch.tensor([[0, 1], [1, 0]])


def column(*values: float) -> Tensor:
    return torch.tensor(values, dtype=torch.float64).unsqueeze(1)


def test_the_largest_ratio_of_three_points() -> None:
    # gaps 3, 1, 2 over distances 1, 4, 5, and an offset of 1: the largest is 3 / 2
    assert largest(column(0, 1, 5), column(0, 3, 1), 1.0) == pytest.approx(1.5)
    assert largest(column(2, 2), column(0, 3), 0.0) == 0.0  # copies of one graph


def test_the_offset_is_where_the_hull_meets_the_axis() -> None:
    # corners (1, 2) and (3, 4): the line y = 1 + d, which is 0 at d = -1
    distance = torch.tensor([[0.0, 1.0, 3.0], [1.0, 0.0, 2.0], [3.0, 2.0, 0.0]]).double()
    gaps = torch.tensor([[0.0, 2.0, 4.0], [2.0, 0.0, 0.5], [4.0, 0.5, 0.0]]).double()
    assert offset(distance, gaps) == pytest.approx(1.0)
    assert offset(distance, distance.square()) == 0.0  # convex: the last corner has the ratio


def p_values(target: str) -> dict[str, Any]:
    """Of 200 pairs of points in the plane, with targets that keep what `target` says."""
    generator = torch.Generator().manual_seed(1)
    graphs = []
    for _ in range(200):
        pos = torch.randn(2, 2, generator=generator, dtype=torch.float64)
        y = {"nothing": (2 * pos[:, 1]).sin().mean(), "motions": (pos[0] - pos[1]).norm()}[target]
        graphs.append(Data(pos=pos, edge_index=LINE, y=y.reshape(1, 1)))
    known, task = with_task(graphs, "graph")
    packed = pack(known, generator)
    rows = target_rows(known, task, packed, generator)
    return {k: variation_test(k, packed, rows, 0) for k in (*ISOMETRIES, "dilation")}


def test_heights_are_found_to_depend_on_the_pose() -> None:
    found = p_values("nothing")
    assert found.pop("dilation") is None  # no isometry
    assert all(p <= 0.05 for p in found.values()), found


def test_distances_are_not() -> None:
    found = p_values("motions")
    assert all(p is None or p > 0.2 for p in found.values()), found
