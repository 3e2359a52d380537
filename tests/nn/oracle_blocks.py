"""The blocks of the oracle, each update a loop over nodes, edges or angles."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import torch
from torch import Tensor

from nn.oracle_formulas import (
    Angle,
    Graph,
    Values,
    distance2,
    rho,
    separation,
    theta,
)


@dataclass
class State:
    """The values of one graph at one moment, and how they are aggregated."""

    graph: Graph
    x: Values
    v: Values
    e: Values
    a: Values
    u: Values
    how: Mapping[str, str]
    separations: dict[Angle, Tensor | None] = field(default_factory=dict)
    mean_separation: dict[int, Tensor | float] = field(default_factory=dict)

    def reduced(self, movement: str, values: Values, keys: Iterable) -> Tensor | None:
        """rho of the values with these keys; None if there are no such values at all."""
        if values.absent:
            return None
        return rho(self.how.get(movement, "sum"), [values[key] for key in keys], values.width)

    def d2(self, j: int, i: int) -> Tensor:
        return distance2(self.x[i], self.x[j])

    def theta(self, j: int, i: int, k: int) -> Tensor:
        return theta(self.x[j], self.x[i], self.x[k])

    def kappa(self, j: int, i: int, k: int) -> Tensor:
        """s_jik by its mean over the ordered pairs at i."""
        mine, mean = self.separations[j, i, k], self.mean_separation[i]
        if mine is None or not mean > 0:
            return torch.zeros(1, dtype=torch.float64)
        return (mine / mean).reshape(1)

    def separate(self) -> None:
        """s of all angles and its mean at each vertex, at the current coordinates."""
        for i in self.graph.nodes:
            at = {a: separation(*(self.x[p] for p in a)) for a in self.graph.angles_at(i)}
            defined = [s for s in at.values() if s is not None]
            self.separations |= at
            self.mean_separation[i] = sum(defined) / max(len(defined), 1)

    # the reductions that most blocks read

    def e_to_v(self, i: int) -> Tensor | None:
        return self.reduced("e->v", self.e, self.graph.into(i))

    def a_to_v(self, i: int) -> Tensor | None:
        return self.reduced("a->v", self.a, self.graph.angles_at(i))

    def v_to_u(self) -> Tensor | None:
        return self.reduced("v->u", self.v, self.graph.nodes)

    def e_to_u(self) -> Tensor | None:
        return self.reduced("e->u", self.e, self.graph.edges)

    def a_to_u(self) -> Tensor | None:
        return self.reduced("a->u", self.a, self.graph.angles())


class GN:
    """Eq. (gnn)."""

    reads_positions = True

    def edge(self, s: State, j: int, i: int, row: int) -> tuple:
        return s.v[j], s.v[i], s.e[j, i, row], s.u[()]

    def node(self, s: State, i: int) -> tuple:
        return s.v[i], s.e_to_v(i), s.u[()]

    def graph(self, s: State) -> tuple:
        return s.v_to_u(), s.e_to_u(), s.u[()]


class DGN:
    """Eq. (En)."""

    def edge(self, s: State, j: int, i: int, row: int) -> tuple:
        return s.e[j, i, row], s.v[i], s.v[j], s.d2(j, i), s.u[()]

    def node(self, s: State, i: int) -> tuple:
        return s.e_to_v(i), s.v[i], s.u[()]

    def graph(self, s: State) -> tuple:
        lengths = Values({edge: s.d2(*edge[:2]) for edge in s.graph.edges}, 1)
        d2 = s.reduced("x->u", lengths, s.graph.edges)
        return s.e_to_u(), s.v_to_u(), d2, s.u[()]


class DGNPosition(DGN):
    """Not of the paper: DGN whose nodes read coordinates too, so that a common motion shows."""

    def node(self, s: State, i: int) -> tuple:
        return s.e_to_v(i), s.v[i], s.x[i], s.u[()]


class SDGN(DGN):
    """DGN on coordinates times alpha / max |x_i - x_j|."""

    scaled = True


class AGN:
    """Eq. (angulaGN)."""

    def angle(self, s: State, j: int, i: int, k: int) -> tuple:
        return s.v[i], s.v[j], s.v[k], s.a[j, i, k], s.theta(j, i, k), s.u[()]

    def edge(self, s: State, j: int, i: int, row: int) -> tuple:
        return s.v[j], s.v[i], s.e[j, i, row], s.u[()]

    def node(self, s: State, i: int) -> tuple:
        return s.v[i], s.e_to_v(i), s.a_to_v(i), s.u[()]

    def graph(self, s: State) -> tuple:
        return s.v_to_u(), s.e_to_u(), s.a_to_u(), s.u[()]


class AGNEdges(AGN):
    """Edge attributes in the angle updates."""

    def ray(self, s: State, i: int, j: int) -> Tensor | None:
        """e_ij; where there is no such edge, e_ji; the mean of parallel ones."""
        edges = s.graph.between(i, j) or s.graph.between(j, i)
        return None if s.e.absent else rho("mean", [s.e[e] for e in edges], s.e.width)

    def angle(self, s: State, j: int, i: int, k: int) -> tuple:
        rays = self.ray(s, i, j), self.ray(s, i, k)
        return s.v[i], s.v[j], s.v[k], *rays, s.a[j, i, k], s.theta(j, i, k), s.u[()]


class AGNDistances(AGN):
    """Relative distances in the angle updates."""

    def angle(self, s: State, j: int, i: int, k: int) -> tuple:
        d2 = s.d2(j, i), s.d2(k, i)
        return s.v[i], s.v[j], s.v[k], s.a[j, i, k], *d2, s.theta(j, i, k), s.u[()]


class AGNToEdges(AGN):
    """Angle attributes in the edge updates.

    The paper writes it for e_ij, i the source and j the target: first rho of a_ijk, with the
    vertex at the target, then of a_jik, with the vertex at the source.
    """

    def edge(self, s: State, j: int, i: int, row: int) -> tuple:
        source, target = j, i
        at_target = [angle for angle in s.graph.angles_at(target) if angle[0] == source]
        at_source = [angle for angle in s.graph.angles_at(source) if angle[0] == target]
        return (
            s.e[j, i, row],
            s.v[source],
            s.v[target],
            s.reduced("a->e", s.a, at_target),
            s.reduced("a->e", s.a, at_source),
            s.u[()],
        )


class AGNRaw(AGN):
    """Without angle embeddings: the nodes read the angles themselves."""

    angle = None

    def node(self, s: State, i: int) -> tuple:
        angles = s.graph.angles_at(i)
        thetas = Values({angle: s.theta(*angle) for angle in angles}, 1)
        return s.v[i], s.e_to_v(i), s.reduced("x->v", thetas, angles), s.u[()]

    def graph(self, s: State) -> tuple:
        return s.v_to_u(), s.e_to_u(), s.u[()]


class Combined(AGN):
    """DGN and AGN together; the graph reads the angles too."""

    def edge(self, s: State, j: int, i: int, row: int) -> tuple:
        return s.v[j], s.v[i], s.e[j, i, row], s.d2(j, i), s.u[()]


class CGN(AGN):
    """AGN with kappa in place of the angle."""

    reads_kappa = True

    def angle(self, s: State, j: int, i: int, k: int) -> tuple:
        return s.v[i], s.v[j], s.v[k], s.a[j, i, k], s.kappa(j, i, k), s.u[()]


BLOCKS: dict[str, type] = {
    "gn": GN,
    "dgn": DGN,
    "sdgn": SDGN,
    "agn": AGN,
    "agn+edges": AGNEdges,
    "agn+distances": AGNDistances,
    "agn-to-edges": AGNToEdges,
    "agn-raw": AGNRaw,
    "combined": Combined,
    "cgn": CGN,
    "dgn+position": DGNPosition,
}


# ------------------------------------------------------------------ the model
