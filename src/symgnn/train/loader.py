"""Batches of graphs: neighbours sorted once, the same order for the same seed and epoch."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import DataLoader, Dataset, Sampler
from torch_geometric.data import Batch, Data

from symgnn.topology import Topology
from symgnn.topology.rays import sorted_rays


class Graphs(Dataset):
    """Graphs as a model reads them: without what is dropped, in one type, neighbours sorted.

    Neighbours are sorted the first time that a graph is asked for, and kept. A graph of number
    -1 - k is graph k, marked as not to be counted.
    """

    def __init__(
        self,
        source: Sequence[Data],
        *,
        drop: Sequence[str] = (),
        dtype: torch.dtype = torch.float32,
        angles: bool = False,
    ) -> None:
        self.source, self.drop, self.dtype, self.angles = source, drop, dtype, angles
        self.rays: dict[int, Tensor] = {}

    def __len__(self) -> int:
        return len(self.source)

    def __getitem__(self, number: int) -> Data:
        k = number if number >= 0 else -1 - number
        graph = copy.copy(self.source[k])
        for name in self.drop:
            if name in graph:
                del graph[name]
        graph = graph.apply(lambda t: t.to(self.dtype) if t.is_floating_point() else t)
        if self.angles:
            if k not in self.rays:
                self.rays[k] = sorted_rays(graph.edge_index, graph.num_nodes)
            graph.ray_index = self.rays[k]
        graph.spare = number < 0
        return graph


class Batches(Sampler):
    """The batches of an epoch: the same for the same seed and epoch, on any number of devices.

    Of each batch a device gets every `world`-th graph. Where there are fewer graphs than devices,
    those without one get the first, not to be counted.
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
        if self.seed is not None:
            generator = torch.Generator().manual_seed(mixed(self.seed, self.epoch))
            order = torch.randperm(self.count, generator=generator)
        for batch in order.split(self.size)[: len(self)]:
            mine = batch[self.rank :: self.world].tolist()
            yield mine or [-1 - int(batch[0])]


def mixed(*numbers: int) -> int:
    """One seed of several numbers."""
    return int(np.random.SeedSequence(numbers).generate_state(1, np.uint64)[0] >> 1)


class Collate:
    """A batch of graphs with its topology, made outside of the model, in a worker if there are."""

    def __init__(self, topology: Callable[[Data], Topology] | None) -> None:
        self.topology = topology

    def __call__(self, graphs: list[Data]) -> Batch:
        batch = Batch.from_data_list(graphs)
        if self.topology is not None:
            batch.topology = self.topology(batch)
        return batch


def loader(
    graphs: Graphs, batches: Batches, topology: Callable[[Data], Topology] | None, workers: int = 0
) -> DataLoader:
    """A loader of batches."""
    return DataLoader(
        graphs,
        batch_sampler=batches,
        collate_fn=Collate(topology),
        num_workers=workers,
        generator=torch.Generator(),  # so that it draws nothing from torch's own
        persistent_workers=workers > 0,
    )
