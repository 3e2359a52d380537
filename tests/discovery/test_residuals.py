"""The residual test: exact under symmetry, and it sees what the predictors cannot learn."""

from __future__ import annotations

import torch
from torch_geometric.data import Data

from symgnn.data._task_of_graphs import with_task
from symgnn.discovery._kind_verdicts import RESIDUALS, judge
from symgnn.discovery._packing import pack
from symgnn.discovery._residual_test import TESTED, residual_test, sequential_p
from symgnn.discovery._target_rows import target_rows
from symgnn.geometry import EUCLIDEAN, EVERYTHING, PERMUTATIONS

RING = torch.arange(6)
EDGES = torch.stack([torch.cat([RING, RING.roll(1)]), torch.cat([RING.roll(1), RING])])


def clouds(count: int, seed: int) -> list[Data]:
    """Random points on a ring of edges, numbered at random, with targets that are noise."""
    generator = torch.Generator().manual_seed(seed)
    found = []
    for _ in range(count):
        pos = torch.randn(6, 3, generator=generator, dtype=torch.float64)
        order = torch.randperm(6, generator=generator)
        y = torch.randn(1, 1, generator=generator, dtype=torch.float64)
        found.append(Data(pos=pos, edge_index=order[EDGES], x=torch.ones(6, 1), y=y))
    return found


def p_value(kind: str, graphs: list[Data], seed: int, level: str = "graph") -> float:
    known, task = with_task(graphs, level)
    generator = torch.Generator().manual_seed(seed)
    packed = pack(known, generator)
    rows = target_rows(known, task, packed, generator)
    found = residual_test(kind, packed, rows, rows.y, seed)
    assert found is not None
    return found


def test_it_is_exact_where_everything_is_spread() -> None:
    # 60 sets of independent noise: 99 % of a binomial law have at most 7 p-values below 0.05
    for kind in TESTED:
        small = sum(p_value(kind, clouds(25, seed), seed) <= 0.05 for seed in range(60))
        assert small <= 7, kind


def test_sums_that_are_constant_but_for_rounding_are_left_out() -> None:
    generator = torch.Generator().manual_seed(0)

    def draw(copy: bool) -> list[tuple[torch.Tensor, torch.Tensor]]:
        order = torch.arange(101).double() / 100 - 0.5
        if copy:
            order = order[torch.randperm(101, generator=generator)]
        return [(order.unsqueeze(1), torch.full((101, 1), 0.1).double())]

    assert sequential_p(draw) == 1.0


def test_it_sees_directions_hands_and_places() -> None:
    for kind in TESTED:
        graphs = clouds(200, 7)
        for graph in graphs:
            if kind == "rotation":
                signal = (graph.pos - graph.pos.mean(0))[:, 2].square().mean()
            elif kind == "reflection":
                ring = graph.pos[graph.edge_index[1][:6]]
                graph.x = torch.nn.functional.one_hot(graph.edge_index[1][:6].argsort(), 6)
                signal = torch.linalg.det(ring[1:4] - ring[0]).sign()
            else:
                signal = graph.pos[0].norm() - graph.pos[5].norm()
            graph.y = graph.y + 2 * signal.reshape(1, 1)
        assert p_value(kind, graphs, 0) < 0.01, kind


def test_residuals_that_depend_on_a_kind_take_kept_back() -> None:
    noise = torch.rand(200, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    losses = {"graph alone": 1 + noise, "lengths": 0.3 * noise, "coordinates": 0.32 * noise}
    symmetries = {"graph alone": EVERYTHING, "lengths": EUCLIDEAN, "coordinates": PERMUTATIONS}
    given = {
        "kinds": ["permutation", "rotation", "reflection", "dilation"],
        "losses": losses,
        "variation": {},
        "symmetries": symmetries,
        "knocked": {},
        "blind": "graph alone",
        "spread": {},
        "signal": (0.85, 1e-6),
        "seed": 0,
        "whole": True,
    }
    p_values = {"permutation": 0.4, "rotation": 0.4, "reflection": 0.4}
    fine = judge(**given, residuals=p_values)
    assert [found.verdict for found in fine.values()] == ["kept", "kept", "kept", "broken"]
    found = judge(**given, residuals={**p_values, "rotation": 0.0025})
    assert found["rotation"].verdict == "undecided"
    assert found["rotation"].decided_by == RESIDUALS
    assert found["rotation"].residual == 0.0025
    assert found["reflection"].verdict == "undecided"  # two reflections make a rotation
    assert found["permutation"].verdict == "kept"
    assert found["dilation"].verdict == "broken"
    # three kinds are tested: 0.004 is not below 0.01 / 3
    assert judge(**given, residuals={**p_values, "rotation": 0.004})["rotation"].verdict == "kept"
