import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from symgnn.geometry.mechanisms import folding_square, hoberman_sphere

few = settings(max_examples=25, deadline=None)
BENT_BAR = 2 * math.cos(math.radians(18))


def edge_lengths(pos, edge_index):
    return (pos[edge_index[0]] - pos[edge_index[1]]).norm(dim=1)


def check_edge_index(edge_index, edges):
    """Each undirected edge once in both directions, and no self-loop."""
    pairs = set(map(tuple, edge_index.T.tolist()))
    assert edge_index.shape == (2, 2 * edges)
    assert len(pairs) == 2 * edges
    assert all((b, a) in pairs and a != b for a, b in pairs)


@given(st.floats(0, math.pi))
@few
def test_folding_square(angle):
    pos, edge_index = folding_square(angle)
    assert pos.shape == (4, 2)
    assert pos.dtype == torch.float64
    check_edge_index(edge_index, 4)
    assert torch.allclose(edge_lengths(pos, edge_index), torch.ones(8).double(), atol=1e-15)
    # the diagonals of a rhombus
    assert float((pos[0] - pos[2]).norm()) == pytest.approx(2 * math.cos(angle / 2), abs=1e-12)
    assert float((pos[1] - pos[3]).norm()) == pytest.approx(2 * math.sin(angle / 2), abs=1e-12)


def test_folding_square_at_its_ends():
    square, _ = folding_square(math.pi / 2)
    corners = torch.tensor([[0, 0], [1, 0], [1, 1], [0, 1]]).double()
    assert torch.allclose(square, corners, atol=1e-15)
    for angle in (0.0, math.pi):
        pos, _ = folding_square(angle)
        assert pos[:, 1].abs().max() < 1e-15
        assert torch.linalg.matrix_rank(pos - pos[0], atol=1e-12) == 1


@given(st.floats(0, 1))
@few
def test_hoberman_sphere_keeps_its_edge_lengths(opening):
    pos, edge_index = hoberman_sphere(opening)
    assert pos.shape == (120, 3)
    assert pos.dtype == torch.float64
    lengths = edge_lengths(pos, edge_index)
    arm = (edge_index >= 60).any(0)
    assert int(arm.sum()) == 480
    assert torch.allclose(lengths[arm], torch.ones(480).double(), rtol=1e-12)
    assert torch.allclose(
        lengths[~arm], torch.full((240,), BENT_BAR, dtype=torch.float64), rtol=1e-12
    )


def test_hoberman_sphere_is_wired_alike_everywhere():
    _, edge_index = hoberman_sphere(0.5)
    check_edge_index(edge_index, 360)
    # a hub has an arm and a chord for each of the 4 pivots around it, a pivot has 4 arms
    assert edge_index[0].bincount().tolist() == 60 * [8] + 60 * [4]
    assert torch.equal(edge_index, hoberman_sphere(0.9)[1])


def test_hoberman_sphere_opens():
    clouds = [hoberman_sphere(opening / 20)[0] for opening in range(21)]
    diameters = torch.stack([torch.pdist(pos).max() for pos in clouds])
    assert (diameters.diff() > 0).all()
    assert diameters[-1] / diameters[0] > 1.6
    assert min(float(torch.pdist(pos).min()) for pos in clouds) > 0.03
    for pos in clouds:
        # the outer hubs, the inner hubs and the pivots are on three spheres about the origin
        assert all(float(radii.std()) < 1e-12 for radii in pos.norm(dim=1).split([30, 30, 60]))
        assert pos.mean(0).abs().max() < 1e-12


def test_types():
    for made in (
        folding_square(1.0, dtype=torch.float32),
        hoberman_sphere(0.5, dtype=torch.float32),
    ):
        assert made[0].dtype == torch.float32
        assert made[1].dtype == torch.int64


@pytest.mark.parametrize("value", [-0.1, 3.2, math.nan, math.inf])
def test_arguments_out_of_range(value):
    with pytest.raises(ValueError, match=rf"angle: must lie in \[0, pi\], got {value}; pass"):
        folding_square(value)
    with pytest.raises(ValueError, match=rf"opening: must lie in \[0, 1\], got {value}; 0 is"):
        hoberman_sphere(value)
