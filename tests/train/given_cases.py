"""Cases of the tests test_given, test_given_kinds."""

from __future__ import annotations

from pathlib import Path

import yaml

from symgnn.cli import main
from symgnn.data import sample

WATER = sample("molecules") / "water.xyz"


def trained(folder: Path, data: dict, **train: object) -> Path:
    config = {
        "data": data,
        "model": {"block": "dgn", "hidden": 4, "layers": 1},
        "train": {"epochs": 1, **train},
    }
    (folder / "c.yaml").write_text(yaml.safe_dump(config))
    assert main(["train", str(folder / "c.yaml"), "--out", str(folder / "run")]) == 0
    return folder / "run"
