"""Training steps at two commits, side by side: has a change of the fast paths made anything slower?

    python benchmarks/before_and_after.py f0afa24 HEAD --out RESULT.json

One process for each commit measures, on one thread, the processor time of training steps of every
block and of the peers as specifications, on graphs of every shape, and of potentials on a crystal:
energies with forces, and training steps on both. They take turns, case by case and round by round; a
round counts by its fastest quarter. The ratio of a case is before over after, as the median over the
rounds: above 1, it is faster now. `--only crystal` measures the cases with that word in their name.
"""

from __future__ import annotations

import argparse
import importlib
import inspect
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
BLOCKS = ("gn", "dgn", "sdgn", "agn", "combined", "cgn", "agn-separable")
PEERS = ("schnet", "dimenet", "dimenet++", "egnn")
#: A rate of dropout, as in the experiments on datasets, by the name of its cases.
DROPPED = {f"{block} dropout": block for block in ("gn", "dgn", "agn")}

#: Blocks of which several initialisations are trained at once, and how many.
TRAINED_TOGETHER, SEEDS = ("gn", "agn", "agn-separable"), (2, 5, 10)


def measured(function: Callable[[], object], seconds: float = 0.3) -> float:
    """The processor time of a call, in milliseconds: the first quartile of its repetitions."""
    times: list[float] = []
    end = time.process_time() + seconds
    while time.process_time() < end or len(times) < 2:
        start = time.process_time()
        function()
        times.append(time.process_time() - start)
    return 1e3 * sorted(times)[len(times) // 4]


def cases() -> Iterator[tuple[str, Callable[[], object]]]:
    """Name and call of every case, with the package that is on the path."""
    import torch
    from torch_geometric.data import Batch

    from symgnn.nn import build
    from symgnn.train import keep_memory

    torch.set_num_threads(1)
    keep_memory()  # as in training; else the time depends on what the process has had before
    try:
        shapes = importlib.import_module("symgnn.bench._shapes")
    except ModuleNotFoundError:  # as it was called before
        shapes = importlib.import_module("symgnn.bench.shapes")
    plain = {"init": "torch"} if "init" in inspect.signature(build).parameters else {}
    graphs = {
        "polytopes n=3": shapes.POLYTOPES[3].make(False),
        "molecules": shapes.molecules(64),
        "superpixels": shapes.superpixels(16),
        "tours": shapes.tours(2, (50, 150)),
    }
    for shape, given in graphs.items():
        batch = Batch.from_data_list(given)
        widths = {} if batch.x is None else {"node_features": batch.x.shape[1]}
        if batch.edge_attr is not None:
            widths["edge_features"] = batch.edge_attr.shape[1]
        for case in (*BLOCKS, *PEERS, *DROPPED):
            torch.manual_seed(0)
            block = DROPPED.get(case, case)
            data, options = batch.clone(), dict(widths)
            if block in PEERS:
                options = {}
                if block == "egnn":
                    data.x = torch.ones(data.num_nodes, 4)
                    options = {"node_features": 4}
                else:
                    data.x, data.z = None, torch.ones(data.num_nodes, dtype=torch.long)
                data.edge_attr = None
            else:
                options |= {"dimension": data.pos.shape[1], "aggregation": "sum", **plain}
                options |= {"hidden": 32, "mlp_hidden": 64, "layers": 3}
            if case in DROPPED:
                options["dropout"] = 0.01
            model = build(block, outputs=1, **options)
            data.topology = model.topology(data)
            adam = torch.optim.Adam(model.parameters(), fused=True)

            def step(model=model, data=data, adam=adam) -> None:  # type: ignore[no-untyped-def]
                adam.zero_grad()
                model(data).square().mean().backward()
                adam.step()

            yield f"{shape} {case}", step
            for seeds in SEEDS if case in TRAINED_TOGETHER else ():
                make = partial(build, block, outputs=1, **options)
                yield f"{shape} {case} {seeds} seeds", of_ensemble(make, seeds, data)
            if case == "agn":
                yield f"{shape} topology", lambda model=model, batch=batch: model.topology(batch)
    yield from potentials()


def of_ensemble(make: Callable[[], Any], seeds: int, data: Any) -> Callable[[], object]:
    """A training step of several initialisations."""
    import torch

    from symgnn.train import Ensemble

    ensemble = Ensemble(make, seeds)
    adam = torch.optim.Adam(ensemble.parameters(), fused=True)

    def step() -> None:
        ensemble.gradients(lambda outputs, _: outputs.square().mean(), data)
        adam.step()

    return step


def potentials() -> Iterator[tuple[str, Callable[[], object]]]:
    """Potentials on a crystal: energies with forces, and training steps on both."""
    import torch

    from symgnn.bench import _atoms_suite as suite
    from symgnn.bench._steps import training_step

    for block, cells in suite.CELLS.items():
        data = suite.crystal(cells)
        fixed = suite.potential(block).requires_grad_(False).eval()
        data.topology = fixed.topology(data)

        def predict(fixed=fixed, data=data) -> None:  # type: ignore[no-untyped-def]
            with torch.no_grad():
                fixed(data, forces=True)

        yield f"crystal {block} energy, forces", predict
        trained = suite.potential(block).train()
        for what in ("energy", "forces"):
            loss = partial(suite._loss, trained, data, what)
            yield f"crystal {block} step on {what}", training_step(loss, trained.parameters())


def work(words: list[str]) -> None:
    """Measure a case, of those with all words in their name, for each line "again" that comes in,
    and go to the next at any other line.
    """
    for name, call in cases():
        if not all(word in name for word in words):
            continue
        say(name)
        call()
        while sys.stdin.readline().strip() == "again":
            say(measured(call))


def say(what: object) -> None:
    """A line to whoever reads."""
    sys.stdout.write(f"{what}\n")
    sys.stdout.flush()


def source(commit: str, folder: Path) -> Path:
    """The package at a commit."""
    path = folder / commit.replace("/", "-")
    path.mkdir()
    archive = subprocess.run(
        ["git", "archive", commit, "src"], cwd=ROOT, check=True, capture_output=True
    )
    subprocess.run(["tar", "-x", "-C", str(path)], input=archive.stdout, check=True)
    return path / "src"


def start(path: Path, words: list[str]) -> subprocess.Popen[str]:
    """A process that measures with the package at a path."""
    return subprocess.Popen(
        [sys.executable, __file__, "--work", *words],
        env={**os.environ, "PYTHONPATH": str(path), "OMP_NUM_THREADS": "1"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )


def tell(worker: subprocess.Popen[str], word: str) -> None:
    """A line to a worker."""
    assert worker.stdin is not None
    worker.stdin.write(f"{word}\n")
    worker.stdin.flush()


def answers(workers: list[subprocess.Popen[str]], word: str = "") -> list[str]:
    """The next line of each worker, after a word to it; "" where it has ended."""
    found = []
    for worker in workers:
        if word:
            tell(worker, word)
        assert worker.stdout is not None
        found.append(worker.stdout.readline().strip())
    if len(set(found)) > 1 and not word:
        raise SystemExit(f"the commits do not measure the same: {found}")
    return found


def main() -> None:
    """Run it."""
    options = argparse.ArgumentParser(description="training steps at two commits, side by side")
    options.add_argument("before", help="a commit")
    options.add_argument("after", help="another one")
    options.add_argument("--rounds", type=int, default=7)
    options.add_argument("--only", nargs="*", default=[], help="words in the names of cases")
    options.add_argument("--out", type=Path, help="a JSON file")
    given = options.parse_args()
    commits = {"before": given.before, "after": given.after}
    hashes = {
        side: subprocess.run(
            ["git", "rev-parse", "--short", commit],
            cwd=ROOT,
            check=True,
            capture_output=True,
            text=True,
        ).stdout.strip()
        for side, commit in commits.items()
    }
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        workers = [start(source(commit, Path(folder)), given.only) for commit in commits.values()]
        while name := answers(workers)[0]:
            pairs: list[list[float]] = []
            for _ in range(given.rounds):
                pairs.append([float(answers([each], "again")[0]) for each in workers])
            ratios = sorted(before / after for before, after in pairs)
            found[name] = {
                "ratio": round(statistics.median(ratios), 3),
                "lowest": round(ratios[0], 3),
                "highest": round(ratios[-1], 3),
                "milliseconds": round(statistics.median(after for _, after in pairs), 3),
            }
            say(f"{name:28} {found[name]}")
            for each in workers:
                tell(each, "next")
    if given.out is not None:
        record = {**hashes, "rounds": given.rounds, "cases": found}
        given.out.write_text(json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    work(sys.argv[2:]) if sys.argv[1:2] == ["--work"] else main()
