"""Vectors among the inputs: named, and suspected where they are not."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from audit.faulty import molecule
from symgnn.audit import audit


def distances(pos: Tensor) -> Tensor:
    return torch.pdist(pos).sum()


def few(model, data=None, **options):
    return audit(model, molecule() if data is None else data, elements=2, **options)


def rays(pos: Tensor, edge_index: Tensor) -> Tensor:
    return pos[edge_index[1]] - pos[edge_index[0]]


class Pushed(nn.Module):
    """Reads velocities as vectors."""

    def forward(self, pos: Tensor, vel: Tensor) -> Tensor:
        return (vel * (pos - pos.mean(0))).sum(1)


def test_named_vectors_turn() -> None:
    data = molecule()
    data.vel = torch.randn(9, 3, generator=torch.Generator().manual_seed(3))
    left = few(Pushed(), data)
    assert not left.holds("rotations")
    assert 'vectors=("vel",)' in left.warnings[0]
    turned = few(Pushed(), data, vectors="vel")
    assert turned.holds("E(n)"), turned
    assert not turned.warnings


def test_features_that_look_like_coordinates_are_named() -> None:
    data = molecule()
    data.x = torch.cat([data.x, -3 * (data.pos - data.pos.mean(0))], 1)
    ray = data.pos[data.edge_index[0]] - data.pos[data.edge_index[1]]
    data.edge_attr = nn.functional.normalize(ray, dim=1)

    def model(x, pos, edge_attr, edge_index):
        return (x[:, 4:] * pos).sum() + (edge_attr * rays(pos, edge_index)).sum()

    report = few(model, data)
    assert not report.holds("rotations")
    assert "x, columns 4 to 6: these are coordinates about the centroid" in report.warnings[-2]
    assert "edge_attr, columns 0 to 2: these are directions of edges" in report.warnings[-1]
    good = few(model, data, vectors=("x[4:7]", "edge_attr"))
    assert good.holds("O(n)"), good
    assert not good.warnings


def test_ordinary_features_are_not_suspected() -> None:
    data = molecule()
    data.edge_attr = rays(data.pos, data.edge_index).norm(dim=1, keepdim=True).repeat(1, 3)
    assert not few(distances, data).warnings


@pytest.mark.parametrize(
    ("vectors", "message"),
    [
        ("velocity", "vectors: 'velocity' is not an attribute of the data; choose from"),
        ("z", "vectors: 'z' is not an attribute"),
        ("x", r"vectors: 'x' has 4 columns, which are no vectors in 3 dimensions"),
        ("x[2:9]", "vectors: 'x"),
        ("x[0]", "vectors: 'x"),
    ],
)
def test_wrong_vectors(vectors, message) -> None:
    with pytest.raises(ValueError, match=message):
        few(distances, vectors=vectors)
