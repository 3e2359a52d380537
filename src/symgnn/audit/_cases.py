"""A graph before and after a transformation, and the transformation of its inputs and outputs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from symgnn.audit._elements import LOCAL, UNIFORM, article, draw, linear_part
from symgnn.audit._inputs import MovingInput
from symgnn.audit._representations import Undefined
from symgnn.audit._structures import joined
from symgnn.audit._tensor_graph import OF_GRAPHS
from symgnn.geometry import NoSuchTransformation, Permutation, Transformation
from symgnn.geometry.base import AFFINE_KINDS

if TYPE_CHECKING:
    from symgnn.audit._structures import Graph


@dataclass(frozen=True)
class Case:
    """Graphs before and after a transformation each, all of one kind.

    Graphs that have no transformation of the kind stay as they are. A permutation reorders the
    edges too.
    """

    kind: str
    graphs: tuple[Graph, ...]
    elements: tuple[Transformation | None, ...]
    edges: tuple[Tensor | None, ...]  # the order of the edges after, `[E]`
    named: tuple[MovingInput, ...]
    batched: bool
    size: float = 1.0
    origin: tuple[int, int, int] = (0, 0, 0)  # the sample, the shape of it, and the seed

    @cached_property
    def before(self) -> Graph:
        """The input of the model before the transformation."""
        return joined(self.graphs, self.batched)

    @cached_property
    def after(self) -> Graph:
        """The input of the model after the transformation."""
        moved = zip(self.graphs, self.elements, self.edges, strict=True)
        return joined([self._moved(*one) for one in moved], self.batched)

    def _moved(self, graph: Graph, element: Transformation | None, order: Tensor | None) -> Graph:
        if element is None:
            return graph
        if "edge_shift" in graph and element.name not in (*AFFINE_KINDS, "permutation"):
            raise Undefined("it does not map a periodic cell to a periodic cell")
        out = element.apply(graph)
        for key in OF_GRAPHS:
            if key in graph:
                out[key] = graph[key]  # not of nodes, even if there are as many
        for name in self.named:
            if not isinstance(element, Permutation):
                name.follow(out, graph, None if name.source else self._turn(name, graph, element))
        if order is not None:
            for key in graph.to_dict():
                if key == "edge_index":
                    out.edge_index = out.edge_index[:, order]
                elif isinstance(out[key], Tensor) and graph.is_edge_attr(key):
                    out[key] = out[key][order]
        return out

    def _turn(self, name: MovingInput, graph: Graph, element: Transformation) -> Tensor:
        """The matrices that turn the rows of a named vector."""
        place, value = name.place(graph), graph[name.key]
        rows = 1 if value.dim() == 1 else len(value)
        if place != "node" and self.kind not in (*UNIFORM, "torsion" if place == "edge" else ""):
            raise Undefined(f"it does not define how {name}, which belongs to no node, transforms")
        linear = linear_part(element, graph.pos)
        if place == "edge":
            return linear[graph.edge_index[1]]
        return linear if place == "node" else linear[:1].expand(rows, -1, -1)

    # ---- outputs

    @cached_property
    def nodes(self) -> Tensor:
        """Node `nodes[i]` before is node i after `[N]`."""
        orders, start = [], 0
        for graph, element in zip(self.graphs, self.elements, strict=True):
            own = torch.arange(graph.num_nodes)
            own = element.order if isinstance(element, Permutation) else own
            orders.append(own + start)
            start += graph.num_nodes
        return torch.cat(orders)

    @cached_property
    def edge_order(self) -> Tensor:
        """Edge `edge_order[k]` before is edge k after `[E]`."""
        orders, start = [], 0
        for graph, own in zip(self.graphs, self.edges, strict=True):
            orders.append((torch.arange(graph.num_edges) if own is None else own) + start)
            start += graph.num_edges
        return torch.cat(orders)

    def linear(self, place: str) -> Tensor:
        """The matrix for each row of an output, `[R, n, n]`, before rows are reordered."""
        if place != "node" and self.kind not in (*UNIFORM, "torsion" if place == "edge" else ""):
            raise Undefined(
                f"it does not define how a vector of {'an' if place == 'edge' else 'a'} {place} "
                "transforms"
            )
        found = []
        for graph, element in zip(self.graphs, self.elements, strict=True):
            n = graph.pos.size(1)
            own = torch.eye(n, dtype=torch.float64).expand(graph.num_nodes, n, n)
            own = own if element is None else linear_part(element, graph.pos)
            if place == "edge":
                own = own[graph.edge_index[1]] if graph.num_edges else own[:0]
            found.append(own[:1] if place == "graph" else own)
        return torch.cat(found)

    def points(self, place: str, value: Tensor) -> Tensor:
        """Where points `[R, n]` of nodes, edges or graphs go, before rows are reordered."""
        if self.kind == "permutation":
            return value
        if self.kind in LOCAL and (self.kind, place) != ("part-motion", "node"):
            raise Undefined(f"{article(self.kind)} is defined for the nodes, not for other points")
        count = {"node": "num_nodes", "edge": "num_edges"}.get(place)
        sizes = [getattr(graph, count) if count else 1 for graph in self.graphs]
        parts = zip(self.elements, value.split(sizes), strict=True)
        return torch.cat([g(x) if g is not None else x for g, x in parts])


def make_case(
    kind: str,
    graphs: Sequence[Graph],
    named: Sequence[MovingInput],
    batched: bool,
    origin: tuple[int, int, int],
    size: float = 1.0,
    axis: Sequence[float] | None = None,
) -> Case:
    """Random elements for some graphs; the seed, the last of `origin`, says which.

    `axis` is what kinds about an axis are about; the last coordinate where it is None.
    """
    generator = torch.Generator().manual_seed(origin[2])
    elements: list[Transformation | None] = []
    reason: ValueError | None = None
    for graph in graphs:
        try:
            elements.append(draw(kind, graph, generator, size, axis))
        except (NoSuchTransformation, Undefined) as error:
            elements.append(None)
            reason = error
    if reason is not None and not any(elements):
        raise Undefined(str(reason).removeprefix(f"{kind}: ").partition(";")[0])
    edges: list[Tensor | None] = [None] * len(graphs)
    if kind == "permutation":
        edges = [torch.randperm(graph.num_edges, generator=generator) for graph in graphs]
    return Case(
        kind, tuple(graphs), tuple(elements), tuple(edges), tuple(named), batched, size, origin
    )
