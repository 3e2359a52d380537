"""Warnings of the command line: a line each, without those of dependencies."""

from __future__ import annotations

import sys
import warnings
from typing import TextIO

#: Packages whose warnings are about how their own code is called, or about the machine.
DEPENDENCIES = (
    "ase",
    "google",
    "lightning",
    "lightning_fabric",
    "lightning_utilities",
    "matplotlib",
    "pkg_resources",
    "rdkit",
    "tensorboard",
    "torch",
    "torch_geometric",
    "torchmetrics",
    "trimesh",
)


def warnings_as_lines() -> None:
    """Print warnings as `symgnn: warning: ...`, and drop those of dependencies.

    For the process of the command `symgnn`, not for a library. With `python -W` or PYTHONWARNINGS
    nothing is changed.
    """
    if sys.warnoptions:
        return
    warnings.filterwarnings("ignore", module=rf"({'|'.join(DEPENDENCIES)})(\.|$)")
    warnings.showwarning = _show


def _show(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    """As `warnings.showwarning`, without the file and the line of source code."""
    text = " ".join(str(message).split())
    (sys.stderr if file is None else file).write(f"symgnn: warning: {text}\n")
