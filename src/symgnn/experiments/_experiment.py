"""An experiment on a dataset: its networks, protocols and what is claimed of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from symgnn.data import Splits
from symgnn.experiments import _paper as paper
from symgnn.experiments._claims import Claim, Goal
from symgnn.experiments._paper_verdicts import measured
from symgnn.experiments._polytope_training import Row
from symgnn.nn import Model, averages, build
from symgnn.train._prepare import sizes_of

#: Blocks that read angles have a layer less, so that all have about as many parameters.
WITH_ANGLES = ("AGN", "CGN", "Combined", "AGN-separable", "CGN-separable")
#: Other readings of what the paper leaves open, by name: options of `symgnn.nn.build`.
READINGS: dict[str, dict[str, Any]] = {
    "": {},
    "torch": {"init": "torch", "averages": None},  # PyTorch's weights, plain sums
    "state": {"graph_state": True},  # a state u of the graph
    "complete": {},  # see DATA_OF_READING
    "pyg": {},
}
#: And options of `symgnn.data.load`.
DATA_OF_READING: dict[str, dict[str, Any]] = {
    "complete": {"complete": True},  # all pairs of atoms
    "pyg": {"features": "pyg"},  # the 11 features of PyG's QM9
}


@dataclass(frozen=True)
class NetworkRow(Row):
    """A row of an experiment on a dataset: a network, by the one reading or by another."""

    reading: str = ""

    def __str__(self) -> str:
        return f"{super().__str__()} {self.reading}".strip()

    @property
    def label(self) -> str:
        """The name of its column in tables."""
        return f"{self.block}, {self.reading}" if self.reading else self.block

    @property
    def shown_key(self) -> dict[str, str]:
        """Its fields, as in results.json, where the block has its label."""
        return {**self.key, "block": self.label}


def rows_of_blocks(blocks: str, reading: str = "") -> tuple[NetworkRow, ...]:
    """Rows of blocks with sums, by a reading."""
    return tuple(NetworkRow(block, "sum", "identity", reading) for block in blocks.split())


#: More points than any protocol has epochs.
EVERY_EPOCH = 1_000_000


@dataclass(frozen=True)
class Protocol:
    """How long, on how much, and how often it is trained."""

    epochs: int
    seeds: int
    batch_size: int
    points: int  # epochs, about, after which it is tested and saved
    limit: tuple[int, int, int] | None = None  # graphs of each split; None for all
    options: Mapping[str, Any] = field(default_factory=dict)  # of `symgnn.data.load`
    first_seed: int = 0  # of the initialisations

    @property
    def initialisations(self) -> range:
        """Their seeds."""
        return range(self.first_seed, self.first_seed + self.seeds)


@dataclass(frozen=True)
class Published:
    """Numbers of another paper, each of a test."""

    where: str  # as the report names it
    means: Mapping[str, float]  # by block
    near: float  # within this, a number agrees
    note: str = ""  # a sentence for the report


@dataclass(frozen=True)
class Peer:
    """A published network's test errors, shown beside ours."""

    name: str
    where: str  # a source
    cells: Mapping[str, float]  # by column


@dataclass(frozen=True)
class Experiment:
    """A dataset, the networks that are trained on it, and what is claimed of them."""

    name: str
    title: str
    paper: str  # its name in the paper's tables
    metric: str  # what is measured, as `symgnn.train._metrics` calls it
    label: str  # and as the paper calls it
    layers: int  # of blocks that read no angles
    network: Mapping[str, Any]  # options of `symgnn.nn.build`
    learning_rate: float
    paper_protocol: Protocol
    cpu_protocol: Protocol
    claims: tuple[Claim, ...]
    rows: tuple[NetworkRow, ...]  # those that run if none are named
    extra_rows: tuple[NetworkRow, ...] = ()  # run if they are named
    goals: tuple[Goal, ...] = ()  # of the protocol "cpu"
    averages: bool = True  # whether networks start well-conditioned, see docs/networks-that-learn
    by_validation: bool = False  # weights with the lowest validation error are tested, not the last
    of_block: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)  # beside `network`
    data: Mapping[str, Any] = field(default_factory=dict)  # options of `symgnn.data.load`
    #: As `data`, beside it.
    data_of_block: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    published: Published | None = None  # None for the paper's own numbers
    peers: tuple[Peer, ...] = ()

    def protocol(self, name: str) -> Protocol:
        """One of "paper" and "cpu"."""
        return self.paper_protocol if name == "paper" else self.cpu_protocol

    @property
    def all_rows(self) -> tuple[NetworkRow, ...]:
        """The rows that can be named."""
        return (*self.rows, *self.extra_rows)

    def column(self, split: str) -> str:
        """A column, named as in the paper's tables."""
        return f"{self.paper} {split} {self.label}"

    def maker(self, block: str, splits: Splits, reading: str = "") -> Callable[[], Model]:
        """Builds networks of a block for these data; averages are measured once, here."""
        options: dict[str, Any] = {
            "task": splits.task.level,
            "outputs": splits.task.outputs,
            "layers": self.layers - (block in WITH_ANGLES),
            "graph_state": False,
            "residual": False,
            **({"init": "variance"} if self.averages else {"init": "torch"}),
            **sizes_of(splits.train[0]),
            **self.network,
            **self.of_block.get(block, {}),
            **READINGS[reading],
        }
        if self.averages and "averages" not in options:
            options["averages"] = averages(splits.train, block)
        return partial(build, block, **options)

    def make(self, block: str, splits: Splits, reading: str = "") -> Model:
        """A network of a block for these data."""
        return self.maker(block, splits, reading)()

    def cell(self, block: str, column: str, values: list[float]) -> dict[str, Any]:
        """A cell of results.json, of one value for each seed, with what was published."""
        if self.published is None:
            return measured(values, paper.cell("benchmarks", block, "", "identity", column))
        test = column == self.column("test")
        theirs = {"mean": self.published.means.get(block) if test else None, "std": None}
        return measured(values, theirs, near=self.published.near)
