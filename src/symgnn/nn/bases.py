"""Radial and angular bases, as used by networks for molecules.

Each basis is a :class:`Measure`, created by a function that takes its size and its cutoff. Bases
with an envelope are 0 for distances beyond the cutoff.
"""

from __future__ import annotations

import math
from functools import partial
from itertools import pairwise

import numpy as np
import torch
import torch.nn.functional as F
from scipy.optimize import brentq
from scipy.special import spherical_jn
from torch import Tensor, nn

from symgnn.geometry.measures import direction, length, squared_distance
from symgnn.geometry.symmetry import ANGLES, LENGTHS
from symgnn.nn.inputs import Applied, Measure


def gaussians(count: int, cutoff: float) -> Measure:
    """`exp(-(d - mu)^2 / (2 s^2))` with mu from 0 to the cutoff, s apart: SchNet's basis."""
    make = Applied(Gaussians, (count, cutoff))
    return Measure("gaussians", "edge", symmetry=LENGTHS, width=count, make=make, both_ways=True)


def cosine_cutoff(cutoff: float) -> Measure:
    """`(cos(pi d / cutoff) + 1) / 2`; as in SchNet's code it is not cut off beyond the cutoff."""
    function = Applied(_cosine, (cutoff,))
    return Measure("cosine", "edge", function=function, symmetry=LENGTHS, both_ways=True)


def bessel(count: int, cutoff: float, exponent: int = 5) -> Measure:
    """`envelope(d / cutoff) sin(f d / cutoff)`, the frequencies f are learnt: DimeNet's basis."""
    make = Applied(Bessel, (count, cutoff, exponent))
    return Measure("bessel", "edge", symmetry=LENGTHS, width=count, make=make, both_ways=True)


def fourier(count: int) -> Measure:
    """`sin(d^2 / 2^k)`, `cos(d^2 / 2^k)` for k < count, and `d^2` itself: egnn-pytorch's basis."""
    function = Applied(_fourier, (count,))
    width = 2 * count + 1
    return Measure(
        "fourier", "edge", function=function, symmetry=LENGTHS, width=width, both_ways=True
    )


def spherical(
    degrees: int, count: int, cutoff: float, exponent: int = 5, at: str = "vertex"
) -> Measure:
    """`envelope(d) j_l(z_lk d) Y_l(angle)`, l < degrees, k < count, of the second ray's length d.

    With `at="vertex"` (DimeNet++) the angle is that between the first ray and the reverse of the
    second; with `at="end"` (DimeNet) it is the angle at the end of the first ray.
    """
    make = Applied(Spherical, (degrees, count, cutoff, exponent, at))
    return Measure(
        "spherical", "angle", symmetry=LENGTHS & ANGLES, width=degrees * count, make=make
    )


def _fourier(count: int, x: Tensor, y: Tensor) -> Tensor:
    square = squared_distance(x, y).unsqueeze(-1)
    waves = square / 2 ** torch.arange(count, device=x.device)
    return torch.cat([waves.sin(), waves.cos(), square], -1)


def _cosine(cutoff: float, x: Tensor, y: Tensor) -> Tensor:
    return 0.5 * (torch.cos(length(x - y) * (math.pi / cutoff)) + 1)


class Gaussians(nn.Module):
    """`[E, n], [E, n] -> [E, count]`."""

    centres: Tensor

    def __init__(self, count: int, cutoff: float) -> None:
        super().__init__()
        self.register_buffer("centres", torch.linspace(0, cutoff, count))
        self.sharpness = -0.5 / float(self.centres[1] - self.centres[0]) ** 2

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        """The basis of the distances.

        What is far below all rounding is 0: processors take many times as long for numbers that
        are almost too small, and for their products.
        """
        away = length(x - y).unsqueeze(-1) - self.centres
        values = torch.exp(self.sharpness * away.square())
        return F.threshold(values, torch.finfo(values.dtype).eps ** 4, 0.0)


class Bessel(nn.Module):
    """`[E, n], [E, n] -> [E, count]`."""

    def __init__(self, count: int, cutoff: float, exponent: int) -> None:
        super().__init__()
        self.cutoff, self.exponent = cutoff, exponent
        self.frequencies = nn.Parameter(torch.empty(count))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Back to the whole multiples of pi."""
        with torch.no_grad():
            self.frequencies.copy_(math.pi * torch.arange(1, len(self.frequencies) + 1))

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        """The basis of the distances."""
        d = _positive(length(x - y).unsqueeze(-1) / self.cutoff)
        return envelope(d, self.exponent) * torch.sin(self.frequencies * d)


class Spherical(nn.Module):
    """`[A, n], [A, n] -> [A, degrees * count]`; the radial part is computed once per ray."""

    zeros: Tensor
    scale: Tensor
    factors: Tensor | None

    def __init__(self, degrees: int, count: int, cutoff: float, exponent: int, at: str) -> None:
        super().__init__()
        if at not in ("vertex", "end"):
            raise ValueError(f"at: is {at!r}; the angle is at the 'vertex' or at the 'end'")
        self.degrees, self.cutoff, self.exponent, self.at = degrees, cutoff, exponent, at
        zeros = bessel_zeros(degrees, count)
        degree = np.arange(degrees)[:, None]
        scale = 1 / np.sqrt(0.5 * spherical_jn(degree + 1, zeros) ** 2)
        self.register_buffer("zeros", torch.from_numpy(zeros))
        self.register_buffer("scale", torch.from_numpy(scale))

        self.register_buffer("factors", None)

    def tabulate(self, forms: tuple[np.ndarray, np.ndarray]) -> None:
        """Take `sum_m (c_m sin(z x) + d_m cos(z x)) / x^m` for the radial functions instead.

        `forms` are z `[l, k]` and the factors c and d `[l, k, 2, l]`.
        """
        self.zeros, self.factors = (torch.from_numpy(f) for f in forms)

    def _apply(self, function, recurse: bool = True):  # type: ignore[no-untyped-def]
        """Move between devices; the constants stay in float64, for every dtype of the model."""
        kept = {name: buffer for name, buffer in self.named_buffers() if buffer is not None}
        super()._apply(function, recurse)
        for name, buffer in kept.items():
            setattr(self, name, buffer.to(getattr(self, name).device))
        return self

    def per_ray(self, rays: Tensor) -> tuple[Tensor, Tensor]:
        """The parts of a first and of a second ray: the direction, and the radial part."""
        along = direction(rays) if self.at == "vertex" else rays
        radial = self.radial(length(rays) / self.cutoff)
        return along, torch.cat([along, radial.to(along.dtype)], -1)

    def radial(self, d: Tensor) -> Tensor:
        """`envelope(d) j_l(z_lk d)` for distances in units of the cutoff, `[R] -> [R, l k]`.

        In float64: in float32 the closed form of j_l would lose most of its digits.
        """
        d = _positive(d.double()[:, None, None])
        if self.factors is None:
            waves = self.scale * spherical_bessel(self.degrees, self.zeros * d)
        else:
            phase = self.zeros * d
            powers = d[:, 0] ** -torch.arange(1, self.degrees + 1, device=d.device)
            of_sine, of_cosine = (
                (powers @ factors.flatten(0, 1).T).view_as(phase)
                for factors in self.factors.unbind(2)
            )
            waves = of_sine * phase.sin() + of_cosine * phase.cos()
        return (envelope(d, self.exponent) * waves).flatten(1)

    def forward(self, first: Tensor, second: Tensor) -> Tensor:
        """The basis of the angles."""
        second, radial = second.split([first.shape[-1], second.shape[-1] - first.shape[-1]], -1)
        if self.at == "vertex":
            cosine = -(first * second).sum(-1)
        else:
            cosine = (direction(-first) * direction(second - first)).sum(-1)
        waves = harmonics(self.degrees, cosine).unsqueeze(-1)
        return (waves * radial.unflatten(-1, (self.degrees, -1))).flatten(1)


def _positive(d: Tensor) -> Tensor:
    """Distances that are not zero: of points in one place, the basis has its limit, nearly."""
    return d.clamp(min=1e-6)


def envelope(d: Tensor, exponent: int) -> Tensor:
    """`1/d + a d^(p-1) + b d^p + c d^(p+1)`, p = exponent + 1, and 0 from d = 1 on.

    a, b and c make it end with two continuous derivatives.
    """
    p = exponent + 1
    a, b, c = -(p + 1) * (p + 2) / 2, p * (p + 2), -p * (p + 1) / 2
    inside = d < 1
    d = torch.where(inside, d, 1.0)  # far out, powers would overflow, and their gradients with them
    return torch.where(inside, 1 / d + d ** (p - 1) * (a + d * (b + c * d)), 0.0)


def harmonics(degrees: int, cosine: Tensor) -> Tensor:
    """`sqrt((2 l + 1) / 4 pi) P_l(cosine)` for l < degrees, `[A] -> [A, degrees]`."""
    legendre = [torch.ones_like(cosine), cosine]
    for degree in range(1, degrees - 1):
        new = (2 * degree + 1) * cosine * legendre[-1] - degree * legendre[-2]
        legendre.append(new / (degree + 1))
    norm = [math.sqrt((2 * degree + 1) / (4 * math.pi)) for degree in range(degrees)]
    return torch.stack([n * p for n, p in zip(norm, legendre, strict=False)], -1)


def spherical_bessel(degrees: int, y: Tensor) -> Tensor:
    """`j_l(y_l)` for l < degrees, `[R, degrees, k] -> [R, degrees, k]`, y > 0, with gradients."""
    values = []
    for degree in range(degrees):
        x = y[:, degree]
        small = x < 0.5 + degree / 2
        # upwards from j_0 and j_1: loses digits only where x is much smaller than the degree
        safe = torch.where(small, 1.0 + degree, x)
        below, value = torch.cos(safe) / safe, torch.sin(safe) / safe
        for k in range(degree):
            below, value = value, (2 * k + 1) / safe * value - below
        values.append(torch.where(small, _series(degree, torch.where(small, x, 0.0)), value))
    return torch.stack(values, 1)


def _series(degree: int, x: Tensor) -> Tensor:
    """The power series of j_l, for x below `0.5 + l / 2`."""
    half = x.square() / 2
    total = term = torch.ones_like(x)
    for k in range(1, 12):
        term = -term * half / (k * (2 * degree + 2 * k + 1))
        total = total + term
    return total * x**degree / math.prod(range(1, 2 * degree + 2, 2))


def bessel_zeros(degrees: int, count: int) -> np.ndarray:
    """The first positive zeros of the spherical Bessel functions, `[degrees, count]`.

    Those of j_l lie one each between those of j_(l - 1).
    """
    between = np.pi * np.arange(1, count + degrees)
    rows = [between[:count]]
    for degree in range(1, degrees):
        wave = partial(spherical_jn, degree)
        between = np.array([brentq(wave, *ends, xtol=1e-14) for ends in pairwise(between)])
        rows.append(between[:count])
    return np.stack(rows)
