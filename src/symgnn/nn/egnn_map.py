"""EGNN's map of the coordinates, with the options of its implementations."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

import torch
from torch import Tensor, nn

from symgnn.geometry.measures import length
from symgnn.geometry.symmetry import AFFINE, EUCLIDEAN, PERMUTATIONS, Symmetry
from symgnn.nn.coordinate_maps import CoordinateMap
from symgnn.nn.form import MLP, Width
from symgnn.nn.inputs import e, v
from symgnn.nn.parameters import reset_parts
from symgnn.nn.spec import Spec
from symgnn.nn.state import State
from symgnn.nn.update import Update


class EGNNMap(CoordinateMap):
    """`x_i+ = x_i + C sum_j (x_i - x_j) phi_x(e_ji+) [+ phi_v(v_i) vel_i]`, over the edges j -> i.

    As in EGNN's code: C is 1 or one over the number of edges, the rays may be normalised, the
    coefficients may be passed through tanh, and the contribution of a ray may be clamped. phi_x has
    no bias in its last layer and small initial weights.

    Args:
        aggregation: "mean" or "sum".
        normalise: False; True, for `r / (|r| + 1e-8)` with a constant length; "plus one", for
            `r / (|r| + 1)`; or "scaled", for `s r / max(|r|, 1e-8)` with a parameter s.
        tanh: Whether coefficients are passed through tanh.
        clamp: The maximum absolute value of each component that a ray adds; None for no bound.
        velocity: Whether nodes also move along their velocity.
        towards: Whether rays point from the node to its neighbours, as in egnn-pytorch.
        bias: Whether the last layer of phi_x has a bias.
        limit: The maximum absolute value of a coefficient; None for no bound.
        gated: Whether phi_x reads messages after their gate.
        weight: A constant factor of the sum or mean over the edges; EGNN's `coords_weight`.
    """

    def __init__(
        self,
        *,
        aggregation: str = "mean",
        normalise: bool | str = False,
        tanh: bool = False,
        clamp: float | None = None,
        velocity: bool = False,
        towards: bool = False,
        bias: bool = False,
        limit: float | None = None,
        gated: bool = True,
        weight: float = 1.0,
    ) -> None:
        super().__init__()
        if not math.isfinite(weight):
            raise ValueError(f"weight: is {weight!r}; give a finite number, such as 1.0")
        self.limit, self.gated, self.weight = limit, gated, float(weight)
        if aggregation not in ("mean", "sum"):
            raise ValueError(f"aggregation: is {aggregation!r}; choose 'mean' or 'sum'")
        if normalise not in (False, True, "plus one", "scaled"):
            raise ValueError(
                f"normalise: is {normalise!r}; use True, False, 'plus one' or 'scaled'"
            )
        self.aggregation, self.normalise, self.tanh = aggregation, normalise, tanh
        self.clamp, self.velocity, self.towards, self.bias = clamp, velocity, towards, bias
        self.reads = frozenset("xev" if velocity else "xe")
        # the lengths of rays are seen, and a velocity does not grow with the coordinates
        plain = not normalise and clamp is None and not velocity
        self.keeps = self.commutes = AFFINE if plain else EUCLIDEAN
        if clamp is not None:  # each number of a vector is cut on its own
            self.keeps = self.commutes = PERMUTATIONS | Symmetry(["translation"])

    def make(
        self, sizes: Mapping[str, int], width: Width, spec: Spec, dimension: int | None
    ) -> None:
        """phi_x on edges, phi_v on nodes, each with one output."""
        self.update = Update("edge", [e], sizes, 1, width.for_map, {}, last_bias=self.bias)
        if self.velocity:
            self.speed = Update("node", [v], sizes, 1, width.for_map, {})
        if self.normalise == "scaled":
            self.scale = nn.Parameter(torch.empty(()))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Re-initialise all parameters."""
        reset_parts(self)
        assert isinstance(self.update.phi, MLP)
        last = self.update.phi.linears[-1]
        assert isinstance(last, nn.Linear)
        nn.init.xavier_uniform_(last.weight, gain=0.001)
        if self.bias:
            nn.init.zeros_(last.bias)
        if self.normalise == "scaled":
            nn.init.constant_(self.scale, 0.01)

    def forward(self, state: State) -> Tensor:
        """Move along the edges, and along the velocity."""
        x, topology = state.x, state.topology
        along = state.rays
        along = self._normal(along if self.towards else -along)
        if not self.gated and state.e is not None and state.e.ungated is not None:
            state = replace(state, e=state.engine.values(state, "edge", state.e.ungated))
        coefficient = self.update(state).rows.to(x.dtype)
        if self.limit is not None:
            coefficient = coefficient.clamp(-self.limit, self.limit)
        step = along * (torch.tanh(coefficient) if self.tanh else coefficient)
        if self.clamp is not None:
            step = step.clamp(-self.clamp, self.clamp)
        moved = state.engine.total(step, topology.edges.target)
        if self.aggregation == "mean":
            moved = moved / topology.edges_of_node.clamp(min=1).unsqueeze(-1)
        x = x + (moved if self.weight == 1 else self.weight * moved)
        if self.velocity:
            assert state.velocity is not None
            x = x + self.speed(state).rows.to(x.dtype) * state.velocity
        return x

    def _normal(self, rays: Tensor) -> Tensor:
        if self.normalise is False:
            return rays
        lengths = length(rays).unsqueeze(-1)
        if self.normalise == "plus one":
            return rays / (lengths + 1)
        if self.normalise == "scaled":
            return self.scale * rays / lengths.clamp(min=1e-8)
        return rays / (lengths.detach() + 1e-8)
