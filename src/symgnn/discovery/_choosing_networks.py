"""The network to use: the most symmetric one that is blind to nothing that matters."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, NamedTuple

from torch import Tensor

from symgnn.data import Task
from symgnn.geometry import Symmetry
from symgnn.nn import build


class Candidate(NamedTuple):
    """A network, and the rung of the ladder that reads the same."""

    rung: str
    model: dict[str, Any]  # the section `model` of a config
    symmetry: Symmetry


_MAP = {"coordinate_map": "neighbour-sum"}
#: Of two that are as symmetric, the rung with the smaller error decides.
_NETWORKS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("kappa", {"block": "cgn"}),
    ("angles", {"block": "agn"}),
    ("relative lengths", {"block": "sdgn"}),
    ("lengths", {"block": "dgn"}),
    ("lengths and angles", {"block": "combined"}),
    ("similarity", {"block": "agn", **_MAP}),
    ("distances", {"block": "dgn", **_MAP}),
    ("shape", {"block": "combined", **_MAP}),
    ("handed angles", {"block": "agn-separable", "chiral": True}),
    ("handed similarity", {"block": "agn-separable", "chiral": True, **_MAP}),
    ("handed", {"block": "combined-separable", "chiral": True}),
    ("handed shape", {"block": "combined-separable", "chiral": True, **_MAP}),
    ("relative offsets", {"block": "stgn"}),
    ("offsets", {"block": "tgn"}),
    ("coordinates", {"block": "gn"}),
)


def candidates(task: Task, dimension: int) -> list[Candidate]:
    """Every network that gives the outputs of the task, with its symmetry."""
    found = []
    for rung, model in _NETWORKS:
        if task.level == "coordinates":
            if model.get("coordinate_map") is None:
                model = {**model, "coordinate_map": "egcn-neighbours"}
            if "chiral" in model or model["block"] not in ("dgn", "agn", "combined"):
                continue
        options = {key: value for key, value in model.items() if key != "block"}
        try:
            built = build(model["block"], task=task.level, dimension=dimension, hidden=4, **options)
        except (ValueError, TypeError):  # not for this task or dimension
            continue
        found.append(Candidate(rung, dict(model), built.symmetry))
    return found


def advised(
    given: list[Candidate],
    kept: Collection[str],
    asked: Collection[str],
    losses: Mapping[str, Tensor],
) -> Candidate | None:
    """The network that keeps the most of the kinds that are kept, and no other that is asked about.

    Args:
        given: The networks.
        kept: The kinds that the targets keep.
        asked: All kinds that the data admit.
        losses: Of the rungs; among networks that keep as much, the smallest decides.
    """
    # every network keeps permutations; where the order matters, it has to be a feature of nodes
    allowed = {*kept, "permutation"}
    safe = [each for each in given if {k for k in asked if k in each.symmetry} <= allowed]
    if not safe:
        return None

    def rank(each: Candidate) -> tuple[int, float]:
        loss = losses.get(each.rung)
        return (
            -sum(kind in each.symmetry for kind in asked),
            float("inf") if loss is None else float(loss.mean()),
        )

    return min(safe, key=rank)
