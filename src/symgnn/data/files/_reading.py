"""Files of many kinds as a list of PyG graphs."""

from __future__ import annotations

import os
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import torch
from torch_geometric.data import Data

from symgnn._argument_checks import check_count, check_positive, unknown_name
from symgnn.data.files import _atoms as atoms
from symgnn.data.files import _molecules as molecules
from symgnn.data.files._arrays import from_graph
from symgnn.data.files._assembly import (
    GraphForm,
    assemble,
    check_alike,
    check_targets,
    feature_names,
)
from symgnn.data.files._edges import check_choice, edges_used
from symgnn.data.files._features import elements_of
from symgnn.data.files._file_structure import FileStructure, How, check_sizes
from symgnn.data.files._formats import files_of, find
from symgnn.data.files._graph_list import Graphs, Troubles
from symgnn.data.files._metadata import metadata_of
from symgnn.data.files._parsing import parse
from symgnn.data.files._target_columns import Asked, attach
from symgnn.data.files._units import to_angstrom
from symgnn.graphs.checks import check_positions

PathLike: TypeAlias = str | os.PathLike[str]
Names: TypeAlias = str | Sequence[str]
#: A file, a folder, a pattern, or a structure in memory: a PyG Data, an ase.Atoms, a Smiles.
Given: TypeAlias = PathLike | Data | Any


def read(
    paths: Given | Sequence[Given],
    *,
    targets: PathLike | None = None,
    columns: Names | None = None,
    id: str = "name",
    level: str | None = None,
    kind: str | None = None,
    lengths: bool | None = None,
    invariant: bool = False,
    missing: str = "error",
    metadata: Names | None = None,
    edges: str | None = None,
    radius: float | None = None,
    k: int | None = None,
    directed: bool = False,
    positions: Names | None = None,
    features: Names | None = None,
    edge_features: Names | None = None,
    elements: Names | None = None,
    units: str | None = None,
    cell: str = "keep",
    conformers: bool | None = None,
    scale: float = 1.0,
    seed: int = 0,
    on_error: str = "raise",
    workers: int = 0,
    progress: bool | None = None,
) -> Graphs:
    """Read graphs from files, in the order of the file names.

    Each graph has `pos [N, n]`, `edge_index [2, E]` and `name`, and, if available, `z [N]`,
    `x [N, F]`, `edge_attr [E, F]`, `face [3, F]`, and `y` (shapes in :class:`symgnn.data.Task`).

    Args:
        paths: files, folders or patterns such as "runs/*.xyz", or structures in memory: PyG
            `Data`, `ase.Atoms`, or `symgnn.data.Smiles("CCO")`. Graphs with a `pos_scale` are
            first converted to the coordinates of their source.
        targets: a CSV with a row per structure, or per node (then with a column `node`: 0, 1, ...);
            a path, or the name of a file in the folder that is read.
        columns: the target columns of that CSV (default: all); without `targets`, the names of
            values in the files themselves (default: `y`; [] for none).
        id: the column, or the value in a file, with the name of a structure.
        level: "graph", "node" or "edge", if the columns do not determine it; "coordinates" for
            points; "node-vectors" or "graph-vectors" for vectors, which rotate with the coordinates
            and are invariant to translations: arrays of n numbers such as `forces`, or n columns
            each; "potential" for `columns=["energy", "forces", "stress"]` in eV and Angstrom.
        kind: "regression" or "classification"; by default columns of text are classes.
        lengths: whether vectors are lengths, or lengths per time, so that `units` and `scale`
            apply to them as to coordinates; by default those named displacements or velocities.
            Other vectors, such as forces and dipoles, keep their units.
        invariant: with True, targets that look like vectors are learned as invariant numbers;
            otherwise they are refused at a level without vectors.
        missing: "error", or "mask": labels that are empty or NaN become NaN, or the class -1,
            and are ignored in losses and metrics.
        metadata: columns that are neither targets nor features, such as the column by which
            `splits` divides; the graphs have them as `.metadata`.
        edges: "bonds" (of the file, else by distances), "distances" (between atoms that are close
            enough), "mesh", "given", "radius" or "neighbours"; by default the edges of the file,
            else bonds between atoms, else the 8 nearest points.
        radius: joins all nodes at most this far apart.
        k: joins each node to its k nearest neighbours.
        directed: whether edges of a CSV have one direction only.
        positions: the coordinate columns of a CSV; x, y and z if not given.
        features: node values that make up `x`; by default the other columns of a CSV.
        edge_features: edge values that make up `edge_attr`; by default the other columns.
        elements: the elements that have a column in `x`; by default those that occur.
        units: the unit of the coordinates of atoms: "angstrom", "bohr", "nm" or "pm". They are
            converted to Angstrom. Without it, distances implausible in Angstrom are an error.
        cell: "keep" periodic boundaries, with edges across them (`edge_shift`; the graphs have
            `cell [1, 3, 3]` and `pbc [1, 3]`); "drop" them; or "refuse" periodic structures.
        conformers: whether RDKit generates new coordinates for an SDF; for SMILES it always does.
        scale: a factor of all coordinates and velocities `vel`, applied at the end; the graphs
            have it as `pos_scale`.
        seed: seed of the conformers.
        on_error: "raise", or "skip" structures that cannot be read or have no target, with a
            warning.
        workers: number of reading processes; 0 for the current process only.
        progress: whether to show a progress bar after two seconds; by default on a terminal.

    Raises:
        ValueError: in one line with the file and the fix.

    Returns:
        A list of graphs, with their task, units and names.

    Example:
        >>> graphs = symgnn.data.read(symgnn.data.sample("sdf"), columns=["dipole"])
        >>> len(graphs), graphs[0].y.shape
        (18, torch.Size([1, 1]))
    """
    edges = check_choice(edges, radius, k)
    if cell not in ("keep", "refuse", "drop"):
        raise ValueError(f"cell: {cell!r} is not known; choose from keep, refuse, drop")
    if targets is not None and not isinstance(targets, str | os.PathLike):
        raise ValueError(
            f"targets: is {targets!r}; of files it is the path of a CSV; name the targets by "
            f"columns={targets!r}"
        )
    flags = {"directed": directed, "conformers": conformers, "lengths": lengths}
    for name, flag in {**flags, "invariant": invariant}.items():
        if flag not in (True, False, None):
            raise ValueError(f"{name}: is {flag!r}; give true or false")
    positions = listed(positions, "positions")
    how = How(id, tuple(positions or ()), conformers, directed, cell, check_count("seed", seed, 0))
    troubles = Troubles(on_error)
    given = _paths(paths)
    check_count("workers", workers, 0)
    check_positive("scale", scale, "1.0 to change nothing")
    on_disk = [path for path in given if not _is_structure(path)]
    table = None if targets is None else locate(targets, on_disk)
    columns = listed(columns, "columns")
    others = tuple(listed(metadata, "metadata") or ())
    named = None if columns is None else tuple(columns)
    asked = Asked(table, named, id, level, kind, lengths, bool(invariant), missing, others)

    files = find(on_disk, how, [] if table is None else [table])
    structures = _in_memory(given, how, troubles)
    structures += parse(files, how, troubles, workers, progress)
    structures = [s for s in structures if _sound(s, troubles)]
    _refuse_same_names(structures)
    if not structures:
        reason = _first(troubles.reasons) or "no files or graphs were given"
        raise ValueError(f"path: nothing could be read; {reason}")
    if level == "potential":
        _check_form(units, scale, cell)
    length = to_angstrom(structures, units)
    ys, task, unclear = attach(structures, asked, troubles)
    if task is not None:
        kept = [(s, y) for s, y in zip(structures, ys, strict=True) if y is not None]
        structures, ys = [s for s, _ in kept], [y for _, y in kept]
        if not structures:
            raise ValueError(f"targets: no structure has one; {_first(troubles.reasons)}")

    if task is not None and task.lengths:
        for number, structure in enumerate(structures):
            y = ys[number]
            if y is not None and columns is None and table is None:  # scaled with its graph
                y = np.asarray(y / structure.pos_scale)
            if y is not None and structure.z is not None:
                y = np.asarray(y * length)
            ys[number] = y
    found = list(
        elements_of(structures) if elements is None else listed(elements, "elements") or ()
    )
    asked_for = set(columns or (task.targets if task is not None else ()))
    no_features = asked_for | set(others)
    names = {
        "node": feature_names(structures, "node", listed(features, "features"), no_features),
        "edge": feature_names(
            structures, "edge", listed(edge_features, "edge_features"), no_features
        ),
    }
    periodic = any(structure.is_periodic for structure in structures)
    form = GraphForm(
        edges, radius, k, found, names["node"], names["edge"], scale, frozenset(asked_for), periodic
    )
    graphs, structures = assemble(structures, ys, form, troubles, progress)
    if not graphs:
        raise ValueError(f"path: nothing could be read; {_first(troubles.reasons)}")
    if task is not None:
        check_targets(graphs, task, scale)
    check_alike(graphs, structures)
    _warn(troubles, len(graphs))
    used = {edges_used(structure, edges) for structure in structures}
    known = metadata_of(structures)
    for name in others:
        if name not in known:
            raise ValueError(unknown_name("metadata", name, known, "a column of the files"))
    options = {
        # as they were made, so that further files get edges of the same kind, or are refused
        "edges": used.pop() if len(used) == 1 else edges,
        "radius": radius,
        "k": k,
        "directed": directed,
        "positions": positions,
        "features": names["node"],
        "edge_features": names["edge"],
        "elements": found,
        "units": units,
        "cell": cell,
        "conformers": conformers,
        "scale": scale,
        "seed": seed,
        "id": id,
    }
    return Graphs(
        graphs,
        task=task,
        skipped=troubles.reasons,
        files=[*files_of(files), *([] if table is None else [table])],
        options=options,
        by_default=edges is None,
        unclear=unclear,
        metadata=known,
        missing=missing,
    )


def _check_form(units: str | None, scale: float, cell: str) -> None:
    """Forces are derivatives by coordinates in Angstrom, of atoms as calculators have them."""
    if cell == "drop":
        raise ValueError(
            "cell: is 'drop', but a calculator keeps the cells of atoms; remove it, or pass "
            "'refuse' for molecules alone"
        )
    if units not in (None, "angstrom") or scale != 1.0:
        name, given = ("units", units) if units not in (None, "angstrom") else ("scale", scale)
        raise ValueError(
            f"{name}: is {given!r}, but a potential has energies in eV and lengths in Angstrom; "
            f"convert the files, and remove {name}"
        )


def listed(names: Names | None, option: str) -> list[str] | None:
    """A single name is a list of one."""
    return None if names is None else _several(option, names, str)


def _several(option: str, given: Any, kind: Any) -> list[Any]:
    """One of a kind, or several, as a list."""
    several = [given] if isinstance(given, kind) else given
    if not isinstance(several, Sequence) or not all(isinstance(each, kind) for each in several):
        raise ValueError(f"{option}: is {given!r}; give a name, or a list of names")
    return list(several)


def locate(table: PathLike, paths: Sequence[PathLike]) -> Path:
    """A table by its path, or in one of the folders that are read."""
    path = Path(table).expanduser()
    folders = [Path(given) if Path(given).is_dir() else Path(given).parent for given in paths]
    for candidate in (*(folder.expanduser() / path for folder in folders), path):
        if candidate.is_file():
            return candidate
    gone = [folder for folder in folders if not folder.expanduser().exists()]
    if gone and not path.is_absolute():
        raise ValueError(f"path: there is no {gone[0]}; give a file, a folder or a pattern")
    where = f", nor in {folders[0]}" if folders else ""
    raise ValueError(f"targets: there is no file {path}{where}")


def _is_structure(given: Any) -> bool:
    """Whether it is a structure in memory."""
    return isinstance(given, Data | molecules.Smiles) or atoms.is_atoms(given)


def _paths(given: Any) -> list[Any]:
    """One file or structure, or several, as a list."""

    def is_one(each: Any) -> bool:
        return isinstance(each, str | os.PathLike) or _is_structure(each)

    several = [given] if is_one(given) else given
    if not isinstance(several, Sequence) or not all(map(is_one, several)):
        raise ValueError(
            f"path: is {str(given)[:80]!r}; give a file, a folder, a pattern, a PyG Data or an "
            "ase.Atoms, or a list of these"
        )
    return list(several)


def _in_memory(given: Sequence[Any], how: How, troubles: Troubles) -> list[FileStructure]:
    """Those of the structures in memory that can be read."""
    found = []
    for i, each in enumerate(given):
        if not _is_structure(each):
            continue
        try:
            if isinstance(each, Data):
                found.append(from_graph(each, f"graph-{i}", f"graph {i}"))
            elif isinstance(each, molecules.Smiles):
                found.append(molecules.from_smiles(each, how))
            else:
                found.append(atoms.from_atoms(each, f"atoms-{i}", f"atoms {i}", how))
        except ValueError as error:
            if isinstance(each, Data):
                raise
            troubles.add(str(error))
    return found


# ---------------------------------------------------------------- checks


def _sound(structure: FileStructure, troubles: Troubles) -> bool:
    """It has nodes, finite coordinates, and as many of the rest."""
    try:
        if not len(structure.pos):
            raise ValueError("has no nodes")
        check_positions(torch.as_tensor(structure.pos))
        check_sizes(structure)
    except ValueError as error:
        troubles.add(f"{structure.where}: {error}")
        return False
    return True


def _refuse_same_names(structures: Sequence[FileStructure]) -> None:
    seen: dict[str, FileStructure] = {}
    for structure in structures:
        first = seen.setdefault(structure.name, structure)
        if first is not structure:
            raise ValueError(
                f"name: {first.where} and {structure.where} are both called {structure.name!r}; "
                "rename one of them, or name them by another value, id=..."
            )


def _warn(troubles: Troubles, kept: int) -> None:
    if troubles.reasons:
        warnings.warn(
            f"left out {len(troubles.reasons)} and kept {kept}: {_first(troubles.reasons)}",
            stacklevel=3,
        )


def _first(reasons: Sequence[str]) -> str:
    more = f"; and {len(reasons) - 3} more, see .skipped" if len(reasons) > 3 else ""
    return "; ".join(reasons[:3]) + more
