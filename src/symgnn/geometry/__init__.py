"""Coordinates in n dimensions: measures, their symmetries, and random transformations."""

from symgnn.geometry.axis_motions import AxisFlip, AxisReflection, AxisRotation
from symgnn.geometry.deformations import AngleFlex, Flex, NoSuchTransformation, Redrawing
from symgnn.geometry.kinds import TRANSFORMATIONS
from symgnn.geometry.measures import angle, direction, kappa, length, ray_pairs, squared_distance
from symgnn.geometry.mechanisms import folding_square, hoberman_sphere
from symgnn.geometry.part_motions import PartMotion
from symgnn.geometry.symmetry import (
    AFFINE,
    ANGLES,
    EUCLIDEAN,
    EVERYTHING,
    KINDS,
    LENGTHS,
    MOEBIUS,
    PERMUTATIONS,
    SIMILARITIES,
    STARS,
    Symmetry,
)
from symgnn.geometry.torsion import Torsion
from symgnn.geometry.transformations import (
    Affine,
    Dilation,
    Inversion,
    Permutation,
    Reflection,
    Rotation,
    SpecialConformal,
    Transformation,
    Translation,
    affine_scale,
    random_orthogonal,
)

__all__ = [
    "AFFINE",
    "ANGLES",
    "EUCLIDEAN",
    "EVERYTHING",
    "KINDS",
    "LENGTHS",
    "MOEBIUS",
    "PERMUTATIONS",
    "SIMILARITIES",
    "STARS",
    "TRANSFORMATIONS",
    "Affine",
    "AngleFlex",
    "AxisFlip",
    "AxisReflection",
    "AxisRotation",
    "Dilation",
    "Flex",
    "Inversion",
    "NoSuchTransformation",
    "PartMotion",
    "Permutation",
    "Redrawing",
    "Reflection",
    "Rotation",
    "SpecialConformal",
    "Symmetry",
    "Torsion",
    "Transformation",
    "Translation",
    "affine_scale",
    "angle",
    "direction",
    "folding_square",
    "hoberman_sphere",
    "kappa",
    "length",
    "random_orthogonal",
    "ray_pairs",
    "squared_distance",
]
