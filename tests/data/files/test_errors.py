"""What is wrong with files or options is said in one line: the file, the place in it, the fix."""

from pathlib import Path

import ase
import ase.io
import numpy as np
import pytest
import torch
from torch_geometric.data import Data

from symgnn.data import read, sample
from symgnn.data.files import _file_structure as file_structure
from symgnn.data.files import _formats as formats

WATER = "3\nwater\nO 0 0 0\nH 0.96 0 0\nH -0.24 0.93 0\n"
AMMONIA = "4\nammonia\nN 0 0 0\nH 1 0 0\nH -0.3 0.95 0\nH -0.3 -0.5 0.8\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "water.xyz").write_text(WATER)
    (tmp_path / "ammonia.xyz").write_text(AMMONIA)
    return tmp_path


def one_line(error: pytest.ExceptionInfo[ValueError]) -> str:
    text = str(error.value)
    assert "\n" not in text
    return text


# ---------------------------------------------------------------- files


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.xyz", "3\n\nO 0 0 0\nH 1 0 0\n", r"a\.xyz, frame 0: .*it has 2 atoms, expected 3"),
        ("a.xyz", "O 0 0 0\n", r"a\.xyz, frame 0: begins with 'O 0 0 0'; .*number of atoms"),
        ("a.xyz", "1\n\nQq 0 0 0\n", r"a\.xyz: 'Qq' is not an element"),
        ("a.xyz", "2\n\nO 0 0 0\nH 0 nan 1\n", r"a\.xyz: pos: row 1 is \[0\.0, nan, 1\.0\]"),
        ("a.xyz", "", r"a\.xyz: is empty"),
        ("a.xyz", f"{WATER}1\n\nO 0 0\n", r"a\.xyz, frame 1: "),
        ("a.xyz", b"\xff\xfe\x00", r"a\.xyz: is not text in UTF-8"),
        ("a.sdf", "nonsense\n$$$$\n", r"a\.sdf: RDKit cannot read it"),
        ("a.smi", "CCO ethanol\nC(C)(C)(C)(C)C odd\n", r"a\.smi, row 2: odd .*: RDKit rejects it: "
         r"Explicit valence for atom # 0 C, 5, is greater than permitted"),
        ("a.smi", "xyz strange\n", r"a\.smi, row 1: strange: RDKit cannot read the SMILES 'xyz'"),
        ("a.csv", "name,smiles\nring,c1cccc1\n", r"a\.csv, row 2: ring \(c1cccc1\): RDKit "),
        ("a.smi", "[Na+].[Cl-] salt\n", r"a\.smi, row 1: salt .*: it has 2 molecules, and RDKit"),
        ("a.xyz", "2\n\nO 1 1 1\nO 1 1 1\n", r"a\.xyz: nearest atoms are 0 .* look wrong: correct"),
        ("a.csv", "name,smiles\nnone,\n", r"a\.csv, row 2: none: RDKit cannot read the SMILES ''"),
        ("a.off", "OFF\n4 1 0\n0 0 0\n1 0 0\n", r"a\.off: is cut off: it has 2 of 5"),
        ("a.obj", "", r"a\.obj: has no mesh"),
        ("a.ply", "ply\nformat ascii 1.0\n", r"a\.ply: is damaged: its header has no end"),
        ("a.csv", "x,y\n0,1\n0,\n", r"a\.csv, row 3, column 'y': is empty; give a number"),
        ("a.csv", "x,y\n0,1\n0,far\n", r"a\.csv, row 3, column 'y': 'far' is not a number"),
        ("a.csv", "x,y\n0,inf\n", r"a\.csv, row 2, column 'y': is inf; give a finite number"),
        ("a.csv", "x,y\n0,1\n0,1,2\n", r"a\.csv, row 3: has 3 cells, but the header has 2"),
        ("a.csv", "x,x\n0,1\n", r"a\.csv: has two columns 'x'"),
        ("a.csv", "x,y\n", r"a\.csv: has a header but no rows"),
        ("a.csv", "x,kind\n0,leaf\n", r"a\.csv, row 2, column 'kind': 'leaf' is not a number"),
        ("a.csv", "graph,x\n,0\n", r"a\.csv, row 2, column 'graph': is empty"),
        ("a.csv", b"x,y\n\xff,1\n", r"a\.csv: is not text in UTF-8"),
        ("a.npz", b"PK", r"a\.npz: "),
        ("a.pt", b"", r"a\.pt: cannot be read with weights only"),
        ("a.cif", "data_\n", r"a\.cif: has no structures"),
    ],
)  # fmt: skip
def test_broken_files(tmp_path: Path, name: str, content: str | bytes, message: str) -> None:
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(ValueError, match=message) as error:
        read(path)
    one_line(error)


@pytest.mark.parametrize(
    ("nodes", "edges", "message"),
    [
        ("x\n0\n1\n", "source,target\n0,2\n", r"edges\.csv, row 2, column 'target': there is no "
         r"node '2'; there are 0, 1"),
        ("node,x\na,0\na,1\n", "source,target\na,a\n", r"nodes\.csv, row 3, .*'a' occurs twice"),
        ("x\n0\n1\n", "source,target\n0,1\n0,1\n", r"edges\.csv, row 3: is the same edge as row 2"),
        ("x\n0\n1\n", "from,to\n0,1\n", r"'source' is not a column of edges\.csv"),
        ("graph,x\ng,0\ng,1\n", "source,target\n0,1\n", r"edges\.csv: has to have a column"),
        ("graph,x\ng,0\ng,1\n", "graph,source,target\nh,0,1\n", r"edges\.csv, row 2, column 'graph'"
         r": no node of nodes\.csv is in a graph 'h'"),
        ("x\n0\n1\n", "source,target,w\n0,1,\n", r"edges\.csv, row 2, column 'w': is empty"),
    ],
)  # fmt: skip
def test_broken_edges(tmp_path: Path, nodes: str, edges: str, message: str) -> None:
    (tmp_path / "nodes.csv").write_text(nodes)
    (tmp_path / "edges.csv").write_text(edges)
    with pytest.raises(ValueError, match=message) as error:
        read(tmp_path)
    one_line(error)


def test_folders_without_structures(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"path: the folder .* has no files; structures are \.xyz"):
        read(tmp_path)
    (tmp_path / "a.docx").touch()
    (tmp_path / "table.csv").write_text("name,gap\na,1\n")
    with pytest.raises(ValueError, match=r"has only files \.csv, \.docx"):
        read(tmp_path)
    with pytest.raises(ValueError, match=r"table\.csv: has no structures; its header needs col"):
        read(tmp_path / "table.csv")
    with pytest.raises(ValueError, match=r"path: there is no .*nothing\.xyz; give a file, a fol"):
        read(tmp_path / "nothing.xyz")
    with pytest.raises(ValueError, match=r"path: there is no .*\*\.xyz"):
        read(tmp_path / "*.xyz")


def test_names_of_targets_in_place_of_a_table(folder: Path) -> None:
    with pytest.raises(ValueError, match=r"path of a CSV; .* columns=\['energy'\]") as error:
        read(folder, targets=["energy"])  # type: ignore[arg-type]
    one_line(error)


def test_two_of_the_same_name(tmp_path: Path) -> None:
    for name in "ab":
        (tmp_path / name).mkdir()
        (tmp_path / name / "water.xyz").write_text(WATER)
    paths = [tmp_path / name / "water.xyz" for name in "ab"]
    with pytest.raises(
        ValueError, match=r"a/water\.xyz and .*b/water\.xyz are both called 'water'"
    ):
        read(paths)
    assert read(tmp_path).names == ["a/water", "b/water"]
    (tmp_path / "t.csv").write_text("name,gap\nwater,1\n")
    with pytest.raises(ValueError, match=r"t\.csv, row 2, column 'name': 'water' fits both"):
        read(tmp_path, targets="t.csv")


def test_mixed_dimensions_and_features(tmp_path: Path) -> None:
    (tmp_path / "flat.csv").write_text("x,y\n0,0\n1,1\n")
    (tmp_path / "solid.csv").write_text("x,y,z\n0,0,0\n1,1,1\n")
    with pytest.raises(
        ValueError, match=r"pos: .*flat\.csv has 2 coordinates, but .*solid\.csv has 3"
    ):
        read(tmp_path)
    mixed = [sample("molecules") / "water.xyz", sample("sdf")]
    with pytest.raises(ValueError, match=r"name: .* are both called 'water'"):
        read(mixed)
    (tmp_path / "a.smi").write_text("CC ethane\n")
    with pytest.raises(ValueError, match=r"edge_attr: .*water\.xyz has 0 features, but .*a\.smi"):
        read([mixed[0], tmp_path / "a.smi"])


def test_an_extra_that_is_not_installed(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_structure, "find_spec", lambda package: None)
    with pytest.raises(ValueError, match=r"\.xyz: needs ase; .* pip install symgnn\[molecules\]"):
        read(folder, on_error="skip")
    with pytest.raises(ValueError, match=r"needs trimesh; .* pip install symgnn\[mesh\]"):
        read(sample("meshes"))
    assert len(read(sample("points"), columns=["rim"])) == 12
    assert formats.READERS[".sdf"].package == "rdkit"


# ---------------------------------------------------------------- periodic


def test_periodic_boundaries_are_refused(tmp_path: Path) -> None:
    box = ase.Atoms("Cu4", [[0, 0, 0], [0, 1.8, 1.8], [1.8, 0, 1.8], [1.8, 1.8, 0]], cell=[3.6] * 3)
    box.pbc = (True, True, False)
    ase.io.write(tmp_path / "copper.xyz", box, format="extxyz")
    message = (
        r"copper\.xyz: pbc: the structure is periodic along a, b; pass cell='keep' for edges across"
    )
    with pytest.raises(ValueError, match=message) as error:
        read(tmp_path, cell="refuse")
    one_line(error)
    assert read(tmp_path, cell="drop")[0].num_edges == 12
    with pytest.raises(
        ValueError, match="pbc: nearest neighbours are not supported in periodic cells"
    ):
        read(tmp_path, k=4)


# ---------------------------------------------------------------- options


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"edges": "bond"}, "edges: 'bond' is not known; did you mean 'bonds'"),
        ({"edges": "radius"}, "radius: is missing; edges='radius' needs it"),
        ({"edges": "bonds", "radius": 3.0}, "radius: is 3.0, but edges='bonds' does not use it"),
        (
            {"k": 3, "radius": 3.0},
            "k: is 3, but edges='radius' does not use it|radius: is 3.0, but",
        ),
        ({"edges": "mesh"}, r"ammonia\.xyz: edges: is 'mesh', but the structure has no faces"),
        ({"edges": "given"}, r"ammonia\.xyz: edges: is 'given', but the structure has no edges"),
        ({"k": 0}, "k: is 0; give a whole number of at least 1"),
        ({"radius": -1.0}, "r: is .*; give a finite number of at least 0"),
        ({"cell": "wrap"}, "cell: 'wrap' is not known; choose from keep, refuse, drop"),
        ({"on_error": "ignore"}, "on_error: 'ignore' is not known; choose from raise, skip"),
        ({"level": "atom"}, "level: 'atom' is not known"),
        ({"kind": "classify"}, "kind: 'classify' is not known; did you mean 'classification'"),
        ({"units": "A"}, "units: 'A' is not a known length of atoms; .*angstrom, bohr, nm, pm"),
        ({"elements": ["C", "H", "O"]}, r"ammonia\.xyz: atom 0 is N, which is not among elements"),
        ({"elements": ["Xy"]}, "elements: 'Xy' is not the symbol of an element"),
        ({"features": ["charge"]}, r"features: 'charge' is not a value that .*ammonia\.xyz has"),
        ({"columns": ["gap"]}, r"columns: 'gap' is not a value of .*ammonia\.xyz"),
        ({"targets": "none.csv"}, r"targets: there is no file none\.csv, nor in "),
    ],
)
def test_wrong_options(folder: Path, options: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message) as error:
        read(folder, **options)
    one_line(error)


def test_wrong_graphs_in_memory() -> None:
    with pytest.raises(ValueError, match="graph 0: has no pos, but x"):
        read([Data(x=torch.zeros(2, 1))])
    far = Data(pos=torch.zeros(2, 3), edge_index=torch.tensor([[0], [5]]))
    with pytest.raises(ValueError, match="graph 0: edge_index: names node 5"):
        read([far])
    short = {"x": torch.zeros(1, 1), "z": torch.ones(3, dtype=torch.long)}
    for name, value in short.items():
        with pytest.raises(ValueError, match=f"graph 0: {name}: has {len(value)} rows for 2 nodes"):
            read([Data(pos=torch.zeros(2, 3), **{name: value})])
    with pytest.raises(ValueError, match="graph 0: z: is float32; atomic numbers are whole"):
        read([Data(pos=torch.zeros(2, 3), z=torch.ones(2))])
    with pytest.raises(ValueError, match="graph 0: face: names vertex 2, but there are 0 to 1"):
        read([Data(pos=torch.zeros(2, 3), face=torch.tensor([[0], [1], [2]]))])
    with pytest.raises(ValueError, match="graph 0: has no nodes"):
        read([Data(pos=torch.zeros(0, 3))])


# ---------------------------------------------------------------- skipping


def test_skipping_says_how_many_and_which(tmp_path: Path) -> None:
    (tmp_path / "a.smi").write_text("CCO ethanol\nC(C)(C)(C)(C)C odd\nO water\nnot_one what\n")
    (tmp_path / "b.xyz").write_text("2\n\nO 0 0 nan\nH 0 0 1\n")
    with pytest.warns(UserWarning, match=r"left out 3 and kept 2: .*odd.*; .*b\.xyz: pos: row 0"):
        graphs = read(tmp_path, on_error="skip")
    assert graphs.names == ["ethanol", "water"]
    assert [
        part in reason
        for part, reason in zip(
            ("row 2: odd", "row 4: what", "b.xyz: pos"), graphs.skipped, strict=True
        )
    ] == [True] * 3


def test_nothing_left(tmp_path: Path) -> None:
    (tmp_path / "a.smi").write_text("C(C)(C)(C)(C)C odd\n")
    with pytest.raises(ValueError, match=r"path: nothing could be read; .*odd.*RDKit rejects it"):
        read(tmp_path, on_error="skip")


# ---------------------------------------------------------------- units


@pytest.mark.parametrize(("factor", "unit"), [(1.889726, "bohr"), (0.1, "nm"), (100.0, "pm")])
def test_other_units_are_noticed_and_converted(tmp_path: Path, factor: float, unit: str) -> None:
    from ase.collections import g2

    right = [atoms for atoms in g2 if len(atoms) > 1]
    for index, atoms in enumerate(right):
        (tmp_path / f"{index:03}").mkdir()
        wrong = ase.Atoms(atoms.numbers, atoms.positions * factor)
        path = tmp_path / f"{index:03}" / "a.xyz"
        ase.io.write(path, wrong, format="extxyz")
        if index % 15 == 0:
            with pytest.raises(ValueError, match=rf"units: .*pass units='{unit}', or units='ang"):
                read(path)
    message = rf"units: .*000/a\.xyz \(and {len(right) - 1} more\): nearest atoms are .* look like"
    with pytest.raises(ValueError, match=message) as error:
        read(tmp_path)
    one_line(error)
    found = read(tmp_path, units=unit)
    for graph, atoms in zip(found, right, strict=True):
        assert np.allclose(graph.pos, atoms.positions, atol=1e-4)
    as_it_is = read(tmp_path, units="angstrom")
    assert np.allclose(as_it_is[0].pos, right[0].positions * factor, atol=1e-4)


def test_units_are_not_guessed_for_a_single_atom(tmp_path: Path) -> None:
    (tmp_path / "he.xyz").write_text("1\n\nHe 0 0 0\n")
    (graph,) = read(tmp_path)
    assert (graph.num_nodes, graph.num_edges) == (1, 0)
