"""Sums of product form by moments, by harmonics and by matrices of pairs, against listed pairs."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from symgnn.geometry.measures import direction
from symgnn.graphs import Topology
from symgnn.graphs import stars as stars_module
from symgnn.graphs.stars import stars_of
from symgnn.nn._engine import moments as moments_module
from symgnn.nn._engine.harmonics import harmonics, number_of_harmonics, powers_in_harmonics
from symgnn.nn._engine.moment_sums import Added
from symgnn.nn._engine.moments import Moments
from symgnn.nn._engine.monomials import counts, features
from symgnn.nn._engine.policy import using_policy
from symgnn.nn._engine.unit_features import unit_features
from symgnn.nn.inputs import v
from symgnn.nn.separable import Separable, cosine, polynomial

TOLERANCE = 1e-10
CHANNELS = 2


def sphere(count: int, n: int, seed: int = 0) -> Tensor:
    random = torch.Generator().manual_seed(seed)
    rows = torch.randn(count, n, dtype=torch.float64, generator=random)
    return torch.nn.functional.normalize(rows, dim=1)


def graph() -> Topology:
    """Vertices of degree 1 to 6, an isolated node, and one edge that goes both ways."""
    ends = [(k, j) for j, d in enumerate((2, 3, 6, 5, 4)) for k in range(5, 5 + d)]
    edges = torch.tensor([*ends, (0, 1), (1, 0)]).T
    return Topology.build(edges, 12, whole=False)


class Case:
    """A form, what is added to its factors, and the rays of a graph."""

    def __init__(
        self,
        n: int,
        degree: int,
        basis: str = "chebyshev",
        zero: bool = False,
        rays_add: bool = True,
        weighted: bool = False,
        tied: bool = False,
    ) -> None:
        torch.manual_seed(n + 10 * degree)
        self.topology = graph()
        inputs = [v.vertex, v.first, v.second, cosine]
        self.form = Separable(
            [1, 1, 1, 1], CHANNELS, 0, inputs, degree=degree, basis=basis, tied=tied
        ).double()
        # from 0.5 to 1.5 long: derivatives of directions grow as one over the length
        rays = sphere(self.topology.num_rays, n, seed=degree)
        rays *= 0.5 + torch.rand(len(rays), 1, dtype=torch.float64)
        if zero:
            rays[::4] = 0.0
        size = self.topology.num_nodes
        width = CHANNELS if tied else 2 * CHANNELS
        rows = torch.randn(2 * size, width, dtype=torch.float64)
        on_rays = torch.randn(len(rays), width, dtype=torch.float64)
        self.leaves = [each.requires_grad_() for each in (rays, rows, on_rays)]
        self.leaves.append(self.form.coefficients)
        self.rays_add, self.weighted = rays_add, weighted

    def fast(self, to: str = "node", unit: bool = True) -> Tensor:
        rays, rows, on_rays, _ = self.leaves
        vectors = direction(rays) if unit else torch.tanh(rays)
        moments = Moments(self.topology, vectors, unit)
        added = self.added(rows, on_rays if self.rays_add else None)
        return moments.product(self.form, added, to, self.weight())

    def added(self, rows: Tensor, on_rays: Tensor | None) -> Added:
        """What is added to the factors, from that of each node as a vertex and as a neighbour."""
        as_vertex, as_neighbour = rows.unflatten(0, (-1, 2)).unbind(1)
        return Added(as_vertex[stars_of(self.topology).vertex], as_neighbour, on_rays)

    def weight(self) -> Tensor | None:
        """Of each ray, a function of its length."""
        return self.leaves[0].square().sum(1, keepdim=True).cos() if self.weighted else None

    def listed(self, to: str = "node", unit: bool = True) -> Tensor:
        """Every ordered pair of different rays of a vertex, one by one."""
        rays, rows, on_rays, coefficients = self.leaves
        vectors = direction(rays) if unit else torch.tanh(rays)
        vertex, other = self.topology.ray_vertex, self.topology.ray_neighbour
        both = rows[2 * vertex] + rows[2 * other + 1]
        both = both + on_rays if self.rays_add else both
        both = both * self.weight() if self.weighted else both
        every = itertools.permutations(range(len(vertex)), 2)
        first, second = torch.tensor([(r, s) for r, s in every if vertex[r] == vertex[s]]).T
        t = (vectors[first] * vectors[second]).sum(1, keepdim=True)
        q = polynomial(t, coefficients, self.form.basis)
        found = both[first, :CHANNELS] * both[second, -CHANNELS:] * q
        count = self.topology.num_nodes if to == "node" else len(vertex)
        into = vertex[first] if to == "node" else first
        return torch.zeros(count, CHANNELS, dtype=q.dtype).index_add(0, into, found)

    def derivatives(self, function: Callable[[], Tensor]) -> list[Tensor]:
        """The value, its first derivatives, and those of a function of the first."""
        out = function()
        weight = torch.linspace(-1, 2, out.numel(), dtype=out.dtype).view_as(out)
        first = self.gradient((out * weight).sum(), create_graph=True)
        second = self.gradient(sum(g.square().sum() for g in first))
        # without a graph for second derivatives: the derivatives by hand
        by_hand = self.gradient((function() * weight).sum())
        return [out, *first, *second, *by_hand]

    def gradient(self, out: Tensor, **options: bool) -> list[Tensor]:
        found = torch.autograd.grad(out, self.leaves, allow_unused=True, **options)
        pairs = zip(self.leaves, found, strict=True)
        return [torch.zeros_like(leaf) if grad is None else grad for leaf, grad in pairs]

    def check(self, to: str = "node", unit: bool = True) -> None:
        found = self.derivatives(lambda: self.fast(to, unit))
        wanted = self.derivatives(lambda: self.listed(to, unit))
        with torch.no_grad():  # without what derivatives need
            found.append(self.fast(to, unit))
        wanted.append(wanted[0])
        for number, (one, other) in enumerate(zip(found, wanted, strict=True)):
            error = (one - other).abs().max() / other.abs().max().clamp(min=1.0)
            assert error < TOLERANCE, f"{number}: off by {error:.1e}"


@pytest.mark.parametrize("few", [0.0, 1e9], ids=["moments", "pairs"])
@pytest.mark.parametrize("degree", range(7))
@pytest.mark.parametrize("n", range(1, 7))
def test_degrees_and_dimensions(
    n: int, degree: int, few: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(moments_module, "FEW", few)
    basis = ("chebyshev", "legendre")[degree % 2]
    Case(n, degree, basis, tied=(n + degree) // 2 % 2 == 1).check("node", unit=True)


@pytest.mark.parametrize("tied", [False, True])
@pytest.mark.parametrize("to", ["node", "ray"])
@pytest.mark.parametrize("few", [0.0, 1.0, 1e9], ids=["moments", "both", "pairs"])
@pytest.mark.parametrize("kind", ["unit", "any length", "a ray of length zero"])
def test_kinds_of_vectors(
    kind: str, few: float, to: str, tied: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(moments_module, "FEW", few)
    monkeypatch.setattr(stars_module, "JOINED", 0)
    case = Case(3, 3, zero=kind == "a ray of length zero", tied=tied)
    case.check(to, unit=kind != "any length")
    moments = Moments(case.topology, direction(case.leaves[0]), unit=True)
    assert moments.unit == (kind != "a ray of length zero")
    split = moments.made(case.form, torch.float64)[1].split
    groups = len(stars_of(case.topology).sizes)
    assert (split == 0, split == groups) == (few == 0.0, few == 1e9)


@pytest.mark.parametrize("to", ["node", "ray"])
@pytest.mark.parametrize("few", [0.0, 1.0, 1e9], ids=["moments", "both", "pairs"])
@pytest.mark.parametrize("kind", ["unit", "any length", "a ray of length zero", "weighted"])
@pytest.mark.parametrize(("joined", "tied"), [(0, False), (256, False), (0, True)])
def test_nodes_alone(
    joined: int, tied: bool, kind: str, few: float, to: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where rays add nothing of their own; with weights of the rays, too."""
    monkeypatch.setattr(moments_module, "FEW", few)
    monkeypatch.setattr(stars_module, "JOINED", joined)
    zero = kind == "a ray of length zero"
    case = Case(3, 3, zero=zero, rays_add=False, weighted=kind == "weighted", tied=tied)
    case.check(to, unit=kind != "any length")


@pytest.mark.parametrize("few", [0.0, 1e9], ids=["moments", "pairs"])
def test_tiles(few: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """One vertex at a time gives the same."""
    monkeypatch.setattr(moments_module, "FEW", few)
    with using_policy(tile=1):
        for tied in (False, True):
            Case(3, 3, tied=tied).check()
            Case(3, 3, rays_add=False, tied=tied).check()


def test_small_groups_join_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    degrees = Counter(d for d in graph().degree.tolist() if d > 1)
    assert stars_of(graph()).sizes == [(degrees.total(), max(degrees))]
    assert stars_of(graph()).padded == [True]
    monkeypatch.setattr(stars_module, "JOINED", 0)
    stars = stars_of(graph())
    assert stars.sizes == [(degrees[d], d) for d in sorted(degrees)]
    assert not any(stars.padded)
    assert stars.rows == graph().num_rays


def test_a_kept_graph_gives_the_same_derivatives_again() -> None:
    """Numbers that are kept for the backward pass are used up only in the last one."""
    case = Case(3, 3)
    out = case.fast().square().sum()
    one = torch.autograd.grad(out, case.leaves, retain_graph=True)
    other = torch.autograd.grad(out, case.leaves)
    assert all(torch.equal(a, b) for a, b in zip(one, other, strict=True))


def test_padding_reads_nothing_of_other_vertices() -> None:
    """What is not finite at one vertex stays there."""
    case = Case(2, 3)
    rays, rows, on_rays, _ = (each.detach().clone() for each in case.leaves)
    vectors = direction(rays)
    moments = Moments(case.topology, vectors, True)
    clean = moments.product(case.form, case.added(rows, on_rays), "node")
    rows[2 * 2] = torch.nan  # node 2 as a vertex
    found = moments.product(case.form, case.added(rows, on_rays), "node")
    others = torch.arange(len(found)) != 2
    assert found[2].isnan().all()
    assert torch.allclose(found[others], clean[others], rtol=1e-14)


@pytest.mark.parametrize("n", range(1, 7))
def test_harmonics(n: int) -> None:
    """Inner products of the harmonics of a degree depend on the angle alone, and the powers of the
    cosine are sums of them.
    """
    degree, points = 6, sphere(7, n)
    number = counts(n, degree, unit=True)
    assert number == [number_of_harmonics(n, p) for p in range(degree + 1)]
    rows = unit_features(points.T.contiguous(), torch.ones(1, 7, dtype=torch.float64), degree)
    kernels = torch.stack([part.T @ part for part in rows.split(number)])
    t = points @ points.T
    powers = torch.stack([t**p for p in range(degree + 1)])
    table = torch.from_numpy(powers_in_harmonics(n, degree))
    assert torch.allclose(torch.einsum("pk,kab->pab", table, kernels), powers, atol=1e-12)
    for p in range(2, degree + 1):
        matrix = torch.from_numpy(harmonics(n, p))
        assert torch.allclose(matrix @ matrix.T, torch.eye(len(matrix), dtype=t.dtype), atol=1e-12)


@pytest.mark.parametrize("n", range(1, 5))
def test_harmonics_from_those_below(n: int) -> None:
    """They are those of :func:`harmonics` off the sphere, too; two derivatives."""
    degree = 4
    random = torch.Generator().manual_seed(n)
    vectors = torch.randn(n, 3, dtype=torch.float64, generator=random, requires_grad=True)
    weight = torch.rand(1, 3, dtype=torch.float64, generator=random)
    tables = [torch.as_tensor(harmonics(n, p)) for p in range(degree + 1)]
    wanted = torch.block_diag(*tables) @ features(vectors, weight, degree)
    assert torch.allclose(unit_features(vectors, weight, degree), wanted, rtol=1e-12, atol=1e-12)

    def made(given: Tensor) -> Tensor:
        return unit_features(given, weight, degree)

    assert torch.autograd.gradcheck(made, (vectors,))
    assert torch.autograd.gradgradcheck(made, (vectors,))


def test_harmonics_in_the_plane_and_in_space() -> None:
    """cos(p theta) and Legendre's polynomials, with their leading coefficients 1."""
    t = torch.linspace(-1, 1, 9, dtype=torch.float64)
    powers = torch.stack([t**p for p in range(4)])
    plane = torch.linalg.solve(torch.from_numpy(powers_in_harmonics(2, 3)), powers)
    space = torch.linalg.solve(torch.from_numpy(powers_in_harmonics(3, 3)), powers)
    theta = torch.acos(t)
    assert torch.allclose(plane[3], torch.cos(3 * theta) / 4)
    assert torch.allclose(plane[2], torch.cos(2 * theta) / 2)
    assert torch.allclose(space[3], (5 * t**3 - 3 * t) / 5)
    assert torch.allclose(space[2], (3 * t**2 - 1) / 3)
