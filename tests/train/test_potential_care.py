"""Atoms that would train or be predicted wrongly without a word: each is refused in one line."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import ase.io
import numpy as np
import pytest
from ase import Atoms
from ase.build import bulk
from ase.calculators.emt import EMT
from ase.calculators.singlepoint import SinglePointCalculator

import symgnn
from symgnn.data import read
from train.emt_frames import emt_frames

SMALL = {"block": "dgn", "hidden": 4, "layers": 1, "cutoff": 3.4}
QUICK: dict[str, Any] = {"targets": ["energy", "forces"], "epochs": 1, "progress": False}
READ: dict[str, Any] = {"columns": ["energy", "forces"], "level": "potential", "radius": 3.4}


def labelled(atoms: Atoms, **results: Any) -> Atoms:
    """Atoms with results, of zeros where none are given."""
    zeros = {"energy": 0.0, "forces": np.zeros((len(atoms), 3))}
    atoms.calc = SinglePointCalculator(atoms, **{**zeros, **results})
    return atoms


def frames(count: int = 10) -> list[Atoms]:
    return [labelled(atoms.copy(), **atoms.calc.results) for atoms in emt_frames(count)]


def without(name: str, **others: Any) -> Atoms:
    (atoms,) = frames(1)
    del atoms.calc.results[name]
    atoms.calc.results.update(others)
    return atoms


def changed(change: Callable[[Atoms], object]) -> Atoms:
    """Atoms that were changed after their results were computed."""
    (atoms,) = frames(1)
    change(atoms)
    return atoms


def shared() -> Atoms:
    """The first of two structures with one calculator, whose results are those of the second."""
    one, other, calc = bulk("Cu"), bulk("Au"), EMT()
    for atoms in (one, other):
        atoms.calc = calc
        atoms.get_forces()
    return one


def not_computed() -> Atoms:
    atoms = bulk("Cu")
    atoms.calc = EMT()
    return atoms


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: without("energy"), r"energy: is missing; add it, remove it from the targets"),
        (
            lambda: without("energy", free_energy=-1.0),
            r"energy: is missing \('free_energy' is not read\); rename one to 'energy'",
        ),
        (lambda: without("energy", energy="abc"), r"energy: is abc; give a number"),
        (lambda: without("forces", forces=np.full((4, 3), np.nan)), "forces: has a number that"),
        (not_computed, r"its calculator has no results yet, so call get_forces\(\)"),
        (shared, "its calculator has results of another structure, so compute them anew"),
        (lambda: changed(lambda atoms: atoms.rattle(0.1)), "results of another structure"),
        (lambda: changed(lambda atoms: atoms.set_cell(atoms.cell * 1.1)), "of another structure"),
        (lambda: changed(lambda atoms: atoms.set_pbc(False)), "of another structure"),
        (lambda: changed(lambda atoms: atoms.rotate(20, "z")), "of another structure"),
        (lambda: changed(lambda atoms: atoms.numbers.__setitem__(0, 47)), "of another structure"),
        (lambda: changed(lambda atoms: atoms.__delitem__(0)), "of another structure"),
    ],
)
def test_labels(make: Callable[[], Atoms], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        read([*frames(2), make()], **READ)


@pytest.mark.parametrize(
    "change",
    [
        lambda atoms: atoms.translate([1.0, 2.0, 3.0]),
        lambda atoms: atoms.wrap(),
        lambda atoms: atoms.positions.__iadd__(
            np.array([[0, 0, 0], [1, 0, 0], [0, -2, 1], [1, 1, 1]]) @ atoms.cell.array
        ),
    ],
)
def test_translations_and_images_keep_labels(change: Callable[[Atoms], object]) -> None:
    atoms = changed(lambda atoms: atoms.translate([-3.0, 0.3, 5.0]))
    change(atoms)
    (graph,) = read(atoms, **READ)
    np.testing.assert_allclose(graph.y[:, 1:], emt_frames(10)[0].get_forces(), rtol=1e-6)


def test_labels_of_another_structure_are_not_masked_either() -> None:
    stale = changed(lambda atoms: atoms.rattle(0.1))
    with pytest.raises(ValueError, match="results of another structure"):
        read([*frames(2), stale], **READ, missing="mask")
    (graph,) = read(stale, columns=[], radius=3.4)  # without labels nothing is wrong
    assert graph.num_nodes == 4


def test_names_of_files_that_are_nearly_those_of_targets(tmp_path: Path) -> None:
    ase.io.write(tmp_path / "a.xyz", frames(2))
    text = (tmp_path / "a.xyz").read_text()
    (tmp_path / "b.xyz").write_text(text.replace(" energy=", " REF_energy="))
    with pytest.raises(ValueError, match=r"frame 0: energy: is missing \('REF_energy' is not read"):
        read(tmp_path / "b.xyz", **READ)
    (tmp_path / "c.xyz").write_text(text.replace(":forces:", ":dft_forces:"))
    with pytest.raises(ValueError, match=r"forces: is missing \('dft_forces' is not read\)"):
        read(tmp_path / "c.xyz", **READ)
    (tmp_path / "d.xyz").write_text("")
    with pytest.raises(ValueError, match=r"d\.xyz: is empty") as error:
        read(tmp_path / "d.xyz", **READ)
    assert str(error.value).count("on_error='skip'") == 1


@pytest.mark.parametrize(
    ("atoms", "settings", "message"),
    [
        (list, {}, r"graphs: is a list without graphs; give a list of PyG Data or ase\.Atoms"),
        (lambda: frames(1)[0], {}, r"graphs: is one ase\.Atoms; give a list of them"),
        (lambda: frames(2), {}, r"fractions: 2 graphs cannot be divided into 3 parts; give more"),
        (
            lambda: [labelled(Atoms("Cu")) for _ in range(5)],
            {},
            r"model\.cutoff: no training graph has two atoms that are so near",
        ),
        (
            lambda: frames(10),
            {"references": {"Cu": float("nan"), "Au": 0.0}},
            r"train\.references\.Cu: is nan; give a finite number",
        ),
        (lambda: frames(10), {"data": {"cell": "drop"}}, "cell: is 'drop', but a calculator"),
    ],
)
def test_trainings(atoms: Callable[[], Any], settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        symgnn.fit(atoms(), SMALL, **{**QUICK, **settings})


def test_no_energies_at_all() -> None:
    found = [without("energy") for _ in range(8)]
    message = r"no training graph has a label of 'energy'; .* from train\.targets"
    with pytest.raises(ValueError, match=message):
        symgnn.fit(found, SMALL, data={"missing": "mask"}, **QUICK)


def test_elements_that_were_not_in_the_training_set() -> None:
    run = symgnn.fit(frames(), SMALL, **QUICK)
    iron = bulk("Fe")
    message = "atoms: have Fe; the potential was trained on Cu, Au alone"
    with pytest.raises(ValueError, match=message):
        run.predict([bulk("Cu"), iron])
    (graph,) = run.read(iron)
    for method in (run.predict, run):
        with pytest.raises(ValueError, match=message):
            method(graph)
    with pytest.raises(ValueError, match=message):
        run.evaluate(read(labelled(iron), **READ, elements=[]))
    parted = [*frames(9), labelled(bulk("Ag"))]
    for number, atoms in enumerate(parted):
        atoms.info["part"] = ("train" if number < 8 else "validation") if number < 9 else "test"
    division = {"column": "part", "metadata": ["part"]}
    with pytest.raises(ValueError, match=r"data: test graphs have Ag; .* another data\.seed"):
        symgnn.fit(parted, SMALL, data=division, **QUICK)


@pytest.mark.parametrize("how", ["deleted", "None"])
def test_atoms_without_elements(how: str) -> None:
    model = {"block": "dgn", "cutoff": 4.0, "hidden": 4, "layers": 1}
    run = symgnn.fit(frames(), model, targets=["energy"], epochs=1, progress=False)
    graph = run.splits().test[0].clone()
    del graph.z
    if how == "None":
        graph.z = None
    with pytest.raises(ValueError, match=r"^z: is missing"):
        run.predict(graph)
