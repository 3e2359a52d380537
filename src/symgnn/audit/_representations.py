"""How components of an input or output change when the graph is moved by a linear map.

A type is one of :data:`TYPES`; irreps of O(3) in e3nn's notation and order of components, such as
`"2x0e+1x1o+1x2e"`; or `"weight D"`, a conformal field, which a map of local scale W multiplies by
W^-D.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from functools import lru_cache

import torch
from torch import Tensor

from symgnn._argument_checks import suggestion

#: The types by name; irreps come in addition.
TYPES = (
    "invariant",
    "vector",
    "coordinates",
    "pseudoscalar",
    "pseudovector",
    "tensor",
    "symmetric tensor",
    "voigt",
)
#: Other words for them.
SYNONYMS = {"scalar": "invariant", "point": "coordinates", "points": "coordinates"}
_WEIGHT = re.compile(r"weight (-?\d+(?:\.\d*)?(?:e[+-]?\d+)?)")
_IRREP = re.compile(r"(?:(\d+)x)?(\d+)([eo])")


class Undefined(ValueError):  # noqa: N818
    """A transformation is not defined for a graph, an input or an output."""


@dataclass(frozen=True)
class Irrep:
    """`count` copies of the irrep of degree `degree`; `parity` is 1 (e) or -1 (o)."""

    count: int
    degree: int
    parity: int

    @property
    def size(self) -> int:
        """The number of components of one copy."""
        return 2 * self.degree + 1

    def __str__(self) -> str:
        return f"{self.count}x{self.degree}{'e' if self.parity == 1 else 'o'}"


def parse_weight(text: str) -> float | None:
    """The weight of a conformal field, such as `"weight 1.5"`; None for another type."""
    match = _WEIGHT.fullmatch(text)
    return None if match is None else float(match[1])


def parse_irreps(text: str) -> tuple[Irrep, ...] | None:
    """Irreps in e3nn's notation, such as `"2x0e+1o"`; None where the text is something else."""
    found = []
    for part in text.replace(" ", "").split("+"):
        match = _IRREP.fullmatch(part)
        if match is None:
            return None
        found.append(Irrep(int(match[1] or 1), int(match[2]), 1 if match[3] == "e" else -1))
    return tuple(found)


def canonical(text: str, name: str, field: str, n: int) -> str:
    """The usual spelling of a type, or a ValueError that names the nearest one."""
    wanted = " ".join(text.strip().lower().split())
    wanted = SYNONYMS.get(wanted, wanted)
    if parse_weight(wanted) is not None:
        return wanted
    irreps = parse_irreps(wanted)
    if irreps is not None:
        if n != 3:
            raise ValueError(
                f"{field}: {name!r} is declared as {text!r}, but the data has {n} dimensions and "
                "irreps are those of O(3); use vector, tensor or symmetric tensor"
            )
        return "+".join(map(str, irreps))
    if wanted not in TYPES:
        hint = suggestion(wanted, TYPES, cutoff=0.4, listed=True)
        raise ValueError(
            f"{field}: {name!r} is declared as {text!r}; {hint}, or "
            "irreps such as '1x0e+1x1o', or 'weight 2' for a conformal field, with ' per graph', "
            "' per node', ' per edge' or ' per pair' if it is ambiguous"
        )
    if wanted == "pseudovector" and n != 3:
        raise ValueError(
            f"{field}: {name!r} is declared as a pseudovector, but the data has {n} dimensions; "
            "pseudovectors exist in 3"
        )
    return wanted


def size_of(type_: str, n: int) -> int:
    """The number of components of one value of the type."""
    irreps = parse_irreps(type_)
    if irreps is not None:
        return sum(irrep.count * irrep.size for irrep in irreps)
    if parse_weight(type_) is not None:
        return 1
    symmetric = n * (n + 1) // 2
    sizes = {"invariant": 1, "pseudoscalar": 1, "tensor": n * n, "symmetric tensor": n * n}
    return {**sizes, "voigt": symmetric}.get(type_, n)


def blocks_of(type_: str, n: int) -> list[int]:
    """The sizes of the parts of a value that do not mix, in order."""
    irreps = parse_irreps(type_)
    if irreps is None:
        return [size_of(type_, n)]
    return [irrep.size for irrep in irreps for _ in range(irrep.count)]


def matrices(type_: str, linear: Tensor) -> Tensor:
    """The matrices `[R, d, d]` that act on values of the type, for linear maps `[R, n, n]`.

    A tensor moves like the outer product of two vectors, a pseudovector like their cross product
    and a pseudoscalar like a signed volume, under every linear map. Irreps are defined under
    rotations and reflections alone.

    Raises:
        Undefined: for irreps and a map that is not orthogonal.
    """
    n, irreps = linear.size(-1), parse_irreps(type_)
    if irreps is not None:
        return _irreps_matrices(irreps, linear)
    weight = parse_weight(type_)
    if weight is not None:  # W is the root of the volume's factor, in a conformal map
        return torch.linalg.det(linear).abs()[:, None, None] ** (-weight / n)
    if type_ == "vector":
        return linear
    if type_ == "pseudoscalar":
        return torch.linalg.det(linear)[:, None, None]
    if type_ == "pseudovector":
        inverse = torch.linalg.inv(linear)
        return torch.linalg.det(linear)[:, None, None] * inverse.mT
    outer = torch.einsum("rij,rkl->rikjl", linear, linear).reshape(len(linear), n * n, n * n)
    if type_ == "voigt":
        spread, take = _voigt(n)
        return take @ outer @ spread
    if type_ in ("tensor", "symmetric tensor"):
        return outer
    raise ValueError(f"type: {type_!r} has no matrix")


@lru_cache(maxsize=8)
def _voigt(n: int) -> tuple[Tensor, Tensor]:
    """The maps from Voigt's components to all n^2, and back: xx, yy, zz, yz, xz, xy."""
    pairs = [(i, i) for i in range(n)]
    off = [(i, j) for i in range(n) for j in range(i + 1, n)]
    pairs += sorted(off, key=lambda pair: (-pair[1], -pair[0]))
    spread = torch.zeros(n * n, len(pairs), dtype=torch.float64)
    take = torch.zeros(len(pairs), n * n, dtype=torch.float64)
    for k, (i, j) in enumerate(pairs):
        spread[i * n + j, k] = spread[j * n + i, k] = 1.0
        take[k, i * n + j] = 1.0
    return spread, take


def is_orthogonal(linear: Tensor) -> bool:
    """Whether all maps `[R, n, n]` are rotations or reflections, to rounding."""
    eye = torch.eye(linear.size(-1), dtype=linear.dtype)
    return bool(((linear @ linear.mT - eye).abs() < 1e-9).all())


def _irreps_matrices(irreps: tuple[Irrep, ...], linear: Tensor) -> Tensor:
    size = sum(irrep.count * irrep.size for irrep in irreps)
    out = torch.zeros(len(linear), size, size, dtype=torch.float64)
    if all(irrep.degree == 0 and irrep.parity == 1 for irrep in irreps):
        return out + torch.eye(size, dtype=torch.float64)
    if not is_orthogonal(linear):
        raise Undefined("it does not define how irreps transform; rotations and reflections do")
    sign = torch.linalg.det(linear).sign()[:, None, None]
    start = 0
    for irrep in irreps:
        turned = wigner(irrep.degree, sign * linear)
        turned = turned * (sign if irrep.parity == -1 else 1.0)
        for _ in range(irrep.count):
            stop = start + irrep.size
            out[:, start:stop, start:stop] = turned
            start = stop
    return out


def wigner(degree: int, rotation: Tensor) -> Tensor:
    """The matrices of degree l, `[R, 2l+1, 2l+1]`, of rotations `[R, 3, 3]`, in e3nn's order."""
    points, inverse = _harmonics_of_points(degree)
    turned = harmonics(degree, points @ rotation.mT)  # [R, P, 2l+1]
    return (inverse @ turned).mT


@lru_cache(maxsize=32)
def _harmonics_of_points(degree: int) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(degree)
    points = torch.randn(6 * degree + 6, 3, generator=generator, dtype=torch.float64)
    points = points / points.norm(dim=1, keepdim=True)
    return points, torch.linalg.pinv(harmonics(degree, points))


def harmonics(degree: int, points: Tensor) -> Tensor:
    """Real spherical harmonics of unit vectors `[..., 3]`, `[..., 2l+1]`, in e3nn's order.

    The polar axis is y, so that degree 1 is (x, y, z). The sum of squares is 1.
    """
    x, y, z = points[..., 2], points[..., 0], points[..., 1]  # the usual axes, z the polar one
    one = torch.ones_like(x)
    legendre: dict[tuple[int, int], Tensor] = {(0, 0): one}  # over sin^m, so a polynomial in z
    for m in range(degree + 1):
        if m:
            legendre[m, m] = (2 * m - 1) * legendre[m - 1, m - 1]
        for l in range(m + 1, degree + 1):
            before = legendre.get((l - 2, m), torch.zeros_like(x))
            top = (2 * l - 1) * z * legendre[l - 1, m] - (l + m - 1) * before
            legendre[l, m] = top / (l - m)
    cosine, sine = [one], [torch.zeros_like(x)]  # of m phi, times sin^m
    for _ in range(degree):
        cosine.append(x * cosine[-1] - y * sine[-1])
        sine.append(x * sine[-1] + y * cosine[-2])
    found = []
    for m in range(-degree, degree + 1):
        size = abs(m)
        norm = math.sqrt((2 if m else 1) * math.factorial(degree - size))
        norm /= math.sqrt(math.factorial(degree + size))
        angle = sine[size] if m < 0 else cosine[size]
        found.append(norm * legendre[degree, size] * angle)
    return torch.stack(found, -1)
