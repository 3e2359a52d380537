"""Why egnn-pytorch learns no forces by the protocol of `peers.py`: two changes, each alone and both.

    python benchmarks/atoms/configurations.py DIRECTORY   # the data: needs tblite
    python benchmarks/atoms/egnn.py DIRECTORY             # needs egnn-pytorch and schnetpack
    python benchmarks/atoms/egnn.py DIRECTORY "radial, energy"   # one case

writes `benchmarks/atoms/egnn.json`. Protocol, fixed before the run: that of `peers.py` on the
molecules, choice of the rate and 30 s of processor time, for seed 0, with

- "radial": its edges have 20 Gaussians of the distance as attributes, an option of its layers, in
  place of the squared distance alone;
- "energy": the energy counts a hundredth in the loss.

`untrained` has what the explanation rests on: the error of energies of the first network, in units
of those of the data, and the norms of the gradients of both parts of the loss on 20 molecules.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import torch
from networks import PEERS, RADIAL, EgnnPytorch, Make
from peers import FORCES, SECONDS, Task, Training, chosen_rate
from torch_geometric.data import Batch

OUT = Path(__file__).parent / "egnn.json"
#: Of each case, the radial functions and the weight of the energy.
CASES = {
    "as it is": (0, 1.0),
    "radial": (RADIAL, 1.0),
    "energy": (0, 0.01),
    "radial, energy": (RADIAL, 0.01),
}


def made(radial: int, cutoff: float, graphs: Sequence[Any]) -> EgnnPytorch:
    """As `peers.py` makes networks."""
    return EgnnPytorch(cutoff, radial)


def gradients(task: Task, make: Make) -> dict[str, float]:
    """Of an untrained network, the error of energies, and the norms of both gradients."""
    network = Training(task, make, 1e-3, SECONDS).network
    of_energy, of_force = task.errors(network, Batch.from_data_list(task.parts["train"][::40]))
    parts = {
        "energy": (of_energy / task.energy).square().mean(),
        "forces": FORCES * (of_force / task.force).square().mean(),
    }
    found = {"error of energies over theirs": math.sqrt(float(parts["energy"]))}
    for name, loss in parts.items():
        each = torch.autograd.grad(
            loss, list(network.parameters()), retain_graph=True, allow_unused=True
        )
        found[f"gradient of {name}"] = math.sqrt(
            sum(float(one.square().sum()) for one in each if one is not None)
        )
    return found


def main(directory: Path, cases: Sequence[str]) -> None:
    """Run what is not in the file yet."""
    torch.set_num_threads(1)
    task = Task(directory, "gfn2")
    size = task.energy
    results = json.loads(OUT.read_text()) if OUT.exists() else {"untrained": {}}
    names = ["EGNN (egnn-pytorch)", "PaiNN (schnetpack)", "SchNet (schnetpack)"]
    for name in names:
        results["untrained"][name] = gradients(task, PEERS[name])
    for name, (radial, weight) in CASES.items():
        if name in results or name not in (cases or CASES):
            continue
        make = partial(made, radial)
        task.energy = size / math.sqrt(weight)
        rate, rates = chosen_rate(task, make)
        training = Training(task, make, rate, SECONDS)
        training.advance(SECONDS)
        training.look()
        results[name] = {**training.result, "rates": rates}
        OUT.write_text(json.dumps(results, indent=1) + "\n")
        sys.stdout.write(f"{name}: {training.result['forces']:.0f} meV/A\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
