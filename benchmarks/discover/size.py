"""How often do the tests reject what is true? 300 sets.

    python benchmarks/discover/size.py docs/results/discover/size.json

Protocol. 300 sets of 100 random trees in space (`planted.py`): their edges are independent and
isotropic, and their nodes are numbered at random, so that the inputs are spread evenly over
permutations, rotations, reflections and torsions. The targets are those of edge lengths, angles and
all distances in turn, with noise of 0.3 deviations. For each set: the randomisation tests of these
four kinds, and the ladder's p-value, before Holm's correction, of each kind that the targets keep.

Criterion, at level 0.05 with 300 sets: each randomisation test rejects between 8 and 23 times (95 %
of a binomial law; p-values of a finite number of copies that are exact), and each p-value of
the ladder at most 23 times: it is conservative by construction, as it is 1 where the best
predictor keeps the kind.
"""

from __future__ import annotations

import sys
from pathlib import Path

import torch
from planted import KEPT, planted
from torch_geometric.data import Data

from symgnn.data._task_of_graphs import with_task
from symgnn.discovery._deciding import compare
from symgnn.discovery._ladder import RUNGS, rung_losses
from symgnn.discovery._moving import ASKED
from symgnn.discovery._packing import Pack, pack
from symgnn.discovery._spread import randomisation_test
from symgnn.discovery._target_rows import TargetRows, target_rows
from symgnn.geometry import Permutation
from symgnn.store import environment, read_json, write_json

SETS, GRAPHS, LEVEL = 300, 100, 0.05
RULES = ("edge lengths", "angles", "pair distances")
SPREAD = ("permutation", "rotation", "reflection", "torsion")


def symmetric(seed: int, graphs: int = GRAPHS) -> tuple[list[Data], str]:
    """A set, and the rule of its targets."""
    rule = RULES[seed % 3]
    generator = torch.Generator().manual_seed(seed)
    found = []
    for graph in planted("tree-3d", rule, graphs, 1_000 + seed, noise=0.3):
        order = Permutation.random(graph.pos, generator=generator)
        found.append(order.apply(graph))
    return found, rule


def target_set(graphs: list[Data], seed: int) -> tuple[Pack, TargetRows]:
    """Graphs with their targets, as discover packs them."""
    known, task = with_task(graphs, "graph")
    packed = pack(known, torch.Generator().manual_seed(seed))
    return packed, target_rows(known, task, packed, torch.Generator().manual_seed(seed))


def p_values(seed: int, graphs: int = GRAPHS) -> dict[str, dict[str, float]]:
    """Of inputs and of targets, for each kind that is kept."""
    data, rule = symmetric(seed, graphs)
    packed, rows = target_set(data, seed)
    inputs = {k: randomisation_test(k, packed, data, seed)[0] for k in SPREAD}
    cache: dict[str, torch.Tensor] = {}
    losses = {n: rung_losses(r, packed, rows, seed, cache) for n, r in RUNGS.items()}
    targets = {}
    for kind in ASKED:
        if kind in KEPT[rule] and kind != "permutation":
            allowed = [name for name, rung in RUNGS.items() if kind in rung.symmetry]
            targets[kind] = compare(losses, allowed, "graph alone", seed).p_value
    return {"inputs": inputs, "targets": targets}


def main(path: Path) -> None:
    """All sets; those of the file that are there already are not made again."""
    torch.set_num_threads(1)
    rows = (read_json(path) or {}).get("rows", [])
    for seed in range(len(rows), SETS):
        rows.append(p_values(seed))
        if seed % 10 == 9 or seed == SETS - 1:
            write_json(path, {"summary": summary(rows), "rows": rows, "environment": environment()})
            print(seed + 1, summary(rows), flush=True)


def summary(rows: list[dict[str, dict[str, float]]]) -> dict[str, dict[str, list[int]]]:
    """Rejections at the level, and the number of sets, of each test."""
    found: dict[str, dict[str, list[int]]] = {"inputs": {}, "targets": {}}
    for row in rows:
        for question, values in row.items():
            for kind, p in values.items():
                count = found[question].setdefault(kind, [0, 0])
                count[0] += p <= LEVEL
                count[1] += 1
    return found


if __name__ == "__main__":
    main(Path(sys.argv[1]))
