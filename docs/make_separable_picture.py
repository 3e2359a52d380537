"""Draws the picture of the guide to product form: its cost, and what it can learn."""

from __future__ import annotations

import time
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import torch
from torch_geometric.data import Batch, Data

from symgnn.graphs import KNNGraph
from symgnn.nn import build

PICTURE = Path(__file__).parent / "pictures" / "separable.png"
STEPS, RAYS = 300, 6


def time_for_an_edge(name: str, k: int, **options: int) -> float:
    """Microseconds of one processor in a training step, 8192 edges, k neighbours each."""
    random = torch.Generator().manual_seed(0)
    points = [torch.rand(128, 3, generator=random) for _ in range(8192 // (128 * k))]
    batch = Batch.from_data_list([KNNGraph(k=k)(Data(pos=pos)) for pos in points])
    model = build(name, hidden=32, aggregation="sum", **options)
    batch.topology = model.topology(batch)
    times = []
    for _ in range(8):
        start = time.process_time()
        model(batch).sum().backward()
        times.append(time.process_time() - start)
    return 1e6 * sorted(times)[2] / batch.num_edges


def stars(count: int, seed: int, sharp: bool) -> Batch:
    """A vertex with random rays; y is the number of narrow pairs, or the sum of cos^2."""
    random = torch.Generator().manual_seed(seed)
    graphs = []
    edges = torch.stack([torch.arange(1, RAYS + 1), torch.zeros(RAYS, dtype=torch.long)])
    for _ in range(count):
        rays = torch.nn.functional.normalize(torch.randn(RAYS, 3, generator=random))
        cosines = (rays @ rays.T)[torch.triu_indices(RAYS, RAYS, 1).unbind()]
        y = (cosines > 0.8).float().sum() if sharp else cosines.square().sum()
        graphs.append(Data(pos=torch.cat([torch.zeros(1, 3), rays]), edge_index=edges, y=y))
    return Batch.from_data_list(graphs)


def explained(name: str, sharp: bool, **options: int) -> float:
    """The share of the variance of y on new stars that a network explains."""
    torch.manual_seed(0)
    model = build(name, hidden=16, layers=1, aggregation="sum", **options)
    train, test = stars(2000, 0, sharp), stars(1000, 1, sharp)
    mean, std = train.y.mean(), train.y.std()
    optimiser = torch.optim.Adam(model.parameters(), 1e-2)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, 1e-2, total_steps=STEPS)
    for batch in (train, test):
        batch.topology = model.topology(batch)
    for _ in range(STEPS):
        optimiser.zero_grad()
        (model(train).squeeze(1) - (train.y - mean) / std).square().mean().backward()
        optimiser.step()
        schedule.step()
    with torch.no_grad():
        error = (model(test).squeeze(1) * std + mean - test.y).square().mean()
    return 1 - float(error / test.y.var())


def draw(path: Path) -> dict[str, dict[int, float]]:
    """The picture, and the numbers in it."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 3.8))
    ks = [4, 8, 16, 32, 64]
    networks = {"AGN": ("agn", {}), "DGN": ("dgn", {})}
    networks |= {f"AGN-separable, degree {p}": ("agn-separable", {"degree": p}) for p in (1, 3, 6)}
    for label, (name, options) in networks.items():
        left.plot(ks, [time_for_an_edge(name, k, **options) for k in ks], "o-", label=label)
    left.set(xscale="log", yscale="log", xlabel="nearest neighbours of a vertex")
    left.set_ylabel("µs for each edge, training step, n = 3")
    left.set_xticks(ks, map(str, ks))
    left.set_xticks([], minor=True)
    left.legend()
    degrees, found = [1, 2, 3, 6, 10], {}
    for label, sharp in (("sum of cos²", False), ("pairs closer than 37°", True)):
        found[label] = {p: explained("agn-separable", sharp, degree=p) for p in degrees}
        (line,) = right.plot(degrees, list(found[label].values()), "s-", label=f"{label}: product")
        found[label][0] = explained("agn", sharp)
        right.axhline(found[label][0], ls="--", color=line.get_color(), label=f"{label}: AGN's MLP")
    right.set(xlabel="degree of Q", ylabel="explained variance, new stars", ylim=(-0.05, 1.05))
    right.legend()
    figure.tight_layout()
    figure.savefig(path, dpi=110)
    return found


if __name__ == "__main__":
    print(draw(PICTURE))
