"""Options of `build` that make another network of the one that is named."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from symgnn._argument_checks import check_count, check_flag, check_positive
from symgnn.nn.bases import bessel
from symgnn.nn.envelopes import with_cosines, with_envelope, with_ray_lengths
from symgnn.nn.inputs import d2
from symgnn.nn.spec import Network
from symgnn.nn.standardising import Averages, standardised


def with_length(network: Network, scaling: float | None) -> Network:
    """The network that scales the longest edge to a length."""
    if scaling is None:
        return network
    spec = network.layer
    if spec.scaling is None:
        raise ValueError(f"scaling: {spec.name} does not scale its coordinates; use sdgn")
    return replace(network, layer=spec.replace(scaling=check_positive("scaling", scaling)))


def with_measures(
    network: Network,
    *,
    ray_lengths: bool,
    cosines: bool,
    envelope: bool,
    radial: int | None,
    cutoff: float | None,
    psi: Any,
    aggregation: Mapping[str, str],
) -> Network:
    """The network that reads other functions of distances and angles.

    Args:
        network: The network.
        ray_lengths: As in :func:`symgnn.nn.build`, like the next four.
        cosines: The same.
        envelope: The same.
        radial: The same.
        cutoff: The same.
        psi: The coordinate map, or its name.
        aggregation: That of every movement.
    """
    if check_flag("ray_lengths", ray_lengths):
        network = with_ray_lengths(network)
    if check_flag("cosines", cosines):
        network = with_cosines(network)
    if check_flag("envelope", envelope):
        network = _with_envelope(network, cutoff, psi, aggregation)
    if radial is not None or (cutoff is not None and network.init == "variance" and not envelope):
        network = _with_radial(network, radial, cutoff)
    return network


def with_averages(network: Network, averages: Averages | None) -> Network:
    """The network whose sums and measures are standardised."""
    if averages is None:
        return network
    check_own(network, "averages", "its sums and inputs are those of its own code")
    return standardised(network, averages)


def check_own(network: Network, option: str, reason: str) -> None:
    """Refuse an option for a peer."""
    if network.init != "variance":
        raise ValueError(f"{option}: is for the blocks of symgnn, not {network.name}; {reason}")


def _with_envelope(
    network: Network, cutoff: float | None, psi: Any, aggregation: Mapping[str, str]
) -> Network:
    """The network with an envelope of all messages."""
    check_own(network, "envelope", "it has a cutoff of its own")
    if cutoff is None:
        raise ValueError("cutoff: is missing, but envelope is True; give the radius of the graphs")
    if psi != "identity":
        raise ValueError(
            f"coordinate_map: is {psi!r}, which is discontinuous when a neighbour crosses the "
            "cutoff; use 'identity' with envelope=True"
        )
    if network.layer.scaling is not None:
        raise ValueError(
            f"envelope: {network.name} scales each graph by its longest edge, which is "
            "discontinuous when an edge crosses the cutoff; use dgn"
        )
    for movement, how in aggregation.items():
        if how != "sum" and movement[0] in "eax":
            raise ValueError(
                f"aggregation: is {how!r} for {movement}, which is discontinuous when an edge "
                "crosses the cutoff; use 'sum' for edges and angles with envelope=True, such as "
                "aggregation={'pool': 'mean'}"
            )
    return with_envelope(network, check_positive("cutoff", cutoff))


def _with_radial(network: Network, radial: int | None, cutoff: float | None) -> Network:
    """The network with a radial basis in place of squared distances."""
    check_own(network, "radial", "it has a basis of its own")
    if radial is None or cutoff is None:
        given, missing = ("cutoff", "radial") if radial is None else ("radial", "cutoff")
        hint = "; give both, or envelope=True" if radial is None else "; give both"
        raise ValueError(f"{missing}: is missing, but {given} is given{hint}")
    basis = bessel(check_count("radial", radial, 1), check_positive("cutoff", cutoff))
    read = {each.home for each in network.layer.all_inputs}
    if d2 not in read:
        raise ValueError(f"radial: {network.name} reads no distances; remove radial")
    return network.reading({d2: basis})
