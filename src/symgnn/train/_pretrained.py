"""Small trained networks that come with the package: :func:`symgnn.load` takes their names."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from symgnn.store import read_json
from symgnn.train._checkpointing import Group
from symgnn.train._config import Config
from symgnn.train._run_record import read_run
from symgnn.train._safetensors import read_safetensors

FOLDER = Path(__file__).parent / "pretrained"
#: The networks by name, with what they predict.
PRETRAINED = {
    "solids": "which of the five Platonic solids a graph is",
    "qm9-homo": "the energy of the highest occupied orbital of a molecule of QM9, in hartree",
    "qm9-zpve": "the zero-point vibrational energy of a molecule of QM9, in hartree",
}


def read_pretrained(name: str) -> tuple[Config, dict[str, Any], Group, dict[str, Any]]:
    """The config, the record, the weights and the metrics of a network of the package."""
    folder = FOLDER / name
    config, record = read_run(folder)
    weights = read_safetensors(folder / "weights.safetensors")
    metrics = read_json(folder / "metrics.json")
    return config, record, Group(name, {"members": [weights]}, log=[]), metrics
