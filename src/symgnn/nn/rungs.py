"""Blocks with less symmetry than E(n), which read directions in space.

Each is DGN with other edge measures, for data in which directions matter:

- TGN reads `x_j - x_i`. Symmetry: translations. For example upright digits anywhere in an image.
- STGN reads `x_j - x_i` divided by the longest edge. Symmetry: translations and dilations.
- UGN reads the height of j over i along an axis, and their distance across it. Symmetry:
  translations, rotations about the axis and reflections along it. For data with gravity: rooms,
  trees, weather.
- UGN+flips reads the absolute height. Symmetry: that of UGN, and flips of the axis.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from symgnn.geometry.axis_motions import unit_axis
from symgnn.geometry.measures import at_least_float32, length
from symgnn.geometry.symmetry import PERMUTATIONS, Symmetry
from symgnn.nn.inputs import Measure, e, reduce, u, v
from symgnn.nn.spec import Spec


def _offset(x_source: Tensor, x_target: Tensor) -> Tensor:
    return at_least_float32(x_source) - at_least_float32(x_target)


@dataclass(frozen=True)
class AlongAxis:
    """The height along an axis and the distance across it, of the source over the target.

    Args:
        axis: Its direction `[n]`, of any length; None for the last coordinate.
        flips: Whether the sign of the height is left out.
    """

    axis: tuple[float, ...] | None = None
    flips: bool = False

    def __call__(self, x_source: Tensor, x_target: Tensor) -> Tensor:
        """`[E, n], [E, n] -> [E, 2]`."""
        rays = _offset(x_source, x_target)
        up = unit_axis(self.axis, rays.shape[-1]).to(rays.dtype).to(rays.device)
        height = (rays @ up).unsqueeze(-1)
        across = length(rays - height * up).unsqueeze(-1)
        return torch.cat([height.abs() if self.flips else height, across], -1)


#: `x_j - x_i`: unchanged by translations alone.
offset = Measure(
    "offset",
    "edge",
    function=_offset,
    symmetry=PERMUTATIONS | Symmetry(["translation"]),
    width=None,
)


def along(axis: Sequence[float] | None = None, flips: bool = False) -> Measure:
    """The height along an axis and the distance across it, as an input of edges.

    Args:
        axis: Its direction, such as `(0, 0, 1)`; None for the last coordinate.
        flips: Whether up and down are equivalent: the measure is then the absolute height.

    Returns:
        A measure of width 2, invariant to translations, to rotations about the axis and to
        reflections along it; with `flips` also to flips of the axis.

    Example:
        >>> along((0, 1, 0)).width
        2
    """
    given = None if axis is None else tuple(float(a) for a in axis)
    kept = ["translation", "axis-rotation", "axis-reflection", *(["axis-flip"] if flips else [])]
    return Measure(
        "height size, distance across" if flips else "height, distance across",
        "edge",
        function=AlongAxis(given, flips),
        symmetry=PERMUTATIONS | Symmetry(kept),
        width=2,
    )


#: Translations.
TGN = Spec(
    "TGN",
    edge=[e, v.target, v.source, offset, u],
    node=[reduce(e), v, u],
    graph=[reduce(e), reduce(v), u],
)

#: Translations and dilations: TGN on coordinates scaled by 1 / (longest edge of the graph).
STGN = TGN.replace(name="STGN", scaling=1.0)


def upright(axis: Sequence[float] | None = None, flips: bool = False) -> Spec:
    """The block UGN, which is invariant to the motions that keep an axis.

    Args:
        axis: Its direction, such as `(0, 0, 1)`; None for the last coordinate.
        flips: Whether up and down are the same.

    Returns:
        A specification for :func:`symgnn.nn.build`.

    Example:
        >>> from symgnn.nn import build
        >>> str(build(upright()).symmetry)
        'translations, rotations about an axis, reflections along an axis, permutations'
    """
    name = "UGN+flips" if flips else "UGN"
    return TGN.replace(name=name, edge=[e, v.target, v.source, along(axis, flips), u])


#: The blocks for data with directions, by the names that `build` takes.
RUNGS: dict[str, Spec] = {
    spec.name.lower(): spec for spec in (TGN, STGN, upright(), upright(flips=True))
}


def axis_of(spec: Spec) -> tuple[float, ...] | None:
    """The axis that a specification reads along; None for the last coordinate, or for none.

    Raises:
        ValueError: where it reads along more than one, which no axis of motion keeps.
    """
    found = {
        getattr(each, "function", None) for each in spec.all_inputs if isinstance(each, Measure)
    }
    axes = {one.axis for one in found if isinstance(one, AlongAxis)}
    if len(axes) > 1:
        raise ValueError(f"axis: {spec.name} reads along {len(axes)} different axes; use one")
    return axes.pop() if axes else None
