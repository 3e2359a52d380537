"""MNIST and CIFAR-10 as graphs of superpixels, in the splits of the benchmark that the paper uses.

Of the training images the first 5,000 validate (Dwivedi et al. 2020).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache as remember
from typing import Any

import numpy as np
import torch
from torch_geometric.data import Data

from symgnn._argument_checks import check_count
from symgnn.data._dataset_store import Arrays, PathLike, cache, prepared
from symgnn.data._image_files import Images, Part, read_images
from symgnn.data._packed_graphs import PackedGraphs, limits, starts
from symgnn.data._parallel import chunks, in_parallel
from symgnn.data._superpixels import NEIGHBOURS, describe, graph, neighbours, superpixels
from symgnn.data._task import Splits, Task

_OBJECTS = "airplane automobile bird cat deer dog frog horse ship truck"


@dataclass(frozen=True)
class ImageSet:
    """How the benchmark makes graphs of a set of images."""

    name: str
    classes: tuple[str, ...]
    sizes: tuple[int, int, int]  # of the splits
    segments: int
    scale: float  # one over the median length of an edge, in sides of the image
    mean: tuple[float, ...]  # of the features of nodes, about, on some of the training images
    deviation: tuple[float, ...]


IMAGE_SETS = {
    "mnist": ImageSet(
        "mnist",
        tuple("0123456789"),
        (55_000, 5_000, 10_000),
        75,
        6.6,
        (0.12,),
        (0.28,),
    ),
    "cifar10": ImageSet(
        "cifar10",
        tuple(_OBJECTS.split()),
        (45_000, 5_000, 10_000),
        150,
        8.4,
        (0.47, 0.46, 0.42),
        (0.24, 0.24, 0.26),
    ),
}


def load_superpixels(
    name: str,
    *,
    source: PathLike | None = None,
    root: PathLike | None = None,
    weights: bool = False,
    standardise: bool = False,
    validation: int | None = None,
    limit: int | Sequence[int] | None = None,
    scale: float | None = None,
    jobs: int = 1,
    progress: bool | None = None,
) -> Splits:
    """Superpixel graphs of "mnist" or "cifar10" in three splits.

    Each graph is that of :func:`symgnn.data.superpixel_graph`, its `pos` times `scale`,
    with `y` `[1]`, the class, and `number`, that of the image; those to test on are counted after
    those to train with. The paper names no features of edges; `weights` adds those of the
    benchmark, which depend on distances. With `standardise`, `x` less its mean, over its deviation,
    and `pos` from the middle of the image: networks learn sooner then. `limit` is the largest
    number of graphs of each split, one number or three. Of the training images the first
    `validation` are held out, 5,000 as in the benchmark if it is None. `source` is as for
    :func:`symgnn.data._image_files.read_images`.
    """
    images = IMAGE_SETS[name]
    scale = scale or images.scale

    @remember
    def read(part: Part) -> Images:
        return read_images(name, part, source=source, root=root, progress=progress)

    sizes = images.sizes
    if validation is not None:
        check_count("validation", validation, 0)
        sizes = (sizes[0] + sizes[1] - validation, validation, sizes[2])
        if sizes[0] < 1:
            raise ValueError(f"validation: {validation} leaves no training graphs; hold out fewer")
    if source == "sample":
        count = len(read("train").labels)
        held_out = -(-count * sizes[1] // (sizes[0] + sizes[1]))
        sizes = (count - held_out, held_out, len(read("test").labels))

    def graphs(split: str, part: Part, first: int, size: int, most: int | None) -> PackedGraphs:
        """The graphs of a split, which has `size` images from the given one on."""
        count = min(size, most or size)

        def make() -> Arrays:
            found = read(part)
            if len(found.labels) < first + count:
                raise ValueError(_too_few(name, len(found.labels), first, count))
            chosen = Images(*(array[first : first + count] for array in found))
            return _segmented(chosen, images.segments, jobs, f"{name}, {split}", progress)

        if not count:
            arrays = {"count": np.zeros(0, dtype=np.int32)}
        elif source == "sample":
            arrays = make()
        else:
            # splits that do not begin where the benchmark's do have names of their own
            kept = split if validation is None or part == "test" else f"{split}-from-{first}"
            folder = cache(root) / name
            whole = folder / f"superpixels-{kept}-{size}.npz"
            path = whole if whole.exists() else folder / f"superpixels-{kept}-{count}.npz"
            arrays = prepared(path, "1", make)
        number = first + (sizes[0] + sizes[1] if part == "test" else 0)
        build = BuildSuperpixels(arrays, number, weights, scale, images if standardise else None)
        return PackedGraphs(build, np.arange(count))

    most = limits(limit)
    about: dict[str, Any] = {
        "source": "the sample of symgnn" if source == "sample" else str(source or "published"),
        "segments": images.segments,
        "neighbours": NEIGHBOURS,
        "pos": "row and column, in sides of the image",
    }
    if standardise:
        about |= {"pos": f"{about['pos']}, from its middle"}
        about |= {"feature mean": [*images.mean], "feature deviation": [*images.deviation]}
    task = Task("graph", "classification", ("class",), classes=images.classes)
    return Splits(
        graphs("train", "train", sizes[1], sizes[0], most[0]),
        graphs("validation", "train", 0, sizes[1], most[1]),
        graphs("test", "test", 0, sizes[2], most[2]),
        task,
        scale,
        about,
    )


def _too_few(name: str, found: int, first: int, count: int) -> str:
    return (
        f"{name}: the source has only the first {found} training images, of which {first} validate "
        f"and {count} are asked for; add the other batches, or pass a limit of at most "
        f"{max(found - first, 0)}"
    )


def _segmented(
    images: Images, segments: int, jobs: int, text: str, progress: bool | None
) -> Arrays:
    """The nodes of all graphs, one after the other: `x`, `pos`, `near`; `count` and `label`."""
    tasks = [(images.pixels[part], segments) for part in chunks(len(images.labels), 100)]
    text = f"superpixels of {len(images.labels)} images, {text}"
    found = in_parallel(_segmented_part, tasks, jobs=jobs, text=text, progress=progress)
    arrays = {name: np.concatenate([part[name] for part in found]) for name in found[0]}
    return arrays | {"label": images.labels}


def _segmented_part(task: tuple[np.ndarray, int]) -> Arrays:
    """One part of :func:`_segmented`."""
    nodes = []
    for image in task[0]:
        pixels = (image / 255.0).astype(np.float32).reshape(*image.shape[:2], -1)
        x, pos = describe(pixels, superpixels(image, task[1]))
        nodes.append((x, pos, neighbours(pos)[0].astype(np.uint8)))
    x, pos, near = (np.concatenate(parts) for parts in zip(*nodes, strict=True))
    count = np.array([len(each[0]) for each in nodes], dtype=np.int32)
    return {"x": x, "pos": pos, "near": near, "count": count}


@dataclass
class BuildSuperpixels:
    """Makes the graph of an image."""

    arrays: Arrays
    first: int  # the number of the first image
    weights: bool
    scale: float
    by: ImageSet | None = None  # whose mean and deviation standardise

    def __post_init__(self) -> None:
        self.starts = starts(self.arrays["count"])

    def __call__(self, row: int) -> Data:
        """The graph of the image in this row."""
        nodes = slice(self.starts[row], self.starts[row + 1])
        x, pos, near = (self.arrays[name][nodes] for name in ("x", "pos", "near"))
        weight = neighbours(pos)[1] if self.weights else None
        if self.by is not None:
            mean, deviation = np.array([self.by.mean, self.by.deviation], np.float32)
            x, pos = (x - mean) / deviation, pos - np.float32(0.5)
        data = graph(x, pos * np.float32(self.scale), near, weight)
        data.y = torch.from_numpy(self.arrays["label"][row : row + 1])
        data.number = self.first + row
        data.pos_scale = float(self.scale)
        return data
