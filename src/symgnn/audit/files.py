"""What the command reads: a graph from a file, and a model by the name of its factory."""

from __future__ import annotations

import importlib
import inspect
import os
import sys
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn
from torch_geometric.data import Data
from torch_geometric.data.data import DataEdgeAttr, DataTensorAttr
from torch_geometric.data.storage import GlobalStorage

#: What a saved graph is made of; nothing else is unpickled.
SAFE = [Data, DataEdgeAttr, DataTensorAttr, GlobalStorage]


def read_graph(path: str | os.PathLike[str]) -> Any:
    """The graph in a file.

    `.pt` is a `Data`, or a list of them, written by `torch.save`; nothing else is unpickled.
    `.npz` has arrays called as in `Data`. Anything else is read by ASE, and given as its `Atoms`.
    """
    path = Path(path)
    if not path.is_file():
        raise ValueError(f"--data: there is no file {path}; pass a .pt, .npz, .xyz or the like")
    read = {".pt": _read_pt, ".npz": _read_npz}.get(path.suffix, _read_atoms)
    try:
        return read(path)
    except ImportError:
        raise ValueError(
            f"--data: {path.name} is read by ASE, which is not installed; "
            "pip install symgnn[molecules]"
        ) from None
    except Exception as error:  # a file that is no such file raises almost anything
        reason = str(error).strip().partition("\n")[0] or type(error).__name__
        if "eights only load failed" in reason:
            reason = "it holds more than a PyG Data, or a list of them"
        raise ValueError(f"--data: {path} cannot be read ({reason})") from None


def _read_pt(path: Path) -> Any:
    with torch.serialization.safe_globals(SAFE):
        return torch.load(path, weights_only=True, map_location="cpu")


def _read_npz(path: Path) -> Data:
    with np.load(path, allow_pickle=False) as file:
        return Data(**{key: torch.from_numpy(file[key]) for key in file})


def _read_atoms(path: Path) -> Any:
    return importlib.import_module("ase.io").read(path)


def load_model(target: str) -> Any:
    """The model that `package.module:factory` names: what it makes, or the thing itself.

    A factory is called without arguments. A module, a calculator, or a function that has to be
    given arguments, is taken as it is.
    """
    module, _, name = target.partition(":")
    if not module or not name:
        raise ValueError(
            f"target: {target!r} is not understood; pass package.module:factory, such as "
            "models.mine:build"
        )
    here = os.getcwd()  # noqa: PTH109
    added = here not in sys.path
    if added:
        sys.path.insert(0, here)
    try:
        found: Any = importlib.import_module(module)
        for part in name.split("."):
            found = getattr(found, part)
        return found() if _is_factory(found) else found
    except Exception as error:
        reason = str(error).strip().partition("\n")[0] or type(error).__name__
        raise ValueError(f"target: {target} cannot be made ({reason})") from error
    finally:
        if added:
            sys.path.remove(here)


def _is_factory(found: Any) -> bool:
    if isinstance(found, nn.Module) or not callable(found):
        return False
    parameters = inspect.signature(found).parameters.values()
    needed = [p for p in parameters if p.default is p.empty]
    return all(p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD) for p in needed)
