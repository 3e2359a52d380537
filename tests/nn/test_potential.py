"""Energies, forces and stress: against differences, supercells, ASE, and through the cutoff."""

from __future__ import annotations

import itertools

import pytest
import torch
from ase import Atoms
from ase.build import bulk
from torch import Tensor
from torch_geometric.data import Batch, Data

from nn.potential_cases import (
    BLOCKS,
    CUTOFF,
    SCALED,
    SMOOTH,
    STRUCTURES,
    graph,
    potential,
    slopes,
)
from symgnn.geometry import Rotation
from symgnn.nn import Potential, averages, build, reference_energies

#: Differences of fourth order with steps of 1e-4 A: rounding about 1e-11, truncation below,
#: for energies of the size of 10 and wild weights.
FORCES = 1e-7


def moved(data: Data, pos: Tensor) -> Data:
    """The same edges with other coordinates; near the cutoff they would be others."""
    out = data.clone()
    out.pos = pos
    return out


@pytest.mark.parametrize("block", BLOCKS)
@pytest.mark.parametrize("name", STRUCTURES)
def test_forces_are_the_slope_of_the_energy(block: str, name: str) -> None:
    if name in ("one atom", "crystal") and block in SCALED:
        pytest.skip("the longest edge of a perfect crystal is many: the energy has a corner there")
    model, data = potential(block).eval(), graph(STRUCTURES[name]())
    found = model(data)

    def energy(pos: Tensor) -> Tensor:
        return model(moved(data, pos), forces=False).energy[0].detach()

    wanted = -slopes(energy, data.pos)
    error = float((found.forces - wanted).abs().max())
    size = max(1.0, float(wanted.abs().max()))
    assert error < FORCES * size, (error, size)
    if name == "isolated":
        assert not found.forces.any()


@pytest.mark.parametrize("block", BLOCKS)
@pytest.mark.parametrize("name", ["one atom", "small cell", "layer"])
def test_stress_is_the_slope_by_strain(block: str, name: str) -> None:
    if name == "one atom" and block in SCALED:
        pytest.skip("the longest edge of a perfect crystal is many: the energy has a corner there")
    model, data = potential(block).eval(), graph(STRUCTURES[name]())
    found = model(data, stress=True).stress[0]
    rows, columns = (0, 1, 2, 1, 0, 0), (0, 1, 2, 2, 2, 1)

    def energy(strain: Tensor) -> Tensor:  # as ASE: the matrix is symmetric
        matrix = torch.eye(3).double()
        for k, (i, j) in enumerate(zip(rows, columns, strict=True)):
            half = strain[k] if i == j else strain[k] / 2
            matrix[i, j] = matrix[i, j] + half
            if i != j:
                matrix[j, i] = matrix[j, i] + half
        out = moved(data, data.pos @ matrix)
        # images are told apart by their shifts, so these keep their order
        out.edge_shift = (data.edge_shift.unsqueeze(-1) * matrix).sum(1)
        return model(out, forces=False).energy[0].detach()

    wanted = slopes(energy, torch.zeros(6).double(), 1e-4) / torch.linalg.det(data.cell[0]).abs()
    size = max(1.0, float(wanted.abs().max()))
    assert float((found - wanted).abs().max()) < FORCES * size


@pytest.mark.parametrize("block", BLOCKS)
def test_energies_of_supercells_add_up(block: str) -> None:
    model = potential(block).eval()
    cell = STRUCTURES["small cell"]()
    one = model(graph(cell), stress=True)
    for sizes in ((2, 1, 1), (1, 3, 2), (2, 2, 2)):
        many = model(graph(cell * sizes), stress=True)
        copies = sizes[0] * sizes[1] * sizes[2]
        torch.testing.assert_close(many.energy, copies * one.energy, rtol=1e-9, atol=1e-9)
        if block not in SCALED:  # whose longest edge is another one
            torch.testing.assert_close(many.stress, one.stress, rtol=1e-9, atol=1e-9)
            torch.testing.assert_close(
                many.forces, one.forces.repeat(copies, 1), rtol=1e-9, atol=1e-9
            )


def dimer_path(model: Potential, block: str) -> tuple[Tensor, Tensor]:
    """Energies and forces as a third atom comes through the cutoff of two others."""
    energies, forces = [], []
    for away in torch.linspace(-4e-6, 4e-6, 9).double().tolist():
        atoms = Atoms("Cu3", [[0, 0, 0], [2.0, 0.3, 0], [CUTOFF + away, 0, 0.0]])
        atoms.positions[2, 1] = 0.0
        found = model(graph(atoms))
        energies.append(found.energy[0].detach())
        forces.append(found.forces.detach())
    return torch.stack(energies), torch.stack(forces)


@pytest.mark.parametrize("block", SMOOTH)
def test_nothing_jumps_where_an_edge_enters(block: str) -> None:
    energies, forces = dimer_path(potential(block).eval(), block)
    slope = 10 * max(1.0, float(forces.abs().max()))
    assert float(energies.diff().abs().max()) < 1e-6 * slope
    assert float(forces.diff(dim=0).abs().max()) < 1e-5 * slope


def test_without_an_envelope_they_do_jump() -> None:
    model = potential("combined", envelope=False, cutoff=CUTOFF, radial=4).eval()
    energies, forces = dimer_path(model, "combined")
    assert float(energies.diff().abs().max()) > 1e-3
    assert float(forces.diff(dim=0).abs().max()) > 1e-3


@pytest.mark.parametrize(
    "block", ["dgn", "combined", "combined-separable", "combined-filtered", "combined-chunk"]
)
def test_forces_can_be_differentiated_again(block: str) -> None:
    options = {"chunk": 40} if block.endswith("-chunk") else {}
    model = potential(block.removesuffix("-chunk"), **options).eval()
    data = graph(STRUCTURES["small cell"]())
    weights = torch.randn(2, 3, generator=torch.Generator().manual_seed(1)).double()

    def along(pos: Tensor) -> Tensor:
        return (model(moved(data, pos)).forces * weights).sum().detach()

    pos = data.pos.clone().requires_grad_()
    found = (model(moved(data, pos), create_graph=True).forces * weights).sum()
    (hessian,) = torch.autograd.grad(found, pos)
    torch.testing.assert_close(hessian, slopes(along, data.pos), rtol=1e-6, atol=1e-6)
    # and by the weights of the network, as training does
    name, parameter = next(iter(model.named_parameters()))
    model.train()
    loss = model(data, stress=True).stress.square().sum() + model(data).forces.square().sum()
    (by_weight,) = torch.autograd.grad(loss, parameter)

    def with_weight(value: Tensor) -> Tensor:
        given = torch.func.functional_call(model, {name: value}, (data,), {"stress": True})
        return (given.stress.square().sum() + given.forces.square().sum()).detach()

    part = torch.zeros_like(parameter)
    part.view(-1)[int(by_weight.abs().argmax())] = 1.0
    there = [with_weight(parameter.detach() + s * 1e-4 * part) for s in (1, -1)]
    wanted = (there[0] - there[1]) / 2e-4
    torch.testing.assert_close((by_weight * part).sum(), wanted, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize(
    "block",
    ["dgn", "combined", "agn-raw", "agn-to-edges", "dgn-norm", "combined-filtered"],
)
@pytest.mark.parametrize("way", ["reference", "chunk"])
def test_every_way_to_compute_gives_the_same(block: str, way: str) -> None:
    options: dict = {"norm": True, "residual": True} if block == "dgn-norm" else {}
    block = block.removesuffix("-norm")
    model = potential(block, **options).eval()
    other = potential(block, **options, **({"chunk": 50} if way == "chunk" else {"engine": way}))
    other.load_state_dict(model.state_dict())
    data = graph(bulk("Cu", cubic=True) * (2, 1, 1))
    one, two = model(data, stress=True), other.eval()(data, stress=True)
    for a, b in zip(one, two, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-10, atol=1e-10)


def test_batches_and_molecules_among_crystals() -> None:
    model = potential("combined").eval()
    graphs = [graph(STRUCTURES[name]()) for name in ("small cell", "H2", "isolated", "one atom")]
    batch = model(Batch.from_data_list(graphs), stress=True)
    alone = [model(each, stress=True) for each in graphs]
    torch.testing.assert_close(batch.energy, torch.cat([each.energy for each in alone]))
    torch.testing.assert_close(batch.forces, torch.cat([each.forces for each in alone]))
    assert batch.stress.isnan().any(1).tolist() == [False, True, True, False]
    torch.testing.assert_close(alone[2].energy[0], alone[2].energies.sum())


def test_energy_is_invariant_and_forces_turn() -> None:
    model, data = potential("agn+distances").eval(), graph(STRUCTURES["small cell"]())
    turn = Rotation.random(data.pos)
    one, two = model(data), model(turn.apply(data))
    torch.testing.assert_close(one.energy, two.energy)
    torch.testing.assert_close(turn(one.forces), two.forces)
    assert "E(n)" in str(model.symmetry)


def test_energies_are_in_float64_and_keep_large_references() -> None:
    model = build("dgn", task="node", node_types="atoms", graph_state=False)
    small = Potential(model, references={29: -45000.123456})
    data = graph(bulk("Cu"))
    data = data.apply(lambda t: t.float() if t.is_floating_point() else t)
    found = small.float()(data)
    assert found.energy.dtype == torch.float64
    assert found.forces is not None
    assert found.forces.dtype == torch.float32
    bare = Potential(model)(data).energy
    torch.testing.assert_close(found.energy - bare, torch.tensor([-45000.123456]).double())


def test_reference_energies() -> None:
    random = torch.Generator().manual_seed(0)
    truth = {1: -13.6, 6: -1027.5, 8: -2041.1}
    numbers = [
        torch.tensor(list(truth))[torch.randint(3, (k % 7 + 1,), generator=random)]
        for k in range(30)
    ]
    energies = [sum(truth[int(z)] for z in each) for each in numbers]
    found = reference_energies(numbers, energies)
    assert found == pytest.approx(truth, rel=1e-10)
    # one compound alone: what is taken off is right, though not how it is shared
    (one,) = {tuple(found.values()) for found in [reference_energies([[1, 8]], [-10.0])]}
    assert sum(one) == pytest.approx(-10.0)


def test_cosines_need_angles() -> None:
    with pytest.raises(ValueError, match="cosines: DGN reads no angles"):
        build("dgn", cosines=True)
    kept = build("agn").symmetry
    assert build("agn", cosines=True).symmetry == kept
    for name, other in itertools.product(("agn", "combined"), (False, True)):
        assert build(name, cosines=other).symmetry == build(name).symmetry


def test_averages_count_messages_by_their_envelope() -> None:
    data = graph(bulk("Cu", cubic=True) * (2, 1, 1))
    network = build("combined", cosines=True, envelope=True, cutoff=CUTOFF).network
    found = averages([data], network).terms
    source, target = data.edge_index
    d = (data.pos[source] + data.edge_shift - data.pos[target]).norm(dim=1) / CUTOFF
    weight = 1 - 28 * d**6 + 48 * d**7 - 21 * d**8
    assert found["edge->node"] == pytest.approx(float(weight.sum()) / 8, rel=1e-12)
    pairs = 0.0
    for vertex in range(8):
        mine = weight[target == vertex]
        pairs += float((mine[:, None] * mine).sum() - mine.square().sum())
    assert found["angle->node"] == pytest.approx(pairs / 8, rel=1e-12)
    assert found["node->graph"] == 8
