"""The formulas for DimeNet and IsoGNN in the paper's appendix, against loops."""

import pytest
import torch

from helpers import directed, generic_edges, graph, random_model, trial
from symgnn.geometry import ANGLES as ANGLES_KEPT
from symgnn.geometry import EUCLIDEAN, KINDS, LENGTHS, STARS, angle
from symgnn.graphs import Topology
from symgnn.nn import FORMULAS, build
from symgnn.nn.isometric import Isometric

WIDTHS = {"node_features": 2, "edge_features": 2}


def bare(data):
    data = data.clone()
    data.u = None
    return data


@pytest.mark.parametrize("one_way", [False, True])
def test_dimenet_as_its_formula_says(one_way):
    edges = directed(generic_edges()) if one_way else generic_edges()
    data = bare(graph(edges, 3, 0))
    options = {"layers": 1, "task": "node", "mlp_layers": 1}
    model = random_model("dimenet-formula", **options, **WIDTHS)
    phi = {name: update.phi for name, update in model.blocks[0].updates.items()}
    readout = model.readouts[0].updates["node"].phi
    pairs = [tuple(edge) for edge in data.edge_index.T.tolist()]
    number = {edge: k for k, edge in enumerate(pairs)}
    neighbours = {i: sorted({a + b - i for a, b in pairs if i in (a, b)}) for i in range(9)}
    x, e = data.pos, data.edge_attr

    def apply(form, *values):
        out = torch.cat(values)
        for linear in form.linears[:-1]:
            out = torch.nn.functional.silu(linear(out))
        return form.linears[-1](out)

    messages = []
    for j, i in pairs:
        total = torch.zeros(6, dtype=torch.float64)
        for k in neighbours[j]:
            if k == i:
                continue
            # where the edge j -> i is read from the angle, it is there: it is this one
            own = e[number[j, i]]
            square = (x[i] - x[j]).square().sum().view(1)
            theta = angle(x[i] - x[j], x[k] - x[j]).view(1)
            total = total + apply(phi["angle"], own, square, theta)
        messages.append(apply(phi["edge"], e[number[j, i]], total))
    for i in range(9):
        total = sum(messages[number[j, t]] for j, t in pairs if t == i)
        total = torch.zeros(6, dtype=torch.float64) if isinstance(total, int) else total
        node = apply(phi["node"], data.x[i], total)
        torch.testing.assert_close(apply(readout, node), model(data)[i])


def test_isognn_as_its_formula_says():
    data = bare(graph(generic_edges(), 3, 1))
    data.edge_attr = None
    model = random_model("isognn-formula", layers=1, task="node", node_features=2)
    seen = []
    model.readouts[0].register_forward_pre_hook(lambda _, args: seen.append(args[0].v.rows))
    model(data)
    topology = Topology.build(data.edge_index, data.num_nodes)
    vectors = Isometric.of(data.pos, topology).vectors
    phi = model.blocks[0].updates["node"].phi
    for i in range(data.num_nodes):
        total = torch.zeros(3, 2, dtype=torch.float64)
        moment = torch.zeros(3, 3, dtype=torch.float64)
        for k, (j, target) in enumerate(data.edge_index.T.tolist()):
            if target == i:
                ray = data.pos[j] - data.pos[i]
                moment += ray.outer(ray) / ray.square().sum()
                total += vectors[k].outer(data.x[j])
        for k, (j, target) in enumerate(data.edge_index.T.tolist()):
            if target == i:
                ray = data.pos[j] - data.pos[i]
                wanted = torch.linalg.solve(moment, ray / ray.square().sum())
                torch.testing.assert_close(vectors[k], wanted)
        inside = torch.cat([data.x[i], total.square().sum(0)])
        out = phi.linears[1](torch.nn.functional.silu(phi.linears[0](inside)))
        torch.testing.assert_close(out, seen[0][i])
    # unlike IsoGCN it does not vanish on constants
    data.x = torch.ones_like(data.x)
    from symgnn.nn.peers.appendix import _squared_sum
    from symgnn.nn.state import State

    assert _squared_sum(data.x, State(topology, data.pos)).min() > 1e-6


@pytest.mark.parametrize(
    ("name", "symmetry"),
    [("dimenet-formula", LENGTHS & ANGLES_KEPT), ("isognn-formula", EUCLIDEAN | STARS)],
)
def test_their_symmetry_is_derived_kept_and_no_larger(name, symmetry):
    widths = {"node_features": 2, "graph_features": 0}
    assert set(FORMULAS) == {"dimenet-formula", "isognn-formula"}
    assert build(name, node_features=1).symmetry == symmetry
    largest: dict[str, float] = {}
    for seed in range(3):
        model = random_model(name, seed=seed, noise=0.4, **widths)
        measured = trial(tuple(KINDS), 3, seed)

        def call(batch, model=model):
            batch = batch.clone()
            batch.u = batch.edge_attr = None
            return model(batch)

        for kind, error in measured.changes(call, "graph").items():
            largest[kind] = max(error, largest.get(kind, 0.0))
    for kind, error in largest.items():
        assert (error <= 1e-9) if kind in symmetry else (error > 1e-4), (kind, error)


def test_the_originals_are_other_networks():
    """IsoGCN compares gradients of neighbours, so that it sees torsions; the formula does not."""
    assert (
        build("isogcn", node_features=1).symmetry
        <= build("isognn-formula", node_features=1).symmetry
    )
    assert "torsion" not in build("isogcn", node_features=1).symmetry
