"""The content of the page: shapes, the networks shown for each, and a trained run if given."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from torch import Tensor
from torch_geometric.data import Data

from symgnn.explorer._explorer_moves import Moved, move, moves_of
from symgnn.explorer._explorer_networks import (
    Reaction,
    Watched,
    measure,
    networks_for,
    outputs_of,
)
from symgnn.explorer._explorer_shapes import SHAPES, plain, shape_named
from symgnn.explorer._largest_changes import Change, largest_changes

#: The most nodes that a shape may have, for the page to follow a slider.
MOST_NODES = 300
_shape = lru_cache(maxsize=64)(shape_named)
_networks = lru_cache(maxsize=8)(networks_for)


@dataclass(frozen=True)
class Scene:
    """A shape after a move, and everything that is shown of it.

    Attributes:
        data: The shape before the move.
        moved: After it.
        reactions: Of the networks.
        changes: The length, the angle and the kappa that changed most.
    """

    data: Data
    moved: Moved
    reactions: list[Reaction]
    changes: list[Change]


class Stage:
    """The shapes and networks of a page.

    Args:
        own: A shape of the user, by its name; it is shown first.
        trained: Networks of the user that watch this shape, with all that they read of it.
    """

    def __init__(
        self, own: tuple[str, Data] | None = None, trained: Sequence[Watched] = ()
    ) -> None:
        self.own, self.trained = own, list(trained)
        self._before: dict[str, list[Tensor]] = {}
        if own is not None:
            _check(own[1])

    @property
    def shapes(self) -> list[str]:
        """The names of the shapes."""
        return [*([] if self.own is None else [self.own[0]]), *SHAPES]

    def data(self, name: str) -> Data:
        """A shape: coordinates in float64 and edges."""
        if self.own is not None and name == self.own[0]:
            return _only(self.own[1])
        return _shape(name)

    def networks(self, name: str) -> list[Watched]:
        """The networks that watch a shape."""
        mine = self.trained if self.own is not None and name == self.own[0] else []
        return [*mine, *_networks(self.data(name).pos.size(1))]

    def missing(self, name: str) -> dict[str, str | None]:
        """For each move None, or why the shape does not have it."""
        data = self.data(name)
        return moves_of(data.pos, data.edge_index)

    def scene(self, name: str, values: Mapping[str, float]) -> Scene:
        """A shape after the moves of the sliders."""
        data = self.data(name)
        moved = move(data.pos, data.edge_index, values)
        reactions = []
        if self.own is not None and name == self.own[0] and self.trained:
            reactions = measure(self.trained, self.own[1], moved.pos, moved.kinds)
        blocks = _networks(data.pos.size(1))
        if name not in self._before:
            self._before[name] = outputs_of(blocks, data)
        reactions += measure(blocks, data, moved.pos, moved.kinds, self._before[name])
        changes = largest_changes(data.pos, moved.pos, data.edge_index)
        return Scene(data, moved, reactions, changes)


def _only(data: Data) -> Data:
    """Coordinates as they are, and edges."""
    return Data(pos=data.pos.double(), edge_index=data.edge_index)


def _check(data: Data) -> None:
    """Refuse what the page cannot move."""
    if data.pos is None or data.edge_index is None or not data.edge_index.numel():
        raise ValueError("--data: the structure has no edges; join its nodes with --radius")
    if data.num_nodes > MOST_NODES:
        raise ValueError(
            f"--data: the structure has {data.num_nodes} nodes, the page shows up to {MOST_NODES}; "
            "give a smaller one"
        )
    shift = getattr(data, "edge_shift", None)
    if shift is not None and bool((shift != 0).any()):
        raise ValueError(
            "--data: the structure is periodic, and most moves do not map a periodic cell to one; "
            "give a structure without a cell"
        )
    if getattr(data, "vel", None) is not None:
        raise ValueError(
            "--data: the structure has velocities, which the page does not transform; remove vel"
        )


def stage_of_file(name: str, data: Data, trained: Sequence[Watched] = ()) -> Stage:
    """A stage with a structure of a file, centred where no trained network reads its place."""
    return Stage((name, data if trained else plain(data)), trained)
