"""The envelope f of messages, which goes smoothly to 0 at a cutoff.

    e_ji = f(|x_j - x_i|) phi^e(...),    a_jik = f(|x_j - x_i|) f(|x_k - x_i|) phi^a(...)

The contribution of an edge to any sum, and its first two derivatives, go to 0 at the cutoff, where
the edge leaves the graph. Without an envelope, the energy is discontinuous when a neighbour crosses
the cutoff, and the forces miss this jump.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from symgnn.geometry.measures import length
from symgnn.geometry.symmetry import LENGTHS
from symgnn.nn.inputs import DOMAINS, Applied, Input, Measure, Operator, Reduction, d2, theta
from symgnn.nn.separable import cosine

if TYPE_CHECKING:
    from symgnn.nn.spec import Network, Spec
    from symgnn.nn.state import State

#: The exponent of the polynomial: f is 1 - O(d^p) at small distances.
EXPONENT = 6


def message_envelope(cutoff: float) -> Measure:
    """`f(d / cutoff)`, see :func:`fade`, as a measure of edges."""
    function = Applied(_of_ends, (cutoff,))
    return Measure("envelope", "edge", function=function, symmetry=LENGTHS, both_ways=True)


def fade(d: Tensor, exponent: int = EXPONENT) -> Tensor:
    """`1 - (p+1)(p+2)/2 d^p + p(p+2) d^(p+1) - p(p+1)/2 d^(p+2)`, and 0 from d = 1 on.

    It begins with 1 and ends with 0, with two continuous derivatives (Gasteiger et al., 2020).
    """
    p = exponent
    a, b, c = -(p + 1) * (p + 2) / 2, p * (p + 2), -p * (p + 1) / 2
    inside = d < 1
    d = torch.where(inside, d, 1.0)
    return torch.where(inside, 1 + d**p * (a + d * (b + c * d)), 0.0)


def _of_ends(cutoff: float, x: Tensor, y: Tensor) -> Tensor:
    return fade(length(x - y) / cutoff)


@dataclass(frozen=True, repr=False)
class Faded(Measure):
    """A measure of edges or angles times their envelope, so that its sums are continuous too.

    It is a class of its own, as a mean that is taken off would not go to 0.
    """


def faded(measure: Measure, cutoff: float) -> Measure:
    """A measure without parameters, times the envelope of the edge or of both rays."""
    edge = measure.domain == "edge"
    return Faded(
        f"faded {measure.name}",
        measure.domain,
        function=Applied(_edge_product if edge else _angle_product, (measure.function, cutoff)),
        symmetry=measure.symmetry & LENGTHS,
        width=measure.width,
        per_ray=None if edge else Applied(_with_fade, (measure.per_ray, cutoff)),
        both_ways=measure.both_ways,
    )


def _edge_product(function: Any, cutoff: float, x: Tensor, y: Tensor) -> Tensor:
    return function(x, y) * _of_ends(cutoff, x, y)


def _with_fade(per_ray: Any, cutoff: float, rays: Tensor) -> Tensor:
    weight = fade(length(rays) / cutoff).unsqueeze(-1)
    return torch.cat([rays if per_ray is None else per_ray(rays), weight], -1)


def _angle_product(function: Any, cutoff: float, first: Tensor, second: Tensor) -> Tensor:
    return function(first[..., :-1], second[..., :-1]) * first[..., -1] * second[..., -1]


def message_weights(envelope: Measure, domain: str, state: State) -> Tensor:
    """The envelope of each edge `[E, 1]`, or the product of those of its rays for each angle
    `[A, 1]`, in plain operations.
    """
    if domain == "edge":
        return state.get(envelope).rows
    rays = envelope.function(*state.ray_ends).unsqueeze(-1)
    first, second = state.topology.angle_rays
    return rays.index_select(0, first) * rays.index_select(0, second)


def with_envelope(network: Network, cutoff: float) -> Network:
    """The network with an envelope for all messages of its layers.

    Raises:
        ValueError: an input would jump all the same, as it compares all rays of a vertex.
    """
    known: dict[Input, Measure] = {}
    for each in network.layer.all_inputs:
        of: Any = each.of if isinstance(each, Reduction) else each
        if isinstance(each, Reduction) and isinstance(of, Measure) and of.make is None:
            known[of] = faded(of, cutoff)
        jumps = isinstance(of, Operator) and not of.fades
        if jumps or getattr(of, "grouped", False):
            raise ValueError(
                f"envelope: {network.name} reads {of.name}, which depends on all neighbours of a "
                "node and is discontinuous when one crosses the cutoff; use dgn, agn or combined"
            )
    layer = network.layer
    for domain in DOMAINS:
        reads = [_with_faded(each, known) for each in layer[domain]]
        layer = layer.replace(**{domain: reads})
    return replace(network, layer=layer.replace(envelope=message_envelope(cutoff)))


def _with_faded(given: Input, known: Mapping[Input, Measure]) -> Input:
    if isinstance(given, Reduction) and given.of in known:
        return replace(given, name=f"reduce({known[given.of].name})", of=known[given.of])
    return given


def with_cosines(network: Network) -> Network:
    """The network that reads the cosine of each angle in place of the angle.

    The cosine is smooth where two rays are opposite, where the angle has a cusp.
    """
    if theta not in {_read(each) for each in network.layer.all_inputs}:
        raise ValueError(f"cosines: {network.name} reads no angles; remove cosines")
    return network.reading({theta: cosine})


def with_ray_lengths(network: Network) -> Network:
    """The network whose angles read the lengths of their two rays as well.

    Its edges read lengths and its angles read angles anyway, so the symmetry is the same.
    """
    layer = network.layer
    edges = {_read(each) for each in layer.edge}
    if d2 not in edges or not layer.angle:
        raise ValueError(
            f"ray_lengths: {network.name} does not read both lengths and angles; use combined"
        )
    if d2.first in layer.angle:
        return network
    return replace(network, layer=layer.replace(angle=[*layer.angle, d2.first, d2.second]))


def _read(given: Input) -> Input:
    return given.of if isinstance(given, Reduction) else given.home


def reads_angles(spec: Spec) -> bool:
    """Whether a specification reads angles, not their cosines."""
    return theta in {_read(each) for each in spec.all_inputs}
