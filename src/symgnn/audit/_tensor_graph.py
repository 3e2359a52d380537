"""A graph as a dictionary of tensors, for data that are not PyG's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

#: What the vectors of a periodic cell are called.
CELLS = ("cell", "lattice", "unit_cell", "box", "lattice_vectors", "_cell")
#: Attributes that belong to no node, whatever their shape.
OF_GRAPHS = (*CELLS, "pbc", "_pbc")


class TensorGraph:
    """A graph as a dictionary of tensors, with the methods of PyG's `Data` that an audit uses."""

    def __init__(self, values: Mapping[str, Any], name_of_pos: str = "pos") -> None:
        object.__setattr__(self, "_values", dict(values))
        object.__setattr__(self, "_pos", name_of_pos)

    def __getattr__(self, key: str) -> Any:
        values = object.__getattribute__(self, "_values")
        if key not in values and key not in ("pos", "edge_index", "batch"):
            raise AttributeError(f"the structure has no {key!r}, only {', '.join(values)}")
        return values.get(key)

    def __setattr__(self, key: str, value: Any) -> None:
        self._values[key] = value

    def __delattr__(self, key: str) -> None:
        self._values.pop(key, None)

    __setitem__ = __setattr__

    def __getitem__(self, key: str) -> Any:
        return self._values[key]

    def __contains__(self, key: str) -> bool:
        return key in self._values

    def __copy__(self) -> TensorGraph:
        return TensorGraph(self._values, self._pos)

    @property
    def num_nodes(self) -> int:
        """The number of rows of `pos`."""
        return len(self.pos)

    @property
    def num_edges(self) -> int:
        """The number of columns of `edge_index`, 0 where there is none."""
        return 0 if self.edge_index is None else self.edge_index.size(1)

    def to_dict(self) -> dict[str, Any]:
        """All values by their names here."""
        return dict(self._values)

    def as_given(self) -> dict[str, Any]:
        """All values by the names that they were given with."""
        return {self._pos if key == "pos" else key: v for key, v in self._values.items()}

    def is_edge_attr(self, key: str) -> bool:
        """Whether there is a row for each edge."""
        value = self._values.get(key)
        if not isinstance(value, Tensor) or value.dim() == 0 or key == "edge_index":
            return False
        edges, nodes = self.num_edges, self.num_nodes
        return edges == len(value) and ("edge" in key or edges != nodes) and key not in OF_GRAPHS

    def is_node_attr(self, key: str) -> bool:
        """Whether there is a row for each node."""
        value = self._values.get(key)
        if not isinstance(value, Tensor) or value.dim() == 0 or key in OF_GRAPHS:
            return False
        if key in ("pos", "batch"):
            return True
        return len(value) == self.num_nodes and "index" not in key and not self.is_edge_attr(key)

    def clone(self) -> TensorGraph:
        """A copy that shares no memory."""
        values = {k: v.clone() if isinstance(v, Tensor) else v for k, v in self._values.items()}
        return TensorGraph(values, self._pos)

    def to(self, device: torch.device) -> TensorGraph:
        """All tensors on a device."""
        values = {k: v.to(device) if isinstance(v, Tensor) else v for k, v in self._values.items()}
        return TensorGraph(values, self._pos)


def join_graphs(parts: Sequence[TensorGraph]) -> TensorGraph:
    """One structure with the rows of all, and `batch` `[N]` to tell them apart."""
    first, start = parts[0], 0
    values: dict[str, Any] = {}
    starts = []
    for part in parts:
        starts.append(start)
        start += part.num_nodes
    for key, value in first.to_dict().items():
        own = [part[key] for part in parts]
        if not isinstance(value, Tensor):
            values[key] = own
        elif "index" in key or key == "face":
            shifted = [one + at for one, at in zip(own, starts, strict=True)]
            values[key] = torch.cat(shifted, -1)
        else:
            values[key] = torch.cat([one if one.dim() else one.reshape(1) for one in own])
    sizes = torch.tensor([part.num_nodes for part in parts])
    values["batch"] = torch.repeat_interleave(torch.arange(len(parts)), sizes)
    return TensorGraph(values, first._pos)
