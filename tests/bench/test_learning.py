"""`symgnn bench learning`: trainings of equal size and time, kept as they go."""

import json
import math
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
import torch
from torch import nn
from torch_geometric.data import Data

from symgnn.bench import _learning_suite as suite_module
from symgnn.bench import suite_named
from symgnn.bench._bench_table import error_markdown, error_rows
from symgnn.bench._learning_networks import Learner, networks
from symgnn.bench._learning_runs import (
    LOOKS,
    Molecules,
    MoleculeSets,
    TimedTraining,
    count_of,
    error_of,
    joined_to,
    take_turns,
)
from symgnn.bench._learning_suite import LearningProtocol, LearningRuns
from symgnn.bench._suite import QUICK
from symgnn.cli import main
from symgnn.graphs import radius_graph
from symgnn.train._loader import GraphDataset


class Constant(nn.Module):
    """Gives one number for each graph."""

    def __init__(self, start: float = 0.0) -> None:
        super().__init__()
        self.value = nn.Parameter(torch.tensor(start))

    def forward(self, batch: Data) -> torch.Tensor:
        return self.value.expand(len(batch.y), 1)


@pytest.fixture(scope="module")
def sample() -> MoleculeSets:
    return MoleculeSets("sample", 100, 100)


def test_error_in_units(sample: MoleculeSets) -> None:
    found = sample("homo", 2.0)
    y = torch.cat([found.validation[k].y for k in range(len(found.validation))])
    expected = float((3.0 - y).abs().double().mean()) * found.unit
    assert math.isclose(error_of(Constant(3.0), found), expected, rel_tol=1e-6)


def test_edges_are_those_of_a_radius(sample: MoleculeSets) -> None:
    random = torch.Generator().manual_seed(0)
    pos = 2 * torch.randn(9, 3, generator=random)
    graph = Data(pos=pos, x=torch.ones(9, 5), z=torch.ones(9), y=torch.ones(1, 1))
    assert torch.equal(joined_to(graph, 2.5).edge_index, radius_graph(pos, 2.5))


def test_a_stopped_training_goes_on(sample: MoleculeSets, tmp_path: Path) -> None:
    data, place = sample("homo", 2.0), tmp_path / "run.json"
    learner = Learner(lambda averages: Constant(5.0), 2.0)

    def stop(part: float) -> None:
        if part > 0.5:
            raise KeyboardInterrupt

    options = {"place": place, "looks": (0.25, 0.75, 1.0)}
    make = partial(TimedTraining, learner, data, 0.2, 1e-2, **options)
    with pytest.raises(KeyboardInterrupt):
        take_turns([make()], lambda number, part: stop(part))
    before = json.loads(place.read_text())
    state = torch.load(place.with_suffix(".pt"), weights_only=True)
    assert len(before["curve"]) == 1
    assert state["steps"] == before["curve"][0][1] > 0
    assert state["network"]["value"] < 5.0
    (found,) = take_turns([make()])
    assert found["curve"][0] == before["curve"][0]
    assert len(found["curve"]) == 3
    assert found["steps"] > state["steps"]
    assert found["curve"][-1][0] >= 0.2
    assert not place.with_suffix(".pt").exists()
    assert make().finished  # nothing is left to do
    assert make().result == found == json.loads(place.read_text())
    assert not TimedTraining(learner, data, 0.2, 2e-2, **options).finished  # another rate


def test_networks_take_turns(sample: MoleculeSets) -> None:
    data, seen = sample("homo", 2.0), []
    learner = Learner(lambda averages: Constant(5.0), 2.0)
    trainings = [TimedTraining(learner, data, 0.02, 1e-2, looks=(0.5, 1.0)) for _ in range(2)]
    found = take_turns(trainings, lambda number, part: seen.append(number))
    turns = [number for k, number in enumerate(seen) if k == 0 or seen[k - 1] != number]
    assert turns == [0, 1, 0, 1]
    assert [len(run["curve"]) for run in found] == [2, 2]


def test_the_constant_of_the_least_error_is_found(sample: MoleculeSets) -> None:
    """The loss is the mean absolute error, whose best constant is the median."""
    y = torch.tensor([[0.0], [1.0], [10.0]])
    graphs = [
        Data(pos=torch.zeros(1, 3), edge_index=torch.zeros(2, 0).long(), y=row[None]) for row in y
    ]
    data = GraphDataset(graphs)
    molecules = Molecules(data, data, sample("homo", 2.0).averages, 2.0, "unit")
    learner = Learner(lambda averages: Constant(), 2.0)
    (found,) = take_turns([TimedTraining(learner, molecules, 0.5, 1e-1)])
    assert len(found["curve"]) == len(LOOKS)
    assert all(row[0] >= 0.5 * look for row, look in zip(found["curve"], LOOKS, strict=True))
    assert found["error"] == pytest.approx(2.0 * 10.0 / 3.0, rel=0.02)


def test_all_networks_have_one_size(sample: MoleculeSets) -> None:
    counts = {
        name: count_of(learner.make(sample("homo", learner.reach).averages))
        for name, learner in networks(quick=True).items()
    }
    assert max(counts.values()) <= 1.2 * min(counts.values()), counts


def test_other_sizes_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    small = Learner(lambda averages: nn.Linear(10, 1), 2.0)
    large = Learner(lambda averages: nn.Linear(13, 1), 2.0, ours=False)
    monkeypatch.setattr(suite_module, "networks", lambda quick=False: {"a": small, "b": large})
    runs = LearningRuns(LearningProtocol(source="sample"), tmp_path)
    with pytest.raises(ValueError, match="learning: b has 14 parameters and a 11; make them alike"):
        next(iter(runs.claims("homo", QUICK)))


def test_quick(tmp_path: Path) -> None:
    few = ("DGN", "SchNet", "DimeNet++", "egnn-pytorch")
    suite = suite_named("learning").configured({"networks": few}, tmp_path)
    found = suite.run(QUICK, quick=True)
    assert found["notes"] == []
    bounded = [claim for claim in found["claims"] if claim["bound"] is not None]
    assert len(bounded) == 2 * 3  # two targets, three peers
    assert len(found["claims"]) == 2 * 3
    assert list(found["runs"]) == ["mu", "homo"]
    assert all(set(runs) == set(few) for runs in found["runs"].values())
    for runs in found["runs"].values():
        for run in runs.values():
            assert math.isfinite(run["error"])
            assert run["error"] == run["curve"][-1][2]
    heads, *rows = error_rows(found)
    assert heads[3:5] == ["mu (debye)", "homo (hartree)"]
    assert [row[0] for row in rows] == list(few)
    assert error_markdown(found).count(" * |") == 2
    assert suite.run(QUICK, quick=True)["runs"] == found["runs"]  # read, not trained again


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["angles", "--minutes", "3"], "--minutes: is 3.0, but angles has no such option"),
        (["learning", "--minutes", "0"], "--minutes: is 0.0; "),
        (["learning", "--molecules", "0"], "--molecules: is 0; "),
        (["learning", "--network", "SchNat"], "'SchNat' is not known; did you mean 'SchNet'?"),
        (["learning", "--target", "color"], "--shape: is 'color', which learning does not have"),
    ],
)  # fmt: skip
def test_wrong_options_are_named(arguments: list[str], words: str, capsys) -> None:
    assert main(["bench", *arguments]) == 2
    captured = capsys.readouterr()
    assert words in captured.err
    assert captured.err.count("\n") == 1


def test_learning_is_not_among_the_usual_suites() -> None:
    from symgnn.bench import SUITES, USUAL

    assert set(SUITES) - set(USUAL) == {"learning"}
    assert replace(LearningProtocol(), minutes=0.5).seconds == 30.0
