"""Runs that learn vectors: what they predict turns with the graph, in the units of the files."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import ase.io
import numpy as np
import pytest
import torch
from ase import Atoms
from ase.calculators.emt import EMT
from ase.calculators.singlepoint import SinglePointCalculator
from torch import Tensor
from torch_geometric.data import Data

import symgnn
from symgnn.cli import main
from symgnn.data._task import Task
from symgnn.geometry import EUCLIDEAN
from symgnn.report._run_page import write_run_report
from symgnn.train._config import resolve
from symgnn.train._metrics import Judge, Metrics, Scaler
from symgnn.train._prepare import measure
from symgnn.train._run_loading import load
from symgnn.train._trained_run import Run
from symgnn.train._training import finish, train

pytestmark = pytest.mark.usefixtures("one_thread")
MODEL = {"block": "dgn", "hidden": 8, "layers": 2, "aggregation": "sum"}


@pytest.fixture(scope="module")
def clusters(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Clusters of copper with the forces of a potential, and what else is a vector."""
    path = tmp_path_factory.mktemp("copper") / "copper.xyz"
    random, frames = np.random.default_rng(0), []
    grid = np.array([[x, y, z] for x in (0, 1) for y in (0, 1) for z in (0, 1)], dtype=float)
    for _ in range(16):
        atoms = Atoms("Cu5", 2.5 * grid[:5] + 0.15 * random.normal(size=(5, 3)))
        atoms.calc = EMT()
        forces = atoms.get_forces()
        dipole = np.array([1.0, -1, 2, 0, -2]) @ atoms.positions
        atoms.set_array("displacements", 0.1 * forces)
        atoms.set_array("other_forces", -forces)
        pull = 50 * (atoms.positions.mean(0) - atoms.positions)  # springs between all atoms
        atoms.set_array("pull", pull)
        atoms.calc = SinglePointCalculator(atoms, forces=forces, dipole=dipole, energy=0.0)
        frames.append(atoms)
    ase.io.write(path, frames, format="extxyz")
    return path


def section(path: Path, columns: str | list[str], level: str = "node-vectors", **more: object):
    return {"path": str(path), "columns": columns, "level": level, "radius": 6.0, **more}


def trained(out: Path, data: dict, *changes: str, epochs: int = 3, **model: object) -> Run:
    given = {"data": data, "model": {**MODEL, **model}}
    config = resolve({**given, "train": {"epochs": epochs, "batch_size": 4}}, changes)
    run = train(config, out)
    assert run is not None
    finish(run)
    return load(out)


def turned(data: Data, seed: int = 0) -> tuple[Data, Tensor]:
    """Turned, mirrored and moved."""
    generator = torch.Generator().manual_seed(seed)
    q = torch.linalg.qr(torch.randn(3, 3, generator=generator, dtype=torch.float64))[0]
    out = data.clone()
    out.pos = data.pos @ q.to(data.pos).T + 5.0
    return out, q


@pytest.mark.parametrize(("precision", "tolerance"), [("64", 1e-9), ("32", 1e-5)])
@pytest.mark.parametrize(("column", "level"), [("forces", "node"), ("dipole", "graph")])
def test_predictions_turn_with_the_molecule(
    column: str, level: str, precision: str, tolerance: float, clusters: Path, tmp_path: Path
) -> None:
    data = section(clusters, column, f"{level}-vectors")
    run = trained(tmp_path, data, f"train.precision={precision}", "train.seeds=2")
    graph = symgnn.data.read(clusters, radius=6.0)[3]
    graph.pos = graph.pos.double()
    moved, q = turned(graph)
    before, after = run.predict(graph).value, run.predict(moved).value
    assert before.shape == ((5, 3) if level == "node" else (1, 3))
    size = before.abs().max()
    assert size > 0
    assert (after - before.double() @ q.T).abs().max() < tolerance * size
    assert (run(moved) - run(graph).double() @ q.T).abs().max() < tolerance * size
    assert run.model.symmetry == EUCLIDEAN


def test_vectors_are_learned_in_the_units_of_the_file(clusters: Path, tmp_path: Path) -> None:
    steps = ("train.learning_rate=0.01", "train.batch_size=4")
    run = trained(tmp_path, section(clusters, "pull"), *steps, epochs=25)
    pull = torch.tensor(np.array([atoms.arrays["pull"] for atoms in ase.io.read(clusters, ":")]))
    zero = float(pull.norm(dim=-1).mean())  # the error of predicting no force at all
    metrics = json.loads((tmp_path / "metrics.json").read_text())
    assert metrics["test"]["vector_error"]["mean"] < 0.2 * zero
    assert run.scale != 1
    found = run.predict(clusters).value.double().reshape(16, 5, 3)
    assert (found - pull).norm(dim=-1).mean() < 0.2 * zero


def test_table_metrics_report_and_audit(
    clusters: Path, tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    columns = ["forces", "other_forces"]
    run = trained(tmp_path / "run", section(clusters, columns), "train.seeds=2")
    out = tmp_path / "forces.csv"
    assert main(["predict", str(tmp_path / "run"), str(clusters), "--out", str(out)]) == 0
    with out.open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    components = [f"{name}_{axis}" for name in columns for axis in "xyz"]
    heads = [head for name in components for head in (name, f"{name} deviation")]
    assert list(rows[0]) == ["name", "node", *heads]
    assert len(rows) == 16 * 5
    found = run.predict(clusters)
    assert found.value.shape == (80, 6)
    assert float(rows[7]["other_forces_y"]) == pytest.approx(float(found.value[7, 4]), rel=1e-4)

    metrics = json.loads((tmp_path / "run" / "metrics.json").read_text())["test"]
    for name in ("mae", "mse", "vector_error"):
        assert {f"{name} forces", f"{name} other_forces"} <= metrics.keys()
    page = write_run_report(tmp_path / "run").read_text(encoding="utf-8")
    assert "Regression of forces, other_forces for each node, as vectors" in page

    capsys.readouterr()
    assert main(["audit", str(tmp_path / "run"), "--expect", "E(n)", "--elements", "2"]) == 0
    assert "vector per node" in capsys.readouterr().out
    assert main(["evaluate", str(tmp_path / "run")]) == 0


def test_lengths_come_back_in_the_units_of_the_file(clusters: Path, tmp_path: Path) -> None:
    """Scaled with the coordinates or not, the network learns the same, in the same units."""
    runs = [
        trained(tmp_path / str(k), section(clusters, "displacements", lengths=lengths, seed=3))
        for k, lengths in enumerate((None, False))
    ]
    assert [run.task.lengths for run in runs] == [True, False]
    first, second = (run.predict(clusters).value for run in runs)
    torch.testing.assert_close(first, second, rtol=1e-3, atol=1e-5)
    one, other = (json.loads((tmp_path / str(k) / "metrics.json").read_text()) for k in (0, 1))
    for name in ("mae", "mse", "vector_error"):
        right = pytest.approx(other["test"][name]["mean"], rel=1e-3)
        assert one["test"][name]["mean"] == right


def test_vectors_are_divided_by_one_number(clusters: Path) -> None:
    """No mean, and no scale of its own for a component: either would not turn."""
    options = {"path": str(clusters), "level": "node-vectors", "radius": 6.0}
    splits = symgnn.data.load_files(columns=["forces", "displacements"], lengths=False, **options)
    for graph in splits.train:
        graph.y = graph.y * torch.tensor([1.0, 2, 3, 1, 2, 3]) + 7.0
    scaler = measure(splits).scaler
    y = torch.cat([graph.y for graph in splits.train]).double()
    assert scaler.mean.tolist() == [0] * 6
    for k in (0, 3):
        right = y[:, k : k + 3].square().mean().sqrt().expand(3)
        torch.testing.assert_close(scaler.deviation[k : k + 3], right)
    torch.testing.assert_close(scaler(y)[:, :3].square().mean(), torch.ones(()).double())


def test_metrics_of_vectors() -> None:
    task = Task(
        "node-vectors", "regression", tuple("abcdef"), ("N",) * 6, vectors=("f", "g"), lengths=True
    )
    generator = torch.Generator().manual_seed(0)
    outputs = torch.randn(2, 9, 2, 3, generator=generator, dtype=torch.float64)
    y = torch.randn(9, 6, generator=generator, dtype=torch.float64)
    deviation = torch.tensor([2.0] * 3 + [5.0] * 3).double()
    judge = Judge(task, Scaler(torch.zeros(6).double(), deviation), scale=4.0)
    metrics = Metrics(task, 2)
    for part in torch.arange(9).split(4):
        metrics.add(*judge(outputs[:, part], y[part]))
    found = metrics.values()
    for k, name in enumerate("fg"):
        size = (2.0, 5.0)[k]
        error = (outputs[:, :, k] * size - y[:, 3 * k : 3 * k + 3]) / 4.0
        torch.testing.assert_close(found[f"mae {name}"], error.abs().mean((1, 2)))
        torch.testing.assert_close(found[f"mse {name}"], error.square().mean((1, 2)))
        torch.testing.assert_close(found[f"vector_error {name}"], error.norm(dim=-1).mean(1))


def test_a_config_that_learns_forces_as_numbers_is_refused(
    clusters: Path, tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    path = tmp_path / "forces.yaml"
    lines = ["model: {block: dgn}", "train: {epochs: 1}"]
    path.write_text("\n".join([f"data: {{path: {clusters}, columns: forces}}", *lines]))
    assert main(["train", str(path), "--out", str(tmp_path / "run")]) == 2
    error = capsys.readouterr().err.strip()
    assert error.count("\n") == 0
    assert "data.columns: forces has 3 numbers for each node" in error
    assert "level='node-vectors'" in error
    changes = ["data.level=node", "data.invariant=true"]
    assert main(["train", str(path), *changes, "--out", str(tmp_path / "numbers")]) == 0
    changes = ["data.level=graph-vectors", "data.columns=dipole", "model.aggregation=max"]
    assert main(["train", str(path), *changes, "--out", str(tmp_path / "max")]) == 2
    assert "model.aggregation: pool is 'max'" in capsys.readouterr().err
    changes = ["data.columns=energy", "model.rays=unit"]
    assert main(["train", str(path), *changes, "--out", str(tmp_path / "rays")]) == 2
    assert "model.rays: is 'unit', but task='graph'" in capsys.readouterr().err


def test_graphs_whose_vectors_have_other_dimensions(clusters: Path) -> None:
    splits = symgnn.data.load_files(path=str(clusters), columns="forces", level="node-vectors")
    flat = Task("node-vectors", "regression", ("f_x", "f_y"), vectors=("f",))
    for graph in (*splits.train, *splits.validation, *splits.test):
        graph.y = graph.y[:, :2]
    wrong = symgnn.data.Splits(splits.train, splits.validation, splits.test, flat)
    with pytest.raises(ValueError, match=r"targets: f_x, f_y are 2 components.* 3 coordinates"):
        measure(wrong)
