"""Sliders as transformations: each is a family of one kind, with the identity at 0."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache

import networkx as nx
import torch
from torch import Generator, Tensor

from symgnn.geometry import (
    Affine,
    AngleFlex,
    Dilation,
    Flex,
    Inversion,
    NoSuchTransformation,
    Redrawing,
    Reflection,
    Rotation,
    SpecialConformal,
    Torsion,
    Translation,
)

#: Deformations are dense linear algebra: larger graphs are not deformed.
MOST_NODES = 60
#: How far the slider of a deformation goes, in radii of the shape.
FLEX_SIZE = 0.6


@dataclass(frozen=True)
class Move:
    """A slider: a one-parameter family of transformations.

    Attributes:
        name: The name of the slider.
        kind: The kind of transformation, as in `model.symmetry`.
        low, high, step: The range of the slider; 0 is the identity.
        function: `pos [N, n], edge_index [2, E], value -> pos [N, n]`.
    """

    name: str
    kind: str
    low: float
    high: float
    step: float
    function: Callable[[Tensor, Tensor, float], Tensor]


@dataclass(frozen=True)
class Moved:
    """A shape after the moves of some sliders.

    Attributes:
        pos: Its coordinates `[N, n]`.
        kinds: The kinds of transformation that were applied.
    """

    pos: Tensor
    kinds: tuple[str, ...]


def _frame(n: int) -> Tensor:
    """A basis of directions that no shape is aligned with `[n, n]`, the same at each call."""
    noise = torch.randn(n, n, generator=Generator().manual_seed(5), dtype=torch.float64)
    return torch.linalg.qr(noise).Q.T


def _radius(pos: Tensor) -> float:
    return max(float((pos - pos.mean(0)).norm(dim=1).max()), 1e-12)


def _plane_turn(first: Tensor, second: Tensor, angle: float) -> Tensor:
    """The rotation of the plane of two orthonormal vectors by an angle `[n, n]`."""
    flat = first.outer(first) + second.outer(second)
    turn = second.outer(first) - first.outer(second)
    eye = torch.eye(len(first), dtype=first.dtype)
    return eye + (math.cos(angle) - 1) * flat + math.sin(angle) * turn


def _shift(pos: Tensor, edges: Tensor, value: float) -> Tensor:
    return Translation(value * _radius(pos) * _frame(pos.size(1))[0])(pos)


def _turn(pos: Tensor, edges: Tensor, value: float) -> Tensor:
    if pos.size(1) < 2:
        raise NoSuchTransformation("turn: needs a dimension of 2 or more")
    first, second = _frame(pos.size(1))[:2]
    return Rotation(_plane_turn(first, second, math.radians(value)))(pos)


def _mirror(pos: Tensor, edges: Tensor, value: float) -> Tensor:
    return Reflection(_frame(pos.size(1))[0])(pos)


def _scale(pos: Tensor, edges: Tensor, value: float) -> Tensor:
    return Dilation(2.0**value)(pos)


def _affine(pos: Tensor, change: Tensor) -> Tensor:
    n = pos.size(1)
    matrix = torch.eye(n, dtype=torch.float64) + change
    return Affine(matrix, torch.zeros(n, dtype=torch.float64))(pos)


def _stretch(pos: Tensor, edges: Tensor, value: float) -> Tensor:
    along = _frame(pos.size(1))[0]
    return _affine(pos, (2.0**value - 1) * along.outer(along))


def _shear(pos: Tensor, edges: Tensor, value: float) -> Tensor:
    if pos.size(1) < 2:
        raise NoSuchTransformation("shear: needs a dimension of 2 or more")
    first, second = _frame(pos.size(1))[:2]
    return _affine(pos, value * first.outer(second))


def _invert(pos: Tensor, edges: Tensor, value: float) -> Tensor:
    """In a sphere through the middle of the shape, whose centre comes closer."""
    distance = 1.25 * _radius(pos) / value
    centre = pos.mean(0) + distance * _frame(pos.size(1))[0]
    return Inversion(centre, distance)(pos)


def _conformal(pos: Tensor, edges: Tensor, value: float) -> Tensor:
    vector = 0.55 * value / _radius(pos) * _frame(pos.size(1))[0]
    return SpecialConformal(vector, pos.mean(0))(pos)


def _twist(pos: Tensor, edges: Tensor, value: float) -> Tensor:
    """About the bond that divides the graph most evenly."""
    n = pos.size(1)
    if n < 2:
        raise NoSuchTransformation("twist: needs a dimension of 2 or more")
    for a, b, moved in _bridges(pos, edges):
        axis = torch.nn.functional.normalize(pos[b] - pos[a], dim=0)
        basis = torch.linalg.qr(axis.unsqueeze(1), mode="complete").Q[:, 1:].T
        away = (pos - pos[b]) @ basis.T  # of each node, across the bond
        width = 1e-6 * _radius(pos)
        if any(float(away[side].norm(dim=1).max()) < width for side in (moved, ~moved)):
            continue  # a turn about the bond would change nothing
        if n == 2:  # in the plane the other side can only be flipped
            matrix = torch.eye(n, dtype=pos.dtype) - 2 * basis[0].outer(basis[0])
        else:
            matrix = _plane_turn(basis[0], basis[1], math.radians(value))
        return Torsion((a, b), matrix, moved)(pos)
    raise NoSuchTransformation("twist: no bond of the graph can be twisted")


def _bridges(pos: Tensor, edges: Tensor) -> list[tuple[int, int, Tensor]]:
    """The bridges with the nodes on the side of their second end, most even ones first."""
    graph = nx.Graph()
    graph.add_nodes_from(range(len(pos)))
    graph.add_edges_from((a, b) for a, b in edges.T.tolist() if a != b)
    found = []
    for a, b in sorted(nx.bridges(graph)):
        side = nx.node_connected_component(nx.restricted_view(graph, [], [(a, b)]), b)
        moved = torch.zeros(len(pos), dtype=torch.bool)
        moved[list(side)] = True
        if float((pos[a] - pos[b]).norm()) > 1e-9 * _radius(pos):
            found.append((a, b, moved))
    return sorted(found, key=lambda one: -min(int(one[2].sum()), int((~one[2]).sum())))


def _deformation(kind: type[Flex] | type[AngleFlex]) -> Callable[[Tensor, Tensor, float], Tensor]:
    def deform(pos: Tensor, edges: Tensor, value: float) -> Tensor:
        if len(pos) > MOST_NODES:
            raise NoSuchTransformation(f"{kind.name}: only graphs of up to {MOST_NODES} nodes")
        generator = Generator().manual_seed(1)
        return kind.random(pos, edges, generator=generator, size=FLEX_SIZE * value)(pos)

    return deform


def _redraw(pos: Tensor, edges: Tensor, value: float) -> Tensor:
    """Redrawings are a linear space: a part of one is one."""
    if len(pos) > MOST_NODES:
        raise NoSuchTransformation(f"redraw: only graphs of up to {MOST_NODES} nodes")
    whole = Redrawing.random(pos, edges, generator=Generator().manual_seed(1))
    return Redrawing(whole.original, whole.original.lerp(whole.displaced, value))(pos)


#: In the order in which they are applied: parts of the graph first, then space as a whole.
MOVES: dict[str, Move] = {
    one.name: one
    for one in (
        Move("twist a bond", "torsion", -180, 180, 5, _twist),
        Move("flex", "flex", 0, 1, 0.05, _deformation(Flex)),
        Move("flex the angles", "angle-flex", 0, 1, 0.05, _deformation(AngleFlex)),
        Move("redraw", "redrawing", 0, 1, 0.05, _redraw),
        Move("scale", "dilation", -1, 1, 0.05, _scale),
        Move("stretch", "affine", -1, 1, 0.05, _stretch),
        Move("shear", "affine", -1, 1, 0.05, _shear),
        Move("invert", "inversion", 0, 1, 0.05, _invert),
        Move("special conformal", "special-conformal", -1, 1, 0.05, _conformal),
        Move("mirror", "reflection", 0, 1, 1, _mirror),
        Move("turn", "rotation", -180, 180, 5, _turn),
        Move("shift", "translation", -1, 1, 0.05, _shift),
    )
}


@lru_cache(maxsize=512)
def _cached(name: str, pos: bytes, edges: bytes, dimension: int, value: float) -> Tensor | str:
    """The image of one move, or why the shape has none."""
    x = torch.frombuffer(bytearray(pos), dtype=torch.float64).view(-1, dimension)
    index = torch.frombuffer(bytearray(edges), dtype=torch.int64).view(2, -1)
    try:
        return MOVES[name].function(x, index, value)
    except NoSuchTransformation as error:
        return str(error)


def _image(name: str, pos: Tensor, edges: Tensor, value: float) -> Tensor | str:
    if not edges.numel() and MOVES[name].kind in ("torsion", "flex", "angle-flex", "redrawing"):
        return f"{name}: the shape has no edges"
    key = (pos.contiguous().numpy().tobytes(), edges.contiguous().numpy().tobytes())
    return _cached(name, *key, pos.size(1), value)


def moves_of(pos: Tensor, edge_index: Tensor) -> dict[str, str | None]:
    """The moves that a shape has.

    Args:
        pos: Its coordinates, in float64.
        edge_index: Its edges.

    Returns:
        For each of :data:`MOVES` None, or the reason why the shape does not have it.

    Shapes:
        pos `[N, n]`, edge_index `[2, E]`.

    Example:
        >>> cube = symgnn.data.polytope("hypercube", 3, dtype=torch.float64)
        >>> [name for name, reason in moves_of(cube.pos, cube.edge_index).items() if reason]
        ['twist a bond', 'flex the angles']
    """
    found: dict[str, str | None] = {}
    for name, one in MOVES.items():
        image = _image(name, pos, edge_index, one.high)
        found[name] = image if isinstance(image, str) else None
    return found


def move(pos: Tensor, edge_index: Tensor, values: Mapping[str, float]) -> Moved:
    """Move a shape by several sliders, one after the other in the order of :data:`MOVES`.

    Args:
        pos: Its coordinates, in float64.
        edge_index: Its edges.
        values: The value of each slider that is not at 0.

    Returns:
        The moved coordinates, and the kinds of transformation that were applied.

    Raises:
        ValueError: for a move that is not known, or that the shape does not have.

    Shapes:
        pos `[N, n]`, edge_index `[2, E]`.

    Example:
        >>> cube = symgnn.data.polytope("hypercube", 3, dtype=torch.float64)
        >>> move(cube.pos, cube.edge_index, {"scale": 1.0, "turn": 30}).kinds
        ('dilation', 'rotation')
    """
    for name in values:
        if name not in MOVES:
            raise ValueError(f"move: {name!r} is not known; choose from {', '.join(MOVES)}")
    kinds: list[str] = []
    for name, one in MOVES.items():
        value = float(values.get(name, 0))
        if value == 0:
            continue
        if not one.low <= value <= one.high:
            raise ValueError(f"{name}: is {value:g}; give a number from {one.low} to {one.high}")
        image = _image(name, pos, edge_index, value)
        if isinstance(image, str):
            raise NoSuchTransformation(image)
        pos = image
        kinds.append(one.kind)
    return Moved(pos, tuple(dict.fromkeys(kinds)))
