"""Travelling salesman problems: which edges of a neighbourhood graph does the shortest tour use?

The task of the benchmark that the paper uses (Dwivedi et al. 2020): 50 to 500 points, uniform in
the unit square; each node is joined to its 25 nearest. The benchmark's own tours are by Concorde in
its norm GEO, integer kilometres on a globe, and therefore about 0.1 % longer than the shortest.
Tours that are generated here are by fast-tsp, in straight distances.
"""

from __future__ import annotations

import io
import zipfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from importlib import resources
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch_geometric.data import Data

from symgnn._argument_checks import check_count
from symgnn.data._dataset_store import (
    BAD_ZIP,
    Arrays,
    PathLike,
    Source,
    cache,
    fetch,
    find,
    prepared,
)
from symgnn.data._packed_graphs import PackedGraphs, limits, starts
from symgnn.data._parallel import in_parallel
from symgnn.data._task import Splits, Task
from symgnn.data._tours import SECONDS_PER_NODE, solve
from symgnn.graphs import knn_graph

NEIGHBOURS = 25
SIZES = (10_000, 1_000, 1_000)
#: One over the median length of an edge, in sides of the square.
SCALE = 8.6

#: The files in the archive, which may also be there one by one.
FILES = {
    "train": Source("tsp", "tsp50-500_train.txt"),
    "validation": Source("tsp", "tsp50-500_val.txt"),
    "test": Source("tsp", "tsp50-500_test.txt"),
}
#: Without a digest, as its publisher names none: its size and its content are checked instead.
ARCHIVE = Source(
    "tsp",
    "TSP.zip",
    ("https://www.dropbox.com/s/1wf6zn5nq7qjg0e/TSP.zip?dl=1",),
    size=64_700_000,
    rounded=True,
    members=tuple(f"TSP/{file.name}" for file in FILES.values()),
)


class Instance(NamedTuple):
    """Points `[N, 2]` and the order in which the tour visits them, `[N]`."""

    pos: np.ndarray
    tour: np.ndarray


def parse_instance(line: str, where: str = "line") -> Instance:
    """One line of the benchmark's format: `x1 y1 x2 y2 ... output t1 t2 ... t1`, nodes from 1."""
    numbers, word, order = line.partition("output")
    try:
        pos = np.array(numbers.split(), dtype=np.float64).reshape(-1, 2)
        tour = np.array(order.split(), dtype=np.int64) - 1
    except (ValueError, OverflowError):
        raise ValueError(f"{where}: expected numbers x1 y1 ..., output, t1 t2 ... t1") from None
    if not word or not len(pos) or not np.isfinite(pos).all():
        raise ValueError(f"{where}: expected numbers x1 y1 ..., output, t1 t2 ... t1")
    if len(tour) and tour[0] == tour[-1] and len(tour) > 1:
        tour = tour[:-1]
    if not np.array_equal(np.sort(tour), np.arange(len(pos))):
        raise ValueError(f"{where}: the tour does not visit each of {len(pos)} nodes once")
    return Instance(pos, tour)


def format_instance(instance: Instance) -> str:
    """The line that :func:`parse_instance` reads, with its end."""
    numbers = " ".join(repr(float(number)) for number in instance.pos.reshape(-1))
    order = " ".join(str(node + 1) for node in [*instance.tour, instance.tour[0]])
    return f"{numbers} output {order} \n"


def read_instances(path: Path, most: int | None = None) -> list[Instance]:
    """The first instances of a file."""
    try:
        with path.open() as file:
            return _parse(file, str(path), most)
    except UnicodeDecodeError:
        raise ValueError(f"{path}: is not a text file of instances; replace it") from None


def _parse(lines: Iterable[str], where: str, most: int | None) -> list[Instance]:
    found: list[Instance] = []
    for number, line in enumerate(lines, 1):
        if most is not None and len(found) >= most:
            break
        if line.strip():
            found.append(parse_instance(line, f"{where}, line {number}"))
    return found


def tsp_graph(instance: Instance, *, distance: bool = False, scale: float = 1.0) -> Data:
    """The graph of an instance. It has

    - `pos` `[N, 2]`: the points, times `scale`
    - `edge_index` `[2, E]`: to each node from its 25 nearest
    - `y` `[E]`: 1 for edges that the tour takes, in either direction, else 0
    - with `distance`, `edge_attr` `[E, 1]`: the length of each edge, times `scale`
    """
    points = torch.from_numpy(instance.pos)
    source, target = edge_index = knn_graph(points, NEIGHBOURS)
    place = torch.empty(len(points), dtype=torch.long)
    place[torch.from_numpy(instance.tour)] = torch.arange(len(points))
    apart = (place[source] - place[target]).abs()
    data = Data(
        pos_scale=float(scale),
        pos=(scale * points).float(),
        edge_index=edge_index,
        y=((apart == 1) | (apart == len(points) - 1)).long(),
    )
    if distance:
        data.edge_attr = (scale * (points[source] - points[target]).norm(dim=1)[:, None]).float()
    return data


def load_tsp(
    *,
    source: PathLike | None = None,
    root: PathLike | None = None,
    distance: bool = False,
    seed: int = 0,
    nodes: Sequence[int] = (50, 500),
    seconds_per_node: float = SECONDS_PER_NODE,
    limit: int | Sequence[int] | None = None,
    scale: float = SCALE,
    jobs: int = 1,
    progress: bool | None = None,
) -> Splits:
    """The graphs of :func:`tsp_graph` in splits of 10,000, 1,000 and 1,000.

    `source` is a folder with the benchmark's files (or the archive of them), "sample" (a few
    instances that come with symgnn), or "generated": random instances with `nodes[0]` to `nodes[1]`
    nodes each, those of :func:`generate`. If there is none, what SYMGNN_DATA or the cache has,
    else the archive, which is downloaded. `limit` is the largest number of graphs of each split,
    one number or three. The benchmark's edges have their length as a feature; the paper names none.
    """
    most = limits(limit)
    splits = []
    for number, (split, size) in enumerate(zip(FILES, SIZES, strict=True)):
        count = min(size, most[number] or size)
        if source == "generated":
            text = f"tours of {count} instances, {split}"
            packed = _generated(
                root,
                count,
                seed=(check_count("seed", seed, 0), number),
                nodes=nodes,
                seconds_per_node=seconds_per_node,
                jobs=jobs,
                text=text,
                progress=progress,
            )
        else:
            packed = tours_packed(_published(split, count, source, root, progress))
        splits.append(
            PackedGraphs(BuildTour(packed, distance, scale), np.arange(len(packed["count"])))
        )
    about: dict[str, Any] = {
        "source": str(source or "published"),
        "tours": "fast-tsp" if source == "generated" else "Concorde, norm GEO",
        "neighbours": NEIGHBOURS,
        "pos": "sides of the square",
    }
    if distance:
        about["features with lengths"] = ["edge_attr"]
    if source == "generated":
        about |= {"seed": seed, "nodes": list(nodes)}
    task = Task("edge", "classification", ("in the tour",), classes=("no", "yes"))
    train, validation, test = splits
    return Splits(train, validation, test, task, scale, about)


def _published(
    split: str, most: int, source: PathLike | None, root: PathLike | None, progress: bool | None
) -> list[Instance]:
    file = FILES[split]
    if source == "sample":
        sample = resources.files("symgnn.data") / "samples" / file.name
        return _parse(sample.read_text().splitlines(), file.name, most)
    path = find(file, root=root, local=source)
    if path is not None:
        return read_instances(path, most)
    if source is not None and find(ARCHIVE, local=source) is None:
        raise ValueError(
            f"{source}: has no {file.name}; add it, or generate instances (source=generated)"
        )
    archive = fetch(ARCHIVE, root=root, local=source, progress=progress)
    try:
        with zipfile.ZipFile(archive) as content, content.open(f"TSP/{file.name}") as lines:
            return _parse(io.TextIOWrapper(lines), f"{archive}, {file.name}", most)
    except (*BAD_ZIP, KeyError, UnicodeDecodeError) as error:
        raise ValueError(f"{archive}: cannot be read ({error}); replace it") from None


def read_all(*, root: PathLike | None = None, progress: bool | None = None) -> None:
    """Read one instance of each split, so that the files are there."""
    for split in FILES:
        _published(split, 1, None, root, progress)


def generate(
    count: int,
    *,
    seed: int | Sequence[int],
    nodes: Sequence[int] = (50, 500),
    seconds_per_node: float = SECONDS_PER_NODE,
    jobs: int = 1,
    text: str = "tours",
    progress: bool | None = None,
) -> list[Instance]:
    """Random instances, as the benchmark draws them, with tours by fast-tsp.

    The same seed gives the same points, and with a smaller `count` the first of them; the tours are
    those of :func:`symgnn.data._tours.solve`, in `seconds_per_node` each.
    """
    least, largest = (check_count("nodes", number, 4) for number in nodes)
    if least > largest:
        raise ValueError(f"nodes: {least} to {largest} is not possible; pass the smaller one first")
    generators = np.random.default_rng(seed).spawn(check_count("count", count, 1))
    points = [each.random((each.integers(least, largest + 1), 2)) for each in generators]
    solver = partial(solve, seconds_per_node=seconds_per_node)
    tours = in_parallel(solver, points, jobs=jobs, text=text, progress=progress)
    return [Instance(*each) for each in zip(points, tours, strict=True)]


def _generated(
    root: PathLike | None,
    count: int,
    *,
    seed: Sequence[int],
    nodes: Sequence[int],
    seconds_per_node: float,
    **options: Any,
) -> Arrays:
    """The problems of :func:`generate`, kept on disk."""

    def make() -> Arrays:
        found = generate(
            count, seed=seed, nodes=nodes, seconds_per_node=seconds_per_node, **options
        )
        return tours_packed(found)

    settings = "-".join(map(str, (count, *nodes, seconds_per_node, "seed", *seed)))
    return prepared(cache(root) / "tsp" / f"generated-{settings}.npz", "1", make)


def tours_packed(instances: list[Instance]) -> Arrays:
    """The arrays of instances, joined."""
    if not instances:
        raise ValueError("tsp: the source has no instances")
    return {
        "pos": np.concatenate([each.pos for each in instances]),
        "tour": np.concatenate([each.tour for each in instances]),
        "count": np.array([len(each.tour) for each in instances]),
    }


@dataclass
class BuildTour:
    """Makes the graph of an instance."""

    arrays: Arrays
    distance: bool
    scale: float

    def __post_init__(self) -> None:
        self.starts = starts(self.arrays["count"])

    def __call__(self, row: int) -> Data:
        """The graph of the instance in this row."""
        nodes = slice(self.starts[row], self.starts[row + 1])
        instance = Instance(self.arrays["pos"][nodes], self.arrays["tour"][nodes])
        data = tsp_graph(instance, distance=self.distance, scale=self.scale)
        data.tour = torch.from_numpy(instance.tour)
        return data
