"""The smallest transformation that breaks a symmetry, in a file, to be run again."""

from __future__ import annotations

import io
import json
import os
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from symgnn.audit._cases import Case
from symgnn.audit._elements import describe
from symgnn.audit._inputs import MovingInput
from symgnn.audit._isolation import random_state_kept
from symgnn.audit._outputs import Output
from symgnn.audit._session import Session
from symgnn.audit._structures import Sample
from symgnn.audit._targets import Target, target_of
from symgnn.audit._tensor_graph import TensorGraph
from symgnn.geometry import TRANSFORMATIONS, Transformation
from symgnn.store import write_whole


@dataclass(frozen=True)
class Counterexample:
    """A transformation that breaks the symmetry of an output."""

    case: Case
    output: Output
    precision: str
    before: Tensor
    expected: Tensor
    after: Tensor
    spread: Tensor
    error: float
    seed: int = 0
    failure: str = ""  # the error that the model raised after the transformation
    sample: str = ""  # which structure, where there are several

    @property
    def element(self) -> Transformation:
        """The transformation of the first graph; there is one per graph."""
        return next(element for element in self.case.elements if element is not None)

    @property
    def pos(self) -> tuple[Tensor, Tensor]:
        """The coordinates before and after, `[N, n]` each."""
        return self.case.before.pos, self.case.after.pos

    def __str__(self) -> str:
        where = f" of {self.sample}" if self.sample else ""
        text = f"{describe(self.element)}{where}"
        if self.failure:
            return f"{text} makes the model raise {self.failure}"
        text += f" changes {self.output.name!r}"
        if self.expected.shape != self.after.shape or not self.after.numel():
            return f"{text} from shape {list(self.expected.shape)} to {list(self.after.shape)}"
        change = (self.after - self.expected).abs()
        worst = int(change.nan_to_num(torch.inf).argmax())
        wanted, found = float(self.expected.flatten()[worst]), float(self.after.flatten()[worst])
        row = "" if self.after.numel() == 1 else f", entry {worst},"
        return f"{text}{row} from {different(wanted, found)}"

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Save the inputs and the transformation as `.npz`, for :meth:`rerun`."""
        arrays: dict[str, Any] = {
            "pos_before": self.pos[0].numpy(),
            "pos_after": self.pos[1].numpy(),
            "output_before": self.before.numpy(),
            "output_expected": self.expected.numpy(),
            "output_after": self.after.numpy(),
            "spread": self.spread.numpy(),
        }
        for k, graph in enumerate(self.case.graphs):
            for key, value in graph.to_dict().items():
                if isinstance(value, Tensor):
                    arrays[f"graph{k}/{key}"] = value.detach().cpu().numpy()
            element, order = self.case.elements[k], self.case.edges[k]
            if order is not None:
                arrays[f"edges{k}"] = order.numpy()
            for own in fields(element) if element is not None else ():
                value = getattr(element, own.name)
                arrays[f"element{k}/{own.name}"] = np.asarray(value)
        about = {
            "kind": self.case.kind,
            "what": str(self),
            "error": self.error,
            "precision": self.precision,
            "batched": self.case.batched,
            "seed": self.seed,
            "failure": self.failure,
            "sample": self.sample,
            "pyg": not isinstance(self.case.graphs[0], TensorGraph),
            "output": _plain(self.output),
            "named": [_plain(name) for name in self.case.named],
        }
        if self.output.basis is not None:
            arrays["basis"] = self.output.basis.numpy()
        arrays["about"] = np.array(json.dumps(about))
        buffer = io.BytesIO()
        np.savez(buffer, **arrays)
        return write_whole(Path(path), buffer.getvalue())

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Counterexample:
        """Load a file of :meth:`save`."""
        path = Path(path)
        if not path.exists():
            raise ValueError(f"{path}: there is no such file")
        try:
            found = _arrays(path)
            about = json.loads(str(found.pop("about")))
            return cls._of({key: torch.from_numpy(found[key]) for key in found}, about)
        except Exception as error:  # a damaged archive raises almost anything
            reason = str(error).partition("\n")[0] or type(error).__name__
            raise ValueError(
                f"{path}: is no counterexample of an audit ({reason}); save one again"
            ) from None

    @classmethod
    def _of(cls, arrays: dict[str, Tensor], about: dict[str, Any]) -> Counterexample:
        graphs, elements, edges = [], [], []
        for k in range(sum(key.endswith("/pos") for key in arrays)):
            graphs.append(_graph(_under(arrays, f"graph{k}/"), about.get("pyg", True)))
            own: dict[str, Any] = _under(arrays, f"element{k}/")
            for key in ("factor", "radius"):
                if key in own:
                    own[key] = float(own[key])
            if "bridge" in own:
                own["bridge"] = tuple(own["bridge"].tolist())
            elements.append(TRANSFORMATIONS[about["kind"]](**own) if own else None)
            edges.append(arrays.get(f"edges{k}"))
        named = tuple(MovingInput(**name) for name in about["named"])
        case = Case(
            about["kind"], tuple(graphs), tuple(elements), tuple(edges), named, about["batched"]
        )
        return cls(
            case=case,
            output=_output(about["output"], arrays.get("basis")),
            precision=about["precision"],
            before=arrays["output_before"],
            expected=arrays["output_expected"],
            after=arrays["output_after"],
            spread=arrays["spread"],
            error=about["error"],
            seed=about["seed"],
            failure=about.get("failure", ""),
            sample=about.get("sample", ""),
        )

    def rerun(self, model: Callable[..., Any] | Target) -> float:
        """The error of the model now, relative to the variation of the output when it was found."""
        model = target_of(model)
        dtype = getattr(torch, self.precision)
        graphs = list(self.case.graphs)
        sample = Sample(graphs, self.case.batched, shapes=[graphs])
        session = Session(model, [sample], list(self.case.named), seed=self.seed)
        session.outputs, session.spread = [self.output], {(0, self.output.name): self.spread}
        case = replace(self.case, origin=(0, 0, 0))
        with random_state_kept(), model.isolated(dtype):
            session.use(dtype)
            errors = session.errors(case, session.attempt(case.after))
            return float(errors[self.output.name][0].max())


def different(wanted: float, found: float) -> str:
    """Two numbers with as many digits as it takes to tell them apart."""
    for digits in range(6, 18):
        texts = f"{wanted:.{digits}g}", f"{found:.{digits}g}"
        if texts[0] != texts[1]:
            break
    text = f"{texts[0]} to {texts[1]}"
    return text if digits == 6 else f"{text} (by {abs(found - wanted):.1e})"


def _arrays(path: Path) -> dict[str, np.ndarray]:
    """The arrays of an .npz file; where symgnn's requirements are there, checked before reading."""
    try:
        from symgnn.data._npz import load_npz
    except ImportError:  # torch and numpy alone
        with np.load(path, allow_pickle=False) as found:
            return dict(found)
    return load_npz(path)


def _graph(values: dict[str, Tensor], pyg: bool) -> Any:
    if not pyg:
        return TensorGraph(values)
    from torch_geometric.data import Data

    return Data(**values)


def _output(values: dict[str, Any], basis: Tensor | None) -> Output:
    return Output(**{**values, "axes": tuple(values["axes"]), "basis": basis})


def _plain(value: Any) -> dict[str, Any]:
    """The fields of a dataclass that JSON has."""
    found = {own.name: getattr(value, own.name) for own in fields(value)}
    return {key: own for key, own in found.items() if not isinstance(own, Tensor)}


def _under(arrays: dict[str, Tensor], start: str) -> dict[str, Tensor]:
    return {key.removeprefix(start): v for key, v in arrays.items() if key.startswith(start)}
