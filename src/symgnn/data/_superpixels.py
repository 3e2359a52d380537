"""Images as graphs of superpixels, by the recipe of the benchmark that the paper uses.

Knyazev et al. (2019), whose graphs Dwivedi et al. (2020) took, ask SLIC of scikit-image 0.16 for
more superpixels than wanted and for one less as long as there are too many. Later versions of
scikit-image bring each image to the range 0 to 1 and take the size of the smallest superpixel
from the number of seeds, not from the number that was asked for. Both are undone here by what is
passed to `slic`, so that each image has the number of nodes that it has in the benchmark.

Deviations: nodes are in the order of the superpixels, not a random one. Edges go to each node from
the 8 that are most similar to it; the benchmark has them from each node, and takes 8 of the 9 most
similar, whichever numpy happens to leave in front.
"""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np
import torch
from scipy.spatial.distance import cdist
from torch import Tensor
from torch_geometric.data import Data

from symgnn._argument_checks import check_count

NEIGHBOURS = 8
#: By the number of channels: compactness, and superpixels asked for beyond those wanted.
_COMPACTNESS = {1: 0.25, 3: 10.0}
_MORE = {1: 20, 3: 50}
# slic rounds down a product that is meant to be an integer at times
_ROUNDING = 1.0 + 1e-9


def superpixel_graph(image: np.ndarray | Tensor, segments: int, *, weights: bool = False) -> Data:
    """The graph of an image `[H, W]` or `[H, W, 3]`, with at most `segments` nodes.

    Values are 0 to 255 for integers, else 0 to 1. The graph has

    - `x` `[N, channels]`: the mean intensity of each superpixel, 0 to 1
    - `pos` `[N, 2]`: its centre, row and column, over the larger side of the image
    - `edge_index` `[2, 8 N]`: to each node from the 8 most similar by position
    - with `weights`, `edge_attr` `[8 N, 1]`: that similarity, exp(-d^2 / sigma^2), where sigma is
      the mean distance of a node from its 8 nearest, averaged over both ends

    The benchmark uses 75 segments for MNIST and 150 for CIFAR-10.

    Args:
        image: Integers from 0 to 255, or other numbers from 0 to 1.
        segments: The maximum number of nodes.
        weights: Whether the edges have their similarity as `edge_attr`.

    Returns:
        A graph.

    Shapes:
        image `[H, W]` or `[H, W, 3]`.

    Example:
        >>> image = torch.arange(400.0).view(20, 20) / 400
        >>> graph = symgnn.data.superpixel_graph(image, segments=16)
        >>> graph.x.shape[1], graph.pos.shape[1]
        (1, 2)
    """
    pixels = _checked(image)
    x, pos = describe(pixels, superpixels(pixels, segments))
    near, weight = neighbours(pos)
    return graph(x, pos, near, weight if weights else None)


def graph(
    x: np.ndarray, pos: np.ndarray, near: np.ndarray, weight: np.ndarray | None = None
) -> Data:
    """The graph of nodes with features, positions, and `near` `[N, k]`: where their edges begin."""
    count, k = near.shape
    target = np.repeat(np.arange(count), k)
    edge_index = np.stack([near.reshape(-1).astype(np.int64), target])
    data = Data(
        x=torch.from_numpy(x), pos=torch.from_numpy(pos), edge_index=torch.from_numpy(edge_index)
    )
    if weight is not None:
        data.edge_attr = torch.from_numpy(weight.reshape(-1, 1).astype(np.float32))
    return data


def superpixels(image: np.ndarray | Tensor, segments: int) -> np.ndarray:
    """The number of the superpixel of each pixel, `[H, W]`, from 0, at most `segments` of them."""
    slic, rgb2lab = _skimage()
    segments = check_count("segments", segments, 1)
    pixels = _checked(image)
    height, width, channels = pixels.shape
    values = (rgb2lab(pixels) if channels == 3 else pixels).astype(np.float64)
    spread = float(np.ptp(values)) or 1.0
    found: dict[tuple[int, int, int], np.ndarray] = {}
    for asked in range(segments + _MORE[channels], 0, -1):
        seeds = _seeds(height, width, asked)
        size, actual = height * width / asked, height * width / seeds
        key = seeds, int(0.5 * size), int(3 * size)
        if key not in found:
            found[key] = slic(
                values,
                n_segments=asked,
                compactness=_COMPACTNESS[channels] / spread,
                min_size_factor=key[1] / actual * _ROUNDING,
                max_size_factor=key[2] / actual * _ROUNDING,
                convert2lab=False,
                start_label=0,
            )
        if found[key].max() < segments:
            return found[key]
    raise ValueError(f"segments: is {segments}, too few for this image; pass more")


def describe(pixels: np.ndarray, labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean values `[N, C]` and centres `[N, 2]` of the superpixels of an image `[H, W, C]`."""
    flat = labels.reshape(-1)
    size = np.bincount(flat).astype(np.float64)[:, None]
    rows, columns = np.indices(labels.shape).reshape(2, -1)
    values = [*pixels.reshape(len(flat), -1).T, rows, columns]
    sums = np.stack([np.bincount(flat, value) for value in values], axis=1) / size
    channels = pixels.shape[2]
    return (
        sums[:, :channels].astype(np.float32),
        (sums[:, channels:] / max(labels.shape)).astype(np.float32),
    )


def neighbours(pos: np.ndarray, k: int = NEIGHBOURS) -> tuple[np.ndarray, np.ndarray]:
    """The k most similar nodes of each, `[N, k]`, and how similar they are, `[N, k]`.

    Of several that are equally similar, those with the smaller number. Fewer than k where there
    are fewer nodes.
    """
    k = min(k, len(pos) - 1)
    distance = cdist(pos, pos)
    sigma = np.partition(distance, k, axis=1)[:, : k + 1].sum(axis=1, keepdims=True) / max(k, 1)
    similar = np.exp(-((distance / (sigma + 1e-8)) ** 2))
    similar = 0.5 * (similar + similar.T)
    np.fill_diagonal(similar, -1.0)
    near = np.argsort(-similar.round(6), axis=1, kind="stable")[:, :k]
    return near, np.take_along_axis(similar, near, axis=1)


def _checked(image: np.ndarray | Tensor) -> np.ndarray:
    """Float32 values from 0 to 1, `[H, W, C]`."""
    pixels = image.numpy() if isinstance(image, Tensor) else np.asarray(image)
    if pixels.ndim == 2:
        pixels = pixels[:, :, None]
    if pixels.ndim != 3 or pixels.shape[2] not in _COMPACTNESS or 0 in pixels.shape:
        raise ValueError(f"image: has shape {np.shape(image)}; pass [H, W] or [H, W, 3]")
    scaled = (pixels / (1.0 if pixels.dtype.kind == "f" else 255.0)).astype(np.float32)
    if not (scaled.min() >= 0.0 and scaled.max() <= 1.0):
        raise ValueError("image: values are not in 0 to 255 (integers) or 0 to 1; rescale them")
    return scaled


@functools.lru_cache(maxsize=1024)
def _seeds(height: int, width: int, asked: int) -> int:
    """From how many seeds `slic` starts if it is asked for so many superpixels."""
    from skimage.util import regular_grid

    shape = (1, height, width)
    steps = zip(regular_grid(shape, asked), shape, strict=True)
    return math.prod(len(range(*step.indices(size))) for step, size in steps)


def _skimage() -> tuple[Any, Any]:
    """`slic` and `rgb2lab`."""
    try:
        from skimage.color import rgb2lab
        from skimage.segmentation import slic
    except ImportError:
        raise ValueError("scikit-image is not installed; pip install symgnn[images]") from None
    return slic, rgb2lab
