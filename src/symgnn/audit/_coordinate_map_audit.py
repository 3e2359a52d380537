"""Coordinate maps against the paper's two definitions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from torch import Tensor

from symgnn.audit._audit import audit
from symgnn.audit._audit_report import Report
from symgnn.audit._findings import Answer, Finding
from symgnn.audit._targets import Target
from symgnn.geometry import ANGLES, LENGTHS, Symmetry, angle, length
from symgnn.geometry.symmetry import plural

if TYPE_CHECKING:
    from torch_geometric.data import Data


@dataclass
class MapReport:
    """The result of :func:`audit_map`."""

    coordinates: Report  # is the image equivariant?
    distances: Report  # the lengths of its edges, under maps that keep those of the graph
    angles: Report  # the angles at its vertices, under maps that keep those of the graph

    @property
    def distance_preserving(self) -> Answer:
        """Whether graphs with the same edge lengths have images with the same edge lengths."""
        return _answer("relative distance preserving", self.distances)

    @property
    def angle_preserving(self) -> Answer:
        """Whether graphs with the same angles at vertices have images with the same angles."""
        return _answer("relative angle preserving", self.angles)

    def __str__(self) -> str:
        return f"{self.distance_preserving}\n{self.angle_preserving}\n\n{self.coordinates}"


class _Measured(Target):
    """The edge lengths, or the angles at vertices, of what a coordinate map gives."""

    def __init__(self, psi: Target, what: str) -> None:
        super().__init__(psi.function)
        self.psi, self.what = psi, what

    def call(self, data: Data) -> dict[str, Tensor]:
        """The image's measures: `[E]` distances or `[A]` angles."""
        image = self.psi.call(data)
        source, target = data.edge_index
        if self.what == "distances":
            return {"distances": length(image[source] - image[target])}
        from symgnn.graphs import Topology

        j, i, k = Topology.build(data.edge_index, data.num_nodes).angle_index
        return {"angles": angle(image[j] - image[i], image[k] - image[i])}


class _Image(Target):
    """A coordinate map that gives one tensor `[N, n]`."""

    def call(self, data: Data) -> Tensor:
        """The image of the coordinates."""
        image = super().call(data)
        if not isinstance(image, Tensor) or image.shape != data.pos.shape:
            got = list(image.shape) if isinstance(image, Tensor) else type(image).__name__
            raise ValueError(f"psi: gave {got}; let it give coordinates {list(data.pos.shape)}")
        return image


def audit_map(
    psi: Callable[..., Any],
    data: Data,
    *,
    vectors: Iterable[str] | str = (),
    elements: int = 12,
    seed: int = 0,
    progress: bool | None = None,
) -> MapReport:
    """Measure whether a coordinate map preserves relative distances and relative angles.

    `psi` returns coordinates `[N, n]` for a graph with `edge_index`; it is called like a model of
    :func:`audit`, with the same options. Embeddings X and Y of a graph with the same edge
    lengths are made by rigid motions, torsions and flexes; psi is relative distance preserving if
    psi(X) and psi(Y) have the same edge lengths too. For angles at vertices the embeddings are made
    by similarities, torsions, redrawings and angle flexes.

    A "no" comes with a counterexample. A "yes" lists the kinds that did not refute the property,
    and those that this graph does not have; try another graph for these.
    """
    if getattr(data, "edge_index", None) is None:
        raise ValueError("data: has no edge_index, along which distances and angles are measured")
    options: dict[str, Any] = {"vectors": vectors, "elements": elements, "seed": seed}
    options |= {"progress": progress, "checks": False, "grow": False}
    image = _Image(psi)
    coordinates = audit(image, data, outputs="coordinates", **options)
    found = []
    for what, kept in (("distances", LENGTHS), ("angles", ANGLES)):
        kinds = Symmetry(kind for kind in kept if kind != "permutation")
        found.append(audit(_Measured(image, what), data, kinds=kinds, **options))
    return MapReport(coordinates, *found)


def _answer(name: str, report: Report) -> Answer:
    tried = [f for f in report.findings.values() if f.errors]
    wrong = [f for f in tried if not f.holds]
    if wrong:
        worst = max(wrong, key=lambda finding: finding.error)
        kept = ", ".join(plural(f.kind) for f in tried if f.holds) or "none"
        return Answer(
            False,
            f"{name}: no, {plural(worst.kind)} with error {worst.error:.2g}: "
            f"{worst.counterexample} (kept: {kept})",
        )
    text = f"{name}: not refuted by {_words(tried)}"
    asked = [f for f in report.findings.values() if f.reason != "it was not asked for"]
    rest = [f for f in asked if not f.errors]
    if not tried:
        return Answer(False, f"{name}: unknown, nothing was measured", known=False)
    return Answer(True, f"{text}; not measured: {_words(rest)}" if rest else text)


def _words(findings: Sequence[Finding]) -> str:
    return ", ".join(plural(finding.kind) for finding in findings)
