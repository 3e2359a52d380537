"""An angle update in tiles that stay in the cache, against all angles at once.

    python benchmarks/tiles.py

A training step (forward, backward, Adam) of AGN, two layers with 64 numbers everywhere, on batches
like superpixels (70 nodes, 8 nearest neighbours) of growing size. Both ways alternate; medians are
compared.

Found on two cores (torch 2.13), with one thread and with two: on 47 k angles 0.9 and 0.8, on 189 k
1.5 and 1.3, on 754 k 1.35 and 1.2 times as fast; on the last, a step takes 0.7 GB instead of 1.3.
So tiles are used from about 130 k angles of 64 hidden numbers on (`symgnn.nn.tiles.WORTH_TILES`).
"""

import statistics
import time

import torch
from torch_geometric.data import Batch, Data

import symgnn
from symgnn.nn import tiles
from symgnn.topology import KNNGraph
from symgnn.train import keep_memory

REPEATS = 7


def superpixels(count: int) -> Batch:
    rng = torch.Generator().manual_seed(0)
    graphs = [Data(pos=torch.rand(70, 2, generator=rng)) for _ in range(count)]
    return Batch.from_data_list([KNNGraph(k=8)(graph) for graph in graphs])


def step(batch: Batch):
    torch.manual_seed(0)
    model = symgnn.nn.build("agn", hidden=64, mlp_hidden=64, layers=2, outputs=10)
    batch = batch.clone()
    batch.topology = model.topology(batch)
    optimiser = torch.optim.Adam(model.parameters(), 1e-3, fused=True)

    def one() -> None:
        optimiser.zero_grad()
        model(batch).square().sum().backward()
        optimiser.step()

    return one, batch.topology.num_angles


def main() -> None:
    keep_memory()
    print(f"threads: {torch.get_num_threads()}")
    for count in (8, 32, 128):
        run, angles = step(superpixels(count))
        times: dict[int, list[float]] = {2**60: [], 0: []}
        for _ in range(REPEATS):
            for worth, found in times.items():
                tiles.WORTH_TILES = worth
                began = time.perf_counter()
                run()
                found.append(time.perf_counter() - began)
        whole, cut = (statistics.median(found[2:]) for found in times.values())
        print(f"{angles} angles: in tiles {whole / cut:.2f} times as fast")


if __name__ == "__main__":
    main()
