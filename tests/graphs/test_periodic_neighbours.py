"""Neighbours in periodic cells, against all images counted one by one and against ASE."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch
from ase import Atoms
from ase.build import bulk
from ase.neighborlist import neighbor_list
from torch import Tensor
from torch_geometric.data import Data

from symgnn.geometry import Rotation
from symgnn.graphs import PeriodicGraph, Topology, periodic_graph

Edge = tuple[int, ...]


def counted(pos: Tensor, cell: Tensor, r: float, pbc: tuple[bool, ...]) -> list[Edge]:
    """All images within the radius, by trying them one by one: (target, source, image)."""
    reach = [range(-14, 15) if repeats else range(1) for repeats in pbc]
    images = torch.tensor(list(itertools.product(*reach)))
    shift = images.to(pos.dtype) @ cell
    found = []
    for i, j in itertools.product(range(len(pos)), repeat=2):
        near = (pos[j] + shift - pos[i]).norm(dim=1) <= r
        near &= (images != 0).any(1) | (i != j)
        assert not bool((images[near].abs() > 13).any())  # all of them were tried
        found += [(i, j, *image) for image in images[near].tolist()]
    return sorted(found)


def listed(pos: Tensor, cell: Tensor, r: float, pbc: tuple[bool, ...]) -> list[Edge]:
    (source, target), shift = periodic_graph(pos, cell, r, pbc)
    solid = cell.clone()
    for axis, repeats in enumerate(pbc):
        if not repeats:
            solid[axis] = torch.eye(len(cell), dtype=cell.dtype)[axis] * 1e3
    image = (shift @ torch.linalg.inv(solid)).round().long()
    return sorted(
        (int(i), int(j), *s) for i, j, s in zip(target, source, image.tolist(), strict=True)
    )


@pytest.mark.parametrize("n", [1, 2, 3])
@pytest.mark.parametrize("seed", range(4))
def test_finds_every_image(n: int, seed: int) -> None:
    random = torch.Generator().manual_seed(seed)
    cell = torch.eye(n).double() + 0.25 * torch.randn(n, n, generator=random).double()
    # atoms need not be inside, and the radius may be larger than the cell
    pos = 1.5 * torch.randn(3, n, generator=random).double()
    for pbc in itertools.product((True, False), repeat=n):
        r = 0.6 + 0.4 * seed
        assert listed(pos, cell, r, pbc) == counted(pos, cell, r, pbc), pbc


@pytest.mark.parametrize("pbc", [True, (True, True, False), (False, True, False), False])
def test_agrees_with_ase(pbc: bool | tuple[bool, ...]) -> None:
    atoms = bulk("Cu", cubic=True) * (2, 1, 1)
    atoms.rattle(0.2, seed=3)
    atoms.positions += [30.0, -4.0, 0.1]
    atoms.pbc = pbc
    i, j, shift = neighbor_list("ijS", atoms, 4.3)
    rows = [*map(tuple, (shift @ atoms.cell.array).round(6) + 0.0)]
    wanted = sorted(zip(i.tolist(), j.tolist(), rows, strict=True))
    (source, target), found = periodic_graph(
        torch.tensor(atoms.positions), torch.tensor(atoms.cell.array), 4.3, torch.tensor(atoms.pbc)
    )
    rows = [*map(tuple, found.numpy().round(6) + 0.0)]
    assert sorted(zip(target.tolist(), source.tolist(), rows, strict=True)) == wanted


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_shells_are_whole_however_a_crystal_is_turned_and_cut(dtype: torch.dtype) -> None:
    crystal = bulk("Cu", a=3.6)
    nearest = 3.6 / np.sqrt(2)  # exactly where the radius is
    for seed in range(8):
        torch.manual_seed(seed)
        atoms: Atoms = crystal if seed % 2 else crystal * (2, 1, 3)
        pos = torch.tensor(atoms.positions)
        turn = Rotation.random(pos)
        pos, cell = turn(pos).to(dtype), turn(torch.tensor(atoms.cell.array)).to(dtype)
        pos = pos + torch.randn(3).to(dtype)
        edge_index, _ = periodic_graph(pos, cell, float(nearest))
        assert edge_index[1].bincount().tolist() == [12] * len(pos)


def test_shifts_of_an_edge_and_its_reverse_are_opposite_to_the_last_digit() -> None:
    torch.manual_seed(0)
    pos, cell = torch.rand(4, 3), torch.eye(3) + 0.3 * torch.randn(3, 3)
    edge_index, shift = periodic_graph(pos, cell, 2.5)
    topology = Topology.build(edge_index, 4, edge_shift=shift)
    assert topology.num_rays == edge_index.shape[1]  # one ray for each edge: reverses are found
    assert topology.ray_edge is not None
    assert topology.ray_edge.shape == (edge_index.shape[1], 1)


def test_graphs_of_a_batch_have_cells_of_their_own() -> None:
    torch.manual_seed(0)
    pos, cells = torch.rand(5, 3).double(), torch.eye(3).double() * torch.tensor([[[1.0]], [[2]]])
    pbc = torch.tensor([[True, True, True], [True, False, True]])
    batch = torch.tensor([0, 0, 1, 1, 1])
    edge_index, shift = periodic_graph(pos, cells, 1.2, pbc, batch)
    for graph, part in ((0, slice(0, 2)), (1, slice(2, 5))):
        index, alone = periodic_graph(pos[part], cells[graph], 1.2, pbc[graph])
        mine = batch[edge_index[1]] == graph
        assert torch.equal(edge_index[:, mine] - part.start, index)
        assert torch.equal(shift[mine], alone)


def test_transform() -> None:
    data = Data(pos=torch.zeros(1, 3), cell=torch.eye(3)[None], pbc=torch.tensor([[True] * 3]))
    assert PeriodicGraph(r=1.0)(data).edge_shift.shape == (6, 3)
    with pytest.raises(ValueError, match="cell is missing"):
        PeriodicGraph(r=1.0)(Data(pos=torch.zeros(1, 3)))


@pytest.mark.parametrize(
    ("cell", "pbc", "message"),
    [
        (torch.eye(2), True, r"cell: has shape \[2, 2\]"),
        (torch.eye(3), [True, False], "pbc: is"),
        (torch.zeros(3, 3), True, "vector a has no length"),
        (torch.ones(3, 3), True, "one plane or line"),
        (torch.full((3, 3), torch.nan), True, "not finite"),
    ],
)
def test_refuses_cells_that_are_none(cell: Tensor, pbc: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        periodic_graph(torch.zeros(1, 3), cell, 1.0, pbc)  # type: ignore[arg-type]
