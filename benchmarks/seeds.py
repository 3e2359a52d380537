"""Ten initialisations trained together, against one after the other.

    python benchmarks/seeds.py

Prints, for DGN and AGN on the polytopes, how many times faster a training step of ten
initialisations in one computation (`symgnn.train.Seeds`) is than ten steps of one. Steps of both
kinds alternate, so that whatever else the machine does hits both alike; medians are compared.

Found on two cores (torch 2.13), with one thread and with two: DGN n=3 3.0 and 3.5, AGN n=3 2.8 and
3.5, AGN n=5 1.8 and 2.5 times faster. A step of one is mostly overhead on graphs this small, a step
of ten mostly arithmetic, so the ratio falls as graphs grow.
"""

import statistics
import time

import torch
from torch_geometric.data import Batch

import symgnn
from symgnn.experiments.polytopes import Row, loss, network
from symgnn.train import Seeds

REPEATS = 15


def stepper(seeds: Seeds, batch: Batch):
    return lambda: seeds.fit(batch, loss, epochs=1)


def alone(batch: Batch, row: Row, dimension: int):
    """An ordinary training step of one model."""
    model = network(row, dimension, batch.num_graphs)
    batch = batch.clone()
    batch.topology = model.topology(batch)
    optimiser = torch.optim.Adam(model.parameters(), 1e-3, fused=True)

    def step() -> None:
        optimiser.zero_grad()
        loss(model(batch), batch).backward()
        optimiser.step()

    return step


def seconds(step) -> float:
    began = time.perf_counter()
    step()
    return time.perf_counter() - began


def main() -> None:
    for dimension, name in ((3, "DGN"), (3, "AGN"), (5, "AGN")):
        row = Row(name, "sum")
        batch = Batch.from_data_list(symgnn.data.polytopes(dimension))
        ten = Seeds(lambda: network(row, dimension, batch.num_graphs), 10)  # noqa: B023
        steps = {"one": alone(batch, row, dimension), "ten": stepper(ten, batch)}
        times = {kind: [] for kind in steps}
        for _ in range(REPEATS):
            for kind, step in steps.items():
                times[kind].append(seconds(step))
        one, together = (statistics.median(times[kind][2:]) for kind in ("one", "ten"))
        print(
            f"{name} n={dimension}: ten together {10 * one / together:.1f} times faster than one "
            f"after the other ({together / one:.1f} times one)"
        )


if __name__ == "__main__":
    main()
