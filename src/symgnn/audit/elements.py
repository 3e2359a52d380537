"""Random elements of each kind and any size, and what they do to a graph and to outputs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import torch
from scipy.linalg import expm, logm
from torch import Generator, Tensor
from torch_geometric.data import Data

from symgnn.audit.graphs import Named, joined
from symgnn.geometry import (
    TRANSFORMATIONS,
    Affine,
    Dilation,
    Flex,
    NoSuchTransformation,
    Permutation,
    Rotation,
    SpecialConformal,
    Torsion,
    Transformation,
    Translation,
)

#: Kinds that come in any size, down to the identity.
SIZED = (
    "permutation",
    "translation",
    "rotation",
    "dilation",
    "special-conformal",
    "affine",
    "torsion",
    "flex",
)
#: Kinds that act on the nodes, not on space.
OF_NODES = ("permutation", "torsion", "flex")
#: Kinds whose linear part is the same everywhere.
UNIFORM = ("permutation", "translation", "rotation", "reflection", "dilation", "affine")


class Undefined(ValueError):  # noqa: N818
    """A transformation is not defined for a graph, an input or an output."""


def draw(kind: str, data: Data, generator: Generator, size: float = 1.0) -> Transformation:
    """A random element; `size` 1 is that of :mod:`symgnn.geometry`, 0 is the identity."""
    n = data.pos.size(1)
    if kind == "rotation" and n == 1:
        raise Undefined("there are no rotations in one dimension")
    if kind in ("torsion", "flex") and data.edge_index is None:
        raise Undefined("the data has no edge_index, which says what can move")
    if kind == "flex":
        if data.num_nodes > 300:
            raise Undefined("the graph has more than 300 nodes, too many to look for flexes")
        return Flex.random(data.pos, data.edge_index, generator=generator, size=0.3 * size)
    if kind == "affine":
        return Affine.random(data.pos, generator=generator, mu=size)
    element = TRANSFORMATIONS[kind].random(data.pos, data.edge_index, generator=generator)
    return element if size == 1 else resized(element, size)


def resized(element: Transformation, size: float) -> Transformation:
    """The same element, but of another size; as it is where it has none."""
    if isinstance(element, Translation):
        return Translation(size * element.offset)
    if isinstance(element, Rotation):
        return Rotation(_power(element.matrix, size))
    if isinstance(element, Dilation):
        return Dilation(element.factor**size)
    if isinstance(element, SpecialConformal):
        return SpecialConformal(size * element.vector, element.centre)
    if isinstance(element, Torsion) and len(element.matrix) > 2:
        return replace(element, matrix=_power(element.matrix, size))
    if isinstance(element, Permutation):
        count = max(2, round(size * len(element.order)))
        chosen = element.order[:count]
        order = torch.arange(len(element.order))
        order[chosen.sort().values] = chosen if count > 2 else chosen.sort().values.flip(0)
        return Permutation(order)
    return element


def _power(matrix: Tensor, size: float) -> Tensor:
    """A rotation by a share of its angles."""
    generator = np.real(logm(matrix.numpy()))
    return torch.from_numpy(expm(size * (generator - generator.T) / 2))


def linear_part(element: Transformation, pos: Tensor) -> Tensor:
    """The derivative of the map at each point, `[N, n] -> [N, n, n]`."""
    n = pos.size(1)
    same = torch.eye(n, dtype=torch.float64).expand(len(pos), n, n)
    if isinstance(element, Permutation | Translation):
        return same
    if isinstance(element, Torsion):
        return torch.where(element.moved[:, None, None], element.matrix, same)
    if isinstance(element, Flex):
        raise Undefined("a flex does not say how vectors turn")
    at = torch.func.jacrev(lambda point: element(point.unsqueeze(0))[0])
    return torch.func.vmap(at)(pos.double())


@dataclass(frozen=True)
class Case:
    """Graphs before and after a transformation each, all of one kind.

    Graphs that have no transformation of the kind stay as they are. A permutation reorders the
    edges too.
    """

    kind: str
    graphs: tuple[Data, ...]
    elements: tuple[Transformation | None, ...]
    edges: tuple[Tensor | None, ...]  # the order of the edges after, `[E]`
    named: tuple[Named, ...]
    batched: bool
    size: float = 1.0
    origin: tuple[int, int] = (0, 0)  # which of the shapes, and the seed

    @cached_property
    def before(self) -> Data:
        """What the model is given before."""
        return joined(self.graphs, self.batched)

    @cached_property
    def after(self) -> Data:
        """What the model is given after."""
        moved = zip(self.graphs, self.elements, self.edges, strict=True)
        return joined([self._moved(*one) for one in moved], self.batched)

    def _moved(self, graph: Data, element: Transformation | None, order: Tensor | None) -> Data:
        if element is None:
            return graph
        out = element.apply(graph)
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

    def _turn(self, name: Named, graph: Data, element: Transformation) -> Tensor:
        """The matrices that turn the rows of a named vector."""
        place, rows = name.place(graph), len(graph[name.key])
        if place != "node" and self.kind not in (*UNIFORM, "torsion" if place == "edge" else ""):
            raise Undefined(f"it does not say how {name}, which belongs to no node, turns")
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
                f"it does not say how a vector of {'an' if place == 'edge' else 'a'} {place} turns"
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
        if self.kind in ("torsion", "flex"):
            raise Undefined(f"a {self.kind} moves the nodes, not space, so not other points")
        count = {"node": "num_nodes", "edge": "num_edges"}.get(place)
        sizes = [getattr(graph, count) if count else 1 for graph in self.graphs]
        parts = zip(self.elements, value.split(sizes), strict=True)
        return torch.cat([g(x) if g is not None else x for g, x in parts])


def make_case(
    kind: str,
    graphs: Sequence[Data],
    named: Sequence[Named],
    batched: bool,
    origin: tuple[int, int],
    size: float = 1.0,
) -> Case:
    """Random elements for some graphs; the seed, the second of `origin`, says which."""
    generator = torch.Generator().manual_seed(origin[1])
    elements: list[Transformation | None] = []
    reason: ValueError | None = None
    for graph in graphs:
        try:
            elements.append(draw(kind, graph, generator, size))
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


def describe(element: Transformation) -> str:
    """An element in a few words."""
    if isinstance(element, Translation):
        return f"a shift by {_vector(element.offset)}"
    if isinstance(element, Rotation):
        cosine = (float(element.matrix.trace()) - len(element.matrix) + 2) / 2
        if len(element.matrix) > 3:
            return f"a rotation in {len(element.matrix)} dimensions"
        return f"a rotation by {np.degrees(np.arccos(np.clip(cosine, -1, 1))):.1f} degrees"
    if isinstance(element, Dilation):
        return f"a scaling by {element.factor:.4g}"
    if isinstance(element, Permutation):
        moved = (element.order != torch.arange(len(element.order))).nonzero().flatten().tolist()
        if len(moved) == 2:
            return f"a swap of nodes {moved[0]} and {moved[1]}"
        return f"a reordering of {len(moved)} nodes"
    if isinstance(element, Torsion):
        return f"a torsion about the edge {element.bridge[0]}-{element.bridge[1]}"
    words = {"special-conformal": "a special conformal map", "affine": "an affine map"}
    words |= {"inversion": "an inversion", "flex": "a flex"}
    if element.name == "reflection":
        return f"a mirror with normal {_vector(element.normal)}"  # type: ignore[attr-defined]
    return words.get(element.name, f"a {element.name}")


def _vector(values: Tensor) -> str:
    return "(" + ", ".join(f"{value:.3g}" for value in values.tolist()) + ")"
