"""Options that modify a block: `separable=True`, `filtered=True` and `chiral=True`."""

from __future__ import annotations

import inspect

from symgnn.nn.architectures import AGN, AGN_DISTANCES, AGN_EDGES, AGN_TO_EDGES, CGN, COMBINED
from symgnn.nn.filtered import filtered as filtered_of
from symgnn.nn.filtered import is_filtered
from symgnn.nn.handedness import chiral as chiral_of
from symgnn.nn.separable import ProductForm
from symgnn.nn.separable import separable as separable_of
from symgnn.nn.spec import Spec

#: The blocks with angle updates of product form, by name.
SEPARABLE: dict[str, Spec] = {
    f"{spec.name.lower()}-separable": separable_of(spec)
    for spec in (AGN, AGN_EDGES, AGN_DISTANCES, AGN_TO_EDGES, COMBINED, CGN)
}

#: Of :func:`variant_of`, what is no option of a variant.
_OF_BUILD = ("spec", "dimension")


def variant_options() -> list[str]:
    """The options that modify a block."""
    return [name for name in inspect.signature(variant_of).parameters if name not in _OF_BUILD]


def variant_of(
    spec: Spec,
    *,
    separable: bool | None = None,
    degree: int | None = None,
    basis: str | None = None,
    channels: int | None = None,
    tied: bool | None = None,
    filtered: bool | None = None,
    chiral: bool = False,
    dimension: int | None = None,
) -> Spec:
    """A variant of a block.

    Args:
        spec: The block, such as `AGN`.
        separable: Whether angle updates have product form, whose sums cost as much as edges (see
            :func:`symgnn.nn.separable.separable`).
        degree: The degree of their polynomials, 3 if not given; of filtered blocks that of the
            products of messages, 2 if not given.
        basis: The basis of their polynomials, "chebyshev" (if not given) or "legendre".
        channels: How many products an angle has, as many as other values have numbers if not given.
        tied: Whether the two rays of an angle are mapped by the same weights; they are not if not
            given.
        filtered: Whether messages are nodes times a filter of the lengths of edges, in place of an
            MLP on edges, and products of messages stand in for angles (see
            :func:`symgnn.nn.filtered.filtered`).
        chiral: Whether nodes read the handedness of their neighbours (see
            :func:`symgnn.nn.handedness.chiral`).
        dimension: The number of coordinates, which `chiral` needs.

    Returns:
        The specification.

    Example:
        >>> variant_of(AGN, separable=True, degree=2).name
        'AGN-separable'
    """
    for name, switch in (("separable", separable), ("filtered", filtered), ("chiral", chiral)):
        if switch is not None and not isinstance(switch, bool):
            raise ValueError(f"{name}: is {switch!r}; give True or False")
    if filtered is False and is_filtered(spec):
        raise ValueError(f"filtered: is False, but {spec.name} is filtered; remove filtered")
    if filtered or is_filtered(spec):
        if separable:
            raise ValueError(
                f"separable: is True, but {spec.name} is filtered, so that products of messages "
                "stand in for angles; give one of both"
            )
        spec, degree = filtered_of(spec, degree), None
    known = spec.forms.get("angle")
    is_separable = isinstance(known, ProductForm)
    if separable is False and is_separable:
        raise ValueError(f"separable: is False, but {spec.name} is separable; remove separable")
    if separable or is_separable:
        before = known if isinstance(known, ProductForm) else ProductForm()
        spec = separable_of(
            spec,
            before.degree if degree is None else degree,
            before.basis if basis is None else basis,
            before.channels if channels is None else channels,
            before.tied if tied is None else tied,
        )
    else:
        given_options = {"degree": degree, "basis": basis, "channels": channels, "tied": tied}
        for name, given in given_options.items():
            if given is not None:
                raise ValueError(
                    f"{name}: is {given!r}, but {spec.name} is not separable; pass separable=True"
                )
    return chiral_of(spec, dimension) if chiral else spec
