"""The tensors in the output of a model, by name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

if TYPE_CHECKING:
    from symgnn.audit._structures import Graph


def output_tensors(out: Any, data: Graph | None = None) -> dict[str, Tensor]:
    """The floating-point tensors in an output by name; the integers where there are no others."""
    found = dict(tensors_in(out, data))
    if not found:
        raise ValueError(
            f"model: gave {type(out).__name__}; let it give a tensor, or tensors in a tuple, "
            "dictionary, named tuple or Data"
        )
    floating = {k: v for k, v in found.items() if v.is_floating_point() or v.is_complex()}
    return floating or found


def tensors_in(
    out: Any, data: Graph | None = None, name: str = "", depth: int = 0
) -> Iterator[tuple[str, Tensor]]:
    """The tensors inside containers, by name; of a graph, those that `data` does not have too."""
    if depth > 8:
        return
    if hasattr(out, "to_dict") and hasattr(out, "num_nodes"):  # a PyG Data, or a TensorGraph
        values = {k: v for k, v in out.to_dict().items() if isinstance(v, Tensor)}
        out = _changed(values, data) or values
    elif isinstance(out, Mapping) and data is not None:
        values = {k: v for k, v in out.items() if isinstance(v, Tensor)}
        if len(values) == len(out):
            out = _changed(values, data) or values
    if isinstance(out, Tensor):
        yield name or "output", out if out.layout == torch.strided else out.to_dense()
    elif isinstance(out, bool | int | float | np.ndarray | np.generic):
        array = np.asarray(out)
        if array.dtype.kind in "biufc":
            yield name or "output", torch.as_tensor(array)
    else:
        for key, value in _parts(out):
            inner = f"{name}.{key}" if name else str(key)
            yield from tensors_in(value, None, inner, depth + 1)


def _changed(values: Mapping[str, Tensor], data: Graph | None) -> dict[str, Tensor]:
    """Those that the input did not have: a model may hand its inputs on."""
    given = {} if data is None else data.to_dict()
    if data is not None and hasattr(data, "as_given"):
        given |= data.as_given()
    return {k: v for k, v in values.items() if not _same(v, given.get(k))}


def _same(value: Tensor, given: Any) -> bool:
    return isinstance(given, Tensor) and value.shape == given.shape and torch.equal(value, given)


def _parts(out: Any) -> Iterator[tuple[str, Any]]:
    """The entries of a container."""
    if isinstance(out, Mapping):
        yield from ((str(key), value) for key, value in out.items())
    elif isinstance(out, tuple) and hasattr(out, "_fields"):
        yield from zip(out._fields, out, strict=True)
    elif isinstance(out, tuple | list):
        yield from ((str(k), value) for k, value in enumerate(out))
    elif is_dataclass(out) and not isinstance(out, type):
        yield from ((field.name, getattr(out, field.name)) for field in fields(out))
