"""Derivatives of fields on meshes and point clouds: IsoGCN's isometric adjacency tensors.

Horie, Morita, Hishinuma, Ihara, Mitsume, 'Isometric transformation invariant and equivariant
graph convolutional networks', ICLR 2021. The adjacency is one vector per edge j -> i, made of
coordinates in any dimension n, with an optional weight `w` per edge:

    D_ij = M_i^-1 w_ij r_ij / |r_ij|^2,  r_ij = x_j - x_i,  M_i = sum_l w_il r_il r_il^T / |r_il|^2

and an operator is a sum over the edges that end in i, of differences, so that constants vanish:

    convolution   (D ⊗ H)_i = sum_j D_ij ⊗ (H_j - H_i)      rank p -> p + 1
    contraction   (D ⊙ H)_i = sum_j D_ij . (H_j - H_i)      rank p -> p - 1

This is the paper's `G * H` with `G_ij = D_ij` and `G_ii = -sum_j D_ij`. It deviates in one place:
where the neighbours do not span the space (none, one, all on a line or in a plane), M_i has no
inverse, and the pseudo-inverse takes its place. Derivatives are then those within the span of the
neighbours, and gradients with respect to coordinates hold that span fixed; both are finite. A
neighbour in the same place as i (i itself as well) has `D_ij = 0` with gradient 0.

What is exact: `sum_j D_ij r_ij^T = 1`, so convolution and contraction are exact on fields that are
linear in x, on any mesh, and second derivatives of such fields are 0. Where neighbours and weights
are symmetric about i, as inside a regular grid, first derivatives of quadratic fields are exact
too, and so is the Laplacian of cubic ones at nodes whose neighbourhoods, and those of whose
neighbours, are all the same. Elsewhere second derivatives of curved fields are not even
consistent: the gradient has an error of order h, and its derivative one of order 1, which does
not shrink as the mesh is refined. Nor is the Hessian symmetric.

Under `x -> Q x + t` with Q orthogonal, a field of rank p turns by Q in each of its p axes; under
`x -> a x`, D changes to `D / a`.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from symgnn.geometry.measures import at_least_float32, direction, length
from symgnn.graphs import Topology
from symgnn.nn._engine.rows import move

# Eigenvalues of M below this many eps, per dimension, are the rounding of M itself.
_ROUNDING = 64.0


@dataclass(frozen=True)
class Isometric:
    """The vectors D of the edges of a graph or batch, and the operators made of them.

    A field of rank p is `[N, n, ..., n, f]`: nodes, p axes of the space, f features. A derivative
    adds its axis in front of the others. Operators are linear in the field and differentiable
    with respect to field, coordinates and weights.
    """

    vectors: Tensor  # [E, n], on the edge j -> i: D_ij
    topology: Topology

    @staticmethod
    def of(
        pos: Tensor,
        topology: Topology,
        weight: Tensor | None = None,
        *,
        rtol: float | None = None,
        edge_shift: Tensor | None = None,
    ) -> Isometric:
        """From `pos [N, n]`; arguments as in :func:`isometric_vectors`."""
        vectors = isometric_vectors(pos, topology, weight, rtol=rtol, edge_shift=edge_shift)
        return Isometric(vectors, topology)

    def convolution(self, field: Tensor, rank: int) -> Tensor:
        """`D ⊗ H`, `[N, n, ..., f] -> [N, n, n, ..., f]`: entry `k l ...` is `d_k H_l...`."""
        self._check(field, rank)
        change = _difference(field, self.topology)
        product = self.vectors.unsqueeze(-1) * change.flatten(1).unsqueeze(1)
        return _gather(product, self.topology).unflatten(-1, field.shape[1:])

    def contraction(self, field: Tensor, rank: int) -> Tensor:
        """`D ⊙ H` with the first axis of H, `[N, n, n, ..., f] -> [N, n, ..., f]`."""
        self._check(field, rank, least=1)
        change = _difference(field, self.topology)
        product = (self.vectors.unsqueeze(-1) * change.flatten(2)).sum(1)
        return _gather(product, self.topology).unflatten(-1, field.shape[2:])

    def gradient(self, field: Tensor, rank: int = 0) -> Tensor:
        """`d_k H_l...`, the same as the convolution; of scalars `[N, f] -> [N, n, f]`."""
        return self.convolution(field, rank)

    def divergence(self, field: Tensor, rank: int = 1) -> Tensor:
        """`sum_k d_k H_kl...`, the same as the contraction; of vectors `[N, n, f] -> [N, f]`."""
        return self.contraction(field, rank)

    def jacobian(self, field: Tensor) -> Tensor:
        """`d_k H_l` of vectors as entry `l k`, `[N, n, f] -> [N, n, n, f]`."""
        return self.convolution(field, 1).transpose(1, 2)

    def laplacian(self, field: Tensor, rank: int = 0) -> Tensor:
        """The divergence of the gradient, of the shape of the field."""
        return self.contraction(self.convolution(field, rank), rank + 1)

    def hessian(self, field: Tensor) -> Tensor:
        """The gradient of the gradient of scalars, `[N, f] -> [N, n, n, f]`."""
        return self.convolution(self.convolution(field, 0), 1)

    def squared_gradient(self, field: Tensor) -> Tensor:
        """`|grad H|^2` of scalars, `[N, f] -> [N, f]`: invariant where they are."""
        gradient = self.gradient(field)
        return inner(gradient, gradient)

    def _check(self, field: Tensor, rank: int, least: int = 0) -> None:
        nodes, n = self.topology.num_nodes, self.vectors.shape[1]
        if rank < least:
            raise ValueError(f"rank: must be at least {least}, got {rank}")
        axes = (nodes, *[n] * rank)
        if field.dim() != rank + 2 or field.shape[:-1] != axes:
            need = ", ".join(map(str, (*axes, "f")))
            raise ValueError(
                f"field: of rank {rank} must have shape [{need}], got {list(field.shape)}"
            )


def isometric_vectors(
    pos: Tensor,
    topology: Topology,
    weight: Tensor | None = None,
    *,
    rtol: float | None = None,
    edge_shift: Tensor | None = None,
) -> Tensor:
    """The vectors D_ij of the edges j -> i, `[N, n] -> [E, n]`.

    Args:
        pos: coordinates `[N, n]`; half types are taken to float32.
        topology: the edges; parallel ones count each.
        weight: `[E]`, not negative; 1 if left out. An edge of weight 0 is as good as none.
        rtol: an eigenvalue of M_i counts as 0 if it is at most this part of the largest; rounding
            if left out (`64 n eps`). With 0.1, say, the neighbours on a smooth surface span its
            tangent plane only.
        edge_shift: `[E, n]`, what is added to the source of each edge; that of the topology if
            left out.
    """
    if pos.dim() != 2 or pos.shape[0] != topology.num_nodes:
        raise ValueError(
            f"pos: must have shape [{topology.num_nodes}, n] as topology, got {list(pos.shape)}"
        )
    if weight is not None and weight.shape != (topology.num_edges,):
        raise ValueError(
            f"weight: must have shape [{topology.num_edges}] as the edges, got {list(weight.shape)}"
        )
    with torch.autocast(pos.device.type, enabled=False):
        ray = _difference(at_least_float32(pos), topology)
        edge_shift = topology.edge_shift if edge_shift is None else edge_shift
        ray = ray if edge_shift is None else ray + edge_shift.to(ray.dtype)
        unit, distance = direction(ray), length(ray).unsqueeze(-1)
        weighted = unit if weight is None else unit * weight.unsqueeze(-1)
        moment = _gather(weighted.unsqueeze(-1) * unit.unsqueeze(1), topology)
        inverse, span = _inverse(moment, rtol)
        vectors = _apply(inverse, weighted / torch.where(distance == 0, 1.0, distance), topology)
        # M squares the rays and loses half of their digits where they are nearly in a plane; one
        # step towards sum_j D_ij r_ij^T = span gives these back. The sum is constant: no gradient.
        with torch.no_grad():
            error = span - _gather(vectors.unsqueeze(-1) * ray.unsqueeze(1), topology).detach()
        return vectors + _apply(error, vectors, topology)


def inner(first: Tensor, second: Tensor) -> Tensor:
    """The inner product of fields of one rank, over all their axes, `[N, n, ..., f] -> [N, f]`."""
    if first.shape != second.shape:
        raise ValueError(
            f"fields: must have one shape, got {list(first.shape)} and {list(second.shape)}"
        )
    product = first * second
    return product.sum(tuple(range(1, product.dim() - 1))) if product.dim() > 2 else product


def _difference(field: Tensor, topology: Topology) -> Tensor:
    """Source minus target on the edges, `[N, ...] -> [E, ...]`."""
    rows = at_least_float32(field).flatten(1)
    both = torch.stack([-rows, rows], 1).flatten(0, 1)  # as a target, as a source
    return move(both, topology.edges.both).unflatten(-1, field.shape[1:])


def _gather(rows: Tensor, topology: Topology) -> Tensor:
    """The sum of the edges that end in each node, `[E, ...] -> [N, ...]`."""
    return move(rows.flatten(1), topology.edges.target.T).unflatten(-1, rows.shape[1:])


def _apply(matrices: Tensor, vectors: Tensor, topology: Topology) -> Tensor:
    """The matrix of the target of each edge times its vector, `[N, n, n], [E, n] -> [E, n]`."""
    lifted = move(matrices.flatten(1), topology.edges.target).unflatten(-1, matrices.shape[1:])
    return (lifted * vectors.unsqueeze(1)).sum(-1)


def _inverse(moment: Tensor, rtol: float | None) -> tuple[Tensor, Tensor]:
    """The pseudo-inverses of symmetric matrices `[N, n, n]`, and the projectors on their spans.

    The gradient of a pseudo-inverse is infinite where the rank changes, and that of an
    eigenvector where eigenvalues meet. So the eigenvectors only tell the null space, as a constant,
    and what is differentiated is an ordinary inverse, with the null space filled up.
    """
    n = moment.shape[-1]
    rtol = _ROUNDING * n * torch.finfo(moment.dtype).eps if rtol is None else rtol
    with torch.no_grad():
        # forward-mode derivatives pass through no_grad, and are infinite for equal eigenvalues
        constant = moment.detach()
        size = constant.diagonal(dim1=-2, dim2=-1).sum(-1)[:, None, None]
        size = torch.where(size == 0, 1.0, size)
        # eigh raises at what is not a number; the inverse below passes it on
        values, vectors = torch.linalg.eigh((constant / size).nan_to_num(0.0, 0.0, 0.0))
        null = vectors * (values <= rtol * values[:, -1:]).unsqueeze(1)
        null = null @ null.mT
        span = torch.eye(n, dtype=null.dtype, device=null.device) - null
    filled = span @ (moment / size) @ span + null
    return (torch.linalg.inv_ex(filled).inverse - null) / size, span
