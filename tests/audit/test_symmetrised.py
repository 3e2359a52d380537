"""Any model, averaged over a group."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn
from torch_geometric.data import Batch, Data

from audit.faulty import molecule
from symgnn.audit import assert_symmetric, audit, symmetrised


class Crooked(nn.Module):
    """A network on raw coordinates: an energy, vectors and tensors that turn with nothing."""

    def __init__(self, n: int = 3) -> None:
        super().__init__()
        self.one, self.two = nn.Linear(n, 16), nn.Linear(16, n)

    def forward(self, pos: Tensor) -> dict[str, Tensor]:
        h = torch.tanh(self.one(pos))
        v = self.two(h)
        return {
            "energy": h.sum()[None],
            "push": v,
            "moved": pos + v,
            "alpha": torch.einsum("ni,nj->ij", v, v + pos),
        }


OUTPUTS = {"push": "vector", "moved": "coordinates", "alpha": "tensor"}
QUICK = {"elements": 3, "search": 40, "grow": False}


def made(n: int = 3) -> Crooked:
    torch.manual_seed(0)
    return Crooked(n)


@pytest.mark.parametrize("group", ["SO(3)", "O(3)", "SE(3)", "E(3)", "E(n)"])
def test_it_has_exactly_the_group(group: str) -> None:
    model = symmetrised(made(), group, outputs=OUTPUTS)
    outputs = {"energy": "invariant", **OUTPUTS}
    assert_symmetric(model, molecule(), [group, "permutations"], outputs=outputs, **QUICK)
    model(molecule().pos)
    assert model.calls == (8 if group in ("O(3)", "E(3)", "E(n)") else 4)
    if group[0] == "S":
        energy = audit(model, molecule(), outputs={"energy": "invariant"}, **QUICK)
        assert not energy.holds("reflections")
    if "O" in group:
        assert not audit(model, molecule(), groups="translations", **QUICK).as_expected


@pytest.mark.parametrize("n", [1, 2, 4, 5])
def test_any_dimension(n: int) -> None:
    pos = torch.randn(9, n, generator=torch.Generator().manual_seed(n))
    model = symmetrised(made(n), "E(n)", outputs=OUTPUTS)
    outputs = {"energy": "invariant", **OUTPUTS}
    if n == 1:
        outputs.pop("alpha")
    assert_symmetric(model, pos, ["E(n)", "permutations"], outputs=outputs, **QUICK)


CLOUDS = {
    "methane": [[0, 0, 0], [1, 1, 1], [1, -1, -1], [-1, 1, -1], [-1, -1, 1]],
    "square": [[1, 0, 0], [0, 1, 0], [-1, 0, 0], [0, -1, 0]],
    "line": [[0, 0, -1], [0, 0, 0.2], [0, 0, 1.5]],
    "octahedron": [[1, 0, 0], [-1, 0, 0], [0, 1, 0], [0, -1, 0], [0, 0, 1], [0, 0, -1]],
    "water": [[0, 0, 0.1], [0, 0.8, -0.5], [0, -0.8, -0.5]],
}


@pytest.mark.parametrize("name", CLOUDS)
@pytest.mark.parametrize("group", ["SE(3)", "E(3)"])
def test_symmetric_molecules(name: str, group: str) -> None:
    """Their main axes are not unique, or some are missing."""
    model = symmetrised(made(), group, outputs=OUTPUTS).double()
    pos = torch.tensor(CLOUDS[name], dtype=torch.float64)
    turn = torch.linalg.qr(torch.randn(3, 3, dtype=torch.float64)).Q
    turn = turn if group == "E(3)" or torch.linalg.det(turn) > 0 else -turn
    shift = torch.randn(3, dtype=torch.float64)
    order = torch.randperm(len(pos))
    before, after = model(pos), model((pos @ turn.T + shift)[order])
    assert torch.allclose(after["energy"], before["energy"], atol=1e-9)
    assert torch.allclose(after["push"], (before["push"] @ turn.T)[order], atol=1e-9)
    assert torch.allclose(after["moved"], (before["moved"] @ turn.T + shift)[order], atol=1e-9)
    assert torch.allclose(after["alpha"], turn @ before["alpha"] @ turn.T, atol=1e-9)


def test_a_quadrature_is_exact_for_polynomials() -> None:
    weights = torch.randn(3, 3, 3, generator=torch.Generator().manual_seed(0)).double()

    def cubic(pos):
        c = pos - pos.mean(0)
        return torch.einsum("ijk,ni,nj,nk->", weights.to(pos), c, c, c) ** 2

    pos = molecule(5, dtype=torch.float64).pos
    turn = torch.linalg.qr(torch.randn(3, 3, dtype=torch.float64)).Q
    smooth = symmetrised(cubic, "O(3)", method="quadrature", degree=6)
    assert torch.allclose(smooth(pos), smooth(pos @ turn.T), rtol=1e-9)
    assert smooth.calls == 2 * 7 * 7 * 4
    coarse = symmetrised(cubic, "O(3)", method="quadrature", degree=2)
    assert not torch.allclose(coarse(pos), coarse(pos @ turn.T), rtol=1e-3)


def test_forces_of_the_average_are_its_derivatives() -> None:
    model = symmetrised(lambda pos: (pos**3).sum() + (pos[:, 0] ** 2).sum(), "E(3)").double()
    pos = molecule(dtype=torch.float64).pos.requires_grad_()
    torch.autograd.gradcheck(model, pos)


def test_graphs_batches_dictionaries_and_vectors() -> None:
    class Reads(nn.Module):
        def forward(self, data: Data) -> Tensor:
            batch = data.batch if data.batch is not None else torch.zeros_like(data.z)
            each = (data.pos * data.vel).tanh().sum(1) + data.pos[:, 0].tanh()
            return each.new_zeros(int(batch.max()) + 1).index_add(0, batch, each)

    model = symmetrised(Reads(), "E(3)", vectors="vel")
    data = [molecule(5, 1), molecule(6, 2)]
    for graph in data:
        graph.vel = torch.randn(graph.num_nodes, 3)
    assert_symmetric(model, data[0], "E(3)", vectors="vel", **QUICK)
    both = model(Batch.from_data_list(data))
    assert torch.allclose(both, torch.cat([model(graph) for graph in data]), atol=1e-5)
    assert model.calls == 8
    taken = symmetrised(lambda inputs: inputs["R"].tanh().sum(), "O(3)")
    assert taken({"R": data[0].pos}).shape == ()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"group": "similarities"}, "group: similarities cannot be averaged over; choose from SO"),
        ({"group": "permutations"}, "group: permutations cannot be averaged over"),
        ({"method": "frames"}, "method: is 'frames'; choose from frame, quadrature"),
        ({"degree": 0}, "degree: is 0; give at least 1"),
    ],
)
def test_wrong_options(options, message) -> None:
    with pytest.raises(ValueError, match=message):
        symmetrised(made(), **options)


def test_outputs_that_may_be_vectors_have_to_be_declared() -> None:
    with pytest.raises(ValueError, match=r"outputs: 'push' has shape \[9, 3\], which may be"):
        symmetrised(made(), "O(3)")(molecule().pos)
    model = symmetrised(lambda pos, batch: pos.sum(), "O(3)")
    with pytest.raises(ValueError, match="batch: has several graphs"):
        model(torch.randn(4, 3), torch.tensor([0, 0, 1, 1]))
    with pytest.raises(ValueError, match="none of which is called pos"):
        symmetrised(lambda a, b: a.sum(), "O(3)")(torch.randn(4, 3), torch.randn(4, 3))


def test_names_that_are_not_there_are_refused() -> None:
    pos = molecule().pos
    with pytest.raises(ValueError, match="outputs: the model gives no 'force'"):
        symmetrised(lambda pos: pos.square().sum(), "O(3)", outputs={"force": "vector"})(pos)
    with pytest.raises(ValueError, match="vectors: there is no 'vel'; choose from pos"):
        symmetrised(lambda pos: pos.square().sum(), "O(3)", vectors="vel")(pos)


def test_a_cell_turns_with_the_points() -> None:
    def energy(pos: Tensor, cell: Tensor) -> Tensor:
        places = pos @ torch.linalg.inv(cell)
        return torch.tanh(pos + 0.3).sum() + torch.tanh(cell + 0.2).sum() + places.sin().sum()

    cell = torch.tensor([[4.0, 0.3, 0.0], [1.0, 4.0, 0.0], [0.2, 1.0, 5.0]])
    data = {"pos": molecule().pos, "cell": cell}
    assert not audit(energy, data, groups="SO(3)").as_expected
    assert_symmetric(symmetrised(energy, "E(3)"), data, "E(3)")
