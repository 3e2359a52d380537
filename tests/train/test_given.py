"""Every way into `predict` gives the same number; anything else is one line."""

from __future__ import annotations

import csv
from pathlib import Path

import ase.io
import pytest
import torch
from torch_geometric.data import Batch, Data
from torch_geometric.loader import DataLoader

import symgnn
from symgnn.cli import main
from symgnn.data import sample
from symgnn.data._rescaling import AtScale, at_scale, scales_of
from symgnn.data._task import Splits, Task
from symgnn.train._trained_run import Run
from train.given_cases import WATER, trained

pytest.importorskip("rdkit")


ELEMENTS = ["H", "C", "N", "O"]


# ------------------------------------------------------------------ the scale of a graph


def test_every_way_to_give_a_graph(run: Run, directory: Path, tmp_path: Path) -> None:
    assert run.scale != 1.0
    atoms, raw = ase.io.read(WATER), symgnn.data.read(WATER, elements=ELEMENTS)
    bare = raw[0].clone()
    del bare.pos_scale
    torch.save(list(run.read(WATER)), tmp_path / "scaled.pt")
    ways = {
        "path": WATER,
        "text": str(WATER),
        "list of paths": [str(WATER)],
        "run.read": run.read(WATER),
        "run.read of a list": run.read([WATER]),
        "run.read of a text": run.read(str(WATER)),
        "read with the options of the run": symgnn.data.read(WATER, **run.record["about"]["read"]),
        "read without a scale": raw,
        "read with another scale": symgnn.data.read(WATER, elements=ELEMENTS, scale=7.0),
        "one graph": raw[0],
        "a copy": run.read(WATER)[0].clone(),
        "without pos_scale": bare,
        "batch": Batch.from_data_list(run.read(WATER)),
        "batch of a loader": next(iter(DataLoader(raw))),
        "batch taken apart": Batch.from_data_list(run.read(WATER)).to_data_list(),
        "batch in a list": [Batch.from_data_list(raw)],
        "scaled graphs in a file": tmp_path / "scaled.pt",
        "graphs read again": symgnn.data.read(list(run.read(WATER)), **run.record["about"]["read"]),
        "atoms": atoms,
        "list of atoms": [atoms],
    }
    expected = run.predict(WATER).value
    for name, way in ways.items():
        found = run.predict(way).value
        torch.testing.assert_close(found, expected, rtol=1e-6, atol=1e-6, msg=name)
    torch.testing.assert_close(run(raw[0]), expected)
    twice = run.read(WATER)[0]
    twice.pos_scale = 1.0  # scaled once more, as if nobody knew
    assert abs(run.predict(twice).value - expected).item() > 1e-3 * expected.abs().item()
    out = tmp_path / "p.csv"
    assert main(["predict", str(directory), str(WATER), "--out", str(out)]) == 0
    with out.open() as file:
        (row,) = csv.DictReader(file)
    assert float(row["boiling_point [K]"]) == pytest.approx(expected.item(), rel=1e-6)


def test_graphs_of_a_split(run: Run) -> None:
    test = run.splits().test
    names = [graph.name for graph in test]
    files = [sample("molecules") / f"{name}.xyz" for name in names]
    expected = run.predict(files).value
    for way in (list(test), test, "test", Batch.from_data_list(list(test))):
        torch.testing.assert_close(run.predict(way).value, expected, rtol=1e-6, atol=1e-6)
    mixed = [files[0], ase.io.read(files[1]), test[0], files[0]]  # in their order
    found = run.predict(mixed).value
    torch.testing.assert_close(found, expected[[0, 1, 0, 0]], rtol=1e-6, atol=1e-6)
    assert run.evaluate("test") == run.evaluate(list(test)) == run.evaluate(iter(test))
    raw = [at_scale(graph, 1.0) for graph in test]
    assert run.evaluate(raw)["mae"] == pytest.approx(run.evaluate("test")["mae"], rel=1e-5)


def test_a_batch_of_different_scales(run: Run) -> None:
    files = sorted(sample("molecules").glob("*.xyz"))[:2]
    graphs = [
        symgnn.data.read(file, elements=ELEMENTS, scale=scale)[0]
        for file, scale in zip(files, (1.0, 3.0), strict=True)
    ]
    found = run.predict(Batch.from_data_list(graphs)).value
    torch.testing.assert_close(found, run.predict(files).value, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("wrong", [0.0, -1.0, float("nan"), "half", torch.zeros(0)])
def test_a_scale_is_a_positive_number(run: Run, wrong: object) -> None:
    graph = run.read(WATER)[0]
    graph.pos_scale = wrong
    with pytest.raises(ValueError, match=r"^pos_scale: is .*; give a positive number"):
        run.predict(graph)


def test_splits_carry_their_scale() -> None:
    task = Task("graph", "regression", ("e",))
    graphs = [Data(pos=torch.rand(3, 2), y=torch.zeros(1, 1)) for _ in range(4)]
    assert Splits(graphs, graphs, graphs, task).train is graphs
    splits = Splits(graphs, graphs[:1], AtScale(graphs, 1.0), task, scale=2.0)
    for part in (splits.train, splits.validation, splits.test, splits.test[1:]):
        assert all(float(scales_of(graph)) == 2.0 for graph in part)
        assert len(at_scale(part[0], 1.0).pos) == 3
    torch.testing.assert_close(2 * at_scale(splits.train[0], 1.0).pos, graphs[0].pos)
    assert "pos_scale" not in graphs[0]
    assert Splits(splits.train, [], [], task).scale == 2.0
    with pytest.raises(ValueError, match=r"^scale: is 1, but graph 0 of train has coordinates ti"):
        Splits(splits.train, [], [], task, scale=1.0)
    with pytest.raises(ValueError, match=r"^scale: is 0; give a positive number"):
        Splits(graphs, [], [], task, scale=0)


def test_scales_of_read_and_splits_multiply() -> None:
    folder = sample("molecules")
    plain = symgnn.data.read(folder, targets="targets.csv", columns="dipole")
    twice = symgnn.data.read(folder, targets="targets.csv", columns="dipole", scale=2.0)
    splits = symgnn.data.splits(twice, scale=3.0)
    assert splits.scale == splits.about["read"]["scale"] == splits.train[0].pos_scale == 6.0
    found = {graph.name: graph for graph in plain}[splits.train[0].name]
    torch.testing.assert_close(splits.train[0].pos, 6 * found.pos)


def test_every_dataset_carries_its_scale() -> None:
    for name, options in {
        "qm9": {"source": "sample"},
        "mnist": {"source": "sample"},
        "tsp": {"source": "sample"},
        "polytopes-3d": {"copies": 1},
    }.items():
        splits = symgnn.data.load(name, **options)
        for part in (splits.train, splits.validation, splits.test):
            found = scales_of(part[0])
            assert (1.0 if found is None else float(found)) == splits.scale, name


def test_coordinates_as_answers_have_the_scale_of_their_graph() -> None:
    graph = Data(pos=torch.rand(3, 2), y=torch.rand(3, 2))
    scaled = at_scale(graph, 4.0, answers=True)
    torch.testing.assert_close(scaled.y, 4 * graph.y)
    again = symgnn.data.read([scaled], level="coordinates", k=1)[0]
    torch.testing.assert_close(again.y, graph.y)
    torch.testing.assert_close(again.pos, graph.pos)


def test_features_with_lengths_are_not_rescaled_silently(tmp_path: Path) -> None:
    data = {"name": "tsp", "source": "sample", "limit": 2, "distance": True}
    run = symgnn.load(trained(tmp_path, data))
    graph = run.splits().test[0]
    assert run.predict(graph).value.shape[1] == 2
    other = symgnn.data.load("tsp", source="sample", limit=2, distance=True, scale=1.0).test[0]
    with pytest.raises(ValueError, match=r"^edge_attr: holds lengths, but a graph has pos_scale 1"):
        run.predict(other)
    del other.pos_scale
    with pytest.raises(ValueError, match=r"^edge_attr: holds lengths, but a graph has no pos_sca"):
        run.predict(other)


def test_units_that_are_not_known(tmp_path: Path) -> None:
    folder = tmp_path / "D"
    folder.mkdir()
    for k in range(6):
        atoms = ase.io.read(WATER)
        atoms.positions *= (1 + 0.01 * k) / 0.529177210903
        atoms.info = {"e": float(k)}
        atoms.write(folder / f"m{k}.extxyz")
    data = {"path": str(folder), "columns": "e", "units": "bohr"}
    run = symgnn.load(trained(tmp_path, data, precision="64"))
    expected = run.predict(folder / "m0.extxyz").value
    # in Angstrom; the file has eight decimals, and lengths are standardised by 3 % of their size
    torch.testing.assert_close(run.predict(ase.io.read(WATER)).value, expected, rtol=1e-5, atol=0)
    graph = run.read(folder / "m0.extxyz")[0]
    torch.testing.assert_close(run.predict(graph).value, expected)
    del graph.pos_scale
    with pytest.raises(ValueError, match=r"^pos: the graph has no pos_scale.*files in bohr"):
        run.predict(graph)
