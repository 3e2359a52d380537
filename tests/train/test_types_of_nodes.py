"""`z` in `symgnn train`: embedded where no column tells the types, or refused."""

import json
import warnings
from pathlib import Path

import pytest
import torch

import symgnn
from symgnn.data import _registry as registry
from symgnn.data._task import Splits
from symgnn.train._config import Config, resolve
from symgnn.train._run_loading import load
from symgnn.train._trained_run import Run
from symgnn.train._training import finish, train
from symgnn.train._types_in_data import NodeTypes
from trainings import solids

pytestmark = pytest.mark.usefixtures("one_thread")
MODEL = {"block": "dgn", "hidden": 4, "layers": 1}


def typed(*, x: str = "", top: int = 8) -> Splits:
    """The solids with types of nodes; `x` says which features are there, too."""
    splits = solids(level="graph")
    for k, graph in enumerate(splits.train):
        graph.z = torch.where(torch.arange(graph.num_nodes) % (k + 2) == 0, 1, top)
        if x == "columns":
            graph.x = torch.nn.functional.one_hot((graph.z == top).long()).float()
        if x == "ones":
            graph.x = torch.ones(graph.num_nodes, 2)
    if x == "some":
        del splits.train[2].z
    return splits


@pytest.fixture(autouse=True)
def _with_types(monkeypatch: pytest.MonkeyPatch) -> None:
    known = registry.Dataset("typed", "made", (5, 5, 5), typed)
    monkeypatch.setitem(registry.DATASETS, "typed", known)


def config(data: dict | None = None, **model: object) -> Config:
    given = {"data": {"name": "typed", **(data or {})}, "model": {**MODEL, **model}}
    return resolve({**given, "train": {"epochs": 1, "batch_size": 5}})


def trained(out: Path, data: dict | None = None, **model: object) -> Run:
    run = train(config(data, **model), out)
    assert run is not None
    finish(run)
    return load(out)


@pytest.mark.parametrize(
    ("data", "model", "types", "width"),
    [
        ({}, {}, 119, 0),
        ({"x": "ones"}, {}, 119, 2),
        ({"x": "columns"}, {}, None, 2),
        ({"x": "columns", "drop": ["x"]}, {}, 119, 0),
        ({"x": "columns"}, {"node_types": 9}, 9, 2),
        ({"drop": ["z"]}, {}, None, 0),
        ({"top": 150}, {"node_types": 151}, 151, 0),
    ],
    ids=str,
)
def test_how_types_are_read(
    data: dict, model: dict, types: int | None, width: int, tmp_path: Path
) -> None:
    run = trained(tmp_path, data, **model)
    found = run.model.types
    assert (found.num_embeddings if found is not None else None) == types
    assert run.model.features["v"] == width
    sizes = json.loads((tmp_path / "run.json").read_text())["sizes"]
    assert sizes.get("node_types") == types
    graph = typed(**{k: v for k, v in data.items() if k != "drop"}).train[0]
    plain, other = run.predict(graph).value, graph.clone()
    other.z = graph.z.flip(0)
    assert not torch.equal(other.z, graph.z)
    changed = not torch.equal(run.predict(other).value, plain)
    assert changed == (types is not None)


def test_types_that_are_missing_or_not_known_when_predicting(tmp_path: Path) -> None:
    run, graph = trained(tmp_path), typed().train[0]
    graph.z[0] = 119
    with (
        pytest.warns(UserWarning, match="type 119"),
        pytest.raises(ValueError, match=r"^z: holds 119; the model knows the types 0 to 118"),
    ):
        run.predict(graph)
    graph.z = None
    with pytest.raises(ValueError, match=r"^z: is missing"):
        run.predict(graph)


@pytest.mark.parametrize(
    ("data", "model", "message"),
    [
        ({"top": 150}, {}, r"z: graph 0 of train holds 150; model\.node_types is 119, for types"),
        ({"top": -3}, {}, r"z: graph 0 of train holds -3; .*data\.drop: \[z\]"),
        ({}, {"node_types": 5}, r"z: graph 0 of train holds 8; model\.node_types is 5"),
        ({"x": "some"}, {}, r"z: graph 2 of train has none, unlike those before"),
        ({}, {"node_types": -1}, r"model\.node_types: is -1; give a whole number"),
        (
            {},
            {"node_types": "atms"},
            r"model\.node_types: 'atms' is not known; did you mean 'atoms'",
        ),
    ],
    ids=str,
)
def test_types_that_do_not_fit(data: dict, model: dict, message: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=message):
        train(config(data, **model), tmp_path)


def test_a_network_with_types_of_its_own_is_as_it_was(tmp_path: Path) -> None:
    run = trained(tmp_path, block="schnet", hidden=8)
    assert run.model.network.types == 100
    assert "node_types" not in run.record["sizes"]


@pytest.mark.parametrize("sample", ["molecules", "sdf"])
def test_files_of_molecules_have_columns(sample: str) -> None:
    """Those of symgnn's readers, one for each element: networks are as they were."""
    pytest.importorskip("ase", reason="reading molecules needs ase")
    pytest.importorskip("rdkit", reason="reading SDF needs rdkit")
    graphs = symgnn.data.read(symgnn.data.sample(sample))
    for with_features in (True, False):
        types = NodeTypes(config())
        for graph in graphs:
            types.add(graph, "a graph", with_features)
        assert types.there
        assert types.read != with_features
    model = symgnn.nn.build("dgn", node_features=graphs[0].x.shape[1], **EDGES[sample])
    assert model(graphs[0]).isfinite().all()


EDGES: dict[str, dict] = {"molecules": {}, "sdf": {"edge_features": 4}}


def test_a_type_that_no_training_graph_had_is_warned_of(tmp_path: Path) -> None:
    run = trained(tmp_path)
    assert run.facts.types == [1, 8]
    graph = run.splits().test[0].clone()
    graph.z = torch.ones(graph.num_nodes, dtype=torch.long)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        run.predict(graph)
    graph.z[0] = 6
    with pytest.warns(UserWarning, match="type 6, which no training graph had"):
        run.predict(graph)


def test_types_that_are_not_read_are_not_warned_of(tmp_path: Path) -> None:
    run = trained(tmp_path, {"drop": ["z"]})
    assert run.facts.types is None
    graph = run.splits().test[0].clone()
    graph.z = torch.full((graph.num_nodes,), 6)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        run.predict(graph)
