"""Predictions of product form, which need no derivative, equal those of listed angles."""

import pytest
import torch
from torch_geometric.data import Data

from symgnn.graphs import PeriodicGraph
from symgnn.nn import build

BLOCKS = ("agn-separable", "combined-separable", "cgn-separable", "agn-to-edges-separable")


def predicted(block: str, graph: Data, **options: object) -> None:
    """Compare with the reference engine: without gradients, in inference mode, with gradients."""
    made = {"dimension": graph.pos.shape[1], "aggregation": "sum", **options}
    torch.manual_seed(0)
    fast = build(block, **made).double()  # type: ignore[arg-type]
    listed = build(block, engine="reference", **made).double()  # type: ignore[arg-type]
    listed.load_state_dict(fast.state_dict())
    with torch.no_grad():
        expected, alone = listed(graph), fast(graph)
    with torch.inference_mode():
        inferred = fast(graph)
    for found in (alone, inferred, fast(graph).detach()):
        torch.testing.assert_close(found, expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("count", [1, 2, 5, 60])
@pytest.mark.parametrize("dimension", [1, 2, 3, 4])
@pytest.mark.parametrize("block", BLOCKS)
def test_directed_graphs(block: str, dimension: int, count: int) -> None:
    generator = torch.Generator().manual_seed(count)
    there = torch.rand(count, count, generator=generator) < 8 / count
    edges = (there & ~torch.eye(count, dtype=torch.bool)).nonzero().T
    pos = torch.randn(count, dimension, generator=generator, dtype=torch.float64)
    predicted(block, Data(pos=pos, edge_index=edges))
    if block != "cgn-separable":  # inverted rays have no limit there
        together = torch.where(torch.arange(count).unsqueeze(1) > count // 2, pos[:1], pos)
        predicted(block, Data(pos=together, edge_index=edges))


@pytest.mark.parametrize("options", [{}, {"radial": 4, "cutoff": 2.5}])
@pytest.mark.parametrize("block", ["agn+distances-separable", "combined-separable"])
def test_periodic_cells(block: str, options: dict[str, float]) -> None:
    generator = torch.Generator().manual_seed(0)
    cell = 3 * torch.eye(3).double() + 0.3 * torch.randn(3, 3, generator=generator).double()
    pos = torch.rand(6, 3, generator=generator).double() @ cell
    graph = Data(pos=pos, cell=cell.unsqueeze(0), pbc=torch.ones(1, 3, dtype=torch.bool))
    predicted(block, PeriodicGraph(2.5)(graph), **options)
