"""Batches of graphs: neighbours sorted once, the same order for the same seed and epoch."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import DataLoader, Dataset, Sampler
from torch_geometric.data import Batch, Data
from torch_geometric.data.collate import collate

from symgnn.graphs import Topology
from symgnn.graphs.rays import ranks_of

#: The attributes of a graph that models read, and its labels; no others are batched.
READ = (
    *("pos", "edge_index", "edge_shift", "z", "vel", "part", "x", "edge_attr", "edge_weight"),
    *("angle_attr", "u", "cell", "y"),
)
#: How many graphs are joined at once; their numbers of nodes are then kept in few bytes.
AT_ONCE = 1000


class GraphDataset(Dataset):
    """Graphs in the form that a model reads: dropped values removed, one dtype, sorted neighbours.

    All graphs are joined once, so that a batch is cut out of a few large tensors; PyG's own
    batching goes over every value of every graph. What is no tensor, such as a name, is left out.
    """

    def __init__(
        self,
        source: Sequence[Data],
        *,
        drop: Sequence[str] = (),
        dtype: torch.dtype = torch.float32,
        angles: bool = False,
    ) -> None:
        parts = [
            _joined([source[k] for k in range(start, min(start + AT_ONCE, len(source)))], angles)
            for start in range(0, len(source), AT_ONCE)
        ]
        self.nodes = _starts([part.counts for part in parts])  # [graphs + 1]
        self.values: dict[str, Tensor] = {}
        self.starts: dict[str, Tensor] = {}  # of each value, [graphs + 1]
        self.dims, self.rising = parts[0].dims, parts[0].rising
        for name, dim in self.dims.items():
            if name not in drop:
                value = torch.cat([part.values[name] for part in parts], dim)
                exact = name == "y" and value.dtype == torch.float64  # until it is standardised
                self.values[name] = (
                    value.to(dtype) if value.is_floating_point() and not exact else value
                )
                self.starts[name] = _starts([part.starts[name].diff() for part in parts])

    def __len__(self) -> int:
        return len(self.nodes) - 1

    def __getitem__(self, number: int) -> Batch:
        return self.__getitems__([number])

    def __getitems__(self, numbers: Sequence[int]) -> Batch:
        """A batch of graphs; where the first number is -1 - k, it is graph k, not to be counted."""
        spare = numbers[0] < 0
        chosen = torch.tensor([-1 - k if k < 0 else k for k in numbers])
        sizes = (self.nodes[1:] - self.nodes[:-1])[chosen]
        ptr = torch.cat([sizes.new_zeros(1), sizes.cumsum(0)])
        batch = Batch()
        for name, value in self.values.items():
            index, counts = _rows(self.starts[name], chosen)
            found = value.index_select(self.dims[name], index)
            if name in self.rising:
                found = found.long() + ptr[:-1].repeat_interleave(counts)
            batch[name] = found
        batch.batch, batch.ptr = torch.arange(len(chosen)).repeat_interleave(sizes), ptr
        batch.spare = spare
        return batch


class Joined(NamedTuple):
    """The values of some graphs, each joined."""

    counts: Tensor  # [graphs], nodes
    values: dict[str, Tensor]
    starts: dict[str, Tensor]  # where each graph begins, [graphs + 1]
    dims: dict[str, int]  # along which they are joined
    rising: list[str]  # those that hold numbers of nodes, counted in each graph from 0


def _joined(graphs: list[Data], angles: bool) -> Joined:
    """All tensors of the graphs; with `angles`, their sorted neighbours too."""
    graphs = [Data(**{n: g[n] for n in READ if g.get(n) is not None}) for g in graphs]
    whole, slices, _ = collate(Data, graphs, increment=False, add_batch=False)
    counts = torch.tensor([graph.num_nodes for graph in graphs])
    values = {n: whole[n] for n in whole.keys() if isinstance(whole[n], Tensor)}  # noqa: SIM118
    starts = {name: slices[name] for name in values}
    dims = {name: whole.__cat_dim__(name, value) for name, value in values.items()}
    rising = [name for name, value in values.items() if whole.__inc__(name, value) != 0]
    if angles:
        first, nodes = _starts([counts])[:-1], int(counts.sum())
        edges = values["edge_index"] + first.repeat_interleave(starts["edge_index"].diff())
        values["ray_ranks"] = ranks_of(edges, nodes)
        starts["ray_ranks"], dims["ray_ranks"] = starts["edge_index"], 0
    small = torch.int16 if int(counts.max()) < 2**15 else torch.int32
    values |= {name: values[name].to(small) for name in rising}
    if angles:
        values["ray_ranks"] = values["ray_ranks"].to(small)
    return Joined(counts, values, starts, dims, rising)


def _starts(counts: Sequence[Tensor]) -> Tensor:
    """Where each part begins, and the last ends."""
    return torch.cat([torch.zeros(1, dtype=torch.long), *counts]).cumsum(0)


def _rows(starts: Tensor, chosen: Tensor) -> tuple[Tensor, Tensor]:
    """The rows of the chosen graphs, and how many each has."""
    counts = starts.diff()[chosen]
    before = counts.cumsum(0) - counts
    shift = (starts[chosen] - before).repeat_interleave(counts)
    return torch.arange(len(shift)) + shift, counts


class Batches(Sampler):
    """The batches of an epoch: the same for the same seed and epoch, on any number of devices.

    Graphs that fit into one batch keep their order, as every epoch then has the same batch. Of each
    batch a device gets every `world`-th graph. Where there are fewer graphs than devices, those
    without one get the first, not to be counted.
    """

    def __init__(
        self,
        count: int,
        size: int,
        *,
        seed: int | None = None,
        drop_last: bool = False,
        rank: int = 0,
        world: int = 1,
    ) -> None:
        self.count, self.size, self.seed, self.drop_last = count, size, seed, drop_last
        self.rank, self.world, self.epoch = rank, world, 0

    def __len__(self) -> int:
        whole, rest = divmod(self.count, self.size)
        return whole + bool(rest and (not self.drop_last or not whole))

    def __iter__(self) -> Iterator[list[int]]:
        order = torch.arange(self.count)
        if self.seed is not None and self.count > self.size:
            generator = torch.Generator().manual_seed(mixed(self.seed, self.epoch))
            order = torch.randperm(self.count, generator=generator)
        for batch in order.split(self.size)[: len(self)]:
            mine = batch[self.rank :: self.world].tolist()
            yield mine or [-1 - int(batch[0])]


def mixed(*numbers: int) -> int:
    """One seed of several numbers."""
    return int(np.random.SeedSequence(numbers).generate_state(1, np.uint64)[0]) >> 1


class WithTopology:
    """Gives a batch its topology, outside of the model, in a worker if there are any."""

    def __init__(self, topology: Callable[[Data], Topology] | None) -> None:
        self.topology = topology

    def __call__(self, batch: Batch) -> Batch:
        if self.topology is not None:
            batch.topology = self.topology(batch)
        return batch


def loader(
    graphs: GraphDataset,
    batches: Batches,
    topology: Callable[[Data], Topology] | None,
    workers: int = 0,
) -> DataLoader:
    """A loader of batches."""
    return DataLoader(
        graphs,
        batch_sampler=batches,
        collate_fn=WithTopology(topology),
        num_workers=workers,
        generator=torch.Generator(),  # so that it draws nothing from torch's own
        persistent_workers=workers > 0,
    )
