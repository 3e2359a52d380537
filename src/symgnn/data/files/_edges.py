"""Edges: those of the file, bonds by distance, all within a radius, or the k nearest."""

from __future__ import annotations

from typing import Literal, get_args

import torch
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.transforms import FaceToEdge

from symgnn._argument_checks import unknown_name
from symgnn.data.files._file_structure import FileStructure, require
from symgnn.graphs.checks import check_edges
from symgnn.graphs.neighbours import knn_graph, radius_graph
from symgnn.graphs.periodic import periodic_graph

Edges = Literal["bonds", "distances", "mesh", "radius", "neighbours", "given"]
NEAREST = 8
#: Atoms are bonded up to this many times the sum of their covalent radii.
BOND = 1.25


class NoSuchEdgesError(ValueError):
    """A structure has not what its edges are to be made of."""


def check_choice(edges: str | None, radius: float | None, k: int | None) -> str | None:
    """The edges that are meant: naming a radius or a number says enough."""
    if edges is not None and edges not in get_args(Edges):
        raise ValueError(unknown_name("edges", edges, get_args(Edges), "known"))
    for name, value, choice in (("radius", radius, "radius"), ("k", k, "neighbours")):
        if value is not None and edges is None:
            edges = choice
        elif value is not None and edges != choice:
            raise ValueError(f"{name}: is {value}, but edges={edges!r} does not use it; drop one")
    if edges == "radius" and radius is None:
        raise ValueError("radius: is missing; edges='radius' needs it, in the units of pos")
    return edges


def edges_used(structure: FileStructure, edges: str | None) -> str:
    """How the edges of a structure are made, where `edges` was asked for.

    The result, asked for of another file, makes edges in the same way or refuses: "bonds" is then
    either "given", bonds that the file has, or "distances", found from the distances of atoms.
    """
    has = structure.joined
    if edges in (None, "bonds") and has is not None and has != "mesh":
        return "given" if edges is None or has == "bonds" else "distances"
    if edges is not None:
        return "distances" if edges == "bonds" else edges
    if has == "mesh" or structure.face is not None:
        return "mesh"
    return "distances" if structure.z is not None else "neighbours"


def joined(
    structure: FileStructure, pos: Tensor, edges: str | None, radius: float | None, k: int | None
) -> tuple[Tensor, bool, Tensor | None]:
    """Edges `[2, E]` of `pos [N, n]`, whether they are the file's own, features and all, and the
    shifts `[E, n]` of edges through the walls of a cell, where it has one.
    """
    has = structure.joined
    asked, edges = edges, edges_used(structure, edges)
    if edges == "radius":
        assert radius is not None
        return _within(structure, pos, radius)
    if edges == "neighbours":
        if structure.is_periodic:
            raise ValueError(
                "pbc: nearest neighbours are not supported in periodic cells; pass radius=..., "
                "or cell='drop'"
            )
        return knn_graph(pos, NEAREST if k is None else k), False, None
    if edges == has or (edges == "given" and has):
        edge_index = torch.tensor(structure.edges)
        check_edges(edge_index, len(pos))
        return edge_index, True, None
    if edges == "distances" and structure.z is not None:
        return bonds(structure, pos, torch.as_tensor(structure.z))
    if edges == "mesh" and structure.face is not None:
        face = torch.as_tensor(structure.face)
        return FaceToEdge()(Data(face=face, num_nodes=len(pos))).edge_index, False, None
    lacks = {"distances": "atoms", "mesh": "faces", "given": "edges"}[edges]
    raise NoSuchEdgesError(
        f"edges: is {asked!r}, but the structure has no {lacks}; pass radius=... or k={NEAREST}"
    )


def _within(
    structure: FileStructure, pos: Tensor, radius: float
) -> tuple[Tensor, bool, Tensor | None]:
    """All pairs within a radius, through the walls of the cell where it repeats."""
    if not structure.is_periodic:
        return radius_graph(pos, radius), False, None
    cell, pbc = structure.extra["cell"], structure.extra.get("pbc", True)
    index, shift = periodic_graph(pos, torch.as_tensor(cell), radius, torch.as_tensor(pbc))
    return index, False, shift


def bonds(structure: FileStructure, pos: Tensor, z: Tensor) -> tuple[Tensor, bool, Tensor | None]:
    """Pairs of atoms near enough for a bond, `[2, E]`, of `pos` in Angstrom."""
    require("ase", "molecules", "bonds from distances")
    from ase.data import covalent_radii

    if not 0 < int(z.min()) <= int(z.max()) < len(covalent_radii):
        raise ValueError(f"z: holds {int(z.min())} to {int(z.max())}; these are no atomic numbers")
    radii = torch.as_tensor(covalent_radii, dtype=pos.dtype)[z]
    near, own, shift = _within(structure, pos, 2 * BOND * float(radii.max()))
    source, target = near
    rays = pos[source] - pos[target]
    apart = (rays if shift is None else rays + shift).norm(dim=1)
    bonded = apart <= BOND * (radii[source] + radii[target])
    return near[:, bonded], own, None if shift is None else shift[bonded]
