"""The graphs that are audited: read, deformed and enlarged.

Inside the audit a graph is a PyG `Data`, or, where PyG was not used, a :class:`TensorGraph`, which
has the few methods of `Data` that are needed.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Generator, Tensor

from symgnn.audit._tensor_graph import CELLS, OF_GRAPHS, TensorGraph, join_graphs
from symgnn.geometry.sampling import cloud_of, random_direction, random_rotation

if TYPE_CHECKING:
    from typing import TypeAlias

    from torch_geometric.data import Data

    Graph: TypeAlias = "Data | TensorGraph"

#: What coordinates are called in a dictionary.
POSITIONS = ("pos", "positions", "coords", "coordinates", "coors", "xyz", "_positions", "R")


def joined(graphs: Sequence[Graph], batched: bool) -> Graph:
    """The input of the model: the graph, or a batch."""
    if not batched:
        return graphs[0]
    if isinstance(graphs[0], TensorGraph):
        return join_graphs(graphs)
    from torch_geometric.data import Batch

    return Batch.from_data_list(list(graphs))


@dataclass
class Sample:
    """One graph or batch of the data, with deformed shapes of it."""

    graphs: list[Graph]
    batched: bool
    name: str = ""  # what tells it from the others, in words
    shapes: list[list[Graph]] = field(default_factory=list)  # as given, then deformed; in float64
    grown: bool = False  # made here, of copies of another


def samples_of(data: Any) -> list[Sample]:
    """The graphs and batches in the data; of a list, each by itself."""
    items = list(data) if isinstance(data, list | tuple) else [data]
    if not items:
        raise ValueError("data: is an empty list; pass at least one graph")
    samples = [_sample(item, isinstance(data, list | tuple)) for item in items]
    dimensions = {graph.pos.size(1) for sample in samples for graph in sample.graphs}
    if len(dimensions) > 1:
        found = " and ".join(map(str, sorted(dimensions)))
        raise ValueError(f"data: has graphs in {found} dimensions; audit them separately")
    if len(samples) > 1:
        for k, sample in enumerate(samples):
            nodes = sum(graph.num_nodes for graph in sample.graphs)
            sample.name = f"structure {k} ({nodes} nodes)"
    return samples


def _sample(item: Any, in_list: bool) -> Sample:
    if is_atoms(item):
        item = graph_of_atoms(item)
    elif isinstance(item, Mapping) and not hasattr(item, "stores"):
        item = structure_of(item)
    elif isinstance(item, Tensor | np.ndarray):
        item = TensorGraph({"pos": torch.as_tensor(item)})
    batched = hasattr(item, "to_data_list")
    graphs = item.to_data_list() if batched else [item]
    for graph in graphs:
        if not isinstance(getattr(graph, "pos", None), Tensor):
            raise ValueError(
                f"data: {type(graph).__name__} has no coordinates; pass a PyG Data or Batch with "
                "pos, a dictionary of tensors with pos, or ASE Atoms"
            )
        cloud_of(graph.pos)  # refuses what is no coordinates
        if len(graph.pos) < 2:
            raise ValueError(f"data: a graph has {len(graph.pos)} nodes; pass at least 2")
        batch = getattr(graph, "batch", None)
        if not batched and isinstance(batch, Tensor) and batch.numel() and batch.max() > 0:
            raise ValueError("data: has several graphs in one Data; pass a Batch or a list")
    exact = [with_pos(graph, graph.pos.detach().cpu().float().double()) for graph in graphs]
    # of a list, each PyG graph is a batch of one: models that read data.batch find it
    return Sample(exact, batched or (in_list and hasattr(item, "stores")))


def is_atoms(item: Any) -> bool:
    """Whether it is ASE's `Atoms`."""
    return type(item).__module__.startswith("ase.") and hasattr(item, "get_positions")


def structure_of(values: Mapping[str, Any]) -> TensorGraph:
    """A dictionary of tensors or arrays as a structure."""
    name = next((key for key in POSITIONS if key in values), None)
    if name is None:
        raise ValueError(
            f"data: the dictionary has {', '.join(map(str, values))} and no coordinates; name them "
            f"{' or '.join(POSITIONS[:3])}"
        )
    found = {"pos" if key == name else str(key): value for key, value in values.items()}
    for key, value in found.items():
        if isinstance(value, np.ndarray):
            found[key] = torch.from_numpy(value.copy())
    return TensorGraph(found, name)


def graph_of_atoms(atoms: Any) -> Graph:
    """ASE's atoms as PyG's data: coordinates, atomic numbers, and the cell if it is periodic."""
    values: dict[str, Any] = {
        "pos": torch.from_numpy(atoms.get_positions()),
        "z": torch.from_numpy(atoms.get_atomic_numbers()),
    }
    if atoms.pbc.any():
        values["cell"] = torch.from_numpy(atoms.cell.array.copy()).unsqueeze(0)
        values["pbc"] = torch.from_numpy(atoms.pbc.copy()).unsqueeze(0)
    try:
        from torch_geometric.data import Data
    except ImportError:
        return TensorGraph(values)
    return Data(**values)


def with_pos(data: Graph, pos: Tensor) -> Graph:
    """A shallow copy with other coordinates `[N, n]`."""
    out = copy.copy(data)
    out.pos = pos
    return out


def is_periodic(data: Graph) -> bool:
    """Whether it has a cell that repeats."""
    values = data.to_dict()
    pbc = next((values[key] for key in ("pbc", "_pbc") if key in values), None)
    cells = [values[key] for key in CELLS if isinstance(values.get(key), Tensor)]
    return bool(cells) and (pbc is None or bool(torch.as_tensor(pbc).any()))


def cell_keys(data: Graph) -> Iterator[str]:
    """The attributes that hold the vectors of a cell, `[n, n]` or `[1, n, n]`."""
    n = data.pos.size(1)
    for key, value in data.to_dict().items():
        if key not in CELLS or not isinstance(value, Tensor) or not value.is_floating_point():
            continue
        if value.dim() >= 2 and value.shape[-2:] == (n, n):
            yield key


def spacing(pos: Tensor) -> Tensor:
    """The median distance to the nearest other point."""
    cloud = cloud_of(pos)
    distances = torch.cdist(cloud.points, cloud.points).fill_diagonal_(torch.inf)
    return distances.amin(1).median().clamp(min=1e-3 * cloud.radius)


def deformed(data: Graph, generator: Generator, size: float = 1.0) -> Graph:
    """A generic shape near that of the graph: stretched by a tenth or so, and jittered."""
    cloud = cloud_of(data.pos)
    stretch = torch.eye(cloud.n, dtype=torch.float64)
    stretch = stretch + 0.1 * size * torch.randn(cloud.n, cloud.n, generator=generator).double()
    noise = torch.randn(cloud.points.shape, generator=generator).double()
    jitter = 0.05 * size * spacing(data.pos) * noise
    centre = cloud.centroid * (0.0 if is_periodic(data) else 1.0)
    pos = centre + (cloud.points - centre) @ stretch.T + jitter
    out = with_pos(data, pos.float().double())
    for key in cell_keys(data):
        out[key] = (data[key].double() @ stretch.T).float().double()
    return out


def copies(data: Graph, offsets: Tensor, periodic: bool = False) -> Graph | None:
    """Copies of a graph, each shifted by a row of `offsets` `[C, n]`, as one graph.

    None where it is not clear how: a periodic cell (unless it is allowed), numbers of nodes other
    than `edge_index`, or attributes that belong neither to nodes, edges nor the graph.
    """
    if is_periodic(data) and not periodic:
        return None
    count, values = len(offsets), {}
    for key, value in data.to_dict().items():
        if key in ("num_nodes", "topology"):
            continue
        if not isinstance(value, Tensor):
            values[key] = value
            if isinstance(value, list | tuple | np.ndarray) and len(value) == data.num_nodes:
                return None
        elif key == "edge_index":
            values[key] = torch.cat([value + k * data.num_nodes for k in range(count)], 1)
        elif "index" in key or key == "face" or value.layout is not torch.strided:
            return None
        elif key not in OF_GRAPHS and (data.is_node_attr(key) or data.is_edge_attr(key)):
            values[key] = torch.cat([value] * count)
        elif (
            key not in OF_GRAPHS
            and value.dim()
            and len(value) > 1
            and len(value) in (data.num_nodes, data.num_edges)
        ):
            return None
        else:
            values[key] = value
    values["pos"] = torch.cat([data.pos.double() + offset for offset in offsets])
    return TensorGraph(values, data._pos) if isinstance(data, TensorGraph) else type(data)(**values)


def grown(data: Graph, generator: Generator, nodes: int = 26) -> Graph | None:
    """Turned copies of a graph side by side, with at least so many nodes; None as for copies."""
    cloud = cloud_of(data.pos)
    count = max(2, math.ceil(nodes / len(cloud.points)))
    if len(cloud.points) > 64 or count > 8:
        return None
    step = 2 * cloud.radius + 1.5 * spacing(data.pos)
    shifts = torch.arange(count).double()[:, None] * step * random_direction(cloud.n, generator)
    out = copies(data, shifts)
    if out is None:
        return None
    centred, parts = cloud.points - cloud.centroid, []
    for shift in shifts:
        parts.append(centred @ random_rotation(cloud.n, generator).T + shift + cloud.centroid)
    out.pos = torch.cat(parts).float().double()
    return out
