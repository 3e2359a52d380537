"""An experiment on a dataset: its networks, protocols and what is claimed of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from symgnn.data import Splits
from symgnn.experiments import _paper as paper
from symgnn.experiments._claims import Claim
from symgnn.experiments._paper_verdicts import measured
from symgnn.experiments._polytope_training import Row
from symgnn.nn import Model, build
from symgnn.train._prepare import sizes_of

#: Blocks that read angles have a layer less, so that all have about as many parameters.
WITH_ANGLES = ("AGN", "CGN", "Combined")
ROWS = tuple(Row(block, "sum") for block in ("AGN", "DGN", "GN", "CGN", "Combined"))


@dataclass(frozen=True)
class Protocol:
    """How long, on how much, and how often it is trained."""

    epochs: int
    seeds: int
    batch_size: int
    points: int  # epochs, about, after which it is tested
    limit: tuple[int, int, int] | None = None  # graphs of each split; None for all
    options: Mapping[str, Any] = field(default_factory=dict)  # of `symgnn.data.load`


@dataclass(frozen=True)
class Published:
    """Numbers of another paper, each of a test."""

    where: str  # as the report names it
    means: Mapping[str, float]  # by block
    near: float  # within this, a number agrees
    note: str = ""  # a sentence for the report


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
    quick: Protocol
    claims: tuple[Claim, ...]
    rows: tuple[Row, ...] = ROWS
    by_validation: bool = False  # weights with the lowest validation error are tested, not the last
    of_block: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)  # beside `network`
    data: Mapping[str, Any] = field(default_factory=dict)  # options of `symgnn.data.load`
    #: As `data`, beside it.
    data_of_block: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    published: Published | None = None  # None for the paper's own numbers

    def protocol(self, name: str) -> Protocol:
        """One of "paper" and "quick"."""
        return self.paper_protocol if name == "paper" else self.quick

    def column(self, split: str) -> str:
        """A column, named as in the paper's tables."""
        return f"{self.paper} {split} {self.label}"

    def make(self, block: str, splits: Splits) -> Model:
        """The network of a row, for these data."""
        options: dict[str, Any] = {
            "task": splits.task.level,
            "outputs": splits.task.outputs,
            "layers": self.layers - (block in WITH_ANGLES),
            "graph_state": False,
            "init": "torch",
            "residual": False,
            **sizes_of(splits.train[0]),
            **self.network,
            **self.of_block.get(block, {}),
        }
        return build(block, **options)

    def cell(self, block: str, column: str, values: list[float]) -> dict[str, Any]:
        """A cell of results.json, of one value for each seed, with what was published."""
        if self.published is None:
            return measured(values, paper.cell("benchmarks", block, "", "identity", column))
        test = column == self.column("test")
        theirs = {"mean": self.published.means.get(block) if test else None, "std": None}
        return measured(values, theirs, near=self.published.near)
