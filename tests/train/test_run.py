"""Runs from config to metrics, predictions and a model in Python."""

import csv
import dataclasses
import json
from pathlib import Path

import numpy as np
import pytest
import torch
from torch_geometric.data import Batch

import symgnn
from symgnn.cli import main
from symgnn.data import _registry as registry
from symgnn.report._run_log import read_log
from symgnn.train import _run_data as run_data
from symgnn.train._checkpoint import read_checkpoint
from symgnn.train._config import Config, resolve
from symgnn.train._loader import Batches
from symgnn.train._prepare import make_model
from symgnn.train._run_loading import load
from symgnn.train._run_record import read_record, write_record
from symgnn.train._trained_run import Run
from symgnn.train._training import finish, train
from trainings import SMALL, solids

pytestmark = pytest.mark.usefixtures("one_thread", "with_solids")
MODEL = {"block": "dgn", "hidden": 4, "layers": 1, "aggregation": "sum"}


@pytest.fixture
def with_solids(monkeypatch: pytest.MonkeyPatch) -> None:
    known = registry.Dataset("solids", "made", (5, 5, 5), solids)
    monkeypatch.setitem(registry.DATASETS, "solids", known)


def config(*changes: str, data: dict | None = None, model: dict | None = None) -> Config:
    given = {"data": data or {"name": "solids"}, "model": model or MODEL}
    return resolve({**given, "train": {"epochs": 2, "batch_size": 2}}, changes)


def trained(out: Path, *changes: str, **sections: dict) -> Run:
    run = train(config(*changes, **sections), out)
    assert run is not None
    finish(run)
    return load(out)


def states(out: Path, name: str = "last.ckpt") -> list[dict]:
    paths = sorted(out.glob(f"seed*/{name}"))
    return [state for path in paths for state in read_checkpoint(path)["members"]]


@pytest.mark.parametrize("kind", ["regression", "classification"])
@pytest.mark.parametrize("level", ["graph", "node", "edge"])
def test_every_task(level: str, kind: str, tmp_path: Path) -> None:
    data = {"name": "solids", "level": level, "kind": kind}
    # in double precision: by rounding, predictions depend on which graphs are in a batch
    run = trained(tmp_path, "train.seeds=2", "train.precision=64", data=data)
    splits = solids(level=level, kind=kind)
    batch = Batch.from_data_list(splits.train)
    batch.pos = batch.pos.double()
    found = run.predict(splits.train)
    torch.testing.assert_close(found, run.predict(batch))
    torch.testing.assert_close(run(batch), found.value)
    assert found.value.shape == (len(batch.y), splits.task.outputs)
    assert found.deviation.shape == found.value.shape

    metrics = json.loads((tmp_path / "metrics.json").read_text())["test"]
    each = [model(batch) for model in run.models]
    if kind == "classification":
        values = [float((out.argmax(1) == batch.y).float().mean()) for out in each]
        assert metrics["accuracy"]["values"] == pytest.approx(values)
    else:
        back = [out * run.scaler.deviation + run.scaler.mean for out in each]
        values = [float((out - batch.y)[:, 1].abs().mean()) for out in back]
        assert metrics["mae charge"]["values"] == pytest.approx(values, rel=1e-5)
        torch.testing.assert_close(found.value.double(), torch.stack(back).mean(0))

    assert main(["predict", str(tmp_path), "--split", "test"]) == 0
    with (tmp_path / "predictions.csv").open() as file:
        head, *rows = list(csv.reader(file))
    keys = {"graph": ["name"], "node": ["name", "node"], "edge": ["name", "source", "target"]}
    assert head[: len(keys[level])] == keys[level]
    assert len(rows) == len(batch.y)
    if kind == "regression":
        assert "energy [eV]" in head
        column = [float(row[head.index("energy deviation [eV]")]) for row in rows]
        assert column == pytest.approx(found.deviation[:, 0].tolist(), rel=1e-4, abs=1e-6)
    else:
        assert {row[head.index("colour")] for row in rows} <= {"red", "green", "blue"}


def test_standardised_training_gives_units(tmp_path: Path) -> None:
    """Targets far from 0 are learned as quickly as any; without, they are not."""
    sets = ("train.epochs=60", "train.learning_rate=0.02", "train.batch_size=5")
    sets += ("train.validate_every=20",)
    data = {"name": "solids", "level": "graph"}
    errors = []
    for standardise in (True, False):
        out = tmp_path / str(standardise)
        trained(out, *sets, f"train.standardise={standardise}", data=data)
        errors.append(json.loads((out / "metrics.json").read_text())["test"]["mae energy"]["mean"])
    assert errors[0] < 5 < errors[1]


def test_predictions_take_coordinates_of_the_source(tmp_path: Path) -> None:
    run = trained(tmp_path, data={"name": "solids", "scale": 2.0})
    source, scaled = solids().train, solids(scale=2.0).train
    assert run.scale == 2.0
    assert scaled[0].pos_scale == 2.0
    torch.testing.assert_close(run.predict(source).value, run.predict(scaled).value)
    for graph in scaled:
        del graph.pos_scale  # now they are solids of twice the size
    assert not torch.allclose(run.predict(scaled).value, run.predict(source).value)


def test_coordinates_come_in_units_of_the_source(tmp_path: Path) -> None:
    model = {"block": "dgn", "coordinate_map": "neighbour-sum", "hidden": 4}
    data = {"name": "nbody", "limit": [4, 2, 2]}
    run = trained(tmp_path, data=data, model=model)
    graphs = list(run_data.load(run.config.data).test)
    error = run.predict(graphs).value - torch.cat([graph.y for graph in graphs])
    metrics = json.loads((tmp_path / "metrics.json").read_text())["test"]
    assert metrics["mse"]["mean"] == pytest.approx(float(error.square().mean()), rel=1e-5)
    run.scale = 2.0
    for graph in graphs:
        graph.pos_scale = 2.0
    twice = run.predict(graphs).value
    torch.testing.assert_close(2 * twice, torch.cat([run.model(graph) for graph in graphs]))


@pytest.mark.parametrize("clip", ["none", "0.1"])
def test_a_seed_of_several_trains_as_it_does_alone(clip: str, tmp_path: Path) -> None:
    sets = ["train.epochs=4", "train.precision=64", f"train.clip={clip}"]
    trained(tmp_path / "together", *sets, "train.seeds=3", "train.seed=1")
    together = states(tmp_path / "together")
    trained(tmp_path / "after", *sets, "train.seeds=3", "train.together=false")
    for state, other in zip(states(tmp_path / "after"), together, strict=True):
        for name in state:
            torch.testing.assert_close(state[name], other[name])
    kept = states(tmp_path / "together", "best.ckpt"), states(tmp_path / "after", "best.ckpt")
    for state, other in zip(*kept, strict=True):
        for name in state:
            torch.testing.assert_close(state[name], other[name])


def test_a_run_is_a_plain_loop(tmp_path: Path) -> None:
    """With the protocol of the EGNN paper: the weights of a loop over the same batches."""
    data = {"name": "nbody", "limit": [7, 2, 1], "distances": True}
    model = {"block": "egnn", "velocity": True, "hidden": 8, "layers": 2}
    sets = ("train.epochs=3", "train.batch_size=3", "train.weight_decay=1e-3")
    run = trained(tmp_path, *sets, "train.drop_last=true", data=data, model=model)
    graphs, batches = list(run_data.load(data).train), Batches(7, 3, seed=1, drop_last=True)
    torch.manual_seed(1)
    alone = make_model(run.config, run.task, run.facts.told)
    optimiser = torch.optim.Adam(alone.parameters(), 1e-3, weight_decay=1e-3)
    for batches.epoch in range(3):
        assert len(list(batches)) == 2
        for numbers in batches:
            batch = Batch.from_data_list([graphs[k] for k in numbers])
            optimiser.zero_grad()
            torch.nn.functional.mse_loss(alone(batch), batch.y).backward()
            optimiser.step()
    (state,) = states(tmp_path)
    for name, value in alone.state_dict().items():
        torch.testing.assert_close(state[name], value, rtol=1e-4, atol=1e-5)


def test_best_weights_are_those_of_the_best_validation(tmp_path: Path) -> None:
    run = trained(tmp_path, "train.epochs=9", "train.learning_rate=0.3", "train.seeds=2")
    log = read_log(next(tmp_path.glob("seed*/log.csv")))
    metrics = json.loads((tmp_path / "metrics.json").read_text())["validation"]
    for seed, value in zip((1, 2), metrics["loss"]["values"], strict=True):
        losses = [row["validation_loss"] for row in log if row["seed"] == seed]
        assert value == pytest.approx(min(losses), rel=1e-5)
        assert min(losses) < max(losses[1:])  # or the test says nothing
    assert len(run.models) == 2


def test_training_stops_early_and_stays_so(tmp_path: Path) -> None:
    sets = ("train.epochs=50", "train.learning_rate=0.5", "train.patience=3")
    trained(tmp_path, *sets)
    path = tmp_path / "seed-1" / "last.ckpt"
    last = read_checkpoint(path)["epoch"]
    assert last < 50
    assert last - int(read_checkpoint(path.with_name("best.ckpt"))["epoch"]) == 3
    before = path.stat().st_mtime_ns
    train(config(*sets), tmp_path, resume=True)
    assert path.stat().st_mtime_ns == before


def test_the_learning_rate_follows_its_schedule(tmp_path: Path) -> None:
    cosine = ("train.schedule=cosine", "train.warmup=2", "train.epochs=6", "train.batch_size=5")
    trained(tmp_path / "cosine", *cosine)
    rates = [row["learning_rate"] for row in read_log(tmp_path / "cosine/seed-1/log.csv")]
    half = 0.5e-3
    expected = [1e-3, 1e-3, half * (1 + 2**-0.5), half, half * (1 - 2**-0.5), 0]
    assert rates == pytest.approx(expected, abs=1e-9)
    sets = ("train.schedule=plateau", "train.plateau_patience=2", "train.learning_rate=0.5")
    trained(tmp_path / "plateau", *sets, "train.epochs=20")
    rates = [row["learning_rate"] for row in read_log(tmp_path / "plateau/seed-1/log.csv")]
    assert rates[0] == 0.5
    assert rates[-1] < 0.5
    assert {a / b for a, b in zip(rates[1:], rates[:-1], strict=True)} <= {1.0, 0.5}


def test_balanced_classes_and_other_losses_train(tmp_path: Path) -> None:
    data = {"name": "solids", "kind": "classification"}
    balanced = trained(
        tmp_path / "a", "train.class_weights=balanced", "train.monitor=f1", data=data
    )
    other = "train.loss=huber", "train.optimizer=sgd", "train.precision=bf16"
    for run in (balanced, trained(tmp_path / "b", *other)):
        assert all(p.isfinite().all() for model in run.models for p in model.parameters())


def test_a_run_is_never_overwritten(tmp_path: Path) -> None:
    trained(tmp_path)
    before = {p: p.read_bytes() for p in tmp_path.rglob("*") if p.is_file()}
    with pytest.raises(
        ValueError, match="contains a run; give --resume to continue it, or another --out"
    ):
        train(config(), tmp_path)
    with pytest.raises(ValueError, match=r"model.hidden: is 5, but the run in .* has 4"):
        train(config("model.hidden=5"), tmp_path, resume=True)
    assert {p: p.read_bytes() for p in tmp_path.rglob("*") if p.is_file()} == before


def test_what_depends_on_the_data_is_checked_before_training(tmp_path: Path) -> None:
    wrong = {
        "train.monitor=acuracy": r"train.monitor: is 'acuracy'; choose from loss, mae energy",
        "train.validate_every=3": r"train.epochs: is 2; give a multiple of train.validate_every",
        "train.class_weights=balanced": "train.class_weights: this task has no classes",
    }
    for change, message in wrong.items():
        with pytest.raises(ValueError, match=message):
            train(config(change), tmp_path)
    with pytest.raises(ValueError, match=r"model.coordinate_map: is 'identity'"):
        train(config(data={"name": "nbody", "limit": 1}), tmp_path)
    assert not (tmp_path / "config.yaml").exists()


def test_a_diverged_run_says_so(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="loss: is not finite in epoch 1; lower"):
        train(config("train.learning_rate=1e30", "train.optimizer=sgd"), tmp_path)
    assert not (tmp_path / "seed-1" / "last.ckpt").exists()


def test_what_no_model_reads_is_dropped(tmp_path: Path) -> None:
    data = {"name": "polytopes-3d", "copies": 1, "node_features": True}
    run = trained(tmp_path, data={**data, "drop": ["x"]}, model=MODEL)
    assert run.facts.sizes["node_features"] == 0
    assert run.predict(run_data.load(data).test).value.shape == (5, 5)
    raw = {"block": "schnet", "hidden": 4}
    with pytest.raises(ValueError, match=r"^model\.node_features: is 2, .*data\.drop: \[x\]"):
        train(config(data=data, model=raw), tmp_path / "other")
    sizes = {**run.facts.told, "angle_features": 2}
    with pytest.raises(ValueError, match=r"ignore angle_attr with data\.drop: \[angle_attr\]"):
        make_model(run.config, run.task, sizes)


@pytest.mark.slow
def test_compiled(tmp_path: Path) -> None:
    double = ("train.precision=64", "train.seeds=2")
    one = trained(tmp_path / "a", "train.compile=true", *double)
    two = trained(tmp_path / "b", *double)
    torch.testing.assert_close(one.predict(solids().test), two.predict(solids().test))


def test_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What files a run was trained on, and how new ones are read, is known from the data."""
    asked = {}

    def load(**options):
        asked["load"] = options
        found = solids(level="graph", scale=0.5)
        return dataclasses.replace(found, about={"read": {"edges": "bonds", "scale": 0.5}})

    def read(paths, **options):
        asked["read"] = (paths, options)
        graphs = solids(level="graph", scale=0.5).test
        for graph, name in zip(graphs, "abcde", strict=True):
            graph.name = name
            del graph.y
        return graphs

    monkeypatch.setattr(symgnn.data, "load_files", load)
    monkeypatch.setattr(symgnn.data, "read", read)
    run = trained(tmp_path, data={"path": "folder", "targets": "energies.csv", "drop": "z"})
    assert asked["load"] == {"path": "folder", "targets": "energies.csv"}
    assert main(["predict", str(tmp_path), "a.xyz", "b.xyz"]) == 0
    assert asked["read"] == (["a.xyz", "b.xyz"], {"edges": "bonds", "scale": 0.5, "columns": []})
    with (tmp_path / "predictions.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [row["name"] for row in rows] == list("abcde")
    expected = (
        run.predict(solids(level="graph").test).value[:, 0].tolist()
    )  # in units of the source
    assert [float(row["energy [eV]"]) for row in rows] == pytest.approx(expected, rel=1e-4)
    run.record["about"] = {}
    with pytest.raises(ValueError, match="was not trained on files; give --split"):
        run.read([Path("a.xyz")])


def test_velocities_go_with_the_scale(tmp_path: Path) -> None:
    """A run on trajectories predicts the same from files as from graphs in units of the source."""
    found = symgnn.data.simulate_charged(10, seed=0, frames=(0, 10))
    path = tmp_path / "particles.npz"
    now = {"pos": found.pos[:, 0], "vel": found.vel[:, 0]}
    np.savez(path, later=found.pos[:, 1], **now)
    data = {"path": str(path), "columns": "later", "level": "coordinates", "k": 4}
    model = {"block": "egnn", "velocity": True, "hidden": 4, "layers": 1}
    run = trained(tmp_path / "run", "train.epochs=1", data=data, model=model)
    assert run.scale < 0.9
    assert main(["predict", str(tmp_path / "run"), str(path)]) == 0
    with (tmp_path / "run" / "predictions.csv").open() as file:
        rows = list(csv.DictReader(file))
    written = [[float(row[f"later_{axis}"]) for axis in range(3)] for row in rows]
    graphs = symgnn.data.read(path, k=4)
    torch.testing.assert_close(graphs[0].vel, found.vel[0, 0].float())
    torch.testing.assert_close(run.predict(graphs).value, torch.tensor(written))


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    import yaml

    file = tmp_path / "solids.yaml"
    file.write_text(yaml.safe_dump(SMALL))
    run = tmp_path / "run"
    assert main(["train", str(file), "train.epochs=2", "--seeds", "2", "--out", str(run)]) == 0
    shown = capsys.readouterr()
    assert "epoch 2 of 2" in shown.out
    assert "accuracy" in shown.out
    assert shown.err == ""
    names = ("config.yaml", "run.json", "metrics.json", "report.html", "curves.png")
    for name in (*names, "seeds-1-2/log.csv", "seeds-1-2/tensorboard"):
        assert (run / name).exists(), name
    record = json.loads((run / "run.json").read_text())
    assert record["seeds"] == [1, 2]
    assert record["environment"]["symgnn"] == symgnn.__version__
    assert main(["evaluate", str(run), "--split", "validation", "--split", "test"]) == 0
    assert "validation" in capsys.readouterr().out
    assert symgnn.load(run).config.train.seeds == 2

    assert main(["train", str(file), "train.epochs=2", "--seeds", "2", "--out", str(run)]) == 2
    assert capsys.readouterr().err.endswith("give --resume to continue it, or another --out\n")
    assert main(["train", str(run), "--resume"]) == 0
    assert main(["predict", str(run)]) == 2
    assert "give either files or --split" in capsys.readouterr().err
    assert main(["evaluate", str(tmp_path)]) == 2
    assert "has no run" in capsys.readouterr().err


def test_a_run_that_is_older_than_an_option(tmp_path: Path) -> None:
    """It has the option's default; one that was changed is still refused."""
    run = trained(tmp_path, model={**MODEL, "block": "agn"})
    record, path = read_record(tmp_path), tmp_path / "config.yaml"
    before = run.predict(solids().train).value
    del record["config"]["model"]["cosines"], record["sha256"]
    write_record(tmp_path, record)
    text = path.read_text()
    assert "  cosines: false\n" in text
    path.write_text(text.replace("  cosines: false\n", ""))
    assert torch.equal(load(tmp_path).predict(solids().train).value, before)
    path.write_text(text.replace("  cosines: false\n", "  cosines: true\n"))
    with pytest.raises(ValueError, match="cosines is True, but the run was trained with False"):
        load(tmp_path)
