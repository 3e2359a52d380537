"""Models as programs that run without symgnn: `torch.export`, with the topology inside."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.export import Dim, ExportedProgram
from torch_geometric.data import Data

from symgnn.graphs import Topology
from symgnn.graphs.plain import plain_topology
from symgnn.nn.model import Model
from symgnn.nn.potential import Potential

#: The features of a graph that a model can read, and along which of its sizes they go.
ROWS = {
    "x": "nodes",
    "z": "nodes",
    "vel": "nodes",
    "edge_attr": "edges",
    "angle_attr": "angles",
    "u": "graphs",
}


class Exportable(nn.Module):
    """A model that takes plain tensors and makes the topology itself, as `torch.export` can.

    It takes coordinates `[N, n]`, edges `[2, E]`, the graph of each node `[N]`, shifts of the edges
    `[E, n]` where they are in cells, and those of `x`, `z`, `vel`, `edge_attr`, `angle_attr` and
    `u` that the model reads, and gives what the model does; of a potential, the energies `[G]`.
    """

    def __init__(self, model: Model | Potential) -> None:
        super().__init__()
        self.potential = model if isinstance(model, Potential) else None
        self.model = model.model if isinstance(model, Potential) else model

    def forward(
        self,
        pos: Tensor,
        edge_index: Tensor,
        batch: Tensor,
        x: Tensor | None = None,
        z: Tensor | None = None,
        vel: Tensor | None = None,
        edge_attr: Tensor | None = None,
        angle_attr: Tensor | None = None,
        u: Tensor | None = None,
        edge_shift: Tensor | None = None,
    ) -> Tensor:
        """The output of the model for a batch of graphs."""
        topology = plain_topology(
            edge_index,
            batch,
            num_graphs=None if u is None else u.shape[0],
            num_angles=None if angle_attr is None else angle_attr.shape[0],
            angles=self.model.needs_angles,
            whole=self.model.lists_angles,
            pairs=self.model.needs_pairs,
            edge_shift=edge_shift,
        )
        out: Tensor = self.model(
            pos=pos,
            topology=topology,
            x=x,
            z=z if self.model.needs_types else None,
            vel=vel,
            edge_attr=edge_attr,
            angle_attr=angle_attr,
            u=u,
        )
        return out if self.potential is None else self.potential.totals(out, z, topology)[0]


def export(model: Model | Potential, example: Data) -> ExportedProgram:
    """Export a model as a program of PyTorch operations, which runs without symgnn.

    The program takes plain tensors by name, and any number of graphs, nodes, edges and neighbours:
    `pos [N, n]`, `edge_index [2, E]`, `batch [N]`, `edge_shift [E, n]` if the example has it, and
    those of `x`, `z`, `vel`, `edge_attr`, `angle_attr` and `u` that the model reads. Save it with
    `torch.export.save`. Its inputs are not checked: pass inputs that the model accepts, in the
    dtypes of `example`. For a potential it returns the energies `[G]`; forces are
    `-torch.autograd.grad(energy.sum(), pos)[0]`.

    Args:
        model: A model of :func:`build` or a :class:`Potential`, on the device that the program
            shall run on. It is exported in eval mode, without dropout.
        example: A graph or batch in the form that the model reads; only its widths and dtypes
            matter.

    Returns:
        An exported program; `program.module()(pos=..., edge_index=..., batch=...)` runs it.

    Example:
        >>> model, graph = symgnn.nn.build("dgn"), symgnn.data.polytope("simplex", 3)
        >>> program = symgnn.nn.export(model, graph)
        >>> torch.export.save(program, "model.pt2")
        >>> loaded = torch.export.load("model.pt2").module()  # in any process with torch
        >>> batch = torch.zeros(4, dtype=torch.long)
        >>> loaded(pos=graph.pos, edge_index=graph.edge_index, batch=batch).shape
        torch.Size([1, 1])
    """
    return exported(model, example, lambda program: program)


def exported(
    model: Model | Potential, example: Data, wrap: Callable[[Exportable], nn.Module]
) -> ExportedProgram:
    """As :func:`export`, of a module with the same inputs that `wrap` makes."""
    if not isinstance(model, Model | Potential):
        raise TypeError(f"model: is a {type(model).__name__}; give a model of symgnn.nn.build")
    if isinstance(model, Potential) and torch.__version__ < "2.12":
        raise ValueError(
            f"torch: is {torch.__version__}, which cannot record potentials; update PyTorch to "
            "2.12 or newer"
        )
    whole, model = model, model.model if isinstance(model, Potential) else model
    chunk = getattr(model.engine, "chunk", None)
    if chunk is not None:
        raise ValueError(
            f"chunk: is {chunk}; an exported program computes all angles at once, so build "
            "the model without chunk"
        )
    if model.needs_part:
        raise ValueError(
            "part: an exported program takes no parts of graphs yet; export a model without the "
            "coordinate map 'part-sum'"
        )
    modes = {module: module.training for module in whole.modules()}
    whole.eval()
    try:
        with torch.no_grad():
            whole(example)  # what does not fit is said here, by name
        reads = model.needs_types or isinstance(whole, Potential)
        return _traced(
            wrap(Exportable(whole)), tracing_inputs(example, reads, model.needs_velocity)
        )
    finally:
        for module, training in modes.items():
            module.training = training


def _traced(module: nn.Module, given: dict[str, Tensor]) -> ExportedProgram:
    sizes = {"nodes": "pos", "edges": "edge_index", "graphs": "u", "angles": "angle_attr"}
    dims = {name: Dim(name, min=0) for name, value in sizes.items() if value in given}
    rows = {"pos": "nodes", "batch": "nodes", "edge_shift": "edges", **ROWS}
    shapes: dict[str, Any] = {
        name: {1: dims["edges"]} if name == "edge_index" else {0: dims[rows[name]]}
        for name in given
    }
    return torch.export.export(module, (), given, dynamic_shapes=shapes, strict=False)


def tracing_inputs(
    example: Data, reads_types: bool = True, reads_velocity: bool = False
) -> dict[str, Tensor]:
    """A small batch with the features of the example, in which nothing has the size 0 or 1."""
    pos = example.pos
    n, device = pos.shape[1], pos.device
    path = torch.tensor([[0, 1, 1, 2, 3, 4, 4, 5, 5], [1, 0, 2, 1, 4, 3, 5, 4, 3]], device=device)
    given = {
        "pos": torch.randn(7, n, device=device).to(pos.dtype),
        "edge_index": path,
        "batch": torch.tensor([0, 0, 0, 1, 1, 1, 2], device=device),
    }
    angles = Topology.build(path, 7, given["batch"]).num_angles
    if getattr(example, "edge_shift", None) is not None:
        shift = torch.zeros(path.shape[1], n, device=device).to(pos.dtype)
        shift[0, 0], shift[1, 0] = 1.0, -1.0
        given["edge_shift"] = shift
    counts = {"nodes": 7, "edges": path.shape[1], "graphs": 3, "angles": angles}
    for name, rows in ROWS.items():
        value = getattr(example, name, None)
        if value is None or (name == "z" and not reads_types):
            continue
        if name == "vel" and not reads_velocity:
            continue
        shape = (counts[rows], *value.shape[1:])
        given[name] = torch.ones(shape, device=device, dtype=value.dtype)
    return given
