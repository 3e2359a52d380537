"""What product form cannot see: stars whose moments up to a degree are equal."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor
from torch_geometric.data import Batch, Data

from symgnn.nn import averages, build


def star(rays: Tensor) -> Data:
    """A vertex with these rays, which all come to it."""
    count, n = rays.shape
    edges = torch.stack([torch.arange(1, count + 1), torch.zeros(count, dtype=torch.long)])
    return Data(pos=torch.cat([torch.zeros(1, n, dtype=rays.dtype), rays]), edge_index=edges)


def pentagons(turn: float) -> Data:
    """Two regular pentagons: all harmonics of degree 1 to 4 vanish on each of them."""
    at = 72.0 * torch.arange(5, dtype=torch.float64)
    angle = torch.deg2rad(torch.cat([at, at + turn]))
    return star(torch.stack([angle.cos(), angle.sin()], 1))


def octahedra(turn: float) -> Data:
    """Two octahedra, turned about (1, 2, 3): harmonics of degree 1 to 3 vanish on each of them."""
    axis = torch.tensor([1.0, 2.0, 3.0], dtype=torch.float64) / math.sqrt(14)
    cross = torch.linalg.cross(axis.expand(3, 3), torch.eye(3, dtype=torch.float64))
    turned = torch.linalg.matrix_exp(math.radians(turn) * cross)
    one = torch.cat([torch.eye(3, dtype=torch.float64), -torch.eye(3, dtype=torch.float64)])
    return star(torch.cat([one, one @ turned]))


def change(name: str, one: Data, other: Data, **options: int) -> float:
    """How far the outputs of a random network for two graphs are apart, relative to their size."""
    torch.manual_seed(0)
    model = build(name, outputs=4, dimension=one.pos.shape[1], **options).double()
    with torch.no_grad():
        outs = model(one), model(other)
    return float((outs[0] - outs[1]).abs().max() / outs[0].abs().max())


@pytest.mark.parametrize("layers", [1, 3])
@pytest.mark.parametrize(("make", "strength"), [(pentagons, 4), (octahedra, 3)])
def test_equal_moments_are_the_same_to_product_form(make, strength: int, layers: int) -> None:  # type: ignore[no-untyped-def]
    stars = make(10.0), make(30.0)
    for degree in range(strength + 1):
        assert change("agn-separable", *stars, degree=degree, layers=layers) < 1e-12
    assert change("agn-separable", *stars, degree=strength + 1, layers=layers) > 1e-6
    assert change("agn", *stars, layers=layers) > 1e-6


def test_the_mlp_learns_what_a_low_degree_cannot_see() -> None:
    """Whether two pentagons are turned by more than 20 degrees, from 40 stars, on 200 others."""
    random = torch.Generator().manual_seed(0)
    turns = 4 + 32 * torch.rand(240, generator=random)
    turns[40:] = 4 + 32 * torch.linspace(0, 1, 200)
    graphs = [pentagons(turn) for turn in turns.tolist()]
    for each in graphs:
        each.pos = each.pos.float()
    train, test = Batch.from_data_list(graphs[:40]), Batch.from_data_list(graphs[40:])
    right = {}
    for name in ("agn", "agn-separable"):
        torch.manual_seed(0)
        known = averages(graphs[:1], name)
        model = build(name, task="node", layers=1, aggregation="sum", averages=known)
        optimiser = torch.optim.Adam(model.parameters(), 3e-3)
        schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, 3e-3, total_steps=300)
        for batch in (train, test):
            batch.topology = model.topology(batch)
        for _ in range(300):
            optimiser.zero_grad()
            error = model(train)[::11, 0] - (turns[:40] - 20.0) / 9.0
            error.square().mean().backward()
            optimiser.step()
            schedule.step()
        with torch.no_grad():
            right[name] = float(((model(test)[::11, 0] > 0) == (turns[40:] > 20.0)).float().mean())
    assert right["agn"] > 0.95
    assert right["agn-separable"] == 0.5  # all or none are said to be
