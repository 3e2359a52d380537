"""Whether a model agrees with itself."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn
from torch_geometric.data import Batch, Data

from audit.faulty import molecule
from symgnn.audit import audit


def checked(model, data=None, **options):
    options = {"elements": 2, "search": 0, "groups": "E(n)", **options}
    return audit(model, molecule() if data is None else data, **options)


class Springs(nn.Module):
    """The energy and forces of springs in each graph of a batch; with faults to choose from."""

    def __init__(self, fault: str = "") -> None:
        super().__init__()
        self.fault, self.calls, self.kept = fault, 0, None
        self.scale = nn.Parameter(torch.tensor(1.0))

    def forward(self, data: Data) -> dict[str, Tensor]:
        pos = data.pos.detach().requires_grad_()
        batch = data.batch if data.batch is not None else torch.zeros(len(pos), dtype=torch.long)
        apart = (pos[:, None] - pos).square().sum(-1)
        if self.fault == "cached":
            if self.kept is None or self.kept.shape != apart.shape:
                self.kept = apart.detach()
            near = torch.exp(-self.kept / 9) * apart
        else:
            near = torch.exp(-self.scale * apart / 9)
        same = batch[:, None] == batch
        if self.fault == "mixed":
            same = torch.ones_like(same)
        near = near * same
        graphs = int(batch.max()) + 1
        energy = pos.new_zeros(graphs).index_add(0, batch, near.sum(1))
        if self.fault == "ordered":
            energy = energy * (1 + 0.1 * torch.arange(graphs).to(energy))
        if self.fault == "size":
            energy = energy + 0.1 * torch.bincount(batch).to(energy) ** 2
        forces = -torch.autograd.grad(energy.sum(), pos)[0]
        if self.fault == "forces":
            forces = 2 * forces
        if self.fault == "writes":
            data.pos += 1.0
        return {"energy": energy.detach(), "forces": forces}


def test_a_sound_model_is_consistent() -> None:
    report = checked(Springs())
    assert report.as_expected, report
    assert report.consistent, report.consistent
    for name in ("forces", "batch", "batch order", "extensivity", "inputs kept", "no cache"):
        assert report.checks[name].holds, report.checks[name]
        assert report.holds(name)
    for name in ("stress", "lattice shifts", "equivalent cells", "supercell"):
        assert report.checks[name].verdict == "unmeasured"
        assert not report.holds(name).known


@pytest.mark.parametrize(
    ("fault", "check"),
    [
        ("forces", "forces"),
        ("mixed", "batch"),
        ("ordered", "batch order"),
        ("size", "extensivity"),
        ("writes", "inputs kept"),
        ("cached", "no cache"),
    ],
)
def test_faults_are_found(fault: str, check: str) -> None:
    report = checked(Springs(fault))
    assert report.checks[check].verdict == "broken", report
    assert not report.holds(check)
    assert f"{check}: no" in str(report)
    assert bool(report.consistent) is (check == "extensivity")
    assert report.to_dict()["checks"][check]["verdict"] == "broken"


def test_they_can_be_left_out_and_need_no_batch() -> None:
    assert checked(Springs(), checks=False).checks == {}
    report = checked(lambda pos: torch.pdist(pos).sum())
    assert report.checks["batch"].verdict == "unmeasured"
    assert report.checks["inputs kept"].holds
    batch = Batch.from_data_list([molecule(5), molecule(6)])
    assert checked(Springs(), batch).consistent


# ---------------------------------------------------------------- periodic cells


class Lattice(nn.Module):
    """Springs to all images up to a cutoff; with faults to choose from."""

    def __init__(self, fault: str = "") -> None:
        super().__init__()
        self.fault = fault

    def forward(self, pos: Tensor, cell: Tensor) -> dict[str, Tensor]:
        box = cell.reshape(3, 3)
        if self.fault == "box":
            box = box.norm(dim=1).diag()
        if self.fault != "wrap":  # into the cell
            share = pos @ torch.linalg.inv(box)
            pos = (share - share.floor().detach()) @ box
        reach = 1 if self.fault in ("few", "wrap") else 3
        steps = torch.cartesian_prod(*[torch.arange(-reach, reach + 1)] * 3).to(pos) @ box
        apart = (pos[:, None, None] - pos[None, :, None] + steps).square().sum(-1)
        near = torch.exp(-1.5 * apart)
        if self.fault == "count":
            near = near / len(pos)
        return {"energy": near.sum()[None], "each": near.sum((1, 2))}


def lattice() -> Data:
    generator = torch.Generator().manual_seed(0)
    cell = 2.2 * torch.eye(3) + 0.1 * torch.randn(3, 3, generator=generator)
    pos = torch.rand(3, 3, generator=generator) @ cell
    return Data(pos=pos, cell=cell[None], pbc=torch.ones(1, 3, dtype=torch.bool))


def test_a_sound_lattice_is_consistent() -> None:
    report = checked(Lattice(), lattice())
    assert report.as_expected, report
    for name in ("lattice shifts", "equivalent cells", "supercell"):
        assert report.checks[name].holds, report.checks[name]


@pytest.mark.parametrize(
    ("fault", "check"),
    [
        ("wrap", "lattice shifts"),
        ("box", "equivalent cells"),
        ("few", "equivalent cells"),
        ("count", "supercell"),
    ],
)
def test_faults_of_lattices_are_found(fault: str, check: str) -> None:
    report = checked(Lattice(fault), lattice(), groups="translations")
    assert report.checks[check].verdict == "broken", report


def test_a_periodic_calculator() -> None:
    build = pytest.importorskip("ase.build")
    from ase.calculators.lj import LennardJones

    atoms = build.bulk("Ar", "fcc", a=5.3, cubic=True)
    atoms.rattle(0.1, seed=1)
    smooth = LennardJones(sigma=3.4, epsilon=0.01, rc=6.0, smooth=True)
    report = checked(smooth, atoms)
    assert report.as_expected, report
    for name in ("forces", "stress", "lattice shifts", "equivalent cells", "supercell"):
        assert report.checks[name].holds, report.checks[name]
