"""The shapes that can be picked: solids in two to five dimensions, molecules and meshes."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

import torch
from torch_geometric.data import Data

from symgnn._argument_checks import unknown_name
from symgnn.data import polytope, read, sample


def _polygon(corners: int) -> Data:
    """A regular polygon of circumradius 1 in the plane."""
    number = torch.arange(corners)
    turn = 2 * math.pi * number.double() / corners + 0.2
    pairs = torch.stack([number, number.roll(-1)])
    return Data(
        pos=torch.stack([turn.cos(), turn.sin()], 1),
        edge_index=torch.cat([pairs, pairs.flip(0)], 1),
    )


def _joined() -> Data:
    """Two cubes joined by an edge, which can be twisted."""
    cube = polytope("hypercube", 3, dtype=torch.float64)
    pos, n = 0.6 * cube.pos, len(cube.pos)
    shift = torch.tensor([1.1, 0.1, 0.05], dtype=torch.float64)
    bridge = torch.tensor([[0, n + 7], [n + 7, 0]])
    return Data(
        pos=torch.cat([pos - shift, pos + shift]) / 1.6,
        edge_index=torch.cat([cube.edge_index, cube.edge_index + n, bridge], 1),
    )


def _ring() -> Data:
    """A ring of six in space, with one more node at each: its angles can flex."""
    around = torch.arange(6)
    turn = 2 * math.pi * around.double() / 6
    pos = torch.stack([turn.cos(), turn.sin(), 0.4 * (-1.0) ** around], 1)
    noise = torch.randn(12, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    ends = torch.stack([around, around + 6])
    pairs = torch.cat([torch.stack([around, around.roll(-1)]), ends], 1)
    return Data(
        pos=torch.cat([pos, 1.6 * pos]) + 0.1 * noise,
        edge_index=torch.cat([pairs, pairs.flip(0)], 1),
    )


def _polytope(name: str, dimension: int) -> Data:
    return polytope(name, dimension, dtype=torch.float64)


def _from_sample(folder: str, file: str) -> Data:
    """A structure of the files that come with the package."""
    return read(sample(folder) / file)[0]


#: Each shape by its name, as a function that makes it.
SHAPES: dict[str, Callable[[], Data]] = {
    "square (2-d)": partial(_polygon, 4),
    "hexagon (2-d)": partial(_polygon, 6),
    "tetrahedron": partial(_polytope, "simplex", 3),
    "cube": partial(_polytope, "hypercube", 3),
    "octahedron": partial(_polytope, "orthoplex", 3),
    "dodecahedron": partial(_polytope, "dodecahedron", 3),
    "icosahedron": partial(_polytope, "icosahedron", 3),
    "two cubes and a bond": _joined,
    "ring of six": _ring,
    "4-simplex (4-d)": partial(_polytope, "simplex", 4),
    "tesseract (4-d)": partial(_polytope, "hypercube", 4),
    "24-cell (4-d)": partial(_polytope, "24-cell", 4),
    "5-cube (5-d)": partial(_polytope, "hypercube", 5),
    "5-orthoplex (5-d)": partial(_polytope, "orthoplex", 5),
    "butane (molecule)": partial(_from_sample, "molecules", "butane.xyz"),
    "ethanol (molecule)": partial(_from_sample, "molecules", "ethanol.xyz"),
    "benzene (molecule)": partial(_from_sample, "molecules", "benzene.xyz"),
    "cone (mesh)": partial(_from_sample, "meshes", "cone_1.off"),
    "torus (mesh)": partial(_from_sample, "meshes", "torus_1.off"),
}


def shape_named(name: str) -> Data:
    """A built-in shape by its name.

    Args:
        name: One of :data:`SHAPES`.

    Returns:
        A graph with `pos [N, n]` in float64, centred, and `edge_index [2, E]`.

    Example:
        >>> shape_named("tesseract (4-d)").pos.shape
        torch.Size([16, 4])
    """
    if name not in SHAPES:
        raise ValueError(unknown_name("shape", name, SHAPES, "known"))
    found = SHAPES[name]()
    return plain(found)


def plain(data: Data) -> Data:
    """Coordinates, centred, and edges: what networks without features read."""
    pos = data.pos.double()
    return Data(pos=pos - pos.mean(0), edge_index=data.edge_index)
