"""The paper's networks on polytopes: how they are built, trained, and kept once trained."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional
from torch_geometric.data import Data

import symgnn
from symgnn.data import Polytopes, Task
from symgnn.experiments._train_row import TrainedRow, train_row
from symgnn.nn import Model, NeighbourSum, build
from symgnn.train import Ensemble, Training
from symgnn.train._checkpoint import read_checkpoint, write_checkpoint
from symgnn.train._loader import GraphDataset
from symgnn.train._metrics import Judge, Scaler

#: Graph layers; blocks with angles, and all others, have two.
LAYERS = {"GN": 3, "DGN": 3, "SDGN": 3}
#: What training depends on: kept networks of other sources are trained again.
_SOURCES = (
    "geometry",
    "graphs",
    "nn",
    "train",
    "data/_polytopes.py",
    "experiments/_polytope_training.py",
    "experiments/_train_row.py",
)


@dataclass(frozen=True)
class Row:
    """One row of a table: a network."""

    block: str
    aggregation: str
    coordinate_map: str = "identity"

    def __str__(self) -> str:
        return f"{self.block} {self.aggregation} {self.coordinate_map}"

    @property
    def key(self) -> dict[str, str]:
        """Its fields, as in results.json."""
        return asdict(self)


def network(
    row: Row,
    dimension: int,
    classes: int,
    node_features: int = 0,
    scaling: float | None = None,
) -> Model:
    """The paper's network: embeddings of 32, MLPs with one hidden layer of 64, swish.

    Args:
        row: The block, its aggregation and its coordinate map.
        dimension: The number of coordinates.
        classes: The number of outputs.
        node_features: The width of `data.x`.
        scaling: The length to which SDGN scales the longest edge, the paper's alpha; 1 if None.
    """
    # the paper's map, without the bound on growth
    psi = NeighbourSum(max_growth=None) if row.coordinate_map == "neighbour-sum" else "identity"
    return build(
        row.block,
        dimension=dimension,
        node_features=node_features,
        hidden=32,
        mlp_hidden=64,
        layers=LAYERS.get(row.block, 2),
        aggregation=row.aggregation,
        coordinate_map=psi,
        # with a state of the graph, GN with sums can count nodes
        graph_state=False,
        outputs=classes,
        init="torch",  # as the paper's networks started, which its numbers depend on
        scaling=scaling,
    )


def loss(outputs: Tensor, data: Data) -> Tensor:
    """Cross-entropy."""
    return functional.cross_entropy(outputs, data.y)


def train_network(
    row: Row,
    train: Polytopes,
    dimension: int,
    seeds: int,
    epochs: int,
    on_epoch: Callable[..., Any] | None = None,
    *,
    scaling: float | None = None,
    kept: Path | None = None,
) -> TrainedRow:
    """Train the network of a row on all polytopes at once, in the initialisations 0, 1, ...

    With a file `kept`, a network that is in it, trained with the same settings by the same code, is
    taken from it; otherwise it is written there.
    """
    names = tuple(train.names)
    features = train.num_node_features
    make = partial(network, row, dimension, len(names), features, scaling)
    stamp = {
        **row.key,
        "dimension": dimension,
        "seeds": seeds,
        "epochs": epochs,
        "features": features,
        "scaling": scaling,
        "torch": str(torch.__version__),
        "sources": _sources(),
        "graphs": _digest(train),
    }
    found = None if kept is None else _kept(kept, stamp, make, seeds)
    if found is not None:
        for epoch in range(epochs if on_epoch is not None else 0):
            assert on_epoch is not None
            on_epoch(epoch, found.losses[epoch])
        return found
    unit = torch.ones(1, dtype=torch.float64)
    task = Task("graph", "classification", ("polytope",), classes=names)
    settings = Training(
        epochs=epochs,
        batch_size=len(train),
        seed=0,
        seeds=seeds,
        weights="last",
        validate_every=epochs,
    )
    graphs = GraphDataset(train, angles=make().needs_angles)
    trained = train_row(
        make, graphs, Judge(task, Scaler(0 * unit, unit)), settings, on_epoch=on_epoch
    )
    if kept is not None:
        content = {"stamp": stamp, "members": trained.ensemble.states(), "losses": trained.losses}
        write_checkpoint(kept, content)
    return trained


def _kept(
    path: Path, stamp: dict[str, Any], make: Callable[[], Model], seeds: int
) -> TrainedRow | None:
    """The trained network of a file; None where there is none, or one of other settings."""
    try:
        content = read_checkpoint(path)
    except ValueError:  # not there, or damaged
        return None
    if content["stamp"] != stamp:
        return None
    ensemble = Ensemble(make, range(seeds))
    ensemble.load_states(content["members"])
    losses = content["losses"]
    epochs = torch.full((seeds,), len(losses))
    return TrainedRow(ensemble.eval(), losses, epochs, [])


@cache
def _sources() -> str:
    """A name of the code that networks are trained with; it changes with any of its modules."""
    here = Path(symgnn.__file__).parent
    sums = hashlib.sha256()
    for part in _SOURCES:
        for path in sorted((here / part).rglob("*.py")) or [here / part]:
            sums.update(str(path.relative_to(here)).encode() + b"\0" + path.read_bytes() + b"\0")
    return sums.hexdigest()[:16]


def _digest(graphs: Polytopes) -> str:
    """A name of the training graphs."""
    sums = hashlib.sha256()
    for graph in graphs:
        for name in ("pos", "x", "edge_index", "y"):
            value = graph.get(name)
            sums.update(b"-" if value is None else value.contiguous().numpy().tobytes())
    return sums.hexdigest()[:16]
