"""Real data, where they are: in SYMGNN_SHARED, or in `shared` beside the repository."""

import os
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


def shared(name: str) -> Path:
    """The folder of a real dataset; the test is skipped where there is none."""
    folder = Path(os.environ.get("SYMGNN_SHARED", ROOT.parent / "shared")) / "data"
    if not (folder / name).is_dir():
        pytest.skip(f"no {name} in {folder}; set SYMGNN_SHARED to a folder that has data/{name}")
    return folder
