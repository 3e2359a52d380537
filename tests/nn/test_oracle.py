"""The fast models against the paper's equations in plain loops (`oracle.py`).

Outputs, and gradients with respect to all parameters, the coordinates and all input features, agree
to 1e-10 of their scale in float64. The cross product of architectures and aggregations is complete;
the rest is covered in pairs, and at random by hypothesis.
"""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from torch import Tensor

from nn import oracle
from nn.oracle_cases import AGGREGATIONS, MIXED, WITH_ANGLES, Case, check, disagreement, results
from symgnn.nn import ARCHITECTURES, COORDINATE_MAPS, Model
from symgnn.nn._engine.policy import using_policy

MOVING = [name for name in COORDINATE_MAPS if name != "identity"]


def matters(expected: dict[str, Tensor], part: str) -> None:
    """Assert that the gradients of all parameters of a part are clearly there."""
    found = {name: g.abs().max().item() for name, g in expected.items() if part in name}
    assert found, f"the model has no {part}"
    assert min(found.values()) > 1e-8, found


# ------------------------------------------------------------------ architectures, aggregations


def test_the_oracle_has_all_architectures_and_maps() -> None:
    assert set(ARCHITECTURES) == set(oracle.BLOCKS) - {"dgn+position"}
    known = {"identity", "scale", "scale-u", "shift", "shift-u", "rigid", "rigid-u"}
    assert set(COORDINATE_MAPS) == known | {"neighbour-sum", "egcn", "egcn-neighbours"}


@pytest.mark.parametrize("aggregation", AGGREGATIONS)
@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_architectures_and_aggregations(architecture: str, aggregation: str) -> None:
    case = Case(architecture, AGGREGATIONS[aggregation], graph="multigraph", angle=2, seed=3)
    expected = check(case)
    # every weight and every input has a say
    assert not {name for name, g in expected.items() if not g.abs().max() > 0}


@pytest.mark.parametrize("task", ["graph", "node", "edge", "coordinates"])
@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_tasks(architecture: str, task: str) -> None:
    psi = "neighbour-sum" if task == "coordinates" else "identity"
    check(Case(architecture, "sum", task, psi, "small+isolated", angle=1, seed=5))


@pytest.mark.parametrize("task", ["node-vectors", "graph-vectors"])
@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_vectors(architecture: str, task: str) -> None:
    """Over the rays of the input coordinates, also where the network scales or moves them."""
    case = Case(architecture, "sum", task, "neighbour-sum", "small+isolated", seed=5)
    expected = check(case)
    assert expected["output"].shape[1:] == (2, 3)
    case = replace(case, coordinate_map="identity", graph="multigraph", layers=3, outputs=1)
    expected = check(replace(case, aggregation="mean", rays="unit", dimension=2))
    assert expected["output"].shape[1:] == (2,)
    matters(expected, "readouts.0.updates.edge")
    if task == "graph-vectors":  # but for its last bias: a constant charge adds nothing
        matters(expected, "readouts.0.updates.node.phi.linears.1.weight")


@pytest.mark.parametrize("dimension", [1, 2, 5])
@pytest.mark.parametrize("layers", [1, 2])
def test_vectors_in_any_dimension_and_in_chunks(dimension: int, layers: int) -> None:
    case = Case("agn", "sum", "node-vectors", graph="wheel+single+edgeless", layers=layers)
    case = replace(case, dimension=dimension, chunk=3)
    check(case)
    check(replace(case, task="graph-vectors", graph="star+pair+single", rays="unit", seed=2))


@pytest.mark.parametrize("layers", [1, 3])
@pytest.mark.parametrize("architecture", ["gn", "dgn", "agn", "agn-to-edges", "agn-raw"])
def test_layers(architecture: str, layers: int) -> None:
    aggregation = "mean" if layers == 1 else MIXED
    check(Case(architecture, aggregation, graph="small", layers=layers, seed=7))


@pytest.mark.parametrize("aggregation", AGGREGATIONS)
@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_last_maps_folded_into_the_next_layer(architecture: str, aggregation: str) -> None:
    """The last map of edges and angles is not applied to them where it does not make them fewer."""
    case = Case(architecture, AGGREGATIONS[aggregation], graph="multigraph", angle=2, seed=4)
    case = replace(case, layers=3, mlp_hidden=2, coordinate_map="neighbour-sum")
    model = case.model()
    applied = []
    for block in model.blocks:
        for domain in {"edge", "angle"} & set(block.updates):
            last = block.updates[domain].phi.last
            last.register_forward_hook(lambda *args: applied.append(args))
    with using_policy(few=0):
        check(case, model=model)
    if "max" not in str(AGGREGATIONS[aggregation]):
        assert bool(applied) == (architecture == "agn+edges")  # which reads edges on its rays
    check(replace(case, mlp_layers=2, chunk=3 if architecture in WITH_ANGLES else None))


# ------------------------------------------------------------------ coordinate maps


@pytest.mark.parametrize("task", ["graph", "coordinates"])
@pytest.mark.parametrize("coordinate_map", COORDINATE_MAPS)
@pytest.mark.parametrize("architecture", ["dgn", "sdgn", "agn+edges", "cgn", "dgn+position"])
def test_coordinate_maps(architecture: str, coordinate_map: str, task: str) -> None:
    case = Case(architecture, "mean", task, coordinate_map, "wheel", layers=3, seed=11)
    if not case.valid:
        with pytest.raises(ValueError, match="would equal the input coordinates"):
            case.model()
        return
    expected = check(case)
    moves_nodes_apart = "neighbour" in coordinate_map or coordinate_map == "egcn"
    if coordinate_map != "identity" and (
        task == "coordinates" or moves_nodes_apart or architecture == "dgn+position"
    ):
        # the last layer's map is only there if coordinates come out
        last = 2 if task == "coordinates" else 1
        for layer in range(last + 1):
            matters(expected, f"blocks.{layer}.map")


@pytest.mark.parametrize("graph", ["multigraph", "isolated", "single+pair+complete"])
@pytest.mark.parametrize("coordinate_map", ["neighbour-sum", "egcn", "egcn-neighbours", "rigid-u"])
@pytest.mark.parametrize("task", ["graph", "coordinates"])
def test_coordinate_maps_and_graphs(coordinate_map: str, graph: str, task: str) -> None:
    check(Case("combined", "sum", task, coordinate_map, graph, layers=2, seed=13))


@pytest.mark.parametrize("coordinate_map", MOVING)
def test_coordinate_maps_of_nothing(coordinate_map: str) -> None:
    """No features at all: the first layer has no e and no u that a map could read."""
    case = Case("dgn", "sum", "coordinates", coordinate_map, "small+path", node=0, edge=0, u=0)
    check(case)
    check(replace(case, architecture="gn", mlp_layers=0))


def test_all_pairs_read_no_angles() -> None:
    with pytest.raises(ValueError, match="reads no angles"):
        Case("agn-to-edges", coordinate_map="egcn").model()


def test_small_turns() -> None:
    case = Case("dgn", task="coordinates", coordinate_map="rigid", dimension=2, layers=1)
    model = case.model()
    torch.nn.init.constant_(model.blocks[0].map.coefficients, 0.049)
    check(case, model=model)


@pytest.mark.parametrize("task", ["graph", "coordinates"])
@pytest.mark.parametrize("coordinate_map", ["neighbour-sum", "egcn", "egcn-neighbours"])
@pytest.mark.parametrize("architecture", ["dgn", "sdgn", "agn"])
def test_bounded_growth(architecture: str, coordinate_map: str, task: str) -> None:
    """A bound that acts on some of the graphs and not on others, against the loops' bound."""
    graph = "complete+single+small+edgeless"
    case = Case(architecture, "mean", task, coordinate_map, graph, layers=3, seed=17)

    def widening(max_growth: float | None) -> Model:
        """phi_x is near 1 or -1, so that nodes move away from each other."""
        model = replace(case, max_growth=max_growth).model()
        for block in model.blocks:
            if block.map is not None:
                sign = -1.0 if coordinate_map == "neighbour-sum" else 1.0
                torch.nn.init.constant_(block.map.update.phi.linears[-1].bias, sign)
        return model

    data = case.data()
    free = check(replace(case, max_growth=None), data, widening(None))
    for max_growth in (1.0, 3.0):
        bound = check(replace(case, max_growth=max_growth), data, widening(max_growth))
        acts = disagreement(bound, free)[0] > 1e-3
        # a common factor is nothing to angles
        assert acts == (architecture != "agn" or task == "coordinates")
    unbound, far = widening(None), widening(1e9)
    error, where = disagreement(results(far, far, data), results(unbound, unbound, data))
    assert error == 0, f"{where} has changed by {error:.1e}, but the bound is far"
