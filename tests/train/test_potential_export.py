"""Exported potentials: loaded where symgnn is not, with shifts, for any number of atoms."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from ase.build import bulk
from torch_geometric.data import Batch

import symgnn
from nn.potential_cases import STRUCTURES, graph, potential
from symgnn.cli import main
from symgnn.nn import export
from symgnn.train._potential_export import with_forces
from train.emt_frames import emt_frames

EXPORTS = pytest.mark.skipif(
    torch.__version__ < "2.12", reason="potentials can be exported from PyTorch 2.12 on"
)
ALONE = """
import json, sys, torch
extra = {"symgnn.json": ""}
program = torch.export.load(sys.argv[1], extra_files=extra).module()
given = torch.load(sys.argv[2])
given["pos"].requires_grad_()
energy = program(**given)
(gradient,) = torch.autograd.grad(energy.sum(), given["pos"])
assert "symgnn" not in sys.modules
torch.save((energy.detach(), -gradient, json.loads(extra["symgnn.json"])), sys.argv[3])
"""


@EXPORTS
@pytest.mark.parametrize("block", ["dgn", "combined", "combined-separable", "combined-filtered"])
def test_programs_give_the_energies_and_forces_of_the_potential(block: str) -> None:
    model = potential(block).eval()
    program = export(model, graph(bulk("Cu"))).module()
    graphs = [graph(make()) for make in STRUCTURES.values()]
    for each in (*graphs, Batch.from_data_list(graphs)):
        pos = each.pos.clone().requires_grad_()
        batch = each.batch if isinstance(each, Batch) else torch.zeros(len(pos), dtype=torch.long)
        energy = program(
            pos=pos, edge_index=each.edge_index, edge_shift=each.edge_shift, batch=batch, z=each.z
        )
        (gradient,) = torch.autograd.grad(energy.sum(), pos)
        wanted = model(each)
        torch.testing.assert_close(energy, wanted.energy, rtol=1e-12, atol=1e-12)
        torch.testing.assert_close(-gradient, wanted.forces, rtol=1e-10, atol=1e-11)


@EXPORTS
@pytest.mark.parametrize("block", ["dgn", "combined-separable", "combined-filtered"])
def test_programs_to_be_compiled_give_forces_too(block: str) -> None:
    model, names = (
        potential(block, layers=1).eval(),
        ["pos", "edge_index", "edge_shift", "batch", "z"],
    )
    example = graph(bulk("Cu"))
    program = with_forces(export(model, example), names, example).module()
    for name, make in STRUCTURES.items():
        each = graph(make())
        batch = torch.zeros(each.num_nodes, dtype=torch.long)
        energy, forces = program(each.pos, each.edge_index, each.edge_shift, batch, each.z)
        wanted = model(each)
        for found, known in ((energy, wanted.energy), (forces, wanted.forces)):
            torch.testing.assert_close(found, known, rtol=1e-10, atol=1e-11, msg=name)


@EXPORTS
def test_command_writes_a_file_that_runs_without_symgnn(tmp_path: Path) -> None:
    model = {"block": "dgn", "hidden": 4, "layers": 1, "cutoff": 3.4}
    settings = {"epochs": 1, "progress": False, "seeds": 2, "out": tmp_path / "run"}
    run = symgnn.fit(emt_frames(10), model, targets=["energy", "forces"], **settings)
    assert main(["export", str(tmp_path / "run"), str(tmp_path / "m.pt2"), "--seed", "2"]) == 0
    (given,) = run.read(emt_frames()[1])
    inputs = {name: given[name] for name in ("pos", "edge_index", "edge_shift", "z")}
    inputs["batch"] = torch.zeros(given.num_nodes, dtype=torch.long)
    torch.save(inputs, tmp_path / "in.pt")
    files = [str(tmp_path / name) for name in ("m.pt2", "in.pt", "out.pt")]
    subprocess.run([sys.executable, "-I", "-c", ALONE, *files], check=True)
    energy, forces, about = torch.load(tmp_path / "out.pt")
    wanted = run.potentials[1](run._ready(given))
    torch.testing.assert_close(energy, wanted.energy.detach(), rtol=1e-6, atol=1e-6)
    torch.testing.assert_close(forces, wanted.forces, rtol=1e-4, atol=1e-5)
    assert about["cutoff"] == 3.4
    assert json.dumps(about["elements"]) == "[29, 79]"


def test_older_versions_of_torch_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch, "__version__", type(torch.__version__)("2.11.0"))
    with pytest.raises(ValueError, match=r"torch: is 2.11.0, .* update PyTorch to 2.12 or newer"):
        export(potential("dgn"), Batch())
