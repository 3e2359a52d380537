"""The graphs that are audited: taken apart, deformed, and searched for vectors nobody named."""

from __future__ import annotations

import copy
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Generator, Tensor
from torch_geometric.data import Batch, Data

from symgnn.geometry.sampling import cloud_of

#: Node features that are vectors by their name.
VECTOR_NAMES = ("vel", "velocity", "velocities", "force", "forces", "normal", "normals", "momentum")
#: Up to this, relative, two features are the same numbers.
SAME = 1e-4


def graphs_of(data: Any) -> tuple[list[Data], bool]:
    """The graphs in what is given, with float64 coordinates, and whether they are a batch."""
    batched = isinstance(data, Batch | list | tuple)
    graphs = data.to_data_list() if isinstance(data, Batch) else data
    graphs = list(graphs) if batched else [graphs]
    for graph in graphs:
        if not isinstance(graph, Data) or not isinstance(graph.pos, Tensor):
            raise ValueError(
                f"data: {type(graph).__name__} has no coordinates; pass a PyG Data or Batch with "
                "pos, or ASE Atoms"
            )
        cloud_of(graph.pos)  # refuses what is no coordinates
        if len(graph.pos) < 2:
            raise ValueError(f"data: a graph has {len(graph.pos)} nodes; pass at least 2")
        if not batched and getattr(graph, "batch", None) is not None and graph.batch.max() > 0:
            raise ValueError("data: has several graphs in one Data; pass a Batch or a list")
    return [with_pos(graph, graph.pos.detach().cpu().float().double()) for graph in graphs], batched


def joined(graphs: Sequence[Data], batched: bool) -> Data:
    """What the model is given."""
    return Batch.from_data_list(list(graphs)) if batched else graphs[0]


def with_pos(data: Data, pos: Tensor) -> Data:
    """A shallow copy with other coordinates `[N, n]`."""
    out = copy.copy(data)
    out.pos = pos
    return out


def deformed(data: Data, named: Iterable[Named], generator: Generator) -> Data:
    """A generic shape near that of the graph: stretched by a tenth or so, and jittered."""
    cloud = cloud_of(data.pos)
    distances = torch.cdist(cloud.points, cloud.points).fill_diagonal_(torch.inf)
    near = distances.amin(1).median().clamp(min=1e-3 * cloud.radius)
    stretch = torch.eye(cloud.n, dtype=torch.float64)
    stretch = stretch + 0.1 * torch.randn(cloud.n, cloud.n, generator=generator).double()
    jitter = 0.05 * near * torch.randn(cloud.points.shape, generator=generator).double()
    pos = cloud.centroid + (cloud.points - cloud.centroid) @ stretch.T + jitter
    return followed(with_pos(data, pos.float().double()), named)


def followed(data: Data, named: Iterable[Named]) -> Data:
    """A shallow copy in which what is made of coordinates is so to the last digit."""
    out = copy.copy(data)
    for name in named:
        name.follow(out, data, None)
    return out


@dataclass(frozen=True)
class Named:
    """Columns of an attribute that are vectors, or made of coordinates."""

    key: str
    start: int  # the first column
    stop: int
    source: str = ""  # "pos", "centred pos", "edge" or "edge direction"; "" where unknown
    factor: float = 1.0

    def __str__(self) -> str:
        return self.key if self.start == 0 and not self.source else f"{self.key}[{self._columns}]"

    @property
    def _columns(self) -> str:
        return f"{self.start}:{self.stop}"

    def place(self, data: Data) -> str:
        """Where its rows live: "node", "edge" or "graph"."""
        value = data[self.key]
        if self.key == "cell" or value.dim() > 2:
            return "graph"
        if data.is_edge_attr(self.key) or "edge" in self.key:
            return "edge"
        return "node" if len(value) == data.num_nodes else "graph"

    def follow(self, out: Data, data: Data, linear: Tensor | None) -> None:
        """Let the columns in `out` follow its coordinates: made of them again, or turned.

        `linear` has a matrix for each row, `[R, n, n]`; None leaves vectors as they are.
        """
        value = data[self.key].double().clone()
        n = data.pos.size(1)
        if self.source:
            made = derived(self.source, out)
            value[:, self.start : self.stop] = self.factor * made
        elif linear is not None:
            part = value[..., self.start : self.stop]
            rows = part.reshape(len(part), -1, n)
            turned = torch.einsum("rij,rcj->rci", linear, rows)
            value[..., self.start : self.stop] = turned.reshape(part.shape)
        out[self.key] = value


def derived(source: str, data: Data) -> Tensor:
    """Coordinates, or differences of them along the edges, in float64."""
    pos = data.pos.double()
    if source == "pos":
        return pos
    if source == "centred pos":
        return pos - pos.mean(0)
    rays = pos[data.edge_index[1]] - pos[data.edge_index[0]]
    return rays if source == "edge" else torch.nn.functional.normalize(rays, dim=1)


def parse_vectors(names: Iterable[str] | str, data: Data) -> list[Named]:
    """What the user named, such as `"vel"` or `"x[3:6]"`."""
    found = []
    n = data.pos.size(1)
    for text in [names] if isinstance(names, str) else names:
        match = re.fullmatch(r"(\w+)(?:\[(\d+):(\d+)\])?", text)
        key = match[1] if match else text
        value = data.to_dict().get(key)
        if match is None or not isinstance(value, Tensor) or not value.is_floating_point():
            known = [k for k, v in data.to_dict().items() if isinstance(v, Tensor)]
            raise ValueError(
                f"vectors: {text!r} is not an attribute of the data; choose from "
                f"{', '.join(known)}, or columns such as 'x[0:{n}]'"
            )
        start, stop = (int(match[2]), int(match[3])) if match[2] else (0, value.size(-1))
        if stop <= start or stop > value.size(-1) or (stop - start) % n:
            raise ValueError(
                f"vectors: {text!r} has {max(0, min(stop, value.size(-1)) - start)} columns, which "
                f"are no vectors in {n} dimensions; name columns such as '{key}[0:{n}]'"
            )
        same = [seen for seen in lookalikes(data) if seen.key == key and seen.start == start]
        found.append(same[0] if same and stop - start == n else Named(key, start, stop))
    return found


def lookalikes(data: Data) -> list[Named]:
    """Columns of node and edge features that are coordinates or edge vectors, up to a factor."""
    n, found = data.pos.size(1), []
    edges = data.edge_index is not None and data.edge_index.numel() > 0
    for key, value in data.to_dict().items():
        if key in ("pos", "y") or not isinstance(value, Tensor) or not value.is_floating_point():
            continue
        if value.dim() != 2 or len(value) < 3:
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
                    found.append(Named(key, start, start + n, source, factor))
                    break
    return found


def unnamed(data: Data, named: Sequence[Named]) -> list[str]:
    """A warning for each feature that looks like vectors and is not among the named."""
    seen = {(name.key, name.start) for name in named}
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
    keys = {name.key for name in named} | {found.key for found in lookalikes(data)}
    for key in VECTOR_NAMES:
        value = data.to_dict().get(key)
        if key not in keys and isinstance(value, Tensor) and value.shape == data.pos.shape:
            lines.append(
                f"{key}: by their name and shape these are vectors, which are left as they are "
                f'when the graph is turned; if they should turn along, pass vectors=("{key}",)'
            )
    return lines
