"""The base class of transformations of coordinates."""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import torch
from torch import Generator, Tensor

from symgnn.geometry.sampling import Cloud, cloud_of

if TYPE_CHECKING:
    from torch_geometric.data import Data
    from typing_extensions import Self


def like(value: Tensor, pos: Tensor) -> Tensor:
    """`value` in the type and on the device of `pos`."""
    # type before device: not every device holds float64
    return value.to(pos.dtype).to(pos.device)


#: Kinds of transformations that map a lattice to a lattice.
AFFINE_KINDS = (
    *("translation", "rotation", "reflection", "dilation", "affine"),
    *("axis-rotation", "axis-reflection", "axis-flip"),
)


def check_dimension(name: str, pos: Tensor, n: int) -> None:
    """Refuse coordinates that are not `[N, n]`."""
    if pos.dim() != 2 or pos.size(1) != n:
        raise ValueError(
            f"pos: has shape {list(pos.shape)}, but this {name} acts in {n} dimensions; "
            f"pass a tensor of shape [N, {n}]"
        )


# compared by identity, as tensors have no single truth value
@dataclass(frozen=True, eq=False)
class Transformation(ABC):
    """A map of the coordinates of all nodes, `[N, n] -> [N, n]`, differentiable in them.

    Example:
        >>> pos = torch.randn(5, 3, dtype=torch.float64)
        >>> moved = symgnn.geometry.Rotation.random(pos)(pos)
        >>> torch.allclose(torch.pdist(moved), torch.pdist(pos))
        True
    """

    name: ClassVar[str]

    @abstractmethod
    def __call__(self, pos: Tensor) -> Tensor:
        """The image of `pos` `[N, n]`, in its type and on its device."""

    @classmethod
    def random(
        cls, pos: Tensor, edge_index: Tensor | None = None, *, generator: Generator | None = None
    ) -> Self:
        """A random element, for the dimension and the extent of the points `pos` `[N, n]`.

        `edge_index` `[2, E]` is used only by kinds that move parts of a graph; `generator` is a
        CPU generator.
        """
        return cls._draw(cloud_of(pos), generator)

    @classmethod
    def _draw(cls, cloud: Cloud, generator: Generator | None) -> Self:
        raise TypeError(f"{cls.__name__} has to say how a random element of it is drawn")

    def _turned(self, shift: Tensor) -> Tensor:
        """The images of vectors under the linear part of an affine map, `[E, n] -> [E, n]`.

        Each vector is mapped once, with its negative: images of equal and of opposite vectors are
        equal and opposite to the last digit, by which the rays of a cell are told apart.
        """
        first = (shift != 0).to(torch.int8).argmax(1, keepdim=True)
        sign = torch.where(shift.gather(1, first) < 0, -1.0, 1.0).to(shift.dtype)
        different, number = (sign * shift + 0.0).unique(dim=0, return_inverse=True)
        image = (self(different) - self(-different)) / 2
        return sign * image.to(shift.dtype)[number]

    def apply(self, data: Data) -> Data:
        """A shallow copy of the graph with transformed `pos`; everything else is shared.

        In a periodic cell the shifts of the edges are transformed too. This is possible for affine
        maps only: others do not map a lattice to a lattice.
        """
        if data.pos is None:
            raise ValueError(f"data: has no pos, which a {self.name} acts on; set data.pos")
        out = copy.copy(data)
        out.pos = self(data.pos)
        shift = getattr(data, "edge_shift", None)
        if shift is not None and bool((shift != 0).any()):
            if self.name not in AFFINE_KINDS:
                raise ValueError(
                    f"edge_shift: a {self.name} does not map a periodic cell to one; remove "
                    "edge_shift, or use an affine map"
                )
            if self.name != "translation":
                out.edge_shift = self._turned(shift)
                cell = getattr(data, "cell", None)
                if cell is not None:
                    out.cell = self._turned(cell.flatten(0, -2)).view_as(cell)
        return out
