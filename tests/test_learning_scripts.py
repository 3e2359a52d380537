"""The scripts of `benchmarks/learning` run, small, and go on where they were."""

import importlib.util
import json
import sys
from pathlib import Path
from types import ModuleType

import pytest
import yaml

import symgnn

ROOT = Path(__file__).parents[1]


def script(name: str) -> ModuleType:
    path = ROOT / "benchmarks" / "learning" / f"{name}.py"
    spec = importlib.util.spec_from_file_location(f"learning_{name}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # where dataclasses look up their annotations
    spec.loader.exec_module(module)
    return module


def test_ablation(tmp_path: Path, capsys: pytest.CaptureFixture, monkeypatch) -> None:
    ablation = script("ablation")
    protocol = yaml.safe_load(ablation.PROTOCOL.read_text())
    assert {*protocol["tasks"]} == {"mnist", "tsp", "qm9"}
    protocol["blocks"], protocol["tasks"] = ["dgn"], {"tsp": protocol["tasks"]["tsp"]}
    protocol["tasks"]["tsp"]["data"] = {"name": "tsp", "source": "sample"}
    protocol["model"] |= {"hidden": 4, "mlp_hidden": 4}
    small = tmp_path / "small.yaml"
    small.write_text(yaml.safe_dump(protocol, sort_keys=False))
    call = ["--out", str(tmp_path), "--protocol", str(small)]
    assert ablation.main(call) == 0
    first = capsys.readouterr().out
    found = json.loads((tmp_path / "ablation.json").read_text())["cells"]
    assert [name.split("/")[2] for name in found] == [*protocol["variants"]]
    assert len({cell["mean"] for cell in found.values()}) == len(found)  # no two are the same
    assert first.splitlines()[2].startswith("| tsp, loss | DGN | ")

    monkeypatch.setattr(symgnn, "fit", None)  # all cells are there, so nothing is trained
    assert ablation.main(call) == 0
    assert capsys.readouterr().out == first
    protocol["model"]["hidden"] = 8
    small.write_text(yaml.safe_dump(protocol))
    assert ablation.main(call) == 2
    assert "is of another protocol" in capsys.readouterr().err


def test_polytopes(tmp_path: Path, capsys: pytest.CaptureFixture, monkeypatch) -> None:
    polytopes = script("polytopes")
    monkeypatch.setattr(polytopes, "BLOCKS", ("DGN",))
    monkeypatch.setattr(polytopes, "COPIES", 1)
    assert polytopes.main(["--out", str(tmp_path), "--epochs", "1"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split(" | ")[:2] for line in lines[2:]] == [["| DGN", "torch"], ["| DGN", "fit"]]
    monkeypatch.setattr(polytopes, "row", None)
    assert polytopes.main(["--out", str(tmp_path)]) == 0
    assert capsys.readouterr().out.splitlines() == lines


def handedness() -> ModuleType:
    pytest.importorskip("rdkit", reason="the molecules are made by RDKit")
    return script("handedness")


def test_scaffolds_are_held_out() -> None:
    learning = handedness()
    learnt, others = learning.split()
    sides = [{learning.scaffold_of(ring) for ring in rings} for rings in (learnt, others)]
    assert sides[0].isdisjoint(sides[1])
    assert sorted([*learnt, *others]) == sorted(learning.RINGS)
    assert learning.elements_of(learnt) == learning.elements_of(others)
    assert len(sides[1]) >= 15


def test_r_and_s_small() -> None:
    """Better than chance by more than three standard errors; a mirror exchanges the answers."""
    learning = handedness()
    train = learning.stereocentres(120, learning.split()[0], 0)
    test = learning.stereocentres(60, learning.split()[1], 1000)
    assert sum(float(each.y) for each in train) == 60
    assert {each.ring for each in train}.isdisjoint(each.ring for each in test)
    model = learning.taught(train, learning.Setup(epochs=25), 0)
    found = learning.right([model], test).double().mean()
    assert found > 0.5 + 3 * (0.25 / 60) ** 0.5
    images = [each.clone() for each in test]
    for image in images:
        image.pos, image.y = -image.pos, 1 - image.y
    assert learning.right([model], images).double().mean() == found


@pytest.mark.slow
def test_r_and_s_of_200_labels_on_held_out_scaffolds(tmp_path: Path) -> None:
    """A seed of the protocol, whose record is beside the script."""
    learning = handedness()
    recorded = json.loads((ROOT / "benchmarks" / "learning" / "handedness.json").read_text())
    assert recorded["reached"] == (recorded["mean"] > 0.95)
    assert learning.judge(tmp_path / "one.json", seeds=[0], members=3) > 0.9
