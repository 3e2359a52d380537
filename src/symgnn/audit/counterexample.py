"""The smallest transformation that breaks a symmetry, in a file, to be run again."""

from __future__ import annotations

import io
import json
import os
from collections.abc import Callable
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data

from symgnn.audit.borrowing import borrowed, random_state_kept
from symgnn.audit.calling import Target, target_of
from symgnn.audit.elements import Case, describe
from symgnn.audit.graphs import Named
from symgnn.audit.measuring import Session
from symgnn.audit.outputs import Output
from symgnn.data.npz import load_npz
from symgnn.geometry import TRANSFORMATIONS, Transformation
from symgnn.store import write_whole


@dataclass(frozen=True)
class Counterexample:
    """A transformation after which an output is not what it should be."""

    case: Case
    output: Output
    precision: str
    before: Tensor
    expected: Tensor
    after: Tensor
    spread: Tensor
    error: float
    seed: int = 0

    @property
    def element(self) -> Transformation:
        """The first transformation; there is one for each graph."""
        return next(element for element in self.case.elements if element is not None)

    @property
    def pos(self) -> tuple[Tensor, Tensor]:
        """The coordinates before and after, `[N, n]` each."""
        return self.case.before.pos, self.case.after.pos

    def __str__(self) -> str:
        text = f"{describe(self.element)} changes {self.output.name!r}"
        if self.expected.shape == self.after.shape and self.after.numel():
            worst = (self.after - self.expected).abs().argmax()
            wanted, found = self.expected.flatten()[worst], self.after.flatten()[worst]
            row = "" if self.after.numel() == 1 else f", entry {int(worst)},"
            return f"{text}{row} from {wanted:.6g} to {found:.6g}"
        return f"{text} from shape {list(self.expected.shape)} to {list(self.after.shape)}"

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write everything that is needed to run it again, as `.npz`."""
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
            "output": _plain(self.output),
            "named": [_plain(name) for name in self.case.named],
        }
        arrays["about"] = np.array(json.dumps(about))
        buffer = io.BytesIO()
        np.savez(buffer, **arrays)
        return write_whole(Path(path), buffer.getvalue())

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Counterexample:
        """Read what :meth:`save` wrote."""
        path = Path(path)
        if not path.exists():
            raise ValueError(f"{path}: there is no such file")
        try:
            found = load_npz(path)
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
            graphs.append(Data(**_under(arrays, f"graph{k}/")))
            own: dict[str, Any] = _under(arrays, f"element{k}/")
            for key in ("factor", "radius"):
                if key in own:
                    own[key] = float(own[key])
            if "bridge" in own:
                own["bridge"] = tuple(own["bridge"].tolist())
            elements.append(TRANSFORMATIONS[about["kind"]](**own) if own else None)
            edges.append(arrays.get(f"edges{k}"))
        named = tuple(Named(**name) for name in about["named"])
        case = Case(
            about["kind"], tuple(graphs), tuple(elements), tuple(edges), named, about["batched"]
        )
        return cls(
            case=case,
            output=Output(**about["output"]),
            precision=about["precision"],
            before=arrays["output_before"],
            expected=arrays["output_expected"],
            after=arrays["output_after"],
            spread=arrays["spread"],
            error=about["error"],
            seed=about["seed"],
        )

    def rerun(self, model: Callable[..., Any] | Target) -> float:
        """The error now, relative to how much the output varied when it was found."""
        model = target_of(model)
        dtype = getattr(torch, self.precision)
        session = Session(model, [list(self.case.graphs)], [], self.case.batched, seed=self.seed)
        session.outputs, session.spread = [self.output], {self.output.name: self.spread}
        with random_state_kept(), borrowed(model.modules, dtype):
            session.use(dtype)
            return session.errors(self.case)[self.output.name]


def _plain(value: Any) -> dict[str, Any]:
    return {own.name: getattr(value, own.name) for own in fields(value)}


def _under(arrays: dict[str, Tensor], start: str) -> dict[str, Tensor]:
    return {key.removeprefix(start): v for key, v in arrays.items() if key.startswith(start)}
