"""Training one network for a given processor time, with its error on other molecules as it goes."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import nn
from torch_geometric.data import Data

from symgnn.bench._learning_networks import Learner
from symgnn.data import load
from symgnn.nn import Averages, averages
from symgnn.store import read_json, write_json
from symgnn.train._loader import Batches, GraphDataset

BATCH = 32
#: Parts of the time after which the error is measured.
LOOKS = (0.1, 0.25, 0.5, 0.75, 1.0)


class Molecules(NamedTuple):
    """Graphs to train on and to measure on; `unit` is the deviation of the target in its unit."""

    train: GraphDataset
    validation: GraphDataset
    averages: Averages
    unit: float
    name: str


class MoleculeSets:
    """QM9 with the edges of each reach, kept once they are made."""

    def __init__(self, source: str | None, molecules: int, validation: int) -> None:
        self.source, self.limit = source, (molecules, validation, 1)
        self.known: dict[tuple[str, float], Molecules] = {}

    def __call__(self, target: str, reach: float) -> Molecules:
        """Molecules with a standardised target; atoms up to `reach` angstrom apart are joined."""
        if (target, reach) not in self.known:
            splits = load("qm9", source=self.source, limit=self.limit, targets=[target], scale=1.0)
            train, validation = (
                [joined_to(split[k], reach) for k in range(len(split))]
                for split in (splits.train, splits.validation)
            )
            self.known[target, reach] = Molecules(
                GraphDataset(train, angles=True),
                GraphDataset(validation, angles=True),
                averages(train),
                splits.about["std"][0],
                splits.task.units[0],
            )
        return self.known[target, reach]


def joined_to(graph: Data, reach: float) -> Data:
    """Types, places and target of a molecule, with the edges of a reach, sorted by target."""
    near = torch.cdist(graph.pos, graph.pos) <= reach
    target, source = near.fill_diagonal_(False).nonzero().T
    return Data(
        x=graph.x, z=graph.z, pos=graph.pos, y=graph.y, edge_index=torch.stack([source, target])
    )


class TimedTraining:
    """The training of a network for a given processor time, in slices.

    Adam, the mean absolute error of the standardised target as the loss, a learning rate that falls
    from `rate` to 0 along a cosine of the time. Time is that of the process in training steps:
    batches, forward, backward and optimiser; measuring the error is not counted.

    Args:
        learner: The network.
        molecules: The data.
        seconds: The processor time.
        rate: The learning rate at the start.
        place: The file of the curve; with it, a training that was stopped continues from the last
            time that its error was measured.
        looks: Parts of the time after which the error is measured; a slice is from one to the next.

    Attributes:
        curve: `[seconds, steps, error]` of each look; the error is the mean absolute one on the
            validation molecules, in the unit of the target.
    """

    def __init__(
        self,
        learner: Learner,
        molecules: Molecules,
        seconds: float,
        rate: float,
        *,
        place: Path | None = None,
        looks: Sequence[float] = LOOKS,
    ) -> None:
        self.learner, self.molecules, self.looks = learner, molecules, looks
        self.seconds, self.rate, self.place = seconds, rate, place
        self.told = {"rate": rate, "seconds": seconds, "graphs": len(molecules.train)}
        self.curve: list[list[float]] = []
        self.used, self.steps = 0.0, 0
        self.network: nn.Module | None = None
        found = read_json(place) if place is not None else None
        self.found = found if found and _same(found, self.told) else None
        if self.found is not None and len(self.found["curve"]) == len(looks):
            self.curve = self.found["curve"]

    @property
    def finished(self) -> bool:
        """Whether the time is over."""
        return len(self.curve) == len(self.looks)

    def begin(self) -> None:
        """Make the network, or what it was when it was stopped."""
        torch.manual_seed(0)
        self.network = self.learner.make(self.molecules.averages)
        self.optimiser = torch.optim.Adam(self.network.parameters(), self.rate, fused=True)
        if self.found is not None and self.kept is not None and self.kept.exists():
            state = torch.load(self.kept, weights_only=True)
            self.network.load_state_dict(state["network"])
            self.optimiser.load_state_dict(state["optimiser"])
            self.used, self.steps = state["used"], state["steps"]
            self.curve = [row for row in self.found["curve"] if row[1] <= self.steps]
        self.batches = _forever(Batches(len(self.molecules.train), BATCH, seed=0), self.steps)

    def advance(self, on_progress: Callable[[float], Any] | None = None) -> None:
        """Train to the next look, and measure the error; `on_progress` has the part of the time."""
        if self.network is None:
            self.begin()
        assert self.network is not None
        if self.finished:
            return
        self.network.train()
        while self.used < self.looks[len(self.curve)] * self.seconds:
            began = time.process_time()
            part = min(self.used / self.seconds, 1.0)
            for group in self.optimiser.param_groups:
                group["lr"] = self.rate * 0.5 * (1 + math.cos(math.pi * part))
            batch = self.molecules.train.__getitems__(next(self.batches))
            self.optimiser.zero_grad()
            (self.network(batch) - batch.y).abs().mean().backward()
            self.optimiser.step()
            self.used, self.steps = self.used + time.process_time() - began, self.steps + 1
            if on_progress is not None:
                on_progress(self.used / self.seconds)
        self.curve.append([self.used, self.steps, error_of(self.network, self.molecules)])
        self.keep()

    @property
    def kept(self) -> Path | None:
        """The file of the weights, while the training is not finished."""
        return None if self.place is None else self.place.with_suffix(".pt")

    def keep(self) -> None:
        """Write the curve, and the weights if there is more to do."""
        if self.place is None or self.kept is None or self.network is None:
            return
        state = {"network": self.network.state_dict(), "optimiser": self.optimiser.state_dict()}
        self.kept.parent.mkdir(parents=True, exist_ok=True)
        torch.save({**state, "used": self.used, "steps": self.steps}, self.kept)
        write_json(self.place, self.result)
        if self.finished:
            self.kept.unlink()

    @property
    def result(self) -> dict[str, Any]:
        """The curve, and the error at its end."""
        if self.network is None and self.found is not None:
            return dict(self.found)
        assert self.network is not None
        return {
            **self.told,
            "curve": self.curve,
            "error": self.curve[-1][2],
            "steps": self.steps,
            "unit": self.molecules.name,
            "parameters": count_of(self.network),
        }


def take_turns(
    trainings: Sequence[TimedTraining], on_progress: Callable[[int, float], Any] | None = None
) -> list[dict[str, Any]]:
    """Train all, a slice of each by turns, so that whatever else the machine does slows all alike.

    Args:
        trainings: Those of the networks.
        on_progress: Called with the number of a training and the part of its time that is over.

    Returns:
        The result of each.
    """
    while not all(each.finished for each in trainings):
        least = min(len(each.curve) for each in trainings if not each.finished)
        for number, each in enumerate(trainings):
            if len(each.curve) == least and not each.finished:
                each.advance(None if on_progress is None else partial(on_progress, number))
    return [each.result for each in trainings]


def _same(found: dict[str, Any], told: dict[str, Any]) -> bool:
    return all(found.get(key) == value for key, value in told.items())


def _forever(batches: Batches, done: int) -> Iterator[list[int]]:
    """The batches of one epoch after the other, without the first `done`."""
    batches.epoch, skip = divmod(done, len(batches))
    while True:
        for number, batch in enumerate(batches):
            if number >= skip:
                yield batch
        batches.epoch, skip = batches.epoch + 1, 0


@torch.no_grad()
def error_of(network: nn.Module, molecules: Molecules) -> float:
    """The mean absolute error on the validation molecules, in the unit of the target."""
    network.eval()
    graphs = molecules.validation
    total = 0.0
    for numbers in Batches(len(graphs), BATCH):
        batch = graphs.__getitems__(numbers)
        total += float((network(batch) - batch.y).abs().sum())
    return total / len(graphs) * molecules.unit


def count_of(network: nn.Module) -> int:
    """How many parameters it has."""
    return sum(each.numel() for each in network.parameters())
