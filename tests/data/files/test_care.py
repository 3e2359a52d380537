"""What would change numbers silently: answers among the inputs, rounding, names, units, losses."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

from symgnn.data import load_files, read, splits

pytest.importorskip("ase")

WATER = "3\n{comment}\nO 0 0 0\nH 0.96 0 0\nH -0.24 0.93 0\n"
AMMONIA = "4\n{comment}\nN 0 0 0.1\nH 0 0.94 -0.27\nH 0.81 -0.47 -0.27\nH -0.81 -0.47 -0.27\n"


def waters(folder: Path, count: int = 4) -> None:
    for k in range(count):
        (folder / f"m{k}.xyz").write_text(WATER.format(comment=""))


def graph(**values: object) -> Data:
    edges = torch.tensor([[0, 1, 2], [1, 2, 0]])
    return Data(pos=torch.rand(3, 3), edge_index=edges, **values)


# ------------------------------------------------------------------ answers are no inputs


@pytest.mark.parametrize(("name", "level"), [("u", None), ("vel", "node-vectors")])
def test_a_value_that_is_asked_for_is_not_given(name: str, level: str | None) -> None:
    values = [torch.rand(1, 2) if name == "u" else torch.rand(3, 3) for _ in range(3)]
    found = read([graph(**{name: value}) for value in values], columns=name, level=level)
    assert all(name not in each for each in found)
    torch.testing.assert_close(found[1].y, values[1])


def test_all_targets_of_a_table_are_no_features(tmp_path: Path) -> None:
    for name in "ab":
        (tmp_path / f"{name}.csv").write_text("x,y,charge,mass\n0,0,1,5\n1,0,2,6\n0,1,3,7\n")
    rows = "\n".join(f"{name},{k},{k}.5" for name in "ab" for k in range(3))
    (tmp_path / "t.csv").write_text(f"name,node,charge\n{rows}\n")
    found = read(tmp_path, targets="t.csv")
    assert found[0].x.tolist() == [[5], [6], [7]]
    assert found[0].y.tolist() == [[0.5], [1.5], [2.5]]


# ------------------------------------------------------------------ numbers


@pytest.mark.parametrize(
    "cells",
    [
        ["1,5", "2,5", "-0,25", "3,5"],
        ["1,500", "2,500", "10,000", "3,500"],
        ["1 500", "2 500", "10 000", "900"],
        ["1.5 eV", "2.5 eV", "3.5 eV", "0.5 eV"],
        ["−1.5", "−2.5", "−3.5", "−0.5"],
        ["10%", "20%", "30%", "40%"],
        ["<0.1", "<0.2", ">3", "<0.5"],
        ["1.5±0.1", "2.5±0.1", "3.5±0.2", "0.5±0.1"],
    ],
)
def test_numbers_written_otherwise_are_no_classes(tmp_path: Path, cells: list[str]) -> None:
    waters(tmp_path)
    rows = "".join(f'm{k};"{cell}"\n' for k, cell in enumerate(cells))
    (tmp_path / "t.csv").write_text(f"name;e\n{rows}", encoding="utf-8")
    if not any(map(str.isdigit, cells)):  # where some are plain numbers, the others are wrong
        with pytest.raises(ValueError, match=r"^columns: e has .* looks like a number"):
            read(tmp_path, targets="t.csv")
    else:
        with pytest.raises(ValueError, match=r"t\.csv, row 2, column 'e'.* is not a number"):
            read(tmp_path, targets="t.csv")
    asked = read(tmp_path, targets="t.csv", kind="classification")
    assert set(asked.task.classes) == set(cells)


@pytest.mark.parametrize(
    "labels", [["1a", "2b"], ["cis", "trans"], ["A1", "B2"], ["3D", "2D"], ["2020-01-01", "x"]]
)
def test_labels_with_digits_are_classes(tmp_path: Path, labels: list[str]) -> None:
    waters(tmp_path, 2)
    rows = "".join(f"m{k},{label}\n" for k, label in enumerate(labels))
    (tmp_path / "t.csv").write_text(f"name,kind\n{rows}")
    assert set(read(tmp_path, targets="t.csv").task.classes) == set(labels)


def test_classes_are_as_they_are_written(tmp_path: Path) -> None:
    labels = ["001", "1", "1_2", "12", "9007199254740993", "9007199254740992", "2.0", "2"]
    waters(tmp_path, len(labels))
    rows = "".join(f"m{k},{label}\n" for k, label in enumerate(labels))
    (tmp_path / "t.csv").write_text(f"name,kind\n{rows}")
    found = read(tmp_path, targets="t.csv", kind="classification")
    assert set(found.task.classes) == {*labels} - {"2.0"}  # 2.0 is 2
    with pytest.raises(ValueError, match="'1_2' is not a number"):
        read(tmp_path, targets="t.csv")


def test_large_targets_keep_their_digits(tmp_path: Path) -> None:
    values = ["-76012.00123", "-76012.00223", "-76012.00323", "-76012.00423"]
    waters(tmp_path)
    rows = "".join(f"m{k},{value}\n" for k, value in enumerate(values))
    (tmp_path / "t.csv").write_text(f"name,e\n{rows}")
    found = read(tmp_path, targets="t.csv")
    assert [each.y.item() for each in found] == [float(value) for value in values]
    (tmp_path / "t.csv").write_text("name,e\nm0,1e39\nm1,2e39\nm2,3e39\nm3,4e39\n")
    assert all(each.y.isfinite().all() for each in read(tmp_path, targets="t.csv"))
    (tmp_path / "t.csv").write_text("name,e\nm0,1.5\nm1,2.5\nm2,300\nm3,4\n")
    assert read(tmp_path, targets="t.csv")[0].y.dtype == torch.float32


def test_far_coordinates(tmp_path: Path) -> None:
    """Edges are those of the coordinates as they are written; what float32 loses is refused."""
    points = np.random.default_rng(0).random((8, 2)).round(3)
    for name, offset in (("near", 0), ("far", 5_400_000)):
        rows = "".join(f"{x + offset:.3f},{y + offset:.3f}\n" for x, y in points)
        (tmp_path / f"{name}.csv").write_text("x,y\n" + rows)
    assert read(tmp_path / "near.csv", k=3)[0].num_edges >= 24
    with pytest.raises(ValueError, match=r"far\.csv: pos: is up to 540000.* subtract a constant"):
        read(tmp_path / "far.csv", k=3)


def test_units_are_those_of_velocities_and_answers_too(tmp_path: Path) -> None:
    pos = np.array([[[0, 0, 0], [0.096, 0, 0], [-0.024, 0.093, 0]]] * 2)
    np.savez(tmp_path / "a.npz", pos=pos, z=[8, 1, 1], vel=pos + 1, later=pos + 2)
    found = read(tmp_path / "a.npz", units="nm", columns="later", level="coordinates")[0]
    torch.testing.assert_close(found.y, found.pos + 20)
    torch.testing.assert_close(found.vel, found.pos + 10)


# ------------------------------------------------------------------ names


def test_nodes_keep_their_names(tmp_path: Path) -> None:
    (tmp_path / "nodes.csv").write_text("node,x,y\n10,0,0\n30,1,0\n20,0,1\n")
    (tmp_path / "edges.csv").write_text("source,target\n10,20\n20,30\n")
    (tmp_path / "t.csv").write_text(f"name,node,q\n{tmp_path.name},30,3\n{tmp_path.name},10,1\n")
    with pytest.raises(ValueError, match="no row for node 20"):
        read(tmp_path, targets="t.csv")
    with (tmp_path / "t.csv").open("a") as file:
        file.write(f"{tmp_path.name},20,2\n")
    found = read(tmp_path, targets="t.csv")[0]
    assert found.node_id == ["10", "30", "20"]
    assert found.y.flatten().tolist() == [1, 3, 2]


def test_a_dipole_of_three_atoms_is_one_of_the_molecule(tmp_path: Path) -> None:
    comment = 'Properties=species:S:1:pos:R:3 dipole="1 2 3" energy=-76.0'
    (tmp_path / "water.xyz").write_text(WATER.format(comment=comment))
    (tmp_path / "ammonia.xyz").write_text(AMMONIA.format(comment=comment))
    found = read(tmp_path, columns="dipole", level="graph-vectors")
    assert found.task.vectors == ("dipole",)
    assert found[1].y.tolist() == [[1, 2, 3]]


def test_names_are_as_they_are_written(tmp_path: Path) -> None:
    frames = [WATER.format(comment=f"name=00{k} energy={k}") for k in range(3)]
    (tmp_path / "a.xyz").write_text("".join(frames))
    assert read(tmp_path).names == ["000", "001", "002"]
    (tmp_path / "a.xyz").unlink()
    for name in "bc":
        (tmp_path / f"{name}.xyz").write_text(WATER.format(comment="name of this is water"))
    assert read(tmp_path).names == ["b", "c"]


def test_the_table_of_the_folder_goes_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, here = tmp_path / "data", tmp_path / "here"
    folder.mkdir()
    here.mkdir()
    waters(folder, 2)
    (folder / "t.csv").write_text("name,e\nm0,1\nm1,2\n")
    (here / "t.csv").write_text("name,e\nm0,100\nm1,200\n")
    monkeypatch.chdir(here)
    assert [each.y.item() for each in read(folder, targets="t.csv")] == [1, 2]
    assert [each.y.item() for each in read(folder, targets=here / "t.csv")] == [100, 200]


# ------------------------------------------------------------------ what is lost, and what is not


def test_good_frames_before_a_bad_one_are_kept(tmp_path: Path) -> None:
    path = tmp_path / "t.xyz"
    path.write_text(WATER.format(comment="") * 5 + "garbage\n")
    with pytest.raises(ValueError, match=r"frame 5: begins with 'garbage'"):
        read(path)
    with pytest.warns(UserWarning, match="left out 1 and kept 5"):
        assert len(read(path, on_error="skip")) == 5


def test_structures_without_the_value_are_left_out(tmp_path: Path) -> None:
    for k in range(3):
        (tmp_path / f"m{k}.xyz").write_text(WATER.format(comment="" if k == 1 else f"e={k}.5"))
    with pytest.raises(ValueError, match=r"'e' is not a value of .*m1"):
        read(tmp_path, columns="e")
    with pytest.warns(UserWarning, match="left out 1 and kept 2"):
        found = read(tmp_path, columns="e", on_error="skip")
    assert found.names == ["m0", "m2"]


def test_a_byte_order_mark(tmp_path: Path) -> None:
    (tmp_path / "a.xyz").write_text(WATER.format(comment=""), encoding="utf-8-sig")
    assert read(tmp_path)[0].num_nodes == 3


# ------------------------------------------------------------------ meshes

TETRAHEDRON = "v 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\n"


@pytest.mark.parametrize("suffix", ["ply", "off"])
def test_a_mesh_that_is_cut_off(tmp_path: Path, suffix: str) -> None:
    trimesh = pytest.importorskip("trimesh")
    path = tmp_path / f"a.{suffix}"
    options = {"encoding": "ascii"} if suffix == "ply" else {}
    trimesh.creation.icosphere(subdivisions=1).export(path, **options)
    assert read(path)[0].num_edges == 240
    text = path.read_text()
    path.write_text(text[:-100])
    with pytest.raises(ValueError, match=r"is cut off: it has \d+ of 122"):
        read(path)


def test_a_small_stl_keeps_its_shape(tmp_path: Path) -> None:
    trimesh = pytest.importorskip("trimesh")
    trimesh.creation.icosphere(subdivisions=1, radius=5e-9).export(tmp_path / "a.stl")
    found = read(tmp_path)[0]
    assert (found.num_nodes, found.num_edges) == (42, 240)


def test_an_stl_of_two_solids(tmp_path: Path) -> None:
    trimesh = pytest.importorskip("trimesh")
    solids = [
        trimesh.creation.box(),
        trimesh.creation.icosphere(subdivisions=0).apply_translation([5, 0, 0]),
    ]
    texts = [solid.export(file_type="stl_ascii") for solid in solids]
    named = [text.replace("solid", f"solid s{k}", 1) for k, text in enumerate(texts)]
    (tmp_path / "two.stl").write_text("\n".join(named) + "\n")
    found = read(tmp_path)[0]
    assert (found.num_nodes, found.num_edges) == (8 + 12, 2 * (18 + 30))


def test_lines_of_an_obj_are_edges(tmp_path: Path) -> None:
    pytest.importorskip("trimesh")
    path = tmp_path / "a.obj"
    path.write_text(TETRAHEDRON + "l 1 2 3 4\n")
    assert read(path)[0].edge_index.T.tolist() == [[0, 1], [1, 0], [1, 2], [2, 1], [2, 3], [3, 2]]
    path.write_text(TETRAHEDRON + "f 1 2 3\nl 3 4\n")
    assert read(path)[0].num_edges == 8
    path.write_text(TETRAHEDRON + "f -9 1 2\n")
    with pytest.raises(ValueError, match=r"line 5: 'f -9 1 2' names a vertex that is not there"):
        read(path)


# ------------------------------------------------------------------ options of a wrong kind


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"columns": 5}, "^columns: is 5; give a name"),
        ({"elements": 5}, "^elements: is 5"),
        ({"workers": "x"}, "^workers: is 'x'"),
        ({"seed": "abc"}, "^seed: is 'abc'"),
        ({"seed": 1.5}, "^seed: is 1.5"),
        ({"fractions": 0.8}, "^fractions: are 0.8"),
        ({"fractions": ["a", "b", "c"]}, "^fractions: are"),
        ({"scale": "big"}, "^scale: is 'big'"),
        ({"directed": "perhaps"}, "^directed: is 'perhaps'"),
        ({"columns": ["e", "e"]}, "^columns: names 'e' twice"),
    ],
)
def test_options_of_a_wrong_kind(tmp_path: Path, options: dict, message: str) -> None:
    waters(tmp_path, 10)
    (tmp_path / "t.csv").write_text("name,e\n" + "".join(f"m{k},{k}\n" for k in range(10)))
    given = {"path": tmp_path, "targets": "t.csv", **options}
    with pytest.raises(ValueError, match=message):
        load_files(**given)


def test_paths_and_frames(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"^path: is '5'"):
        read(5)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"^path: nothing could be read; no files"):
        read([])
    # as many frames as nodes: numbers of atoms and features are those of all frames
    pos = np.random.default_rng(0).random((5, 5, 3))
    np.savez(tmp_path / "a.npz", pos=pos, z=[6, 1, 1, 1, 1], x=np.eye(5))
    found = read(tmp_path / "a.npz", units="angstrom", k=2)
    assert found[3].z.tolist() == [6, 1, 1, 1, 1]
    assert found[3].x.shape == (5, 5)
    with pytest.raises(ValueError, match=r"^edge_index: graph 0 has no edge_index"):
        splits([Data(pos=torch.rand(3, 2), y=torch.rand(1, 1))] * 4, task=found_task())


def found_task() -> object:
    from symgnn.data._task import Task

    return Task("graph", "regression", ("e",), ("",))
