"""Angle updates of product form, whose sums cost as much as edges do.

    a_jik = g_j * h_k * Q(t_jik),   g_j = W [first ray, vertex, u] + b,   h_k likewise,

in each channel, where t is the inner product of a vector of each ray, such as the cosine of the
angle, and Q is a polynomial. The sum over k of all angles of a ray j is g_j times an inner product
of moments (:mod:`symgnn.nn._engine.moments`), so only sums and means of `a` can be read.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import torch
from torch import Tensor, nn

from symgnn._argument_checks import check_count, check_flag
from symgnn.geometry.conformal_rays import conformal_rays
from symgnn.geometry.measures import direction
from symgnn.geometry.symmetry import ANGLES, MOEBIUS, STARS
from symgnn.nn.form import AffineMap, After, Form, Width, linear
from symgnn.nn.inputs import Input, Measure, Reduction, kappa, theta
from symgnn.nn.polynomials import BASES, polynomials, powers_of
from symgnn.nn.spec import Spec

if TYPE_CHECKING:
    from symgnn.nn.update import Update

#: The largest degree: in single precision, powers of higher degree cancel to nothing.
MAX_DEGREE = 12


def inner_product(first: Tensor, second: Tensor, *_: Any) -> Tensor:
    """`[..., n], [..., n] -> [...]`."""
    return (first * second).sum(-1)


@dataclass(frozen=True, repr=False)
class RayProduct(Measure):
    """A measure of angles that is the inner product of what `per_ray` gives for the two rays.

    Args:
        unit: Whether these vectors have length 1, or 0 for a ray of length zero.
    """

    unit: bool = False

    def __post_init__(self) -> None:
        if self.domain != "angle" or self.per_ray is None or self.function is not inner_product:
            raise ValueError(
                f"{self.name}: a RayProduct is on angles, with function=inner_product and per_ray"
            )


#: The cosine of the angle; 0 where a ray has no length.
cosine = RayProduct(
    "cosine",
    "angle",
    function=inner_product,
    symmetry=ANGLES,
    per_ray=direction,
    unit=True,
)
#: The inner products of inverted, centred and normalised rays, which all Moebius maps keep.
conformal_product = RayProduct(
    "conformal_product",
    "angle",
    function=inner_product,
    symmetry=MOEBIUS | STARS,
    per_ray=conformal_rays,
    grouped=True,
)

#: The measure of product form that stands in for a measure of an MLP.
STANDS_IN: dict[Input, RayProduct] = {theta: cosine, kappa: conformal_product}


class Separable(Form):
    """The product form `g * h * Q(t)`, with one polynomial Q for each channel.

    Args:
        widths: The width of each input.
        out: The number of channels.
        hidden: Not used: there are no hidden layers.
        inputs: What is read: one :class:`RayProduct`, and values at the first ray (for g), the
            second ray (for h), the vertex and the graph (for both).
        degree: The degree of Q.
        basis: "chebyshev" or "legendre", of the polynomials whose coefficients are learned.
        tied: Whether h is the same map as g; then the inputs of both rays must be the same.

    Shapes:
        `coefficients [out, degree + 1]`; g and h are `[rows, out]`.
    """

    takes_update = True
    on_rays = True
    in_powers: Tensor  # [degree + 1, degree + 1], the powers in each polynomial of the basis

    def __init__(
        self,
        widths: Sequence[int],
        out: int,
        hidden: int,
        inputs: Sequence[Input],
        *,
        degree: int = 3,
        basis: str = "chebyshev",
        tied: bool = False,
    ) -> None:
        super().__init__(widths, out, hidden)
        self.degree, self.basis, self.inputs, self.tied = degree, basis, list(inputs), tied
        if tied and not mirrored(inputs):
            raise ValueError(
                f"tied: is True, but the two rays of an angle are read for different inputs, "
                f"{', '.join(map(str, inputs))}; read each input at both, or leave tied out"
            )
        products = [each for each in inputs if isinstance(each, RayProduct)]
        if len(products) != 1:
            raise ValueError(
                f"angle: product form reads one RayProduct, such as cosine; it has {products}"
            )
        self.product = products[0]
        #: Of each input, whether g and whether h reads it.
        self.sides = [_sides(each) for each in inputs]
        #: Of g and of h, the numbers of the inputs in the order of the columns of its map.
        self.columns = [[k for k, read in enumerate(self.sides) if read[h]] for h in (0, 1)]
        self.first = AffineMap(sum(widths[k] for k in self.columns[0]), out)
        self.second = None
        if tied:
            self.columns[1] = [_mirror(self.inputs, k) for k in self.columns[0]]
        else:
            self.second = AffineMap(sum(widths[k] for k in self.columns[1]), out)
        table = torch.tensor(powers_of(basis, degree), dtype=torch.float64)
        self.register_buffer("in_powers", table, persistent=False)
        self.coefficients = nn.Parameter(torch.empty(out, degree + 1))
        self.reset_parameters()

    @property
    def factors(self) -> tuple[AffineMap, AffineMap]:
        """The maps g and h."""
        return self.first, self.first if self.second is None else self.second

    def reset_parameters(self) -> None:
        """Draw all weights anew: g, h and Q each have a variance of about 1."""
        for each in self.factors[: 1 if self.tied else 2]:
            nn.init.normal_(each.weight, std=max(each.in_features, 1) ** -0.5)
            nn.init.ones_(each.bias)
        nn.init.normal_(self.coefficients, std=(self.degree + 1) ** -0.5)

    def calibrate(self, *values: Tensor) -> None:
        """Rescale Q so that the products have a root mean square of 1."""
        rows = self.here(*values)
        size = float(rows.square().mean().sqrt()) if rows.numel() else 0.0
        if size > 0:
            self.coefficients.div_(size)

    def maps(self) -> list[Tensor | None]:
        """The columns `[out, width]` of g and of h for each input, one after the other."""
        found: list[Tensor | None] = [None] * (2 * len(self.widths))
        for half, (each, read) in enumerate(zip(self.factors, self.columns, strict=True)):
            columns: tuple[Tensor, ...] = (
                each.weight.split([self.widths[number] for number in read], 1) if read else ()
            )
            for number, map in zip(read, columns, strict=True):
                found[2 * number + half] = map
        return found

    @property
    def bias(self) -> Tensor:
        """The biases of g and h `[2 out]`, or `[out]` where they are tied."""
        if self.second is None:
            return self.first.bias
        return torch.cat([self.first.bias, self.second.bias])

    def home(self, *values: Tensor) -> list[Tensor]:
        """Each input times its columns of g, of h or of both; the product as it is."""
        maps, found = self.maps(), []
        for number, value in enumerate(values):
            mine = [map for map in maps[2 * number : 2 * number + 2] if map is not None]
            found.append(linear(value, torch.cat(mine)) if mine else value)
        return found

    def here(self, *values: Tensor) -> Tensor:
        """The product on each angle `[A, out]`."""
        g: Tensor = self.factors[0].bias
        h: Tensor = self.factors[1].bias
        for (of_first, of_second), value in zip(self.sides, values, strict=True):
            if of_first:
                g = g + value[:, : self.out]
            if of_second:
                h = h + value[:, -self.out :]
        (t,) = (v for each, v in zip(self.inputs, values, strict=True) if each == self.product)
        return g * h * polynomial(t, self.coefficients.to(t.dtype), self.basis)

    def powers(self) -> Tensor:
        """The coefficients of the powers of t in Q `[out, degree + 1]`."""
        return self.coefficients @ self.in_powers.to(self.coefficients.dtype)

    def extra_repr(self) -> str:
        """The polynomial."""
        tied = ", tied" if self.tied else ""
        return f"{super().extra_repr()}degree={self.degree}, basis={self.basis!r}{tied}"


@dataclass(frozen=True)
class ProductForm:
    """Makes a :class:`Separable`, as the form of an angle update in a :class:`Spec`.

    Args:
        degree: The degree of the polynomials.
        basis: "chebyshev" or "legendre".
        channels: How many products there are; None for as many as other values have numbers.
        tied: Whether g and h are the same map.
    """

    degree: int = 3
    basis: str = "chebyshev"
    channels: int | None = None
    tied: bool = False
    takes_update: ClassVar[bool] = True
    on_rays: ClassVar[bool] = True

    def __call__(
        self,
        widths: Sequence[int],
        out: int,
        hidden: int,
        *,
        update: Update,
        width: Width,
    ) -> Separable:
        """The form of the inputs of an update."""
        if update.after != After():
            raise ValueError(f"after: is {update.after} for 'angle', but a separable one has none")
        if update.rows_read:
            raise ValueError(
                "aggregation: a separable angle update gives sums and means over angles alone, but "
                "its value is read by 'max', or angle by angle; use 'sum' or 'mean' for a->v, a->e "
                "and a->u"
            )
        return Separable(
            widths,
            self.channels or out,
            hidden,
            update.inputs,
            degree=self.degree,
            basis=self.basis,
            tied=self.tied,
        )


def polynomial(t: Tensor, coefficients: Tensor, basis: str) -> Tensor:
    """`sum_p coefficients_cp P_p(t)`, `[A, 1], [c, p] -> [A, c]`."""
    return torch.cat(polynomials(t, coefficients.shape[1] - 1, basis), -1) @ coefficients.T


def _sides(given: Input) -> tuple[bool, bool]:
    """Whether g reads an input, and whether h does."""
    if isinstance(given, RayProduct):
        return False, False
    if given.domain == "angle":
        raise ValueError(
            f"angle: a separable update reads {given}, but product form has values on rays, the "
            f"vertex and the graph alone; leave {given} out"
        )
    place = given.place.partition(" ")[0]
    return place != "second", place != "first"


def mirrored(inputs: Sequence[Input]) -> bool:
    """Whether the first ray of an angle is read for the same inputs as the second."""
    rays: dict[str, list[Input]] = {"first": [], "second": []}
    for each in inputs:
        ray, _, edge = each.place.partition(" ")
        if ray in rays:
            rays[ray].append(each.at(edge))
    return sorted(map(repr, rays["first"])) == sorted(map(repr, rays["second"]))


def _mirror(inputs: Sequence[Input], number: int) -> int:
    """The number of the input that is read on the second ray as this one is on the first."""
    given = inputs[number]
    if not given.place.startswith("first"):
        return number
    return list(inputs).index(given.at(given.place.replace("first", "second")))


def separable(
    spec: Spec,
    degree: int = 3,
    basis: str = "chebyshev",
    channels: int | None = None,
    tied: bool = False,
) -> Spec:
    """A specification with an angle update of product form, whose sums cost as much as edges.

    The angle becomes its cosine, kappa the inner product of inverted, centred and normalised rays,
    and the old value `a` of the angle is no longer read.

    Args:
        spec: Any specification with an angle update that is an MLP, such as `AGN`.
        degree: The degree of the polynomials, from 0 to 12.
        basis: "chebyshev" or "legendre".
        channels: How many products there are, by which the cost grows; None for as many as other
            values have numbers.
        tied: Whether g and h are the same map, which takes less time; the two rays of an angle must
            then be read for the same inputs.

    Returns:
        The specification `NAME-separable`.

    Example:
        >>> from symgnn.nn import AGN
        >>> print(separable(AGN).angle)
        (v.vertex, v.first, v.second, cosine, u)
    """
    if isinstance(degree, bool) or not isinstance(degree, int) or not 0 <= degree <= MAX_DEGREE:
        raise ValueError(f"degree: is {degree!r}; give a whole number from 0 to {MAX_DEGREE}")
    if channels is not None:
        check_count("channels", channels, 1)
    if basis not in BASES:
        raise ValueError(f"basis: is {basis!r}; choose from {', '.join(BASES)}")
    check_flag("tied", tied)
    if not spec.angle:
        raise ValueError(f"separable: {spec.name} has no angle update; use agn, combined or cgn")
    if not isinstance(spec.forms.get("angle", ProductForm()), ProductForm):
        raise ValueError(
            f"separable: {spec.name} has a form of its own for angles; give a specification whose "
            "angle update is an MLP"
        )
    angle = spec.angle
    if "angle" not in spec.forms:
        angle = [STANDS_IN.get(each.home, each) for each in spec.angle if each.reads != "a"]
    for domain in ("edge", "node", "graph"):
        for each in spec[domain]:
            if isinstance(each, Reduction) and each.of.home in STANDS_IN:
                raise ValueError(
                    f"separable: the {domain} update of {spec.name} reads {each}, which needs the "
                    "angles listed; leave it out"
                )
    forms = {**spec.forms, "angle": ProductForm(degree, basis, channels, tied)}
    name = spec.name if spec.name.endswith("-separable") else f"{spec.name}-separable"
    return spec.replace(name=name, angle=angle, forms=forms)
