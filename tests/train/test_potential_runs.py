"""Potentials that are trained: from atoms, from files, from YAML, with weights and references."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import ase.io
import numpy as np
import pytest
import torch
from ase import Atoms
from ase.build import bulk, molecule
from ase.calculators.singlepoint import SinglePointCalculator
from torch_geometric.data import Data

import symgnn
from symgnn.cli import main
from symgnn.data import read
from symgnn.train import Config, _ensemble, read_config, train
from symgnn.train._config import resolve
from symgnn.train._metrics import Judge, Metrics, Scaler
from symgnn.train._potential_rows import label_weights
from train.emt_frames import emt_frames

SMALL = {"block": "combined-separable", "hidden": 8, "layers": 1, "cutoff": 3.4}
QUICK: dict[str, Any] = {"epochs": 2, "batch_size": 8, "progress": False}


@pytest.fixture(scope="module")
def run() -> symgnn.Run:
    targets = ["energy", "forces", "stress"]
    return symgnn.fit(emt_frames(), SMALL, targets=targets, seeds=2, **QUICK)


def test_labels_are_those_of_the_atoms() -> None:
    columns = ["energy", "forces", "stress"]
    graphs = read(list(emt_frames()), columns=columns, level="potential", radius=3.4)
    assert graphs.task is not None
    assert graphs.task.targets[:4] == ("energy", "force_x", "force_y", "force_z")
    assert graphs.task.units[0] == "eV/atom"
    for graph, atoms in zip(graphs, emt_frames(), strict=True):
        assert float(graph.y[0, 0]) == pytest.approx(atoms.get_potential_energy() / 4, rel=1e-6)
        np.testing.assert_allclose(graph.y[:, 1:4], atoms.get_forces(), rtol=1e-5, atol=1e-7)
        np.testing.assert_allclose(graph.y[0, 4:], atoms.get_stress(), rtol=1e-5, atol=1e-8)
        assert graph.y[1:, [0, 4, 5, 6, 7, 8, 9]].isnan().all()


def test_metrics_are_in_thousandths_of_an_electronvolt(run: symgnn.Run) -> None:
    test = run.splits().test
    for seed, potential in enumerate(run.potentials):
        energy, forces = [], []
        for graph in test:
            found = potential(run._ready(graph))
            per_atom = float(found.energy.detach()) / graph.num_nodes
            energy.append(abs(per_atom - float(graph.y[0, 0])))
            forces.append((found.forces.detach() - graph.y[:, 1:4]).abs().flatten())
        measured = run.evaluate("test")
        assert measured["mae energy"][seed] == pytest.approx(1000 * np.mean(energy), rel=1e-4)
        wanted = 1000 * float(torch.cat(forces).mean())
        assert measured["mae forces"][seed] == pytest.approx(wanted, rel=1e-4)


def test_seeds_together_and_one_by_one_learn_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """Forces are derivatives that are differentiated again, inside vmap and without it."""
    options = {**QUICK, "epochs": 1, "seeds": 3, "precision": "64"}
    together = symgnn.fit(emt_frames(), SMALL, targets=["energy", "forces"], **options)
    monkeypatch.setattr(_ensemble, "ROWS_OF_ONE", 0)
    apart = symgnn.fit(emt_frames(), SMALL, targets=["energy", "forces"], **options)
    for one, other in zip(together.parameters(), apart.parameters(), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-7, atol=1e-9)


def test_energies_are_predicted_and_a_saved_run_gives_the_same(
    run: symgnn.Run, tmp_path: Path
) -> None:
    atoms = emt_frames()[3]
    value, deviation = run.predict(atoms)
    assert value.shape == (1, 1)
    assert deviation is not None
    run.save(tmp_path / "run")
    again = symgnn.load(tmp_path / "run")
    torch.testing.assert_close(again.predict([atoms]).value, value)
    assert again.potentials[0].references[29] == run.potentials[0].references[29]
    assert float(run.potentials[0].references[29]) != 0


def test_training_lowers_the_error_of_forces() -> None:
    settings = {**QUICK, "epochs": 20, "learning_rate": 5e-3, "batch_size": 4}
    model = {"block": "dgn", "hidden": 16, "cutoff": 3.6}
    run = symgnn.fit(emt_frames(40), model, targets=["energy", "forces"], **settings)
    first, last = run.history[0], run.history[-1]
    baseline = run.metrics["validation"]["rmse forces"]["baseline"]
    assert last["validation_rmse forces"] < first["validation_rmse forces"]
    assert last["validation_rmse forces"] < 0.5 * baseline  # forces that are 0


@pytest.mark.parametrize("block", ["dgn", "agn", "combined", "cgn", "sdgn", "agn+distances"])
def test_every_block_is_trained_with_defaults_that_fit(block: str) -> None:
    model = {"block": block, "hidden": 4, "layers": 1}
    model |= {} if block in ("cgn", "sdgn") else {"cutoff": 3.0}
    data = {"radius": 3.0} if block in ("cgn", "sdgn") else None
    data = None if data is None else {**data, "fractions": (0.6, 0.2, 0.2)}
    # without a cutoff of the network, that of the graphs is 5.5 A
    settings = {**QUICK, "epochs": 1}
    if data is None:
        run = symgnn.fit(emt_frames(10), model, targets=["energy", "forces"], **settings)
        assert run.config.model["envelope"] is True
        assert run.config.model["graph_state"] is False
        return
    with pytest.raises(ValueError, match=r"data\.radius: is 3\.0, below model\.cutoff, 5\.5"):
        symgnn.fit(emt_frames(10), model, targets=["energy", "forces"], data=data, **settings)


def test_files_and_yaml_give_the_same_weights(tmp_path: Path) -> None:
    ase.io.write(tmp_path / "frames.xyz", emt_frames(10), format="extxyz")
    data = f"data: {{path: {tmp_path / 'frames.xyz'}}}\n"
    model = "model: {block: dgn, hidden: 4, layers: 1, cutoff: 3.2}\n"
    settings = "{targets: [energy, forces], target_weights: {forces: 3}, epochs: 1}\n"
    path = tmp_path / "config.yaml"
    path.write_text(data + model + "train: " + settings)
    first = train(read_config(path))
    options = {"block": "dgn", "hidden": 4, "layers": 1, "cutoff": 3.2}
    second = symgnn.fit(
        tmp_path / "frames.xyz", options, targets=["energy", "forces"],
        target_weights={"forces": 3.0}, epochs=1, progress=False,
    )  # fmt: skip
    assert first is not None
    assert first.config == second.config
    states = [run.models[0].state_dict() for run in (first, second)]
    assert all(torch.equal(states[0][name], states[1][name]) for name in states[0])
    # and the config that is written can be read again
    text = first.config.to_yaml()
    path.write_text(text)
    assert read_config(path) == first.config


def test_predictions_of_the_command_are_energies(tmp_path: Path) -> None:
    ase.io.write(tmp_path / "frames.xyz", emt_frames(10), format="extxyz")
    settings = {**QUICK, "out": tmp_path / "run", "epochs": 1}
    run = symgnn.fit(tmp_path / "frames.xyz", SMALL, targets=["energy", "forces"], **settings)
    assert main(["predict", str(tmp_path / "run"), str(tmp_path / "frames.xyz")]) == 0
    head, *rows = (tmp_path / "run" / "predictions.csv").read_text().splitlines()
    assert head == "name,energy [eV]"
    assert len(rows) == 10
    wanted = run.predict(emt_frames(10)[0]).value
    assert float(rows[0].split(",")[1]) == pytest.approx(float(wanted), rel=1e-5)
    assert main(["predict", str(tmp_path / "run"), "--split", "test"]) == 0
    head, row = (tmp_path / "run" / "predictions.csv").read_text().splitlines()
    assert head == "name,energy [eV],energy measured [eV]"
    name, _, measured = row.split(",")
    frame = emt_frames(10)[int(name.removeprefix("frames-"))]
    assert float(measured) == pytest.approx(frame.get_potential_energy(), rel=1e-5)
    assert main(["evaluate", str(tmp_path / "run")]) == 0


def test_references_are_fitted_or_given() -> None:
    fitted = symgnn.fit(emt_frames(), SMALL, targets=["energy"], **{**QUICK, "epochs": 1})
    counts = [[(a.numbers == z).sum() for z in (29, 79)] for a in emt_frames()]
    split = fitted.splits()
    names = {graph.name for graph in split.train}
    rows = [k for k in range(len(counts)) if f"atoms-{k}" in names]
    energies = [emt_frames()[k].get_potential_energy() for k in rows]
    wanted, *_ = np.linalg.lstsq(np.array(counts)[rows].astype(float), energies, rcond=None)
    found = fitted.potentials[0].references[[29, 79]]
    np.testing.assert_allclose(found, wanted, rtol=1e-5)
    given = {"Cu": -3.0, "Au": -4.0}
    run = symgnn.fit(
        emt_frames(), SMALL, targets=["energy"], references=given, **{**QUICK, "epochs": 1}
    )
    assert run.potentials[0].references[[29, 79]].tolist() == [-3.0, -4.0]
    with pytest.raises(ValueError, match=r"train\.references: have no energy of Au"):
        symgnn.fit(emt_frames(), SMALL, targets=["energy"], references={"Cu": 1.0}, **QUICK)


def test_weights_of_targets_are_those_of_the_loss() -> None:
    task = read(emt_frames()[0], columns=["energy", "forces"], level="potential").task
    assert task is not None
    weights = label_weights(task, {"forces": 6.0}, atoms=4.0)
    assert weights.tolist() == [1.0, *[6.0 / 12] * 3]
    unit = Scaler(torch.zeros(4).double(), torch.ones(4).double())
    judge = Judge(task, unit, target_weights=weights)
    nan = float("nan")
    y = torch.tensor([[1.0, 0, 0, 0], [nan, 0, 0, 0]]).double()
    out = torch.tensor([[[2.0, 1, 0, 0], [5.0, 0, 0, 2]]]).double()
    # energy 1, forces 1 and 4, each times its weight; the second energy has no label
    assert judge.losses(out, y).tolist() == [1 + 0.5 * 5]
    assert float(judge.weight(y)) == 1 + 6 * 0.5
    metrics = Metrics(task, 1)
    metrics.add(*judge(out, y))
    assert float(metrics.values()["mae energy"]) == 1000.0
    assert float(metrics.values()["mae forces"]) == 1000 * 3 / 6


def test_frames_may_lack_forces_where_that_is_allowed() -> None:
    frames = [atoms.copy() for atoms in emt_frames(10)]
    for number, (frame, full) in enumerate(zip(frames, emt_frames(10), strict=True)):
        frame.calc = type(full.calc)(frame, energy=full.get_potential_energy())
        if number % 2:
            frame.calc.results["forces"] = full.get_forces()
    targets = ["energy", "forces"]
    with pytest.raises(ValueError, match=r"forces: is missing; add it, remove it from the"):
        symgnn.fit(frames, SMALL, targets=targets, **QUICK)
    run = symgnn.fit(frames, SMALL, targets=targets, data={"missing": "mask"}, **QUICK)
    assert np.isfinite(run.metrics["train"]["mae forces"]["mean"])


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"targets": ["forces"]}, r"train\.targets: is .*give a list with energy in it"),
        ({"targets": ["energy", "force"]}, r"train\.targets: 'force' is not known; did you mean"),
        ({"targets": ["energy"], "target_weights": {"forces": 1.0}}, "target_weights: 'forces'"),
        ({"targets": ["energy"], "target_weights": {"energy": -1.0}}, "target_weights.energy"),
        ({"target_weights": {"energy": 1.0}}, r"train\.target_weights: is for potentials"),
    ],
)
def test_wrong_settings(settings: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        symgnn.fit(emt_frames(10), SMALL, **settings, **QUICK)


def test_wrong_data() -> None:
    with pytest.raises(ValueError, match=r"model: GN is not invariant to translations"):
        symgnn.fit(emt_frames(10), "gn", targets=["energy"], **QUICK)
    with pytest.raises(ValueError, match=r"columns: is missing|targets: are missing"):
        symgnn.fit([bulk("Cu")] * 3, SMALL, **QUICK)
    with pytest.raises(ValueError, match=r"units: is 'bohr', but a potential has energies in eV"):
        read(molecule("H2O"), level="potential", columns=["energy"], units="bohr")
    graphs = [Data(pos=torch.rand(2, 3), edge_index=torch.tensor([[0], [1]]), y=torch.rand(2, 1))]
    with pytest.raises(ValueError, match=r"train\.targets: is \['energy'\], but y is of level"):
        symgnn.fit(graphs * 10, "dgn", targets=["energy"], **QUICK)
    config = resolve({"data": {"path": "x"}, "model": {"block": "dgn"}})
    assert isinstance(config, Config)
    assert "targets" not in config.as_dict()["train"]


def test_frames_with_stress_are_trained_beside_atoms_without_a_cell() -> None:
    """The stress of the latter is no number, and has no label: derivatives must not read it."""
    alone = []
    for seed in range(4):
        atoms = Atoms("Cu3", [[0, 0, 0], [2.4, 0, 0], [0, 2.5, 0]])
        atoms.rattle(0.1, seed=seed)
        energy, forces = float(seed), np.zeros((3, 3))
        atoms.calc = SinglePointCalculator(atoms, energy=energy, forces=forces)
        alone.append(atoms)
    run = symgnn.fit(
        [*emt_frames(8), *alone],
        {"block": "dgn", "hidden": 4, "cutoff": 3.4},
        targets=["energy", "forces", "stress"],
        data={"missing": "mask"},
        epochs=2,
        progress=False,
    )
    assert all(np.isfinite(run.metrics["train"]["mae stress"]["values"]))
    assert np.isfinite(run.metrics["train"]["loss"]["mean"])


@pytest.mark.parametrize(
    "model",
    [
        {"block": "dgn", "filtered": True},
        {"block": "combined", "separable": True, "degree": 2},
    ],
)
def test_options_that_modify_a_block_are_options_of_a_run(tmp_path: Path, model: dict) -> None:
    settings = {"targets": ["energy", "forces"], "epochs": 1, "progress": False}
    size = {"hidden": 4, "cutoff": 3.4}
    run = symgnn.fit(emt_frames(8), {**model, **size}, **settings, out=tmp_path / "run")
    again = symgnn.load(tmp_path / "run")
    assert again.config == run.config
    (option,) = {"filtered", "separable"} & model.keys()
    calculator = again.calculator()
    assert option in calculator.neighbours.potentials[0].model.network.name
