"""Whether a graph has the form of those that a run was trained on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch_geometric.data import Data

from symgnn.data._rescaling import factor_to, scales_of
from symgnn.train._prepare import sizes_of
from symgnn.train._to_graphs import ACCEPTED


def check_form(
    data: Data,
    about: Mapping[str, Any],
    sizes: Mapping[str, int],
    scale: float,
    drop: Sequence[str],
) -> None:
    """A graph can be brought to the scale of the training, and has its elements and sizes.

    Args:
        data: a graph or batch, as it was given.
        about: what is known of the data of the training.
        sizes: their dimension, and how wide each of their values is.
        scale: of their coordinates.
        drop: values that are not read.
    """
    if not isinstance(data, Data):
        raise ValueError(f"data: cannot be a {type(data).__name__}; give {ACCEPTED}")
    if getattr(data, "pos", None) is None:
        raise ValueError("pos: a graph has no pos; give coordinates [N, n]")
    check_scale(data, about, scale, drop)
    if not {"x", "z"} & {*drop}:
        check_elements(data, about.get("read", {}).get("elements"))
    found = sizes_of(data, drop)
    for key, size in sizes.items():
        if key in found and found[key] != size:
            raise ValueError(
                f"data: {getattr(data, 'name', None) or 'a graph'} has {key} {found[key]}; the run "
                f"was trained with {size}, so give files of the kind that it was trained on"
            )


def check_scale(data: Data, about: Mapping[str, Any], scale: float, drop: Sequence[str]) -> None:
    """It is known what its coordinates are, and all that depends on them can be rescaled."""
    units = about.get("read", {}).get("units")
    bare = scales_of(data) is None
    if bare and units not in (None, "angstrom") and data.get("z") is not None:
        raise ValueError(
            f"pos: the graph has no pos_scale, and the run was trained on files in {units}; "
            "convert the coordinates to Angstrom and set data.pos_scale = 1.0"
        )
    factor = factor_to(data, scale)
    if isinstance(factor, float) and factor == 1.0:
        return
    for name in about.get("features with lengths", ()):
        if name not in drop and data.get(name) is not None:
            found = scales_of(data)
            has = "no pos_scale" if found is None else f"pos_scale {float(found[0]):g}"
            raise ValueError(
                f"{name}: holds lengths, but a graph has {has} and the run {scale:g}; load it with "
                f"scale={scale:g}, or set data.pos_scale if the graph has that scale"
            )


def check_elements(data: Data, elements: Sequence[str] | None) -> None:
    """A column of `x` stands for the same element as in training."""
    if not elements or getattr(data, "z", None) is None or getattr(data, "x", None) is None:
        return
    from ase.data import atomic_numbers

    known = torch.tensor([atomic_numbers[name] for name in elements], device=data.z.device)
    wanted = data.z[:, None] == known
    if data.x.shape[1] < len(elements) or not torch.equal(data.x[:, : len(elements)] != 0, wanted):
        raise ValueError(
            f"x: its columns are not the elements {', '.join(elements)} of the run; give "
            "predict the file, or read it with the options in record['about']['read']"
        )
