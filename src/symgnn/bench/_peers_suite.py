"""DGN and AGN against the peers' own code, and the peers as specifications against their own code.

Both sides have the same graphs, 64 numbers and two layers; edges, triplets and topology are made
before. PyG's DimeNet++ gets its triplets in pure torch. The process is as it comes: where memory is
kept (`symgnn.train.keep_memory`) the peers gain more, as they ask for more of it.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple
from unittest import mock

import torch
from torch import Tensor, nn
from torch_geometric.data import Batch
from torch_geometric.nn.models import DimeNet, DimeNetPlusPlus, SchNet, dimenet, schnet

from symgnn.bench._egnn_layer import E_GCL
from symgnn.bench._measure import MissingError, Rounds, medians, paired
from symgnn.bench._shapes import CLOUDS, SHAPES, Shape
from symgnn.bench._speed_claims import SpeedClaim
from symgnn.bench._steps import HIDDEN, LAYERS, model_step, network, training_step
from symgnn.bench._suite import Suite, SuitePart
from symgnn.graphs import Topology
from symgnn.nn import DGNConv, Model, from_peer

FINDING = (
    "DGN applies linear maps to nodes before it gathers them to edges; egnn-pytorch applies "
    "them to edges, with hidden layers of 258 and 256. SchNet's filters depend on lengths "
    "alone: the specification computes them once for an edge and its reverse, and sets "
    "Gaussians near the denormal range to zero, since processors multiply denormal numbers "
    "slowly. DimeNet++ gathers a message to every triplet; AGN, and DimeNet++ as a "
    "specification, do not. If an edge has few triplets (12 among the atoms, 24 on tours, but 7 "
    "on superpixels, 6 on polytopes and 1.7 on molecules), most of DimeNet++ is linear maps of "
    "edges, which are the same on both sides."
)
DIMENET, CUTOFF = 3.0, 5.0
#: EGNN over DGN.
DGN_OVER = {"egnn-pytorch": 4.0, "EGNN as published": None}
#: Their own code over their specifications on the same core.
SPECIFICATIONS = {
    "SchNet": 1.0,
    "DimeNet": 1.0,
    "DimeNet++": 1.5,
    "egnn-pytorch": 1.0,
    "EGNN as published": 1.0,
}

#: Up to how many triplets there are where DimeNets are compared: PyG's take seconds for them.
TRIPLETS = 150_000

#: Signature: (features [N, h], coordinates [N, n]) -> both, moved by a layer.
Layer = Callable[[Tensor, Tensor], tuple[Tensor, Tensor]]


def triplets(edge_index: Tensor, num_nodes: int) -> tuple[Tensor, ...]:
    """All pairs of edges k -> j -> i with k != i, as PyG's function of that name gives them."""
    row, col = edge_index
    order = col.argsort(stable=True)
    count = torch.bincount(col, minlength=num_nodes)
    start = count.cumsum(0) - count
    ji = torch.arange(len(row)).repeat_interleave(count[row])
    first = (count[row].cumsum(0) - count[row])[ji]
    kj = order[start[row[ji]] + torch.arange(len(ji)) - first]
    there = col[ji] != row[kj]
    ji, kj = ji[there], kj[there]
    return col, row, col[ji], row[ji], row[kj], kj, ji


@contextlib.contextmanager
def on_graph(batch: Batch) -> Iterator[int]:
    """Inside, PyG's networks use these edges and their triplets; gives how many triplets."""
    fixed = triplets(batch.edge_index, batch.num_nodes)
    with (
        mock.patch.object(dimenet, "triplets", _always(fixed)),
        mock.patch.object(dimenet, "radius_graph", _always(batch.edge_index)),
        mock.patch.object(schnet, "radius_graph", _always(batch.edge_index)),
    ):
        yield len(fixed[2])


def _always(value: Any) -> Callable[..., Any]:
    return lambda *_, **__: value


def dimenet_plus_plus(layers: int, quick: bool = False) -> nn.Module:
    """PyG's, 64 wide; else with its defaults. Quick: with fewer basis functions, made sooner."""
    return DimeNetPlusPlus(HIDDEN, 1, layers, HIDDEN, 8, HIDDEN, *_bases(quick), **_NOT_ZERO)


def dimenet_of(layers: int, quick: bool = False) -> nn.Module:
    """PyG's, as above."""
    return DimeNet(HIDDEN, 1, layers, 8, *_bases(quick), **_NOT_ZERO)


def _bases(quick: bool) -> tuple[int, int]:
    return (2, 2) if quick else (7, 6)


#: By default their last weights are zeros, and so is all that they give.
_NOT_ZERO: dict[str, Any] = {"cutoff": CUTOFF, "output_initializer": "glorot_orthogonal"}


def schnet_of(layers: int, quick: bool = False) -> nn.Module:
    """PyG's, 64 wide; else with its defaults."""
    return SchNet(HIDDEN, HIDDEN, layers, 50, cutoff=CUTOFF)


def egnn_sparse() -> nn.Module:
    """A layer of egnn-pytorch, 64 wide; else with its defaults."""
    try:
        from egnn_pytorch import EGNN_Sparse
    except ImportError:
        raise MissingError("egnn-pytorch is not installed; pip install egnn-pytorch") from None
    found: nn.Module = EGNN_Sparse(HIDDEN, m_dim=HIDDEN)
    return found


def layers_step(
    modules: nn.ModuleList, layers: list[Layer], h: Tensor, pos: Tensor
) -> Callable[[], None]:
    """A training step of layers that move features and coordinates."""

    def loss() -> Tensor:
        v, x = h, pos
        for layer in layers:
            v, x = layer(v, x)
        return v.square().mean() + x.square().mean()

    return training_step(loss, modules.parameters())


def in_space(batch: Batch) -> Batch:
    """The same edges, with types of atoms, in three dimensions, for which DimeNet++ is written."""
    batch = batch.clone()
    rng = torch.Generator().manual_seed(0)
    if batch.pos.shape[1] != 3:
        batch.pos = torch.randn(batch.num_nodes, 3, generator=rng)
    batch.z = torch.randint(1, 10, (batch.num_nodes,), generator=rng)
    batch.x = torch.randn(batch.num_nodes, HIDDEN, generator=rng)
    batch.edge_attr = None
    return batch


def dgn_layers(batch: Batch, count: int = LAYERS) -> tuple[nn.ModuleList, list[Layer]]:
    """DGN with the neighbour-sum map, as layers."""
    convs = nn.ModuleList(
        DGNConv(
            HIDDEN, HIDDEN, hidden=HIDDEN, aggregation="sum", coordinate_map="neighbour-sum"
        )
        for _ in range(count)
    )  # fmt: skip
    topology = Topology.of(batch, angles=False)
    return convs, [partial(_call_conv, conv, batch.edge_index, topology) for conv in convs]


def _call_conv(
    conv: nn.Module, edge_index: Tensor, topology: Topology, v: Tensor, x: Tensor
) -> tuple[Tensor, Tensor]:
    return conv(v, x, edge_index, topology=topology)


def _call_sparse(
    layer: nn.Module, edge_index: Tensor, v: Tensor, x: Tensor
) -> tuple[Tensor, Tensor]:
    out = layer(torch.cat([x, v], 1), edge_index)
    return out[:, x.shape[1] :], out[:, : x.shape[1]]


def _call_published(
    layer: nn.Module, edge_index: Tensor, v: Tensor, x: Tensor
) -> tuple[Tensor, Tensor]:
    return layer(v, x, edge_index)


class PeerLayer(NamedTuple):
    """A layer of EGNN in other people's code: what makes it, and what calls it."""

    make: Callable[[], nn.Module]
    call: Callable[[nn.Module, Tensor, Tensor, Tensor], tuple[Tensor, Tensor]]


PEER_LAYERS = {
    "egnn-pytorch": PeerLayer(egnn_sparse, _call_sparse),
    "EGNN as published": PeerLayer(partial(E_GCL, HIDDEN), _call_published),
}
PEER_NETWORKS = {"SchNet": schnet_of, "DimeNet": dimenet_of, "DimeNet++": dimenet_plus_plus}


def against_egnn(shape: Shape, quick: bool, name: str, rounds: Rounds) -> Iterator[SpeedClaim]:
    """DGN with the neighbour-sum map against EGNN, layer by layer."""
    torch.manual_seed(0)
    batch = in_space(shape.batch(quick))
    convs, ours = dgn_layers(batch)
    peer = PEER_LAYERS[name]
    modules = nn.ModuleList(peer.make() for _ in range(LAYERS))
    theirs: list[Layer] = [partial(peer.call, layer, batch.edge_index) for layer in modules]
    times = rounds.alternate(
        {
            name: layers_step(modules, theirs, batch.x, batch.pos),
            "DGN": layers_step(convs, ours, batch.x, batch.pos),
        }
    )
    ratio, seconds = paired(times[name], times["DGN"]), medians(times, name, "DGN")
    yield SpeedClaim(
        shape.name, f"{name} over DGN", ratio, DGN_OVER[name], "least", seconds=seconds
    )


def against_pyg(shape: Shape, quick: bool, rounds: Rounds) -> Iterator[SpeedClaim]:
    """AGN against DimeNet++ and SchNet."""
    batch = in_space(shape.batch(quick))
    ours = network("agn", batch, outputs=1)
    topology = ours.topology(batch)
    torch.manual_seed(0)
    peers = {"DimeNet++": dimenet_plus_plus(LAYERS, quick), "SchNet": schnet_of(LAYERS)}
    with on_graph(batch) as count:
        runs = {name: peer_step(peer, batch) for name, peer in peers.items()}
        features = batch.clone()
        features.z = None  # AGN reads x instead
        times = rounds.alternate({**runs, "AGN": model_step(ours, features)})
    note = f"{topology.num_angles:,} angles, {count:,} triplets"
    ratio, seconds = paired(times["DimeNet++"], times["AGN"]), medians(times, "DimeNet++", "AGN")
    yield SpeedClaim(shape.name, "DimeNet++ over AGN", ratio, DIMENET, "least", seconds, note)
    explained = topology.num_edges / (topology.num_edges + topology.num_angles)
    ratio, seconds = paired(times["AGN"], times["SchNet"]), medians(times, "AGN", "SchNet")
    yield SpeedClaim(shape.name, "AGN over SchNet", ratio, seconds=seconds)
    each = paired(times["AGN"], times["SchNet"], explained)
    what = "AGN for each edge and angle over SchNet for each edge"
    yield SpeedClaim(shape.name, what, each, 1.0)


def peer_step(peer: nn.Module, batch: Batch) -> Callable[[], None]:
    """A training step of one of PyG's networks."""
    return training_step(
        lambda: peer(batch.z, batch.pos, batch.batch).square().mean(), peer.parameters()
    )


def specification(shape: Shape, quick: bool, name: str, rounds: Rounds) -> Iterator[SpeedClaim]:
    """A peer as a specification, with the same weights, against its own code."""
    torch.manual_seed(0)
    batch = in_space(few_triplets(shape, quick) if "DimeNet" in name else shape.batch(quick))
    with on_graph(batch):
        twice = network_twice if name in PEER_NETWORKS else layer_twice
        times = rounds.alternate(twice(name, batch, quick))
    ratio, seconds = paired(times["theirs"], times["ours"]), medians(times, "theirs", "ours")
    bound = SPECIFICATIONS[name]
    yield SpeedClaim(shape.name, f"{name} over its specification", ratio, bound, "least", seconds)


def few_triplets(shape: Shape, quick: bool) -> Batch:
    """As many of the graphs, from the first one on, as have few triplets."""
    graphs, total = shape.make(quick), 0
    for number, data in enumerate(graphs):
        total += len(triplets(data.edge_index, data.num_nodes)[2])
        if total > TRIPLETS:
            return Batch.from_data_list(graphs[: max(number, 1)])
    return Batch.from_data_list(graphs)


def network_twice(name: str, batch: Batch, quick: bool) -> dict[str, Callable[[], None]]:
    """Steps of one of PyG's networks and of its specification."""
    peer = PEER_NETWORKS[name](3, quick)
    ours = from_peer(peer)
    assert isinstance(ours, Model)
    atoms = batch.clone()
    atoms.x = None
    return {"theirs": peer_step(peer, batch), "ours": model_step(ours, atoms)}


def layer_twice(name: str, batch: Batch, quick: bool) -> dict[str, Callable[[], None]]:
    """Steps of a layer of EGNN and of its specification."""
    make, call = PEER_LAYERS[name]
    peer = make()
    ours, topology = from_peer(peer), Topology.of(batch, angles=False)
    layers: dict[str, tuple[nn.Module, Layer]] = {
        "theirs": (peer, partial(call, peer, batch.edge_index)),
        "ours": (ours, partial(_call_conv, ours, batch.edge_index, topology)),
    }
    return {
        name: layers_step(nn.ModuleList([module]), [layer], batch.x, batch.pos)
        for name, (module, layer) in layers.items()
    }


def parts(quick: bool) -> list[SuitePart]:
    """DGN and AGN on each shape, then the specifications."""
    found = []
    for shape in SHAPES:
        found += [
            SuitePart(shape.name, partial(against_egnn, shape, quick, name)) for name in DGN_OVER
        ]
        found.append(SuitePart(shape.name, partial(against_pyg, shape, quick)))
    return found + [
        SuitePart(shape.name, partial(specification, shape, quick, name))
        for shape in (CLOUDS, *SHAPES)
        for name in SPECIFICATIONS
    ]


SUITE = Suite("peers", FINDING, parts, kept=False)
