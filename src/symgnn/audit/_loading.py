"""Inputs of the command: a graph from a file, and a model by the name of its factory."""

from __future__ import annotations

import importlib
import inspect
import os
import sys
from typing import Any

from torch import nn

from symgnn.data import read
from symgnn.data.files._file_structure import How
from symgnn.data.files._formats import ASE, XYZ, File, find


def read_graph(path: str | os.PathLike[str]) -> Any:
    """The graph in a file, or a list of them, as :func:`symgnn.data.read` gives them.

    Files of ASE are given as its `Atoms`, with the cell and all else that a calculator may need.
    """
    try:
        file, *more = find([path], How())
        if file.reader in (ASE, XYZ) and not more:
            return _read_atoms(file)
        # y is not read; no unit of length is wrong, and nodes keep the features that they have
        graphs = read(path, kind="regression", units="angstrom", elements=())
    except ValueError as error:
        reason = str(error).removeprefix("path: ").partition("; or pass on_error")[0]
        raise ValueError(f"--data: {reason}") from None
    return graphs[0] if len(graphs) == 1 else list(graphs)


def _read_atoms(file: File) -> Any:
    try:
        return importlib.import_module("ase.io").read(file.path)
    except Exception as error:  # a file that is no such file raises almost anything
        reason = str(error).strip().partition("\n")[0] or type(error).__name__
        raise ValueError(f"{file.path}: cannot be read ({reason})") from None


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
