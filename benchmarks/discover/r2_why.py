"""Why GN is ahead on r2 of QM9, which keeps rigid motions: direction, or distances beyond bonds?

    python benchmarks/discover/r2_why.py FOLDER CACHE docs/results/discover/r2-why.json

Protocol. Molecules, networks and budget of `longer.py` (`qm9-r2`), mean absolute error in Bohr^2:
- GN with every molecule under an orthogonal map of its own about its centre (training, validation
  and test): what GN has from the common orientation of the molecules is gone, r2 stays;
- DGN on all pairs of atoms in place of bonds, with 16 smooth functions of the distance.
If turned GN is as far behind as the networks that keep rotations, the orientation of the molecules is
what GN reads. If DGN on all pairs comes near GN, it is the distances that bonds do not have.
"""

from __future__ import annotations

import sys
from pathlib import Path

import torch
from longer import SETS, trained, turned

import symgnn
from symgnn.store import environment, write_json


def main(folder: Path, cache: Path, path: Path) -> None:
    """Both, one after the other."""
    torch.set_num_threads(1)
    given = {"source": folder / "qm9", "root": cache, "targets": ["r2"], "complete": True}
    pairs = symgnn.data.load("qm9", **given, limit=(800, 200, 500), validation=200)
    found = {
        "gn, turned": trained("qm9-r2", turned(SETS["qm9-r2"](folder, cache)), {"block": "gn"}),
        "dgn, all pairs": trained("qm9-r2", pairs, {"block": "dgn", "radial": 16, "cutoff": 8.0}),
    }
    for name, row in found.items():
        print(name, {key: value for key, value in row.items() if key != "graphs"}, flush=True)
    write_json(path, {"networks": found, "environment": environment()})


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:4]))
