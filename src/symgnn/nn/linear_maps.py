"""Coordinate maps with one matrix for all nodes: orthogonal with determinant -1, or arbitrary."""

from __future__ import annotations

import torch
from torch import Tensor

from symgnn.geometry.symmetry import PERMUTATIONS, Symmetry
from symgnn.nn.coordinate_maps import Rigid, _apply, _Common, _shifted
from symgnn.nn.state import State


class Mirror(Rigid):
    """`x_i+ = Q x_i + a` with Q orthogonal of determinant -1: :class:`Rigid` after a reflection.

    The reflection negates the first coordinate; with the rotation that follows, Q is any orthogonal
    matrix of determinant -1. Together with :class:`Rigid` this covers O(n). At initialisation it is
    the reflection alone.
    """

    def _motion(self, coefficients: Tensor, n: int) -> tuple[Tensor, Tensor]:
        rotation, shift = super()._motion(coefficients, n)
        signs = torch.ones(n, dtype=rotation.dtype, device=rotation.device)
        signs[0] = -1
        return rotation * signs, shift


class LinearMap(_Common):
    """`x_i+ = Q x_i + a` with any matrix Q; a function of u has entries between -100 and 100.

    The map is neither relative distance preserving nor relative angle preserving: if the input is
    rotated, Q acts along other directions of the graph. Parallel edges stay parallel, so
    translations, dilations and redrawings remain symmetries if the block has them. The coefficients
    are the entries of `Q - I` and of a, so the map is initialised to the identity.
    """

    keeps = PERMUTATIONS | Symmetry(["translation", "dilation", "redrawing"])
    commutes = PERMUTATIONS
    turns = True

    def count(self, n: int) -> int:
        """Those of the matrix, then those of the shift."""
        return n * n + n

    def parts(self, state: State) -> tuple[Tensor, Tensor | None]:
        """Apply the matrix and shift."""
        matrix, shift = self._matrix(self.per_node(state), state.x.shape[1])
        turned = None if state.shift is None else _apply(matrix, state.shift)
        return _shifted(state, _apply(matrix, state.x), turned, shift)

    def edge_shift(self, state: State) -> Tensor | None:
        """By the same matrix."""
        if state.edge_shift is None:
            return None
        matrix, _ = self._matrix(self.per_edge(state), state.x.shape[1])
        return _apply(matrix, state.edge_shift)

    def _matrix(self, coefficients: Tensor, n: int) -> tuple[Tensor, Tensor]:
        """Q `[rows, n, n]` and a `[rows, n]`."""
        entries = coefficients[:, : n * n]
        entries = entries.clamp(-100, 100) if self.of == "u" else entries
        eye = torch.eye(n, dtype=entries.dtype, device=entries.device)
        return eye + entries.unflatten(1, (n, n)), coefficients[:, n * n :]
