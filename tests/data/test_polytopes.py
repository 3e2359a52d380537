"""The regular polytopes as graphs."""

from itertools import pairwise

import pytest
import torch
from torch import Tensor
from torch_geometric.data import Data

from symgnn.data._polytopes import polytope, polytopes

COUNTS = {
    1: [("simplex", 2, 1)],
    2: [("simplex", 3, 3), ("hypercube", 4, 4)],
    3: [
        ("simplex", 4, 6),
        ("hypercube", 8, 12),
        ("orthoplex", 6, 12),
        ("dodecahedron", 20, 30),
        ("icosahedron", 12, 30),
    ],
    4: [
        ("simplex", 5, 10),
        ("hypercube", 16, 32),
        ("orthoplex", 8, 24),
        ("24-cell", 24, 96),
        ("120-cell", 600, 1200),
        ("600-cell", 120, 720),
    ],
    5: [("simplex", 6, 15), ("hypercube", 32, 80), ("orthoplex", 10, 40)],
    7: [("simplex", 8, 28), ("hypercube", 128, 448), ("orthoplex", 14, 84)],
}
ALL = [(name, n) for n, rows in COUNTS.items() for name, _, _ in rows]
each = pytest.mark.parametrize(("name", "n"), ALL)


def exact(name: str, n: int) -> Data:
    return polytope(name, n, dtype=torch.float64)


def distances(pos: Tensor) -> Tensor:
    """`[N, N]`, from differences (torch.cdist loses digits)."""
    return (pos[:, None] - pos[None]).norm(dim=-1)


def edge_lengths(data: Data) -> Tensor:
    source, target = data.edge_index
    return (data.pos[source] - data.pos[target]).norm(dim=-1)


@pytest.mark.parametrize("n", COUNTS)
def test_classes_in_order_with_their_counts(n: int) -> None:
    graphs = polytopes(n)
    found = [(g.name, g.num_nodes, g.num_edges // 2) for g in graphs]
    assert found == COUNTS[n]
    assert [g.y.tolist() for g in graphs] == [[i] for i in range(len(graphs))]
    assert all(g.pos.shape == (g.num_nodes, n) for g in graphs)


@each
def test_centred_with_circumradius_one(name: str, n: int) -> None:
    pos = exact(name, n).pos
    assert pos.mean(dim=0).abs().max() < 1e-12
    assert (pos.norm(dim=1) - 1).abs().max() < 1e-12


@each
def test_edges_are_the_pairs_at_the_minimal_distance(name: str, n: int) -> None:
    data = exact(name, n)
    apart = distances(data.pos)
    apart.fill_diagonal_(float("inf"))
    expected = (apart < apart.min() + 1e-9).nonzero().t()
    assert torch.equal(data.edge_index, expected)  # nonzero lists them sorted
    lengths = edge_lengths(data)
    assert lengths.max() - lengths.min() < 1e-12


@each
def test_undirected_sorted_and_regular(name: str, n: int) -> None:
    data = exact(name, n)
    assert data.edge_index.dtype == torch.int64
    assert data.is_undirected()
    assert data.is_coalesced()
    assert not data.has_self_loops()
    degree = torch.bincount(data.edge_index[0], minlength=data.num_nodes)
    assert degree.min() == degree.max() > 0


@each
def test_every_vertex_sees_the_same(name: str, n: int) -> None:
    profile = distances(exact(name, n).pos).sort(dim=1).values
    assert (profile - profile[0]).abs().max() < 1e-12


@each
def test_every_edge_sees_the_same(name: str, n: int) -> None:
    data = exact(name, n)
    apart = distances(data.pos)
    source, target = data.edge_index
    profile = (apart[source] + apart[target]).sort(dim=1).values
    assert (profile - profile[0]).abs().max() < 1e-12


@pytest.mark.parametrize("n", COUNTS)
def test_spans_its_space_evenly(n: int) -> None:
    for data in polytopes(n, dtype=torch.float64):
        second = data.pos.t() @ data.pos / data.num_nodes
        assert (second - torch.eye(n, dtype=torch.float64) / n).abs().max() < 1e-12, data.name


def test_edge_lengths_tell_the_solids_apart() -> None:
    lengths = [edge_lengths(g).mean().item() for g in polytopes(3, dtype=torch.float64)]
    assert lengths == pytest.approx(
        [(8 / 3) ** 0.5, (4 / 3) ** 0.5, 2**0.5, 0.7136441795461798, 1.0514622242382672], abs=1e-12
    )
    ordered = sorted(lengths)
    assert min(b - a for a, b in pairwise(ordered)) > 0.1


@pytest.mark.parametrize("name", ["hypercube", "24-cell"])
def test_tesseract_and_24_cell_share_the_edge_length_one(name: str) -> None:
    assert (edge_lengths(exact(name, 4)) - 1).abs().max() < 1e-12


def test_dtype_and_dimension_left_out() -> None:
    data = polytope("600-cell")
    assert data.pos.dtype == torch.float32
    wide = polytope("600-cell", 4, dtype=torch.float64)
    assert wide.pos.dtype == torch.float64
    assert torch.equal(wide.pos.float(), data.pos)
    assert not torch.equal(wide.pos, data.pos.double())  # not merely widened from float32


def test_square_is_both_a_hypercube_and_an_orthoplex() -> None:
    square, diamond = exact("hypercube", 2), exact("orthoplex", 2)
    assert square.num_edges == diamond.num_edges == 8
    assert torch.allclose(edge_lengths(square), edge_lengths(diamond), atol=1e-12, rtol=0)


@pytest.mark.parametrize(
    ("wrong", "right"),
    [("dodecahedrn", "dodecahedron"), ("hyper-cube", "hypercube"), ("24cell", "24-cell")],
)
def test_unknown_name_suggests_the_nearest(wrong: str, right: str) -> None:
    with pytest.raises(ValueError, match=f"{wrong!r}.*did you mean {right!r}"):
        polytope(wrong, 3)


@pytest.mark.parametrize(
    ("name", "dimension", "message"),
    [
        ("icosahedron", 4, "dimension: is 4, but the icosahedron has dimension 3"),
        ("24-cell", 3, "dimension: is 3, but the 24-cell has dimension 4"),
        ("orthoplex", 1, "dimension: is 1; the orthoplex needs at least 2"),
        ("simplex", None, "dimension: is missing; pass that of the simplex"),
        ("simplex", 0, "dimension: is 0; give a whole number of at least 1"),
        ("simplex", 2.0, "dimension: is 2.0; give a whole number"),
        ("hypercube", True, "dimension: is True; give a whole number"),
    ],
)
def test_wrong_dimension(name: str, dimension: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        polytope(name, dimension)


def test_classes_need_a_dimension_of_at_least_one() -> None:
    with pytest.raises(ValueError, match="dimension: is -1; give a whole number"):
        polytopes(-1)
