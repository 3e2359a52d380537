"""Inputs that move with the graph: declared ones, cells, and coordinates among the features."""

from __future__ import annotations

import copy
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from symgnn.audit._representations import canonical, matrices, size_of
from symgnn.audit._structures import cell_keys
from symgnn.audit._tensor_graph import OF_GRAPHS

if TYPE_CHECKING:
    from symgnn.audit._structures import Graph

#: Features that are vectors by their name.
VECTOR_NAMES = (
    "vel",
    "velocity",
    "velocities",
    "force",
    "forces",
    "normal",
    "normals",
    "momentum",
    "momenta",
    "field",
    "electric_field",
    "dipole",
    "shifts",
    "edge_shift",
    "edge_shifts",
    "cell_shift",
    "cell_offsets",
)
#: Up to this, relative, two features are the same numbers.
SAME = 1e-4


@dataclass(frozen=True)
class MovingInput:
    """Columns of an attribute that are vectors, tensors or irreps, or made of coordinates."""

    key: str
    start: int  # the first column
    stop: int  # 0 for all columns, over all axes but the first
    source: str = ""  # "pos", "centred pos", "edge" or "edge direction"; "" where unknown
    factor: float = 1.0
    type: str = "vector"

    def __str__(self) -> str:
        return f"{self.key}[{self.start}:{self.stop}]" if self.stop else self.key

    def place(self, data: Graph) -> str:
        """Where its rows live: "node", "edge" or "graph"."""
        value = data[self.key]
        if self.key in OF_GRAPHS or value.dim() == 1:
            return "graph"
        if data.is_edge_attr(self.key):
            return "edge"
        return "node" if len(value) == data.num_nodes else "graph"

    def follow(self, out: Graph, data: Graph, linear: Tensor | None) -> None:
        """Let the columns in `out` follow its coordinates: made of them again, or turned.

        `linear` has a matrix for each row, `[R, n, n]`; None leaves vectors as they are.
        """
        value = data[self.key].double().clone()
        if self.source:
            value[:, self.start : self.stop] = self.factor * derived(self.source, out)
        elif linear is not None:
            single = value.dim() == 1
            value = value.unsqueeze(0) if single else value
            part = value[..., self.start : self.stop] if self.stop else value
            turn = matrices(self.type, linear)
            rows = part.reshape(len(part), -1, turn.size(-1))
            part.copy_(torch.einsum("rij,rcj->rci", turn, rows).reshape(part.shape))
            value = value.squeeze(0) if single else value
        out[self.key] = value


def followed(data: Graph, inputs: Iterable[MovingInput]) -> Graph:
    """A shallow copy in which what is made of coordinates is so to the last digit."""
    out = copy.copy(data)
    for one in inputs:
        one.follow(out, data, None)
    return out


def derived(source: str, data: Graph) -> Tensor:
    """Coordinates, or differences of them along the edges, in float64."""
    pos = data.pos.double()
    if source == "pos":
        return pos
    if source == "centred pos":
        return pos - pos.mean(0)
    rays = pos[data.edge_index[1]] - pos[data.edge_index[0]]
    return rays if source == "edge" else torch.nn.functional.normalize(rays, dim=1)


def parse_inputs(
    vectors: Iterable[str] | str, inputs: Mapping[str, str] | None, data: Graph
) -> list[MovingInput]:
    """Declarations of the user, such as `vectors="vel"` or `inputs={"x[3:6]": "vector"}`.

    The vectors of a cell are added.
    """
    names = [vectors] if isinstance(vectors, str) else list(vectors)
    found = [_parse(text, "vector", "vectors", data) for text in names]
    n = data.pos.size(1)
    for text, type_ in (inputs or {}).items():
        type_ = canonical(str(type_), str(text), "inputs", n)
        if type_ == "coordinates":
            raise ValueError(
                f"inputs: {text!r} is declared as coordinates, but only pos can be; declare it as "
                "a vector, or compute it from pos in the model"
            )
        if type_ == "invariant":
            continue
        found.append(_parse(str(text), type_, "inputs", data))
    seen = {one.key for one in found}
    found += [MovingInput(key, 0, 0) for key in cell_keys(data) if key not in seen]
    return found


def _parse(text: str, type_: str, field: str, data: Graph) -> MovingInput:
    n = data.pos.size(1)
    match = re.fullmatch(r"(\w+)(?:\[(\d+):(\d+)\])?", text)
    key = match[1] if match else text
    value = data.to_dict().get(key)
    if match is None or not isinstance(value, Tensor) or not value.is_floating_point():
        known = [k for k, v in data.to_dict().items() if isinstance(v, Tensor)]
        raise ValueError(
            f"{field}: {text!r} is not an attribute of the data; choose from "
            f"{', '.join(known)}, or columns such as 'x[0:{n}]'"
        )
    size, columns = size_of(type_, n), value.size(-1)
    start, stop = (int(match[2]), int(match[3])) if match[2] else (0, 0)
    width = max(0, min(stop, columns) - start) if match[2] else value[:1].numel()
    width = value.numel() if value.dim() == 1 and not match[2] else width
    if width < 1 or stop > columns or width % size:
        what = f"no {type_}s" if type_ in ("vector", "tensor", "pseudovector") else f"no {type_}"
        raise ValueError(
            f"{field}: {text!r} has {width} columns, which are {what} in {n} dimensions, of "
            f"{size} each; name columns such as '{key}[0:{size}]'"
        )
    if type_ == "vector" and value.dim() == 2:
        for seen in lookalikes(data):
            if seen.key == key and seen.start == start and width == n:
                return seen
    return MovingInput(key, start, stop, type=type_)


def lookalikes(data: Graph) -> list[MovingInput]:
    """Columns of node and edge features that are coordinates or edge vectors, up to a factor."""
    n, found = data.pos.size(1), []
    edges = data.edge_index is not None and data.edge_index.numel() > 0
    for key, value in data.to_dict().items():
        if key in ("pos", "y", *OF_GRAPHS) or not isinstance(value, Tensor):
            continue
        if not value.is_floating_point() or value.dim() != 2 or len(value) < 3:
            continue
        sources = [s for s in ("pos", "centred pos") if len(value) == data.num_nodes]
        if edges and len(value) == data.num_edges:
            sources += ["edge", "edge direction"]
        for start in range(value.size(1) - n + 1):
            part = value[:, start : start + n].detach().cpu().double()
            for source in sources:
                made = derived(source, data)
                factor = float((part * made).sum() / made.square().sum().clamp(min=1e-300))
                error = (part - factor * made).norm()
                if part.norm() > 0 and error <= SAME * part.norm():
                    found.append(MovingInput(key, start, start + n, source, factor))
                    break
    return found


def undeclared(data: Graph, inputs: Sequence[MovingInput]) -> list[str]:
    """A warning for each feature that looks like vectors and was not declared."""
    seen = {(one.key, one.start) for one in inputs}
    words = {"pos": "coordinates", "centred pos": "coordinates about the centroid"}
    words |= {"edge": "edge vectors", "edge direction": "directions of edges"}
    lines = []
    for found in lookalikes(data):
        if (found.key, found.start) not in seen:
            lines.append(
                f"{found.key}, columns {found.start} to {found.stop - 1}: these are "
                f"{words[found.source]}, which are left as they are when the graph is moved; if "
                f'they should move along, pass vectors=("{found}",)'
            )
    keys = {one.key for one in inputs} | {found.key for found in lookalikes(data)}
    n = data.pos.size(1)
    for key in VECTOR_NAMES:
        value = data.to_dict().get(key)
        if key in keys or not isinstance(value, Tensor) or not value.is_floating_point():
            continue
        if value.dim() and value.size(-1) == n:
            lines.append(
                f"{key}: by their name and shape these are vectors, which are left as they are "
                f'when the graph is turned; if they should turn along, pass vectors=("{key}",)'
            )
    return lines
