"""Graphs that a model gets as tensors, `model(x, pos, edge_index, batch=batch)`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torch import Tensor

from symgnn.graphs import Topology
from symgnn.graphs.checks import check_positions, check_shift_dimension

if TYPE_CHECKING:
    from symgnn.nn.model import Model


def graph_of_parts(
    model: Model,
    pos: Tensor | None,
    edge_index: Tensor | None,
    batch: Tensor | None,
    u: Tensor | None,
    edge_shift: Tensor | None,
    topology: Topology | None,
) -> tuple[Tensor, Topology]:
    """The coordinates `[N, n]`, and the topology as the model needs it, given or made here.

    The number of graphs is that of the rows of `u [G, F]`, where they are more than `batch` names:
    the last graphs of a batch may have no nodes.
    """
    if pos is not None and topology is not None:
        if edge_index is not None or batch is not None:
            topology.check(topology.edge_index if edge_index is None else edge_index, batch)
        if edge_shift is not None:
            topology.check_shift(edge_shift)
        whole = model.lists_angles
        if not topology.has(angles=model.needs_angles, whole=whole, pairs=model.needs_pairs):
            raise ValueError(
                "topology: lacks angles or pairs of nodes that this model reads; make it by "
                "model.topology(data)"
            )
        return pos, topology
    if pos is None or edge_index is None:
        raise TypeError(
            "forward takes a Data or Batch, or pos [N, n] and edge_index [2, E] (or topology)"
        )
    check_positions(pos)
    check_shift_dimension(edge_shift, pos)
    graphs = None
    if isinstance(u, Tensor) and isinstance(batch, Tensor) and batch.numel():
        graphs = max(len(u), int(batch.max()) + 1)
    return pos, Topology.build(
        edge_index,
        pos.shape[0],
        batch,
        num_graphs=graphs,
        angles=model.needs_angles,
        whole=model.lists_angles,
        pairs=model.needs_pairs,
        lines=model.uses_lines,
        edge_shift=edge_shift,
    )
