"""Values whose last linear map is deferred: applied after an aggregation, or merged with the next
update.

Aggregations go step by step, angle -> ray -> node -> graph and edge -> node -> graph, each step
once. Only sums and maxima are kept in between; a mean is a sum divided by its count at the end. The
aggregation of an empty set is 0 for sum, mean and max.
"""

from __future__ import annotations

from functools import partial

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from symgnn.geometry.measures import at_least_float32
from symgnn.graphs import Topology
from symgnn.nn._engine.rows import angle_rays, kept, plus_linear, total
from symgnn.nn._engine.torch_private import left_to_torch, transforms
from symgnn.nn.form import linear
from symgnn.nn.state import Values

EMPTY = {"sum": 0.0, "max": -torch.inf}


def lift(rows: Tensor, index: Tensor) -> Tensor:
    """Rows to where `index` reads them, `[R, h], [L] -> [L, h]`.

    Where torch.func or the compiler are at work, as an embedding: under vmap, that stays one
    operation instead of a slow gather. An embedding of nothing has no second derivative, and its
    derivative takes several times as long on a processor.
    """
    compiling = torch.compiler.is_compiling()
    plain = not compiling and (index.shape[0] == 0 or (rows.is_cpu and not transforms()))
    if not rows.is_floating_point() or plain:
        return rows.index_select(0, index)
    return F.embedding(index, rows)


def placed(rows: Tensor, index: Tensor, size: int) -> Tensor:
    """Rows at different places of more rows, which are 0 elsewhere, `[R, h], [R] -> [size, h]`."""
    out = rows.new_zeros(size, rows.shape[1])
    return (out.index_copy if left_to_torch()[0] else out.index_copy_)(0, index, rows)


def largest(rows: Tensor, index: Tensor, size: int) -> Tensor:
    """The maximum of the rows of equal index, `[R, h] -> [size, h]`; -inf of nothing."""
    rows = at_least_float32(rows)
    out = rows.new_full((size, rows.shape[-1]), EMPTY["max"])
    return out.scatter_reduce(0, index.unsqueeze(-1).expand_as(rows), rows, "amax")


class LazyValues(Values):
    """A value `[rows, w]` with `rows = last(hidden)`, where `last` is applied when it has to be.

    With `before`, `rows = last(hidden) + before.rows`: a sum of terms with a last map each, which
    sums, means and linear maps take one by one.

    Args:
        hidden: `[rows, h]`; the value itself without `last`.
        last: The last linear map.
        rows_read: Whether the rows are read other than by sums and means. If not, sums are taken
            of `hidden`, and the last map is applied to the few rows that are left.
        folds: Whether linear maps of the rows are multiplied by the last map and applied to
            `hidden`; then the rows are only made if they are asked for.
        before: The value that is added.
        ray_total: Of angles: the sum of `hidden` over the angles of each first ray `[R, h]`, where
            it is known. Then `hidden` may be None if only sums are read.
    """

    def __init__(
        self,
        topology: Topology,
        domain: str,
        hidden: Tensor | None,
        last: nn.Linear | None = None,
        rows_read: bool = True,
        folds: bool = False,
        ray_total: Tensor | None = None,
        rows: Tensor | None = None,
        ungated: Tensor | None = None,
        before: Values | None = None,
    ) -> None:
        self.topology, self.domain, self.ungated = topology, domain, ungated
        self.hidden, self.last, self.folds, self.before = hidden, last, folds, before
        #: Whether the last map is applied after a sum or mean.
        self.defers = last is not None and (folds or not rows_read)
        self._made = hidden if rows is None and last is None else rows
        self._totals: dict[tuple[str, str], Tensor] = {}
        if ray_total is not None:
            self._totals["ray", "sum"] = ray_total

    @property
    def rows(self) -> Tensor:
        """The value itself `[rows, w]`."""
        if self._made is None:
            assert self.last is not None
            assert self.hidden is not None
            rows = self.last(self.hidden)
            self._made = rows if self.before is None else rows + self.before.rows
        return self._made

    def plus(self, before: Values) -> LazyValues:
        """The value with an old one added."""
        assert self.last is not None
        rows = None if self._made is None else self._made + before.rows
        found = LazyValues(
            self.topology, self.domain, self.hidden, self.last, not self.defers, self.folds,
            rows=rows, before=before,
        )  # fmt: skip
        if self.defers:
            found._totals = self._totals
        return found

    def folded(self, map: Tensor, bias: Tensor) -> tuple[Tensor, Tensor]:
        """A map of the value as one of `read`, and the bias with what it adds to all rows."""
        if not self.folds:
            return map, bias
        assert self.last is not None
        if self.last.bias is not None:
            bias = torch.addmv(bias, map, self.last.bias)
        return map @ self.last.weight, bias

    def products(self, map: Tensor, bias: Tensor) -> tuple[list[tuple[Tensor, Tensor]], Tensor]:
        """A linear map `[h, w]` of the value as products of what is there, and the bias with what
        it adds to all rows.
        """
        if not self.folds:
            return [(self.rows, map)], bias
        of_hidden, bias = self.folded(map, bias)
        found = [(self.read, of_hidden)]
        if isinstance(self.before, LazyValues):
            more, bias = self.before.products(map, bias)
            return found + more, bias
        return found if self.before is None else [*found, (self.before.rows, map)], bias

    @property
    def read(self) -> Tensor:
        """The input of linear maps of the value, without `before`: `hidden` if it folds, else the
        rows.
        """
        if not self.folds:
            return self.rows
        assert self.hidden is not None
        return self.hidden

    def reduce(self, to: str, how: str, place: str = "") -> Tensor:
        """The value reduced to a coarser domain, `[rows of to, w]`; of nothing, 0."""
        goal, to = to, f"{place} ray" if place else to
        if how == "max":
            found = self._total(to, "max")
            return torch.where(self._count(to, found.dtype) > 0, found, 0.0)
        found = self._total(to, "sum")
        if how == "sum" and not self.defers:
            return found
        count = self._count(to, found.dtype)
        if how == "mean":
            found = found / count.clamp(min=1)
        if not self.defers:
            return found
        assert self.last is not None
        # in the type of the sum: a half type could not hold one over many rows
        weight, bias = self.last.weight.to(found.dtype), self.last.bias
        if bias is None:
            found = linear(found, weight)
        else:
            count = (count > 0).to(found.dtype) if how == "mean" else count
            found = plus_linear(count * bias, found, weight)
        if self.before is None:
            return found
        return found + self.before.reduce(goal, how, place)

    def _total(self, to: str, op: str) -> Tensor:
        key = (to, op)
        if key not in self._totals:
            self._totals[key] = self._climb(to, op)
        return self._totals[key]

    def _climb(self, to: str, op: str) -> Tensor:
        topology = self.topology
        if to == "graph":
            if self.domain != "node":
                rows = self._total("node", op)
            else:
                rows = self._summed(op)
            if op == "sum":
                return total(at_least_float32(rows), topology.batch, topology.graphs)
            return largest(rows, topology.batch, topology.num_graphs)
        if self.domain == "angle":
            return self._climb_angles(to, op)
        rows = self._summed(op)
        if op == "sum":
            return total(at_least_float32(rows), topology.edge_index[1], topology.edges.target)
        return largest(rows, topology.edge_index[1], topology.num_nodes)

    def _climb_angles(self, to: str, op: str) -> Tensor:
        topology = self.topology
        if to == "ray":
            return self._ray_total(op)
        rays = self._total("ray", op)
        if to == "node":
            if op == "sum":
                assert topology.rays is not None
                return total(rays, topology.ray_vertex, topology.rays.vertex)
            return largest(rays, topology.ray_vertex, topology.num_nodes)
        index = topology.rays_of_edges(to.removesuffix(" ray"))
        empty = rays.new_full((1, rays.shape[-1]), EMPTY[op])
        return lift(torch.cat([rays, empty]), index)

    def _ray_total(self, op: str) -> Tensor:
        assert self.topology.pairs is not None
        first, rows = self.topology.pairs.first, at_least_float32(self._summed(op))
        if op == "sum":
            return total(rows, angle_rays(self.topology)[0], first)
        return largest(rows, angle_rays(self.topology)[0], self.topology.num_rays)

    def _summed(self, op: str) -> Tensor:
        if not self.defers or op != "sum":
            return self.rows
        assert self.hidden is not None
        return self.hidden

    def _count(self, to: str, dtype: torch.dtype) -> Tensor:
        return counts(self.topology, self.domain, to, dtype)


def counts(topology: Topology, domain: str, to: str, dtype: torch.dtype) -> Tensor:
    """How many rows go into each row of a reduction, as a column `[rows of to, 1]`.

    Kept with the topology, so that it is made once for all layers and steps.
    """
    return kept(topology, (domain, to, dtype), partial(_counts, topology, domain, to, dtype))


def _counts(topology: Topology, domain: str, to: str, dtype: torch.dtype) -> Tensor:
    if to.endswith(" ray"):
        end = to.removesuffix(" ray")
        ray = topology.rays_of_edges(end)
        angles = lift(topology.degree, topology.index_in("edge", "node", end)) - 1
        count = torch.where(ray < topology.num_rays, angles.clamp(min=0), 0)
    elif domain == "node":
        count = topology.nodes_of_graph
    else:
        degree = topology.degree
        count = degree * (degree - 1) if domain == "angle" else topology.edges_of_node
        if to == "graph":
            none = count.new_zeros(topology.num_graphs)
            count = none.index_add(0, topology.batch, count)
    return count.unsqueeze(-1).to(dtype)
