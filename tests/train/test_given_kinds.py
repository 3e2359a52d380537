"""Everything that a run predicts for, and predictions as a file"""

from __future__ import annotations

import csv
import os
from pathlib import Path

import pytest
import torch
from torch_geometric.data import Data

import symgnn
from symgnn.cli import main
from symgnn.data import sample
from symgnn.train._trained_run import Run
from train.given_cases import WATER, trained


@pytest.fixture(scope="module")
def of_meshes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    data = {"path": str(sample("meshes")), "targets": "targets.csv", "columns": "shape"}
    data["fractions"] = [0.5, 0.25, 0.25]  # type: ignore[assignment]
    return trained(tmp_path_factory.mktemp("meshes"), data)


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
    with pytest.raises(ValueError, match=r"^y: graph 0 has no y"):
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
    with pytest.raises(ValueError, match="edges: is 'mesh', but the structure has no faces"):
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
