"""A run that was trained, as a model: to predict, to measure, to use in Python."""

from __future__ import annotations

import copy
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.utils.data import Dataset
from torch_geometric.data import Batch, Data

import symgnn.data
from symgnn._argument_checks import unknown_name
from symgnn.data._rescaling import AtScale, at_scale
from symgnn.data._task import Splits, Task
from symgnn.data.files._file_structure import require
from symgnn.nn import Model, Potential
from symgnn.store import write_json, write_whole
from symgnn.train import _run_data as run_data
from symgnn.train._baseline import Baseline
from symgnn.train._calculator import calculator_of
from symgnn.train._checkpoint import fitting
from symgnn.train._checkpointing import Group
from symgnn.train._config import Config
from symgnn.train._data_checks import check_answers, check_same, dropped
from symgnn.train._graph_form import check_form
from symgnn.train._known_elements import check_known, warn_of_types
from symgnn.train._loader import READ, Batches, GraphDataset, loader
from symgnn.train._metrics import Metrics, Scaler, as_rows
from symgnn.train._missing import may_miss
from symgnn.train._outcomes import Outcomes
from symgnn.train._potential_export import export_potential
from symgnn.train._potential_rows import PotentialRows
from symgnn.train._prepare import Facts, make_model
from symgnn.train._program_export import export_model
from symgnn.train._run_record import write_record
from symgnn.train._to_graphs import to_graphs

SPLITS = ("train", "validation", "test")


class Prediction(NamedTuple):
    """The mean over the seeds and their deviation, `[rows, outputs]`, in the targets' units.

    Rows are graphs, nodes or edges; outputs are targets, coordinates, the components of vectors, or
    the probability of each class. With one seed the deviation is None.
    """

    value: Tensor
    deviation: Tensor | None


class Run(nn.Module):
    """A trained run: one model per seed, with its best weights, in eval mode.

    Coordinates are rescaled to the scale of the training, by the `pos_scale` of each graph; a
    graph without it is assumed to have the coordinates of its source. Predictions have the units
    of the targets. :func:`symgnn.fit` and :func:`symgnn.load` return a run.

    Attributes:
        config: The configuration.
        record: The content of `run.json`: task, scale, sizes, baseline, versions, ...
        task: What is predicted.
        models: The network of each seed.
        metrics: The metrics of each split, `{split: {name: {"mean", "deviation", ...}}}`.
        directory: The directory of the run; None if it is only in memory.

    Example:
        >>> solids = symgnn.data.load("polytopes-3d", copies=2)
        >>> run = symgnn.fit(solids, "gn", epochs=1, seeds=2, progress=False)
        >>> value, deviation = run.predict(solids.test[0])
        >>> value.shape, deviation.shape
        (torch.Size([1, 5]), torch.Size([1, 5]))
    """

    def __init__(
        self,
        config: Config,
        record: dict[str, Any],
        groups: Sequence[Group],
        *,
        splits: Splits | None = None,
        make: Callable[[], nn.Module] | None = None,
        directory: Path | None = None,
    ) -> None:
        super().__init__()
        self.config, self.record, self.directory = config, record, directory
        self.groups, self._splits = list(groups), splits
        self.metrics: dict[str, Any] = {}
        self.outcomes: dict[str, Any] = {}
        self.task = Task.of(record["task"])
        self.facts = Facts.from_dict(record)
        self.scale = float(record["scale"])
        made = record.get("baseline")  # runs of earlier versions have none
        self.baseline = None if made is None else Baseline.from_dict(made)
        make = make or partial(make_model, config, self.task, self.facts.told)
        models = []
        for group in self.groups:
            for state in group.best["members"]:
                model = make()
                with fitting(group.path or Path(group.name)):
                    model.load_state_dict(state)
                models.append(model)
        self.models = nn.ModuleList(models)
        self.eval()
        self.requires_grad_(False)

    @property
    def model(self) -> nn.Module:
        """The network of the first seed; reads scaled coordinates, returns standardised targets."""
        return self.models[0]

    @property
    def potentials(self) -> list[Potential]:
        """The potential of each seed, if the run was trained on energies."""
        found = [model.potential for model in self.models if isinstance(model, PotentialRows)]
        if not found:
            raise ValueError(
                f"run: was trained on {self.task.level} targets; train it on energies, such as "
                "symgnn.fit(atoms, 'combined', targets=['energy', 'forces'])"
            )
        return found

    def calculator(self, *, skin: float = 0.5, precision: str | None = None) -> Any:
        """The potentials of the run as a calculator of ASE: `atoms.calc = run.calculator()`.

        Args:
            skin: Neighbours are listed so much farther than the cutoff, in Angstrom, and searched
                again when an atom has moved by half of it.
            precision: "32" or "64"; that of the training if not given.

        Returns:
            A calculator with energy, forces and stress, the mean over the seeds; with several,
            `calc.results` has `energy_deviation` and `forces_deviation` too.
        """
        require("ase", "atoms", "calculator")
        potentials, (cutoff, elements) = self.potentials, self._joining()
        return calculator_of(
            potentials, cutoff=cutoff, elements=elements, skin=skin, precision=precision
        )

    def export(
        self, path: str | os.PathLike[str], *, seed: int | None = None, aoti: bool = False
    ) -> Path:
        """Export the network of one seed as a program without symgnn, see `symgnn.nn.export`.

        Args:
            path: The file, such as "model.pt2".
            seed: The seed whose network is exported; the first if not given.
            aoti: Whether the program is compiled by AOTInductor, which needs a C++ compiler.

        Returns:
            The path. Load it with `torch.export.load`, a compiled one with
            `torch._inductor.aoti_load_package`. The program takes graphs as the run reads them and
            returns the values of `predict`; for a potential, energies in eV (forces are their
            negative derivatives), and if compiled also forces.
        """
        seeds = list(self.record.get("seeds", range(len(self.models))))
        if seed is not None and seed not in seeds:
            raise ValueError(f"seed: is {seed}; the run has {', '.join(map(str, seeds))}")
        number = 0 if seed is None else seeds.index(seed)
        if self.task.level == "potential":
            cutoff, elements = self._joining()
            chosen = self.potentials[number]
            return export_potential(chosen, path, cutoff=cutoff, elements=elements, aoti=aoti)
        model = self.models[number]
        assert isinstance(model, Model)
        reading = self.record.get("about", {}).get("read") or {}
        return export_model(
            model,
            path,
            task=self.task,
            scaler=self.scaler,
            scale=self.scale,
            sizes=self.facts.sizes,
            periodic=reading.get("cell") == "keep" and reading.get("radius") is not None,
            aoti=aoti,
        )

    def _joining(self) -> tuple[float, list[int]]:
        """How far atoms were joined in training, and the elements there were."""
        reading = self.record.get("about", {}).get("read", {})
        cutoff = self.config.model.get("cutoff") or reading.get("radius")
        if cutoff is None or self.facts.potential is None:
            raise ValueError(
                "run: has no cutoff or radius for the edges; train it on files or ase.Atoms, with "
                "model.cutoff"
            )
        return float(cutoff), list(self.facts.potential["elements"])

    @property
    def scaler(self) -> Scaler:
        """The conversion between targets in their units and the outputs of the models."""
        return self.facts.scaler

    @property
    def history(self) -> list[dict[str, float]]:
        """The training log: losses and metrics for each validation and seed."""
        return [row for group in self.groups for row in group.rows]

    def save(self, directory: str | os.PathLike[str]) -> Path:
        """Save the run in a new directory, for :func:`symgnn.load`; return its path.

        Graphs are not saved: a run that was trained on graphs in memory needs them again to be
        evaluated, and cannot be resumed.
        """
        out = Path(directory)
        if out.exists() and any(out.iterdir()):
            raise ValueError(f"directory: {out} is not empty; give a new one")
        write_whole(out / "config.yaml", self.config.to_yaml().encode())
        write_record(out, self.record)
        for group in self.groups:
            group.write(out)
        if self.metrics:
            write_json(out / "outcomes.json", self.outcomes)
            write_json(out / "metrics.json", self.metrics)
        self.directory = out
        return out

    def forward(self, data: Data) -> Tensor:
        """The mean prediction over the seeds for a graph or batch; differentiable."""
        return self._outputs(self._ready(data)).mean(0)

    @torch.no_grad()
    def predict(self, data: Any) -> Prediction:
        """Predict: mean and deviation over the seeds.

        Args:
            data: A file, a folder, a pattern, a SMILES (if the run was trained on molecules), an
                `ase.Atoms`, a PyG `Data` or `Batch`, a list of these, or the name of a split:
                "train", "validation" or "test". Files are read with the options of the training
                files.

        Returns:
            Value and deviation, `[rows, outputs]` each. The rows are graphs, nodes or edges in the
            order of the input. With one seed the deviation is None.
        """
        if isinstance(data, Data):
            return self._prediction(self._outputs(self._ready(data)))
        graphs: Sequence[Data]
        if isinstance(data, str) and data in SPLITS:
            if Path(data).exists():
                raise ValueError(
                    f"data: {data!r} is a split of the run, and a file here; give './{data}' for "
                    f"the file, or run.splits().{data}"
                )
            graphs = getattr(self.splits(), data)
        else:
            graphs = to_graphs(data, self.record.get("about", {}))
        size = self.config.train.batch_size
        found = []
        for start in range(0, len(graphs), size):
            ready = [self._ready(graphs[k]) for k in range(start, min(start + size, len(graphs)))]
            found.append(self._outputs(Batch.from_data_list(ready)))
        return self._prediction(torch.cat(found, 1))

    def _prediction(self, outputs: Tensor) -> Prediction:
        """Of `[S, rows, outputs]`."""
        return Prediction(outputs.mean(0), outputs.std(0) if len(self.models) > 1 else None)

    @torch.no_grad()
    def evaluate(
        self, graphs: str | Data | Sequence[Data], outcomes: Outcomes | None = None
    ) -> dict[str, list[float]]:
        """All metrics for each seed, on a split of the run's data or on graphs with targets.

        Args:
            graphs: "train", "validation" or "test", or PyG graphs with `y` in the form of the
                training graphs; targets that are coordinates have the scale of their graph.
            outcomes: If given, records each prediction and its measured value.
        """
        return self.compare(graphs, outcomes)[0]

    @torch.no_grad()
    def compare(
        self, graphs: str | Data | Sequence[Data], outcomes: Outcomes | None = None
    ) -> tuple[dict[str, list[float]], dict[str, float]]:
        """The metrics of :meth:`evaluate`, and those of the constant baseline."""
        graphs = self._with_answers(graphs)
        train, task = self.config.train, self.task
        judge = self.facts.judge(task, self.scale, train)
        metrics = Metrics(task, len(self.models))
        trivial = None if self.baseline is None else Metrics(task, len(self.baseline.names))
        masked = may_miss(self.record.get("about", {}))
        for k in range(len(graphs)):
            graph = graphs[k]
            check_answers(graph, task, f"graph {k}", masked)
            self._check(graph)
        scaled = AtScale(graphs, self.scale, answers=task.lengths)
        ready = GraphDataset(scaled, drop=self._dropped, dtype=self._dtype)
        for batch in loader(ready, Batches(len(ready), train.batch_size), None):
            raw = torch.stack([model(batch) for model in self.models])
            metrics.add(*judge(raw, batch.y))
            if trivial is not None and self.baseline is not None:
                trivial.add(*judge(self.baseline(len(batch.y), batch.pos), batch.y))
            if outcomes is not None:
                outcomes.add(raw, batch, judge)
        found = {name: value.tolist() for name, value in metrics.values().items()}
        if trivial is None or self.baseline is None:
            return found, {}
        return found, self.baseline.pick(trivial.values())

    def _with_answers(self, given: Any) -> Sequence[Data]:
        """Graphs to measure on: those of a split, or those given."""
        if isinstance(given, str):
            if given not in SPLITS:
                raise ValueError(unknown_name("split", given, SPLITS, "a split"))
            return getattr(self.splits(), given)
        if isinstance(given, Data):
            given = given.to_data_list() if isinstance(given, Batch) else [given]
        elif isinstance(given, Iterator):
            given = list(given)
        count = len(given) if hasattr(given, "__len__") and hasattr(given, "__getitem__") else 0
        if not count or not isinstance(given, Sequence | Dataset) or not isinstance(given[0], Data):
            what = f"a {type(given).__name__}" + ("" if count else " without graphs")
            raise ValueError(
                f"data: is {what}; give the name of a split, such as 'test', or PyG graphs with "
                "answers y"
            )
        return given  # type: ignore[return-value]

    def example(self, file: Path | None = None) -> Data:
        """A graph in the form that the models read: from a file, or the first of the test set."""
        return self._ready(self.read(file)[0] if file is not None else self.splits().test[0])

    def read(self, files: Any, **options: Any) -> symgnn.data.Graphs:
        """Read graphs with the elements, features, edges and scale of the training graphs.

        Args:
            files: The inputs of :meth:`predict`, except splits.
            options: Options of :func:`symgnn.data.read` that override those of the training, such
                as `on_error="skip"`, `k=8` or `cell="drop"`.

        Returns:
            A list of graphs; its `skipped` lists the skipped structures with the reasons.
        """
        return to_graphs(files, self.record.get("about", {}), **options)

    def splits(self, path: str | os.PathLike[str] | None = None) -> Splits:
        """The training, validation and test graphs; `path` is the new place of moved files."""
        given = dict(self.config.data)
        if self._splits is not None and path is None:
            return self._splits
        if given.get("in_memory"):
            raise ValueError(
                "splits: the run was trained on graphs in memory, which are not saved with it; "
                "give graphs, such as run.evaluate(graphs)"
            )
        if path is not None:
            if "path" not in given:
                raise ValueError(
                    f"--data: the run was trained on the dataset {given['name']}; remove --data"
                )
            given["path"] = str(path)
        elif "path" in given and not _there(given["path"]):
            raise ValueError(
                f"data.path: {given['path']} no longer exists; give its new place with --data"
            )
        found = run_data.load(given)
        counts = {name: len(getattr(found, name)) for name in ("train", "validation", "test")}
        now = {"task": asdict(found.task), "scale": found.scale, "counts": counts}
        check_same(
            self.record,
            {**now, "about": found.about},
            "put them back, or give files to symgnn predict",
        )
        return found

    @property
    def _dropped(self) -> list[str]:
        """The values that the models do not read."""
        model = self.model
        assert isinstance(model, Model | PotentialRows)
        return [*dropped(self.config), *model.unread]

    @property
    def _dtype(self) -> torch.dtype:
        return next(self.parameters()).dtype

    def _outputs(self, data: Data) -> Tensor:
        """`[S, rows, outputs]` in units; of potentials the energies `[S, G, 1]` in eV."""
        if self.task.level == "potential":
            each = [potential(data, forces=False).energy for potential in self.potentials]
            return torch.stack(each).unsqueeze(-1)
        raw = torch.stack([model(data) for model in self.models])
        if self.task.kind == "classification":
            return raw.softmax(-1)
        if self.task.level == "coordinates":
            return raw / self.scale
        found = self.scaler.back(as_rows(raw))
        return found / self.scale if self.task.lengths else found

    def _ready(self, data: Data) -> Data:
        """The graph as the models read it."""
        self._check(data)
        data = copy.copy(at_scale(data, self.scale))
        kept = {*READ, "batch", "ptr", "topology", "ray_ranks", "num_nodes"} - {*self._dropped}
        for name in list(data.keys()):
            if name not in kept:
                del data[name]
        return data.apply(lambda t: t.to(self._dtype) if t.is_floating_point() else t)

    def _check(self, data: Data) -> None:
        """The graph has the form of those that it was trained on."""
        about, drop = self.record.get("about", {}), dropped(self.config)
        check_form(data, about, self.facts.sizes, self.scale, drop)
        z = data.get("z")
        if z is None:  # the network says so if it reads types
            return
        if self.task.level == "potential" and self.facts.potential is not None:
            check_known("atoms:", z.unique().tolist(), self.facts.potential["elements"])
        elif self.facts.types and getattr(self.model, "needs_types", False):
            warn_of_types(z.unique().tolist(), self.facts.types)

    def __repr__(self) -> str:
        seeds = f"{len(self.models)} seeds of " if len(self.models) > 1 else ""
        return f"Run({seeds}{self.model!r})"


def _there(path: Any) -> bool:
    """Whether files, folders or patterns can be found."""
    given = [path] if isinstance(path, str) else path
    return all(
        any(c in str(each) for c in "*?[") or Path(each).expanduser().exists() for each in given
    )
