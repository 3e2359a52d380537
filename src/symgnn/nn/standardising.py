"""Averages of training graphs, with which a network normalises its inputs and sums."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn
from torch_geometric.data import Data

from symgnn.nn.inputs import Applied, Input, Measure, Reduction
from symgnn.nn.spec import Network, Spec
from symgnn.nn.state import as_column

#: The reductions of which terms are counted: those of a finer to a coarser domain.
TERMS = ("edge->node", "angle->node", "angle->edge", "node->graph", "edge->graph", "angle->graph")
#: The features of graphs, by the value that they are the start of.
FEATURES = {"v": "x", "e": "edge_attr", "a": "angle_attr", "u": "u"}
#: Mean and deviation of each number of a quantity.
Moments = tuple[tuple[float, ...], tuple[float, ...]]


@dataclass(frozen=True)
class Averages:
    """Statistics of the training graphs, with which a network is normalised when it is built.

    Sums are divided by their average number of terms. They then have the size of one term and
    still depend on the number of terms: twice as many neighbours give twice the value. Measures
    and features are standardised to mean 0 and deviation 1. All these statistics are invariants,
    so the symmetry of the network does not change. Each kind may be empty:
    `Averages(terms=known.terms)` only divides sums, `Averages(measures=known.measures)` only
    standardises measures.

    Args:
        terms: The average number of terms of each aggregation, such as `{"edge->node": 8.0}`; one
            for each of "edge->node", "angle->node", "angle->edge" (the angles on one ray),
            "node->graph", "edge->graph" and "angle->graph".
        measures: Mean and deviation of each measure by its name, such as `{"d2": ([1.0], [0.5])}`;
            if coordinates are scaled to a longest edge of 1, as for SDGN, the name is "d2 at
            scaling 1".
        features: Mean and deviation of each column of `x` ("v"), `edge_attr` ("e"), `angle_attr`
            ("a") and `u` ("u").
        example: Some of the graphs, on which a new network calibrates its weights
            (:meth:`symgnn.nn.Model.calibrate`); not part of :meth:`as_dict`.
    """

    terms: Mapping[str, float] = field(default_factory=dict)
    measures: Mapping[str, Moments] = field(default_factory=dict)
    features: Mapping[str, Moments] = field(default_factory=dict)
    example: Data | None = field(default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        for name, count in self.terms.items():
            if name not in TERMS:
                raise ValueError(f"averages: terms has {name!r}; choose from {', '.join(TERMS)}")
            if not (isinstance(count, int | float) and math.isfinite(count) and count > 0):
                raise ValueError(f"averages: terms[{name!r}] is {count!r}; give a positive number")
        for kind in ("measures", "features"):
            known = {}
            for name, given in getattr(self, kind).items():
                known[name] = _moments(f"averages: {kind}[{name!r}]", given)
            object.__setattr__(self, kind, known)
        for name in self.features:
            if name not in FEATURES:
                raise ValueError(
                    f"averages: features has {name!r}; choose from {', '.join(FEATURES)}"
                )

    @staticmethod
    def of(given: Averages | Mapping[str, Any]) -> Averages:
        """The averages, or what :meth:`as_dict` gave of them."""
        if isinstance(given, Averages):
            return given
        if not isinstance(given, Mapping):
            raise ValueError(f"averages: is {given!r}; give symgnn.nn.averages(graphs)")
        for key in given:
            if key not in ("terms", "measures", "features"):
                raise ValueError(f"averages: has {key!r}; choose from terms, measures, features")
        return Averages(**given)

    def as_dict(self) -> dict[str, Any]:
        """A dictionary of plain numbers and lists, for a YAML or JSON file."""
        plain: dict[str, Any] = {"terms": dict(self.terms)}
        for kind in ("measures", "features"):
            plain[kind] = {
                name: [list(mean), list(deviation)]
                for name, (mean, deviation) in getattr(self, kind).items()
            }
        return plain

    def __str__(self) -> str:
        terms = ", ".join(f"{name} {count:.4g}" for name, count in self.terms.items())
        return f"averages({terms or 'of inputs alone'})"


def _moments(name: str, given: Any) -> Moments:
    """Mean and deviation as tuples, checked."""
    try:
        mean, deviation = (tuple(float(number) for number in part) for part in given)
    except (TypeError, ValueError):
        raise ValueError(
            f"{name}: is {given!r}; give the means and the deviations, such as ([0.0], [1.0])"
        ) from None
    if len(mean) != len(deviation):
        raise ValueError(f"{name}: has {len(mean)} means and {len(deviation)} deviations")
    if not all(map(math.isfinite, mean + deviation)) or not all(size > 0 for size in deviation):
        raise ValueError(f"{name}: is {given!r}; give finite means and positive deviations")
    return mean, deviation


class Standardised(nn.Module):
    """A measure less its mean, over its deviation.

    Args:
        function: That of the measure, `(...) -> [rows, w]` or `[rows]`.
        per_ray: That of single rays, for measures on angles that have one.
        moments: Mean and deviation of each of the w numbers.
    """

    mean: Tensor
    deviation: Tensor

    def __init__(
        self,
        function: Callable[..., Tensor],
        per_ray: Callable[..., Tensor] | None,
        moments: Moments,
    ) -> None:
        super().__init__()
        self.function, self.per_ray = function, per_ray
        for name, numbers in zip(("mean", "deviation"), moments, strict=True):
            self.register_buffer(name, torch.tensor(numbers, dtype=torch.get_default_dtype()))

    def forward(self, *given: Any) -> Tensor:
        """The standardised measure `[rows, w]`."""
        return (as_column(self.function(*given)) - self.mean) / self.deviation


class StandardisedFeatures(nn.Module):
    """Features less their mean, over their deviation, `[rows, w] -> [rows, w]`."""

    mean: Tensor
    deviation: Tensor

    def __init__(self, moments: Moments) -> None:
        super().__init__()
        for name, numbers in zip(("mean", "deviation"), moments, strict=True):
            self.register_buffer(name, torch.tensor(numbers, dtype=torch.get_default_dtype()))

    def forward(self, rows: Tensor) -> Tensor:
        """The standardised features."""
        return (rows.to(self.mean.dtype) - self.mean) / self.deviation


def measures_read(network: Network) -> dict[str, tuple[Spec, Measure]]:
    """The measures without parameters that a network reads, by their key in :class:`Averages`, with
    the specification that reads them.

    Bases of distances and angles, and inner products of unit vectors, are of the size of 1 by
    themselves; the former have parameters or tables, the latter are a subclass.
    """
    found: dict[str, tuple[Spec, Measure]] = {}
    for spec in (*network.first, network.layer):
        for given in spec.all_inputs:
            one = given.of if isinstance(given, Reduction) else given
            if type(one) is Measure and one.make is None:
                key = _key(one, network.start)
                known = found.setdefault(key, (network.start, one.home))  # type: ignore[arg-type]
                if known[1] != one.home:
                    raise ValueError(
                        f"averages: {network.name} reads two measures with the name {one.name!r}; "
                        "give them different names"
                    )
    return found


def _key(measure: Measure, spec: Spec) -> str:
    if spec.scaling is None:
        return measure.name
    return f"{measure.name} at scaling {spec.scaling:g}"


def standardised(network: Network, averages: Averages) -> Network:
    """The network with its measures standardised, if averages of any are known; the read-out reads
    none.

    Raises:
        ValueError: some measures are known, but not one that the network reads.
    """
    if not averages.measures:
        return network
    known: dict[Input, Measure] = {}
    for key, (_, measure) in measures_read(network).items():
        moments = averages.measures.get(key)
        if moments is None:
            raise ValueError(
                f"averages: have no measure {key!r}, which {network.name} reads; measure them "
                "with symgnn.nn.averages(graphs, architecture)"
            )
        if measure.width is not None and len(moments[0]) != measure.width:
            raise ValueError(
                f"averages: measures[{key!r}] has {len(moments[0])} means; {measure.name} has "
                f"{measure.width} numbers"
            )
        make = Applied(Standardised, (measure.function, measure.per_ray, moments))
        known[measure] = dataclasses.replace(measure, make=make)

    return network.reading(known)
