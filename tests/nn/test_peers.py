"""The peers' networks, equal to their own code: values, and gradients of weights and positions."""

import pytest
import torch
from torch import Tensor, nn
from torch_geometric.nn.models import DimeNet, DimeNetPlusPlus, SchNet

from nn import peers
from nn.peer_cases import TOLERANCE, difference
from nn.peers import E_GCL, E_GCL_vel, directed, molecules, on_graph
from symgnn.graphs import Topology
from symgnn.nn import Form, Spec, build, from_peer, to_peer
from symgnn.nn.inputs import d2, e, position, reduce
from symgnn.nn.peers.weights import pairs_of, reader_of

#: Gradients in float32 have the rounding of both passes.
GRADIENT = {torch.float64: 1e-10, torch.float32: 2e-5}


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
