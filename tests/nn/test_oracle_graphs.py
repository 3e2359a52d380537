"""Models against the oracle on all kinds of graphs, dimensions and values"""

from __future__ import annotations

import itertools
from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch_geometric.data import Batch, Data

from nn import oracle
from nn.oracle_cases import (
    AGGREGATIONS,
    GRAPHS,
    MIXED,
    MOVEMENTS,
    TOLERANCE,
    WITH_ANGLES,
    Case,
    check,
    disagreement,
    leaves,
    results,
)
from symgnn.graphs import Topology
from symgnn.nn import ARCHITECTURES, COORDINATE_MAPS, build

# ------------------------------------------------------------------ graphs, dimensions, values


@pytest.mark.parametrize("dimension", range(1, 7))
@pytest.mark.parametrize(
    ("architecture", "coordinate_map", "task"),
    [
        ("gn", "identity", "graph"),
        ("dgn+position", "rigid", "graph"),
        ("sdgn", "shift-u", "coordinates"),
        ("agn", "neighbour-sum", "node"),
        ("agn+distances", "identity", "edge"),
        ("cgn", "rigid-u", "coordinates"),
        ("cgn", "egcn", "graph"),
    ],
)
def test_dimensions(architecture: str, coordinate_map: str, task: str, dimension: int) -> None:
    check(Case(architecture, "mean", task, coordinate_map, "small", dimension, seed=dimension))


@pytest.mark.parametrize("graph", [name for name in GRAPHS if name != "empty"])
@pytest.mark.parametrize(
    ("architecture", "aggregation"),
    [
        ("gn", "mean"),
        ("sdgn", "max"),
        ("agn+edges", "mean"),
        ("agn-to-edges", "max"),
        ("cgn", "sum"),
    ],
)
def test_graphs(architecture: str, aggregation: str, graph: str) -> None:
    check(Case(architecture, aggregation, graph=graph, angle=1, seed=19))
    if graph not in ("directed", "undirected", "multigraph"):  # small ones, the other tasks too
        for task in ("node", "edge", "coordinates"):
            psi = "neighbour-sum" if task == "coordinates" else "identity"
            check(Case(architecture, "max", task, psi, graph, seed=23))


@pytest.mark.parametrize("graph", ["multigraph", "directed", "isolated", "undirected"])
@pytest.mark.parametrize("seed", range(3))
def test_angles_are_those_of_the_definition(graph: str, seed: int) -> None:
    data = Case(graph=f"{graph}+star+{graph}", seed=seed).data()
    found = [tuple(angle) for angle in Topology.of(data).angle_index.t().tolist()]
    expected = [angle for one in oracle.graphs_of(data) for angle in one.angles()]
    assert sorted(found) == sorted(expected)
    assert len(found) == len(set(found)) > 0


BATCH = "small+single+multigraph+empty+pair+isolated+edgeless+complete"


@pytest.mark.parametrize("task", ["graph", "coordinates"])
@pytest.mark.parametrize("architecture", ["gn", "sdgn", "agn+edges", "agn-to-edges", "cgn"])
def test_batches(architecture: str, task: str) -> None:
    """A batch of graphs of different size: the oracle, and the model on one at a time."""
    psi = "neighbour-sum" if task == "coordinates" else "identity"
    for aggregation in ("max", "mean"):
        case = Case(architecture, aggregation, task, psi, BATCH, seed=29)
        check(case)
        model, batch = case.model(), case.data()
        together = results(model, model, batch)["output"]
        apart = torch.cat([model(one) for one in batch.to_data_list()])
        assert (together - apart).abs().max() < TOLERANCE * apart.abs().max()


@pytest.mark.parametrize("architecture", ["dgn", "agn", "cgn"])
def test_nodes_of_a_batch_in_any_order(architecture: str) -> None:
    """A `batch` vector that is not sorted, as it may come without PyG's `Batch`."""
    for task, psi in (("graph", "egcn"), ("coordinates", "egcn"), ("edge", "neighbour-sum")):
        case = Case(architecture, MIXED, task, psi, "small+path+complete", angle=1, seed=31)
        data = case.data()
        order = torch.randperm(len(data.pos), generator=torch.Generator().manual_seed(0))
        place = torch.argsort(order)
        mixed = Data(
            pos=data.pos.detach()[order],
            x=data.x.detach()[order],
            edge_index=place[data.edge_index],
            edge_attr=data.edge_attr.detach(),
            u=data.u.detach(),
            batch=data.batch[order],
        )
        assert (mixed.batch.diff() < 0).any()
        if case.angle_features:  # now of other angles, which is as good
            mixed.angle_attr = data.angle_attr.detach()
        for value in leaves(mixed).values():
            value.requires_grad_()
        check(case, mixed)


def test_angle_features_are_batched_with_their_angles() -> None:
    case = Case("agn", "sum", angle=2, seed=37)
    star, path = replace(case, graph="star").data(), replace(case, graph="path").data()
    model = case.model()
    together, apart = model(Batch.from_data_list([star, path])), [model(star), model(path)]
    assert (together - torch.cat(apart)).abs().max() < TOLERANCE * together.abs().max()


@pytest.mark.parametrize("architecture", ["gn", "dgn", "agn+edges", "agn-to-edges"])
@pytest.mark.parametrize("present", list(itertools.product([0, 1], repeat=3)), ids=str)
def test_values_that_are_there_or_not(architecture: str, present: tuple[int, ...]) -> None:
    node, edge, u = present
    for angle in (0, 1) if architecture in WITH_ANGLES else (0,):
        case = Case(architecture, "mean", graph="small", seed=41)
        check(replace(case, node=2 * node, edge=3 * edge, angle=angle, u=2 * u))


def test_angle_features_that_nobody_reads() -> None:
    """Refused by `build` where the specification has no use for them, else taken and ignored."""
    for architecture in ("gn", "dgn", "agn-raw"):
        with pytest.raises(ValueError, match=r"angle_features: is 1, but no update of"):
            build(architecture, dimension=3, angle_features=1)
    case = Case("agn", task="coordinates", coordinate_map="egcn", layers=1, angle=2)
    with_, without = case.data(), replace(case, angle=0)
    model = case.model()
    expected = without.model()
    expected.load_state_dict(model.state_dict())
    plain = with_.clone()
    plain.angle_attr = None
    assert torch.equal(model(with_), expected(plain))


@pytest.mark.parametrize("architecture", ARCHITECTURES)
@pytest.mark.parametrize("aggregation", ["mean", "max"])
def test_coordinates_alone(architecture: str, aggregation: str) -> None:
    """No features of any kind, as in the paper's polytopes."""
    check(Case(architecture, aggregation, graph="undirected+path", node=0, edge=0, u=0, seed=43))


@pytest.mark.parametrize("mlp_layers", [0, 1, 2, 3])
@pytest.mark.parametrize("aggregation", ["sum", "mean", "max"])
@pytest.mark.parametrize("architecture", ["dgn", "agn+edges", "agn-to-edges"])
def test_depth_of_phi(architecture: str, aggregation: str, mlp_layers: int) -> None:
    case = Case(architecture, aggregation, graph="small+star", mlp_layers=mlp_layers, seed=47)
    check(replace(case, coordinate_map="neighbour-sum"))


@pytest.mark.parametrize("readout_layers", [0, 1, 2])
@pytest.mark.parametrize("task", ["graph", "node", "edge"])
def test_depth_of_the_read_out(task: str, readout_layers: int) -> None:
    case = Case("agn", "mean", task, mlp_layers=1, readout_layers=readout_layers, seed=49)
    head = [p for name, p in case.model().named_parameters() if name.startswith("readouts.")]
    plain = replace(case, readout_layers=None).model()
    before = [p for name, p in plain.named_parameters() if name.startswith("readouts.")]
    mlps = 2 if task == "graph" else 1
    assert len(head) - len(before) == 2 * mlps * (readout_layers - 1)
    check(case)


@pytest.mark.parametrize("scaling", [0.3, 1.0, 7.0])
@pytest.mark.parametrize("task", ["graph", "coordinates"])
def test_scaling(scaling: float, task: str) -> None:
    for psi in ("neighbour-sum", "scale", "shift", "egcn"):
        check(
            Case("sdgn", "mean", task, psi, "small+edgeless+multigraph", scaling=scaling, seed=53)
        )


@pytest.mark.parametrize("aggregation", AGGREGATIONS)
@pytest.mark.parametrize("architecture", WITH_ANGLES)
def test_chunks(architecture: str, aggregation: str) -> None:
    """A chunk of 7 angles (a vertex of degree 3 has 6) changes neither values nor gradients."""
    case = Case(architecture, AGGREGATIONS[aggregation], graph="small+isolated", angle=1, seed=59)
    chunked, data = replace(case, chunk=7).model(), case.data()
    assert len(Topology.of(data).cuts(7)) > 1
    expected = check(case)
    error, where = disagreement(results(chunked, chunked, data), expected)
    assert error < TOLERANCE, f"{case}, chunk=7: {where} is off by {error:.2e} of its scale"
    with torch.no_grad():
        assert (chunked(data) - expected["output"]).abs().max() < TOLERANCE


def test_parts_of_a_graph() -> None:
    """`model(pos=..., topology=...)` is `model(data)`."""
    case = Case("agn+edges", MIXED, graph="small+multigraph", angle=2, seed=61)
    model, data = case.model(), case.data()

    def parts(data: Data) -> Tensor:
        topology = Topology.of(data)
        attr = {"x": data.x, "edge_attr": data.edge_attr, "angle_attr": data.angle_attr}
        return model(pos=data.pos, topology=topology, u=data.u, **attr)

    error, where = disagreement(results(parts, model, data), check(case, data))
    assert error < TOLERANCE, f"{where} is off by {error:.2e} of its scale"


@pytest.mark.parametrize("architecture", ["dgn", "agn", "agn+distances", "agn-raw", "cgn"])
@pytest.mark.parametrize("aggregation", ["sum", "mean"])
def test_coincident_points(architecture: str, aggregation: str) -> None:
    """Rays of length zero and neighbours in one place, by the conventions of `measures`."""
    case = Case(architecture, aggregation, graph="complete+star", seed=67)
    for together in ([0, 1], [1, 2], [0, 1, 2]):
        data = case.data()
        pos = data.pos.detach().clone()
        pos[together] = pos[together[0]].clone()
        data.pos = pos.requires_grad_()
        check(case, data)


# ------------------------------------------------------------------ at random


@st.composite
def cases(draw: st.DrawFn) -> Case:
    several = st.lists(
        st.sampled_from(["small", "path", "star", "pair", "single", "loop"]), max_size=2
    )
    first = draw(st.sampled_from(["directed", "multigraph", "isolated", "undirected", "complete"]))
    architecture = draw(st.sampled_from([*ARCHITECTURES, "dgn+position"]))
    aggregation = draw(
        st.fixed_dictionaries(
            {}, optional={m: st.sampled_from(["sum", "mean", "max"]) for m in MOVEMENTS}
        )
    )
    case = Case(
        architecture,
        aggregation,
        task=draw(st.sampled_from(["graph", "node", "edge", "coordinates"])),
        coordinate_map=draw(st.sampled_from(list(COORDINATE_MAPS))),
        graph="+".join([first, *draw(several)]),
        dimension=draw(st.integers(1, 6)),
        layers=draw(st.integers(1, 3)),
        mlp_layers=draw(st.integers(0, 3)),
        readout_layers=draw(st.none() | st.integers(0, 3)),
        mlp_hidden=draw(st.integers(2, 4)),
        node=draw(st.integers(0, 3)),
        edge=draw(st.integers(0, 3)),
        angle=draw(st.integers(0, 2)),
        u=draw(st.integers(0, 2)),
        scaling=draw(st.sampled_from([None, 0.5, 3.0])) if architecture == "sdgn" else None,
        chunk=draw(st.sampled_from([None, 1, 7])),
        seed=draw(st.integers(0, 2**31 - 1)),
    )
    if not case.valid:
        case = replace(case, coordinate_map="neighbour-sum")
    return case if case.model().needs_angles else replace(case, angle=0)


@given(cases())
@settings(max_examples=30, deadline=None)
def test_anything(case: Case) -> None:
    # the turns that phi(u) gives may be small: see test_small_turns
    check(case)
