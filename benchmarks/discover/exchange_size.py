"""How often do the residual tests of translations and dilations reject what is true?

    python benchmarks/discover/exchange_size.py docs/results/discover/exchange-size.json

Protocol. 200 sets (seeds 50,000 to 50,199) of 100 random trees and clouds in space in turn (`planted.py`), with targets of all distances
and of angles and noise of 0.3 deviations. The residuals are those of the rungs that read distances,
or angles and torsion angles. Places and sizes are (a) independent of the shapes, as `planted.py` draws
them, or (b) depend on them: the centroid is moved by functions of the size, of the mean length of an edge, of where a
marked node is and of a second moment, with noise of 0.3; the size, where angles are the target, is the
exponential of 1.5 times the share of the longest principal axis, with noise of 0.2. The residual
tests of translations, of dilations (of the targets of angles, about the centroid and about the origin) and, in (a), of rotations
about the origin.

Criterion. At level 0.05 no test rejects more often than 95 % of a binomial law allow: 16 of 200.
How many sets were found free for an exchange is recorded too.
"""

from __future__ import annotations

import sys
from pathlib import Path

import torch
from planted import planted
from torch_geometric.data import Data

from symgnn.data._task_of_graphs import with_task
from symgnn.discovery._ladder import RUNGS, rung_residuals
from symgnn.discovery._packing import pack
from symgnn.discovery._residual_test import residual_test
from symgnn.discovery._target_rows import target_rows
from symgnn.store import environment, read_json, write_json

SETS, FIRST, GRAPHS, LEVEL = 200, 50_000, 100, 0.05
#: Rules of targets and the rungs whose residuals are tested.
TARGETS = {"pair distances": "distances", "angles": "directions"}


def tied(graph: Data, rule: str, generator: torch.Generator) -> None:
    """Place and size that depend on the shape."""
    source, target = graph.edge_index
    x = graph.pos - graph.pos.mean(0)
    radius = x.square().sum(1).mean().sqrt()
    edge = (x[source] - x[target]).norm(dim=1).mean() / radius
    if rule == "angles":
        axes = torch.linalg.eigvalsh(x.T @ x)
        noise = 0.2 * torch.randn((), generator=generator, dtype=torch.float64)
        x = x / radius * torch.exp(1.5 * axes[-1] / axes.sum() + noise)
        radius = x.square().sum(1).mean().sqrt()
    marked = x[graph.x[:, 1].argmax(), 0] / radius
    place = torch.stack([radius.log() + 3 * edge, marked.square(), x[:, 2].square().mean()])
    noise = torch.randn(3, generator=generator, dtype=torch.float64)
    graph.pos = x + place + 0.3 * noise


def p_values(seed: int) -> dict[str, list[float | bool]]:
    """Of each test, with whether it was made by exchange."""
    found: dict[str, list[float | bool]] = {}
    for rule, rung in TARGETS.items():
        for depend in (False, True):
            graphs = planted("tree-3d" if seed % 2 else "cloud-3d", rule, GRAPHS, seed, noise=0.3)
            generator = torch.Generator().manual_seed(seed)
            for graph in graphs if depend else ():
                tied(graph, rule, generator)
            known, task = with_task(graphs, "graph")
            packed = pack(known, generator)
            rows = target_rows(known, task, packed, generator)
            residuals = rung_residuals(RUNGS[rung], packed, rows, seed)
            tests = [("translation", False)]
            tests += [] if depend else [("rotation", True)]
            tests += [("dilation", False), ("dilation", True)] if rule == "angles" else []
            for kind, origin in tests:
                one = residual_test(kind, packed, rows, residuals, seed, origin)
                assert one is not None
                about = " about the origin" if origin else ""
                name = f"{kind}{about}, {rule}, {'tied' if depend else 'independent'}"
                found[name] = [one.p_value, one.visible is not None]
    return found


def main(path: Path) -> None:
    """All sets; those of the file that are there already are not made again."""
    torch.set_num_threads(1)
    rows = (read_json(path) or {}).get("rows", [])
    for seed in range(len(rows), SETS):
        rows.append(p_values(FIRST + seed))
        if seed % 20 == 19:
            summary = {
                name: {
                    "sets": len(rows),
                    "rejected": sum(row[name][0] <= LEVEL for row in rows),
                    "exchanged": sum(row[name][1] for row in rows),
                }
                for name in rows[0]
            }
            write_json(path, {"summary": summary, "rows": rows, "environment": environment()})
            print(seed + 1, summary, flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
