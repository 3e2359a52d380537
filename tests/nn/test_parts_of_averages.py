"""Averages of terms alone, and of measures alone: each does its part and nothing else."""

import pytest
import torch

from symgnn.data import polytope
from symgnn.nn import Averages, build


def outputs(pos_scale: float = 1.0, **options: object) -> torch.Tensor:
    """Of DGN on a tetrahedron, whose 4 nodes have 3 edges each, with the same weights each time."""
    torch.manual_seed(0)
    model = build("dgn", outputs=3, graph_state=False, init="torch", **options).double()  # type: ignore[arg-type]
    graph = polytope("simplex", 3)
    graph.pos = graph.pos.double() * pos_scale
    return model(graph)


def test_sums_over_the_number_of_their_terms_are_means() -> None:
    known = Averages(terms={"edge->node": 3.0, "node->graph": 4.0})
    torch.testing.assert_close(
        outputs(averages=known), outputs(aggregation="mean"), rtol=1e-12, atol=1e-12
    )


def test_squared_lengths_over_four_are_those_of_half_the_size() -> None:
    known = Averages(measures={"d2": ((0.0,), (4.0,))})
    torch.testing.assert_close(outputs(averages=known), outputs(0.5), rtol=1e-12, atol=1e-12)


def test_a_measure_that_is_missing_beside_others_is_named() -> None:
    with pytest.raises(ValueError, match="averages: have no measure 'd2', which DGN reads"):
        build("dgn", averages=Averages(measures={"theta": ((0.0,), (1.0,))}))
