"""`symgnn audit`."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch

from audit.faulty import molecule
from symgnn.cli import main

MODELS = """
import torch

def sound():
    return lambda pos: torch.pdist(pos).sum()

def leaky():
    torch.manual_seed(0)  # when a counterexample is tried again, it is the same model
    return Leaky()

class Leaky(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(3, 3)
    def forward(self, data):
        return torch.tanh(self.linear(data.pos)).sum()

def spinning(pos, spin):
    rays = pos - pos.mean(0)
    return (spin * torch.linalg.cross(rays, rays.roll(1, 0))).sum().sin()

def plain(pos, z):
    return (z * (pos - pos.mean(0)).norm(dim=1)).sum()

def fails():
    raise RuntimeError("no weights here")
"""


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory with models and graphs, as the working directory."""
    name = f"models_{tmp_path.name}"
    (tmp_path / f"{name}.py").write_text(MODELS)
    data = molecule()
    torch.save(data, tmp_path / "graph.pt")
    torch.save([molecule(5), molecule(6)], tmp_path / "graphs.pt")
    np.savez(tmp_path / "graph.npz", **{k: v.numpy() for k, v in data.to_dict().items()})
    monkeypatch.chdir(tmp_path)
    return tmp_path


def call(place: Path, name: str, *options: str) -> int:
    return main(["audit", f"models_{place.name}:{name}", "--elements", "2", *options])


@pytest.mark.parametrize("file", ["graph.pt", "graph.npz"])
def test_it_prints_the_report(place: Path, file: str, capsys) -> None:
    assert call(place, "sound", "--data", file, "--expect", "E(n)") == 0
    out, err = capsys.readouterr()
    assert "- E(n): yes" in out
    assert "holds to rounding" in out
    assert err == ""


def test_a_list_of_graphs(place: Path, capsys) -> None:
    assert call(place, "leaky", "--data", "graphs.pt") == 0
    assert "on 11 nodes" in capsys.readouterr().out


def test_json_and_nothing_else(place: Path, capsys) -> None:
    assert call(place, "plain", "--data", "graph.pt", "--json", "--out", "there") == 0
    found = json.loads(capsys.readouterr().out)
    assert found["holds"]["E(n)"] is True
    assert found == json.loads((place / "there" / "audit.json").read_text())


def test_what_is_expected_and_a_counterexample_again(place: Path, capsys) -> None:
    code = call(place, "leaky", "--data", "graph.pt", "--expect", "SO(3)", "--out", "there")
    assert code == 1
    out, err = capsys.readouterr()
    assert err.startswith("symgnn: SO(n): no, error")
    assert "first in linear (Linear)" in err
    assert out.endswith(f"page: {Path('there', 'audit.html')}\n")
    assert "The symmetry of Leaky" in (place / "there" / "audit.html").read_text()
    file = str(Path("there", "counterexamples", "rotation.npz"))
    assert call(place, "leaky", "--rerun", file) == 1
    assert "still breaks it" in capsys.readouterr().out
    assert call(place, "sound", "--rerun", file) == 0
    assert "no longer breaks it" in capsys.readouterr().out


def test_what_ase_reads(place: Path, capsys) -> None:
    pytest.importorskip("ase")
    from ase.build import molecule as build

    build("CH3CH2OH").write(place / "ethanol.xyz")
    assert call(place, "plain", "--data", "ethanol.xyz", "--radius", "1.7") == 0
    out = capsys.readouterr().out
    assert "- torsions: no" in out
    assert "- E(n): yes" in out


def test_outputs_and_vectors(place: Path, capsys) -> None:
    options = ("--data", "graph.pt", "--output", "output=invariant per graph", "--vector", "x[0:3]")
    assert call(place, "sound", *options) == 0
    assert "output: invariant per graph (told)" in capsys.readouterr().out


def test_inputs_and_groups(place: Path, capsys) -> None:
    """A pseudovector in the product with a cross product is invariant, a vector is not."""
    generator = torch.Generator().manual_seed(0)
    pos, spin = torch.randn(2, 6, 3, generator=generator)
    np.savez(place / "spins.npz", pos=pos.numpy(), spin=spin.numpy())
    options = ("--data", "spins.npz", "--group", "O(3)", "--expect", "E(3)")
    options += ("--output", "output=invariant")
    assert call(place, "spinning", *options, "--input", "spin=pseudovector") == 0
    out = capsys.readouterr().out
    assert "- expected O(n): yes" in out
    assert "- expected E(n): yes" in out
    assert "permutations" not in out
    assert call(place, "spinning", *options, "--input", "spin=vector") == 1
    assert "E(n): no" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("sound", (), "--data: is missing"),
        ("sound", ("--data", "none.pt"), "--data: there is no none.pt"),
        ("nothing", ("--data", "graph.pt"), "cannot be made (module"),
        ("fails", ("--data", "graph.pt"), "cannot be made (no weights here)"),
        ("sound", ("--data", "graph.pt", "--output", "x"), "--output: 'x' has no '='"),
        ("sound", ("--data", "graph.pt", "--input", "x"), "--input: 'x' has no '='"),
        ("sound", ("--data", "graph.pt", "--group", "E(m)"), "did you mean 'E(n)'?"),
        ("sound", ("--data", "graph.pt", "--expect", "E(m)"), "did you mean 'E(n)'?"),
        ("sound", ("--data", "graph.pt", "--elements", "1"), "elements: is 1"),
        ("sound", ("--rerun", "graph.npz"), "graph.npz: is no counterexample"),
    ],
)
def test_wrong_calls_are_one_line(place: Path, name, options, message, capsys) -> None:
    assert call(place, name, *options) == 2
    err = capsys.readouterr().err
    assert err.startswith("symgnn: ")
    assert message in err
    assert err.count("\n") == 1


def test_no_other_pickle_is_loaded(place: Path, capsys) -> None:
    torch.save(Path("evil"), place / "evil.pt")
    (place / "broken.npz").write_text("no")
    (place / "notes.txt").write_text("no atoms")
    for name in ("evil.pt", "broken.npz", "notes.txt"):
        assert call(place, "sound", "--data", name) == 2
        err = capsys.readouterr().err
        assert f"--data: {name}: cannot be read" in err
        assert err.count("\n") == 1


@pytest.mark.parametrize("y", [torch.tensor([2]), torch.tensor([[0.1, 2.0]]), torch.arange(7)])
def test_answers_in_a_file_do_not_matter(place: Path, y: torch.Tensor, capsys) -> None:
    data = molecule()
    data.y = y
    torch.save(data, place / "answered.pt")
    assert call(place, "sound", "--data", "answered.pt", "--expect", "E(n)") == 0


def test_what_training_reads_can_be_audited(place: Path, capsys) -> None:
    (place / "cloud.csv").write_text("x,y,z\n" + "".join(f"{k},{k * k},{-k}\n" for k in range(9)))
    assert call(place, "leaky", "--data", "cloud.csv") == 0
    assert "on 9 nodes in 3 dimensions" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("target", "message"),
    [("models", "'models' is not understood"), (".", "has no run"), ("no.such:x", "No module")],
)
def test_wrong_targets(place: Path, target: str, message: str, capsys) -> None:
    assert main(["audit", target, "--data", "graph.pt"]) == 2
    assert message in capsys.readouterr().err


def test_a_run(tmp_path: Path, capsys) -> None:
    """On a graph of its own test set; the claim of the model is compared."""
    config = tmp_path / "solids.yaml"
    config.write_text(
        "data: {name: polytopes-3d, copies: 1}\nmodel: {block: dgn, hidden: 4, layers: 1}\n"
        "train: {epochs: 1, batch_size: 5}\n"
    )
    run = tmp_path / "run"
    assert main(["train", str(config), "--out", str(run)]) == 0
    capsys.readouterr()
    assert main(["audit", str(run), "--elements", "2", "--expect", "E(n)"]) == 0
    assert "- E(n): yes" in capsys.readouterr().out
    assert main(["audit", str(run), "--elements", "2", "--expect", "similarities"]) == 1
    assert main(["audit", str(tmp_path), "--elements", "2"]) == 2
    assert "has no run; give the directory" in capsys.readouterr().err
