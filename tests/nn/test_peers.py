"""The peers' networks, equal to their own code: values, and gradients of weights and positions."""

import itertools
import re

import pytest
import torch
from torch import Tensor, nn
from torch_geometric.data import Batch
from torch_geometric.nn.models import DimeNet, DimeNetPlusPlus, SchNet

import symgnn
from helpers import train_ensemble
from nn import peers
from nn.peers import E_GCL, E_GCL_vel, directed, molecules, on_graph
from symgnn.geometry import TRANSFORMATIONS
from symgnn.graphs import Topology, knn_graph
from symgnn.nn import EGNNMap, Form, Spec, build, from_peer, to_peer
from symgnn.nn.bases import gaussians
from symgnn.nn.inputs import d2, e, position, reduce, v
from symgnn.nn.peers.isogcn import SQUARED_GRADIENT
from symgnn.nn.peers.weights import pairs_of, reader_of
from symgnn.train import Ensemble

#: The largest difference, relative to the largest number compared.
TOLERANCE = {torch.float64: 1e-10, torch.float32: 1e-6}
#: Gradients in float32 have the rounding of both passes.
GRADIENT = {torch.float64: 1e-10, torch.float32: 2e-5}


def difference(a: Tensor, b: Tensor) -> float:
    return float((a - b).detach().abs().max() / b.detach().abs().max().clamp(min=1e-30))


def compare(peer: nn.Module, ours: nn.Module, theirs_out: list, ours_out: list, pos: tuple) -> None:
    """Outputs, and the gradients of a number made of them: to the positions, to each weight."""
    dtype = ours_out[0].dtype
    for a, b in zip(ours_out, theirs_out, strict=True):
        assert difference(a, b) < TOLERANCE[dtype]
    theirs = sum(out.square().sum() for out in theirs_out)
    mine = sum(out.square().sum() for out in ours_out)
    of_peer = torch.autograd.grad(theirs, [pos[1], *peer.parameters()], allow_unused=True)
    of_ours = torch.autograd.grad(mine, [pos[0], *ours.parameters()], allow_unused=True)
    assert difference(of_ours[0], of_peer[0]) < GRADIENT[dtype]
    named = dict(zip([n for n, _ in ours.named_parameters()], of_ours[1:], strict=True))
    known = {id(p): g for p, g in zip(peer.parameters(), of_peer[1:], strict=True)}
    for name, parameter in pairs_of(reader_of(peer)(peer)[1]):
        if known[id(parameter)] is None:
            assert named[name] is None, name
            continue
        found = named[name].view_as(known[id(parameter)])
        assert difference(found, known[id(parameter)]) < GRADIENT[dtype], name


def pyg(name: str, **options) -> nn.Module:
    torch.manual_seed(1)
    if name == "schnet":
        return SchNet(16, 12, 2, 10, cutoff=5.0, **options)
    sizes = {"out_channels": 2, "num_blocks": 2, "num_spherical": 3, "num_radial": 4, **options}
    sizes = {"cutoff": 5.0, "output_initializer": "glorot_orthogonal", **sizes}
    if name == "dimenet":
        return DimeNet(16, num_bilinear=5, **sizes)
    sizes = {"int_emb_size": 8, "basis_emb_size": 5, "out_emb_channels": 12, **sizes}
    return DimeNetPlusPlus(16, **sizes)


def check_pyg(peer: nn.Module, dtype: torch.dtype, graph: str) -> None:
    peer = peer.to(dtype)
    batch = molecules(dtype)
    batch = directed(batch) if graph == "directed" else batch
    ours = from_peer(peer)
    here, there = (batch.pos.clone().requires_grad_() for _ in range(2))
    batch.pos = here
    with on_graph(batch.edge_index):
        theirs = peer(batch.z, there, batch.batch)
    compare(peer, ours, [theirs], [ours(batch)], (here, there))


@pytest.mark.parametrize("graph", ["radius", "directed"])
@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("name", ["schnet", "dimenet", "dimenet++"])
def test_pyg(name: str, dtype: torch.dtype, graph: str) -> None:
    check_pyg(pyg(name), dtype, graph)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("name", ["dimenet", "dimenet++"])
def test_dimenet_in_its_published_size(name: str, dtype: torch.dtype) -> None:
    sizes = {"num_spherical": 7, "num_radial": 6, "num_blocks": 4, "out_channels": 1}
    check_pyg(pyg(name, **sizes), dtype, "radius")


@pytest.mark.parametrize("name", ["schnet", "dimenet++"])
def test_an_edge_and_its_reverse_share_what_depends_on_their_length(name: str) -> None:
    batch, ours = molecules(torch.float64), from_peer(pyg(name).double())
    rows: list[int] = []
    update = next(u for block in ours.blocks for u in block.updates.values() if u.plan.on_lines)
    home = update.phi.home
    update.phi.home = lambda *values: (rows.append(len(values[-1])), home(*values))[1]
    both = ours(batch)
    batch.topology = Topology.of(batch, angles=ours.needs_angles)
    each = ours(batch)
    assert rows == [batch.num_edges // 2, batch.num_edges]
    assert difference(both, each) < TOLERANCE[torch.float64]


def test_lines_beside_coordinates() -> None:
    class Weigh(Form):
        def home(self, *values: Tensor) -> list[Tensor]:
            return [value + 1 for value in values]

        def here(self, *values: Tensor) -> Tensor:
            return values[0] * values[1]

    batch = molecules(torch.float64)
    batch.z = None
    spec = Spec("own", edge=[position.source, d2], node=[reduce(e)], forms={"edge": Weigh})
    model = build(spec, layers=1, task="node", dimension=3, hidden=3).double()
    assert model.topology(batch).lines is not None
    both = model(batch)
    batch.topology = Topology.of(batch)
    assert difference(both, model(batch)) < TOLERANCE[torch.float64]


def test_schnet_with_means() -> None:
    check_pyg(pyg("schnet", readout="mean"), torch.float64, "radius")


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("velocity", [False, True])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"attention": True, "coords_agg": "sum"},
        {"normalize": True, "residual": False},
        {"norm_diff": True, "tanh": True},
    ],
    ids=str,
)
def test_the_layer_of_egnn(options: dict, velocity: bool, dtype: torch.dtype) -> None:
    torch.manual_seed(2)
    peer = (E_GCL_vel if velocity else E_GCL)(6, 10, 3, **options).to(dtype)
    batch = directed(molecules(dtype))
    x, edge_attr = torch.randn(14, 6).to(dtype), torch.randn(batch.num_edges, 3).to(dtype)
    vel = torch.randn(14, 3).to(dtype) if velocity else None
    ours = from_peer(peer)
    here, there = (batch.pos.clone().requires_grad_() for _ in range(2))
    # their edges are (i, j) where ours are j -> i
    theirs = peer(x, batch.edge_index.flip(0), there, edge_attr, vel)
    mine = ours(x, here, batch.edge_index, edge_attr, batch.batch, vel=vel)
    compare(peer, ours, list(theirs), list(mine), (here, there))


def test_the_network_of_egnn() -> None:
    torch.manual_seed(3)
    peer = peers.EGNN(4, 12, 3, 2, 3).double()
    batch = directed(molecules())
    batch.z = None
    batch.x, batch.edge_attr = torch.randn(14, 4).double(), torch.randn(batch.num_edges, 2).double()
    ours = from_peer(peer)
    here, there = (batch.pos.clone().requires_grad_() for _ in range(2))
    batch.pos = here
    theirs, _ = peer(batch.x, there, batch.edge_index.flip(0), batch.edge_attr)
    compare(peer, ours, [theirs], [ours(batch)], (here, there))


def sparse(**options) -> nn.Module:
    egnn = pytest.importorskip("egnn_pytorch", reason="egnn-pytorch is in the extra 'test'")
    torch.manual_seed(4)
    return egnn.EGNN_Sparse(6, m_dim=5, edge_attr_dim=2, **options)


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"aggr": "mean"},
        {"soft_edge": 1, "norm_coors": True},
        {"update_coors": False},
        {"fourier_features": 3},
        {"norm_feats": True},
    ],
    ids=str,
)
def test_egnn_pytorch_sparse(options: dict, dtype: torch.dtype) -> None:
    peer = sparse(**options).to(dtype)
    batch = directed(molecules(dtype))
    x, edge_attr = torch.randn(14, 6).to(dtype), torch.randn(batch.num_edges, 2).to(dtype)
    ours = from_peer(peer)
    here, there = (batch.pos.clone().requires_grad_() for _ in range(2))
    out = peer(torch.cat([there, x], 1), batch.edge_index, edge_attr, batch=batch.batch)
    mine = ours(x, here, batch.edge_index, edge_attr, batch.batch)
    theirs = [out[:, 3:], out[:, :3]] if peer.update_coors else [out[:, 3:]]
    mine = list(mine) if peer.update_coors else [mine]
    compare(peer, ours, theirs, mine, (here, there))


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"m_pool_method": "mean", "soft_edges": True},
        {"norm_coors": True, "coor_weights_clamp_value": 0.01},
        {"fourier_features": 2},
        {"norm_feats": True, "norm_coors": True},
    ],
    ids=str,
)
def test_egnn_pytorch_dense(options: dict) -> None:
    egnn = pytest.importorskip("egnn_pytorch", reason="egnn-pytorch is in the extra 'test'")
    torch.manual_seed(5)
    peer = egnn.EGNN(6, edge_dim=2, m_dim=5, init_eps=0.3, **options).double()
    ours, count = from_peer(peer), 7
    x, pos = torch.randn(count, 6).double(), torch.randn(count, 3).double()
    edges = torch.randn(count, count, 2).double()
    target, source = torch.cartesian_prod(torch.arange(count), torch.arange(count)).T
    here, there = (pos.clone().requires_grad_() for _ in range(2))
    theirs = [out[0] for out in peer(x[None], there[None], edges[None])]
    mine = ours(x, here, torch.stack([source, target]), edges[target, source])
    compare(peer, ours, theirs, list(mine), (here, there))


@pytest.mark.parametrize("name", ["schnet", "dimenet", "dimenet++"])
def test_weights_go_back(name: str) -> None:
    first, second = pyg(name), pyg(name)
    for parameter in second.parameters():
        nn.init.normal_(parameter)
    to_peer(from_peer(first), second)
    for one, other in zip(first.parameters(), second.parameters(), strict=True):
        assert torch.equal(one, other)
    other = build(name, hidden=8, layers=1)
    with pytest.raises(ValueError, match=r"to_peer: .* does not fit"):
        to_peer(other, first)


def test_weights_of_layers_go_back() -> None:
    first, second = (sparse(soft_edge=1, norm_feats=True) for _ in range(2))
    for parameter in second.parameters():
        nn.init.normal_(parameter)
    to_peer(from_peer(first), second)
    for one, other in zip(first.parameters(), second.parameters(), strict=True):
        assert torch.equal(one, other)


def test_what_cannot_be_carried_over_is_named() -> None:
    with pytest.raises(ValueError, match=r"SchNet was made with mean=1\.0"):
        from_peer(pyg("schnet", mean=1.0, std=2.0))
    with pytest.raises(ValueError, match=r"EGNN_Sparse was made with dropout=0\.5"):
        from_peer(sparse(dropout=0.5))
    with pytest.raises(ValueError, match="DimeNet has another activation"):
        from_peer(pyg("dimenet", act="relu"))
    with pytest.raises(TypeError, match="cannot read a Linear; it reads SchNet, "):
        from_peer(nn.Linear(2, 2))


SYMMETRY = {
    "schnet": "E(n), torsions, flexes, permutations",
    "dimenet": "E(n), torsions, permutations",
    "dimenet++": "E(n), torsions, permutations",
    "egnn": "E(n), permutations",
    "isogcn": "E(n), permutations",
}


@pytest.mark.parametrize("dimension", [2, 3, 4])
@pytest.mark.parametrize("name", SYMMETRY)
def test_the_symmetry_is_derived_and_kept(name: str, dimension: int) -> None:
    """In every dimension; what is not claimed is broken."""
    torch.manual_seed(6)
    options = {"node_features": 3} if name in ("egnn", "isogcn") else {}
    model = build(name, hidden=16, layers=2, **options).double()
    for parameter in model.parameters():
        if parameter.requires_grad and parameter.abs().max() < 0.01:
            nn.init.normal_(parameter, std=0.3)
    batch = molecules()
    batch.pos = torch.randn(14, dimension, generator=torch.Generator().manual_seed(7)).double()
    batch.edge_index = knn_graph(batch.pos, 3, batch.batch)
    if options:
        batch.x, batch.z = torch.randn(14, 3).double(), None
    assert str(model.symmetry) == SYMMETRY[name]
    out = model(batch)
    for kind in ("translation", "rotation", "reflection", "dilation", "inversion", "affine"):
        moved = batch.clone()
        element = TRANSFORMATIONS[kind].random(
            batch.pos, batch.edge_index, generator=torch.Generator().manual_seed(8)
        )
        moved.pos = element(batch.pos)
        change = difference(model(moved), out)
        assert change < 1e-10 if kind in model.symmetry else change > 1e-6, f"{kind}: {change}"


def test_isogcn_reads_derivatives() -> None:
    """On a linear field the squared gradient is its slope squared, and the Laplacian is 0."""
    batch = molecules()
    batch.z = None
    batch.edge_index = knn_graph(batch.pos, 4, batch.batch)
    slope = torch.tensor([[1.0, -2.0, 0.5]], dtype=torch.float64)
    model = build("isogcn", node_features=1, layers=1, mlp_layers=0, task="node", hidden=1).double()
    (linear,) = model.blocks[0].updates["node"].phi.linears
    seen = []
    model.blocks[0].updates["node"].phi.linears[0].weight.data = torch.tensor(
        [[0.0, 1.0, 1.0]]
    ).double()
    linear.bias.data.zero_()
    model.readouts[0].register_forward_pre_hook(lambda _, args: seen.append(args[0].v.rows))
    batch.x = batch.pos @ slope.T
    model(batch)
    first = batch.batch != 2  # the last graph is one atom
    assert difference(seen[0][first], slope.square().sum().expand(int(first.sum()), 1)) < 1e-10


def test_isogcn_on_the_torsion_of_its_parts() -> None:
    squared = Spec("gradients", node=[v, SQUARED_GRADIENT])
    assert str(build(squared, node_features=1).symmetry) == "E(n), torsions, permutations"


def test_egnn_moves_coordinates_with_velocities() -> None:
    torch.manual_seed(9)
    psi = EGNNMap(velocity=True)
    model = build("egnn", task="coordinates", node_features=1, coordinate_map=psi).double()
    batch = molecules()
    batch.z = None
    batch.x, batch.vel = torch.randn(14, 1).double(), torch.randn(14, 3).double()
    turn, _ = torch.linalg.qr(torch.randn(3, 3, dtype=torch.float64))
    moved = batch.clone()
    moved.pos, moved.vel = batch.pos @ turn.T + 2, batch.vel @ turn.T
    assert difference(model(moved), model(batch) @ turn.T + 2) < 1e-12
    assert difference(model(batch), batch.pos) > 1e-3
    batch.vel = None
    with pytest.raises(ValueError, match="vel: is missing"):
        model(batch)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"z": None}, "z: is missing; give the type of each node"),
        ({"z": torch.full((14,), 500)}, "z: holds 500; the model knows the types 0 to 99"),
        ({"z": torch.ones(14)}, "z: is torch.float32 [14]; it must be whole numbers [N]"),
    ],
)
def test_types_are_checked(change: dict, message: str) -> None:
    batch = molecules()
    for name, value in change.items():
        batch[name] = value
    with pytest.raises(ValueError, match=re.escape(message)):
        build("schnet", hidden=8, layers=1).double()(batch)


def test_options_of_a_peer_are_checked() -> None:
    with pytest.raises(TypeError, match="schnet takes no option 'cutof'; did you mean 'cutoff'"):
        build("schnet", cutof=3.0)
    with pytest.raises(ValueError, match="task: SchNet has no read-out for 'edge'"):
        build("schnet", task="edge")
    with pytest.raises(ValueError, match="choose 'mean' or 'sum'"):
        build("egnn", coordinates="max", node_features=1)


@pytest.mark.parametrize("name", ["schnet", "dimenet", "dimenet++"])
def test_coincident_atoms_give_numbers(name: str) -> None:
    batch = molecules()
    batch.pos[1] = batch.pos[0]
    batch.pos.requires_grad_()
    model = build(name, hidden=8, layers=1).double()
    for parameter in model.parameters():
        if parameter.abs().max() == 0:
            nn.init.normal_(parameter)
    out = model(batch)
    (force,) = torch.autograd.grad(out.sum(), batch.pos)
    assert bool(out.isfinite().all())
    assert bool(force.isfinite().all())


def test_chunks_of_angles_change_nothing() -> None:
    for name, seed in itertools.product(("dimenet", "dimenet++"), (0,)):
        outs = []
        for chunk in (None, 9):
            torch.manual_seed(seed)
            model = build(name, hidden=8, layers=2, outputs=2, chunk=chunk).double()
            for parameter in model.parameters():
                if parameter.abs().max() == 0:
                    nn.init.normal_(parameter)
            outs.append(model(molecules()))
        assert difference(*outs) < 1e-12


def of_name(name: str, **options) -> tuple[nn.Module, Batch]:
    """A small model that gives something else than 0, and what it is applied to."""
    features = {"node_features": 3} if name in ("egnn", "isogcn") else {}
    basis = {"degrees": 3, "basis": 3} if name.startswith("dimenet") else {}
    model = build(name, hidden=8, layers=2, **features, **basis, **options)
    for parameter in model.parameters():
        if parameter.abs().max() == 0:
            nn.init.normal_(parameter)
    batch = molecules(torch.float32)
    if features:
        batch.x = torch.randn(14, 3, generator=torch.Generator().manual_seed(1))
        batch.z = None
    return model, batch


@pytest.mark.parametrize("name", SYMMETRY)
def test_compile_and_export(name: str) -> None:
    torch.manual_seed(0)
    model, batch = of_name(name)
    batch.topology = model.topology(batch)
    expected = model(batch)
    torch._dynamo.reset()
    compiled = torch.compile(model, fullgraph=True, dynamic=True, backend="aot_eager")
    assert difference(compiled(batch), expected) < 1e-5
    given = {"pos": batch.pos, "topology": batch.topology}
    given |= {"z": batch.z} if batch.x is None else {"x": batch.x}
    exported = torch.export.export(model, (), given)
    assert difference(exported.module()(**given), expected) < 1e-5


@pytest.mark.parametrize("name", SYMMETRY)
def test_many_initialisations(name: str) -> None:
    _, batch = of_name(name)
    batch.pos = batch.pos.double()
    batch.x = None if batch.x is None else batch.x.double()

    def loss(out: Tensor, data: Batch) -> Tensor:
        return (out - 1).square().mean()

    together = Ensemble(lambda: of_name(name)[0].double(), 2)
    alone = Ensemble(lambda: of_name(name)[0].double(), [1])
    losses, found = together.gradients(loss, batch), alone.gradients(loss, batch)
    torch.testing.assert_close(found[0], losses[1])
    pairs = [
        (both.grad[1], one.grad)
        for both, one in zip(together.parameters(), alone.parameters(), strict=True)
    ]
    largest = max(float(one.abs().max()) for _, one in pairs)
    assert all(float((both - one).abs().max()) < 1e-9 * largest for both, one in pairs)
    losses = train_ensemble(together, batch, loss, 4, learning_rate=1e-4)
    assert float(losses[-1].sum()) < float(losses[0].sum())


@pytest.mark.parametrize("name", SYMMETRY)
def test_coordinates_in_float64_with_a_float32_model(name: str) -> None:
    model, batch = of_name(name)
    expected = model(batch)
    batch.pos = batch.pos.double()
    out = model(batch)
    assert out.dtype == torch.float32
    assert difference(out, expected) < 1e-4


@pytest.mark.parametrize("name", ["schnet", "dimenet", "dimenet++"])
def test_far_beyond_the_cutoff(name: str) -> None:
    """Edges of any length give numbers, with gradients that are numbers too."""
    model, batch = of_name(name)
    batch.pos = (1e10 * batch.pos).requires_grad_()
    out = model(batch)
    (force,) = torch.autograd.grad(out.sum(), batch.pos)
    assert bool(out.isfinite().all())
    assert bool(force.isfinite().all())


@pytest.mark.parametrize("dtype", TOLERANCE)
def test_gaussians_are_never_almost_too_small(dtype: torch.dtype) -> None:
    """Processors are slow with such numbers; nothing else changes by leaving them out."""
    basis = gaussians(50, cutoff=5.0).make().to(dtype)
    x = torch.linspace(0, 30, 400, dtype=dtype).unsqueeze(1)
    found, away = basis(x, torch.zeros_like(x)), x - basis.centres
    exact = torch.exp(-0.5 * (away / (basis.centres[1] - basis.centres[0])).square())
    assert ((found == 0) | (found > 1e3 * torch.finfo(dtype).tiny)).all()
    assert (found[exact > 1e-20] > 0).all()
    assert (found - exact).abs().max() < 10 * torch.finfo(dtype).eps


def test_widths_of_nodes_edges_and_angles_may_differ() -> None:
    """Or they are refused where the network adds them."""
    data = symgnn.data.polytope("icosahedron")
    data.z = torch.ones(12, dtype=torch.long)
    hidden = {"node": 3, "edge": 5, "angle": 2}
    assert build("dimenet++", hidden=hidden, layers=2)(data).shape == (1, 1)
    assert build("dimenet", hidden={**hidden, "angle": 5}, layers=2)(data).shape == (1, 1)
    assert build("schnet", hidden=hidden, layers=2)(data).shape == (1, 1)
    with pytest.raises(ValueError, match=r"^hidden: angles have width 2 and edges 5; DimeNet"):
        build("dimenet", hidden=hidden)
