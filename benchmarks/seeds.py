"""Ten initialisations trained together, against one after the other.

    python benchmarks/seeds.py

Prints, for DGN and AGN on the polytopes, how many times faster a training step of ten
initialisations in one computation (`symgnn.train.Seeds`) is than ten ordinary steps of one model.
Steps of both kinds alternate, so that whatever else the machine does hits both alike; medians are
compared. The step of ten is recorded and replayed, as it is in any training on one batch of more
than `WORTH_RECORDING` steps; recording takes one to two seconds, which are not counted.

Found on two cores (torch 2.13), with one thread and with two: DGN n=3 6.0 and 7.4, AGN n=3 5.3 and
7.5, AGN n=5 3.8 and 5.3 times faster. Without the record it is about 3 (n=3): half of a step of ten
is then the bookkeeping of vmap and autograd. The ratio falls as graphs grow, because a step of one
is mostly overhead on small graphs and a step of ten mostly arithmetic.
"""

import statistics
import time

import torch
from torch_geometric.data import Batch

import symgnn
from symgnn.experiments.polytopes import Row, loss, network
from symgnn.train import Seeds, keep_memory
from symgnn.train.seeds import WORTH_RECORDING


def ordinary(batch: Batch, row: Row, dimension: int):
    """A training step of one model, as anyone would write it."""
    model = network(row, dimension, batch.num_graphs)
    batch = batch.clone()
    batch.topology = model.topology(batch)
    optimiser = torch.optim.Adam(model.parameters(), 1e-3, fused=True)

    def step() -> None:
        optimiser.zero_grad()
        loss(model(batch), batch).backward()
        optimiser.step()

    return step


def compare(row: Row, dimension: int) -> tuple[float, float]:
    """Seconds for a step of one and for a step of ten."""
    batch = Batch.from_data_list(symgnn.data.polytopes(dimension))
    one = ordinary(batch, row, dimension)
    times: dict[str, list[float]] = {"one": [], "ten": []}
    mark = time.perf_counter()

    def alternate(*_) -> None:
        nonlocal mark
        times["ten"].append(time.perf_counter() - mark)
        began = time.perf_counter()
        one()
        mark = time.perf_counter()
        times["one"].append(mark - began)

    ten = Seeds(lambda: network(row, dimension, batch.num_graphs), 10)
    ten.fit(batch, loss, epochs=WORTH_RECORDING, on_epoch=alternate)
    return tuple(statistics.median(times[kind][5:]) for kind in ("one", "ten"))  # type: ignore[return-value]


def main() -> None:
    keep_memory()
    print(f"threads: {torch.get_num_threads()}")
    for dimension, name in ((3, "DGN"), (3, "AGN"), (5, "AGN")):
        one, ten = compare(Row(name, "sum"), dimension)
        print(
            f"{name} n={dimension}: ten together {10 * one / ten:.1f} times faster than one after "
            f"the other ({ten / one:.1f} times one)"
        )


if __name__ == "__main__":
    main()
