"""Random transformations of every graph of a pack."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import torch
from torch import Generator, Tensor
from torch_geometric.data import Data

from symgnn.discovery._even_draws import Bridges, shuffled
from symgnn.discovery._packing import Pack
from symgnn.geometry import TRANSFORMATIONS, NoSuchTransformation, Symmetry
from symgnn.geometry.base import Transformation

#: The kinds that data are asked about, in the order in which they are told.
ASKED = (
    *("permutation", "translation", "rotation", "reflection", "dilation", "inversion"),
    *("special-conformal", "affine", "torsion", "flex", "redrawing"),
)
#: The kinds under which a vector has an image.
ASKED_OF_VECTORS = ("permutation", "translation", "rotation", "reflection", "dilation")
#: Kinds whose random elements leave nothing of where in its orbit a graph was: a predictor that
#: does as well on transformed graphs shows that such a kind is kept. Others move a graph a little.
ERASING = ("permutation", "translation", "rotation", "reflection", "dilation", "torsion")
#: Kinds that are asked about where at least this share of graphs has an element of it.
ADMITTED = 0.2
#: Graphs that are tried to see which kinds there are.
TRIED = 40
#: Kinds whose elements are null spaces of matrices with a column for each coordinate of a node.
NULL_SPACES = ("flex", "redrawing")
#: They are tried for graphs with at most so many coordinates: 0.1 s each for that many.
MOST_COORDINATES = 600


def admitted(graphs: Sequence[Data], vectors: bool, seed: int) -> dict[str, float]:
    """The share of graphs that have a transformation of each kind; 0 for those left out."""
    generator = torch.Generator().manual_seed(seed)
    chosen = torch.randperm(len(graphs), generator=generator)[:TRIED].tolist()
    found = {}
    for kind in ASKED:
        if (vectors and kind not in ASKED_OF_VECTORS) or _is_identity(kind, graphs[0]):
            found[kind] = 0.0
            continue
        have = [element(kind, graphs[k], generator) is not None for k in chosen]
        found[kind] = sum(have) / len(have)
    return found


def _is_identity(kind: str, graph: Data) -> bool:
    """In one dimension there are no rotations, and conformal maps keep no more than these."""
    return graph.pos.shape[1] == 1 and kind in ("rotation", "torsion", "affine")


def element(kind: str, graph: Data, generator: Generator) -> Transformation | None:
    """A random transformation of a graph; None where it has none of the kind, or is too large."""
    if kind == "permutation" and graph.pos.shape[0] < 2:
        return None
    if kind in NULL_SPACES and is_large(graph):
        return None
    try:
        return TRANSFORMATIONS[kind].random(graph.pos, graph.edge_index, generator=generator)
    except NoSuchTransformation:
        return None


def is_large(graph: Data) -> bool:
    """Whether a graph has too many nodes to find its flexes and redrawings."""
    return bool(graph.pos.numel() > MOST_COORDINATES)


def moved(
    kind: str, pack: Pack, graphs: Sequence[Data], seed: int, half: bool = False
) -> tuple[Pack, Tensor]:
    """Every graph under a random transformation of its own.

    Args:
        kind: The kind; graphs that have none stay.
        pack: The graphs.
        graphs: The same, one by one.
        seed: Of the transformations.
        half: Whether only every second graph is moved, by chance: if all are mirrored, left and
            right can still be told apart.

    Returns:
        The pack, and the linear part of each map `[G, n, n]`, by which vectors go.
    """
    generator = torch.Generator().manual_seed(seed)
    if kind == "permutation":
        return replace(pack, order=shuffled(pack, generator)), _identities(pack)
    if kind == "torsion":
        return replace(pack, pos=Bridges(pack).turned(pack.pos, generator)), _identities(pack)
    found, linear = [], _identities(pack)
    for number, graph in enumerate(graphs):
        stays = half and float(torch.rand((), generator=generator)) < 0.5
        one = None if stays else element(kind, graph, generator)
        pos = graph.pos.double()
        found.append(pos if one is None else one(pos))
        if one is not None and kind in ASKED_OF_VECTORS:
            eye, zero = torch.eye(pos.shape[1], dtype=pos.dtype), pos.new_zeros(1, pos.shape[1])
            linear[number] = (one(eye) - one(zero)).T
    vel = None
    if pack.vel is not None:
        vel = torch.einsum("nab,nb->na", linear[pack.batch], pack.vel)
    return replace(pack, pos=torch.cat(found), vel=vel), linear


def _identities(pack: Pack) -> Tensor:
    return torch.eye(pack.dimension, dtype=torch.float64).repeat(pack.size, 1, 1)


def kept_among(symmetry: Symmetry, kinds: Sequence[str]) -> set[str]:
    """The kinds of a symmetry that are asked about."""
    return {kind for kind in kinds if kind in symmetry}
