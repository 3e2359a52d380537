"""Neighbour search: complete, and the same however the cloud is turned or numbered."""

import math
from collections.abc import Callable
from functools import partial

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch_geometric.data import Batch, Data

from symgnn.graphs.neighbours import KNNGraph, RadiusGraph, knn_graph, radius_graph

few = settings(max_examples=25, deadline=None)
seeds = st.integers(0, 2**31 - 1)


def distances(pos: Tensor) -> Tensor:
    """`[N, N]`, from differences (torch.cdist loses digits)."""
    return (pos[:, None] - pos[None]).norm(dim=-1)


def tolerance(pos: Tensor) -> float:
    return 64 * torch.finfo(pos.dtype).eps * (pos - pos.mean(0)).norm(dim=1).max().item()


def brute_knn(pos: Tensor, k: int, loop: bool) -> Tensor:
    apart = distances(pos)
    own = torch.eye(len(pos), dtype=torch.bool)
    candidates = apart if loop else apart.masked_fill(own, math.inf)
    near = candidates.sort(dim=1).values[:, :k]
    limit = near.masked_fill(near.isinf(), 0.0).amax(dim=1, keepdim=True) + tolerance(pos)
    return (candidates <= limit).nonzero().t().flip(0)


def brute_radius(pos: Tensor, r: float, loop: bool) -> Tensor:
    near = distances(pos) <= r + tolerance(pos)
    if not loop:
        near.fill_diagonal_(False)
    return near.nonzero().t().flip(0)


def edge_list(edge_index: Tensor) -> list[list[int]]:
    return sorted(edge_index.t().tolist())


def moved(pos: Tensor, rng: np.random.Generator, dtype: torch.dtype) -> Tensor:
    """`pos [N, n]` turned (or reflected) and shifted, all in the arithmetic of `dtype`."""
    n = pos.size(1)
    turn = torch.from_numpy(np.linalg.qr(rng.normal(size=(n, n)))[0]).to(dtype)
    shift = torch.from_numpy(rng.normal(size=n)).to(dtype)
    return pos.to(dtype) @ turn.t() + shift


def grid(rng: np.random.Generator, n: int, size: int = 40) -> Tensor:
    """Random integer points `[size, n]`: many ties and coincidences, and never an almost-tie."""
    return torch.from_numpy(rng.integers(-3, 4, size=(size, n))).double()


def square() -> Tensor:
    return torch.cartesian_prod(torch.arange(7.0), torch.arange(6.0)).double()


def cubic() -> Tensor:
    return torch.cartesian_prod(*[torch.arange(5.0)] * 3).double()


def hexagonal() -> Tensor:
    i, j = torch.cartesian_prod(torch.arange(7.0), torch.arange(7.0)).double().unbind(1)
    return torch.stack([i + j / 2, j * 3**0.5 / 2], dim=1)


@few
@given(seed=seeds, n=st.integers(1, 6), size=st.integers(1, 60), k=st.integers(1, 20))
def test_agrees_with_brute_force(seed: int, n: int, size: int, k: int) -> None:
    rng = np.random.default_rng(seed)
    r = (k - 1) ** 0.5
    for pos in (torch.from_numpy(rng.normal(size=(size, n))), grid(rng, n, size)):
        for loop in (False, True):
            assert torch.equal(knn_graph(pos, k, loop=loop), brute_knn(pos, k, loop))
            assert torch.equal(radius_graph(pos, r, loop=loop), brute_radius(pos, r, loop))


@few
@given(seed=seeds, n=st.integers(1, 6), k=st.integers(1, 12))
def test_same_graph_after_a_motion(seed: int, n: int, k: int) -> None:
    rng = np.random.default_rng(seed)
    pos = grid(rng, n)
    for dtype in (torch.float32, torch.float64):
        turned = moved(pos, rng, dtype)
        assert torch.equal(knn_graph(pos, k), knn_graph(turned, k))
        assert torch.equal(radius_graph(pos, k**0.5), radius_graph(turned, k**0.5))


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32, torch.float64])
@pytest.mark.parametrize("lattice", [square, cubic, hexagonal])
def test_same_graph_of_a_turned_lattice(lattice: Callable[[], Tensor], dtype: torch.dtype) -> None:
    rng = np.random.default_rng(5)
    pos = lattice()
    for _ in range(5):
        turned = moved(pos, rng, dtype)
        for k in (1, 2, 3, 4, 6, 7, 11):
            assert torch.equal(knn_graph(turned, k), brute_knn(pos, k, loop=False))
        for r in (1.0, 2**0.5, 3**0.5, 2.0):
            assert torch.equal(radius_graph(turned, r), brute_radius(pos, r, loop=False))


def test_same_graph_far_from_the_origin() -> None:
    rng = np.random.default_rng(6)
    far = moved(cubic() + 1000.0, rng, torch.float32)
    assert torch.equal(knn_graph(far, 2), knn_graph(cubic(), 2))
    assert torch.equal(radius_graph(far, 1.0), radius_graph(cubic(), 1.0))
    same = torch.full((20, 1), 0.3)
    same[::2] = torch.nextafter(same[::2], torch.tensor(1.0))  # as a product of matrices may round
    assert knn_graph(same, 1).size(1) == 20 * 19


def test_inner_nodes_of_lattices_have_whole_shells() -> None:
    def inner(pos: Tensor, k: int) -> int:
        middle = int((pos - pos.mean(0)).norm(dim=1).argmin())
        return int((knn_graph(pos, k)[1] == middle).sum())

    assert [inner(square(), k) for k in (1, 4, 5, 8, 9)] == [4, 4, 8, 8, 12]
    assert [inner(cubic(), k) for k in (1, 6, 7, 18, 19)] == [6, 6, 18, 18, 26]
    assert [inner(hexagonal(), k) for k in (1, 6, 7, 12, 13)] == [6, 6, 12, 12, 18]


@few
@given(seed=seeds, n=st.integers(1, 4), k=st.integers(1, 9))
def test_renumbering_the_nodes_renumbers_the_edges(seed: int, n: int, k: int) -> None:
    rng = np.random.default_rng(seed)
    for pos in (grid(rng, n), torch.from_numpy(rng.normal(size=(30, n)))):
        order = torch.from_numpy(rng.permutation(len(pos)))
        for build in (knn_graph, radius_graph):
            assert edge_list(order[build(pos[order], k)]) == edge_list(build(pos, k))


def test_coincident_points_are_all_neighbours() -> None:
    pos = torch.full((500, 3), 0.1)
    for loop in (False, True):
        expected = brute_radius(pos, 1.0, loop)
        assert expected.size(1) == 500 * (499 + loop)
        assert torch.equal(knn_graph(pos, 2, loop=loop), expected)
        assert torch.equal(radius_graph(pos, 0.0, loop=loop), expected)
    pos = torch.cat([pos, torch.ones(1, 3)])  # seen from there, all 500 tie
    assert knn_graph(pos, 1).size(1) == 500 * 499 + 500
    assert radius_graph(pos, 0.5).size(1) == 500 * 499


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_star_keeps_all_its_leaves(dtype: torch.dtype) -> None:
    angle = torch.arange(300) * (2 * math.pi / 300)
    leaves = torch.polar(torch.ones(300, dtype=torch.float64), angle.double())
    pos = torch.cat([torch.view_as_real(leaves), torch.zeros(1, 2)]).to(dtype)
    for edges in (knn_graph(pos, 1), radius_graph(pos, 1.0)):
        assert edges[0][edges[1] == 300].tolist() == list(range(300))


def test_ties_beyond_one_chunk_of_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("symgnn.graphs.neighbours._CHUNK", 10)
    assert torch.equal(knn_graph(cubic(), 7), brute_knn(cubic(), 7, loop=False))


@pytest.mark.parametrize("scale", [2.0**-6, 1.0, 2.0**10])
@pytest.mark.parametrize(
    ("dtype", "factor"),
    [(torch.bfloat16, 8), (torch.float16, 8), (torch.float32, 64), (torch.float64, 64)],
)
def test_tolerance_follows_type_and_extent(scale: float, dtype: torch.dtype, factor: int) -> None:
    for times, neighbours in ((0.5, 2), (2.0, 1)):
        far = 1 + times * factor * torch.finfo(dtype).eps
        line = (torch.tensor([[-1.0], [0.0], [far]], dtype=torch.float64) * scale).to(dtype)
        assert int((knn_graph(line, 1)[1] == 1).sum()) == neighbours
        assert int((radius_graph(line, scale)[1] == 1).sum()) == neighbours
    whole = torch.tensor([[0], [10**9], [2 * 10**9 + 1]])  # integers, known exactly
    assert int((knn_graph(whole, 1)[1] == 1).sum()) == 1


def test_edges_point_from_the_neighbour_to_the_node() -> None:
    pos = torch.tensor([[0.0], [1.0], [3.0]], requires_grad=True)
    assert knn_graph(pos, 1).tolist() == [[1, 0, 1], [0, 1, 2]]
    assert knn_graph(pos, 2, loop=True).tolist() == [[0, 1, 0, 1, 1, 2], [0, 0, 1, 1, 2, 2]]
    assert radius_graph(pos, 2.0).tolist() == [[1, 0, 2, 1], [0, 1, 1, 2]]


@few
@given(seed=seeds, sizes=st.lists(st.integers(0, 15), max_size=6), k=st.integers(1, 6))
def test_batch_equals_one_by_one(seed: int, sizes: list[int], k: int) -> None:
    rng = np.random.default_rng(seed)
    scales = [10.0 ** int(rng.integers(-3, 4)) for _ in sizes]
    clouds = [grid(rng, 2, size).float() * s for size, s in zip(sizes, scales, strict=True)]
    pos = torch.cat([torch.empty(0, 2), *clouds])
    batch = torch.repeat_interleave(torch.arange(len(sizes)), torch.tensor(sizes).long())
    starts = np.cumsum([0, *sizes])
    for build in (knn_graph, radius_graph):
        parts = [build(c, k) + s for c, s in zip(clouds, starts, strict=False)]
        expected = torch.cat([torch.empty(2, 0, dtype=torch.int64), *parts], dim=1)
        assert torch.equal(build(pos, k, batch), expected)


def test_few_or_no_nodes() -> None:
    one = torch.zeros(1, 3)
    assert knn_graph(one, 4).shape == radius_graph(one, 1.0).shape == (2, 0)
    assert knn_graph(one, 4, loop=True).tolist() == [[0], [0]]
    assert radius_graph(one, 1.0, loop=True).tolist() == [[0], [0]]
    none = torch.zeros(0, 3)
    empty = torch.zeros(0, dtype=torch.int64)
    assert knn_graph(none, 4, empty).shape == radius_graph(none, 1.0, empty).shape == (2, 0)
    three = torch.tensor([[0.0], [1.0], [5.0]])
    assert knn_graph(three, 50).size(1) == radius_graph(three, 1e300).size(1) == 6


def test_transforms_on_data() -> None:
    pos, old = hexagonal().float(), torch.zeros(2, 1).long()
    data = Data(pos=pos, edge_index=old, edge_attr=torch.ones(1, 2), edge_weight=torch.ones(1))
    for loop in (False, True):
        by_knn, by_radius = KNNGraph(3, loop)(data), RadiusGraph(1.0, loop)(data)
        assert torch.equal(by_knn.edge_index, knn_graph(pos, 3, loop=loop))
        assert torch.equal(by_radius.edge_index, radius_graph(pos, 1.0, loop=loop))
        assert set(by_knn.keys()) == set(by_radius.keys()) == {"pos", "edge_index"}
    assert data.edge_index is old
    assert repr(KNNGraph(4)) == "KNNGraph(k=4, loop=False)"
    assert repr(RadiusGraph(2, loop=True)) == "RadiusGraph(r=2.0, loop=True)"


@pytest.mark.parametrize("transform", [KNNGraph(2), RadiusGraph(1.5)])
@pytest.mark.parametrize("edges", [False, True])
def test_transforms_on_a_batch_that_can_be_taken_apart(transform: Callable, edges: bool) -> None:
    clouds = [square(), torch.zeros(1, 2), hexagonal(), torch.zeros(0, 2)]
    clouds = [pos.float() for pos in clouds]
    old = {"edge_index": torch.zeros(2, 5).long(), "edge_attr": torch.zeros(5, 2)} if edges else {}
    batch = Batch.from_data_list([Data(pos=pos, **old) for pos in clouds])
    parts = transform(batch).to_data_list()
    for pos, part in zip(clouds, parts, strict=True):
        assert torch.equal(part.pos, pos)
        assert torch.equal(part.edge_index, transform(Data(pos=pos)).edge_index)
        assert part.edge_attr is None
    assert all(part.num_edges == 5 * edges for part in batch.to_data_list())


POS = torch.zeros(4, 2)


@pytest.mark.parametrize(
    ("pos", "message"),
    [
        (torch.zeros(4), r"pos .*\[N, n\].*got \[4\]"),
        (torch.zeros(4, 0), r"pos .*\[N, n\].*got \[4, 0\]"),
        ([[0.0]], "pos .*got list"),
        (torch.tensor([[0.0], [1.0], [math.nan], [math.inf]]), r"pos .*nan\] in row 2"),
        (torch.zeros(4, 2, dtype=torch.complex64), "pos: is torch.complex64"),
    ],
)
@pytest.mark.parametrize("build", [knn_graph, radius_graph])
def test_wrong_coordinates(build: Callable, pos: object, message: str) -> None:
    with pytest.raises(ValueError, match=message) as error:
        build(pos, 1)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("value", [-0.5, True, None, "1", math.inf, math.nan])
def test_wrong_k_or_r(value: object) -> None:
    for make in (KNNGraph, partial(knn_graph, POS)):
        for k in (value, 0, 2.0):
            with pytest.raises(ValueError, match=f"k: is {k!r}; give a whole number of at least 1"):
                make(k)
    for make in (RadiusGraph, partial(radius_graph, POS)):
        with pytest.raises(
            ValueError, match=f"r: is {value!r}; give a finite number of at least 0"
        ):
            make(value)


@pytest.mark.parametrize(
    ("batch", "message"),
    [
        (torch.zeros(3).long(), r"batch .*\[4\].*got \[3\]"),
        ([0, 0, 0, 0], "batch .*got list"),
        (torch.tensor([0, 2, 1, 1]), "batch .*sorted, got 1 after 2 in row 2"),
        (torch.tensor([-1, 0, 0, 0]), "batch .*negative, got -1"),
        (torch.zeros(4), "batch .*integers, got torch.float32"),
    ],
)
@pytest.mark.parametrize("build", [knn_graph, radius_graph])
def test_wrong_batch(build: Callable, batch: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        build(POS, 1, batch)


def test_transform_without_coordinates() -> None:
    with pytest.raises(ValueError, match=r"data\.pos is missing"):
        KNNGraph(1)(Data(x=torch.zeros(3, 1)))


@pytest.mark.parametrize("build", [lambda pos: knn_graph(pos, 1), lambda pos: radius_graph(pos, 1)])
def test_coordinates_whose_squares_overflow(build) -> None:
    pos = torch.tensor([[0.0], [1.0], [1e308]], dtype=torch.float64)
    with pytest.raises(ValueError, match=r"pos must be at most 1e\+150, got 1e\+308, whose square"):
        build(pos)
    assert build(pos[:2] * 1e149).shape[0] == 2
