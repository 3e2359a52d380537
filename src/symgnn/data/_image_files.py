"""The images of MNIST and CIFAR-10 as they are published."""

from __future__ import annotations

import gzip
import tarfile
from importlib import resources
from pathlib import Path
from typing import IO, Literal, NamedTuple, cast

import numpy as np

from symgnn.data._dataset_store import PathLike, Source, fetch, find, read_arrays

Part = Literal["train", "test"]


class Images(NamedTuple):
    """Images `[M, H, W]` or `[M, H, W, 3]` in 0 to 255, and their classes `[M]`."""

    pixels: np.ndarray
    labels: np.ndarray


_MIRRORS = (
    "https://ossci-datasets.s3.amazonaws.com/mnist/",
    "https://storage.googleapis.com/cvdf-datasets/mnist/",
)


def _idx(name: str, digest: str, size: int) -> Source:
    urls = tuple(f"{mirror}{name}" for mirror in _MIRRORS)
    return Source("mnist", name, urls, f"md5:{digest}", size, unpacked=True)


MNIST_FILES: dict[Part, tuple[Source, Source]] = {
    "train": (
        _idx("train-images-idx3-ubyte.gz", "6bbc9ace898e44ae57da46a324031adb", 9_912_422),
        _idx("train-labels-idx1-ubyte.gz", "a25bea736e30d166cdddb491f175f624", 28_881),
    ),
    "test": (
        _idx("t10k-images-idx3-ubyte.gz", "2646ac647ad5339dbf082846283269ea", 1_648_877),
        _idx("t10k-labels-idx1-ubyte.gz", "27ae3e4e09519cfbb04c329615203637", 4_542),
    ),
}
CIFAR10_ARCHIVE = Source(
    "cifar10",
    "cifar-10-binary.tar.gz",
    ("https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz",),
    "md5:c32a1d4ab5d03f1284b67883e8d87530",
    170_052_171,
)


def _batch(name: str, digest: str) -> Source:
    return Source("cifar10", f"{name}.bin.gz", (), f"md5:{digest}", unpacked=True)


#: The files in the archive, which may also be there one by one.
CIFAR10_BATCHES: dict[Part, tuple[Source, ...]] = {
    "train": (
        _batch("data_batch_1", "5dd7e06a14cb22eb9f671a540d1b7c25"),
        _batch("data_batch_2", "5ea93a67294ea407fff1d09f752e9692"),
        _batch("data_batch_3", "942cd6a4bcdd0dd3c604fbe906cb4421"),
        _batch("data_batch_4", "ae636b3ba5c66a11e91e8cb52e771fcb"),
        _batch("data_batch_5", "53f37980c15c3d472c316c40844f3f0d"),
    ),
    "test": (_batch("test_batch", "803d5f7f4d78ea53de84dbe85f74fb6d"),),
}


def read_images(
    name: str,
    part: Part,
    *,
    source: PathLike | None = None,
    root: PathLike | None = None,
    progress: bool | None = None,
) -> Images:
    """The images of "mnist" or "cifar10" to train with or to test on.

    `source` is a folder with the published files, or "sample": a few images that come with symgnn.
    Of CIFAR-10 the folder may have the archive, or its batches, packed with gzip or not; of the
    training images it may have the first batches only.
    """
    if source == "sample":
        file = resources.files("symgnn.data") / "samples" / f"{name}.npz"
        with resources.as_file(file) as path:
            arrays = read_arrays(path)
        return Images(arrays[f"{part}_pixels"], arrays[f"{part}_labels"].astype(np.int64))
    if name == "mnist":
        try:
            pixels, labels = (
                _read_idx(fetch(each, root=root, local=source, progress=progress))
                for each in MNIST_FILES[part]
            )
        except OSError as error:
            names = [each.name for files in MNIST_FILES.values() for each in files]
            raise OSError(f"{error}. MNIST is these files: {', '.join(names)}") from None
        return Images(pixels, labels.astype(np.int64))
    return _cifar10(part, source, root, progress)


def read_all(name: str, *, root: PathLike | None = None, progress: bool | None = None) -> None:
    """Read all images, so that they are there."""
    parts: tuple[Part, Part] = ("train", "test")
    for part in parts:
        read_images(name, part, root=root, progress=progress)


def _read_idx(path: Path) -> np.ndarray:
    """The array in an idx file: 0, 0, type, number of axes, then the length of each axis."""
    with _opened(path) as file:
        content = file.read()
    axes = content[3]
    shape = np.frombuffer(content, ">u4", axes, 4).astype(int)
    return np.frombuffer(content, np.uint8, offset=4 + 4 * axes).reshape(shape)


def _opened(path: Path) -> IO[bytes]:
    return cast(IO[bytes], gzip.open(path)) if path.suffix == ".gz" else path.open("rb")


def _cifar10(
    part: Part, source: PathLike | None, root: PathLike | None, progress: bool | None
) -> Images:
    batches = CIFAR10_BATCHES[part]
    if find(batches[0], root=root, local=source) is not None:
        contents = []
        for batch in batches:
            if find(batch, root=root, local=source) is None:
                break
            with _opened(fetch(batch, root=root, local=source)) as file:
                contents.append(file.read())
    else:
        archive = fetch(CIFAR10_ARCHIVE, root=root, local=source, progress=progress)
        names = [f"cifar-10-batches-bin/{batch.names[1]}" for batch in batches]
        with tarfile.open(archive) as file:
            contents = [cast(IO[bytes], file.extractfile(name)).read() for name in names]
    table = np.frombuffer(b"".join(contents), np.uint8).reshape(-1, 1 + 3 * 32 * 32)
    pixels = table[:, 1:].reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1)
    return Images(pixels, table[:, 0].astype(np.int64))
