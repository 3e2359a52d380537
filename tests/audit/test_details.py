"""Small things that mislead: last digits, messages, cells, stress, what was not measured, poles."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch_geometric.data import Data

from audit.faulty import molecule
from symgnn.audit import audit
from symgnn.audit._counterexample import different


def few(model, data=None, **options):
    options = {"elements": 3, "search": 0, "grow": False, "checks": False, **options}
    return audit(model, molecule() if data is None else data, **options)


def test_last_digits_are_not_random() -> None:
    """Threads add in any order, so that results differ by rounding from call to call."""

    def noisy(pos, size=1e-15):
        return torch.pdist(pos).sum() * (1 + size * torch.randn(()))

    report = few(noisy, groups="E(n)")
    assert not report.stochastic
    assert report.holds("E(n)"), report
    assert "other outputs each time" in few(lambda pos: noisy(pos, 1e-3)).stochastic


@pytest.mark.parametrize(
    ("wanted", "found", "text"),
    [
        (0.25, 0.5, "0.25 to 0.5"),
        (0.481538, 0.481538 + 3e-9, "0.481538 to 0.481538003 (by 3.0e-09)"),
        (-1e10, -1e10 + 2, "-1e+10 to -9999999998 (by 2.0e+00)"),
        (1.0, math.nan, "1 to nan"),
    ],
)
def test_numbers_that_differ_look_different(wanted, found, text) -> None:
    assert different(wanted, found) == text


def test_a_small_break_is_shown_with_enough_digits() -> None:
    exact = molecule(dtype=torch.float64)
    report = few(lambda pos: torch.pdist(pos).sum() * (1 + 1e-7 * pos[:, 2].tanh().sum()), exact)
    before, after = str(report.findings["rotation"].counterexample).split("from ")[1].split(" to ")
    assert before != after.split(" (by")[0]


# ---------------------------------------------------------------- cells and stress


def periodic(pos: Tensor, cell: Tensor) -> Tensor:
    """The energy of springs to the images in the 27 cells around."""
    box = cell.reshape(3, 3)
    steps = torch.cartesian_prod(*[torch.arange(-1, 2)] * 3).to(pos) @ box
    apart = pos[:, None, None] - pos[None, :, None] + steps
    return torch.exp(-2 * apart.square().sum(-1)).sum()


def crystal(shape: tuple[int, ...], nodes: int = 4) -> Data:
    generator = torch.Generator().manual_seed(0)
    cell = 3 * torch.eye(3) + 0.3 * torch.randn(3, 3, generator=generator)
    pos = torch.rand(nodes, 3, generator=generator) @ cell
    return Data(pos=pos, cell=cell.reshape(shape), pbc=torch.ones(3, dtype=torch.bool))


@pytest.mark.parametrize("shape", [(3, 3), (1, 3, 3)])
@pytest.mark.parametrize("nodes", [3, 4])
def test_a_cell_turns_with_the_atoms(shape, nodes) -> None:
    """Also where there are as many nodes as vectors of the cell."""
    report = few(periodic, crystal(shape, nodes), groups=["E(3)", "permutations"])
    assert report.holds("E(3)"), report
    assert report.holds("permutations"), report
    assert report.moved == ["cell (vector)"]


def atoms(name: str = "Cu"):
    build = pytest.importorskip("ase.build")
    found = build.bulk(name, cubic=True)
    found.rattle(0.1, seed=1)
    return found


def test_stress_is_measured_with_its_unit() -> None:
    from ase.calculators.emt import EMT

    report = few(EMT(), atoms(), groups="E(3)", checks=True)
    assert {o.name: str(o) for o in report.outputs} == {
        "energy": "invariant per graph",
        "forces": "vector per node",
        "stress": "voigt per graph",
    }
    assert report.holds("E(3)"), report
    assert report.units == {"energy": "eV", "forces": "eV/Å", "stress": "eV/Å³"}
    assert report.checks["forces"].holds, report.checks["forces"]
    assert report.checks["stress"].holds, report.checks["stress"]


def test_a_wrong_stress_is_found() -> None:
    from ase.calculators.emt import EMT

    class Tilted(EMT):
        def calculate(self, *args, **kwargs):
            super().calculate(*args, **kwargs)
            if "stress" in self.results:
                self.results["stress"] = self.results["stress"] * np.array([1, 1, 1, 1, 1, 2.0])

    report = few(Tilted(), atoms(), groups="SO(3)", checks=True)
    assert report.findings["rotation"].verdicts["stress"] == "broken"
    assert report.findings["rotation"].verdicts["energy"] == "rounding"
    assert "eV/Å³" in repr(report.holds("SO(3)"))
    assert report.checks["stress"].verdict == "broken"


# ---------------------------------------------------------------- what was not measured


def test_what_was_not_measured_is_neither_true_nor_false() -> None:
    report = few(lambda pos: torch.pdist(pos).sum(), Data(pos=molecule().pos))
    found = json.loads(json.dumps(report.to_dict()))
    assert found["holds"]["torsion"] is None
    assert found["holds"]["dilation"] is False
    assert found["holds"]["E(n)"] is True
    assert report.holds("torsions").known is False
    assert report.holds("dilations").known is True


# ---------------------------------------------------------------- float32 inside


class Single(nn.Module):
    """Computes in float32, whatever it is given."""

    def forward(self, pos: Tensor) -> Tensor:
        return torch.exp(-torch.pdist(pos.float())).sum().to(pos.dtype)


def test_a_calculator_is_judged_as_the_model_inside() -> None:
    calculators = pytest.importorskip("ase.calculators.calculator")
    build = pytest.importorskip("ase.build")

    class Wrapped(calculators.Calculator):
        implemented_properties = ("energy",)

        def calculate(self, atoms=None, properties=None, system_changes=()):
            super().calculate(atoms, properties, system_changes)
            pos = torch.from_numpy(atoms.get_positions())
            self.results["energy"] = float(Single()(pos))

    direct = few(Single(), molecule(), groups="E(n)")
    wrapped = few(Wrapped(), build.molecule("CH3CH2OH"), groups="E(n)")
    assert direct.holds("E(n)"), direct
    assert wrapped.holds("E(n)"), wrapped


# ---------------------------------------------------------------- faults that are hard to see


def above_twelve(pos: Tensor) -> Tensor:
    """Sound up to twelve nodes; beyond, the first ones count double."""
    weights = torch.ones(len(pos)).to(pos)
    if len(pos) > 12:
        weights[:3] = 2.0
    return (weights * (pos - pos.mean(0)).norm(dim=1)).sum()


def test_a_fault_above_twelve_nodes_is_found() -> None:
    alone = few(above_twelve, kinds=["permutation"])
    assert alone.holds("permutations")
    report = few(above_twelve, kinds=["permutation"], grow=True)
    assert report.findings["permutation"].verdict == "broken"
    assert "of 3 copies side by side (27 nodes)" in repr(report.holds("permutations"))
    several = few(above_twelve, [molecule(5), molecule(20)], kinds=["permutation"])
    assert "of structure 1 (20 nodes)" in repr(several.holds("permutations"))
    assert several.nodes == 25


@pytest.mark.parametrize("pole", [(0, 0, 1.0), (0.6, 0.0, 0.8), (-0.48, 0.64, 0.6)])
def test_a_pole_that_covers_one_percent_of_the_sphere_is_found(pole) -> None:
    def model(pos):
        c = pos - pos.mean(0)
        far = (c * c.norm(dim=1, keepdim=True)).sum(0)
        near = (far / far.norm()) @ pos.new_tensor(pole) > 0.98
        return torch.pdist(pos).sum() + near.to(pos)

    report = few(model, kinds=["rotation"], search=320, elements=12)
    assert report.findings["rotation"].verdict == "broken"


def test_a_model_for_one_size_of_graph_is_not_enlarged() -> None:
    def fixed(pos):
        return (torch.pdist(pos) * torch.linspace(1, 1, 36).to(pos)).sum()

    report = few(fixed, grow=True, groups="E(n)")
    assert report.holds("E(n)"), report
