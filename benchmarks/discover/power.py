"""How many graphs does discover need? Right verdicts against the number of graphs.

    python benchmarks/discover/power.py docs/results/discover/power.json [PICTURE.png]

Protocol. Six planted truths (`planted.py`): edge lengths and angles on clouds in space, all distances on
trees, heights on clouds in the plane, signed volumes on clouds in the plane, kappa on meshes in space;
25, 50, 100, 200 and 500 graphs, three sets each (seeds 61 to 63; two of 500), noise of 0.1
deviations, one run of `symgnn.discover(graphs, minutes=10, questions=())` each. For every kind that the
graphs admit: right, wrong (kept for broken or broken for kept) or undecided. There is no criterion but
one: a kind that matters is called kept in at most 1 % of all verdicts. (Seeds 21 to 23, 41 to 43
and 51 to 53 were used by earlier versions, with the same criterion.)
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import torch
from planted import kept_by, planted

import symgnn
from symgnn.store import environment, read_json, write_json

TRUTHS = (
    ("cloud-3d", "edge lengths"),
    ("cloud-3d", "angles"),
    ("tree-3d", "pair distances"),
    ("cloud-2d", "heights"),
    ("cloud-2d", "signed volumes"),
    ("mesh-3d", "kappa"),
)
SIZES = (25, 50, 100, 200, 500)
SEEDS = (61, 62, 63)


def judged(shape: str, rule: str, graphs: int, seed: int) -> dict[str, object]:
    """The verdicts of one set beside the truth."""
    data = planted(shape, rule, graphs, seed)
    report = symgnn.discover(data, minutes=10, level="graph", questions=(), progress=False)
    found = {kind: verdict.verdict for kind, verdict in report.verdicts.items()}
    truth = {kind: "kept" if kind in kept_by(shape, rule) else "broken" for kind in found}
    counts = {"right": 0, "undecided": 0, "kept, yet it matters": 0, "broken, yet it is kept": 0}
    for kind, verdict in found.items():
        if verdict == truth[kind]:
            counts["right"] += 1
        elif verdict == "undecided":
            counts["undecided"] += 1
        else:
            wrong = "kept, yet it matters" if verdict == "kept" else "broken, yet it is kept"
            counts[wrong] += 1
    return {
        "shape": shape,
        "rule": rule,
        "graphs": graphs,
        "seed": seed,
        "counts": counts,
        "wrong": {k: str(report.verdicts[k]) for k in found if found[k] != truth[k]},
    }


def main(path: Path) -> None:
    """All sets; those of the file that are there already are not made again."""
    torch.set_num_threads(1)
    rows = (read_json(path) or {}).get("rows", [])
    done = {(row["shape"], row["rule"], row["graphs"], row["seed"]) for row in rows}
    for graphs in SIZES:
        for seed in SEEDS[: 2 if graphs == 500 else 3]:
            for shape, rule in TRUTHS:
                if (shape, rule, graphs, seed) not in done:
                    rows.append(judged(shape, rule, graphs, seed))
                    print(rows[-1], flush=True)
                    write_json(path, {"rows": rows, "environment": environment()})


def draw(path: Path, picture: Path) -> None:
    """The share of right verdicts of each truth, and of all verdicts by their kind of error."""
    from matplotlib.figure import Figure

    rows = json.loads(path.read_text())["rows"]
    figure = Figure(figsize=(9.4, 3.8), layout="constrained")
    left, right = figure.subplots(1, 2, width_ratios=[1.5, 1])
    colours = ("#134e6f", "#1a7f4b", "#b7791f", "#b3261e", "#6b4ea0", "#5f6b73")
    for (shape, rule), colour in zip(TRUTHS, colours, strict=True):
        shares = [_share([r for r in rows if r["rule"] == rule], n, "right") for n in SIZES]
        left.plot(SIZES, shares, "o-", color=colour, label=f"{rule} ({shape})", ms=4)
    kinds = {
        "right": "#1a7f4b",
        "undecided": "#8a9196",
        "broken, yet it is kept": "#b7791f",
        "kept, yet it matters": "#b3261e",
    }
    bottom = [0.0] * len(SIZES)
    for kind, colour in kinds.items():
        shares = [_share(rows, n, kind) for n in SIZES]
        right.bar(range(len(SIZES)), shares, 0.7, bottom, color=colour, label=kind)
        bottom = [a + b for a, b in zip(bottom, shares, strict=True)]
    left.set(xscale="log", xlabel="graphs", ylabel="right verdicts, %", ylim=(0, 104))
    left.set_xticks(SIZES, map(str, SIZES))
    left.minorticks_off()
    left.grid(alpha=0.25)
    left.legend(frameon=False, fontsize=8, loc="lower right")
    right.set_xticks(range(len(SIZES)), map(str, SIZES))
    right.set(xlabel="graphs", ylabel="verdicts of all truths, %", ylim=(0, 100))
    right.legend(frameon=True, fontsize=8, loc="lower right")
    figure.savefig(picture, dpi=110)


def _share(rows: list[dict], graphs: int, kind: str) -> float:
    counts = [row["counts"] for row in rows if row["graphs"] == graphs]
    total = sum(sum(each.values()) for each in counts)
    return 100 * sum(each[kind] for each in counts) / max(total, 1)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
    if len(sys.argv) > 2:
        draw(Path(sys.argv[1]), Path(sys.argv[2]))
