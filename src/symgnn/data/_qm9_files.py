"""QM9 as it is published: the package qm9pack, the official archive, or an npz file.

However they came, the molecules are those 130,831 of the 133,885 whose geometry passed the
consistency check, by their original number, as arrays `pos` `[atoms, 3]` in angstrom, `z`
`[atoms]`, `n_atoms`, `index` and `smiles` `[molecules]`, and `y` `[molecules, 15]`.
"""

from __future__ import annotations

import importlib.util
import re
import tarfile
from importlib import metadata, resources
from pathlib import Path

import numpy as np

from symgnn.data._dataset_store import (
    Arrays,
    PathLike,
    Source,
    cache,
    fetch,
    find,
    prepared,
    read_arrays,
)
from symgnn.progress import OnProgress, bar

ELEMENTS = ("H", "C", "N", "O", "F")
NUMBERS = (1, 6, 7, 8, 9)
MOLECULES = 130_831
UNCHARACTERISED = 3_054

#: The columns of `y`, in the order of the archive. Their names carry their units.
COLUMNS = (
    "RotA_GHz",
    "RotB_GHz",
    "RotC_GHz",
    "Dipole_debye",
    "Polarizability_bohr3",
    "HOMO_au",
    "LUMO_au",
    "HOMO_LUMO_gap_au",
    "R2_bohr2",
    "ZPVE_au",
    "InternalEnergy_0K_au",
    "InternalEnergy_298K_au",
    "Enthalphy_298K_au",
    "GibbsFreeEnergy_298K_au",
    "Heatcapacity_Cv_cal_mol_K",
)

_FIGSHARE = "https://ndownloader.figshare.com/files/"
ARCHIVE = Source(
    "qm9",
    "dsgdb9nsd.xyz.tar.bz2",
    (f"{_FIGSHARE}3195389", "https://springernature.figshare.com/ndownloader/files/3195389"),
    "md5:ad1ebd51ee7f5b3a6e32e974e5d54012",
    86_144_227,
)
EXCLUDED = Source(
    "qm9",
    "uncharacterized.txt",
    (f"{_FIGSHARE}3195404", "https://springernature.figshare.com/ndownloader/files/3195404"),
    "md5:a361887bacb427b8a0ce7903d92a53b4",
    486_752,
)
NPZ = Source("qm9", "qm9.npz")


def read_molecules(
    source: PathLike | None = None, *, root: PathLike | None = None, progress: bool | None = None
) -> tuple[Arrays, str]:
    """The molecules, and a word on where they are from.

    `source` is "sample" (20 molecules that come with symgnn), "qm9pack" (the installed package),
    an npz file, the archive, or a folder with either. If there is none: what SYMGNN_DATA or the
    cache has, else the package, else the archive, which is downloaded.
    """
    if source == "sample":
        with resources.as_file(resources.files("symgnn.data") / "samples" / "qm9.npz") as path:
            return _checked(read_arrays(path), path), "the sample of symgnn"
    if source == "qm9pack":
        return _from_package(root, progress), f"qm9pack {_version()}"
    local = Path(source).expanduser() if source is not None else None
    npz = local if local and local.suffix == ".npz" else find(NPZ, root=root, local=local)
    if npz is not None:
        return _checked(read_arrays(npz), npz), str(npz)
    if local is None and find(ARCHIVE, root=root) is None and package() is not None:
        return _from_package(root, progress), f"qm9pack {_version()}"
    try:
        archive = fetch(ARCHIVE, root=root, local=local, progress=progress)
    except OSError as error:
        raise OSError(f"{error}. Or install the package that has it: pip install qm9pack") from None
    beside = archive.parent / EXCLUDED.name
    excluded = fetch(
        EXCLUDED, root=root, local=beside if beside.is_file() else None, progress=progress
    )

    def make() -> Arrays:
        with bar("reading the archive of QM9", progress) as on_progress:
            return read_archive(archive, read_excluded(excluded), on_progress)

    path = cache(root) / "qm9" / "molecules-archive.npz"
    return _checked(prepared(path, "1", make), archive), f"{archive} ({ARCHIVE.digest})"


def _checked(arrays: Arrays, path: Path) -> Arrays:
    """The arrays, after checking names, shapes and units."""
    missing = {"pos", "z", "n_atoms", "y", "index", "smiles"} - set(arrays)
    if missing:
        raise ValueError(f"{path}: has no array {', '.join(sorted(missing))}; replace it")
    names = tuple(str(name) for name in arrays.pop("y_names", COLUMNS))
    for name, expected in zip(names, COLUMNS, strict=False):
        if name != expected:
            raise ValueError(f"{path}: y_names: {name!r} is not possible; expected {expected!r}")
    atoms, count = int(arrays["n_atoms"].sum()), len(arrays["n_atoms"])
    shapes = {
        "pos": (atoms, 3),
        "z": (atoms,),
        "index": (count,),
        "smiles": (count,),
        "y": (count, 15),
    }
    for name, shape in shapes.items():
        if arrays[name].shape != shape:
            raise ValueError(f"{path}: {name}: shape {arrays[name].shape}; expected {shape}")
    for name in ("pos", "y"):
        if not np.isfinite(arrays[name]).all():
            raise ValueError(f"{path}: {name}: some values are not finite; replace the file")
    strange = set(np.unique(arrays["z"]).tolist()) - set(NUMBERS)
    if strange:
        raise ValueError(f"{path}: z: {min(strange)} is none of {', '.join(ELEMENTS)}")
    _check_length(arrays, path)
    return arrays


def _check_length(arrays: Arrays, path: Path) -> None:
    """That coordinates are in angstrom: what is nearest to a hydrogen is 0.9 to 1.2 away."""
    start, nearest = 0, []
    for size in arrays["n_atoms"][:100].tolist():
        pos, z = arrays["pos"][start : start + size], arrays["z"][start : start + size]
        length = np.linalg.norm(pos[:, None] - pos, axis=2) + 1e9 * np.eye(size)
        nearest.extend(length[z == 1].min(axis=1).tolist())
        start += size
    middle = float(np.median(nearest)) if nearest else 1.0
    if not 0.9 < middle < 1.2:
        raise ValueError(
            f"{path}: pos: hydrogens are {middle:.2f} from the nearest atom, and 1.1 angstrom are "
            "expected; convert the coordinates to angstrom"
        )


def package() -> Path | None:
    """The folder of data of qm9pack. It is not imported: that needs a package that is gone."""
    found = importlib.util.find_spec("qm9pack")
    return Path(found.origin).parent / "data" if found is not None and found.origin else None


def _version() -> str:
    return metadata.version("qm9pack")


def _from_package(root: PathLike | None, progress: bool | None) -> Arrays:
    folder = package()
    if folder is None:
        raise ValueError("qm9pack is not installed; pip install qm9pack")
    path = cache(root) / "qm9" / "molecules-qm9pack.npz"
    return _checked(prepared(path, f"1 {_version()}", lambda: _read_tables(folder, progress)), path)


def _read_tables(folder: Path, progress: bool | None) -> Arrays:
    """The tables of the package."""
    import pandas

    parts = sorted(folder.glob("qm9_part*.csv"))
    columns = ["Index", "SMILES", "Elements", "XYZ_Ang", *COLUMNS]
    read = []
    with bar("reading qm9pack", progress) as on_progress:
        for done, part in enumerate(parts, 1):
            table = pandas.read_csv(part, usecols=columns)
            elements = [re.findall("[A-Z]", text) for text in table["Elements"]]
            numbers = re.sub(r"[\[\]]", "", ",".join(table["XYZ_Ang"]))
            read.append(
                {
                    "pos": np.fromstring(numbers, sep=",").astype(np.float32).reshape(-1, 3),
                    "z": _atomic_numbers([symbol for listed in elements for symbol in listed]),
                    "n_atoms": np.array([len(listed) for listed in elements], dtype=np.int16),
                    "y": table[list(COLUMNS)].to_numpy(dtype=np.float64),
                    "index": table["Index"].to_numpy(dtype=np.int32),
                    "smiles": np.array([text.encode() for text in table["SMILES"]]),
                }
            )
            if on_progress is not None:
                on_progress(done, len(parts))
    if not read:
        raise ValueError(f"{folder}: has no qm9_part1.csv; pip install --force-reinstall qm9pack")
    return {name: np.concatenate([part[name] for part in read]) for name in read[0]}


def read_excluded(path: Path) -> set[int]:
    """The numbers of the molecules whose geometry failed the consistency check."""
    rows = (line.split() for line in path.read_text().splitlines())
    numbers = {int(row[0]) for row in rows if len(row) > 1 and row[0].isdigit()}
    if len(numbers) != UNCHARACTERISED:
        raise ValueError(f"{path}: lists {len(numbers)} molecules, not {UNCHARACTERISED}")
    return numbers


def read_archive(path: Path, excluded: set[int], on_progress: OnProgress | None = None) -> Arrays:
    """The molecules of a tar archive of XYZ files, but for the excluded numbers."""
    read = []
    with tarfile.open(path) as archive:
        for done, member in enumerate(archive, 1):
            content = archive.extractfile(member)
            if content is None or not member.name.endswith(".xyz"):
                continue
            molecule = parse_xyz(content.read().decode(), member.name)
            if molecule["index"][0] not in excluded:
                read.append(molecule)
            if on_progress is not None and done % 1000 == 0:
                on_progress(done, MOLECULES + UNCHARACTERISED)
    if not read:
        raise ValueError(f"{path}: has no molecules")
    read.sort(key=lambda molecule: int(molecule["index"][0]))
    return {name: np.concatenate([each[name] for each in read]) for name in read[0]}


def parse_xyz(text: str, name: str) -> Arrays:
    """One molecule of the archive: its XYZ files write 1.2*^-6 for 1.2e-6, and have more lines.

    The number of atoms; `gdb`, number and 15 properties; element, x, y, z and charge of each atom;
    the frequencies; SMILES of GDB-17 and of the relaxed geometry; InChI of both.
    """
    lines = text.replace("*^", "e").splitlines()
    try:
        count = int(lines[0])
        _, index, *properties = lines[1].split()
        atoms = [line.split() for line in lines[2 : 2 + count]]
        if len(atoms) != count:
            raise ValueError(f"it says {count} atoms and has {len(atoms)}")
        if not 0 < int(index) < 2**31:  # which NumPy 1 would wrap
            raise ValueError(f"its number is {index}")
        return {
            "pos": np.array([[float(part) for part in atom[1:4]] for atom in atoms], np.float32),
            "z": _atomic_numbers([atom[0] for atom in atoms]),
            "n_atoms": np.array([count], dtype=np.int16),
            "y": np.array([float(part) for part in properties]).reshape(1, len(COLUMNS)),
            "index": np.array([int(index)], dtype=np.int32),
            "smiles": np.array([lines[3 + count].split()[0].encode()]),
        }
    except (IndexError, ValueError, KeyError, OverflowError) as error:
        raise ValueError(f"{name}: is not a file of QM9 ({error}); replace the archive") from None


def _atomic_numbers(symbols: list[str]) -> np.ndarray:
    number = dict(zip(ELEMENTS, NUMBERS, strict=True))
    return np.array([number[symbol] for symbol in symbols], dtype=np.int8)
