"""A trained potential as a file that PyTorch alone can run."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path

import torch
from torch_geometric.data import Data

from symgnn.nn import Potential, export
from symgnn.store import check_writable

#: The file of facts inside an exported program.
ABOUT = "symgnn.json"


def export_potential(
    potential: Potential,
    path: str | os.PathLike[str],
    *,
    cutoff: float,
    elements: Sequence[int],
) -> Path:
    """Write a potential with `torch.export.save`.

    The program takes `pos [N, 3]`, `edge_index [2, E]`, `edge_shift [E, 3]`, `batch [N]` and
    `z [N]`, and gives energies `[G]` in eV. The file has `cutoff`, `elements` and `dtype` too.

    Args:
        potential: The potential.
        path: The file, which ends with .pt2.
        cutoff: How far atoms are joined, in Angstrom.
        elements: The atomic numbers of the training.
    """
    out = Path(path)
    if out.suffix != ".pt2":
        raise ValueError(f"out: is {str(out)!r}; give a file that ends with .pt2")
    check_writable(out)
    dtype = next(potential.parameters()).dtype
    pair = torch.tensor([[0, 1], [1, 0]])
    example = Data(
        pos=torch.tensor([[0.0, 0.0, 0.0], [0.0, 0.0, cutoff / 2]], dtype=dtype),
        edge_index=pair,
        edge_shift=torch.zeros(2, 3, dtype=dtype),
        z=torch.full((2,), elements[0]),
    )
    about = {
        "cutoff": cutoff,
        "elements": list(elements),
        "dtype": str(dtype).removeprefix("torch."),
        "inputs": ["pos", "edge_index", "edge_shift", "batch", "z"],
        "output": "energy of each graph in eV",
    }
    program = export(potential, example)
    torch.export.save(program, out, extra_files={ABOUT: json.dumps(about)})
    return out
