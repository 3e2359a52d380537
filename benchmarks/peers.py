"""The peers' networks as specifications, against their own code.

    python benchmarks/peers.py

For each, the same network with the same weights on the same graphs: 64 clouds of 18 atoms at
molecular density, with all edges up to 5 units. A step is forward and backward to all weights;
both sides alternate, medians are compared. PyG's DimeNet gets its triplets from pure torch, and
neither side's graph building is in the time: edges and triplets are given to PyG's, the topology
to ours.

Found on two cores (torch 2.13), with one thread and with two: SchNet 1.39 and 1.24, DimeNet++ 1.9
and 2.0, the layer of egnn-pytorch 1.4 and 1.2 times as fast as their own code. SchNet's filters
depend on lengths alone, and are computed once for an edge and its reverse; DimeNet++
gains by summing over angles as one matrix product per vertex, some vertices at a time, so that no
message is lifted to the angles and what is summed stays in the cache.
"""

import statistics
import time

import torch
from torch_geometric.data import Batch, Data
from torch_geometric.nn.models import DimeNetPlusPlus, SchNet, dimenet, schnet

from symgnn.nn import from_peer
from symgnn.topology import radius_graph
from symgnn.train import keep_memory

REPEATS = 9


def molecules(count: int = 64, atoms: int = 18, cutoff: float = 5.0) -> Batch:
    rng = torch.Generator().manual_seed(0)
    graphs = []
    for _ in range(count):
        pos = 6.0 * torch.rand(atoms, 3, generator=rng)
        z = torch.randint(1, 10, (atoms,), generator=rng)
        graphs.append(Data(pos=pos, z=z, edge_index=radius_graph(pos, cutoff)))
    return Batch.from_data_list(graphs)


def triplets(edge_index, num_nodes):
    """All pairs of edges k -> j -> i with k != i, in pure torch."""
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


def step(model, run):
    def one() -> None:
        model.zero_grad()
        run().square().sum().backward()

    return one


def ratio(theirs, ours) -> float:
    times = {"theirs": [], "ours": []}
    for _ in range(REPEATS):
        for name, run in (("theirs", theirs), ("ours", ours)):
            began = time.perf_counter()
            run()
            times[name].append(time.perf_counter() - began)
    return statistics.median(times["theirs"][2:]) / statistics.median(times["ours"][2:])


def main() -> None:
    keep_memory()
    batch = molecules()
    fixed = triplets(batch.edge_index, batch.num_nodes)
    dimenet.triplets = lambda *_, **__: fixed
    for module in (dimenet, schnet):
        module.radius_graph = lambda *_, **__: batch.edge_index
    print(f"threads: {torch.get_num_threads()}; {batch.num_edges} edges, {len(fixed[2])} triplets")
    for peer in (
        SchNet(64, 64, 3, 50, cutoff=5.0),
        DimeNetPlusPlus(
            64, 1, 3, 64, 8, 64, 7, 6, cutoff=5.0, output_initializer="glorot_orthogonal"
        ),
    ):
        ours = from_peer(peer)
        given = batch.clone()
        given.topology = ours.topology(given)
        there = step(peer, lambda: peer(batch.z, batch.pos, batch.batch))  # noqa: B023
        here = step(ours, lambda: ours(given))  # noqa: B023
        print(f"{type(peer).__name__}: ours is {ratio(there, here):.2f} times as fast")
    try:
        from egnn_pytorch import EGNN_Sparse
    except ImportError:
        print("egnn-pytorch is not installed")
        return
    peer = EGNN_Sparse(64, m_dim=64)
    ours = from_peer(peer)
    x = torch.randn(batch.num_nodes, 64)
    both = torch.cat([batch.pos, x], 1)
    topology = given.topology
    there = step(peer, lambda: peer(both, batch.edge_index, batch=batch.batch))
    here = step(
        ours,
        lambda: torch.cat(ours(x, batch.pos, batch.edge_index, topology=topology), 1),
    )
    print(f"EGNN_Sparse: ours is {ratio(there, here):.2f} times as fast")


if __name__ == "__main__":
    main()
