"""Messages between edges of product form, against loops over the edges k -> j of each j -> i."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor
from torch_geometric.data import Batch, Data

from nn.oracle_formulas import mlp
from nn.separable_oracle import chebyshev
from symgnn.audit import audit
from symgnn.geometry.symmetry import ANGLES, LENGTHS, REVERSING
from symgnn.nn import Model, build, export

KINDS = ["rotation", "reflection", "translation", "dilation"]
LITTLE = {"elements": 3, "search": 0, "grow": False, "checks": False}
EDGES = [(0, 1), (1, 0), (1, 2), (2, 1), (2, 0), (0, 3), (3, 1), (4, 1), (3, 4)]


def graph(seed: int = 0, features: int = 2) -> Data:
    random = torch.Generator().manual_seed(seed)
    kind = {"dtype": torch.float64, "generator": random}
    return Data(
        pos=torch.randn(5, 3, **kind),
        x=torch.randn(5, 2, **kind),
        edge_index=torch.tensor(EDGES).T,
        edge_attr=torch.randn(len(EDGES), features, **kind),
    )


def network(**options: object) -> Model:
    torch.manual_seed(0)
    given = {"hidden": 3, "layers": 2, "node_features": 2, "edge_features": 2, "outputs": 2}
    return build("dimenet-separable", **{**given, "task": "edge", **options}).double()


def messages(model: Model, data: Data) -> Tensor:
    """The edge values after the first block, which reads features alone."""
    found = []
    hook = model.blocks[0].register_forward_hook(lambda _, __, state: found.append(state.e.rows))
    model(data)
    hook.remove()
    return found[0].detach()


def expected(model: Model, data: Data) -> Tensor:
    """The same by loops."""
    updates = model.blocks[0].updates
    form, edge = updates["angle"].phi, updates["edge"].phi
    number = {ends: k for k, ends in enumerate(EDGES)}
    neighbours = {j: {a for e in EDGES for a in e if j in e and a != j} for j in range(5)}
    rows = []
    for j, i in EDGES:
        total = torch.zeros(form.out, dtype=torch.float64)
        first = data.pos[i] - data.pos[j]
        for k in sorted(neighbours[j] - {i}):
            second = data.pos[k] - data.pos[j]
            t = first @ second / (first.norm() * second.norm())
            message = data.edge_attr[number[k, j]] if (k, j) in number else torch.zeros(2).double()
            g = form.first(first.square().sum().reshape(1))
            h = form.second(torch.cat([message, second.square().sum().reshape(1)]))
            q = sum(form.coefficients[:, p] * chebyshev(p, t) for p in range(form.degree + 1))
            total = total + g * h * q
        read = [data.edge_attr[number[j, i]], data.x[j], data.x[i]]
        read += [first.square().sum().reshape(1), total]
        rows.append(mlp(edge, read))
    return torch.stack(rows).detach()


@pytest.mark.parametrize("degree", [0, 1, 3, 5])
def test_messages(degree: int) -> None:
    model, data = network(degree=degree, aggregation="sum", graph_state=False), graph()
    found, wanted = messages(model, data), expected(model, data)
    assert (found - wanted).abs().max() < 1e-10 * wanted.abs().max()


def test_only_messages_that_come_to_the_source_are_read() -> None:
    """N_j without i, as in DimeNet: the edge i -> j does not speak to j -> i."""
    model, data = network(layers=1, graph_state=False, aggregation="sum"), graph()
    # the output reads v at both ends, so look at the messages themselves
    before = messages(model, data)
    for source, (k, j) in enumerate(EDGES):
        other = data.clone()
        other.edge_attr = data.edge_attr.clone()
        other.edge_attr[source] += 1.0
        changed = ((messages(model, other) - before).abs() > 1e-9).any(1)
        for number, (start, end) in enumerate(EDGES):
            speaks = number == source or (start == j and end != k)
            assert bool(changed[number]) == speaks, ((k, j), (start, end))


def test_explicit_angles_and_second_derivatives() -> None:
    for task in ("graph", "node"):
        fast = network(task=task, radial=4, cutoff=5.0)
        listed = network(task=task, radial=4, cutoff=5.0, engine="reference")
        listed.load_state_dict(fast.state_dict())
        found = []
        for model in (fast, listed):
            data = graph()
            data.pos.requires_grad_()
            out = model(data)
            (force,) = torch.autograd.grad(out.sum(), data.pos, create_graph=True)
            twice = torch.autograd.grad(
                force.square().sum(), [data.pos, *model.parameters()], allow_unused=True
            )
            kept = [each for each in twice if each is not None]
            found.append([out.detach(), force.detach(), *kept])
        for one, other in zip(*found, strict=True):
            assert (one - other).abs().max() <= 1e-10 * other.abs().max().clamp(min=1.0)


def test_symmetry() -> None:
    model = network(task="graph")
    assert model.symmetry == build("dimenet-formula").symmetry == LENGTHS & ANGLES
    assert model.topology(graph()).pairs is None  # no angle is listed
    report = audit(model, graph(), kinds=KINDS, **LITTLE)
    assert report.holds("E(3)")
    assert not report.holds("dilation")


def test_handedness() -> None:
    chiral = network(task="graph", chiral=True, dimension=3)
    assert chiral.symmetry == (LENGTHS & ANGLES) - REVERSING
    report = audit(chiral, graph(), kinds=KINDS, **LITTLE)
    assert report.holds("SE(3)")
    assert not report.holds("reflection")


def test_chunks_and_empty_graphs() -> None:
    model, data = network(task="graph"), graph()
    parts = network(task="graph", chunk=3)
    parts.load_state_dict(model.state_dict())
    assert torch.allclose(parts(data), model(data), rtol=1e-12)
    none = data.clone()
    none.edge_index, none.edge_attr = data.edge_index[:, :0], data.edge_attr[:0]
    assert model(none).isfinite().all()


@pytest.mark.slow
def test_export() -> None:
    model, batch = network(task="graph"), Batch.from_data_list([graph(), graph(1)])
    program = export(model, batch).module()
    given = {"x": batch.x, "edge_attr": batch.edge_attr, "batch": batch.batch}
    found = program(pos=batch.pos, edge_index=batch.edge_index, **given)
    assert torch.allclose(found, model(batch), rtol=1e-10)
