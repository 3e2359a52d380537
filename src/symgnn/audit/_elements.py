"""Random elements of each kind and any size."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Generator, Tensor

from symgnn.audit._representations import Undefined
from symgnn.geometry import (
    TRANSFORMATIONS,
    Affine,
    AngleFlex,
    Dilation,
    Flex,
    PartMotion,
    Permutation,
    Redrawing,
    Reflection,
    Rotation,
    SpecialConformal,
    Torsion,
    Transformation,
    Translation,
)
from symgnn.geometry.symmetry import AXIAL, plural

if TYPE_CHECKING:
    from symgnn.audit._structures import Graph

#: Kinds that come in any size, down to the identity.
SIZED = (
    "permutation",
    "translation",
    "rotation",
    "dilation",
    "special-conformal",
    "affine",
    "torsion",
    "flex",
    "redrawing",
    "angle-flex",
)
#: Kinds that need edges, move the nodes and say nothing of the space between them.
LOCAL = ("torsion", "flex", "redrawing", "angle-flex", "part-motion")
#: Kinds that are found by linear algebra, with the number of nodes that is not too many for it.
SEARCHED = {"flex": 300, "redrawing": 300, "angle-flex": 60}
#: Kinds that act on the nodes, not on space.
OF_NODES = ("permutation", *LOCAL)
#: Kinds whose linear part is the same everywhere.
UNIFORM = (
    "permutation",
    "translation",
    "rotation",
    "reflection",
    "dilation",
    "affine",
    *AXIAL,
)


def draw(
    kind: str,
    data: Graph,
    generator: Generator,
    size: float = 1.0,
    axis: Sequence[float] | None = None,
) -> Transformation:
    """A random element; `size` 1 is that of :mod:`symgnn.geometry`, 0 is the identity."""
    n = data.pos.size(1)
    if kind == "rotation" and n == 1:
        raise Undefined("there are no rotations in one dimension")
    if kind in LOCAL and data.edge_index is None:
        raise Undefined("the data has no edge_index, which determines the parts that can move")
    if data.num_nodes > SEARCHED.get(kind, data.num_nodes):
        raise Undefined(
            f"the graph has more than {SEARCHED[kind]} nodes, too many to look for {plural(kind)}"
        )
    if kind == "affine":
        return Affine.random(data.pos, generator=generator, mu=size)
    if kind in AXIAL:
        make_about: Any = TRANSFORMATIONS[kind]
        about: Transformation = make_about.random(data.pos, generator=generator, axis=axis)
        return about
    try:
        if kind in ("flex", "angle-flex"):
            make = Flex if kind == "flex" else AngleFlex
            return make.random(data.pos, data.edge_index, generator=generator, size=0.3 * size)
        if kind == "part-motion":
            part = getattr(data, "part", None)
            return PartMotion.random(data.pos, data.edge_index, generator=generator, part=part)
        element = TRANSFORMATIONS[kind].random(data.pos, data.edge_index, generator=generator)
    except ImportError as error:  # torch and numpy are enough for all others
        raise Undefined(f"it needs {error.name}: pip install {error.name}") from error
    return element if size == 1 else resized(element, size)


def resized(element: Transformation, size: float) -> Transformation:
    """The same element, but of another size; as it is where it has none."""
    if isinstance(element, Translation):
        return Translation(size * element.offset)
    if isinstance(element, Rotation):
        return Rotation(_power(element.matrix, size))
    if isinstance(element, Dilation):
        return Dilation(element.factor**size)
    if isinstance(element, SpecialConformal):
        return SpecialConformal(size * element.vector, element.centre)
    if isinstance(element, Torsion) and len(element.matrix) > 2:
        return replace(element, matrix=_power(element.matrix, size))
    if isinstance(element, Redrawing):  # a share of a redrawing is one
        share = size * (element.displaced - element.original)
        return Redrawing(element.original, element.original + share)
    if isinstance(element, Permutation):
        count = max(2, round(size * len(element.order)))
        chosen = element.order[:count]
        order = torch.arange(len(element.order))
        order[chosen.sort().values] = chosen if count > 2 else chosen.sort().values.flip(0)
        return Permutation(order)
    return element


def _power(matrix: Tensor, size: float) -> Tensor:
    """A rotation by a share of its angles."""
    values, vectors = np.linalg.eig(matrix.numpy())
    share = np.exp(1j * size * np.angle(values))
    turned = np.real(vectors @ np.diag(share) @ np.linalg.inv(vectors))
    u, _, v = np.linalg.svd(turned)  # the rotation next to it, free of rounding
    return torch.from_numpy(u @ v)


def spread_rotations(n: int, count: int, generator: Generator) -> list[Rotation]:
    """Rotations that cover SO(n) evenly: super-Fibonacci spirals in 3 dimensions, else random."""
    if n == 2:
        start = float(torch.rand((), generator=generator, dtype=torch.float64))
        angles = [2 * math.pi * (k + start) / count for k in range(count)]
        pairs = [(math.cos(a), math.sin(a)) for a in angles]
        return [Rotation(torch.tensor([[c, -s], [s, c]], dtype=torch.float64)) for c, s in pairs]
    if n != 3:
        from symgnn.geometry.sampling import random_rotation

        return [Rotation(random_rotation(n, generator)) for _ in range(count)]
    phi, psi = math.sqrt(2.0), 1.533751168755204288118041
    found = []
    for k in range(count):
        s = k + 0.5
        r, big = math.sqrt(s / count), math.sqrt(1 - s / count)
        a, b = 2 * math.pi * s / phi, 2 * math.pi * s / psi
        quaternion = (r * math.sin(a), r * math.cos(a), big * math.sin(b), big * math.cos(b))
        found.append(Rotation(_of_quaternion(*quaternion)))
    return found


def _of_quaternion(x: float, y: float, z: float, w: float) -> Tensor:
    rows = [
        [1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w)],
        [2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w)],
        [2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)],
    ]
    return torch.tensor(rows, dtype=torch.float64)


def aligning(vector: Tensor, axis: Tensor) -> Rotation:
    """The rotation in the plane of two unit vectors `[n]` that takes the first to the second."""
    n = len(vector)
    c = float(vector @ axis)
    eye = torch.eye(n, dtype=torch.float64)
    if c < -0.99:  # nearly opposite: half a turn in a plane with the vector, then the rest
        other = torch.linalg.qr(torch.stack([vector, *eye], 1)).Q[:, 1]
        half = eye - 2 * vector.outer(vector) - 2 * other.outer(other)
        return Rotation(aligning(-vector, axis).matrix @ half)
    skew = axis.outer(vector) - vector.outer(axis)
    u, _, v = torch.linalg.svd(eye + skew + skew @ skew / (1 + c))
    return Rotation(u @ v)  # orthogonal to the last digit


def linear_part(element: Transformation, pos: Tensor) -> Tensor:
    """The derivative of the map at each point, `[N, n] -> [N, n, n]`."""
    n = pos.size(1)
    same = torch.eye(n, dtype=torch.float64).expand(len(pos), n, n)
    if isinstance(element, Permutation | Translation):
        return same
    if isinstance(element, Torsion):
        return torch.where(element.moved[:, None, None], element.matrix, same)
    if isinstance(element, PartMotion):
        return element.matrices[element.part]
    if isinstance(element, Rotation | Reflection):
        return element.matrix.double().expand(len(pos), n, n)
    if isinstance(element, Dilation):
        return element.factor * same
    if isinstance(element, Affine):
        return (element.factor * element.matrix.double()).expand(len(pos), n, n)
    if element.name in ("flex", "redrawing", "angle-flex"):
        raise Undefined(f"{article(element.name)} does not define how vectors transform")
    at = torch.func.jacrev(lambda point: element(point.unsqueeze(0))[0])
    return torch.func.vmap(at)(pos.double())


def describe(element: Transformation) -> str:
    """An element in a few words."""
    if isinstance(element, Translation):
        return f"a shift by {_vector(element.offset)}"
    if isinstance(element, Rotation):
        cosine = (float(element.matrix.trace()) - len(element.matrix) + 2) / 2
        if len(element.matrix) > 3:
            return f"a rotation in {len(element.matrix)} dimensions"
        return f"a rotation by {np.degrees(np.arccos(np.clip(cosine, -1, 1))):.1f} degrees"
    if isinstance(element, Dilation):
        return f"a scaling by {element.factor:.4g}"
    if isinstance(element, Permutation):
        moved = (element.order != torch.arange(len(element.order))).nonzero().flatten().tolist()
        if len(moved) == 2:
            return f"a swap of nodes {moved[0]} and {moved[1]}"
        return f"a reordering of {len(moved)} nodes"
    if isinstance(element, Torsion):
        return f"a torsion about the edge {element.bridge[0]}-{element.bridge[1]}"
    words = {
        "part-motion": "a motion of parts",
        "special-conformal": "a special conformal map",
        "affine": "an affine map",
    }
    if element.name == "reflection":
        return f"a mirror with normal {_vector(element.normal)}"  # type: ignore[attr-defined]
    return words.get(element.name, article(element.name))


def article(kind: str) -> str:
    """A kind as one transformation, in words."""
    name = kind.replace("-", " ")
    return f"an {name}" if name[0] in "aeiou" else f"a {name}"


def _vector(values: Tensor) -> str:
    return "(" + ", ".join(f"{value:.3g}" for value in values.tolist()) + ")"
