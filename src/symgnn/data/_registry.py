"""All datasets by name."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch_geometric.data import Data

from symgnn._argument_checks import check_count, check_positive, suggestion
from symgnn.data import _image_files as image_files
from symgnn.data import _qm9_files as qm9_files
from symgnn.data import _tsp as tsp
from symgnn.data._dataset_store import PathLike, Source, adopt, cache, find
from symgnn.data._nbody import NBody
from symgnn.data._packed_graphs import limits
from symgnn.data._polytope_sets import Polytopes
from symgnn.data._qm9 import load_qm9
from symgnn.data._superpixel_sets import IMAGE_SETS, load_superpixels
from symgnn.data._task import Splits, Task
from symgnn.data._tsp import load_tsp

#: Of the splits of the charged particles.
NBODY_SIZES = (3_000, 2_000, 2_000)


def load_nbody(
    *,
    root: PathLike | None = None,
    limit: int | Sequence[int] | None = None,
    seed: int = 43,
    particles: int = 5,
    dimension: int = 3,
    distances: bool = False,
    velocities: bool = False,
    scale: float = 1.0,
    progress: bool | None = None,
) -> Splits:
    """Charged particles (:class:`symgnn.data.NBody`); `pos`, `vel`, `x` and `y` times `scale`.

    With `distances`, edges also have the squared distance of their ends, as EGNN's own code gives
    it. With `velocities`, `x` has the velocity after the speed, for networks without symmetry. The
    scale is 1, as in published results: the median distance is about 3.7.
    """
    sizes = (min(size, most or size) for size, most in zip(NBODY_SIZES, limits(limit), strict=True))
    train, validation, test = sizes

    def make(split: str) -> NBody:
        return NBody(
            split,
            root=cache(root) / "nbody",
            train=train,
            validation=validation,
            test=test,
            seed=seed,
            particles=particles,
            dimension=dimension,
            transform=partial(_as_asked, distances=distances, velocities=velocities, scale=scale),
            progress=progress,
        )

    task = Task("coordinates", "regression", tuple(f"x{axis}" for axis in range(dimension)))
    about = {
        "source": "simulated",
        "seed": seed,
        "pos": "units of the simulation",
        "features with lengths": ["x", "edge_attr"] if distances else ["x"],
    }
    return Splits(make("train"), make("validation"), make("test"), task, scale, about)


def _as_asked(data: Data, distances: bool, velocities: bool, scale: float) -> Data:
    for name in ("pos", "vel", "x", "y"):
        data[name] = scale * data[name]
    data.pos_scale = float(scale)
    if distances:
        source, target = data.edge_index
        square = (data.pos[source] - data.pos[target]).square().sum(1, keepdim=True)
        data.edge_attr = torch.cat([data.edge_attr, square], 1)
    if velocities:
        data.x = torch.cat([data.x, data.vel], 1)
    return data


def load_polytopes(
    dimension: int,
    *,
    transformation: str = "orthogonal",
    copies: int = 20,
    seed: int = 0,
    node_features: bool | str | None = None,
) -> Splits:
    """The regular polytopes (:class:`symgnn.data.Polytopes`), to be told apart.

    One of each to train on, and `copies` of each, transformed, to validate and test on.
    """
    check_count("copies", copies, 1)
    make = partial(Polytopes, dimension, node_features=node_features)
    train = make()
    validation = make(transformation, copies, seed=2 * seed)
    test = make(transformation, copies, seed=2 * seed + 1)
    task = Task("graph", "classification", ("polytope",), classes=tuple(train.names))
    about = {"source": "made", "seed": seed, "test": transformation, "pos": "circumradius"}
    return Splits(train, validation, test, task, about=about)


@dataclass(frozen=True)
class Dataset:
    """A dataset that can be loaded by name."""

    what: str
    origin: str  # where it is from
    sizes: tuple[int, int, int]  # of the splits, without a limit
    load: Callable[..., Splits]
    sources: tuple[Source, ...] = ()  # what is downloaded for it
    others: tuple[Source, ...] = ()  # what it can be made of instead
    read: Callable[..., object] | None = None  # reads what it is made of, downloading it if needed

    @property
    def files(self) -> tuple[Source, ...]:
        """All files that it can be made of."""
        return self.sources + self.others

    @property
    def options(self) -> list[str]:
        """Names of the options of `load`."""
        return [
            name
            for name, parameter in inspect.signature(self.load).parameters.items()
            if parameter.kind is parameter.KEYWORD_ONLY
        ]


#: The datasets by the names that `load` takes.
DATASETS = {
    "qm9": Dataset(
        "molecules",
        "qm9pack, figshare",
        (95_000, 5_000, 30_831),
        load_qm9,
        (qm9_files.ARCHIVE, qm9_files.EXCLUDED),
        (qm9_files.NPZ,),
        qm9_files.read_molecules,
    ),
    "mnist": Dataset(
        "digits, superpixels",
        "its mirrors",
        IMAGE_SETS["mnist"].sizes,
        partial(load_superpixels, "mnist"),
        (*image_files.MNIST_FILES["train"], *image_files.MNIST_FILES["test"]),
        read=partial(image_files.read_all, "mnist"),
    ),
    "cifar10": Dataset(
        "photos, superpixels",
        "cs.toronto.edu",
        IMAGE_SETS["cifar10"].sizes,
        partial(load_superpixels, "cifar10"),
        (image_files.CIFAR10_ARCHIVE,),
        (*image_files.CIFAR10_BATCHES["train"], *image_files.CIFAR10_BATCHES["test"]),
        partial(image_files.read_all, "cifar10"),
    ),
    "tsp": Dataset(
        "shortest tours",
        "Dropbox",
        tsp.SIZES,
        load_tsp,
        (tsp.ARCHIVE,),
        tuple(tsp.FILES.values()),
        tsp.read_all,
    ),
    "nbody": Dataset("charged particles", "simulated", NBODY_SIZES, load_nbody),
}
for _dimension, _kinds in ((3, 5), (4, 6), (5, 3)):
    DATASETS[f"polytopes-{_dimension}d"] = Dataset(
        f"{_kinds} polytopes",
        "made",
        (_kinds, 20 * _kinds, 20 * _kinds),
        partial(load_polytopes, _dimension),
    )


def dataset(name: str) -> Dataset:
    """The dataset with this name."""
    if name not in DATASETS:
        raise ValueError(f"name: {name!r} is not a dataset; {suggestion(name, DATASETS)}")
    return DATASETS[name]


def load(name: str, **options: Any) -> Splits:
    """Load a dataset by its name, in three splits.

    Args:
        name: A key of `DATASETS`, such as "qm9"; `symgnn data list` shows them.
        options: Most datasets take `source`, a folder or file with the data, or "sample" for a few
            graphs in the package; `limit`, the maximum number of graphs of each split, one
            number or three; `seed`; `root`, the folder for downloaded and prepared files;
            `jobs`, the number of processes that prepare it; `scale`, a factor of all coordinates;
            `progress`, whether to show a progress bar.

    Returns:
        The training, validation and test graphs, and their task.

    Example:
        >>> solids = symgnn.data.load("polytopes-3d", copies=2)
        >>> len(solids.train), len(solids.test), solids.task.outputs
        (5, 10, 5)
    """
    found = dataset(name)
    known = found.options
    for option in options:
        if option not in known:
            hint = suggestion(option, known)
            raise ValueError(f"{option}: is not an option of {name}; {hint}")
    _check_kinds(found, options)
    return found.load(**options)


def _check_kinds(found: Dataset, options: dict[str, Any]) -> None:
    """Booleans must be booleans, and the scale of coordinates a positive number."""
    parameters = inspect.signature(found.load).parameters
    for name, value in options.items():
        if isinstance(parameters[name].default, bool) and not isinstance(value, bool):
            raise ValueError(f"{name}: is {value!r}; give true or false")
    if options.get("scale") is not None:
        check_positive("scale", options["scale"])


def get(
    name: str,
    *,
    root: PathLike | None = None,
    source: PathLike | None = None,
    progress: bool | None = None,
) -> list[str]:
    """Bring what the dataset is made of into the cache; a line for each file on where it is.

    With `source`, a file or folder, all files of the dataset that it has are checked and copied;
    else they are downloaded, unless they are there.
    """
    found = dataset(name)
    if found.read is None:
        return [f"{name}: nothing to get, it is {found.origin}"]
    if source is not None:
        here = [(each, find(each, local=source)) for each in found.files]
        paths = [adopt(each, path, root=root) for each, path in here if path is not None]
        if not paths:
            wanted = ", ".join(str(each) for each in found.files)
            raise ValueError(f"{source}: has no file of {name}; expected one of: {wanted}")
    else:
        found.read(root=root, progress=progress)
        paths = [path for each in found.files if (path := find(each, root=root)) is not None]
    return [str(path) for path in paths] or [f"{name}: in an installed package, {found.origin}"]


def state(name: str, root: PathLike | None = None) -> str:
    """In a word, what of a dataset is here."""
    found = dataset(name)
    if found.read is None:
        return "when needed"
    prepared = any((cache(root) / name).glob("*.npz"))
    if any(find(each, root=root) for each in found.files):
        return "files, graphs" if prepared else "files"
    if name == "qm9" and qm9_files.package() is not None:
        return "package, graphs" if prepared else "package"
    return "graphs" if prepared else "sample only"
