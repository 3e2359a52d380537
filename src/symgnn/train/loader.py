"""Batches of graphs: neighbours sorted once, the same order for the same seed and epoch."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import DataLoader, Dataset, Sampler
from torch_geometric.data import Batch, Data
from torch_geometric.data.collate import collate

from symgnn.topology import Topology
from symgnn.topology.rays import sorted_rays


class Graphs(Dataset):
    """Graphs as a model reads them: without what is dropped, in one type, neighbours sorted.

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
        graphs = [source[k] for k in range(len(source))]
        whole, slices, _ = collate(Data, graphs, increment=False, add_batch=False)
        self.starts: dict[str, Tensor] = {}  # [graphs + 1] of each value
        self.values: dict[str, Tensor] = {}
        for name in whole.keys():  # noqa: SIM118
            if isinstance(whole[name], Tensor) and name not in drop:
                self.values[name] = whole[name]
                self.starts[name] = slices[name]
        self.nodes = torch.tensor([0, *(graph.num_nodes for graph in graphs)]).cumsum(0)
        self.dims = {name: whole.__cat_dim__(name, value) for name, value in self.values.items()}
        self.rising = [n for n, value in self.values.items() if whole.__inc__(n, value) != 0]
        for name, value in self.values.items():
            if value.is_floating_point():
                self.values[name] = value.to(dtype)
        if angles:
            self._sort_neighbours()

    def _sort_neighbours(self) -> None:
        counts, first = self.starts["edge_index"].diff(), self.nodes[:-1]
        edges = self.values["edge_index"] + first.repeat_interleave(counts)
        rays = sorted_rays(edges, int(self.nodes[-1]))
        starts = torch.searchsorted(rays[0].contiguous(), self.nodes)
        self.values["ray_index"] = rays - first.repeat_interleave(starts.diff())
        self.starts["ray_index"], self.dims["ray_index"] = starts, -1
        self.rising.append("ray_index")

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
        batch, rows = Batch(), {}
        for name, value in self.values.items():
            starts = self.starts[name]
            if id(starts) not in rows:
                rows[id(starts)] = _rows(starts, chosen)
            index, counts = rows[id(starts)]
            found = value.index_select(self.dims[name], index)
            if name in self.rising:
                found = found + ptr[:-1].repeat_interleave(counts)
            batch[name] = found
        batch.batch, batch.ptr = torch.arange(len(chosen)).repeat_interleave(sizes), ptr
        batch.spare = spare
        return batch


def _rows(starts: Tensor, chosen: Tensor) -> tuple[Tensor, Tensor]:
    """The rows of the chosen graphs, and how many each has."""
    counts = starts.diff()[chosen]
    before = counts.cumsum(0) - counts
    shift = (starts[chosen] - before).repeat_interleave(counts)
    return torch.arange(len(shift)) + shift, counts


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


class WithTopology:
    """Gives a batch its topology, outside of the model, in a worker if there are any."""

    def __init__(self, topology: Callable[[Data], Topology] | None) -> None:
        self.topology = topology

    def __call__(self, batch: Batch) -> Batch:
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
        collate_fn=WithTopology(topology),
        num_workers=workers,
        generator=torch.Generator(),  # so that it draws nothing from torch's own
        persistent_workers=workers > 0,
    )
