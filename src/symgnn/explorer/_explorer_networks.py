"""The networks that are watched, and how their outputs change."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch_geometric.data import Data

from symgnn.geometry import Symmetry
from symgnn.nn import Model, build

#: The networks with random parameters: what is shown, and the arguments of `build`.
NETWORKS: dict[str, dict[str, str]] = {
    "GN": {"architecture": "gn"},
    "TGN": {"architecture": "tgn"},
    "STGN": {"architecture": "stgn"},
    "UGN": {"architecture": "ugn"},
    "DGN": {"architecture": "dgn"},
    "DGN + map": {"architecture": "dgn", "coordinate_map": "neighbour-sum"},
    "SDGN": {"architecture": "sdgn"},
    "Combined": {"architecture": "combined"},
    "AGN": {"architecture": "agn"},
    "AGN + map": {"architecture": "agn", "coordinate_map": "neighbour-sum"},
    "CGN": {"architecture": "cgn"},
}
#: A change of the output up to this is rounding (float64).
ROUNDING = 1e-9


@dataclass(frozen=True)
class Watched:
    """A network on the page.

    Attributes:
        name: Its name on the page.
        model: The model, in float64.
        symmetry: The symmetry of its outputs; None if unknown.
    """

    name: str
    model: nn.Module
    symmetry: Symmetry | None


@dataclass(frozen=True)
class Reaction:
    """The change of a network's output under a move.

    Attributes:
        name: The name of the network.
        change: The largest change of an output, relative to the largest output.
        must_stay: Whether the output must be invariant by `model.symmetry`; None if unknown.
    """

    name: str
    change: float
    must_stay: bool | None

    @property
    def stays(self) -> bool:
        """Whether the output is the same, to rounding."""
        return self.change <= ROUNDING

    @property
    def verdict(self) -> str:
        """One of "kept", "changes", "same here", "not known" and "broken"."""
        if self.must_stay is None:
            return "not known"
        if self.must_stay:
            return "kept" if self.stays else "broken"
        return "same here" if self.stays else "changes"


def networks_for(dimension: int, seed: int = 0) -> list[Watched]:
    """The networks of :data:`NETWORKS` for shapes of a dimension, with random parameters.

    Args:
        dimension: The number of coordinates.
        seed: The seed of the parameters.

    Returns:
        The networks, in float64.

    Example:
        >>> [str(one.symmetry) for one in networks_for(3) if one.name == "CGN"]
        ['Moebius maps, torsions, permutations']
    """
    found = []
    for name, options in NETWORKS.items():
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            more = {"dimension": dimension, "outputs": 5, "aggregation": "sum"}
            model = build(**options, **more).double().eval()  # type: ignore[arg-type]
        found.append(Watched(name, model, model.symmetry))
    return found


def watched_run(name: str, model: nn.Module) -> Watched:
    """A trained network, in float64.

    Raises:
        ValueError: where its outputs are vectors or points, which move with the shape.
    """
    if isinstance(model, Model):
        if model.task not in ("graph", "node", "edge") or model.field is not None:
            raise ValueError(
                f"explore: the run predicts {model.task}, which transform with the shape; give one "
                "with "
                "outputs per graph, node or edge"
            )
        return Watched(name, copy.deepcopy(model).double().eval(), model.symmetry)
    return Watched(name, copy.deepcopy(model).double().eval(), None)


@torch.no_grad()
def outputs_of(networks: Sequence[Watched], data: Data) -> list[Tensor]:
    """The outputs of networks for a shape."""
    return [one.model(data) for one in networks]


@torch.no_grad()
def measure(
    networks: Sequence[Watched],
    data: Data,
    pos: Tensor,
    kinds: Sequence[str],
    before: Sequence[Tensor] | None = None,
) -> list[Reaction]:
    """How the outputs of networks change when a shape is moved.

    Args:
        networks: The networks.
        data: The shape.
        pos: Its coordinates after the move.
        kinds: The kinds of transformation of the move.
        before: The outputs for the shape itself, if they are known.

    Returns:
        A reaction of each network.

    Shapes:
        pos `[N, n]`.

    Example:
        >>> from symgnn.explorer import shape_named
        >>> cube = shape_named("cube")
        >>> reactions = measure(networks_for(3), cube, 2 * cube.pos, ["dilation"])
        >>> [one.name for one in reactions if one.stays]
        ['STGN', 'SDGN', 'AGN', 'AGN + map', 'CGN']
    """
    after = copy.copy(data)
    after.pos = pos
    found = []
    known = outputs_of(networks, data) if before is None else before
    for one, was in zip(networks, known, strict=True):
        now = one.model(after)
        size = max(float(was.abs().max()), 1e-300) if was.numel() else 1.0
        change = float((now - was).abs().max()) / size if was.numel() else 0.0
        stays = None if one.symmetry is None else all(kind in one.symmetry for kind in kinds)
        found.append(Reaction(one.name, change, stays))
    return found
