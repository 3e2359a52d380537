"""Adapters: models with the call of another package, audited as functions of atoms."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn
from torch_geometric.data import Data

from symgnn.audit import adapters, audit


def atoms() -> Data:
    pos = torch.randn(6, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    return Data(pos=2 * pos, z=torch.tensor([1, 1, 6, 6, 8, 7]))


class TorchMD(nn.Module):
    """Called as a `TorchMD_Net`: energies of pairs, forces that may be turned by a fault."""

    def __init__(self, forces: bool = True, fault: float = 0.0) -> None:
        super().__init__()
        self.forces, self.fault = forces, fault

    def forward(
        self, z: Tensor, pos: Tensor, batch: Tensor, box: Tensor | None = None
    ) -> tuple[Tensor, Tensor | None]:
        assert box is None
        assert torch.equal(batch, torch.zeros_like(z))
        weight = torch.outer(z, z).triu(1).to(pos)
        energy = (weight * torch.exp(-torch.cdist(pos, pos))).sum().reshape(1, 1)
        if not self.forces:
            return energy, None
        (gradient,) = torch.autograd.grad(energy.sum(), pos)
        return energy, -gradient + self.fault * gradient.roll(1, 1)


def test_models_of_torchmd_net() -> None:
    report = audit(adapters.torchmd_net(TorchMD()), atoms(), groups="E(3)")
    assert report.as_expected
    assert set(adapters.torchmd_net(TorchMD())(atoms().pos, atoms().z)) == {"energy", "forces"}
    assert set(adapters.torchmd_net(TorchMD(forces=False))(atoms().pos, atoms().z)) == {"energy"}


def test_a_fault_of_a_model_of_torchmd_net_is_found() -> None:
    report = audit(adapters.torchmd_net(TorchMD(fault=0.1)), atoms(), groups="E(3)")
    assert not report.as_expected


@pytest.mark.parametrize("even", [True, False])
def test_networks_of_e3nn(even: bool) -> None:
    """An output that is even or odd under reflections, by the parity of its irreps."""
    o3 = pytest.importorskip("e3nn.o3")

    class Moments(nn.Module):
        """The sum over atoms of x times a spherical harmonic of their place, times another."""

        def __init__(self) -> None:
            super().__init__()
            self.product = o3.FullTensorProduct("1x1o", "1x1o", filter_ir_out=["0e", "1e"])

        def forward(self, data: dict[str, Tensor]) -> Tensor:
            pos = data["pos"] - data["pos"].mean(0)
            first, second = (data["x"].T.unsqueeze(2) * pos).sum(1)
            found = self.product(first, second)
            return found[..., :1] if even else found[..., 1:]

    x = torch.rand(6, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    given = Data(pos=atoms().pos, x=x)
    model = adapters.e3nn(Moments().double())
    report = audit(model, given, groups="E(3)", outputs="1x0e" if even else "1x1e")
    assert report.as_expected
    wrong = audit(model, given, groups="E(3)", outputs="1x0o" if even else "1x1o")
    assert not wrong.as_expected


def test_what_a_user_knows_of_many_outputs() -> None:
    out = {"energy": torch.ones(1), "node_feats": torch.ones(3), "steps": torch.tensor(3), "n": 5}
    assert set(adapters._answer(out, ("energy", "forces"))) == {"energy"}
    assert set(adapters._answer(out, ("stress",))) == {"energy", "node_feats"}
