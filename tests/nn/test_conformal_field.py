"""Node outputs of a given scaling dimension."""

import itertools
import math

import pytest
import torch
from torch_geometric.data import Batch, Data

from helpers import FEATURES, both_ways, generic_edges, graph, random_model, rng
from symgnn.audit import audit
from symgnn.geometry import Dilation, Inversion, Rotation, SpecialConformal
from symgnn.graphs import Topology
from symgnn.nn import build
from symgnn.nn.conformal_field import vertex_scale
from symgnn.nn.state import State

OPTIONS = {"task": "node", **FEATURES}


def local_scale(element, pos):
    """W at each point, from the derivative of the map."""
    jacobian = torch.func.vmap(torch.func.jacrev(lambda x: element(x.unsqueeze(0))[0]))(pos)
    return torch.linalg.det(jacobian).abs() ** (1 / pos.shape[1])


def test_the_scale_is_the_root_mean_square_of_s():
    data = graph(generic_edges(), 3, 0)
    topology = Topology.build(data.edge_index, data.num_nodes)
    found = vertex_scale(State(topology, data.pos), data.pos)
    for i in range(data.num_nodes):
        near = sorted({a + b - i for a, b in data.edge_index.T.tolist() if i in (a, b)})
        s = []
        for j, k in itertools.permutations(near, 2):
            rays = [data.pos[j] - data.pos[i], data.pos[k] - data.pos[i]]
            s.append((data.pos[j] - data.pos[k]).norm() / (rays[0].norm() * rays[1].norm()))
        wanted = torch.stack(s).square().mean().sqrt()
        torch.testing.assert_close(found[i], wanted)


@pytest.mark.parametrize("n", [2, 3, 5])
@pytest.mark.parametrize("weight", [-1.5, 0.0, 1.0, 2.0])
def test_a_field_of_weight_d(weight, n):
    data = graph(generic_edges(), n, 1)
    model = random_model("cgn", weight=weight, noise=0.4, **OPTIONS)
    before = model(data).detach()
    for kind in (SpecialConformal, Inversion, Dilation, Rotation):
        element = kind.random(data.pos, generator=rng(n))
        after = model(element.apply(data)).detach()
        wanted = before * local_scale(element, data.pos).unsqueeze(1) ** -weight
        error = float((after - wanted).abs().max() / wanted.abs().max())
        assert error <= 1e-12, (kind, error)
    # and it is no invariant
    if weight:
        changed = model(Dilation(2.0).apply(data)).detach() / before
        torch.testing.assert_close(changed, torch.full_like(changed, 2.0**-weight))


def test_a_learned_weight_starts_at_zero_and_is_found():
    """Targets of dimension 1.3 on one shape at many sizes: the weight is what tells them."""
    generator = rng(3)
    base = torch.randn(6, 3, generator=generator, dtype=torch.float64)
    edges = both_ways([(i, j) for i in range(6) for j in range(i)])
    sizes = torch.linspace(0.5, 2.0, 8, dtype=torch.float64).tolist()
    graphs = [Data(pos=size * base, edge_index=edges) for size in sizes]
    torch.manual_seed(0)
    model = build("cgn", task="node", weight="learned", hidden=8).double()
    assert model.field.weight.item() == 0
    first = build("cgn", task="node", weight=1.3, hidden=8).double()
    first.load_state_dict(
        {k: v for k, v in model.state_dict().items() if k != "field.weight"}, strict=False
    )
    targets = [first(g).detach() for g in graphs]
    optimizer = torch.optim.LBFGS([model.field.weight], max_iter=50, line_search_fn="strong_wolfe")

    def closure():
        optimizer.zero_grad()
        pairs = zip(graphs, targets, strict=True)
        loss = sum((model(g) - y).square().sum() for g, y in pairs)
        loss.backward()
        return loss

    optimizer.step(closure)
    assert model.field.weight.item() == pytest.approx(1.3, abs=1e-4)
    model.reset_parameters()
    assert model.field.weight.item() == 0


def test_the_symmetry_and_the_audit():
    model = random_model("cgn", weight=1.5, noise=0.4, **OPTIONS)
    assert str(model.symmetry) == "Moebius maps, torsions, permutations"
    assert "equivariant to Moebius maps" in repr(model)
    assert model.output_type == "weight 1.5 per node"
    data = graph(generic_edges(), 3, 0)
    report = audit(model, data, elements=4)
    assert str(report.outputs[0]) == "weight 1.5 per node"
    assert report.holds("Moebius maps"), report
    assert report.agrees, report
    # told otherwise, the audit finds that it is none
    wrong = audit(model, data, outputs="weight 1.0 per node", elements=4, kinds=["dilation"])
    assert not wrong.holds("dilations")
    plain = random_model("agn", weight=1.0, **OPTIONS)
    assert str(plain.symmetry) == "similarities, torsions, permutations"


def test_nodes_without_a_scale_give_zero_and_finite_derivatives():
    pos = torch.tensor([[0.0, 0], [1, 0], [1, 0], [2, 2], [5, 5]], dtype=torch.float64)
    pos.requires_grad_()
    data = Data(pos=pos, edge_index=both_ways([(0, 1), (0, 2), (0, 3)]))
    single = Data(pos=pos, edge_index=both_ways([(0, 1), (0, 2)]))
    for weight in (-1.0, 2.0, "learned"):
        model = random_model("cgn", task="node", weight=weight)
        out = model(data)
        assert out[0].abs().max() > 0
        assert torch.equal(out[1:], torch.zeros_like(out[1:]))
        assert torch.equal(model(single), torch.zeros_like(out))
        (slope,) = torch.autograd.grad(out.sum(), pos, create_graph=True)
        (second,) = torch.autograd.grad(slope.square().sum(), pos)
        assert slope.isfinite().all()
        assert second.isfinite().all()


def test_chunks_and_batches_change_nothing():
    graphs = [graph(generic_edges(), 3, k) for k in range(3)]
    whole, cut = (random_model("cgn", weight=1.0, chunk=c, **OPTIONS) for c in (None, 10))
    alone = torch.cat([whole(g) for g in graphs])
    for model in (whole, cut):
        torch.testing.assert_close(model(Batch.from_data_list(graphs)), alone)
    assert whole.float().output_type == "weight 1.0 per node"


@pytest.mark.parametrize("factor", [1e-30, 1e30])
def test_any_size(factor):
    data = graph(generic_edges(), 3, 0)
    model = random_model("cgn", weight=1.0, **OPTIONS)
    out = model(Dilation(factor).apply(data)).detach()
    wanted = model(data).detach() / factor
    assert float((out - wanted).abs().max() / wanted.abs().max()) < 1e-12


def test_wrong_weights():
    with pytest.raises(ValueError, match=r"weight: is 1\.0, but task='graph'; conformal fields"):
        build("cgn", weight=1.0)
    for wrong in (math.nan, "two", True):
        with pytest.raises(ValueError, match="give a finite number, or 'learned'"):
            build("cgn", task="node", weight=wrong)
