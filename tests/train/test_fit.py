"""Training from Python: the same weights as from a config, from whatever people have."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch_geometric.data import Data

import symgnn
from symgnn.data._registry import load_polytopes
from symgnn.experiments._train_row import train_row
from symgnn.train._checkpoint import read_checkpoint
from symgnn.train._config import resolve
from symgnn.train._metrics import Judge
from symgnn.train._prepare import averaged, make_model, measure
from symgnn.train._training import ready, train

pytestmark = pytest.mark.usefixtures("one_thread")

DATA = {"name": "polytopes-3d", "copies": 1}
MODEL = {"block": "dgn", "hidden": 4, "layers": 1, "dropout": 0.1}
SETTINGS = {"epochs": 4, "batch_size": 2, "learning_rate": 0.01, "seeds": 2}


def same(one: list[dict], other: list[dict]) -> bool:
    return len(one) == len(other) and all(
        a.keys() == b.keys() and all(torch.equal(a[k], b[k]) for k in a)
        for a, b in zip(one, other, strict=True)
    )


def test_a_config_python_and_a_row_train_the_same_weights(tmp_path: Path) -> None:
    config = resolve({"data": DATA, "model": MODEL, "train": {**SETTINGS, "weights": "last"}})
    assert train(config, tmp_path / "yaml") is not None
    expected = read_checkpoint(tmp_path / "yaml" / "seeds-1-2" / "last.ckpt")["members"]

    options = {**SETTINGS, "weights": "last", "progress": False}
    run = symgnn.fit("polytopes-3d", MODEL, data={"copies": 1}, **options)
    assert same([model.state_dict() for model in run.models], expected)
    splits = load_polytopes(3, copies=1)
    run = symgnn.fit(splits, MODEL, **options)
    assert same([model.state_dict() for model in run.models], expected)

    facts = averaged(measure(splits), config, splits)
    make = lambda: make_model(config, splits.task, facts.told)  # noqa: E731
    graphs = ready(config, splits.train, make())
    row = train_row(make, graphs, Judge(splits.task, facts.scaler), config.train)
    assert same(row.ensemble.states(), expected)


def test_saved_and_loaded(tmp_path: Path) -> None:
    splits = load_polytopes(3, copies=1)
    run = symgnn.fit(splits, MODEL, progress=False, **SETTINGS)
    value, deviation = run.predict(splits.test[1])
    assert run.evaluate("test")["accuracy"] == run.metrics["test"]["accuracy"]["values"]
    run.save(tmp_path / "run")
    other = symgnn.load(tmp_path / "run")
    assert torch.equal(other.predict(splits.test[1]).value, value)
    assert torch.equal(other.predict(splits.test[1]).deviation, deviation)
    assert other.history == run.history
    assert len(run.history) == 8  # four validations of two seeds
    with pytest.raises(ValueError, match="graphs in memory, which are not saved"):
        other.evaluate("test")
    with pytest.raises(ValueError, match=r"directory: .* is not empty"):
        run.save(tmp_path / "run")


def test_a_model_is_trained_from_its_weights(tmp_path: Path) -> None:
    splits = load_polytopes(3, copies=1)

    def make() -> symgnn.nn.Model:
        torch.manual_seed(5)
        return symgnn.nn.build("dgn", hidden=4, layers=1, outputs=5)

    model = make()
    run = symgnn.fit(splits, model, epochs=1, learning_rate=1e-9, progress=False)
    torch.testing.assert_close(run.model.state_dict(), model.state_dict(), rtol=0, atol=1e-6)
    run.save(tmp_path / "run")
    with pytest.raises(ValueError, match=r"symgnn.load\(run, model=...\)"):
        symgnn.load(tmp_path / "run")
    other = symgnn.load(tmp_path / "run", model=make())
    assert same([other.model.state_dict()], [run.model.state_dict()])
    with pytest.raises(ValueError, match="seeds: is 2, but a model has one initialisation"):
        symgnn.fit(splits, model, seeds=2)
    with pytest.raises(ValueError, match="model: is a Linear; give the name"):
        symgnn.fit(splits, torch.nn.Linear(1, 1))


def graphs(y: list[torch.Tensor]) -> list[Data]:
    solids = symgnn.data.polytopes(3)
    return [
        Data(pos=solid.pos, edge_index=solid.edge_index, y=each)
        for solid, each in zip(solids * 2, y, strict=True)
    ]


@pytest.mark.parametrize(
    ("shape", "level", "expected"),
    [
        ((1,), None, "graph"),
        ((), None, "graph"),
        ((1, 2), None, "graph"),
        (("N",), None, "node"),
        (("N", 2), None, "node"),
        (("E", 2), None, "edge"),
        (("N", 3), "node-vectors", "node-vectors"),
        (("N", 3), "coordinates", "coordinates"),
    ],
)
def test_lists_of_graphs(shape: tuple, level: str | None, expected: str) -> None:
    solids = symgnn.data.polytopes(3) * 2
    sizes = [{"N": s.num_nodes, "E": s.num_edges} for s in solids]
    made = graphs([torch.randn([size.get(k, k) for k in shape]) for size in sizes])
    model = {"block": "dgn", "hidden": 4, "layers": 1, "coordinate_map": "neighbour-sum"}
    run = symgnn.fit(made, model, level=level, epochs=1, progress=False)
    assert run.task.level == expected
    assert run.task.kind == "regression"
    rows = {"graph": 1, "edge": made[0].num_edges}.get(run.task.place, made[0].num_nodes)
    assert len(run.predict(made[0]).value) == rows


def test_what_is_not_clear_is_refused() -> None:
    ones = [torch.ones(()) for _ in range(10)]
    sizes = [solid.num_nodes for solid in symgnn.data.polytopes(3) * 2]
    cases = {
        r"^level: is not given, and y has 3 numbers for each node": graphs(
            [torch.randn(size, 3) for size in sizes]
        ),
        r"^y: has shape \[7\] in the first graph": graphs([torch.ones(7)] * 10),
        r"^graphs: is one graph": graphs(ones)[0],
        r"^graphs: is a int; give a list": 3,
        r"^y: graph 0 has no y": [Data(pos=g.pos, edge_index=g.edge_index) for g in graphs(ones)],
    }
    for message, given in cases.items():
        with pytest.raises(ValueError, match=message):
            symgnn.fit(given, "dgn", epochs=1, progress=False)
    with pytest.raises(ValueError, match="epochz: is not known; did you mean 'epochs'"):
        symgnn.fit(graphs(ones), "dgn", epochz=1)
    with pytest.raises(ValueError, match="did you mean 'dgn'"):
        symgnn.fit(graphs(ones), "dgnn")


@pytest.mark.parametrize(
    ("word", "kinds"),
    [
        ("training", ["terms", "measures"]),
        ("terms", ["terms"]),
        ("measures", ["measures"]),
        ("none", None),
    ],
)
def test_a_word_says_which_averages_are_taken(word: str, kinds: list[str] | None) -> None:
    solids = symgnn.data.load("polytopes-3d", copies=1)
    model = {"block": "dgn", "hidden": 4, "averages": word}
    run = symgnn.fit(solids, model, epochs=1, progress=False)
    known = run.models[0].averages
    found = known and [kind for kind, value in known.as_dict().items() if value]
    assert found == kinds


def test_another_word_for_averages_is_refused() -> None:
    solids = symgnn.data.load("polytopes-3d", copies=1)
    for given in ("all", ["terms"]):
        with pytest.raises(ValueError, match="choose from training, terms, measures, none"):
            symgnn.fit(solids, {"block": "dgn", "averages": given}, epochs=1, progress=False)


@pytest.mark.parametrize("name", ["hidden", "cutoff", "separable"])
def test_options_of_the_network_among_those_of_the_training(name: str) -> None:
    message = rf"^{name}: is an option of the network; give it with the model, .*'{name}': 4"
    with pytest.raises(ValueError, match=message):
        symgnn.fit(symgnn.data.load("polytopes-3d", copies=2), "dgn", **{name: 4})
