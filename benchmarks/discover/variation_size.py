"""How often does Christie and Aston's test reject what is true, and what is not?

    python benchmarks/discover/variation_size.py docs/results/discover/variation.json

Protocol. Size: the 300 sets of `size.py` (100 random trees, isotropic, targets that keep translations,
rotations and reflections, noise of 0.3 deviations) from seed 2,000 on, and the first 50 of
them with every tree turned so that its first edge is upright: targets keep rotations, inputs are
aligned.
Power: 40 sets of 200 clouds, targets of heights, which keep none of the three, in the plane (20)
and in space (20), noise of 0.1 deviations.

Criterion, at level 0.05: at most 23 of 300 and 6 of 50 sets are rejected for each kind where the
targets keep it (95 % of a binomial law are 8 to 23 and 0 to 6; fewer are no fault, as the splits
overlap and p-values gather around 1/2). Power is told as it comes out.
"""

from __future__ import annotations

import sys
from pathlib import Path

import torch
from planted import planted
from size import symmetric
from torch_geometric.data import Data

from symgnn.data._task_of_graphs import with_task
from symgnn.discovery._packing import pack
from symgnn.discovery._target_rows import target_rows
from symgnn.discovery._variation_test import ISOMETRIES, variation_test
from symgnn.store import environment, read_json, write_json

SETS = {"spread": 300, "aligned": 50, "heights-2d": 20, "heights-3d": 20}
LEVEL = 0.05


def upright(graphs: list[Data]) -> list[Data]:
    """Each graph turned so that its first edge points along the last axis."""
    found = []
    for graph in graphs:
        source, target = graph.edge_index[:, 0]
        ray = graph.pos[target] - graph.pos[source]
        wanted = torch.zeros_like(ray)
        wanted[-1] = 1.0
        normal = ray / ray.norm() - wanted
        normal = normal / normal.norm().clamp(min=1e-12)
        copy = graph.clone()
        mirrored = graph.pos - 2 * (graph.pos @ normal).unsqueeze(1) * normal
        mirrored[:, 0] = -mirrored[:, 0]  # two mirrors are a rotation
        copy.pos = mirrored
        found.append(copy)
    return found


def p_values(graphs: list[Data], seed: int) -> dict[str, float]:
    """Of the three kinds."""
    known, task = with_task(graphs, "graph")
    packed = pack(known, torch.Generator().manual_seed(seed))
    rows = target_rows(known, task, packed, torch.Generator().manual_seed(seed))
    found = {kind: variation_test(kind, packed, rows, seed) for kind in ISOMETRIES}
    return {kind: p for kind, p in found.items() if p is not None}


def main(path: Path) -> None:
    """All sets, saved as they come."""
    torch.set_num_threads(1)
    rows = (read_json(path) or {}).get("rows", {})
    for name, sets in SETS.items():
        done = rows.setdefault(name, [])
        for number in range(len(done), sets):
            seed = 2_000 + number
            if name[0] == "h":
                graphs = planted(f"cloud-{name[-2:]}", "heights", 200, seed)
            else:
                graphs = symmetric(seed)[0]
                graphs = upright(graphs) if name == "aligned" else graphs
            done.append(p_values(graphs, seed))
            if number % 30 == 29 or number == sets - 1:
                summary = {
                    key: {k: [sum(p[k] <= LEVEL for p in each), len(each)] for k in ISOMETRIES}
                    for key, each in rows.items()
                    if each
                }
                print(summary, flush=True)
                write_json(path, {"summary": summary, "rows": rows, "environment": environment()})


if __name__ == "__main__":
    main(Path(sys.argv[1]))
