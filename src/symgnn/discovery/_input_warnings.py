"""Warnings about the data: few graphs, features that hold coordinates or lengths."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor
from torch_geometric.data import Data

from symgnn.discovery._moving import MOST_COORDINATES
from symgnn.geometry.symmetry import plural

#: Fewer graphs than this are told of.
FEW = 200
#: Features explained to this share by coordinates are said to hold them.
EXPLAINED = 0.98


def input_warnings(graphs: Sequence[Data]) -> list[str]:
    """What a reader should know of before trusting a verdict."""
    found = []
    if len(graphs) < FEW:
        found.append(
            f"There are {len(graphs)} graphs: only large effects can be seen, and kinds that "
            "matter little may stay undecided."
        )
    lacking = sum(g.y.is_floating_point() and bool(g.y.isnan().any()) for g in graphs)
    if lacking:
        found.append(f"y: targets are missing (NaN) in {lacking} of the graphs; they are left out.")
    if graphs[0].get("x") is not None:
        x = torch.cat([g.x.reshape(g.pos.shape[0], -1).double() for g in graphs])
        columns = _explained(x, _of_nodes(graphs))
        if columns:
            found.append(
                f"x: columns {columns} are functions of the coordinates. They do not move with "
                "them here, so verdicts are of the rest; leave them out (data.drop: [x])."
            )
    if graphs[0].get("edge_attr") is not None:
        attributes = torch.cat(
            [g.edge_attr.reshape(g.edge_index.shape[1], -1).double() for g in graphs]
        )
        rays = torch.cat([g.pos[g.edge_index[0]] - g.pos[g.edge_index[1]] for g in graphs]).double()
        length = rays.norm(dim=1, keepdim=True)
        columns = _explained(attributes, torch.cat([rays, rays / _safe(length), _of(length)], 1))
        if columns:
            found.append(
                f"edge_attr: columns {columns} hold lengths or directions of edges. They do not "
                "move with the coordinates here, so verdicts are of the rest; leave them out "
                "(data.drop: [edge_attr])."
            )
    return found


def limits(
    alone: bool, sampled: Sequence[str], missed: Sequence[str], untried: Sequence[str] = ()
) -> list[str]:
    """What a reader should know of the search.

    Args:
        alone: Whether graphs without coordinates predict the targets.
        sampled: Elements of graphs of which only some were read.
        missed: Steps for which there was no time.
        untried: Kinds that were not tried since graphs are large.
    """
    found = []
    if alone:
        found.append(
            "The graphs alone, without coordinates, predict the targets to 1 % of their "
            "deviation: everything is kept on these data, and only on these."
        )
    if sampled:
        found.append(f"Graphs are large: of {', '.join(sampled)}, a random part was read.")
    if untried:
        names = " and ".join(plural(kind) for kind in untried)
        found.append(
            f"{names.capitalize()} are tried for graphs with at most {MOST_COORDINATES} "
            "coordinates, and some of these have more: whether they matter is not known."
        )
    if missed:
        more = ", ..." if len(missed) > 4 else ""
        first = ", ".join(missed[:4])
        found.append(f"The time was over before {len(missed)} steps: {first}{more}.")
    return found


def large_graphs(kinds: Sequence[str], large: int, graphs: int) -> list[str]:
    """What a reader should know of kinds that are tried for small graphs alone.

    Args:
        kinds: These kinds.
        large: How many graphs are too large for them.
        graphs: How many there are.
    """
    if not kinds:
        return []
    names = " and ".join(plural(kind) for kind in kinds)
    return [
        f"{names.capitalize()} are tried for graphs with at most {MOST_COORDINATES} coordinates: "
        f"{large} of {graphs} graphs have more, and the verdict is of the others."
    ]


def _of_nodes(graphs: Sequence[Data]) -> Tensor:
    """Coordinates, those around the centroid, and functions of their lengths, `[N, k]`."""
    pos = torch.cat([g.pos.double() for g in graphs])
    centred = torch.cat([g.pos.double() - g.pos.double().mean(0) for g in graphs])
    sizes = [_of(x.norm(dim=1, keepdim=True)) for x in (pos, centred)]
    return torch.cat([pos, centred, *sizes], 1)


def _of(length: Tensor) -> Tensor:
    """Functions of a length that people use as features, `[M, 1] -> [M, 6]`."""
    unit = length / _safe(length.mean())
    safe = _safe(unit)
    smooth = [unit, unit.square(), 1 / safe, 1 / safe.square(), safe.log(), torch.exp(-unit)]
    return torch.cat(smooth, 1)


def _safe(length: Tensor) -> Tensor:
    return length.clamp(min=1e-6)


def _explained(values: Tensor, known: Tensor) -> list[int]:
    """The columns that are linear in known ones, and vary."""
    centred, known = values - values.mean(0), known - known.mean(0)
    total = centred.square().sum(0)
    varies = total > 1e-12 * values.abs().amax(0).clamp(min=1e-300).square() * len(values)
    rest = centred - known @ torch.linalg.lstsq(known, centred).solution
    share = 1 - rest.square().sum(0) / total.clamp(min=1e-300)
    return [k for k in range(values.shape[1]) if varies[k] and share[k] > EXPLAINED]
