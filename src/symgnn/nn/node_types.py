"""Node types `data.z`, such as atomic numbers, and their embedding."""

from __future__ import annotations

from torch import Tensor

from symgnn.graphs import Topology
from symgnn.nn._engine.torch_private import is_recorded

#: One type for each atomic number, up to 118, and type 0.
ATOMS = 119


def check_types(z: Tensor | None, types: int, topology: Topology) -> Tensor:
    """The types of the nodes `[N]`."""
    if z is None:
        raise ValueError("z: is missing; give the type of each node, such as its atomic number")
    if z.is_floating_point() or z.shape != (topology.num_nodes,):
        raise ValueError(f"z: is {z.dtype} {list(z.shape)}; it must be whole numbers [N]")
    if not is_recorded(z) and z.numel() and not 0 <= int(z.min()) <= int(z.max()) < types:
        bad = int(z.min()) if int(z.min()) < 0 else int(z.max())
        raise ValueError(f"z: holds {bad}; the model knows the types 0 to {types - 1}")
    return z.long()


def check_unread_types(z: Tensor | None, x: Tensor | None) -> None:
    """Refuse types of nodes that the model does not read, unless x has a column for each."""
    if z is None or (x is not None and (is_recorded(x) or TypeColumns().add(z, x).complete)):
        return
    types = "'atoms'"
    if z.numel() and not z.is_floating_point() and not is_recorded(z) and int(z.max()) >= ATOMS:
        types = str(int(z.max()) + 1)
    raise ValueError(
        f"z: holds the types of {len(z)} nodes, which the model would not read; build it with "
        f"node_types={types}, or set z to None"
    )


class TypeColumns:
    """Whether node features have a column for each type of nodes, in one or more graphs.

    A column stands for a type if it is nonzero at the nodes of this type and nowhere else, or if
    it holds the type itself.
    """

    def __init__(self) -> None:
        self.both: dict[int, Tensor] = {}  # how many nodes of a type have a column, [w]
        self.nodes: dict[int, int] = {}  # how many have the type
        self.any: Tensor | None = None  # how many nodes have a column, [w]
        self.equal: Tensor | None = None  # whether a column holds the type, [w]

    def add(self, z: Tensor, x: Tensor) -> TypeColumns:
        """Take further nodes into account, with types `[N]` and features `[N, w]`."""
        if z.shape != x.shape[:1]:
            self.equal, self.any = None, None
            return self
        there = x != 0
        for kind in z.unique().tolist():
            of_kind = z == kind
            both = there[of_kind].sum(0)
            self.both[kind] = self.both.get(kind, 0) + both
            self.nodes[kind] = self.nodes.get(kind, 0) + int(of_kind.sum())
        equal = (x == z.unsqueeze(-1)).all(0)
        self.any = there.sum(0) if self.any is None else self.any + there.sum(0)
        self.equal = equal if self.equal is None else self.equal & equal
        return self

    @property
    def complete(self) -> bool:
        """Whether the features tell the type of every node."""
        if self.any is None or self.equal is None:
            return False
        return bool(self.equal.any()) or all(
            bool(((both == self.nodes[kind]) & (self.any == both)).any())
            for kind, both in self.both.items()
        )
