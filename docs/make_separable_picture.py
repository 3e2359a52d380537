"""Draws the pictures of the guide to product form: its cost, and what it can and cannot learn."""

from __future__ import annotations

import time
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import torch
from torch_geometric.data import Batch, Data

from symgnn.graphs import KNNGraph
from symgnn.nn import averages, build

PICTURES = Path(__file__).parent / "pictures"
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
    left.legend(fontsize=8, loc="upper left")
    left.set_ylim(top=300)  # room for the legend
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


def pentagons(turn: float) -> Data:
    """A vertex with the rays of two regular pentagons, one turned against the other by degrees."""
    at = 72.0 * torch.arange(5)
    angle = torch.deg2rad(torch.cat([at, at + turn]))
    rays = torch.stack([angle.cos(), angle.sin()], 1)
    edges = torch.stack([torch.arange(1, 11), torch.zeros(10, dtype=torch.long)])
    return Data(pos=torch.cat([torch.zeros(1, 2), rays]), edge_index=edges, y=torch.tensor(turn))


def some_pentagons(count: int, seed: int) -> Batch:
    """Turned by 4 to 36 degrees."""
    turns = 4 + 32 * torch.rand(count, generator=torch.Generator().manual_seed(seed))
    return Batch.from_data_list([pentagons(turn) for turn in turns.tolist()])


def turn_explained(name: str, seed: int, **options: int) -> float:
    """The share of the variance of the turn of new pentagons that a network explains."""
    train, test = some_pentagons(60, 0), some_pentagons(200, 1)
    torch.manual_seed(seed)
    known = averages([pentagons(20.0)], name)
    sizes = {"hidden": 32, "layers": 1, "task": "node", "aggregation": "sum"}
    model = build(name, averages=known, **sizes, **options)
    optimiser = torch.optim.Adam(model.parameters(), 3e-3)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, 3e-3, total_steps=400)
    mean, std = train.y.mean(), train.y.std()
    for batch in (train, test):
        batch.topology = model.topology(batch)
    for _ in range(400):
        optimiser.zero_grad()
        centre = model(train)[::11, 0]
        (centre - (train.y - mean) / std).square().mean().backward()
        optimiser.step()
        schedule.step()
    with torch.no_grad():
        error = (model(test)[::11, 0] * std + mean - test.y).square().mean()
    return 1 - float(error / test.y.var())


def draw_pentagons(path: Path) -> dict[int, list[float]]:
    """The picture of the stars that low degrees cannot tell apart, and the numbers in it."""
    figure, axes = plt.subplots(1, 3, figsize=(10, 3.4), width_ratios=[1, 1, 2])
    for axis, turn in zip(axes, (12.0, 36.0), strict=False):
        for number, (x, y) in enumerate(pentagons(turn).pos[1:].tolist()):
            axis.plot([0, x], [0, y], "o-", color="C0" if number < 5 else "C1")
        axis.set(title=f"turned by {turn:.0f}°", aspect="equal", xlim=(-1.2, 1.2), ylim=(-1.2, 1.2))
        axis.axis("off")
    seeds, degrees = range(5), [1, 2, 3, 4, 5, 6, 8, 10]
    found = {p: [turn_explained("agn-separable", s, degree=p) for s in seeds] for p in degrees}
    found[0] = [turn_explained("agn", seed) for seed in seeds]
    right = axes[2]
    for seed in seeds:
        values = [found[p][seed] for p in degrees]
        right.plot(degrees, values, "s-", color="C0", label=None if seed else "product form")
        of_agn = None if seed else "AGN's MLP"
        right.axhline(found[0][seed], ls="--", color="C3", label=of_agn)
    right.set(xlabel="degree of Q", ylabel="turn: explained variance", ylim=(-0.1, 1.1))
    right.legend(loc="center right")
    figure.tight_layout()
    figure.savefig(path, dpi=110)
    return found


if __name__ == "__main__":
    print(draw_pentagons(PICTURES / "separable-pentagons.png"))
    print(draw(PICTURES / "separable.png"))
