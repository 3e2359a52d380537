"""Sums over angles at the few nodes that have angles, against the listed angles."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor
from torch_geometric.data import Batch, Data

from symgnn.nn import build
from symgnn.nn._engine.moment_values import PART, MomentValues
from symgnn.nn._engine.policy import using_policy


def trees() -> Batch:
    """Most nodes are leaves, which have no angles; one graph has no angle at all."""
    random = torch.Generator().manual_seed(0)
    graphs = []
    for bonds, nodes in (
        ([(0, 1), (0, 2), (0, 3), (3, 4), (3, 5), (3, 6)], 8),
        ([(0, 1)], 3),
        ([(0, 1), (0, 2)], 3),
    ):
        one_way = torch.tensor(bonds).T
        edge_index = torch.cat([one_way, one_way.flip(0)], 1)
        pos = torch.randn(nodes, 3, dtype=torch.float64, generator=random)
        x = torch.randn(nodes, 20, dtype=torch.float64, generator=random)
        graphs.append(Data(x=x, pos=pos, edge_index=edge_index))
    return Batch.from_data_list(graphs)


def derivatives(model: torch.nn.Module, data: Batch) -> list[Tensor]:
    """The output, its derivatives, and those of their squares."""
    data = data.clone()
    leaves = [data.pos.requires_grad_(), data.x.requires_grad_(), *model.parameters()]
    out = model(data)
    first = torch.autograd.grad(out.square().sum(), leaves, create_graph=True)
    second = torch.autograd.grad(sum(each.square().sum() for each in first), leaves)
    return [out, *first, *second]


@pytest.mark.parametrize("aggregation", ["sum", "mean"])
@pytest.mark.parametrize("width", [2, 20], ids=["narrow", "wide"])
@pytest.mark.parametrize("tied", [False, True])
def test_few_nodes_have_angles(
    tied: bool, width: int, aggregation: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = trees()
    data.x = data.x[:, :width].clone()
    options = {"node_features": width, "aggregation": aggregation, "tied": tied}
    options |= {"hidden": 6, "mlp_hidden": 6, "graph_state": False}
    torch.manual_seed(0)
    model = build("agn-separable", **options).double()
    listed = build("agn-separable", engine="reference", **options).double()
    listed.load_state_dict(model.state_dict())
    taken, at_vertices = [], MomentValues.at_vertices

    def recorded(values: MomentValues, how: str) -> tuple[Tensor, Tensor] | None:
        taken.append(at_vertices(values, how))
        return taken[-1]

    monkeypatch.setattr(MomentValues, "at_vertices", recorded)
    with using_policy(few=0):  # small graphs take this way too
        found = derivatives(model, data)
    assert taken
    for each in taken:
        assert each is not None
        assert len(each[1]) == 3 <= PART * data.num_nodes
    wanted = derivatives(listed, data)
    for number, (one, other) in enumerate(zip(found, wanted, strict=True)):
        error = (one - other).abs().max() / other.abs().max().clamp(min=1.0)
        assert error < 1e-10, f"{number}: off by {error:.1e}"
