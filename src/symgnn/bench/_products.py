"""The matrix products that an angle update cannot avoid: how many there are, and their time.

They are those that are left when the map of each source is applied where the source lives and the
last map behind the reduction. A product of `rows x in` by `in x out` stands for three: its own, and
those that the backward pass makes for the gradients of both factors. The angle theta is a single
number: its map is no matrix product, and is not counted.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch

from symgnn.graphs import Topology


class Product(NamedTuple):
    """`[rows, inputs]` times `[inputs, outputs]`."""

    rows: int
    inputs: int
    outputs: int

    @property
    def operations(self) -> int:
        """Multiplications and additions, with those of the backward pass."""
        return 6 * self.rows * self.inputs * self.outputs


def of_update(topology: Topology, hidden: int) -> tuple[list[Product], list[int]]:
    """An angle update between others: the products, and on how many rows the swish acts.

    It reads embeddings of nodes and angles; only its sum over the angles of a node is read.
    """
    angles, nodes = topology.num_angles, topology.num_nodes
    products = [
        Product(angles, hidden, hidden),  # the old embeddings of the angles
        Product(nodes, hidden, 3 * hidden),  # vertex, first and second neighbour
        Product(nodes, hidden, hidden),  # the last map, behind the reduction
    ]
    return products, [angles]


def of_network(topology: Topology, embedding: int, hidden: int) -> tuple[list[Product], list[int]]:
    """The paper's AGN for polytopes, of two layers: as :func:`of_update`."""
    angles, edges, nodes = topology.num_angles, topology.num_edges, topology.num_nodes
    narrow, wide = (embedding, hidden), (hidden, embedding)
    products = [
        # layer 1: nodes are the constant 1, so first maps of angles and edges are no products
        Product(angles, *wide),  # the angle embeddings, which layer 2 reads
        Product(edges, *wide),
        Product(nodes, 2 * embedding, hidden),  # reduced edges and angles
        Product(nodes, *wide),
        # layer 2
        Product(angles, *narrow),  # the angle embeddings of layer 1
        Product(nodes, embedding, 3 * hidden),  # vertex, first and second neighbour
        Product(edges, *narrow),
        Product(nodes, embedding, 2 * hidden),  # source and target
        Product(nodes, *wide),  # behind the reduction of angles
        Product(nodes, *wide),  # and of edges
        Product(nodes, 3 * embedding, hidden),
        Product(nodes, *wide),
        Product(nodes, *narrow),  # read-out
    ]
    return products, [angles, angles, edges, edges, nodes, nodes, nodes]


def products_only(products: Sequence[Product]) -> Callable[[], None]:
    """Computes the products, each with those of its backward pass, into memory that is there."""
    given = []
    for rows, inputs, outputs in products:
        value, weight = torch.randn(rows, inputs), torch.randn(outputs, inputs)
        result, grad = torch.empty(rows, outputs), torch.randn(rows, outputs)
        given.append((value, weight, result, grad, torch.empty_like(value)))

    def run() -> None:
        for value, weight, result, grad, of_value in given:
            torch.mm(value, weight.T, out=result)
            torch.mm(grad, weight, out=of_value)
            torch.mm(grad.T, value)

    return run


def swish_only(rows: Sequence[int], hidden: int) -> Callable[[], None]:
    """Computes the swish of so many rows, forward and backward, into memory that is there."""
    given = [(torch.randn(count, hidden), torch.empty(count, hidden)) for count in rows]

    def run() -> None:
        for value, result in given:
            torch.ops.aten.silu.out(value, out=result)
            torch.ops.aten.silu_backward.grad_input(value, value, grad_input=result)

    return run
