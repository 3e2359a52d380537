"""Edges with a shift, as in a periodic cell, against the same crystal written out."""

from __future__ import annotations

import itertools

import pytest
import torch
from torch import Tensor
from torch_geometric.data import Batch, Data

from symgnn.audit import audit
from symgnn.data._rescaling import at_scale
from symgnn.geometry import Inversion, Reflection, Rotation, Translation
from symgnn.graphs import AddTopology, Topology
from symgnn.graphs.rays import _shifts
from symgnn.nn import ARCHITECTURES, PEERS, build
from symgnn.train._loader import GraphDataset

CELL = torch.tensor([[2.0, 0.0], [0.6, 1.7]], dtype=torch.float64)
COPIES = 3


def crystal(radius: float = 2.2, atoms: int = 2) -> Data:
    """One cell: every pair of atoms within the radius, through the walls of the cell too."""
    random = torch.Generator().manual_seed(1)
    pos = torch.rand(atoms, 2, generator=random, dtype=torch.float64) @ CELL
    edges, shifts = [], []
    for i, j in itertools.product(range(atoms), repeat=2):
        for image in itertools.product(range(-2, 3), repeat=2):
            shift = torch.tensor(image, dtype=torch.float64) @ CELL
            length = (pos[j] + shift - pos[i]).norm()
            if 0 < length < radius:
                edges.append((j, i))
                shifts.append(shift)
    index = torch.tensor(edges).T.contiguous()
    return Data(pos=pos, edge_index=index, edge_shift=torch.stack(shifts), z=torch.arange(atoms))


def supercell(cell: Data) -> Data:
    """So many copies of the cell in each direction, with edges to the nearest image of each."""
    n = len(cell.pos)
    places = list(itertools.product(range(COPIES), repeat=2))
    number = {place: k for k, place in enumerate(places)}
    pos = torch.cat([cell.pos + torch.tensor(p, dtype=torch.float64) @ CELL for p in places])
    inverse = torch.linalg.inv(CELL)
    edges, shifts = [], []
    for place in places:
        for (j, i), shift in zip(cell.edge_index.T.tolist(), cell.edge_shift, strict=True):
            image = (shift @ inverse).round().long().tolist()
            there = [a + b for a, b in zip(place, image, strict=True)]
            inside = tuple(a % COPIES for a in there)
            around = torch.tensor([a - b for a, b in zip(there, inside, strict=True)])
            edges.append((number[inside] * n + j, number[place] * n + i))
            shifts.append(around.double() @ CELL)
    index = torch.tensor(edges).T.contiguous()
    z = cell.z.repeat(len(places))
    return Data(pos=pos, edge_index=index, edge_shift=torch.stack(shifts), z=z)


def model_of(architecture: str, **options: object) -> torch.nn.Module:
    torch.manual_seed(0)
    settings = {"hidden": 5, "layers": 2, "task": "node", "dimension": 2}
    settings |= {"aggregation": "mean", **options}  # sums over a graph count its cells
    if architecture in ("schnet", "dimenet", "dimenet++"):
        settings |= {"types": 3, "cutoff": 2.5}
        settings.pop("dimension")
    else:
        settings["node_types"] = 3
    if architecture == "isogcn":
        settings.pop("node_types")
        settings["node_features"] = 1
    model = build(architecture, **settings).double()  # type: ignore[arg-type]
    with torch.no_grad():
        for parameter in model.parameters():
            parameter += 0.1 * torch.randn_like(parameter)
    return model


def prepared(data: Data, architecture: str) -> Data:
    data = data.clone()
    if architecture == "isogcn":
        data.x, data.z = data.z.double().unsqueeze(-1), None
    return data


@pytest.mark.parametrize("engine", ["fast", "reference", "chunk"])
@pytest.mark.parametrize("architecture", [a for a in (*ARCHITECTURES, *PEERS) if a != "gn"])
def test_a_cell_is_its_supercell(architecture: str, engine: str) -> None:
    """Node by node; GN reads coordinates themselves, which differ from copy to copy."""
    options = {"chunk": 5} if engine == "chunk" else {"engine": engine}
    if architecture in ARCHITECTURES:
        options["coordinate_map"] = "neighbour-sum"
    model = model_of(architecture, **options)
    cell = crystal()
    small, large = (model(prepared(data, architecture)) for data in (cell, supercell(cell)))
    torch.testing.assert_close(large, small.repeat(COPIES**2, 1), rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("coordinate_map", ["scale", "shift", "rigid", "egcn-neighbours"])
def test_coordinate_maps_move_the_cell(coordinate_map: str) -> None:
    model = model_of("combined", coordinate_map=coordinate_map, layers=3)
    cell = crystal()
    small, large = model(cell), model(supercell(cell))
    torch.testing.assert_close(large, small.repeat(COPIES**2, 1), rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("architecture", ["dgn", "agn+distances", "cgn"])
def test_forces_of_a_cell(architecture: str) -> None:
    """A copy of the cell feels what the cell does.

    Within a radius below the lattice vectors: an atom and two opposite images of it stand in a
    line, where the angle has a cusp, and its derivative in the large cell depends on rounding.
    """
    cell = crystal(radius=1.7, atoms=3)
    assert Topology.of(cell).num_angles > 10
    model = model_of(architecture, graph_state=False, aggregation="sum")
    forces = []
    for data in (cell, supercell(cell)):
        data = data.clone()
        data.pos = data.pos.clone().requires_grad_()
        forces.append(torch.autograd.grad(model(data).sum(), data.pos)[0])
    torch.testing.assert_close(forces[1], forces[0].repeat(COPIES**2, 1), rtol=1e-9, atol=1e-9)


def test_sizes_of_sdgn_are_those_of_the_images() -> None:
    model = model_of("sdgn")
    cell = crystal()
    twice = cell.clone()
    twice.pos, twice.edge_shift = 2 * cell.pos, 2 * cell.edge_shift
    torch.testing.assert_close(model(twice), model(cell), rtol=1e-10, atol=1e-10)


def test_rays_by_vertex_neighbour_and_shift() -> None:
    """A chain of one atom: its neighbours are its own images to the left and to the right."""
    edges = torch.zeros(2, 2, dtype=torch.long)
    shift = torch.tensor([[1.0], [-1.0]])
    topology = Topology.build(edges, 1, edge_shift=shift, lines=True)
    assert topology.num_rays == 2
    assert topology.ray_index.tolist() == [[0, 0], [0, 0]]
    assert sorted(topology.on_rays(shift).flatten().tolist()) == [-1, 1]
    assert topology.num_angles == 2
    # the two edges are one line, there and back
    assert topology.line_index.tolist() == [[0], [0]]
    assert topology.on_lines(shift).abs().tolist() == [[1]]


def test_the_same_neighbour_twice() -> None:
    edges = torch.tensor([[1, 1, 0, 0], [0, 0, 1, 1]])
    shift = torch.tensor([[0.0], [3.0], [0.0], [-3.0]])
    topology = Topology.build(edges, 2, edge_shift=shift, lines=True)
    assert topology.ray_index.tolist() == [[0, 0, 1, 1], [1, 1, 0, 0]]
    assert topology.on_rays(shift).flatten().tolist() == [0, 3, -3, 0]
    assert topology.line_index.shape[1] == 2
    plain = Topology.build(edges, 2)
    assert plain.num_rays == 0  # one neighbour each: no angles


def test_batches_and_sorted_neighbours() -> None:
    """PyG concatenates shifts; neighbours that were sorted before are used, and are right."""
    cell = crystal()
    several = [AddTopology()(data.clone()) for data in (cell, supercell(cell), cell)]
    batch = Batch.from_data_list(several)
    assert batch.edge_shift.shape[0] == batch.edge_index.shape[1]
    ranked, plain = (
        Topology.of(batch),
        Topology.build(batch.edge_index, batch.num_nodes, batch.batch, edge_shift=batch.edge_shift),
    )
    assert torch.equal(ranked.ray_index, plain.ray_index)
    assert torch.equal(ranked.target_ray, plain.target_ray)
    model = model_of("agn")
    one = torch.cat([model(data) for data in (cell, supercell(cell), cell)])
    torch.testing.assert_close(model(batch), one, rtol=1e-10, atol=1e-10)


def test_zero_shifts_are_none() -> None:
    random = torch.Generator().manual_seed(0)
    pos = torch.randn(6, 3, generator=random, dtype=torch.float64)
    edges = (torch.rand(6, 6, generator=random) < 0.5).nonzero().T
    z = torch.zeros(6, dtype=torch.long)
    data = Data(pos=pos, edge_index=edges, z=z)
    model = model_of("agn+edges", dimension=3)
    expected = model(data)
    data.edge_shift = torch.zeros(edges.shape[1], 3, dtype=torch.float64)
    torch.testing.assert_close(model(data), expected, rtol=0, atol=0)


def faulty() -> dict[str, tuple[Tensor, str]]:
    return {
        "rows": (torch.zeros(1, 2), r"edge_shift: has 1 rows for 4 edges"),
        "shape": (torch.zeros(4), r"edge_shift: has shape \[4\]; it must be \[E, n\]"),
        "type": (torch.zeros(4, 2, dtype=torch.long), "edge_shift: is torch.int64"),
        "finite": (torch.full((4, 2), torch.nan), "edge_shift: holds numbers that are not finite"),
    }


@pytest.mark.parametrize("fault", faulty())
def test_faulty_shifts(fault: str) -> None:
    shift, message = faulty()[fault]
    edges = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
    with pytest.raises(ValueError, match=message):
        Topology.of(Data(pos=torch.zeros(3, 2), edge_index=edges, edge_shift=shift))


def test_shifts_of_another_dimension() -> None:
    edges = torch.tensor([[0, 1], [1, 0]])
    data = Data(pos=torch.zeros(2, 3), edge_index=edges, edge_shift=torch.zeros(2, 2))
    with pytest.raises(ValueError, match=r"edge_shift: has 2 coordinates; pos has 3"):
        Topology.of(data)


def test_all_pairs_are_refused() -> None:
    model = model_of("dgn", coordinate_map="egcn")
    with pytest.raises(ValueError, match=r"edge_shift: all pairs .* use the coordinate map"):
        model(crystal())


def test_a_topology_of_other_shifts_is_refused() -> None:
    cell, model = crystal(), model_of("agn")
    cell.topology = model.topology(cell)
    model(cell)
    cell.edge_shift = 2 * cell.edge_shift
    with pytest.raises(ValueError, match="topology: was made for another edge_shift"):
        model(cell)


def test_a_cell_turns_and_grows_with_its_atoms() -> None:
    """A motion of the coordinates moves the shifts too; other maps are refused."""
    cell, model = crystal(), model_of("combined")
    for kind in (Rotation, Reflection, Translation):
        moved = kind.random(cell.pos, generator=torch.Generator().manual_seed(0)).apply(cell)
        torch.testing.assert_close(model(moved), model(cell), rtol=1e-9, atol=1e-9)
    inverted = Inversion.random(cell.pos, generator=torch.Generator().manual_seed(0))
    with pytest.raises(ValueError, match="edge_shift: a inversion does not map a periodic cell"):
        inverted.apply(cell)


def test_shifts_go_with_a_change_of_scale_and_through_loaders() -> None:
    cell = crystal()
    cell.pos_scale = 1.0
    other = cell.clone()
    other.pos, other.edge_shift, other.pos_scale = 3 * cell.pos, 3 * cell.edge_shift, 3.0
    torch.testing.assert_close(at_scale(other, 1.0).edge_shift, cell.edge_shift)
    both = at_scale(Batch.from_data_list([other, cell]), 1.0)  # a factor for each graph
    torch.testing.assert_close(both.edge_shift, cell.edge_shift.repeat(2, 1))
    torch.testing.assert_close(both.pos, cell.pos.repeat(2, 1))
    ready = GraphDataset([cell, cell], dtype=torch.float64)
    torch.testing.assert_close(ready[1].edge_shift, cell.edge_shift)


def test_the_audit_of_a_cell() -> None:
    """Shifts turn with the coordinates; maps that are not affine are not measured."""
    report = audit(model_of("combined"), crystal(), elements=2)
    assert report.holds("E(n)"), str(report)
    assert report.findings["inversion"].verdict == "unmeasured"


def test_numbers_of_shifts_are_those_of_unique_rows() -> None:
    random = torch.Generator().manual_seed(0)
    for columns in (1, 2, 3):
        shift = torch.randint(-1, 2, (50, columns), generator=random) * torch.tensor(1.7)
        both = torch.cat([shift, -shift]) + 0.0
        different, number = both.unique(dim=0, return_inverse=True)
        found, count = _shifts(torch.zeros(2, 50, dtype=torch.long), shift)
        assert count == len(different)
        assert torch.equal(found.flatten(), number)
    found, count = _shifts(torch.zeros(2, 0, dtype=torch.long), torch.zeros(0, 3))
    assert (found.shape, count) == ((2, 0), 1)
