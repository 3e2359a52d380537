"""A trained network as a file that PyTorch alone can run, in the units of its data."""

from __future__ import annotations

import json
import os
import shutil
import warnings
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch._inductor.exc import InductorError
from torch.export import ExportedProgram
from torch_geometric.data import Data

from symgnn.data._task import Task
from symgnn.nn import Model
from symgnn.nn.exporting import Exportable, exported
from symgnn.store import check_writable
from symgnn.train._metrics import Scaler

#: The file of facts inside an exported program.
ABOUT = "symgnn.json"
#: Those that AOTInductor may find.
COMPILERS = ("g++", "clang++", "c++", "cl")


class InUnits(nn.Module):
    """A network between the units of its source and those of its targets, as a run predicts.

    It takes what :class:`symgnn.nn.exporting.Exportable` takes, with lengths as its source has
    them, and gives probabilities of classes, or targets in their units in float64.
    """

    mean: Tensor
    deviation: Tensor

    def __init__(self, task: Task, scaler: Scaler, scale: float, program: Exportable) -> None:
        super().__init__()
        self.program, self.scale = program, scale
        self.classes, self.places = task.kind == "classification", task.level == "coordinates"
        self.lengths, self.level = task.lengths, task.level
        self.register_buffer("mean", scaler.mean.clone())
        self.register_buffer("deviation", scaler.deviation.clone())

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
        """The prediction for a batch of graphs, `[rows, outputs]`."""
        out: Tensor = self.program(
            pos=pos * self.scale,
            edge_index=edge_index,
            batch=batch,
            x=x,
            z=z,
            vel=None if vel is None else vel * self.scale,
            edge_attr=edge_attr,
            angle_attr=angle_attr,
            u=u,
            edge_shift=None if edge_shift is None else edge_shift * self.scale,
        )
        if self.classes:
            return out.softmax(-1)
        if self.places:
            return out / self.scale
        out = out.flatten(1).double() * self.deviation + self.mean
        return out / self.scale if self.lengths else out


def export_model(
    model: Model,
    path: str | os.PathLike[str],
    *,
    task: Task,
    scaler: Scaler,
    scale: float,
    sizes: Mapping[str, int],
    periodic: bool,
    aoti: bool = False,
) -> Path:
    """Write the network of a run with `torch.export.save`, or compiled.

    Args:
        model: The network.
        path: The file, which ends with .pt2.
        task, scaler, scale: Those of the run.
        sizes: The dimension and the widths of the features.
        periodic: Whether the program takes shifts of edges.
        aoti: Whether it is compiled by AOTInductor, which needs a C++ compiler.
    """
    out = checked_path(path)
    example = example_of(model, sizes, periodic)
    program = exported(model, example, partial(InUnits, task, scaler, scale))
    names = [spec.arg.name for spec in program.graph_signature.input_specs if _is_input(spec)]
    rows = {"graph": "graph", "node": "node", "edge": "edge"}[task.place]
    about = {
        "inputs": names,
        "dtype": str(example.pos.dtype).removeprefix("torch."),
        "output": f"one row for each {rows}",
        "targets": list(task.targets),
        "units": list(task.units),
        "classes": list(task.classes),
    }
    return save_program(program, out, about, aoti)


def example_of(model: Model, sizes: Mapping[str, int], periodic: bool) -> Data:
    """Two nodes with the features that the network reads."""
    dtype = next(model.parameters()).dtype
    n = sizes["dimension"]
    pos = torch.zeros(2, n, dtype=dtype)
    pos[1] = 1.0
    found = Data(pos=pos, edge_index=torch.tensor([[0, 1], [1, 0]]))
    rows = {"x": ("node_features", 2), "edge_attr": ("edge_features", 2)}
    rows |= {"angle_attr": ("angle_features", 0), "u": ("graph_features", 1)}
    for name, (option, count) in rows.items():
        if sizes.get(option) and name not in model.unread:
            found[name] = torch.ones(count, sizes[option], dtype=dtype)
    if model.needs_types:
        found.z = torch.ones(2, dtype=torch.long)
    if model.needs_velocity:
        found.vel = torch.ones(2, n, dtype=dtype)
    if periodic:
        found.edge_shift = torch.zeros(2, n, dtype=dtype)
    return found


def _is_input(spec: Any) -> bool:
    return bool(spec.kind == torch.export.graph_signature.InputKind.USER_INPUT) and hasattr(
        spec.arg, "name"
    )


def checked_path(path: str | os.PathLike[str]) -> Path:
    """The file to write, which ends with .pt2."""
    out = Path(path)
    if out.suffix != ".pt2":
        raise ValueError(f"out: is {str(out)!r}; give a file that ends with .pt2")
    check_writable(out)
    if not out.parent.is_dir():
        raise ValueError(f"out: the folder {str(out.parent)!r} is not there; make it first")
    return out


def save_program(
    program: ExportedProgram, out: Path, about: Mapping[str, Any], aoti: bool = False
) -> Path:
    """Write a program with facts about it; compiled, the facts are in a file of JSON beside it."""
    if not aoti:
        torch.export.save(program, out, extra_files={ABOUT: json.dumps(about)})
        return out
    if not any(shutil.which(name) for name in (os.environ.get("CXX", "g++"), *COMPILERS)):
        raise ValueError(
            "aoti: needs a C++ compiler, such as g++, and there is none; install one, or leave "
            "--aoti out"
        )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # of PyTorch about itself
        _compile(program, out)
    out.with_suffix(".json").write_text(json.dumps(about, indent=1))
    return out


def _compile(program: ExportedProgram, out: Path) -> None:
    """Compile a program, without vectors where PyTorch's code with them is not valid C++."""
    for options in (None, {"cpp.simdlen": 1}):
        try:
            torch._inductor.aoti_compile_and_package(
                program, package_path=str(out), inductor_configs=options
            )
            return
        except InductorError as error:
            said = [line.strip() for line in str(error).splitlines() if " error: " in line]
            reason = said[0] if said else str(error).partition("\n")[0]
    raise ValueError(f"aoti: the compiler refuses the program ({reason}); remove --aoti")
