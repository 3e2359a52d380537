"""The oracle against closed forms, and oracles with one fault each"""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from nn import oracle, oracle_blocks, oracle_formulas
from nn.oracle import Oracle
from nn.oracle_cases import Case, check, disagreement, leaves, results
from symgnn.graphs import Topology

# ------------------------------------------------------------------ the oracle itself


def test_the_measures_of_the_oracle() -> None:
    """Against values known by hand, and the angle against the paper's cosine."""

    def point(*numbers: float) -> Tensor:
        return torch.tensor(numbers, dtype=torch.float64)

    zero, right = point(0, 0), point(0, 3)
    assert oracle.distance2(point(1, 2), point(4, -2)).item() == 25
    assert oracle.theta(point(2, 0), zero, right).item() == pytest.approx(math.pi / 2)
    third = point(0.5, math.sqrt(0.75))
    assert oracle.theta(point(5, 0), zero, third).item() == pytest.approx(math.pi / 3)
    assert oracle.theta(point(2.0), point(1.0), point(-3.0)).item() == math.pi
    assert oracle.theta(point(2.0), point(1.0), point(3.0)).item() == 0
    # |x_j - x_k| / (|x_i - x_j| |x_i - x_k|)
    assert oracle.separation(point(4, 0), zero, right).item() == pytest.approx(5 / 12)
    random = torch.Generator().manual_seed(0)
    for n in range(2, 7):
        j, i, k = torch.randn(3, n, generator=random, dtype=torch.float64)
        cosine = (j - i) @ (k - i) / ((j - i).norm() * (k - i).norm())
        assert oracle.theta(j, i, k).cos().item() == pytest.approx(cosine.item(), abs=1e-13)
        turns = torch.randn(n * (n - 1) // 2, generator=random, dtype=torch.float64)
        q = oracle.rotation(turns, n)
        assert (q @ q.t() - torch.eye(n)).abs().max() < 1e-12
    quarter = oracle.rotation(point(math.pi / 2), 2)
    assert (quarter @ point(0, 1) - point(1, 0)).abs().max() < 1e-14
    two = [point(1, -2), point(-5, 4), point(1, 1)]
    assert oracle.rho("sum", two, 2).tolist() == [-3, 3]
    assert oracle.rho("mean", two, 2).tolist() == [-1, 1]
    assert oracle.rho("max", two, 2).tolist() == [1, 4]
    assert [oracle.rho(how, [], 2).tolist() for how in ("sum", "mean", "max")] == 3 * [[0, 0]]


def test_gradients_of_the_oracle() -> None:
    """Autograd through the loops against central differences, in a random direction."""
    case = Case("combined", "mean", "graph", "neighbour-sum", "small", angle=1, seed=71)
    model, data = case.model(), case.data()
    angle_index = Topology.of(data).angle_index
    given = [*leaves(data).values(), *model.parameters()]
    random = torch.Generator().manual_seed(0)
    along = [torch.randn(p.shape, generator=random, dtype=p.dtype) for p in given]
    ask = case.oracle(model)
    grads = torch.autograd.grad(ask(data, angle_index).sum(), given)
    slope = sum((g * d).sum() for g, d in zip(grads, along, strict=True)).item()

    def at(step: float) -> float:
        with torch.no_grad():
            for p, d in zip(given, along, strict=True):
                p.add_(step * d)
            value = ask(data, angle_index).sum().item()
            for p, d in zip(given, along, strict=True):
                p.sub_(step * d)
        return value

    assert (at(1e-5) - at(-1e-5)) / 2e-5 == pytest.approx(slope, rel=1e-6)


def test_an_update_that_is_missing_is_noticed() -> None:
    """If the model leaves out what is read, the oracle does not follow."""
    for layer, name in ((0, "graph"), (0, "angle"), (1, "angle"), (1, "edge"), (1, "node")):
        case = Case("agn", graph="small")
        model, data = case.model(), case.data()
        assert list(model.blocks[1].updates) == ["angle", "edge", "node"]  # nobody reads the graph
        del model.blocks[layer].updates[name]
        with pytest.raises(AssertionError, match=f"the {name} value is read"):
            case.oracle(model)(data, Topology.of(data).angle_index)


# Oracles with one fault each. If the comparison did not notice one of them, it would be too weak
# to notice the same fault in the fast code.


class _Swapped(oracle.DGN):
    """Source and target in the wrong order."""

    def edge(self, s: oracle.State, j: int, i: int, row: int) -> tuple:
        return s.e[j, i, row], s.v[j], s.v[i], s.d2(j, i), s.u[()]


class _SwappedRays(oracle.AGN):
    def angle(self, s: oracle.State, j: int, i: int, k: int) -> tuple:
        return s.v[i], s.v[k], s.v[j], s.a[j, i, k], s.theta(j, i, k), s.u[()]


class _SwappedVertex(oracle.CGN):
    def angle(self, s: oracle.State, j: int, i: int, k: int) -> tuple:
        return s.v[j], s.v[i], s.v[k], s.a[j, i, k], s.kappa(j, i, k), s.u[()]


class _IncomingRays(oracle.AGNEdges):
    """e_ji where e_ij should be."""

    def ray(self, s: oracle.State, i: int, j: int) -> Tensor | None:
        return super().ray(s, j, i)


class _FirstOfParallel(oracle.AGNEdges):
    def ray(self, s: oracle.State, i: int, j: int) -> Tensor | None:
        return s.e[(s.graph.between(i, j) or s.graph.between(j, i))[0]]


class _OtherEnd(oracle.AGNToEdges):
    """The two ends of the edge exchanged."""

    def edge(self, s: oracle.State, j: int, i: int, row: int) -> tuple:
        e, source, target, at_target, at_source, u = super().edge(s, j, i, row)
        return e, source, target, at_source, at_target, u


class _SecondRay(oracle.AGNToEdges):
    """Angles whose second ray is the edge."""

    def edge(self, s: oracle.State, j: int, i: int, row: int) -> tuple:
        e, source, target, _, _, u = super().edge(s, j, i, row)
        ends = [[a for a in s.graph.angles_at(p) if a[2] == q] for p, q in ((i, j), (j, i))]
        return e, source, target, *(s.reduced("a->e", s.a, end) for end in ends), u


class _OtherLength(oracle.AGNDistances):
    def angle(self, s: oracle.State, j: int, i: int, k: int) -> tuple:
        *before, _, _, theta, u = super().angle(s, j, i, k)
        return *before, s.d2(j, i), s.d2(j, k), theta, u


class _GraphFirst(Oracle):
    """The graph update before the coordinates have moved."""

    def layer(self, block: torch.nn.Module, s: oracle.State) -> oracle.State:
        new, still = super().layer(block, s), oracle.copy.copy(s)
        still.a, still.e, still.v = new.a, new.e, new.v
        new.u = self.updated(block, "graph", still, s.u, [()])
        return new


class _NewMessages(Oracle):
    """EGCN's messages from the new values of the nodes."""

    def moved(self, block: torch.nn.Module, s: oracle.State, old: oracle.State) -> oracle.Values:
        old = oracle.copy.copy(old)
        old.v = s.v
        return super().moved(block, s, old)


def _everywhere(patch: pytest.MonkeyPatch, name: str, value: object) -> None:
    """Replace a function in all modules of the oracle that use it."""
    for module in (oracle, oracle_blocks, oracle_formulas):
        if hasattr(module, name):
            patch.setattr(module, name, value)


def _drop_an_angle(patch: pytest.MonkeyPatch) -> None:
    whole = oracle.Graph.angles_at
    patch.setattr(oracle.Graph, "angles_at", lambda graph, i: whole(graph, i)[1 if i == 0 else 0 :])


def _unordered_pairs(patch: pytest.MonkeyPatch) -> None:
    whole = oracle.Graph.angles_at
    half = lambda graph, i: [a for a in whole(graph, i) if a[0] < a[2]]  # noqa: E731
    patch.setattr(oracle.Graph, "angles_at", half)


def _drop_an_edge(patch: pytest.MonkeyPatch) -> None:
    whole = oracle.Graph.into
    patch.setattr(oracle.Graph, "into", lambda graph, i: whole(graph, i)[1 if i == 0 else 0 :])


def _only_in_neighbours(patch: pytest.MonkeyPatch) -> None:
    near = lambda graph, i: [j for j in graph.nodes if j != i and graph.between(j, i)]  # noqa: E731
    patch.setattr(oracle.Graph, "neighbours", near)


def _transposed(patch: pytest.MonkeyPatch) -> None:
    rotation = oracle.rotation
    _everywhere(patch, "rotation", lambda turns, n: rotation(turns, n).t())


def _relu(patch: pytest.MonkeyPatch) -> None:
    _everywhere(patch, "swish", torch.relu)


def _plain_s(patch: pytest.MonkeyPatch) -> None:
    s = lambda state, j, i, k: state.separations[j, i, k].reshape(1)  # noqa: E731
    patch.setattr(oracle.State, "kappa", s)


def _exterior_angle(patch: pytest.MonkeyPatch) -> None:
    theta = oracle.theta
    _everywhere(patch, "theta", lambda j, i, k: theta(i, j, k))


def _root(patch: pytest.MonkeyPatch) -> None:
    d2 = oracle.distance2
    _everywhere(patch, "distance2", lambda x, y: (d2(x, y) + 1e-300).sqrt())


WRONG: dict[str, tuple[Case, object]] = {
    "source and target swapped": (Case("dgn"), _Swapped()),
    "rays swapped": (Case("agn", angle=1), _SwappedRays()),
    "vertex and ray swapped": (Case("cgn"), _SwappedVertex()),
    "incoming edge on a ray": (Case("agn+edges", graph="undirected"), _IncomingRays()),
    "first of parallel edges": (Case("agn+edges", graph="multigraph"), _FirstOfParallel()),
    "ends of the edge swapped": (Case("agn-to-edges"), _OtherEnd()),
    "edge as second ray": (Case("agn-to-edges"), _SecondRay()),
    "third side": (Case("agn+distances"), _OtherLength()),
    "one angle dropped": (Case("agn"), _drop_an_angle),
    "one angle dropped, kappa": (Case("cgn"), _drop_an_angle),
    "one angle dropped, raw": (Case("agn-raw", "sum"), _drop_an_angle),
    "unordered pairs": (Case("agn", "sum"), _unordered_pairs),
    "in-neighbours only": (Case("agn"), _only_in_neighbours),
    "one edge dropped": (Case("gn", graph="complete"), _drop_an_edge),
    "rotation transposed": (Case("dgn", "mean", "coordinates", "rigid"), _transposed),
    "relu for swish": (Case("gn"), _relu),
    "s for kappa": (Case("cgn"), _plain_s),
    "angle at another vertex": (Case("agn"), _exterior_angle),
    "distance, not squared": (Case("dgn"), _root),
    "graph before coordinates": (Case("dgn", "mean", "graph", "neighbour-sum"), _GraphFirst),
    "new values in messages": (Case("dgn", "mean", "graph", "egcn", node=3), _NewMessages),
    "neighbours for all pairs": (
        Case("dgn", "mean", "graph", "egcn"),
        {"coordinate_map": "egcn-neighbours"},
    ),
    "not scaled": (Case("sdgn", scaling=2.0), {"scaling": 1.0}),
    "not bounded": (
        Case("dgn", "sum", "coordinates", "egcn", max_growth=1.0),
        {"max_growth": None},
    ),
    **{
        f"{movement} by max": (
            Case(name, graph="complete+multigraph"),
            {"aggregation": {movement: "max"}},
        )
        for name, movement in [
            ("gn", "e->v"),
            ("gn", "v->u"),
            ("gn", "e->u"),
            ("gn", "pool"),
            ("dgn", "x->u"),
            ("agn", "a->v"),
            ("agn", "a->u"),
            ("agn-raw", "x->v"),
            ("agn-to-edges", "a->e"),
        ]
    },
}


@pytest.mark.parametrize("fault", WRONG)
def test_a_wrong_oracle_disagrees(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    case, change = WRONG[fault]
    check(case)  # without the fault
    model, data = case.model(), case.data()
    wrong, changes = Oracle, {}
    if isinstance(change, dict):
        changes = change
    elif isinstance(change, type):
        wrong = change
    elif callable(change):
        change(monkeypatch)
    else:
        changes = {"block": change}
    angle_index = Topology.of(data).angle_index
    ask = case.oracle(model, wrong, **changes)
    expected = results(lambda d: ask(d, angle_index), model, data)
    got = results(model, model, data)
    for part in ({"output"}, expected.keys()):
        some = [{name: value[name] for name in value if name in part} for value in (got, expected)]
        error, _ = disagreement(*some)
        assert error > 1e-4, f"{fault}: the comparison sees only {error:.1e}"
