"""Residual tests of translations, dilations and rotations about the origin."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor
from torch_geometric.data import Data

import symgnn
from symgnn.data._task_of_graphs import with_task
from symgnn.discovery._kind_verdicts import RESIDUALS, judge
from symgnn.discovery._packing import pack
from symgnn.discovery._residual_test import ResidualFinding, residual_test
from symgnn.discovery._spread import randomisation_test
from symgnn.discovery._target_rows import target_rows
from symgnn.geometry import EUCLIDEAN, EVERYTHING, PERMUTATIONS

RING = torch.arange(6)
EDGES = torch.stack([torch.cat([RING, RING.roll(1)]), torch.cat([RING.roll(1), RING])])


def rings(count: int, seed: int, *, tied: bool = False, level: str = "graph") -> list[Data]:
    """Rings of nodes in random places, of random sizes; tied, both depend on the shape.

    The targets are noise, tied: of a deviation that depends on the place.
    """
    generator = torch.Generator().manual_seed(seed)

    def noise(*shape: int) -> Tensor:
        return torch.randn(shape, generator=generator, dtype=torch.float64)

    found = []
    for _ in range(count):
        shape = noise(6, 3)
        shape = shape - shape.mean(0)
        shape = shape / shape.square().sum(1).mean().sqrt()
        place, size = noise(3), (0.4 * noise()).exp()
        if tied:
            place = 3 * shape[:, 0].square().mean() + 0.1 * place
            size = (3 * shape[:, 1].square().mean()).exp() * size.sqrt()
        y = noise(6, 3) if level == "node-vectors" else noise(1, 1)
        y = y * (place[0] if tied else 1.0)
        found.append(Data(pos=size * shape + place, edge_index=EDGES, y=y))
    return found


def finding(
    kind: str, graphs: list[Data], seed: int = 0, level: str = "graph", origin: bool = False
) -> ResidualFinding | None:
    known, task = with_task(graphs, level)
    packed = pack(known, torch.Generator().manual_seed(seed))
    rows = target_rows(known, task, packed, torch.Generator().manual_seed(seed))
    return residual_test(kind, packed, rows, rows.y, seed, origin)


CASES = [
    ("translation", False, False),
    ("translation", True, False),
    ("dilation", False, False),
    ("dilation", True, False),
    ("dilation", False, True),
    ("rotation", False, True),
]


@pytest.mark.parametrize(("kind", "tied", "origin"), CASES)
def test_symmetric_sets_are_rejected_as_often_as_said(kind: str, tied: bool, origin: bool) -> None:
    # 60 sets: 99.9 % of a binomial law have at most 9 p-values of 0.05 or less
    small = 0
    for seed in range(60):
        found = finding(kind, rings(60, 3_000 + seed, tied=tied), seed, origin=origin)
        assert found is not None
        small += found.p_value <= 0.05
    assert small <= 9


@pytest.mark.parametrize("tied", [False, True])
@pytest.mark.parametrize("kind", ["translation", "dilation"])
def test_effects_of_places_and_sizes_are_seen(kind: str, tied: bool) -> None:
    graphs = rings(300, 7, tied=tied)
    for graph in graphs:
        centred = graph.pos - graph.pos.mean(0)
        square = centred.square().sum(1).mean()
        height = 2 * graph.pos[:, 2].mean()
        if tied:  # what no shape tells, a tenth of an independent place
            height = 10 * (height - 6 * centred[:, 0].square().mean() / square)
        graph.y = graph.y + (height if kind == "translation" else square.log())
    found = finding(kind, graphs)
    assert found is not None
    assert found.p_value < 0.01
    # where places hang together with shapes, nothing is promised
    assert (found.visible is None) == tied


def test_an_effect_of_the_place_is_seen_by_rotations_about_the_origin_alone() -> None:
    graphs = rings(200, 8)
    for graph in graphs:
        graph.y = graph.y + graph.pos[:, 2].mean()
    about_centroids = finding("rotation", graphs)
    about_origin = finding("rotation", graphs, origin=True)
    assert about_centroids is not None
    assert about_origin is not None
    assert about_origin.p_value < 0.01 < about_centroids.p_value


def test_places_that_are_not_spread_about_the_origin_are_noticed() -> None:
    graphs = rings(100, 9)
    even = randomisation_test(
        "rotation about the origin", pack(graphs, torch.Generator().manual_seed(0)), graphs, 0
    )
    for graph in graphs:
        graph.pos = graph.pos + 5
    packed = pack(graphs, torch.Generator().manual_seed(0))
    uneven = randomisation_test("rotation about the origin", packed, graphs, 0)
    assert uneven[0] == 0.005 < even[0]
    assert randomisation_test("rotation", packed, graphs, 0)[0] > 0.005


def test_there_is_no_test_where_nothing_differs() -> None:
    graphs = rings(30, 10)
    for graph in graphs:
        graph.pos = graph.pos - graph.pos.mean(0) + 7.0
    assert finding("translation", graphs) is None
    for graph in graphs:
        centred = graph.pos - 7.0
        graph.pos = centred / centred.square().sum(1).mean().sqrt()
    assert finding("dilation", graphs) is None
    vectors = rings(30, 11, level="node-vectors")
    assert finding("dilation", vectors, level="node-vectors") is None
    assert finding("translation", vectors, level="node-vectors") is not None


def test_a_little_height_beside_lengths_is_not_called_kept() -> None:
    graphs = rings(200, 12)
    noise = torch.randn(200, generator=torch.Generator().manual_seed(1)).double()
    for graph, each in zip(graphs, noise, strict=True):
        lengths = (graph.pos[EDGES[0]] - graph.pos[EDGES[1]]).norm(dim=1)
        height = graph.pos[:, 2].mean().sin()
        graph.y = (3 * lengths.sin().mean() + 0.2 * height + 0.2 * each).reshape(1, 1)
    report = symgnn.discover(graphs, level="graph", questions=(), progress=False)
    for kind in ("translation", "rotation", "reflection", "dilation"):
        assert report.verdicts[kind].verdict != "kept", kind
    assert report.network is not None
    assert "translation" not in report.network


def test_places_that_matter_take_kept_from_maps_about_the_origin() -> None:
    noise = torch.rand(200, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    kinds = ["permutation", "translation", "rotation", "reflection"]
    given: dict[str, Any] = {
        "kinds": kinds,
        "losses": {"graph alone": 1 + noise, "lengths": 0.3 * noise, "coordinates": 0.32 * noise},
        "symmetries": {
            "graph alone": EVERYTHING,
            "lengths": EUCLIDEAN,
            "coordinates": PERMUTATIONS,
        },
        "variation": {},
        "knocked": {},
        "blind": "graph alone",
        "spread": {},
        "signal": (0.85, 1e-6),
        "seed": 0,
        "whole": True,
    }
    even, uneven = ResidualFinding(0.4, 0.01), ResidualFinding(0.001, 0.01)
    found = judge(**given, residuals={"translation": even, "rotation": even})
    assert {each.verdict for each in found.values()} == {"kept"}
    found = judge(**given, residuals={"translation": uneven, "rotation": even})
    assert [found[kind].verdict for kind in kinds] == ["kept", *["undecided"] * 3]
    assert found["rotation"].decided_by == RESIDUALS
    turned = ResidualFinding(0.4, 0.01, about_origin=True)
    found = judge(**given, residuals={"translation": uneven, "rotation": turned})
    assert found["rotation"].verdict == "kept"
    assert found["reflection"].verdict == "undecided"


def test_there_are_no_hands_to_test_with_fewer_features_than_dimensions() -> None:
    generator = torch.Generator().manual_seed(2)
    graphs = rings(30, 13)
    for graph in graphs:
        graph.pos = torch.randn(6, 6, generator=generator, dtype=torch.float64)
    assert finding("reflection", graphs) is None
    assert finding("rotation", graphs) is not None


def test_only_what_errors_call_kept_is_tested() -> None:
    graphs = rings(40, 14)
    for graph in graphs:
        graph.y = graph.pos[:, 2].mean().reshape(1, 1)
    report = symgnn.discover(graphs, level="graph", questions=(), progress=False)
    for kind, found in report.verdicts.items():
        assert found.residual is None or found.verdict != "broken", kind
    assert report.verdicts["translation"].verdict == "broken"
    assert report.verdicts["translation"].residual is None
