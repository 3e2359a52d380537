"""Every kind of transformation by its name."""

from __future__ import annotations

from symgnn.geometry.axis_motions import AxisFlip, AxisReflection, AxisRotation
from symgnn.geometry.base import Transformation
from symgnn.geometry.deformations import AngleFlex, Flex, Redrawing
from symgnn.geometry.part_motions import PartMotion
from symgnn.geometry.torsion import Torsion
from symgnn.geometry.transformations import (
    Affine,
    Dilation,
    Inversion,
    Permutation,
    Reflection,
    Rotation,
    SpecialConformal,
    Translation,
)

#: Every kind of transformation by its name.
TRANSFORMATIONS: dict[str, type[Transformation]] = {
    kind.name: kind
    for kind in (
        Permutation,
        Translation,
        Rotation,
        Reflection,
        Dilation,
        Inversion,
        SpecialConformal,
        Affine,
        Torsion,
        Flex,
        Redrawing,
        AngleFlex,
        PartMotion,
        AxisRotation,
        AxisReflection,
        AxisFlip,
    )
}
