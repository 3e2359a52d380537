"""ASE calculators with a network in float32 inside, and derivatives that know their uncertainty."""

from __future__ import annotations

import math
from pathlib import Path
from unittest import mock

import ase.io
import numpy as np
import pytest
import torch
from torch import Tensor, nn

import symgnn
from audit.exhibit import crystal
from symgnn.audit import audit
from symgnn.audit._derivatives import derivative
from symgnn.audit._structures import samples_of
from symgnn.audit._targets import CalculatorTarget
from symgnn.audit.adapters import neighbours
from symgnn.cli import main
from train.emt_frames import emt_frames

calculators = pytest.importorskip("ase.calculators.calculator")


class Pairs(nn.Module):
    """A smooth energy of pairs within 5 Å, in the type of its parameters."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.net = nn.Sequential(nn.Linear(1, 8), nn.Tanh(), nn.Linear(8, 1))

    def forward(self, vectors: Tensor) -> Tensor:
        d = vectors.norm(dim=1, keepdim=True)
        smooth = (1 - (d / 5).clamp(max=1) ** 2) ** 3
        return (self.net(d) * smooth).sum()


class Calculator(calculators.Calculator):
    """Casts the coordinates to float32, as calculators of networks do; with faults to choose."""

    implemented_properties = ("energy", "forces", "stress")

    def __init__(self, fault: str = "") -> None:
        super().__init__()
        self.fault, self.model = fault, Pairs()

    def calculate(self, atoms=None, properties=("energy",), system_changes=()) -> None:
        super().calculate(atoms, properties, system_changes)
        pos = torch.tensor(atoms.positions, dtype=torch.float32, requires_grad=True)
        cell = torch.tensor(np.asarray(atoms.cell), dtype=torch.float32)
        strain = torch.zeros(3, 3, requires_grad=True)
        grow = torch.eye(3) + (strain + strain.T) / 2
        (source, target), shifts, _ = neighbours(pos, 5.0, cell, torch.tensor(atoms.pbc))
        vectors = (pos[target] - pos[source] + shifts.to(pos) @ cell) @ grow
        energy = self.model(vectors)
        by_pos, by_strain = torch.autograd.grad(energy, (pos, strain))
        volume = torch.linalg.det(cell)
        stress = by_strain / (volume if self.fault == "signed volume" else volume.abs())
        forces = -by_pos if self.fault != "forces" else -1.01 * by_pos
        rows, columns = [0, 1, 2, 1, 0, 0], [0, 1, 2, 2, 2, 1]
        self.results["energy"] = float(energy)
        self.results["forces"] = forces.double().numpy()
        self.results["stress"] = stress.double()[rows, columns].numpy()


def audited(fault: str = ""):
    groups = ["E(3)", "permutations"]
    return audit(Calculator(fault), crystal(), groups=groups, elements=3, search=8)


def test_modules_of_a_calculator_keep_their_type() -> None:
    """The calculator makes inputs in float32, which a module in float64 would refuse."""
    report = audited()
    assert report.as_expected, report
    assert any("the model is in float32" in warning for warning in report.warnings), report
    assert not any("half precision" in warning for warning in report.warnings), report


def test_rounding_to_float32_is_no_inconsistency() -> None:
    report = audited()
    assert report.consistent, report.consistent
    for name in ("forces", "stress", "lattice shifts", "equivalent cells", "supercell"):
        assert report.checks[name].holds, report.checks[name]


def test_wrong_forces_are_found_in_float32() -> None:
    check = audited("forces").checks["forces"]
    assert check.verdict == "broken", check
    assert check.unit == "eV/Å"
    assert check.absolute > 0


def test_a_stress_that_changes_its_sign_in_a_mirror() -> None:
    report = audited("signed volume")
    assert report.holds("SE(3)"), report
    answer = report.holds("reflections")
    assert not answer
    assert answer.known
    assert "eV/Å³" in repr(answer)
    assert any("absolute value of the volume" in line for line in report.suggestions()), report


# ---------------------------------------------------------------- derivatives


def test_derivatives_of_smooth_functions() -> None:
    for function, wanted in ((math.sin, 1.0), (lambda t: math.exp(3 * t), 3.0)):
        found, uncertainty = derivative(function, 1e-3)
        assert abs(found - wanted) < 1e-9  # h^4 f''''' / 30 with h = 3e-3 is below it
        assert uncertainty < 1e-8


def test_the_uncertainty_of_a_rough_function_covers_its_error() -> None:
    for offset in (0.0, 1.0, 30.0, 1000.0):

        def rounded(t: float, offset: float = offset) -> float:
            return float(np.float32(offset + math.sin(t)))

        found, uncertainty = derivative(rounded, 1e-3)
        # rounding of the offset over the largest step, and what is left of curvature there
        assert abs(found - 1) <= 5 * uncertainty + 1e-6
        assert uncertainty < 1e-5 * (1 + 100 * offset)


# ---------------------------------------------------------------- neighbours of the adapters


@pytest.mark.parametrize("pbc", [(True, True, True), (True, False, True), (False, False, False)])
def test_neighbours_are_those_of_ase(pbc) -> None:
    from ase import Atoms
    from ase.neighborlist import neighbor_list

    generator = np.random.default_rng(0)
    cell = np.array([[3.0, 0.2, 0.1], [1.4, 2.7, 0.0], [-0.8, 0.9, 4.1]])
    atoms = Atoms("H5", generator.normal(size=(5, 3)) * 3, cell=cell, pbc=pbc)  # some outside
    i, j, shift = neighbor_list("ijS", atoms, 4.3)
    wanted = {(*pair, *map(int, s)) for pair, s in zip(zip(i, j, strict=True), shift, strict=True)}
    pos, box = torch.from_numpy(atoms.positions), torch.from_numpy(cell)
    edge_index, steps, vectors = neighbours(pos, 4.3, box, torch.tensor(pbc))
    found = [(*e, *s) for e, s in zip(edge_index.T.tolist(), steps.tolist(), strict=True)]
    assert len(found) == len(set(found))
    assert {tuple(map(int, one)) for one in found} == {tuple(map(int, one)) for one in wanted}
    rays = pos[edge_index[1]] - pos[edge_index[0]] + vectors
    assert float(rays.norm(dim=1).max()) < 4.3


# ---------------------------------------------------------------- ours


def test_calculator_of_a_run_in_a_cell() -> None:
    """In float32, with energies in float64: judged by the rounding of its network."""
    atoms = emt_frames()[0].copy()
    atoms.rattle(0.05, seed=1)
    settings = {"targets": ["energy", "forces", "stress"], "epochs": 1, "progress": False}
    model = {"block": "combined-separable", "hidden": 4, "layers": 1, "cutoff": 3.4}
    calculator = symgnn.fit(emt_frames(10), model, **settings).calculator()
    report = audit(calculator, atoms, groups="E(3)", elements=3, search=8)
    assert report.as_expected, report
    assert report.consistent, report
    for name in ("forces", "stress", "lattice shifts", "equivalent cells", "supercell"):
        assert report.checks[name].holds, report.checks[name]
    assert any("the model is in float32" in warning for warning in report.warnings), report
    calls = mock.Mock(side_effect=calculator.calculate)
    with mock.patch.object(calculator, "calculate", calls):  # once for all properties
        found = CalculatorTarget(calculator, atoms).call(samples_of(atoms)[0].graphs[0])
    assert list(found) == ["energy", "forces", "stress"]
    assert calls.call_count == 1


@pytest.mark.slow
def test_command_audits_a_potential_by_its_atoms(
    tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    ase.io.write(tmp_path / "frames.xyz", emt_frames(10), format="extxyz")
    model = {"block": "dgn", "hidden": 4, "layers": 1, "cutoff": 3.0}
    settings = {"targets": ["energy", "forces"], "epochs": 1, "progress": False}
    symgnn.fit(tmp_path / "frames.xyz", model, out=tmp_path / "run", **settings)
    command = ["audit", str(tmp_path / "run"), "--elements", "2"]
    assert main([*command, "--expect", "E(3)", "--expect", "permutations"]) == 0
    said = capsys.readouterr().out
    for name in ("forces", "stress", "lattice shifts", "equivalent cells", "supercell"):
        assert f"- {name}: yes" in said, said
    assert main([*command, "--radius", "3"]) == 2
    assert "a potential builds its own edges" in capsys.readouterr().err
