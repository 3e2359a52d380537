"""Whatever can be predicted for, as graphs in the form of those that a run was trained on."""

from __future__ import annotations

import os
import warnings
from collections import Counter
from collections.abc import Iterable, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from torch_geometric.data import Batch, Data

import symgnn.data
from symgnn.data.files._atoms import is_atoms
from symgnn.data.files._edges import NEAREST, NoSuchEdgesError
from symgnn.data.files._formats import READERS, TABLES
from symgnn.data.files._graph_list import ADVICE, Graphs
from symgnn.data.files._molecules import Smiles

#: The inputs that are allowed, for messages.
ACCEPTED = (
    "a file, a folder, a pattern, a SMILES, an ase.Atoms, a PyG Data or Batch, or a list of these"
)
#: The kind of the training data, by how the edges of its files were made.
TRAINED_ON = {
    "mesh": "meshes, and this has no faces",
    "distances": "atoms, and this has none",
    "given": "files with edges of their own, and this has none",
}


def to_graphs(given: Any, about: Mapping[str, Any], **options: Any) -> Graphs:
    """Graphs of anything that can be given to `predict`, in the order in which it is given.

    Args:
        given: a file, a folder, a pattern, a SMILES, an `ase.Atoms`, a PyG `Data` or `Batch`, or
            a list of these. Graphs are taken as they are.
        about: `about` of the data that the run was trained on; `about["read"]` has the options
            with which :func:`symgnn.data.read` gives further files the same form.
        options: of :func:`symgnn.data.read`, in place of those.

    Returns:
        The graphs; with `on_error="skip"`, `.skipped` has why each of the others was left out.

    Raises:
        ValueError: in one line that says what was given, and what can be given.
    """
    if isinstance(given, Graphs) and given.by_default:
        _check_default_edges(given, about)
    found = Graphs([])
    waiting: list[Any] = []
    for each in listed(given):
        if isinstance(each, Data):
            found = _read(found, waiting, about, options)
            found += each.to_data_list() if isinstance(each, Batch) else [each]
            waiting = []
        else:
            waiting.append(each if is_atoms(each) else _named(each, about))
    found = _read(found, waiting, about, options)
    if found.skipped:
        kept, first = f"left out {len(found.skipped)} and kept {len(found)}", found.skipped[0]
        if not found:
            raise ValueError(f"data: nothing could be read; {first}")
        warnings.warn(f"{kept}: {first}; see .skipped for all", stacklevel=3)
    return found


def _check_default_edges(given: Graphs, about: Mapping[str, Any]) -> None:
    """Points that were joined for want of anything else are no meshes, molecules or networks."""
    trained = about.get("read", {}).get("edges")
    if given.options.get("edges") == "neighbours" and trained in TRAINED_ON:
        raise ValueError(
            f"data: nodes of {given[0].name} were joined to their {NEAREST} nearest by default; "
            f"the run was trained on {TRAINED_ON[trained]}; give files of that kind, or choose "
            f"the edges: symgnn.data.read(file, k={NEAREST})"
        )


def listed(given: Any) -> list[Any]:
    """One thing that can be given, or several, as a list."""
    if _is_one(given):
        return [given]
    if isinstance(given, Iterable) and not isinstance(given, Mapping | bytes):
        try:
            several = list(given)
        except TypeError:  # a tensor without axes
            several = [given]
        wrong = next((each for each in several if not _is_one(each)), None)
        if wrong is None and several:
            return several
        if not several:
            raise ValueError(f"data: there are no graphs; give {ACCEPTED}")
        given = wrong
    raise ValueError(f"data: cannot be a {type(given).__name__}; give {ACCEPTED}")


def _is_one(given: Any) -> bool:
    return isinstance(given, str | os.PathLike | Data) or is_atoms(given)


def _read(
    before: Graphs, items: list[Any], about: Mapping[str, Any], options: dict[str, Any]
) -> Graphs:
    """The graphs before, and those of files, atoms and SMILES."""
    if not items:
        return before
    if "read" not in about:
        raise ValueError(
            f"data: {str(items[0])[:80]!r} cannot be read as the graphs of the run were, as it was "
            "not trained on files; give --split, or PyG graphs in Python"
        )
    reading = {"columns": [], **about["read"], **options}  # answers that files have are not read
    if {"edges", "radius", "k"} & options.keys():
        reading |= {name: options.get(name) for name in ("edges", "radius", "k")}
    graphs, skipped = list(before), list(before.skipped)
    shared = _shared_stems(items)
    for part in _parts(items):
        try:
            found = _read_part(part, reading)
        except ValueError as error:
            if reading.get("on_error") != "skip":
                raise
            skipped.append(str(error).removeprefix("path: nothing could be read; "))
            continue
        if type(part[0]) is str and _stem(part[0]) in shared:
            for graph in found:
                graph.name = f"{Path(part[0]).parent.as_posix()}/{graph.name}"
        elif is_atoms(part[0]) and found[0].name == "atoms-0":
            found[0].name = f"atoms-{len(graphs)}"
        graphs += found
        skipped += getattr(found, "skipped", ())
    return Graphs(graphs, skipped=skipped)


def _read_part(part: list[Any], reading: dict[str, Any]) -> list[Data]:
    """Read one part of the input; errors name a fix that is possible while predicting."""
    if type(part[0]) is not str and reading.get("units") is not None:
        reading = {**reading, "units": "angstrom"}  # whatever the files of the training had
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", r"left out \d+ and kept")
            return symgnn.data.read(part, **reading)
    except NoSuchEdgesError as error:
        where = str(error).partition(": edges:")[0]
        raise ValueError(
            f"{where}: the run was trained on {TRAINED_ON[reading['edges']]}; give files of that "
            f"kind, or choose the edges: run.predict(run.read(file, k={NEAREST}))"
        ) from None
    except ValueError as error:
        advice = "or skip such structures: --on-error skip, or run.read(..., on_error='skip')"
        raise ValueError(str(error).replace(ADVICE, advice)) from None


def _parts(items: list[Any]) -> list[list[Any]]:
    """Items that are read together, in their order: files, where no two have the same name."""
    shared = _shared_stems(items)
    parts: list[list[Any]] = []
    alone = True
    for item in items:
        single = type(item) is not str or _stem(item) in shared
        if alone or single:
            parts.append([])
        parts[-1].append(item)
        alone = single
    return parts


def _shared_stems(items: list[Any]) -> set[str]:
    """The names of files that several of the items have, such as run1/final.xyz, run2/final.xyz."""
    counts = Counter(_stem(item) for item in items if type(item) is str)
    return {stem for stem, count in counts.items() if count > 1}


def _stem(path: str) -> str:
    return Path(path).stem


def _named(given: str | os.PathLike[str], about: Mapping[str, Any]) -> str | Smiles:
    """The path of a file, folder or pattern that is there, or the SMILES of a molecule."""
    if isinstance(given, Smiles):
        return given
    text = os.fspath(given)
    if not isinstance(given, str) or _exists(text):
        return text
    of_molecules = bool(about.get("read", {}).get("elements"))
    suffix = Path(text).suffix.lower()
    if suffix in (*READERS, *TABLES) or not of_molecules or "read" not in about:
        return text  # which is not there, or cannot be read: said by the reader
    if find_spec("rdkit") is None:
        raise ValueError(
            f"data: there is no file {text}, and SMILES need rdkit; pip install symgnn[molecules]"
        )
    from rdkit import Chem
    from rdkit.rdBase import BlockLogs

    with BlockLogs():
        molecule = Chem.MolFromSmiles(text, sanitize=False)
    if molecule is None or not molecule.GetNumAtoms():
        raise ValueError(
            f"data: {text!r} is no file, folder or pattern that is there, and RDKit cannot read it "
            f"as a SMILES; give {ACCEPTED}"
        )
    return Smiles(text)


def _exists(text: str) -> bool:
    """Whether a path, or a pattern, names anything that is there."""
    path = Path(text).expanduser()
    try:
        if path.exists():
            return True
        pattern = str(path.relative_to(path.anchor))
        return any(c in text for c in "*?[") and any(Path(path.anchor).glob(pattern))
    except (OSError, ValueError, NotImplementedError):  # too long, or no pattern
        return False
