"""Would networks trained by gradients decide better than the rungs with random layers?

    python benchmarks/discover/trained_rungs.py docs/results/discover/trained-rungs.json

Protocol. Two planted truths (`planted.py`, seed 31, 500 graphs, noise of 0.1 deviations): angles on
clouds in space, heights on clouds in the plane. The networks
of NETWORKS stand for the rungs: 2 layers of width 32, two initialisations in one computation by
`symgnn.fit`, 240 graphs to train on, 60 to choose the weights by, 200 to compare on, gradients
clipped at 1, a cosine schedule, 6 s of processor time each. The prediction is the mean of the two
initialisations. The mean of the targets is one more predictor, which keeps everything. Verdicts are
made from the paired errors on the 200 graphs exactly as discover makes them (`compare`, Holm,
`closed`). Beside them: the verdicts of `symgnn.discover` on the same 500 graphs.

Criterion. Random layers stay if they have at least as many right verdicts in less processor time.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

import torch
from planted import kept_by, planted

import symgnn
from symgnn.data._task_of_graphs import with_task
from symgnn.discovery._deciding import closed, compare, holm, verdict_of
from symgnn.geometry import EVERYTHING
from symgnn.store import environment, read_json, write_json

_MAP = {"coordinate_map": "neighbour-sum"}
NETWORKS: dict[str, dict[str, Any]] = {
    "gn": {"block": "gn"},
    "dgn": {"block": "dgn"},
    "dgn, moved": {"block": "dgn", **_MAP},
    "agn": {"block": "agn"},
    "combined": {"block": "combined"},
    "cgn": {"block": "cgn"},
}
SETS = (
    ("cloud-3d", "angles"),
    ("cloud-2d", "heights"),
)
SECONDS, MOST_EPOCHS = 6.0, 400


def judged(shape: str, rule: str) -> dict[str, Any]:
    """The verdicts of both, with the processor time that they took."""
    graphs = planted(shape, rule, 500, 31)
    begin = time.process_time()
    report = symgnn.discover(graphs, minutes=10, level="graph", questions=(), progress=False)
    seconds = {"random layers": time.process_time() - begin}
    kinds = list(report.verdicts)
    truth = {kind: "kept" if kind in kept_by(shape, rule) else "broken" for kind in kinds}
    begin = time.process_time()
    losses, symmetries = trained(graphs)
    seconds["trained networks"] = time.process_time() - begin
    found = {}
    for kind in kinds:
        allowed = [name for name in losses if kind in symmetries[name]]
        found[kind] = compare(losses, allowed, "mean")
    adjusted = holm({kind: each.p_value for kind, each in found.items()})
    verdicts = closed({kind: verdict_of(found[kind], adjusted[kind]) for kind in kinds})
    both = {
        "random layers": {kind: each.verdict for kind, each in report.verdicts.items()},
        "trained networks": verdicts,
    }
    return {
        "truth": truth,
        "verdicts": both,
        "right": {by: sum(given[k] == truth[k] for k in kinds) for by, given in both.items()},
        "of": len(kinds),
        "errors": {
            "random layers": report.ladder,
            "trained networks": {name: float(loss.mean()) ** 0.5 for name, loss in losses.items()},
        },
        "processor_seconds": seconds,
    }


def trained(graphs: list[Any]) -> tuple[dict[str, torch.Tensor], dict[str, Any]]:
    """The squared error of each of 200 graphs by each network, over the variance of the targets."""
    known, task = with_task(graphs, "graph")
    test = [known[k] for k in range(300, 500)]
    splits = symgnn.data.Splits(
        [known[k] for k in range(240)], [known[k] for k in range(240, 300)], test, task
    )
    y = torch.cat([graph.y.double() for graph in test]).squeeze(1)
    mean = torch.cat([graph.y.double() for graph in splits.train]).mean()
    losses = {"mean": (y - mean).square() / y.var()}
    symmetries: dict[str, Any] = {"mean": EVERYTHING}
    given = {"seeds": 2, "clip": 1.0, "schedule": "cosine", "progress": False}
    for name, model in NETWORKS.items():
        model = {**model, "hidden": 32, "layers": 2}
        if len(losses) == 1:
            symgnn.fit(splits, model, epochs=1, **given)  # the first one also loads code
        begin = time.process_time()
        symgnn.fit(splits, model, epochs=1, **given)
        epochs = max(1, min(MOST_EPOCHS, int(SECONDS / (time.process_time() - begin))))
        run = symgnn.fit(splits, model, epochs=epochs, **given)
        guess = torch.stack([run.predict(graph)[0].double().reshape(()) for graph in test])
        losses[name] = (guess - y).square() / y.var()
        symmetries[name] = run.models[0].symmetry
    return losses, symmetries


def main(path: Path) -> None:
    """One set after the other, saved as they come."""
    torch.set_num_threads(1)
    rows = (read_json(path) or {}).get("rows", {})
    for shape, rule in SETS:
        name = f"{rule} ({shape})"
        if name not in rows:
            rows[name] = judged(shape, rule)
            print(name, rows[name]["right"], rows[name]["of"], flush=True)
            write_json(path, {"rows": rows, "environment": environment()})


if __name__ == "__main__":
    main(Path(sys.argv[1]))
