"""Features of which some values are rare: standardised, they stay near 1."""

import pytest
import torch
from torch_geometric.data import Data

from symgnn.nn import averages, build


def path(kinds: list[int]) -> Data:
    """A path of nodes with one-hot features of two kinds."""
    n = len(kinds)
    edges = torch.stack([torch.arange(n - 1), torch.arange(1, n)])
    generator = torch.Generator().manual_seed(n)
    return Data(
        x=torch.nn.functional.one_hot(torch.tensor(kinds), 2).float(),
        pos=torch.randn(n, 3, generator=generator),
        edge_index=torch.cat([edges, edges.flip(0)], 1),
    )


def graphs(rare: int, count: int = 400) -> list[Data]:
    """Paths of ten nodes; `rare` of all nodes are of the second kind."""
    kinds = torch.zeros(10 * count, dtype=torch.long)
    kinds[torch.linspace(0, len(kinds) - 1, rare).long()] = 1
    return [path(kinds[10 * k : 10 * k + 10].tolist()) for k in range(count)]


@pytest.mark.parametrize("rare", [1, 4, 40])
def test_no_training_value_is_more_than_five_deviations_from_the_mean(rare: int) -> None:
    mean, deviation = averages(graphs(rare), "dgn").features["v"]
    share = rare / 4000
    assert mean == pytest.approx((1 - share, share))
    assert deviation == pytest.approx(((1 - share) / 5, (1 - share) / 5))


def test_the_deviation_of_other_features_is_their_own() -> None:
    given = graphs(2000)
    generator = torch.Generator().manual_seed(0)
    for each in given:
        each.x = torch.randn(10, 2, generator=generator)
    rows = torch.cat([each.x for each in given]).double()
    mean, deviation = averages(given, "dgn").features["v"]
    assert mean == pytest.approx(rows.mean(0).tolist())
    assert deviation == pytest.approx(rows.std(0, unbiased=False).tolist())
    assert averages(graphs(2000), "dgn").features["v"][1] == pytest.approx((0.5, 0.5))


def test_features_of_graphs_without_nodes_count_nothing() -> None:
    empty = Data(
        x=torch.zeros(0, 2), pos=torch.zeros(0, 3), edge_index=torch.zeros(2, 0, dtype=torch.long)
    )
    mean, deviation = averages([empty, *graphs(40, 100), empty], "dgn").features["v"]
    assert mean == pytest.approx((0.96, 0.04))
    assert deviation == pytest.approx((0.96**0.5 * 0.2, 0.96**0.5 * 0.2))


@pytest.mark.parametrize("block", ["agn-separable", "combined-separable"])
def test_a_rare_kind_does_not_blow_up_products_of_four_layers(block: str) -> None:
    """With deviations of their own, outputs were 150,000 and 3,800,000."""
    torch.manual_seed(0)
    given = graphs(2)
    model = build(block, layers=4, dimension=3, node_features=2, averages=averages(given, block))
    common, rare = (abs(model(path(kinds)).item()) for kinds in ([0] * 10, [0] * 5 + [1] + [0] * 4))
    assert common < 10
    assert rare < 2000
