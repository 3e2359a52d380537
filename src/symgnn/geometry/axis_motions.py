"""Motions that keep an axis, such as that of gravity: turns about it, mirrors along it, and flips.

The axis is the last coordinate where it is not given. Turns and mirrors leave heights along the
axis as they are; a flip turns the axis upside down.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

import torch
from torch import Generator, Tensor

from symgnn.geometry.deformations import NoSuchTransformation
from symgnn.geometry.sampling import cloud_of, random_direction, random_rotation
from symgnn.geometry.transformations import Reflection, Rotation

if TYPE_CHECKING:
    from typing_extensions import Self


class AxisRotation(Rotation):
    """A rotation about the axis, Haar-distributed; there are none in fewer than 3 dimensions."""

    name: ClassVar[str] = "axis-rotation"

    @classmethod
    def random(
        cls,
        pos: Tensor,
        edge_index: Tensor | None = None,
        *,
        generator: Generator | None = None,
        axis: Sequence[float] | None = None,
    ) -> Self:
        """A random one about `axis` `[n]`."""
        up, across = _frame(cls.name, pos, axis, 3)
        turn = random_rotation(len(across), generator)
        return cls(up.outer(up) + across.T @ turn @ across)


class AxisReflection(Reflection):
    """The reflection in a hyperplane that contains the axis."""

    name: ClassVar[str] = "axis-reflection"

    @classmethod
    def random(
        cls,
        pos: Tensor,
        edge_index: Tensor | None = None,
        *,
        generator: Generator | None = None,
        axis: Sequence[float] | None = None,
    ) -> Self:
        """A random one that contains `axis` `[n]`."""
        _, across = _frame(cls.name, pos, axis, 2)
        return cls(random_direction(len(across), generator) @ across)


class AxisFlip(Rotation):
    """Half a turn in a plane that contains the axis: it turns the axis upside down."""

    name: ClassVar[str] = "axis-flip"

    @classmethod
    def random(
        cls,
        pos: Tensor,
        edge_index: Tensor | None = None,
        *,
        generator: Generator | None = None,
        axis: Sequence[float] | None = None,
    ) -> Self:
        """A random one that turns `axis` `[n]`."""
        up, across = _frame(cls.name, pos, axis, 2)
        side = random_direction(len(across), generator) @ across
        eye = torch.eye(len(up), dtype=torch.float64)
        return cls(eye - 2 * up.outer(up) - 2 * side.outer(side))


def unit_axis(axis: Sequence[float] | None, n: int) -> Tensor:
    """The unit vector of an axis `[n]`; the last coordinate where it is not given."""
    if axis is None:
        return torch.eye(n, dtype=torch.float64)[-1]
    found = torch.tensor([float(a) for a in axis], dtype=torch.float64)
    size = found.norm()
    if len(found) != n or not size.isfinite() or size == 0:
        raise ValueError(f"axis: is {tuple(axis)}; give {n} numbers that are not all zero")
    return found / size


def _frame(
    name: str, pos: Tensor, axis: Sequence[float] | None, least: int
) -> tuple[Tensor, Tensor]:
    """The axis `[n]`, and an orthonormal basis of its orthogonal complement `[n - 1, n]`."""
    n = cloud_of(pos).n
    if n < least:
        raise NoSuchTransformation(f"{name}: needs a dimension of {least} or more; pos has {n}")
    up = unit_axis(axis, n)
    return up, torch.linalg.qr(up.unsqueeze(1), mode="complete").Q[:, 1:].T
