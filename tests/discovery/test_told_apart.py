"""The network that tells graphs from turned ones, and its parts."""

import math

import pytest
import torch
from torch_geometric.data import Data

from symgnn.discovery import told_apart
from symgnn.discovery._told_apart import _sign_test, clouds, turned

PATH = torch.tensor([[0, 1, 1, 2, 2, 3], [1, 0, 2, 1, 3, 2]])


def sticks(count: int, aligned: bool, seed: int = 0) -> list[Data]:
    """Bent sticks in the plane: all upright, or each in a direction of its own."""
    generator = torch.Generator().manual_seed(seed)
    found = []
    for _ in range(count):
        pos = torch.tensor([[0.0, 0.0], [0.0, 1.0], [0.1, 2.0], [0.6, 3.0]], dtype=torch.float64)
        pos = pos + 0.1 * torch.randn(4, 2, generator=generator, dtype=torch.float64)
        if not aligned:
            angle = 2 * math.pi * float(torch.rand((), generator=generator))
            c, s = math.cos(angle), math.sin(angle)
            pos = pos @ torch.tensor([[c, s], [-s, c]], dtype=torch.float64)
        found.append(Data(pos=pos, edge_index=PATH))
    return found


def test_aligned_graphs_are_told_from_turned_ones() -> None:
    found = told_apart(sticks(100, aligned=True), steps=60, progress=False)
    assert (found.train, found.test) == (80, 20)
    # a random turn by less than some 20 degrees cannot be told: about 1 - 20 / 360
    assert found.accuracy > 0.85
    assert found.p_value < 1e-4
    assert found == told_apart(sticks(100, aligned=True), steps=60, progress=False)


def test_quarter_turns_are_none_in_one_case_of_four() -> None:
    found = told_apart(sticks(150, aligned=True), quarter=True, steps=60, progress=False)
    # at best 7/8; 30 images of which Binomial(30, 1/4) are as they were: 14 or more once in 500
    assert 0.75 <= found.accuracy <= 0.98


def test_spread_graphs_are_not_told_from_turned_ones() -> None:
    found = told_apart(sticks(100, aligned=False), steps=60, progress=False)
    assert found.p_value > 0.001
    assert found.accuracy < 0.8


def test_the_sign_test_is_exact() -> None:
    high, low = torch.ones(10), torch.zeros(10)
    assert _sign_test(high, low) == pytest.approx(2**-10, rel=1e-12)
    assert _sign_test(low, high) == 1.0
    assert _sign_test(low, low) == 1.0  # ties say nothing


def test_chosen_graphs_are_those_of_a_loop() -> None:
    given = [Data(pos=torch.randn(4 + k, 3), edge_index=PATH) for k in range(5)]
    every = clouds(given)
    part, which = every.chosen(torch.tensor([3, 1]))
    assert which.tolist() == [0] * 7 + [1] * 5
    ends = torch.cat([every.counts.new_zeros(1), every.counts.cumsum(0)])
    rows = torch.cat([every.x[ends[3] : ends[4]], every.x[ends[1] : ends[2]]])
    assert torch.equal(part.x, rows)
    for k, first in ((0, 0), (1, 7)):
        own = part.edges[:, 6 * k : 6 * k + 6] - first
        assert sorted(own.T.tolist()) == sorted(PATH.T.tolist())


@pytest.mark.parametrize("quarter", [False, True])
def test_turns_keep_distances_and_handedness(quarter: bool) -> None:
    given = [Data(pos=torch.randn(4, 3), edge_index=PATH) for _ in range(40)]
    every = clouds(given)
    part, which = every.chosen(torch.arange(40))
    image = turned(part, which, quarter, torch.Generator().manual_seed(0))
    before, after = part.x.view(40, 4, 3), image.x.view(40, 4, 3)
    assert (torch.cdist(before, before) - torch.cdist(after, after)).abs().max() < 1e-5  # float32
    volume = [torch.linalg.det(x[:, 1:] - x[:, :1]) for x in (before, after)]
    assert (volume[0] - volume[1]).abs().max() < 1e-4
    if quarter:
        assert torch.equal(after[..., 2], before[..., 2])
        kinds = {tuple(x) for x in torch.round((after[:, 0, :2] / before[:, 0, :2]).abs()).tolist()}
        same = (after - before).abs().amax((1, 2)) < 1e-6
        assert 2 <= int(same.sum()) <= 20  # Binomial(40, 1/4), 99.9 %
        assert len(kinds) > 1


@pytest.mark.parametrize(
    ("given", "options", "message"),
    [
        (sticks(10, True), {}, r"^graphs: there are 10; at least 20"),
        (sticks(30, True), {"steps": 0}, r"^steps: "),
        ([Data(pos=g.pos[:, :1], edge_index=PATH) for g in sticks(30, True)], {}, r"^graphs: have"),
    ],
)
def test_what_cannot_be_turned_is_refused(given, options, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        told_apart(given, progress=False, **options)
