"""Graphs, models and measured errors that several test files share."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable

import pytest
import torch
from torch import Tensor
from torch_geometric.data import Batch, Data

from symgnn.geometry import TRANSFORMATIONS, NoSuchTransformation, Permutation, Transformation
from symgnn.nn import ARCHITECTURES, Model, Spec, build

COMPILES = pytest.mark.skipif(
    torch.__version__ < "2.13", reason="torch.compile records these networks from PyTorch 2.13 on"
)
FEATURES = {"node_features": 2, "edge_features": 2, "graph_features": 2}


def rng(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def both_ways(pairs: list[tuple[int, int]]) -> Tensor:
    """Undirected edges as `edge_index [2, 2E]`."""
    edges = torch.tensor(pairs, dtype=torch.long).reshape(-1, 2)
    return torch.cat([edges, edges.flip(1)]).T.contiguous()


def cliques(groups: list[list[int]]) -> list[tuple[int, int]]:
    """All pairs inside each group."""
    return [(a, b) for group in groups for k, a in enumerate(group) for b in group[:k]]


def generic_edges() -> Tensor:
    """Nine nodes of degree 4 to 6, connected, and not complete."""
    return both_ways([(i, j) for i in range(9) for j in range(i) if (i + j) % 3])


def bridge_edges() -> Tensor:
    """Two cliques of five, joined by a bridge."""
    return both_ways([*cliques([[0, 1, 2, 3, 4], [5, 6, 7, 8, 9]]), (4, 5)])


def flexible_edges(n: int) -> Tensor:
    """Three cliques in a chain, each sharing one node with the next, where it can bend.

    A clique has n + 1 nodes, so it is rigid in n dimensions.
    """
    size = n + 1
    groups = [list(range(k * (size - 1), (k + 1) * (size - 1) + 1)) for k in range(3)]
    return both_ways(cliques(groups))


def ring_edges() -> Tensor:
    """A ring of six with a node at each vertex: its angles can flex in 3 dimensions and more."""
    return both_ways([*((k, (k + 1) % 6) for k in range(6)), *((k, k + 6) for k in range(6))])


def directed(edge_index: Tensor, seed: int = 0) -> Tensor:
    """About two thirds of the edges, so that some pairs are joined in one direction only.

    No pair is lost altogether: rays, and with them the bridges, are those of `edge_index`.
    """
    source, target = edge_index
    drop = torch.rand(edge_index.shape[1], generator=rng(seed)) < 0.6
    return edge_index[:, ~(drop & (source < target))]


def parts_of(edge_index: Tensor) -> Tensor:
    """The number of the part of each node `[N]`: two for :func:`bridge_edges`, else one."""
    nodes = int(edge_index.max()) + 1
    pairs = {tuple(sorted(edge)) for edge in edge_index.T.tolist()}
    bridged = pairs == {tuple(sorted(edge)) for edge in bridge_edges().T.tolist()}
    return (torch.arange(nodes) >= 5).long() if bridged else torch.zeros(nodes, dtype=torch.long)


def graph(edge_index: Tensor, n: int, seed: int, dtype: torch.dtype = torch.float64) -> Data:
    """Random coordinates away from the origin, and random features."""
    nodes, edges, generator = int(edge_index.max()) + 1, edge_index.shape[1], rng(1000 + seed)

    def normal(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=generator, dtype=torch.float64).to(dtype)

    return Data(
        pos=normal(nodes, n) + 0.7,
        edge_index=edge_index,
        part=parts_of(edge_index),
        x=normal(nodes, FEATURES["node_features"]),
        edge_attr=normal(edges, FEATURES["edge_features"]),
        u=normal(1, FEATURES["graph_features"]),
    )


def without_features(data: Data) -> Data:
    """Coordinates and edges alone."""
    return Data(pos=data.pos, edge_index=data.edge_index, part=data.part)


def graphs(n: int, seed: int = 0, one_way: bool = False) -> list[Data]:
    """A generic graph, two with a bridge, one that bends and a ring, in n dimensions."""
    edges = [generic_edges(), bridge_edges(), flexible_edges(n), ring_edges(), bridge_edges()]
    found = [
        graph(directed(e, seed) if one_way else e, n, 10 * seed + k) for k, e in enumerate(edges)
    ]
    found[-1].part.zero_()  # its bridge is inside a part
    return found


def element_of(kind: str, data: Data, generator: torch.Generator) -> Transformation | None:
    """A random transformation of a graph, or None where it has none of this kind."""
    own = {"part": getattr(data, "part", None)} if kind == "part-motion" else {}
    try:
        return TRANSFORMATIONS[kind].random(data.pos, data.edge_index, generator=generator, **own)
    except NoSuchTransformation:
        return None


class Moved:
    """Graphs after a transformation each, all of one kind, and what has to come out of a model.

    Graphs that have no transformation of the kind stay as they are. A permutation reorders the
    edges too.
    """

    def __init__(self, kind: str, graphs: list[Data], generator: torch.Generator) -> None:
        self.elements = [element_of(kind, data, generator) for data in graphs]
        assert any(self.elements), f"no graph has a {kind}"
        self.sizes = [data.num_nodes for data in graphs]
        self.after, nodes, edges = [], [], []
        for element, data in zip(self.elements, graphs, strict=True):
            image = element.apply(data) if element else data
            node, edge = torch.arange(data.num_nodes), torch.arange(data.num_edges)
            if isinstance(element, Permutation):
                node, edge = element.order, torch.randperm(data.num_edges, generator=generator)
                image.edge_index = image.edge_index[:, edge]
                if image.edge_attr is not None:
                    image.edge_attr = image.edge_attr[edge]
            nodes.append(node + sum(map(len, nodes)))
            edges.append(edge + sum(map(len, edges)))
            self.after.append(image)
        self.nodes = torch.cat(nodes)  # node `nodes[i]` before is node i after
        self.edges = torch.cat(edges)  # edge `edges[k]` before is edge k after

    def expected(self, task: str, output: Tensor) -> Tensor:
        """What has to come out after, if `output` came out before."""
        if task == "node":
            return output[self.nodes]
        if task == "edge":
            return output[self.edges]
        if task == "coordinates":
            pairs = zip(self.elements, output.split(self.sizes), strict=True)
            return torch.cat([g(x) if g else x for g, x in pairs])
        return output


class Trial:
    """Graphs as they are and after transformations of several kinds, in one batch."""

    def __init__(self, kinds: Iterable[str], graphs: list[Data], seed: int = 0) -> None:
        generator = rng(seed)
        self.cases = {kind: Moved(kind, graphs, generator) for kind in kinds}
        after = [data for case in self.cases.values() for data in case.after]
        self.batch = Batch.from_data_list([*graphs, *after])

    @torch.no_grad()
    def changes(self, model: Callable, task: str | None = None) -> dict[str, float]:
        """For each kind how far the output is from invariant (coordinates: equivariant).

        Errors are relative to the spread of the outputs. The task is the model's own if not given.
        """
        task = task or model.task
        output = model(self.batch)
        assert output.isfinite().all(), f"{model}: the output is not finite"
        before, *images = output.chunk(1 + len(self.cases))
        errors = {}
        for (kind, case), after in zip(self.cases.items(), images, strict=True):
            expected = case.expected(task, before)
            spread = float((expected - expected.mean(0)).abs().max())
            assert spread > 0, f"{model}: the output is constant"
            errors[kind] = float((after - expected).abs().max()) / spread
        return errors


@functools.lru_cache(maxsize=512)
def trial(kinds: Iterable[str], n: int, seed: int = 0, one_way: bool = False) -> Trial:
    """The graphs of :func:`graphs` by kinds of transformations, given as a tuple or Symmetry."""
    return Trial(kinds, graphs(n, seed, one_way), 7 * seed + n)


@torch.no_grad()
def distance(first: Tensor, second: Tensor) -> float:
    """The largest difference of two tensors of one shape."""
    assert first.shape == second.shape, f"{first.shape} and {second.shape}"
    return float((first - second).abs().max())


def random_model(architecture, *, seed: int = 0, noise: float = 0.2, **options) -> Model:
    """A float64 model in which every parameter is away from where it starts.

    A new model has scale 1, shift 0 and no rotation, so some of its coordinate maps do nothing.
    """
    start = {"init": "torch"}  # values that tests compare to absolute bounds
    if isinstance(architecture, Spec) or str(architecture).lower() in ARCHITECTURES:
        start["aggregation"] = "mean"
    options = {"hidden": 6, "mlp_hidden": 8, "outputs": 3, **start, **options}
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        model = build(architecture, **options).double()
        for parameter in model.parameters():
            parameter.data += noise * torch.randn_like(parameter)
    return model.eval()


def train_ensemble(ensemble, batch, loss, epochs, record=False, learning_rate=1e-3):  # type: ignore[no-untyped-def]
    """Train an ensemble on one batch with Adam; the losses `[epochs, S]`."""
    optimizer = torch.optim.Adam(ensemble.parameters(), learning_rate, fused=True)
    step = ensemble.recorded(loss, batch) if record else None
    assert step is not None or not record
    history = []
    ensemble.train()
    for _ in range(epochs):
        history.append(step(batch, 1.0) if step else ensemble.gradients(loss, batch))
        optimizer.step()
    ensemble.eval()
    return torch.stack(history)
