"""Potentials of symgnn and of peers, trained on the same atoms for the same processor time.

    python benchmarks/atoms/configurations.py DIRECTORY   # the data: needs tblite
    python benchmarks/atoms/peers.py DIRECTORY            # needs schnetpack, egnn-pytorch
    python benchmarks/atoms/peers.py DIRECTORY gfn2 --rounds 1 --no-learning   # a part of it
    python benchmarks/atoms/peers.py DIRECTORY emt --only DGN   # one potential, not a comparison

The run that docs/atoms-measured.md reports leaves out what is far behind, which a run of one seed showed
(`peers-first-round.json`): Combined-separable and egnn-pytorch on both data sets, DGN on molecules:

    PEERS='"PaiNN (schnetpack)" "PaiNN, 8 functions" "SchNet (schnetpack)" "SchNet, 8 functions"'
    eval python benchmarks/atoms/peers.py DIRECTORY gfn2 --no-learning \
        --only DGN-filtered Combined-filtered $PEERS
    eval python benchmarks/atoms/peers.py DIRECTORY emt --no-learning \
        --only DGN DGN-filtered Combined-filtered $PEERS

Stopped, it goes on where it was: `DIRECTORY/peers.json` has what is done.

Protocol, fixed before the run that is reported:

- Data: `configurations.py`: metals by EMT (cutoff 5.5 A) and molecules by GFN2 (cutoff 5 A); 800
  configurations to train on, 100 to choose the rate by, 100 of other trajectories to test on.
- Potentials: ours as `symgnn.fit` builds them, with its defaults, which were chosen on the
  training and validation configurations of the molecules, as peers' were not; schnetpack's PaiNN and SchNet, and
  egnn-pytorch, each 64 wide with 3 layers (`networks.py`). PaiNN and SchNet also with as few radial
  functions as our filtered blocks, 8, since that number was chosen with ours. The energy is a sum over atoms,
  `scale out_i + reference(z_i)`, with the references and the scale of `symgnn.fit` for all; forces
  are its derivative. float32, one thread.
- Training, the same for all: the loss is that of `symgnn.fit`: squared errors of the energy per
  atom and of forces, each over its mean square, the forces with the weight 10; Adam; gradients of
  a norm of at most 10; batches of 4 cells or 8 molecules; the rate rises in the first twentieth of
  the time and falls along a cosine of the time used. Every potential has 30 s of processor time in
  its steps (building the batch and the topology, forward, both backward passes, optimiser);
  neighbours are searched before. Potentials take turns, so that whatever else the machine does
  slows all alike.
- Rate: of 1e-3, 3e-3 and 1e-2 that with the smallest force error on the validation
  configurations after a training of 6 s (seed 0); the same for all.
- Result: mean absolute errors on the test trajectories, means over the seeds 0 to 4, which
  draw the initial weights and the order of batches. Seeds are run in rounds of all potentials;
  where a run is stopped before the last, means are over the rounds that are complete, and said
  to be. The best of ours is that with the smallest validation error in the choice of the rate, so
  that it is not chosen by test errors. Criterion: on each of both data sets it has a smaller mean
  force error than each peer, with either number of radial functions; whether the difference to
  the nearest is more than two standard errors is reported beside it.
- Learning curve: the best of ours on 100, 200, 400 and 800 configurations, each for the same number
  of epochs, 24 of molecules and 10 of cells, with the rate chosen above, seed 0, and the cosine over
  the steps. A smaller set therefore has fewer steps. Criterion: the force error on the test
  trajectories falls from each number to the next.
"""

from __future__ import annotations

import argparse
import copy
import json
import math
import statistics
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import ase.io
import torch
from networks import OURS, PEERS, Make
from torch import Tensor
from torch_geometric.data import Batch, Data

from symgnn.data import read
from symgnn.graphs import AddTopology
from symgnn.train._potential_rows import potential_facts, potential_scaler

CUTOFFS, BATCHES = {"emt": 5.5, "gfn2": 5.0}, {"emt": 4, "gfn2": 8}
RATES, SECONDS, CHOICE, SLICES, ROUNDS = (1e-3, 3e-3, 1e-2), 30.0, 6.0, 2, 5
FORCES = 10.0
WARMING, CLIP = 0.05, 10.0
COUNTS, EPOCHS = (100, 200, 400, 800), {"emt": 10, "gfn2": 24}


class Task:
    """The graphs of one data set, and the sizes by which errors are divided."""

    def __init__(self, directory: Path, name: str) -> None:
        self.name, self.cutoff, self.batch = name, CUTOFFS[name], BATCHES[name]
        self.parts: dict[str, list[Data]] = {}
        self.formulas: dict[str, list[str]] = {}  # of each structure, which tells systems apart
        for part in ("train", "validation", "test"):
            frames = ase.io.read(directory / f"{name}-{part}.xyz", ":")
            graphs = read(
                frames,
                columns=["energy", "forces"],
                level="potential",
                radius=self.cutoff,
                elements=[],
            )
            self.parts[part] = [self._plain(graph) for graph in graphs]
            self.formulas[part] = [frame.get_chemical_formula() for frame in frames]
        train = self.parts["train"]
        facts = potential_facts(train, None)
        self.energy, self.force = (
            potential_scaler(train, graphs.task, facts, True).deviation[:2].tolist()
        )
        self.scale = math.sqrt(self.energy * self.force)
        self.references = torch.zeros(119, dtype=torch.float64)
        for z, energy in facts["references"].items():
            self.references[int(z)] = energy

    @staticmethod
    def _plain(graph: Data) -> Data:
        shift = graph.get("edge_shift")
        found = Data(
            pos=graph.pos.float(), z=graph.z, edge_index=graph.edge_index, y=graph.y.double()
        )
        if shift is not None:
            found.edge_shift = shift.float()
        return found

    def errors(self, network: torch.nn.Module, batch: Batch) -> tuple[Tensor, Tensor]:
        """Of the energy per atom of each graph `[G]`, in eV, and of forces `[N, 3]`, in eV/A."""
        with torch.enable_grad():
            batch.pos.requires_grad_()
            out = network(batch)
            (gradient,) = torch.autograd.grad(out.sum(), batch.pos, create_graph=network.training)
        energies = out.double() * self.scale + self.references[batch.z]
        atoms = batch.ptr.diff()
        total = energies.new_zeros(len(atoms)).index_add(0, batch.batch, energies)
        wanted = batch.y[batch.ptr[:-1], 0]
        return total / atoms - wanted, -gradient.double() * self.scale - batch.y[:, 1:4]

    def measured(self, network: torch.nn.Module, part: str) -> dict[str, Any]:
        """Mean absolute errors in meV/atom and meV/A, that of forces also for each formula."""
        network.eval()
        graphs, energy, force = self.parts[part], [], []
        for start in range(0, len(graphs), 20):
            batch = Batch.from_data_list(graphs[start : start + 20])
            of_energy, of_force = self.errors(network, batch)
            energy.append(of_energy.detach().abs())
            force.append(of_force.detach().abs().flatten())
        network.train()
        of_atoms = torch.cat(force)
        each = of_atoms.split([3 * graph.num_nodes for graph in graphs])
        formulas = self.formulas[part]
        return {
            "energy": 1000 * float(torch.cat(energy).mean()),
            "forces": 1000 * float(of_atoms.mean()),
            "forces of": {
                name: 1000
                * float(
                    torch.cat([e for e, f in zip(each, formulas, strict=True) if f == name]).mean()
                )
                for name in sorted(set(formulas))
            },
        }


class Training:
    """One training, in slices of processor time, or for a number of epochs.

    Args:
        task: The data.
        make: Makes the network.
        rate: The largest learning rate.
        seconds: The processor time; None for `epochs` instead.
        count: How many configurations there are, evenly from all; None for all.
        seed: Of the initial weights and the order of batches.
    """

    def __init__(
        self,
        task: Task,
        make: Make,
        rate: float,
        seconds: float | None,
        count: int | None = None,
        seed: int = 0,
    ) -> None:
        self.task, self.rate, self.seconds = task, rate, seconds
        graphs = task.parts["train"]
        self.graphs = graphs if count is None else graphs[:: len(graphs) // count][:count]
        torch.manual_seed(seed)
        self.network = make(task.cutoff, self.graphs)
        if getattr(self.network, "ranks", False):
            self.graphs = [AddTopology()(copy.copy(graph)) for graph in self.graphs]
        self.optimiser = torch.optim.Adam(self.network.parameters(), rate, fused=True)
        self.random = torch.Generator().manual_seed(seed)
        self.used, self.steps, self.curve = 0.0, 0, []
        self.order: Iterator[list[int]] = iter(())

    def batch(self) -> Batch:
        """The next batch of a random order of all graphs."""
        chosen = next(self.order, None)
        if chosen is None:
            order = torch.randperm(len(self.graphs), generator=self.random).tolist()
            size = self.task.batch
            self.order = iter(order[k : k + size] for k in range(0, len(order), size))
            chosen = next(self.order)
        return Batch.from_data_list([self.graphs[k] for k in chosen])

    def last_step(self) -> int:
        """How many steps the epochs have."""
        return EPOCHS[self.task.name] * math.ceil(len(self.graphs) / self.task.batch)

    def advance(self, until: float = math.inf) -> None:
        """Train until so much time is used, or to the last step."""
        self.network.train()
        last = math.inf if self.seconds else self.last_step()
        while self.used < until and self.steps < last:
            began = time.process_time()
            part = min(self.used / self.seconds if self.seconds else self.steps / last, 1.0)
            rate = self.rate * min(part / WARMING, 1.0) * 0.5 * (1 + math.cos(math.pi * part))
            for group in self.optimiser.param_groups:
                group["lr"] = rate
            batch, task = self.batch(), self.task
            of_energy, of_force = task.errors(self.network, batch)
            loss = (of_energy / task.energy).square().mean()
            loss = loss + FORCES * (of_force / task.force).square().mean()
            self.optimiser.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(self.network.parameters(), CLIP)
            self.optimiser.step()
            self.used, self.steps = self.used + time.process_time() - began, self.steps + 1

    def look(self) -> None:
        """Measure the test errors, which are not used to choose anything."""
        self.curve.append([self.used, self.steps, self.task.measured(self.network, "test")])

    @property
    def result(self) -> dict[str, Any]:
        """The errors at the end."""
        count = sum(each.numel() for each in self.network.parameters())
        return {
            **self.curve[-1][2],
            "rate": self.rate,
            "steps": self.steps,
            "parameters": count,
            "configurations": len(self.graphs),
            "curve": self.curve,
        }


def chosen_rate(task: Task, make: Make) -> tuple[float, dict[str, float]]:
    """The rate with the smallest force error after a short training."""
    found = {}
    for rate in RATES:
        training = Training(task, make, rate, CHOICE)
        training.advance(CHOICE)
        error = task.measured(training.network, "validation")["forces"]
        found[str(rate)] = error if math.isfinite(error) else math.inf
    return float(min(found, key=lambda rate: found[rate])), found


def compare(
    task: Task, results: dict[str, Any], save: Any, rounds: int, only: Sequence[str]
) -> None:
    """All potentials, or those named, by turns, one seed after the other."""
    networks = {name: make for name, make in {**OURS, **PEERS}.items() if name in only or not only}
    rates = results.setdefault("rates", {})
    for name, make in networks.items():
        if name not in rates:
            rates[name] = chosen_rate(task, make)
            save(f"{task.name} {name}: rate {rates[name][0]}")
    done = results.setdefault("rounds", [])
    for seed in range(len(done), rounds):
        trainings = {
            n: Training(task, m, rates[n][0], SECONDS, seed=seed) for n, m in networks.items()
        }
        for slice_number in range(1, SLICES + 1):
            for name, training in trainings.items():
                training.advance(SECONDS * slice_number / SLICES)
                training.look()
                errors = training.curve[-1][2]
                save(f"{task.name} {name}: {training.used:.0f} s, {training.steps} steps, {errors}")
        done.append({name: each.result for name, each in trainings.items()})
        save()


def means(rounds: Sequence[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Of each potential, means and deviations of its errors over the rounds."""
    found: dict[str, dict[str, Any]] = {}
    for name in rounds[0]:
        each = [one[name] for one in rounds]
        forces = [one["forces"] for one in each]
        found[name] = {
            **{key: statistics.fmean(one[key] for one in each) for key in ("energy", "forces")},
            "deviation": statistics.stdev(forces) if len(forces) > 1 else None,
            "steps": round(statistics.fmean(one["steps"] for one in each)),
            "rate": each[0]["rate"],
            "parameters": each[0]["parameters"],
        }
    return found


def learning(task: Task, results: dict[str, Any], save: Any) -> None:
    """The learning curve of the best of ours."""
    found = means(results["rounds"])
    best = min(OURS.keys() & found.keys(), key=lambda name: found[name]["forces"])
    curve = results.setdefault("learning", {"network": best, "errors": {}})
    best, rate = curve["network"], results["rates"][curve["network"]][0]
    for count in COUNTS:
        if str(count) not in curve["errors"]:
            training = Training(task, OURS[best], rate, None, count)
            training.advance()
            errors = task.measured(training.network, "test")
            curve["errors"][str(count)] = {**errors, "steps": training.steps}
            save(f"{task.name} {best}, {count} configurations: {errors}")


def main(
    directory: Path, names: Sequence[str], rounds: int, curves: bool, only: Sequence[str]
) -> None:
    """Run what is not in `DIRECTORY/peers.json` yet."""
    torch.set_num_threads(1)
    file = directory / "peers.json"
    results = json.loads(file.read_text()) if file.exists() else {}

    def save(line: str = "") -> None:
        for each in results.values():
            if each.get("rounds"):
                each["means"] = means(each["rounds"])
        file.write_text(json.dumps(results, indent=1))
        sys.stdout.write(f"{line}\n" if line else "")
        sys.stdout.flush()

    for name in names:
        task, found = Task(directory, name), results.setdefault(name, {})
        compare(task, found, save, rounds, only)
        if curves:
            learning(task, found, save)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("directory", type=Path)
    parser.add_argument("names", nargs="*", default=list(CUTOFFS))
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--no-learning", dest="curves", action="store_false")
    parser.add_argument("--only", nargs="+", default=[], help="some of the potentials")
    given = parser.parse_args()
    main(given.directory, given.names, given.rounds, given.curves, given.only)
