"""Passes that are differentiated once, against the reference engine and against autograd."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from ase import Atoms
from ase.build import bulk, molecule
from torch_geometric.data import Batch, Data

from nn.potential_cases import SMOOTH, STRUCTURES, graph, potential, rattled
from symgnn.nn import EnergyForces, Potential
from symgnn.nn._engine.force_pass import ForcePass
from symgnn.nn._engine.pair_values import PairValues
from symgnn.nn._engine.policy import using_policy
from symgnn.nn.filtered import FILTERED


def alloy() -> Atoms:
    atoms = rattled(bulk("Cu", cubic=True) * (2, 2, 1))
    atoms.numbers[::3] = 79
    return atoms


GRAPHS = {
    "one element": lambda: rattled(bulk("Cu", cubic=True) * (2, 1, 1)),
    "alloy": alloy,
    "molecule": lambda: rattled(molecule("C6H6")),
    **STRUCTURES,
}


@pytest.fixture(autouse=True)
def even_for_few() -> Iterator[None]:
    """Small graphs take this way too."""
    with using_policy(few=0):
        yield


@pytest.fixture
def taken(monkeypatch: pytest.MonkeyPatch) -> list[tuple[bool, int]]:
    """Of each update that was computed here: if on rows, and how many edges were left."""
    found: list[tuple[bool, int]] = []
    update = ForcePass.edges

    def recorded(*given: object) -> PairValues:
        value = update(*given)  # type: ignore[arg-type]
        found.append((value.on_rows, len(value.pairs.row)))  # type: ignore[attr-defined]
        return value  # type: ignore[return-value]

    monkeypatch.setattr(ForcePass, "edges", recorded)
    return found


def numbers(model: Potential, data: Data) -> EnergyForces:
    with torch.no_grad():
        return model.eval()(data, stress=True)


def check(model: Potential, data: Data, more: Data | None = None) -> None:
    """The same as by autograd; `more` has edges beyond the cutoff too."""
    found = numbers(model, data if more is None else more)
    wanted = model.eval()(data, stress=True)
    for name in EnergyForces._fields:
        torch.testing.assert_close(
            getattr(found, name), getattr(wanted, name), rtol=1e-10, atol=1e-11, equal_nan=True
        )


@pytest.mark.parametrize("structure", GRAPHS)
@pytest.mark.parametrize(("layers", "residual"), [(1, False), (2, True), (3, True), (3, False)])
def test_edges_beyond_the_cutoff_and_both_ways(
    structure: str, layers: int, residual: bool, taken: list[tuple[bool, int]]
) -> None:
    model = potential("dgn", layers=layers, residual=residual, engine="reference")
    fast = potential("dgn", layers=layers, residual=residual)
    atoms = GRAPHS[structure]()
    data, more = graph(atoms), graph(atoms, 4.4)
    found, wanted = numbers(fast, more), numbers(model, data)
    for name in EnergyForces._fields:
        torch.testing.assert_close(
            getattr(found, name), getattr(wanted, name), rtol=1e-10, atol=1e-11, equal_nan=True
        )
    if more.num_edges:
        assert taken == [(number == 0, data.num_edges) for number in range(layers)]


@pytest.mark.parametrize("block", SMOOTH)
@pytest.mark.parametrize("structure", ["alloy", "molecule"])
def test_every_block(block: str, structure: str, taken: list[tuple[bool, int]]) -> None:
    model, atoms = potential(block, residual=True), GRAPHS[structure]()
    check(model, graph(atoms))
    assert taken or block in FILTERED  # whose edges have no MLP


def test_batches(taken: list[tuple[bool, int]]) -> None:
    data = Batch.from_data_list([graph(make()) for make in GRAPHS.values()])
    check(potential("dgn", layers=3, residual=True), data)
    assert taken


@pytest.mark.parametrize(
    "options",
    [
        {"layers": 6, "residual": True},
        {"norm": True},
        {"mlp_layers": 2},
        {"hidden": 3, "radial": 2},
    ],
)
def test_options(options: dict) -> None:
    data, more = graph(alloy()), graph(alloy(), 4.4)
    check(potential("dgn", **options), data, more)


def test_features_tell_nodes_apart(taken: list[tuple[bool, int]]) -> None:
    data = graph(alloy())
    data.x = torch.randn(len(data.pos), 2, generator=torch.Generator().manual_seed(0)).double()
    check(potential("dgn", node_features=2), data)
    assert [on_rows for on_rows, _ in taken] == [False, False]


def test_features_of_edges(taken: list[tuple[bool, int]]) -> None:
    data = graph(alloy(), 4.4)
    random = torch.Generator().manual_seed(0)
    data.edge_attr = torch.randn(data.num_edges, 3, generator=random).double()
    check(potential("dgn", edge_features=3), data)
    assert {edges for _, edges in taken} == {data.num_edges}


def test_graphs_without_reverses() -> None:
    data = graph(alloy())
    some = torch.arange(data.num_edges) % 3 > 0
    one_way = Data(**{**data.to_dict(), "edge_index": data.edge_index[:, some]})
    one_way.edge_shift = data.edge_shift[some]
    check(potential("dgn"), one_way)
    order = torch.randperm(data.num_edges, generator=torch.Generator().manual_seed(0))
    mixed = Data(**{**data.to_dict(), "edge_index": data.edge_index[:, order]})
    mixed.edge_shift = data.edge_shift[order]
    check(potential("dgn"), mixed)


def test_a_topology_is_not_used_for_other_elements() -> None:
    model, data = potential("dgn"), graph(alloy())
    data.topology = model.topology(data)
    check(model, data)
    data.z = data.z.flip(0)
    check(model, data)


def test_parameters_that_change_and_that_can_be_differentiated() -> None:
    model, data = potential("dgn", residual=True), graph(alloy())
    check(model, data)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter *= 1.1
    check(model, data)
    check(model.requires_grad_(False), data)


def test_results_stay_when_memory_is_used_again() -> None:
    model = potential("dgn", residual=True)
    first = numbers(model, graph(alloy()))
    kept = [each.clone() for each in first]  # type: ignore[union-attr]
    numbers(model, graph(GRAPHS["molecule"]()))
    assert all(torch.equal(a, b) for a, b in zip(first, kept, strict=True))  # type: ignore[arg-type]


def test_threads_have_memory_of_their_own() -> None:
    model = potential("dgn", residual=True)
    graphs = [graph(rattled(alloy(), seed)) for seed in range(8)]
    wanted = [numbers(model, each).forces for each in graphs]

    def work(each: Data) -> torch.Tensor:
        with using_policy(few=0):
            found = numbers(model, each).forces
        assert found is not None
        return found

    with ThreadPoolExecutor(4) as threads:
        found = list(threads.map(work, graphs * 8))
    for number, forces in enumerate(found):
        assert torch.equal(forces, wanted[number % 8])  # type: ignore[arg-type]


def test_copies_have_no_memory() -> None:
    model, data = potential("dgn"), graph(alloy())
    numbers(model, data)
    for other in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        assert other.workspaces is not model.workspaces
        assert not other.workspaces._free
        torch.testing.assert_close(numbers(other, data).forces, numbers(model, data).forces)
