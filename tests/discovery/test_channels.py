"""Each channel is kept by what it says, and by nothing else that is asked about."""

import pytest
import torch
from torch_geometric.data import Data

from symgnn.discovery._channels import CHANNELS, handedness
from symgnn.discovery._ladder import RUNGS
from symgnn.discovery._moving import ASKED, element, moved
from symgnn.discovery._packing import Pack, pack


def tree(seed: int, dimension: int) -> Data:
    """A random tree with types: it has torsions, flexes and redrawings."""
    generator = torch.Generator().manual_seed(seed)
    pos = torch.randn(9, dimension, generator=generator, dtype=torch.float64) * 1.3 + 0.4
    parents = [0, 0, 0, 1, 1, 1, 2, 2]
    pairs = torch.tensor([parents, list(range(1, 9))])
    return Data(
        pos=pos,
        edge_index=torch.cat([pairs, pairs.flip(0)], 1),
        x=torch.randn(9, 2, generator=generator, dtype=torch.float64),
        y=torch.zeros(1, 1),
    )


def measured(name: str, packed: Pack) -> torch.Tensor:
    return torch.cat([part.values.flatten() for part in CHANNELS[name].measure(packed)])


@pytest.mark.parametrize("dimension", [2, 3])
@pytest.mark.parametrize("name", list(CHANNELS))
def test_a_channel_has_the_symmetry_that_it_says(name: str, dimension: int) -> None:
    graphs = [tree(seed, dimension) for seed in range(4)]
    packed = pack(graphs, torch.Generator().manual_seed(0))
    before = measured(name, packed)
    if before.numel() == 0:
        assert name == "topology"
        return
    wrong = {}
    for kind in ASKED:
        image, _ = moved(kind, packed, graphs, 5)
        change = float((measured(name, image) - before).abs().max() / before.abs().max())
        # flexes are followed in steps, to about 1e-10; everything else is exact to rounding
        if (change < 1e-6) != (kind in CHANNELS[name].symmetry):
            wrong[kind] = change
    assert not wrong


def test_determinants_change_sign_in_a_mirror() -> None:
    graphs = [tree(seed, 3) for seed in range(3)]
    packed = pack(graphs, torch.Generator().manual_seed(0))
    image, _ = moved("reflection", packed, graphs, 1)
    for before, after in zip(handedness(packed), handedness(image), strict=True):
        assert before.abs().max() > 1e-3
        assert (before + after).abs().max() < 1e-12 * before.abs().max().clamp(min=1)


def test_the_elements_of_a_path() -> None:
    edges = torch.tensor([[0, 1, 2], [1, 2, 3]])  # in one direction only
    path = Data(pos=torch.randn(4, 3), edge_index=edges)
    packed = pack([path, path], torch.Generator())
    assert packed.edges.shape == (2, 12)  # both directions, two graphs
    assert packed.angles.T.tolist() == [[0, 1, 2], [1, 2, 3], [4, 5, 6], [5, 6, 7]]
    assert packed.chains.T.tolist() == [[0, 1, 2, 3], [4, 5, 6, 7]]
    assert packed.pairs.shape == (2, 12)
    assert packed.hops[:6].tolist() == [1, 2, 3, 1, 2, 1]


def test_every_rung_keeps_what_its_channels_keep() -> None:
    assert "rotation" in RUNGS["shape"].symmetry
    assert "torsion" not in RUNGS["shape"].symmetry
    assert "flex" in RUNGS["lengths"].symmetry
    assert "reflection" not in RUNGS["handed"].symmetry
    assert all("permutation" in rung.symmetry for rung in RUNGS.values())


def test_a_triangle_has_no_torsion() -> None:
    edges = torch.tensor([[0, 1, 2], [1, 2, 0]])
    triangle = Data(pos=torch.randn(3, 3, dtype=torch.float64), edge_index=edges)
    assert element("torsion", triangle, torch.Generator()) is None
    assert element("rotation", triangle, torch.Generator()) is not None
