"""QM9: its sources, its bonds, its splits and targets."""

import dataclasses
import io
import tarfile
from pathlib import Path

import numpy as np
import pytest
import torch
from torch_geometric.datasets.qm9 import atomrefs
from torch_geometric.loader import DataLoader
from torch_geometric.utils import degree, is_undirected

from shared_data import shared
from symgnn.data import _qm9_files as qm9_files
from symgnn.data import load
from symgnn.data._bonds import BOND_TYPES, Origin, find_bonds
from symgnn.data._packed_graphs import starts
from symgnn.data._qm9 import ATOM_ENERGIES, TARGETS, split
from symgnn.data._qm9_files import COLUMNS, MOLECULES, parse_xyz, read_archive, read_molecules

#: A molecule as the archive has it, exponents and all.
METHANE = """5
gdb 1\t157.7118\t157.70997\t157.70699\t0.\t13.21\t-0.3877\t0.1171\t0.5048\t35.3641\t0.044749\t\
-40.47893\t-40.476062\t-40.475117\t-40.498597\t6.469\t
C\t-0.0126981359\t 1.0858041578\t 0.0080009958\t-0.535689
H\t 0.002150416\t-0.0060313176\t 0.0019761204\t 0.133921
H\t 1.0117308433\t 1.4637511618\t 2.765748*^-4\t 0.133922
H\t-0.540815069\t 1.4475266138\t-0.8766437152\t 0.133923
H\t-0.5238136345\t 1.4379326443\t 0.9063972942\t 0.133923
1341.307\t1341.3284\t1341.365\t1562.6731\t1562.7453\t3038.3205\t3151.6034\t3151.6788\t3151.7078
C\tC\t
InChI=1S/CH4/h1H4\tInChI=1S/CH4/h1H4
"""


@pytest.fixture(scope="module")
def sample() -> dict[str, np.ndarray]:
    return read_molecules("sample")[0]


def molecule(sample: dict[str, np.ndarray], smiles: str) -> tuple[np.ndarray, np.ndarray]:
    """Coordinates and elements."""
    row = sample["smiles"].tolist().index(smiles.encode())
    begin, end = starts(sample["n_atoms"])[row : row + 2]
    return sample["pos"][begin:end], sample["z"][begin:end]


# ---------------------------------------------------------------- sources


def archive(folder: Path, *texts: str) -> Path:
    path = folder / "dsgdb9nsd.xyz.tar.bz2"
    with tarfile.open(path, "w:bz2") as file:
        for number, text in enumerate(texts, 1):
            info = tarfile.TarInfo(f"dsgdb9nsd_{number:06d}.xyz")
            info.size = len(text.encode())
            file.addfile(info, io.BytesIO(text.encode()))
    return path


def test_the_archive_has_what_the_sample_has(tmp_path: Path, sample: dict[str, np.ndarray]) -> None:
    other = METHANE.replace("gdb 1\t", "gdb 7\t")
    found = read_archive(archive(tmp_path, other, METHANE, METHANE.replace("gdb 1", "gdb 3")), {3})
    assert found["index"].tolist() == [1, 7]
    for name in ("z", "n_atoms", "index", "smiles"):
        np.testing.assert_array_equal(found[name][:1], sample[name][:1])
    np.testing.assert_array_equal(found["y"][0], sample["y"][0])
    np.testing.assert_array_equal(found["pos"][:5], sample["pos"][:5])


def test_loaded_from_a_folder_with_the_archive(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As published: the archive, and the list of those to leave out, of which number 2 is one."""
    texts = [METHANE.replace("gdb 1\t", f"gdb {number}\t") for number in range(1, 11)]
    archive(tmp_path, *texts)
    rows = "\n".join(f"{number}  C" for number in (2, *range(9000, 9000 + 3053)))
    (tmp_path / "uncharacterized.txt").write_text(rows)
    for name in ("ARCHIVE", "EXCLUDED"):
        unchecked = dataclasses.replace(getattr(qm9_files, name), digest="", size=0)
        monkeypatch.setattr(qm9_files, name, unchecked)
    found = load("qm9", source=tmp_path, root=tmp_path / "cache")
    assert found.about["molecules"] == 9
    numbers = [data.number for part in (found.train, found.validation, found.test) for data in part]
    assert sorted(numbers) == [1, 3, 4, 5, 6, 7, 8, 9, 10]
    assert found.train[0].num_edges == 8
    assert {path.name for path in (tmp_path / "cache" / "qm9").glob("mol*")} == {
        "molecules-archive.npz"
    }


@pytest.mark.parametrize(
    "text",
    [
        "",
        "5\n",
        METHANE.replace("35.3641\t", ""),
        "x" + METHANE,
        METHANE.replace("gdb 1\t", "gdb 99999999999\t"),
        "-1" + METHANE[1:],
        "999999999" + METHANE[1:],
    ],
)
def test_a_broken_file_in_the_archive(text: str) -> None:
    with pytest.raises(ValueError, match=r"^some.xyz: is not a file of QM9 .*replace the archive"):
        parse_xyz(text, "some.xyz")


def test_the_list_of_excluded_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "uncharacterized.txt"
    rows = [f"  {number}   C#N   N#C  0.1 0.2" for number in range(100, 100 + 3054)]
    path.write_text("\n".join(["Molecules", "======", " Index  SMILES", *rows, "3054 ", ""]))
    assert qm9_files.read_excluded(path) == set(range(100, 3154))
    path.write_text("\n".join(rows[1:]))
    with pytest.raises(ValueError, match="lists 3053 molecules, not 3054"):
        qm9_files.read_excluded(path)


def write(path: Path, arrays: dict[str, np.ndarray], **changes: np.ndarray) -> Path:
    np.savez(path, **{"y_names": np.array(COLUMNS), **arrays, **changes})
    return path


def test_an_npz_file(tmp_path: Path, sample: dict[str, np.ndarray]) -> None:
    path = write(tmp_path / "qm9.npz", sample)
    for source in (path, tmp_path):
        found, origin = read_molecules(source)
        assert origin == str(path)
        np.testing.assert_array_equal(found["pos"], sample["pos"])


def test_wrong_npz_files(tmp_path: Path, sample: dict[str, np.ndarray]) -> None:
    path = tmp_path / "qm9.npz"
    names = np.array([name.replace("HOMO_au", "HOMO_eV") for name in COLUMNS])
    wrong = {
        "y_names: 'HOMO_eV' is not possible; expected 'HOMO_au'": {"y_names": names},
        "pos: hydrogens are 2.0. from the nearest": {"pos": sample["pos"] / 0.529177},
        "pos: some values are not finite": {"pos": np.full_like(sample["pos"], np.nan)},
        r"y: shape \(20, 14\); expected \(20, 15\)": {"y": sample["y"][:, 1:]},
        "z: 17 is none of H, C, N, O, F": {"z": np.where(sample["z"] == 9, 17, sample["z"])},
    }
    for message, change in wrong.items():
        with pytest.raises(ValueError, match=f"qm9.npz: {message}"):
            read_molecules(write(path, sample, **change))
    np.savez(path, pos=sample["pos"])
    with pytest.raises(ValueError, match="has no array index, n_atoms, smiles, y, z"):
        read_molecules(path)
    path.write_bytes(b"PK no archive")
    with pytest.raises(ValueError, match="cannot be read as npz"):
        read_molecules(path)


def test_nothing_there_and_no_network(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SYMGNN_DATA", raising=False)
    monkeypatch.setattr(qm9_files, "package", lambda: None)
    unreachable = qm9_files.Source("qm9", "archive", ("http://127.0.0.1:9/",), "md5:0", 5)
    monkeypatch.setattr(qm9_files, "ARCHIVE", unreachable)
    with pytest.raises(OSError, match=r"Put archive \(md5 0, .*pip install qm9pack"):
        load("qm9", root=tmp_path)
    with pytest.raises(ValueError, match="qm9pack is not installed"):
        load("qm9", root=tmp_path, source="qm9pack")


def test_the_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A table as the package has them, of the first two molecules; and it is kept."""
    head = ["Index", "SMILES", "Elements", "XYZ_Ang", *COLUMNS]
    rows = [
        [1, "C", "\"['C','H']\"", '"[[0.0,0.5,1e-3],[0.0,0.0,1.1]]"', *range(15)],
        [9, "N", "\"['N','H']\"", '"[[1.0,0.5,-2.5],[1.0,0.5,-1.5]]"', *range(15)],
    ]
    lines = [",".join(map(str, row)) for row in (head, *rows)]
    pytest.importorskip("pandas")
    (tmp_path / "qm9_part1.csv").write_text("\n".join(lines))
    monkeypatch.setattr(qm9_files, "package", lambda: tmp_path)
    monkeypatch.setattr(qm9_files, "_version", lambda: "1")
    for _ in range(2):
        found, origin = read_molecules("qm9pack", root=tmp_path)
        assert origin == "qm9pack 1"
        assert found["z"].tolist() == [6, 1, 7, 1]
        assert found["index"].tolist() == [1, 9]
        assert found["pos"][2].tolist() == [1.0, 0.5, -2.5]
        assert found["y"].tolist() == 2 * [list(range(15))]
        (tmp_path / "qm9_part1.csv").unlink(missing_ok=True)


@pytest.mark.slow
def test_the_package_has_what_the_npz_has(tmp_path: Path) -> None:
    if qm9_files.package() is None:
        pytest.skip("qm9pack is not installed")
    published, _ = read_molecules("qm9pack", root=tmp_path)
    other, _ = read_molecules(shared("qm9"))
    assert len(published["index"]) == MOLECULES
    for name, array in published.items():
        np.testing.assert_array_equal(array, other[name])


# ---------------------------------------------------------------- bonds


def test_bonds_from_the_string(sample: dict[str, np.ndarray]) -> None:
    found = find_bonds(*molecule(sample, "C1=CC=CC=C1"), "C1=CC=CC=C1")
    assert found.origin is Origin.SMILES
    assert [BOND_TYPES[kind] for kind in found.types] == 6 * ["aromatic"] + 6 * ["single"]
    assert sorted(map(sorted, found.pairs[6:].tolist())) == [[k, k + 6] for k in range(6)]


@pytest.mark.parametrize("smiles", ["", "C", "C#CC=C", "CCCC", "not a molecule", "N#CC#C"])
def test_bonds_from_geometry_where_the_string_does_not_fit(
    sample: dict[str, np.ndarray], smiles: str
) -> None:
    """Butadiyne, whose coordinates are in another order than its string."""
    pos, z = molecule(sample, "C#CC#C")
    assert find_bonds(pos, z, "C#CC#C").origin is Origin.GEOMETRY
    found = find_bonds(pos, z, smiles)
    assert found.origin is Origin.GEOMETRY
    assert sorted(BOND_TYPES[kind] for kind in found.types) == 3 * ["single"] + 2 * ["triple"]


def test_both_ways_agree(sample: dict[str, np.ndarray]) -> None:
    for text in sample["smiles"].tolist():
        if b"+" in text:
            continue  # from geometry, charges may be elsewhere
        pos, z = molecule(sample, text.decode())
        found = [find_bonds(pos, z, smiles) for smiles in (text.decode(), "")]
        first, second = (
            sorted(
                (*sorted(pair), kind) for pair, kind in zip(b.pairs.tolist(), b.types, strict=True)
            )
            for b in found
        )
        assert first == second, text


def test_bonds_without_orders() -> None:
    """Two hydrogens at a helium-like place: connected, but RDKit knows no such molecule."""
    pos = np.array([[0.0, 0, 0], [1.0, 0, 0], [-1.0, 0, 0], [0, 1.0, 0], [0, -1.0, 0], [0, 0, 1.0]])
    found = find_bonds(pos, np.array([6, 1, 1, 1, 1, 1]))
    assert found.origin is Origin.CONNECTIVITY
    assert set(found.types.tolist()) == {0}


# ---------------------------------------------------------------- graphs


def test_graphs(tmp_path: Path) -> None:
    found = load("qm9", source="sample", root=tmp_path)
    assert [len(part) for part in (found.train, found.validation, found.test)] == [14, 1, 5]
    assert found.task.targets == tuple(TARGETS)
    assert len(found.task.units) == 12
    assert found.about["bonds"] == {"smiles": 19, "geometry": 1, "connectivity": 0}
    by_number = {data.number: data for part in (found.train, found.test) for data in part}
    water = by_number[3]
    assert water.z.tolist() == [8, 1, 1]
    assert water.edge_index.tolist() == [[1, 2, 0, 0], [0, 0, 1, 2]]
    assert water.edge_attr.tolist() == 4 * [[1, 0, 0, 0]]
    assert water.x.tolist() == [[0, 0, 0, 1, 0], [1, 0, 0, 0, 0], [1, 0, 0, 0, 0]]
    lengths = (water.pos[0] - water.pos[1:]).norm(dim=1) / found.scale
    assert torch.allclose(lengths, torch.tensor(0.962), atol=2e-3)
    mean, std = torch.tensor(found.about["mean"]), torch.tensor(found.about["std"])
    assert float((water.y[0] * std + mean)[0]) == pytest.approx(1.8511, abs=1e-5)
    for data in found.train:
        assert is_undirected(data.edge_index, data.edge_attr)
    y = torch.cat([data.y for data in found.train]).double()
    assert torch.allclose(y.mean(0), torch.zeros(12, dtype=torch.float64), atol=1e-6)
    assert torch.allclose(y.std(0, correction=0), torch.ones(12, dtype=torch.float64), atol=1e-6)
    batch = next(iter(DataLoader(found.train, batch_size=14)))
    assert batch.y.shape == (14, 12)


def test_complete_graphs(tmp_path: Path) -> None:
    bonds = load("qm9", source="sample", root=tmp_path, scale=1.0)
    complete = load("qm9", source="sample", root=tmp_path, scale=1.0, complete=True)
    for small, large in zip(bonds.train, complete.train, strict=True):
        count = small.num_nodes
        assert large.num_edges == count * (count - 1)
        assert (degree(large.edge_index[1]) == count - 1).all()
        bonded = large.edge_attr.sum(1) > 0
        assert torch.equal(large.edge_index[:, bonded], small.edge_index)
        assert torch.equal(large.edge_attr[bonded], small.edge_attr)


def test_features_of_pyg(tmp_path: Path) -> None:
    """Elements, atomic number, aromatic, sp, sp2, sp3, number of bonded hydrogens, by hand."""
    found = load("qm9", source="sample", root=tmp_path, features="pyg", limit=None)
    graphs = [*found.train, *found.validation, *found.test]
    by_formula = {tuple(sorted(data.z.tolist())): data for data in graphs}

    def heavy(*numbers: int) -> list[list[float]]:
        data = by_formula[tuple(sorted(numbers))]
        assert data.x.shape == (len(numbers), 11)
        assert torch.equal(data.x[:, 5].long(), data.z)
        assert (data.x[data.z == 1, 6:] == 0).all()  # hydrogens: neither hybrid nor bonded to H
        return data.x[data.z > 1, 6:].tolist()

    assert heavy(6, 1, 1, 1, 1) == [[0, 0, 0, 1, 4]]
    assert heavy(8, 1, 1) == [[0, 0, 0, 1, 2]]
    assert sorted(heavy(6, 6, 1, 1)) == 2 * [[0, 1, 0, 0, 1]]
    assert sorted(heavy(6, 8, 1, 1)) == [[0, 0, 1, 0, 0], [0, 0, 1, 0, 2]]
    assert heavy(*6 * [6], *6 * [1]) == 6 * [[1, 0, 1, 0, 1]]
    plain = load("qm9", source="sample", root=tmp_path)
    for one, other in zip(plain.train, found.train, strict=True):
        assert torch.equal(one.x, other.x[:, :5])
    with pytest.raises(ValueError, match="features: 'mace' is not known; choose from"):
        load("qm9", source="sample", root=tmp_path, features="mace")


def test_options(tmp_path: Path) -> None:
    found = load(
        "qm9",
        source="sample",
        root=tmp_path,
        targets=["gap", "u0"],
        standardise=False,
        limit=[3, 1, 2],
    )
    assert [len(part) for part in (found.train, found.validation, found.test)] == [3, 1, 2]
    less = load(
        "qm9", source="sample", root=tmp_path, targets=["u0"], atomisation=True, standardise=False
    )
    by_number = {data.number: data for data in [*less.train, *less.validation, *less.test]}
    methane = -40.47893 + 37.846772 + 4 * 0.500273  # about -17 eV
    assert float(by_number[1].y) == pytest.approx(methane, abs=1e-6)
    assert found.task.units == ("hartree", "hartree")
    other = load("qm9", source="sample", root=tmp_path, seed=1)
    numbers = [[data.number for data in each.train] for each in (less, other)]
    assert numbers[0] != numbers[1]


def test_atom_energies_are_those_of_others() -> None:
    """PyG has them in eV."""
    for name, place in (("u0", 7), ("u298", 8), ("h298", 9), ("g298", 10)):
        np.testing.assert_allclose(
            np.array(ATOM_ENERGIES[name]) * 27.2113825435, atomrefs[place], rtol=1e-6
        )


def test_the_split_of_the_paper() -> None:
    parts = split(MOLECULES, seed=0, validation=0)
    assert [len(part) for part in parts] == [100_000, 0, 30_831]
    assert np.array_equal(np.sort(np.concatenate(parts)), np.arange(MOLECULES))
    held_out = split(MOLECULES, seed=0, validation=5000)
    assert [len(part) for part in held_out] == [95_000, 5_000, 30_831]
    assert np.array_equal(held_out[2], parts[2])


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"targets": ["mu", "homer"]}, "targets: 'homer' is not known; choose from mu, alpha"),
        ({"targets": "mu"}, "targets: is 'mu'; pass a list"),
        ({"targets": []}, r"targets: is \[\]"),
        ({"validation": 100_000}, "validation: is 100000; pass less than"),
        ({"seed": -1}, "seed: is -1; give a whole number"),
        ({"limit": [1, 2]}, r"limit: \[1, 2\] is not possible; pass a number, or one for each"),
        ({"limit": "few"}, "limit: is 'few'; give a whole number"),
        ({"jobs": 0, "seed": 9}, "jobs: is 0; give a whole number"),
        ({"source": "nowhere"}, "nowhere: is not there; pass dsgdb9nsd.xyz.tar.bz2"),
    ],
)
def test_wrong_options(tmp_path: Path, wrong: dict, message: str) -> None:
    with pytest.raises(ValueError, match=f"^{message}"):
        load("qm9", **{"source": "sample", "root": tmp_path} | wrong)


def test_real_molecules(tmp_path: Path) -> None:
    found = load("qm9", source=shared("qm9"), root=tmp_path, limit=[300, 50, 50])
    assert found.about["molecules"] == MOLECULES
    assert found.about["bonds"]["connectivity"] == 0
    assert found.about["bonds"]["smiles"] >= 398
    lengths = torch.cat(
        [
            (data.pos[data.edge_index[0]] - data.pos[data.edge_index[1]]).norm(dim=1)
            for data in found.train
        ]
    )
    assert 0.9 < float(lengths.median()) < 1.1


@pytest.mark.slow
def test_all_molecules(tmp_path: Path) -> None:
    found = load("qm9", source=shared("qm9"), root=tmp_path, jobs=2)
    assert [len(part) for part in (found.train, found.validation, found.test)] == [
        95_000,
        5_000,
        30_831,
    ]
    assert found.about["bonds"] == {"smiles": 130_819, "geometry": 12, "connectivity": 0}
