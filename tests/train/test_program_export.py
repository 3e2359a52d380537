"""Exported runs: programs that give what `predict` does, where symgnn is not."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from torch_geometric.data import Batch, Data

import symgnn
from symgnn.cli import main
from symgnn.train._program_export import checked_path
from train.emt_frames import emt_frames

ALONE = """
import json, sys, torch
extra = {"symgnn.json": ""}
program = torch.export.load(sys.argv[1], extra_files=extra).module()
out = program(**torch.load(sys.argv[2]))
assert "symgnn" not in sys.modules
torch.save((out, json.loads(extra["symgnn.json"])), sys.argv[3])
"""

COMPILED_ALONE = """
import sys, torch
program = torch._inductor.aoti_load_package(sys.argv[1])
found = [program(*given.values()) for given in torch.load(sys.argv[2])]
assert "symgnn" not in sys.modules
torch.save(found, sys.argv[3])
"""


def inputs_of(graphs: list[Data], names: list[str]) -> dict[str, torch.Tensor]:
    batch = Batch.from_data_list(graphs)
    return {name: batch[name] for name in names}


def points(count: int, level: str) -> list[Data]:
    """Points with targets that turn with them, or not; coordinates in the unit of their source."""
    found = []
    for seed in range(count):
        random = torch.Generator().manual_seed(seed)
        nodes = 4 + seed % 3
        pos = 7 * torch.randn(nodes, 3, generator=random)
        index = torch.combinations(torch.arange(nodes)).T
        graph = Data(pos=pos, edge_index=torch.cat([index, index.flip(0)], 1))
        graph.x = torch.randn(nodes, 2, generator=random)
        away = pos - pos.mean(0)
        vector = (graph.x[:, :1] * away).sum(0, keepdim=True)
        graph.y = {
            "graph": away.norm(dim=1).mean().view(1, 1),
            "node": away.norm(dim=1, keepdim=True),
            "graph-vectors": vector,
            "node-vectors": away,
        }[level]
        found.append(graph)
    return found


CASES: dict[str, dict[str, Any]] = {
    "dgn": {"level": "graph"},
    "combined": {"level": "node"},
    "combined-separable": {"level": "graph-vectors"},
    "egnn": {"level": "node-vectors"},
}


@pytest.mark.parametrize("block", CASES)
def test_programs_give_what_the_run_predicts(block: str, tmp_path: Path) -> None:
    """In the units of the targets, of coordinates that were scaled for the training."""
    level = CASES[block]["level"]
    graphs = points(12, level)
    model = {"block": block, "hidden": 4, "layers": 1}
    run = symgnn.fit(graphs, model, level=level, epochs=1, progress=False, data={"scale": 0.1})
    about = {"symgnn.json": ""}
    program = torch.export.load(run.export(tmp_path / "m.pt2"), extra_files=about).module()
    names = json.loads(about["symgnn.json"])["inputs"]
    for some in (graphs[:1], graphs[3:8]):
        found = program(**inputs_of(some, names))
        wanted = run.predict(some).value
        # one single-precision network, computed in another order
        torch.testing.assert_close(found, wanted.to(found.dtype), rtol=2e-5, atol=2e-5)


def test_classes_have_probabilities(tmp_path: Path) -> None:
    solids = symgnn.data.load("polytopes-3d", copies=1)
    run = symgnn.fit(solids, "gn", epochs=1, seeds=2, progress=False, out=tmp_path / "run")
    assert main(["export", str(tmp_path / "run"), str(tmp_path / "m.pt2"), "--seed", "2"]) == 0
    graphs = [solids.test[k] for k in range(3)]
    names = ["pos", "edge_index", "batch"]
    given = inputs_of(graphs, names)
    given["pos"] = given["pos"] / run.scale  # as the source has them
    torch.save(given, tmp_path / "in.pt")
    files = [str(tmp_path / name) for name in ("m.pt2", "in.pt", "out.pt")]
    subprocess.run([sys.executable, "-I", "-c", ALONE, *files], check=True)
    found, about = torch.load(tmp_path / "out.pt")
    wanted = run.models[1](Batch.from_data_list([run._ready(graph) for graph in graphs])).softmax(1)
    torch.testing.assert_close(found, wanted, rtol=1e-5, atol=1e-6)
    assert len(about["classes"]) == found.shape[1] == 5


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("g++") is None, reason="AOTInductor needs a C++ compiler")
@pytest.mark.parametrize(
    "block", ["dgn", "dgn-filtered", "combined-separable", "combined-filtered"]
)
def test_compiled_potentials_give_energies_and_forces(block: str, tmp_path: Path) -> None:
    model = {"block": block, "hidden": 4, "layers": 1, "cutoff": 3.4}
    frames = emt_frames(10)
    run = symgnn.fit(frames, model, targets=["energy", "forces"], epochs=1, progress=False)
    run.export(tmp_path / "m.pt2", aoti=True)
    about = json.loads((tmp_path / "m.json").read_text())
    several = [
        list(run.read(some, columns=[]))
        for some in (frames[:1], frames[2:5], [frames[0] * (2, 1, 1)])
    ]
    torch.save([inputs_of(graphs, about["inputs"]) for graphs in several], tmp_path / "in.pt")
    files = [str(tmp_path / name) for name in ("m.pt2", "in.pt", "out.pt")]
    subprocess.run([sys.executable, "-I", "-c", COMPILED_ALONE, *files], check=True)
    for graphs, (energy, forces) in zip(several, torch.load(tmp_path / "out.pt"), strict=True):
        wanted = run.potentials[0](Batch.from_data_list([run._ready(g) for g in graphs]))
        torch.testing.assert_close(energy, wanted.energy.detach(), rtol=1e-6, atol=1e-5)
        torch.testing.assert_close(forces, wanted.forces, rtol=1e-3, atol=1e-4)


def test_refusals(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    solids = symgnn.data.load("polytopes-3d", copies=1)
    symgnn.fit(solids, "gn", epochs=1, progress=False, out=tmp_path / "run")
    assert main(["export", str(tmp_path / "run"), str(tmp_path / "m.onnx")]) == 2
    assert "ends with .pt2" in capsys.readouterr().err
    assert main(["export", str(tmp_path / "run"), str(tmp_path / "m.pt2"), "--seed", "9"]) == 2
    assert "the run has 1" in capsys.readouterr().err


def test_compiling_needs_a_compiler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = symgnn.fit(points(12, "graph"), {"block": "dgn", "hidden": 2}, epochs=1, progress=False)
    monkeypatch.setattr(shutil, "which", lambda name: None)
    with pytest.raises(ValueError, match=r"aoti: needs a C\+\+ compiler"):
        run.export(tmp_path / "m.pt2", aoti=True)


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"^out: the folder '.*nowhere' is not there; make it"):
        checked_path(tmp_path / "nowhere" / "model.pt2")
