"""Checks of a graph; each error is one line that names the field, the value and the fix."""

from typing import Any

import torch
from torch import Tensor


def check_positions(pos: Any) -> None:
    """`pos` is `[N, n]`, n >= 1, floating point and finite."""
    if pos is None:
        raise ValueError(
            "pos: the graph has no coordinates; set data.pos to a [N, n] tensor (of a HeteroData, "
            "use data.to_homogeneous())"
        )
    check_shape("pos", pos, "[N, n]")
    if pos.shape[1] < 1:
        raise ValueError("pos: has shape [N, 0]; coordinates need at least one dimension")
    finite = torch.isfinite(pos).all(-1)
    if not bool(finite.all()):
        row = int((~finite).nonzero()[0])
        raise ValueError(
            f"pos: row {row} is {pos[row].tolist()}; remove or repair nodes whose coordinates "
            "are not finite"
        )


def check_shape(name: str, value: Any, shape: str) -> None:
    """`value` is a floating-point matrix; `shape` is what to call its shape in the message."""
    if not isinstance(value, Tensor):
        raise TypeError(
            f"{name}: is a {type(value).__name__}; give a torch tensor of shape {shape}"
        )
    if value.dim() != 2:
        hint = "; use .unsqueeze(-1)" if value.dim() == 1 else ""
        raise ValueError(f"{name}: has shape {list(value.shape)}; it must be {shape}{hint}")
    if not value.is_floating_point():
        raise ValueError(f"{name}: is {value.dtype}; it must be floating point (use .float())")


def check_edges(edge_index: Any, num_nodes: int, batch: Any = None) -> None:
    """`edge_index` is `[2, E]`, int64, in range, and joins nodes of one graph."""
    if edge_index is None:
        raise ValueError(
            "edge_index: the graph has no edges; set data.edge_index, or build it with "
            "symgnn.graphs.KNNGraph or RadiusGraph"
        )
    if not isinstance(edge_index, Tensor):
        raise TypeError(f"edge_index: is a {type(edge_index).__name__}; give a [2, E] tensor")
    if edge_index.dim() != 2 or edge_index.shape[0] != 2:
        hint = "; use .t()" if edge_index.dim() == 2 and edge_index.shape[1] == 2 else ""
        raise ValueError(f"edge_index: has shape {list(edge_index.shape)}; it must be [2, E]{hint}")
    if edge_index.dtype != torch.int64:
        raise ValueError(f"edge_index: is {edge_index.dtype}; it must be int64 (use .long())")
    if edge_index.numel():
        low, high = int(edge_index.min()), int(edge_index.max())
        if low < 0 or high >= num_nodes:
            bad = low if low < 0 else high
            raise ValueError(
                f"edge_index: names node {bad}, but the graph has nodes 0 to {num_nodes - 1}; "
                "renumber the edges or add the missing rows to pos"
            )
    if batch is not None:
        check_batch(batch, num_nodes)
        if bool((batch[edge_index[0]] != batch[edge_index[1]]).any()):
            edge = int((batch[edge_index[0]] != batch[edge_index[1]]).nonzero()[0])
            raise ValueError(
                f"edge_index: edge {edge} joins nodes {edge_index[:, edge].tolist()} of different "
                "graphs; batch the graphs with torch_geometric.data.Batch"
            )


def check_batch(batch: Any, num_nodes: int) -> None:
    """`batch` is `[N]`, int64 and not negative."""
    if not isinstance(batch, Tensor) or batch.dtype != torch.int64 or batch.dim() != 1:
        raise ValueError("batch: must be an int64 tensor of shape [N]")
    if batch.numel() != num_nodes:
        raise ValueError(f"batch: has {batch.numel()} entries for {num_nodes} nodes; give one each")
    if batch.numel() and int(batch.min()) < 0:
        raise ValueError(f"batch: holds {int(batch.min())}; graphs are numbered from 0")


def check_shift(edge_shift: Any, edge_index: Tensor, pairs: bool) -> None:
    """`edge_shift` is `[E, n]`, floating point and finite, and no map needs all pairs of nodes."""
    if edge_shift is None:
        return
    check_shape("edge_shift", edge_shift, "[E, n]")
    if edge_shift.shape[0] != edge_index.shape[1]:
        raise ValueError(
            f"edge_shift: has {edge_shift.shape[0]} rows for {edge_index.shape[1]} edges; give one "
            "each"
        )
    if not bool(torch.isfinite(edge_shift).all()):
        raise ValueError("edge_shift: holds numbers that are not finite; repair them")
    if pairs:
        raise ValueError(
            "edge_shift: all pairs of nodes are not defined in periodic cells; use the "
            "coordinate map 'egcn-neighbours' in place of 'egcn'"
        )


def check_shift_dimension(edge_shift: Any, pos: Tensor) -> None:
    """`edge_shift` has as many coordinates as `pos`."""
    matrix = isinstance(edge_shift, Tensor) and edge_shift.dim() == 2
    if matrix and edge_shift.shape[1] != pos.shape[1]:
        raise ValueError(
            f"edge_shift: has {edge_shift.shape[1]} coordinates; pos has {pos.shape[1]}"
        )
