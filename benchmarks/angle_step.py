"""A training step of AGN on the polytopes of four dimensions, against its matrix products.

    python benchmarks/angle_step.py

The step (forward, backward, Adam) is that of the paper's network, two layers with embeddings of 32
and MLPs with 64 hidden units, on 24,876 angles. The products that cannot be avoided are counted
below: those of the maps that are left when each source is multiplied where it lives and the last
map is applied behind the reduction, forward and both backward ones. The swish is measured beside
them: it is no matrix product, but it has to be computed on the same rows. All three alternate.

Found on two cores (torch 2.13), with one thread and with two: the step takes 2.9 and 3.7 times its
products, 1.8 and 2.6 times products and swish. The aim was 1.5 times the products; with these
widths the swish alone is 0.6 of the products (it costs 2.2 ns for each of the 64 hidden numbers of
an angle, a map from 64 to 32 numbers 2.9 ns, both with their backward passes), so eager PyTorch
cannot reach it. What is left: moving rows, one pass over memory per operation, and some hundred
small operations on nodes. Without `keep_memory` the step takes 4.0 times its products: the rest is
the system handing out fresh pages.
"""

import statistics
import time

import torch
from seeds import ordinary
from torch_geometric.data import Batch

import symgnn
from symgnn.experiments.polytopes import Row, network
from symgnn.train import keep_memory

REPEATS = 25
EMBEDDING, HIDDEN = 32, 64


def shapes(topology) -> tuple[list[tuple[int, int, int]], list[int]]:
    """The products as (rows, in, out), and on how many rows the swish acts."""
    angles, edges, nodes = topology.num_angles, topology.num_edges, topology.num_nodes
    narrow, wide = (EMBEDDING, HIDDEN), (HIDDEN, EMBEDDING)
    products = [
        # layer 1: nodes are the constant 1, so first maps of angles and edges are no products
        (angles, *wide),  # the angle embeddings, which layer 2 reads
        (edges, *wide),
        (nodes, 2 * EMBEDDING, HIDDEN),  # reduced edges and angles
        (nodes, *wide),
        # layer 2
        (angles, *narrow),  # the angle embeddings of layer 1
        (nodes, EMBEDDING, 3 * HIDDEN),  # vertex, first and second neighbour
        (edges, *narrow),
        (nodes, EMBEDDING, 2 * HIDDEN),  # source and target
        (nodes, *wide),  # behind the reduction of angles
        (nodes, *wide),  # and of edges
        (nodes, 3 * EMBEDDING, HIDDEN),
        (nodes, *wide),
        # read-out
        (nodes, *narrow),
    ]
    return products, [angles, angles, edges, edges, nodes, nodes, nodes]


def products_only(products):
    rows = [(torch.randn(r, i), torch.randn(o, i), torch.randn(r, o)) for r, i, o in products]

    def run() -> None:
        for value, weight, grad in rows:
            value @ weight.T
            grad @ weight
            grad.T @ value

    return run


def swish_only(rows):
    hidden = [torch.randn(r, HIDDEN) for r in rows]

    def run() -> None:
        for h in hidden:
            torch.nn.functional.silu(h)
            torch.ops.aten.silu_backward(h, h)

    return run


def main() -> None:
    keep_memory()
    batch = Batch.from_data_list(symgnn.data.polytopes(4))
    row = Row("AGN", "mean")
    topology = network(row, 4, batch.num_graphs).topology(batch)
    products, swishes = shapes(topology)
    runs = {
        "step": ordinary(batch, row, 4),
        "products": products_only(products),
        "swish": swish_only(swishes),
    }
    times = {kind: [] for kind in runs}
    for _ in range(REPEATS):
        for kind, run in runs.items():
            began = time.perf_counter()
            run()
            times[kind].append(time.perf_counter() - began)
    step, matrix, swish = (statistics.median(t[3:]) for t in times.values())
    print(
        f"threads: {torch.get_num_threads()}; {topology.num_angles} angles: a step takes "
        f"{step / matrix:.2f} times its matrix products, {step / (matrix + swish):.2f} times "
        f"products and swish (swish: {swish / matrix:.2f} of the products)"
    )


if __name__ == "__main__":
    main()
