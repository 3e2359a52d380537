"""Filtered blocks: against their formula, in every engine, any dimension."""

from __future__ import annotations

import itertools

import pytest
import torch
from torch import Tensor, nn
from torch_geometric.data import Data

import symgnn
from symgnn.geometry import Rotation
from symgnn.nn import Form, Model, Potential, Spec, averages, build, reduce
from symgnn.nn.edge_products import edge_products
from symgnn.nn.filtered import FilterForm
from symgnn.nn.inputs import d2, e, v


def some_graph(n: int, seed: int = 0, nodes: int = 9, edges: int = 30) -> Data:
    """Directed edges at random, some twice, some loops; a node alone, two nodes in one place."""
    random = torch.Generator().manual_seed(seed)
    pos = torch.randn(nodes, n, generator=random).double()
    pos[1] = pos[0]
    index = torch.randint(nodes - 1, (2, edges), generator=random)
    return Data(pos=pos, edge_index=index)


def network(engine: str = "fast", block: str = "combined-filtered", **options: object) -> Model:
    torch.manual_seed(0)
    settings: dict = {"hidden": 5, "task": "node", "residual": True}
    settings |= {"radial": 4, "cutoff": 3.0, "envelope": True}
    return build(block, engine=engine, **(settings | options)).double()


def legendre(l: int, t: float) -> float:
    return {0: 1.0, 1: t, 2: 1.5 * t * t - 0.5}[l]


def test_products_are_the_sums_over_pairs_of_edges() -> None:
    """By loops over edges, from the values of the edges."""
    data = some_graph(3)
    spec = Spec("mine", edge=[v.source, d2], node=[edge_products(2)], forms={"edge": FilterForm()})
    seen: list[Tensor] = []
    model = build(spec, task="node", hidden=4, layers=1, graph_state=False).double()
    (update,) = [each for each in model.modules() if getattr(each, "domain", "") == "node"][:1]
    update.register_forward_pre_hook(lambda _, given: seen.append(given[0]))
    model(data)
    (state,) = seen
    found = state.get(edge_products(2)).rows
    rows, (source, target) = state.e.rows, data.edge_index
    wanted = torch.zeros(len(data.pos), 3, 4).double()
    for j, k in itertools.permutations(range(len(source)), 2):
        if target[j] != target[k]:
            continue
        first, second = (data.pos[source[each]] - data.pos[target[each]] for each in (j, k))
        size = float(first.norm() * second.norm())
        cosine = float(first @ second) / size if size else 0.0
        for l in range(3):
            wanted[target[j], l] += rows[j] * rows[k] * legendre(l, cosine)
    torch.testing.assert_close(found, wanted.flatten(1))


def test_messages_are_nodes_times_a_filter() -> None:
    data = some_graph(2)
    model = network(layers=1)
    seen: list = []
    (update,) = [each for each in model.modules() if getattr(each, "domain", "") == "edge"]
    update.register_forward_hook(lambda *given: seen.append(given[2].rows))
    model(data)
    source, target = data.edge_index
    away = data.pos[source] - data.pos[target]
    basis, phi = next(iter(model.measures.by_input().values())), update.phi
    given = basis(data.pos[source], data.pos[target])
    d = away.norm(dim=1, keepdim=True) / 3.0
    fade = torch.where(d < 1, 1 - 28 * d**6 + 48 * d**7 - 21 * d**8, 0.0)
    nodes = phi.nodes(torch.ones(len(data.pos), 1).double())[source]
    torch.testing.assert_close(seen[0], nodes * phi.filters(given) * fade)


@pytest.mark.parametrize("n", [1, 2, 3, 5])
@pytest.mark.parametrize("case", ["some", "stars of many degrees", "no edges", "one edge"])
@pytest.mark.parametrize(
    ("block", "radial"), [("combined-filtered", 4), ("dgn-filtered", 4), ("dgn-filtered", 1)]
)
def test_every_engine_gives_the_same(n: int, case: str, block: str, radial: int) -> None:
    """With one radial function there are so many edges that sums are taken by moments."""
    data = some_graph(n)
    if case == "no edges":
        data.edge_index = data.edge_index[:, :0]
    if case == "one edge":
        data.edge_index = data.edge_index[:, :1]
    if case == "stars of many degrees":  # in groups of about the same degree
        nodes = 60
        pos = torch.randn(nodes, n, generator=torch.Generator().manual_seed(1)).double()
        joins = [(j, i) for i in range(0, nodes, 4) for j in range(i + 2)[:nodes] if i != j]
        data = Data(pos=pos, edge_index=torch.tensor([j for j in joins if max(j) < nodes]).T)
    results = []
    for engine, options in (("reference", {}), ("fast", {}), ("fast", {"chunk": 7})):
        model = network(engine, block, radial=radial, **options)
        pos = data.pos.clone().requires_grad_()
        out = model(Data(pos=pos, edge_index=data.edge_index))
        (slope,) = torch.autograd.grad(out.square().sum(), pos, create_graph=True)
        weights = list(model.parameters())
        second = torch.autograd.grad(slope.square().sum(), weights, materialize_grads=True)
        results.append([out, slope, *second])
    for other in results[1:]:
        for one, two in zip(results[0], other, strict=True):
            size = max(1.0, float(one.detach().abs().max()))
            torch.testing.assert_close(two / size, one / size, rtol=1e-9, atol=1e-9)


def test_it_is_symmetric_as_derived() -> None:
    report = symgnn.audit.audit(network(), some_graph(3, edges=20))
    assert report.as_expected
    assert network().symmetry == build("combined", layers=2).symmetry
    assert "translation" in network().symmetry


def test_it_tells_apart_what_distances_do_not() -> None:
    """A node with neighbours at right angles and on a line: the same lengths, other angles."""
    index = torch.tensor([[1, 2], [0, 0]])
    bent, straight = (
        Data(pos=torch.tensor([[0, 0, 0], [1, 0, 0], end]).double(), edge_index=index)
        for end in ([0, 1, 0], [-1, 0, 0])
    )
    model = network()
    assert float((model(bent)[0] - model(straight)[0]).detach().abs()) > 1e-4
    dgn = build("dgn", task="node", graph_state=False).double()
    torch.testing.assert_close(dgn(bent)[0], dgn(straight)[0])


def test_with_averages_inputs_have_the_size_of_one() -> None:
    graphs = [some_graph(3, seed, edges=50) for seed in range(8)]
    known = averages(graphs, build("combined-filtered").network)
    model = build("combined-filtered", averages=known, task="node", hidden=8)
    scales = [value for name, value in model.state_dict().items() if name.endswith("phi.scale")]
    assert len(scales) == 2
    assert all(bool((scale != 1).any()) and bool(scale.isfinite().all()) for scale in scales)
    again = build("combined-filtered", averages=known, task="node", hidden=8)
    again.load_state_dict(model.state_dict())
    data = graphs[0].apply(lambda t: t.float() if t.is_floating_point() else t)
    torch.testing.assert_close(again(data), model(data))


def test_edge_features_and_graph_features_are_read() -> None:
    model = build("combined-filtered", edge_features=2, graph_features=1, hidden=4)
    data = some_graph(3).apply(lambda t: t.float() if t.is_floating_point() else t)
    data.edge_attr, data.u = torch.randn(30, 2), torch.randn(1, 1)
    before = model(data)
    data.edge_attr = data.edge_attr + 1
    between = model(data)
    data.u = data.u + 1
    assert not torch.equal(before, between)
    assert not torch.equal(between, model(data))


class Doubled(Form):
    """Twice the squared length, by a form of its own."""

    def __init__(self, widths: list[int], out: int, hidden: int) -> None:
        super().__init__(widths, out, hidden)
        self.map = nn.Linear(widths[0], out)

    def here(self, *values: Tensor) -> Tensor:
        return self.map(values[0])


@pytest.mark.parametrize("engine", ["fast", "reference"])
def test_edges_of_any_form_fade_out(engine: str) -> None:
    """The fast engine left the envelope out where an update had a form of its own."""
    spec = Spec("mine", edge=[d2], node=[v, reduce(e)], forms={"edge": Doubled})
    torch.manual_seed(0)
    model = build(spec, task="node", envelope=True, cutoff=2.0, engine=engine).double()
    index = torch.tensor([[1], [0]])
    far, alone = (
        model(Data(pos=torch.tensor([[0.0], [2.0 - 1e-9]]).double(), edge_index=joined))
        for joined in (index, index[:, :0])
    )
    torch.testing.assert_close(far, alone)


def test_the_switch_gives_the_blocks_by_name() -> None:
    for name in ("dgn", "sdgn", "combined"):
        assert build(name, filtered=True).network == build(f"{name}-filtered").network
    three = build("combined-filtered", degree=3).network.layer
    assert three.node[1] == edge_products(3)
    assert build("combined", filtered=True, degree=3).network.layer == three


def test_blocks_for_other_data_can_be_filtered() -> None:
    """By what edges read: here the height and the distance across."""
    data = some_graph(3).apply(lambda t: t.float() if t.is_floating_point() else t)
    for name in ("ugn", "tgn", "sdgn"):
        torch.manual_seed(0)
        size = {"dimension": 3} if name == "tgn" else {}
        fast = build(name, filtered=True, hidden=4, **size)
        slow = build(name, filtered=True, hidden=4, engine="reference", **size)
        slow.load_state_dict(fast.state_dict())
        torch.testing.assert_close(fast(data), slow(data))
        assert fast.symmetry == build(name, **size).symmetry


@pytest.mark.parametrize(
    ("block", "options", "message"),
    [
        ("agn", {"filtered": True}, "the edges of AGN read no lengths"),
        ("gn", {"filtered": True, "dimension": 3}, "the edges of GN read no lengths"),
        ("dgn", {"filtered": 1}, "filtered: is 1; give True or False"),
        ("dgn", {"filtered": True, "degree": 2}, "DGN-filtered reads no angles; remove degree"),
        ("dgn-filtered", {"filtered": False}, "DGN-filtered is filtered; remove filtered"),
        ("combined", {"filtered": True, "separable": True}, "give one of both"),
        ("combined-separable", {"filtered": True}, "has forms of its own"),
    ],
)
def test_refusals(block: str, options: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        build(block, **options)


def test_degrees_out_of_range_are_refused() -> None:
    for degree in (-1, 7, True, 1.5):
        with pytest.raises((ValueError, TypeError), match="degree"):
            build("combined-filtered", degree=degree)
    with pytest.raises(ValueError, match="give values of nodes, then"):
        build(Spec("mine", edge=[v.source], node=[reduce(e)], forms={"edge": FilterForm()}))


def test_forces_turn() -> None:
    model = Potential(network(graph_state=False))
    data = some_graph(3)
    turn = Rotation.random(data.pos)
    one, two = model(data), model(turn.apply(data))
    torch.testing.assert_close(turn(one.forces), two.forces)
