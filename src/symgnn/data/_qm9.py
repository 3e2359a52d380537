"""QM9: small molecules, of which 12 properties are asked.

The properties are those of every published table, in the units of the source. The paper trains on
100,000 molecules drawn at random and tests on the rest; which ones, it does not say. Here the seed
says so, and the test set is as large as the paper's. The paper has no validation set, so one is
held out of the training part; `validation=0` leaves that whole.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
from torch_geometric.data import Data

from symgnn._argument_checks import check_count
from symgnn.data._bonds import BOND_TYPES, Origin, find_bonds, rdkit
from symgnn.data._dataset_store import Arrays, PathLike, cache, prepared
from symgnn.data._packed_graphs import PackedGraphs, limits, starts
from symgnn.data._parallel import chunks, in_parallel
from symgnn.data._qm9_files import COLUMNS, MOLECULES, NUMBERS, read_molecules
from symgnn.data._task import Splits, Task

#: name: (its column, its unit)
TARGETS = {
    "mu": ("Dipole_debye", "debye"),
    "alpha": ("Polarizability_bohr3", "bohr^3"),
    "homo": ("HOMO_au", "hartree"),
    "lumo": ("LUMO_au", "hartree"),
    "gap": ("HOMO_LUMO_gap_au", "hartree"),
    "r2": ("R2_bohr2", "bohr^2"),
    "zpve": ("ZPVE_au", "hartree"),
    "u0": ("InternalEnergy_0K_au", "hartree"),
    "u298": ("InternalEnergy_298K_au", "hartree"),
    "h298": ("Enthalphy_298K_au", "hartree"),
    "g298": ("GibbsFreeEnergy_298K_au", "hartree"),
    "cv": ("Heatcapacity_Cv_cal_mol_K", "cal/(mol K)"),
}
#: Energies of the atoms H, C, N, O, F in hartree, as published with the molecules (atomref.txt).
ATOM_ENERGIES = {
    "u0": (-0.500273, -37.846772, -54.583861, -75.064579, -99.718730),
    "u298": (-0.498857, -37.845355, -54.582445, -75.063163, -99.717314),
    "h298": (-0.497912, -37.844411, -54.581501, -75.062219, -99.716370),
    "g298": (-0.510927, -37.861317, -54.598897, -75.079532, -99.733544),
}
TRAINING = 100_000
#: What `x` has of an atom.
FEATURES = ("elements", "pyg")
#: One over the median length of an edge in angstrom: of bonds, and of all pairs.
SCALE, COMPLETE_SCALE = 0.86, 0.32


def load_qm9(
    *,
    source: PathLike | None = None,
    root: PathLike | None = None,
    targets: Sequence[str] = tuple(TARGETS),
    atomisation: bool = False,
    standardise: bool = True,
    complete: bool = False,
    features: str = "elements",
    validation: int = 5_000,
    seed: int = 0,
    limit: int | Sequence[int] | None = None,
    scale: float | None = None,
    jobs: int = 1,
    progress: bool | None = None,
) -> Splits:
    """QM9 in three splits. `source` is as for :func:`symgnn.data._qm9_files.read_molecules`.

    Each graph has

    - `pos` `[N, 3]`: coordinates in angstrom, times `scale`
    - `x` `[N, 5]`: which element, of H, C, N, O, F; `z` `[N]` is the atomic number. With
      `features="pyg"` `[N, 11]`, the features of PyG's QM9: these five, the atomic number, whether
      aromatic, sp, sp2, sp3, and the number of bonded hydrogens
    - `edge_index` `[2, E]`: bonds, in both directions; with `complete`, all pairs
    - `edge_attr` `[E, 4]`: which bond, of single, double, triple, aromatic; all 0 where none is
    - `y` `[1, targets]`: the targets, less their mean and over their deviation in the training set,
      which are `about["mean"]` and `about["std"]`; `number` is that of the source

    Without `standardise`, targets are in their units, rounded to float32. With `atomisation`,
    energies are those of the molecule less those of its atoms. `limit` is the largest number of
    molecules of each split, one number or three.
    """
    _check_targets(targets)
    if features not in FEATURES:
        raise ValueError(f"features: {features!r} is not known; choose from {', '.join(FEATURES)}")
    scale = scale or (COMPLETE_SCALE if complete else SCALE)
    molecules, origin = read_molecules(source, root=root, progress=progress)
    parts = split(len(molecules["n_atoms"]), seed=seed, validation=validation)
    if not len(parts[0]):
        raise ValueError(f"validation: {validation} leaves no training graphs; hold out fewer")
    parts = [part[:most] for part, most in zip(parts, limits(limit), strict=True)]
    rows = np.sort(np.concatenate(parts))
    y = _targets(molecules, targets, atomisation)
    mean, std = y[parts[0]].mean(axis=0), y[parts[0]].std(axis=0)
    std = np.where(std > 0, std, 1.0)
    make_bonds = partial(_bonds, molecules, rows, jobs, progress)
    if source == "sample":
        bonds = make_bonds()
    else:
        path = cache(root) / "qm9" / f"bonds-{_digest(molecules, rows)}.npz"
        bonds = prepared(path, "2", make_bonds)
    y = ((y - mean) / std if standardise else y).astype(np.float32)
    build = BuildMolecule(molecules, bonds, y, rows, complete, scale, features)
    counts = np.bincount(bonds["origin"], minlength=len(Origin)).tolist()
    about: dict[str, Any] = {
        "source": origin,
        "molecules": len(y),
        "seed": seed,
        "pos": "angstrom",
        "mean": mean.tolist(),
        "std": std.tolist(),
        "standardised": standardise,
        "atomisation": atomisation,
        "bonds": {kind.name.lower(): count for kind, count in zip(Origin, counts, strict=True)},
    }
    units = tuple(TARGETS[name][1] for name in targets)
    task = Task("graph", "regression", tuple(targets), units)
    train, held_out, test = (PackedGraphs(build, part) for part in parts)
    return Splits(train, held_out, test, task, scale, about)


def split(count: int, *, seed: int, validation: int) -> list[np.ndarray]:
    """Rows to train on, validate and test: 100,000 less `validation`, those, and the rest.

    Of fewer molecules than all, parts of the same proportion.
    """
    validation, seed = check_count("validation", validation, 0), check_count("seed", seed, 0)
    if validation >= TRAINING:
        raise ValueError(
            f"validation: is {validation}; pass less than {TRAINING}, the training set"
        )
    training = TRAINING if count == MOLECULES else round(count * TRAINING / MOLECULES)
    held_out = -(-training * validation // TRAINING)
    order = np.random.default_rng(seed).permutation(count)
    return np.split(order, [training - held_out, training])


def _check_targets(targets: Sequence[str]) -> None:
    if isinstance(targets, str) or not targets:
        raise ValueError(f"targets: is {targets!r}; pass a list such as ['mu', 'gap']")
    for name in targets:
        if name not in TARGETS:
            raise ValueError(f"targets: {name!r} is not known; choose from {', '.join(TARGETS)}")


def _targets(molecules: Arrays, names: Sequence[str], atomisation: bool) -> np.ndarray:
    """`[molecules, targets]`."""
    y = molecules["y"][:, [COLUMNS.index(TARGETS[name][0]) for name in names]].copy()
    if atomisation:
        owner = np.repeat(np.arange(len(y)), molecules["n_atoms"])
        for column, name in enumerate(names):
            if name in ATOM_ENERGIES:
                energy = np.zeros(max(NUMBERS) + 1)
                energy[list(NUMBERS)] = ATOM_ENERGIES[name]
                y[:, column] -= np.bincount(owner, energy[molecules["z"]], len(y))
    return y


def _digest(molecules: Arrays, rows: np.ndarray) -> str:
    """A short name for these rows of these molecules."""
    digest = hashlib.sha256()
    for array in (molecules["pos"], molecules["smiles"], rows):
        digest.update(array.tobytes())
    return digest.hexdigest()[:16]


def _bonds(molecules: Arrays, rows: np.ndarray, jobs: int, progress: bool | None) -> Arrays:
    """`pairs`, `types`, `atoms`, `count`, `origin` of the given molecules, one after the other."""
    rdkit()  # say that it is missing before any process is started
    begin = starts(molecules["n_atoms"])
    tasks = []
    for part in chunks(len(rows), 500):
        places = [slice(begin[row], begin[row + 1]) for row in rows[part]]
        smiles = [text.decode() for text in molecules["smiles"][rows[part]].tolist()]
        pos, z = ([molecules[name][place] for place in places] for name in ("pos", "z"))
        tasks.append((pos, z, smiles))
    text = f"bonds of {len(rows)} molecules"
    found = in_parallel(_bonds_of, tasks, jobs=jobs, text=text, progress=progress)
    return {name: np.concatenate([part[name] for part in found]) for name in found[0]}


def _bonds_of(task: tuple[list[np.ndarray], list[np.ndarray], list[str]]) -> Arrays:
    found = [find_bonds(*molecule) for molecule in zip(*task, strict=True)]
    return {
        "pairs": np.concatenate([bonds.pairs for bonds in found]).astype(np.uint8),
        "types": np.concatenate([bonds.types for bonds in found]).astype(np.uint8),
        "atoms": np.concatenate([bonds.atoms for bonds in found]),
        "count": np.array([len(bonds.types) for bonds in found], dtype=np.int32),
        "origin": np.array([bonds.origin for bonds in found], dtype=np.uint8),
    }


_ONE_HOT_ELEMENT = np.zeros((max(NUMBERS) + 1, len(NUMBERS)), dtype=np.float32)
_ONE_HOT_ELEMENT[list(NUMBERS), range(len(NUMBERS))] = 1.0
_ONE_HOT_BOND = np.eye(len(BOND_TYPES), dtype=np.float32)


@dataclass
class BuildMolecule:
    """Makes the graph of a molecule; `bonds` are those of the given rows."""

    molecules: Arrays
    bonds: Arrays
    y: np.ndarray
    rows: np.ndarray
    complete: bool
    scale: float
    features: str = "elements"

    def __post_init__(self) -> None:
        self.atoms = starts(self.molecules["n_atoms"])
        self.kinds = starts(self.molecules["n_atoms"][self.rows])
        self.starts = 2 * starts(self.bonds["count"])
        first, second = self.bonds["pairs"].T
        source, target = np.concatenate([first, second]), np.concatenate([second, first])
        owner = np.repeat(np.arange(len(self.rows)), self.bonds["count"])
        order = np.lexsort((source, target, np.tile(owner, 2)))
        self.edges = np.stack([source, target])[:, order]  # [2, all edges], both directions
        self.types = np.tile(self.bonds["types"], 2)[order]

    def __call__(self, row: int) -> Data:
        """The graph of the molecule in this row."""
        atoms = slice(self.atoms[row], self.atoms[row + 1])
        place = np.searchsorted(self.rows, row)
        bonds = slice(self.starts[place], self.starts[place + 1])
        z = self.molecules["z"][atoms]
        edge_index = self.edges[:, bonds].astype(np.int64)
        edge_attr = _ONE_HOT_BOND[self.types[bonds]]
        x = _ONE_HOT_ELEMENT[z]
        if self.features == "pyg":
            kinds = self.bonds["atoms"][self.kinds[place] : self.kinds[place + 1]]
            hydrogens = np.bincount(edge_index[1], z[edge_index[0]] == 1, len(z))
            x = np.column_stack([x, z, kinds, hydrogens]).astype(np.float32)
        if self.complete:
            edge_index, edge_attr = _completed(len(z), edge_index, edge_attr)
        return Data(
            x=torch.from_numpy(x),
            pos=torch.from_numpy(self.molecules["pos"][atoms] * np.float32(self.scale)),
            z=torch.from_numpy(z.astype(np.int64)),
            edge_index=torch.from_numpy(edge_index),
            edge_attr=torch.from_numpy(edge_attr),
            y=torch.from_numpy(self.y[row : row + 1]),
            number=int(self.molecules["index"][row]),
            pos_scale=float(self.scale),
        )


def _completed(
    count: int, edge_index: np.ndarray, edge_attr: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """All ordered pairs, by target and then source, with the features of those there were."""
    target, source = np.nonzero(~np.eye(count, dtype=bool))
    features = np.zeros((len(target), edge_attr.shape[1]), dtype=edge_attr.dtype)
    features[edge_index[1] * (count - 1) + edge_index[0] - (edge_index[0] > edge_index[1])] = (
        edge_attr
    )
    return np.stack([source, target]), features
