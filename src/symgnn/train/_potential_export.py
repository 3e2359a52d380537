"""A trained potential as a file that PyTorch alone can run."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import torch
from torch import Tensor
from torch.export import Dim, ExportedProgram
from torch.fx.experimental.proxy_tensor import make_fx
from torch_geometric.data import Data

from symgnn.nn import Potential, export
from symgnn.nn.exporting import tracing_inputs
from symgnn.train._program_export import checked_path, save_program


def export_potential(
    potential: Potential,
    path: str | os.PathLike[str],
    *,
    cutoff: float,
    elements: Sequence[int],
    aoti: bool = False,
) -> Path:
    """Write a potential with `torch.export.save`.

    The program takes `pos [N, 3]`, `edge_index [2, E]`, `edge_shift [E, 3]`, `batch [N]` and
    `z [N]`, and gives energies `[G]` in eV. The file has `cutoff`, `elements` and `dtype` too.

    Args:
        potential: The potential.
        path: The file, which ends with .pt2.
        cutoff: How far atoms are joined, in Angstrom.
        elements: The atomic numbers of the training.
        aoti: Whether it is compiled by AOTInductor; the program then gives forces `[N, 3]` too.
    """
    out = checked_path(path)
    dtype = next(potential.parameters()).dtype
    pair = torch.tensor([[0, 1], [1, 0]])
    example = Data(
        pos=torch.tensor([[0.0, 0.0, 0.0], [0.0, 0.0, cutoff / 2]], dtype=dtype),
        edge_index=pair,
        edge_shift=torch.zeros(2, 3, dtype=dtype),
        z=torch.full((2,), elements[0]),
    )
    names = ["pos", "edge_index", "edge_shift", "batch", "z"]
    about = {
        "cutoff": cutoff,
        "elements": list(elements),
        "dtype": str(dtype).removeprefix("torch."),
        "inputs": names,
        "output": "energy of each graph in eV",
    }
    program = export(potential, example)
    if aoti:
        about["output"] = "energy of each graph in eV, forces in eV/A"
        program = with_forces(program, names, example)
    return save_program(program, out, about, aoti)


def with_forces(program: ExportedProgram, names: Sequence[str], example: Data) -> ExportedProgram:
    """A program of energies as one of energies `[G]` and forces `[N, 3]`.

    A compiled program cannot be differentiated, so its derivative is written down as operations.
    The inputs come in the order of `names`.
    """
    inner = program.module()

    def both(*given: Tensor) -> tuple[Tensor, Tensor]:
        inputs = dict(zip(names, given, strict=True))
        pos = inputs["pos"] = inputs["pos"].detach().requires_grad_()
        energy = inner(**inputs)
        (gradient,) = torch.autograd.grad(energy.sum(), pos)
        return energy.detach(), -gradient

    rows = {"edge_index": {1: "edges"}, "edge_shift": {0: "edges"}}
    dims = {name: Dim(name, min=0) for name in ("nodes", "edges")}
    shapes = tuple(
        {axis: dims[size] for axis, size in rows.get(name, {0: "nodes"}).items()} for name in names
    )
    values = tracing_inputs(example)
    given = [values[name] for name in names]
    traced = make_fx(both, tracing_mode="symbolic", _allow_non_fake_inputs=True)(*given)
    return torch.export.export(traced, tuple(given), dynamic_shapes=shapes, strict=False)
