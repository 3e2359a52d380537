"""What a search found: verdicts, advice, a network and a page."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from torch_geometric.data import Data

from symgnn.data import Task
from symgnn.discovery._advice import advice
from symgnn.discovery._discovery_page import page
from symgnn.discovery._kind_verdicts import KindVerdict
from symgnn.discovery._pose import PoseFinding
from symgnn.discovery._report_text import report_text
from symgnn.geometry import Symmetry
from symgnn.nn import Model, averages, build
from symgnn.store import finite, write_whole
from symgnn.train._prepare import sizes_of


class ExpectedError(NamedTuple):
    """What the rungs with the symmetry of the advised network reach on held-out graphs."""

    share: float  # root mean square error over the deviation of the targets
    value: float | None  # in the units of the target, where there is one


@dataclass
class DiscoveryReport:
    """What :func:`symgnn.discover` found.

    Example:
        >>> import symgnn
        >>> solids = symgnn.data.load("polytopes-3d", copies=4)
        >>> report = symgnn.discover(solids, minutes=1, progress=False)
        >>> report.build().symmetry == report.network
        True
    """

    graphs: int
    dimension: int
    task: Task
    verdicts: dict[str, KindVerdict]
    absent: dict[str, float]  # kinds that too few graphs admit, with the share that does
    ladder: dict[str, float]  # root mean square error of each rung over that of the mean
    symmetries: dict[str, str]  # of the rungs
    best: str  # the rung with the smallest error
    signal: tuple[float, float]  # held-out R^2 of it, and the p-value that there is no signal
    pose: dict[str, PoseFinding]
    model: dict[str, Any]  # the section `model` of the advised network
    network: Symmetry | None  # its symmetry
    expected: ExpectedError | None  # of it, from as many graphs
    warnings: list[str]
    missed: list[str]  # steps for which there was no time
    untried: list[str]  # kinds that were not tried since graphs are large
    seed: int
    example: Data = field(repr=False)
    config: dict[str, Any] = field(default_factory=dict)  # for `symgnn train`
    seconds: float = 0.0

    @property
    def kept(self) -> list[str]:
        """The kinds that the targets keep."""
        return self._with("kept")

    @property
    def broken(self) -> list[str]:
        """The kinds that matter."""
        return self._with("broken")

    @property
    def undecided(self) -> list[str]:
        """The kinds that the data do not decide."""
        return self._with("undecided")

    def _with(self, verdict: str) -> list[str]:
        return [kind for kind, found in self.verdicts.items() if found.verdict == verdict]

    @property
    def advice(self) -> str:
        """What a scientist would say, in one paragraph."""
        return advice(self)

    def build(self, graphs: Sequence[Data] | None = None, **options: Any) -> Model:
        """The advised network.

        Args:
            graphs: Training graphs, whose averages the network is standardised by; none if not
                given.
            options: Of :func:`symgnn.nn.build`, such as `hidden`, over those of `model`.

        Returns:
            A network with random weights.
        """
        if not self.model:
            raise ValueError("build: no network for this task is blind to nothing that matters")
        sizes = sizes_of(self.example)
        if "z" in self.example and not sizes.get("node_features"):
            sizes["node_types"] = int(max(118, int(self.example.z.max()))) + 1
        known: dict[str, Any] = {**sizes, "task": self.task.level, "outputs": self.task.outputs}
        known.update({key: value for key, value in self.model.items() if key != "block"})
        known.update(options)
        model = build(self.model["block"], **known)
        if graphs is None:
            return model
        return build(self.model["block"], averages=averages(graphs, model.network), **known)

    def to_dict(self) -> dict[str, Any]:
        """Everything in numbers, ready for JSON."""
        return finite(
            {
                "graphs": self.graphs,
                "dimension": self.dimension,
                "task": asdict(self.task),
                "verdicts": {kind: asdict(found) for kind, found in self.verdicts.items()},
                "absent": self.absent,
                "untried": self.untried,
                "ladder": self.ladder,
                "symmetries": self.symmetries,
                "best": self.best,
                "signal": {"explained": self.signal[0], "p_value": self.signal[1]},
                "pose": {name: asdict(found) for name, found in self.pose.items()},
                "advice": self.advice,
                "config": self.config,
                "network": None if self.network is None else str(self.network),
                "expected": None if self.expected is None else self.expected._asdict(),
                "warnings": self.warnings,
                "missed": self.missed,
                "seed": self.seed,
            }
        )

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the page (`.html`) or everything in numbers (`.json`); give the path."""
        path = Path(path)
        if path.suffix == ".json":
            text = json.dumps(self.to_dict(), indent=1, allow_nan=False) + "\n"
        elif path.suffix in (".html", ".htm"):
            text = page(self)
        else:
            raise ValueError(f"path: {path.name} is neither .html nor .json; choose one of them")
        return write_whole(path, text.encode("utf-8"))

    def __str__(self) -> str:
        return report_text(self)
