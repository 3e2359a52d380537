"""The networks that come with the package load offline and predict as their cards say."""

import math
import re
from pathlib import Path

import pytest
import torch

import symgnn
from symgnn.train._pretrained import FOLDER, PRETRAINED
from symgnn.train._safetensors import read_safetensors, write_safetensors


@pytest.mark.parametrize("name", PRETRAINED)
def test_cards_say_what_the_run_says(name: str) -> None:
    run = symgnn.load(name)
    card = (FOLDER / name / "CARD.md").read_text()
    assert f"**Symmetry**: {run.model.symmetry}\n" in card
    assert f"{sum(p.numel() for p in run.model.parameters())} parameters" in card
    for key, network, baseline in re.findall(r"^\| (\w+) \| (\S+) \| (\S+) \|$", card, re.M):
        measured = run.metrics["test"][key]
        assert float(network) == pytest.approx(measured["mean"], rel=1e-3)
        assert float(baseline) == pytest.approx(measured["baseline"], rel=1e-3)
    for word in ("Data", "Protocol", "Not for", "Licence"):
        assert f"**{word}**" in card
    assert sum(path.stat().st_size for path in (FOLDER / name).iterdir()) < 500 * 1024


def test_the_solids_are_told_apart_wherever_they_are() -> None:
    run = symgnn.load("solids")
    graphs = symgnn.data.polytopes(3)
    generator = torch.Generator().manual_seed(0)
    for graph in graphs:
        for _ in range(3):
            moved = symgnn.geometry.Affine.random(
                graph.pos, generator=generator, mu=0, dilation=True
            ).apply(graph)
            assert int(run.predict(moved).value.argmax()) == int(graph.y)


@pytest.mark.parametrize(("name", "target"), [("qm9-homo", "homo"), ("qm9-zpve", "zpve")])
def test_molecules_are_predicted_in_units(name: str, target: str) -> None:
    """The molecules of QM9 that come with the package, against their published values."""
    options = {"source": "sample", "targets": [target], "standardise": False}
    sample = symgnn.data.load("qm9", **options)
    graphs = [*sample.train, *sample.validation, *sample.test]
    graphs = [graph for graph in graphs if graph.num_nodes >= 12]  # smaller ones are rare in QM9
    run = symgnn.load(name)
    truth = torch.cat([graph.y for graph in graphs])
    error = (run.predict(graphs).value - truth).abs()
    assert len(graphs) >= 8
    assert float(error.mean()) < 3 * run.metrics["test"]["mae"]["mean"]


def test_a_run_of_that_name_comes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "solids").mkdir()
    with pytest.raises(ValueError, match="solids: has no run"):
        symgnn.load("solids")


def test_safetensors_are_written_and_read(tmp_path: Path) -> None:
    tensors = {
        "a": torch.arange(6, dtype=torch.float32).reshape(2, 3) / 7,
        "b": torch.tensor(math.pi, dtype=torch.float64),
        "c": torch.tensor([], dtype=torch.float32),
        "d": torch.tensor([True, False]),
        "e": torch.tensor([-(2**40), 3]),
    }
    path = write_safetensors(tmp_path / "x.safetensors", tensors)
    found = read_safetensors(path)
    assert found.keys() == tensors.keys()
    for name, tensor in tensors.items():
        assert found[name].dtype == tensor.dtype
        assert torch.equal(found[name], tensor)
    for cut in (4, 20, -1):
        (tmp_path / "cut").write_bytes(path.read_bytes()[:cut])
        with pytest.raises(ValueError, match="is no safetensors file, or is damaged"):
            read_safetensors(tmp_path / "cut")


def test_the_format_is_that_of_the_library(tmp_path: Path) -> None:
    library = pytest.importorskip("safetensors.torch", reason="needs the package safetensors")
    tensors = {"a": torch.randn(3, 4), "b": torch.arange(5)}
    library.save_file(tensors, tmp_path / "theirs")
    for one, other in (
        (read_safetensors(tmp_path / "theirs"), tensors),
        (library.load_file(write_safetensors(tmp_path / "ours", tensors)), tensors),
    ):
        assert all(torch.equal(one[name], other[name]) for name in tensors)
    ours = read_safetensors(FOLDER / "qm9-homo" / "weights.safetensors")
    theirs = library.load_file(FOLDER / "qm9-homo" / "weights.safetensors")
    assert ours.keys() == theirs.keys()
    assert all(torch.equal(ours[name], theirs[name]) for name in ours)


def test_a_name_that_is_not_there_names_those_that_are() -> None:
    with pytest.raises(ValueError, match="qm9-homoo: is not there; give the directory"):
        symgnn.load("qm9-homoo")
