"""A network, trained by gradients, that tells graphs from turned ones.

Its accuracy on graphs that it was not trained on says how far inputs are from being spread over
rotations: 1/2 if they are, more if they are aligned. It reads coordinates of nodes and the rays of
edges, and sees every training graph under new rotations in each step.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Generator, Tensor, nn
from torch_geometric.data import Data

from symgnn._argument_checks import check_count
from symgnn.discovery._packing import both_ways, node_features, reduced
from symgnn.progress import bar

#: Graphs in a step, each read as it is and turned; fewer of more than about 30 nodes.
BATCH, LEAST_BATCH, NODES = 32, 8, 1_000
#: Numbers per node and edge, and rounds of messages.
WIDTH, ROUNDS = 64, 2
RATE = 3e-3


@dataclass(frozen=True)
class TurnFinding:
    """How well held-out graphs are told from turned ones."""

    accuracy: float  # 0.5 if inputs are spread evenly
    interval: tuple[float, float]  # 90 %
    p_value: float  # exact, that inputs are spread evenly: the sign test of pairs
    train: int  # graphs that the network was trained on
    test: int  # graphs that it was tested on, each as it is and turned


@dataclass(frozen=True)
class Clouds:
    """Nodes and edges of graphs, one after the other."""

    x: Tensor  # [N, n], centred, over their typical size
    nodes: Tensor  # [N, F], features
    edges: Tensor  # [2, E], in both directions
    links: Tensor  # [E, K], features
    counts: Tensor  # [G], nodes of each graph
    edge_counts: Tensor  # [G]

    def chosen(self, graphs: Tensor) -> tuple[Clouds, Tensor]:
        """Some of the graphs, and the number of the graph of each node."""
        nodes, which = _ranges(self.counts, graphs)
        edges, owner = _ranges(self.edge_counts, graphs)
        before = self.counts.cumsum(0) - self.counts
        counts = self.counts[graphs]
        shift = (counts.cumsum(0) - counts) - before[graphs]
        moved = self.edges[:, edges] + shift[owner]
        part = Clouds(
            self.x[nodes], self.nodes[nodes], moved, self.links[edges], counts,
            self.edge_counts[graphs],
        )  # fmt: skip
        return part, which


def _ranges(counts: Tensor, chosen: Tensor) -> tuple[Tensor, Tensor]:
    """The places of the elements of chosen graphs, and which of these graphs each belongs to."""
    starts, sizes = (counts.cumsum(0) - counts)[chosen], counts[chosen]
    which = torch.arange(len(chosen)).repeat_interleave(sizes)
    inside = torch.arange(len(which)) - (sizes.cumsum(0) - sizes)[which]
    return starts[which] + inside, which


def clouds(graphs: Sequence[Data]) -> Clouds:
    """Graphs as arrays in float32, centred on the mean of their nodes."""
    edges, links, x, first = [], [], [], 0
    for graph in graphs:
        index, attributes = both_ways(graph, features=True)
        edges.append(index + first)
        links.append(attributes)
        x.append(graph.pos.double() - graph.pos.double().mean(0))
        first += len(graph.pos)
    every = torch.cat(x)
    size = every.square().sum(1).mean().sqrt().clamp(min=1e-300)
    index = torch.cat(edges, 1)
    degree = torch.bincount(index[1], minlength=first).double().unsqueeze(1)
    return Clouds(
        (every / size).float(),
        reduced(torch.cat([degree, node_features(graphs)], 1)).float(),
        index,
        reduced(torch.cat(links)).float(),
        torch.tensor([len(graph.pos) for graph in graphs]),
        torch.tensor([part.shape[1] for part in edges]),
    )


class TurnReader(nn.Module):
    """Messages along edges, the mean and the maximum over nodes, one number for each graph."""

    def __init__(self, dimension: int, features: int, links: int) -> None:
        super().__init__()
        self.first = _layers(dimension + features, WIDTH)
        reads = 2 * WIDTH + dimension + 1 + links
        self.messages = nn.ModuleList(_layers(reads, WIDTH) for _ in range(ROUNDS))
        self.updates = nn.ModuleList(_layers(3 * WIDTH, WIDTH) for _ in range(ROUNDS))
        self.last = nn.Sequential(_layers(2 * WIDTH, WIDTH), nn.Linear(WIDTH, 1))

    def forward(self, part: Clouds, which: Tensor) -> Tensor:
        """The logarithm of the odds that each graph is as it was, `[G]`."""
        source, target = part.edges
        rays = part.x[source] - part.x[target]
        known = torch.cat([rays, rays.norm(dim=1, keepdim=True), part.links], 1)
        h = self.first(torch.cat([part.x, part.nodes], 1))
        for message, update in zip(self.messages, self.updates, strict=True):
            sent = message(torch.cat([h[source], h[target], known], 1))
            h = h + update(torch.cat([h, *_mean_and_max(sent, target, len(h))], 1))
        return self.last(torch.cat(_mean_and_max(h, which, len(part.counts)), 1)).squeeze(1)


def _layers(inputs: int, outputs: int) -> nn.Sequential:
    return nn.Sequential(nn.Linear(inputs, outputs), nn.SiLU(), nn.Linear(outputs, outputs))


def _mean_and_max(values: Tensor, owner: Tensor, owners: int) -> tuple[Tensor, Tensor]:
    index = owner.unsqueeze(1).expand_as(values)
    empty = values.new_zeros(owners, values.shape[1])
    mean = empty.scatter_reduce(0, index, values, "mean", include_self=False)
    return mean, empty.scatter_reduce(0, index, values, "amax", include_self=False)


def turned(part: Clouds, which: Tensor, quarter: bool, generator: Generator) -> Clouds:
    """Every graph under a random rotation of its own, or quarter turns of the first two axes."""
    graphs, n = len(part.counts), part.x.shape[1]
    matrices = _quarter_turns(graphs, n, generator) if quarter else _any(graphs, n, generator)
    x = torch.einsum("na,nba->nb", part.x, matrices[which])
    return Clouds(x, part.nodes, part.edges, part.links, part.counts, part.edge_counts)


def _any(graphs: int, n: int, generator: Generator) -> Tensor:
    q, r = torch.linalg.qr(torch.randn(graphs, n, n, generator=generator))
    q = q * torch.where(torch.diagonal(r, dim1=1, dim2=2) < 0, -1.0, 1.0).unsqueeze(1)
    q[:, :, 0] *= torch.linalg.det(q).sign().unsqueeze(1)
    return q


def _quarter_turns(graphs: int, n: int, generator: Generator) -> Tensor:
    times = torch.randint(4, (graphs,), generator=generator)
    cosine = torch.tensor([1.0, 0.0, -1.0, 0.0])[times]
    sine = torch.tensor([0.0, 1.0, 0.0, -1.0])[times]
    found = torch.eye(n).repeat(graphs, 1, 1)
    found[:, 0, 0], found[:, 0, 1], found[:, 1, 0], found[:, 1, 1] = cosine, -sine, sine, cosine
    return found


def told_apart(
    graphs: Sequence[Data],
    *,
    quarter: bool = False,
    steps: int = 1_000,
    seed: int = 0,
    progress: bool | None = None,
) -> TurnFinding:
    """Train a network to tell graphs from turned ones; give its accuracy on other graphs.

    A fifth of the graphs is for the test, at most 2,000. Nothing is chosen by the test graphs, so
    that the accuracy is that on new graphs. If inputs are spread evenly over rotations, a graph and
    its image can be exchanged: that the network gives the larger number to the graph is then as
    likely as not, which makes the p-value exact.

    Args:
        graphs: PyG graphs with `pos [N, n]` (n at least 2) and `edge_index`; `x`, `z` and
            `edge_attr` are read as invariant features.
        quarter: Whether graphs are turned by 0, 90, 180 or 270 degrees in the plane of the first
            two coordinates; by any rotation if not.
        steps: Of the optimiser, with 32 graphs each, or fewer large ones.
        seed: Of weights, rotations and the division.
        progress: Whether to show a bar; if not given, where stderr is a terminal.

    Returns:
        The accuracy with its interval, the p-value and the numbers of graphs.

    Example:
        >>> import symgnn
        >>> solids = symgnn.data.load("polytopes-3d", copies=20)
        >>> found = symgnn.discovery.told_apart(list(solids.test), steps=20, progress=False)
        >>> found.train, found.test
        (80, 20)
    """
    check_count("steps", steps, 1)
    if len(graphs) < 20:
        raise ValueError(f"graphs: there are {len(graphs)}; at least 20 are needed to say anything")
    n = graphs[0].pos.shape[1]
    if n < 2:
        raise ValueError("graphs: have one coordinate, in which there are no rotations")
    every = clouds(graphs)
    generator = torch.Generator().manual_seed(seed)
    order = torch.randperm(len(graphs), generator=generator)
    test = order[: min(len(graphs) // 5, 2_000)]
    train = order[len(test) :]
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = TurnReader(n, every.nodes.shape[1], every.links.shape[1])
    with bar("told apart", progress) as on_progress:
        _train(model, every, train, steps, quarter, generator, on_progress)
    scores = _scores(model, every, test, quarter, generator)
    accuracy = float(((scores[0] > 0).double().mean() + (scores[1] <= 0).double().mean()) / 2)
    rows = 2 * len(test)
    error = 1.645 * math.sqrt(max(accuracy * (1 - accuracy), 0.25 / rows) / rows)
    interval = max(0.0, accuracy - error), min(1.0, accuracy + error)
    return TurnFinding(accuracy, interval, _sign_test(*scores), len(train), len(test))


def _train(
    model: TurnReader,
    every: Clouds,
    graphs: Tensor,
    steps: int,
    quarter: bool,
    generator: Generator,
    on_progress: Callable[[int, int], None] | None,
) -> None:
    optimizer = torch.optim.AdamW(model.parameters(), RATE, weight_decay=1e-3)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, RATE, steps)
    queue = graphs[:0]
    typical = float(every.counts.double().mean())
    size = max(LEAST_BATCH, min(BATCH, int(NODES / typical)))
    for step in range(steps):
        if len(queue) < size:
            queue = torch.cat([queue, graphs[torch.randperm(len(graphs), generator=generator)]])
        chosen, queue = queue[:size], queue[size:]
        part, which = every.chosen(chosen)
        image = turned(part, which, quarter, generator)
        loss = nn.functional.softplus(-model(part, which)).mean()
        loss = loss + nn.functional.softplus(model(image, which)).mean()
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        if on_progress is not None:
            on_progress(step + 1, steps)


@torch.no_grad()
def _scores(
    model: TurnReader, every: Clouds, graphs: Tensor, quarter: bool, generator: Generator
) -> tuple[Tensor, Tensor]:
    """Of graphs as they are, and turned."""
    found: list[list[Tensor]] = [[], []]
    for chosen in graphs.split(4 * BATCH):
        part, which = every.chosen(chosen)
        found[0].append(model(part, which))
        found[1].append(model(turned(part, which, quarter, generator), which))
    return torch.cat(found[0]), torch.cat(found[1])


def _sign_test(graphs: Tensor, images: Tensor) -> float:
    """The exact p-value that graphs get the larger number as often as not; ties do not count."""
    from scipy.stats import binomtest

    larger, smaller = int((graphs > images).sum()), int((graphs < images).sum())
    if larger + smaller == 0:
        return 1.0
    return float(binomtest(larger, larger + smaller, 0.5, alternative="greater").pvalue)
