"""Node outputs that are conformal fields: invariants times a power of the scale at each node."""

from __future__ import annotations

import math
from numbers import Real

import torch
from torch import Tensor, nn

from symgnn.geometry.measures import at_least_float32, direction, length, root
from symgnn.geometry.symmetry import MOEBIUS, STARS, Symmetry
from symgnn.nn.state import State

#: The weight of a field that is learned.
LEARNED = "learned"


class ConformalField(nn.Module):
    """Multiplies invariant node outputs by `s_i^D`: the result is a conformal field of weight D.

    `s_jik = |x_j - x_k| / (|x_i - x_j| |x_i - x_k|)` for each pair of neighbours of node i, and s_i
    is their root mean square. A conformal map f with local scale W, `|f(x) - f(y)|^2 =
    W(x) W(y) |x - y|^2`, multiplies each s_jik and s_i by 1 / W_i, and so the output by `W_i^-D`. D
    is the scaling dimension: under `x -> gamma x` the output is divided by gamma^D.

    The mean of s, by which kappa is divided, could be used as well: the two differ by a function
    of kappa. The root mean square is that of the distances of the inverted rays, and its cost is
    proportional to the number of edges. At a node with fewer than two neighbours, or whose
    neighbours all coincide, s_i is not defined and the output is 0.

    Args:
        weight: D; or "learned", which is initialised to 0 (invariant outputs).
    """

    #: The transformations to which the field is equivariant, if the network is invariant to them.
    symmetry: Symmetry = MOEBIUS | STARS

    def __init__(self, weight: float | str) -> None:
        super().__init__()
        self.weight: float | nn.Parameter
        if weight == LEARNED:
            self.weight = nn.Parameter(torch.zeros(()))
        elif isinstance(weight, Real) and not isinstance(weight, bool) and math.isfinite(weight):
            self.weight = float(weight)
        else:
            raise ValueError(f"weight: is {weight!r}; give a finite number, or 'learned'")

    def reset_parameters(self) -> None:
        """Re-initialise the weight, if it is learned."""
        if isinstance(self.weight, nn.Parameter):
            nn.init.zeros_(self.weight)

    @property
    def output_type(self) -> str:
        """The type of the output for an audit."""
        weight = self.weight
        return f"weight {weight if isinstance(weight, float) else weight.item()!r} per node"

    def forward(self, rows: Tensor, state: State, pos: Tensor) -> Tensor:
        """`[N, k] -> [N, k]`, given the coordinates of the input `[N, n]`."""
        scale = vertex_scale(state, pos).unsqueeze(-1)
        none = scale == 0
        power = (self.weight * torch.where(none, 1.0, scale).log()).exp()
        return rows * torch.where(none, 0.0, power).to(rows.dtype)


def vertex_scale(state: State, pos: Tensor) -> Tensor:
    """The root mean square of s over the pairs of neighbours of each node, `[N, n] -> [N]`."""
    topology, gather, x = state.topology, state.engine.gather, at_least_float32(pos)
    rays = topology.rays
    assert rays is not None
    along = gather(x, rays.neighbour) - gather(x, rays.vertex)
    if topology.edge_shift is not None:
        along = along + topology.on_rays(topology.edge_shift.to(along.dtype))
    vertex, size = topology.ray_vertex, topology.num_nodes
    far = length(along).unsqueeze(-1)
    there = far > 0
    inverted = torch.where(there, direction(along) / torch.where(there, far, 1.0), 0.0)

    def total(values: Tensor) -> Tensor:
        return values.new_zeros(size, values.shape[1]).index_add(0, vertex, values)

    count = total(there.to(inverted.dtype))
    mean = total(inverted) / count.clamp(min=1)
    away = torch.where(there, inverted - mean.index_select(0, vertex), 0.0)
    # over the pairs j != k: twice the sum of squares from the mean, over d - 1
    squares = 2 * total(away.square().sum(1, keepdim=True)) / (count - 1).clamp(min=1)
    return root(torch.where(count > 1, squares, 0.0)).squeeze(-1)
