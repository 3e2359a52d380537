"""Every way into `predict` gives the same number; anything else is one line."""

from __future__ import annotations

import csv
import os
from pathlib import Path

import ase.io
import pytest
import torch
import yaml
from torch_geometric.data import Batch, Data
from torch_geometric.loader import DataLoader

import symgnn
from symgnn.cli import main
from symgnn.data import sample
from symgnn.data.rescaling import AtScale, at_scale, scales_of
from symgnn.data.task import Splits, Task
from symgnn.train.trained_run import Run

pytest.importorskip("rdkit")
WATER = sample("molecules") / "water.xyz"
ELEMENTS = ["H", "C", "N", "O"]


def trained(folder: Path, data: dict, **train: object) -> Path:
    config = {
        "data": data,
        "model": {"block": "dgn", "hidden": 4, "layers": 1},
        "train": {"epochs": 1, **train},
    }
    (folder / "c.yaml").write_text(yaml.safe_dump(config))
    assert main(["train", str(folder / "c.yaml"), "--out", str(folder / "run")]) == 0
    return folder / "run"


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    data = {"path": str(sample("molecules")), "targets": "targets.csv", "columns": "boiling_point"}
    folder = tmp_path_factory.mktemp("molecules")
    return trained(folder, data, epochs=15, learning_rate=0.1, batch_size=4)  # so that it sees size


@pytest.fixture
def run(directory: Path) -> Run:
    return symgnn.load(directory)


@pytest.fixture(scope="module")
def of_meshes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    data = {"path": str(sample("meshes")), "targets": "targets.csv", "columns": "shape"}
    data["fractions"] = [0.5, 0.25, 0.25]  # type: ignore[assignment]
    return trained(tmp_path_factory.mktemp("meshes"), data)


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
    with pytest.raises(ValueError, match=r"^edge_attr: holds lengths, and a graph has pos_scale 1"):
        run.predict(other)
    del other.pos_scale
    with pytest.raises(ValueError, match=r"^edge_attr: holds lengths, and a graph has no pos_sca"):
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
    with pytest.raises(ValueError, match=r"^pos: of a graph without pos_scale.*files in bohr"):
        run.predict(graph)


# ------------------------------------------------------------------ what can be given


def test_smiles(run: Run, directory: Path, tmp_path: Path) -> None:
    given = ["O", "CCO", "O", str(WATER)]
    found = run.predict(given)
    assert found.value.shape == (4, 1)
    torch.testing.assert_close(found.value[0], found.value[2])
    torch.testing.assert_close(run.predict("CCO").value, found.value[1:2])
    out = tmp_path / "p.csv"
    assert main(["predict", str(directory), *given, "--out", str(out)]) == 0
    with out.open() as file:
        rows = list(csv.DictReader(file))
    assert [row["smiles"] for row in rows] == ["O", "CCO", "O", ""]
    assert [row["name"] for row in rows] == ["O", "CCO", "O", "water"]


def test_files_of_one_name(run: Run, tmp_path: Path) -> None:
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "final.xyz").write_text(WATER.read_text())
    files = [tmp_path / folder / "final.xyz" for folder in ("a", "b")]
    assert run.predict([*files, files[0]]).value.shape == (3, 1)
    assert [Path(name).parts[-2:] for name in run.read(files).names] == [
        ("a", "final"),
        ("b", "final"),
    ]


WRONG = {
    "x.xyz": r"^path: there is no x\.xyz",
    "CC(": r"^data: 'CC\(' is no file, folder or pattern that is there, and RDKit cannot read it",
    "C[Si](C)C": r"^the SMILES 'C\[Si\]\(C\)C': atom 1 is Si, which is not among elements",
}


@pytest.mark.parametrize("given", WRONG)
def test_texts_that_are_nothing(given: str, run: Run) -> None:
    with pytest.raises(ValueError, match=WRONG[given]) as error:
        run.predict(given)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("given", [5, None, {"pos": 1}, b"x", [5], ["O", 3.0], torch.rand(2), 1j])
def test_what_cannot_be_given(given: object, run: Run) -> None:
    for call in (run.predict, run.read):
        with pytest.raises(ValueError, match=r"^data: cannot be a \w+; give a file, a folder") as e:
            call(given)
        assert "\n" not in str(e.value)
    with pytest.raises(ValueError, match=r"^data: is a .*give the name of a split"):
        run.evaluate(given)  # type: ignore[arg-type]


def test_names_of_splits(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ValueError, match=r"^split: 'tset' is not a split; did you mean 'test'"):
        run.evaluate("tset")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "test").mkdir()
    with pytest.raises(ValueError, match=r"^data: 'test' is a split of the run, and a file here"):
        run.predict("test")


def test_graphs_without_answers_are_not_measured(run: Run) -> None:
    with pytest.raises(ValueError, match=r"^y: graph 0 has none"):
        run.evaluate(run.read(WATER))


def test_evaluating_checks_the_form_of_graphs(run: Run) -> None:
    graph = symgnn.data.read(WATER, elements=["O", "N", "C", "H"])[0]
    graph.y = torch.zeros(1, 1)
    with pytest.raises(ValueError, match=r"^x: its columns are not the elements H, C, N, O"):
        run.evaluate([graph])


# ------------------------------------------------------------------ kinds of files


def test_points_are_no_meshes(of_meshes: Path, tmp_path: Path) -> None:
    run = symgnn.load(of_meshes)
    assert run.record["about"]["read"]["edges"] == "mesh"
    cloud = tmp_path / "cloud.ply"
    points = torch.rand(20, 3, generator=torch.Generator().manual_seed(0)).tolist()
    head = "ply\nformat ascii 1.0\nelement vertex 20\n"
    head += "".join(f"property float {axis}\n" for axis in "xyz") + "end_header\n"
    cloud.write_text(head + "".join(f"{x} {y} {z}\n" for x, y, z in points))
    message = r"the run was trained on meshes, and this has no faces; give files of that kind"
    for given in (cloud, [str(cloud)], symgnn.data.read(cloud)):
        with pytest.raises(ValueError, match=message) as error:
            run.predict(given)
        assert "cloud" in str(error.value)
        assert "\n" not in str(error.value)
    with pytest.raises(ValueError, match="edges: is 'mesh', but it has no faces"):
        symgnn.data.read(cloud, **run.record["about"]["read"])
    chosen = run.read(cloud, k=8), symgnn.data.read(cloud, k=8)  # whoever says so gets them
    torch.testing.assert_close(run.predict(chosen[0]).value, run.predict(chosen[1]).value)
    mesh = next(sample("meshes").glob("*.obj"))
    assert run.predict(mesh).value.shape == (1, len(run.task.classes))


# ------------------------------------------------------------------ predictions as a file


def test_measured_values_stand_beside_predictions(directory: Path, tmp_path: Path) -> None:
    out = tmp_path / "p.csv"
    assert main(["predict", str(directory), "--split", "test", "--out", str(out)]) == 0
    with out.open() as file:
        rows = list(csv.DictReader(file))
    with (sample("molecules") / "targets.csv").open() as file:
        known = {row["name"]: float(row["boiling_point [K]"]) for row in csv.DictReader(file)}
    assert rows
    for row in rows:
        assert float(row["boiling_point measured [K]"]) == pytest.approx(known[row["name"]])
    assert not any("deviation" in name for name in rows[0])


def test_measured_classes(of_meshes: Path, tmp_path: Path) -> None:
    out = tmp_path / "p.csv"
    assert main(["predict", str(of_meshes), "--split", "train", "--out", str(out)]) == 0
    with out.open() as file:
        rows = list(csv.DictReader(file))
    with (sample("meshes") / "targets.csv").open() as file:
        known = {row["name"]: row["shape"] for row in csv.DictReader(file)}
    assert {row["name"]: row["shape measured"] for row in rows}.items() <= known.items()


def test_one_seed_has_no_deviation(run: Run) -> None:
    value, deviation = run.predict(WATER)
    assert value.shape == (1, 1)
    assert deviation is None


def test_what_is_left_out_is_named(
    directory: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "new.csv").write_text("smiles\nCCO\nCC(C)(C)(C)C\nC[Si](C)C\n")
    words = ["predict", str(directory), str(tmp_path / "new.csv"), "--out", str(tmp_path / "p.csv")]
    assert main(words) == 2
    error = capsys.readouterr().err
    assert "CC(C)(C)(C)C" in error
    assert "--on-error skip" in error
    assert error.count("\n") == 1
    assert main([*words, "--on-error", "skip"]) == 0
    shown = capsys.readouterr().out
    assert "row 3: CC(C)(C)(C)C: RDKit rejects it" in shown
    assert "Si, which is not among" in shown
    with (tmp_path / "p.csv").open() as file:
        assert [row["smiles"] for row in csv.DictReader(file)] == ["CCO"]
    assert main(["predict", str(directory), "C[Si](C)C", "--on-error", "skip"]) == 2
    assert "data: nothing could be read; the SMILES" in capsys.readouterr().err


def test_rows_without_a_target_are_named_by_their_molecule(tmp_path: Path) -> None:
    rows = "CCO,a,1\nCO,b,\nC,c,3\n"
    (tmp_path / "m.csv").write_text("smiles,name,e\n" + rows)
    with pytest.warns(UserWarning, match=r"row 3, column 'e' \(b, CO\): is empty"):
        found = symgnn.data.read(tmp_path / "m.csv", columns="e", on_error="skip")
    assert found.names == ["a", "c"]
    assert [graph.smiles for graph in found] == ["CCO", "C"]


@pytest.mark.parametrize("command", ["evaluate", "predict"])
def test_a_run_that_cannot_be_written_points_to_out(
    command: str,
    directory: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    from symgnn import store

    class Files:
        """`tempfile`, on a file system of which the run can only be read."""

        @staticmethod
        def check(dir: Path) -> None:
            if Path(dir).is_relative_to(directory):
                raise OSError(30, os.strerror(30))

        def TemporaryFile(self, dir: Path):
            self.check(dir)
            return original.TemporaryFile(dir=dir)

        def mkstemp(self, dir: Path, prefix: str):
            self.check(dir)
            return original.mkstemp(dir=dir, prefix=prefix)

    original = store.tempfile
    monkeypatch.setattr(store, "tempfile", Files())
    words = [command, str(directory), "--split", "test"]
    capsys.readouterr()
    assert main(words) == 2
    error = capsys.readouterr().err
    assert "--out: cannot write" in error
    assert "Read-only file system" in error
    assert error.count("\n") == 1
    assert main([*words, "--out", str(tmp_path / "there")]) == 0
    assert (tmp_path / "there").exists()


def test_answers_of_new_files_are_not_read(tmp_path: Path) -> None:
    """A file of graphs has answers of one class only, or of others: predictions do not care."""
    draw = torch.Generator().manual_seed(0)
    graphs = [
        Data(pos=torch.rand(4, 3, generator=draw), y=torch.tensor([k % 2])) for k in range(10)
    ]
    torch.save(graphs, tmp_path / "g.pt")
    directory = trained(tmp_path, {"path": str(tmp_path / "g.pt"), "k": 2})
    for number, labels in enumerate(([1], [5, 7])):
        new = [Data(pos=graphs[0].pos, y=torch.tensor([label])) for label in labels]
        torch.save(new, tmp_path / f"{number}.pt")
        out = tmp_path / f"{number}.csv"
        assert (
            main(["predict", str(directory), str(tmp_path / f"{number}.pt"), "--out", str(out)])
            == 0
        )
        with out.open() as file:
            rows = list(csv.DictReader(file))
        assert len(rows) == len(labels)
        assert "y measured" not in rows[0]
