"""A representation of O(3) that fits an output whose type nobody declared."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from symgnn.audit._outputs import Output
from symgnn.audit._representations import Irrep, _irreps_matrices

#: The most components of an output that a representation is fitted to.
LARGEST = 16
#: A turn about z whose multiples up to the 9th tell the degrees apart.
ANGLE = 0.3


@dataclass(frozen=True)
class Fit:
    """Irreps and a basis `[d, r]` in which an output changes by them."""

    irreps: tuple[Irrep, ...]
    basis: Tensor | None  # None where the components are e3nn's
    has_parity: bool

    @property
    def text(self) -> str:
        """Such as "1x0e+1x1o"."""
        return "+".join(map(str, self.irreps))


def elements() -> list[Tensor]:
    """The maps that are tried: a turn about z, two others, and the inversion of space."""
    c, s = math.cos(ANGLE), math.sin(ANGLE)
    about_z = torch.tensor([[c, -s, 0], [s, c, 0], [0, 0, 1]], dtype=torch.float64)
    about_x = about_z[[2, 0, 1]][:, [2, 0, 1]]
    both = about_x @ about_z @ about_x
    return [about_z, about_x, both, -torch.eye(3, dtype=torch.float64)]


def fit_representation(
    option: Output, values: Callable[[int], tuple[Tensor, list[Tensor]]], tolerance: float
) -> Output | None:
    """The output with irreps that fit it, or None where no orthogonal representation does.

    Args:
        option: The output as an invariant, which says what its rows are.
        values: For the number of a shape, the value before, and that after each of
            :func:`elements`.
        tolerance: The largest relative misfit.
    """
    first, _ = values(0)
    rows_and_axes = option.parts(first, 3)[..., 0]  # [R, C], every entry a channel
    shape = first.shape[1:] if option.rows else first.shape
    layouts: list[tuple[Sequence[int], tuple[int, ...]]]
    layouts = [(shape[-1:], (first.dim() - 1,))] if shape else []
    if len(shape) > 1:
        layouts.append((shape, tuple(range(first.dim() - len(shape), first.dim()))))
    for sizes, axes in layouts:
        d = math.prod(sizes)
        if not 2 <= d <= LARGEST:
            continue
        per_shape = rows_and_axes.numel() // d
        count = max(2, math.ceil(4 * d / per_shape))
        if count > 80:
            continue
        plain = replace(option, axes=axes, type="vector", basis=torch.eye(d, dtype=torch.float64))
        found = _fit(plain, [values(k) for k in range(count)], d, tolerance)
        if found is not None:
            return replace(option, axes=axes, type=found.text, basis=found.basis)
    return None


def _fit(
    plain: Output, pairs: Sequence[tuple[Tensor, list[Tensor]]], d: int, tolerance: float
) -> Fit | None:
    x = torch.cat([plain.parts(before, 3).reshape(-1, d) for before, _ in pairs])
    images = [
        torch.cat([plain.parts(after[k], 3).reshape(-1, d) for _, after in pairs])
        for k in range(len(elements()))
    ]
    if not all(bool(t.isfinite().all()) for t in (x, *images)):
        return None
    scale = x.norm(dim=0).max()
    if scale == 0:
        return None
    _, s, vh = torch.linalg.svd(x, full_matrices=False)
    space = vh[s > 1e-6 * s[0]].T  # [d, r], which all values lie in
    turns = []
    for image in images:
        turn = _fit_matrix(x @ space, image, space, tolerance)
        turns.append(turn)
    if any(turn is None for turn in turns[:3]):
        return None
    irreps = _irreps_of(turns[0], turns[3])  # type: ignore[arg-type]
    if irreps is None:
        return None
    known = [turn for turn in turns if turn is not None]
    return _with_basis(irreps, known, space, turns[3] is not None)


def _fit_matrix(x: Tensor, image: Tensor, space: Tensor, tolerance: float) -> Tensor | None:
    """The orthogonal matrix on the space that takes half the rows to theirs, if it fits all."""
    y = image @ space
    if float((image - y @ space.T).abs().max()) > tolerance * float(image.abs().max()):
        return None
    half = len(x) // 2
    order = torch.randperm(len(x), generator=torch.Generator().manual_seed(0))
    train, test = order[:half], order[half:]
    turn = torch.linalg.lstsq(x[train], y[train]).solution.T
    off = (x[test] @ turn.T - y[test]).abs().max()
    eye = torch.eye(len(turn), dtype=torch.float64)
    if float(off) > tolerance * float(x.abs().max()):
        return None
    if float((turn @ turn.T - eye).abs().max()) > 1e3 * tolerance:
        return None
    return torch.linalg.lstsq(x, y).solution.T


def _irreps_of(turn: Tensor, inversion: Tensor | None) -> tuple[Irrep, ...] | None:
    """The irreps of a representation, by the eigenvalues of a turn by ANGLE and the inversion."""
    r = len(turn)
    signs = torch.eye(r, dtype=torch.float64) if inversion is None else inversion
    found: list[Irrep] = []
    for parity in (1, -1):
        values, vectors = torch.linalg.eigh((signs + signs.T) / 2)
        own = vectors[:, (values - parity).abs() < 1e-3]
        if own.size(1) == 0:
            continue
        angles = torch.linalg.eigvals(own.T @ turn @ own).angle() / ANGLE
        orders = angles.round()
        if float((angles - orders).abs().max()) > 1e-3:
            return None
        counts = [int((orders == m).sum()) for m in range(12)]
        for degree in range(10, -1, -1):
            copies = counts[degree] - counts[degree + 1]
            if copies < 0:
                return None
            if copies:
                sign = parity if inversion is not None else (-1) ** degree
                found.append(Irrep(copies, degree, sign))
    found.sort(key=lambda irrep: (irrep.degree, -irrep.parity))
    return tuple(found) if sum(i.count * i.size for i in found) == r else None


def _with_basis(
    irreps: tuple[Irrep, ...], turns: Sequence[Tensor], space: Tensor, has_parity: bool
) -> Fit | None:
    maps = torch.stack(elements()[: len(turns)])
    d, r = space.shape
    full = [space @ turn @ space.T for turn in turns]
    singles = [Irrep(1, i.degree, i.parity) for i in irreps for _ in range(i.count)]
    orders = itertools.permutations(singles) if d == r and len(singles) <= 5 else ()
    for order in dict.fromkeys(orders):
        usual = _irreps_matrices(order, maps)
        if all(
            float((own - known).abs().max()) < 1e-6 for own, known in zip(usual, full, strict=True)
        ):
            return Fit(_merged(order), None, has_parity)
    if r == 3 and d == 3:
        return None  # a vector in other axes than those of the coordinates is a fault
    usual = _irreps_matrices(irreps, maps)
    eye = torch.eye(r, dtype=torch.float64)
    rows = [
        torch.kron(turn.contiguous(), eye) - torch.kron(eye, known.T.contiguous())
        for turn, known in zip(turns, usual, strict=True)
    ]
    _, s, vh = torch.linalg.svd(torch.cat(rows))
    null = vh[s < 1e-6 * max(float(s[0]), 1.0)]
    if not len(null):
        return None
    weights = torch.randn(len(null), generator=torch.Generator().manual_seed(0)).double()
    mix = (weights @ null).reshape(r, r)
    if torch.linalg.cond(mix) > 1e6:
        return None
    return Fit(irreps, space @ mix, has_parity)


def _merged(order: Sequence[Irrep]) -> tuple[Irrep, ...]:
    """Neighbours of one kind together: 1x0e+1x0e is 2x0e."""
    found = []
    for (degree, parity), group in itertools.groupby(order, key=lambda i: (i.degree, i.parity)):
        found.append(Irrep(len(list(group)), degree, parity))
    return tuple(found)
