"""Whether a network has to embed the types of the nodes, found in the data."""

from __future__ import annotations

import inspect

from torch import Tensor
from torch_geometric.data import Data

from symgnn.nn.named_networks import count_of_types, network_named
from symgnn.nn.node_types import ATOMS, TypeColumns
from symgnn.nn.peers import PEERS
from symgnn.train._config import Config


class NodeTypes:
    """How a network without types of its own reads `z`, found in one pass over the graphs.

    The types are embedded if `model.node_types` asks for it, and else unless the node features have
    a column for each type anyway, as those of symgnn's readers do. There are 119 types, atomic
    numbers, if `model.node_types` does not say how many.
    """

    def __init__(self, config: Config) -> None:
        given = config.model.get("node_types")
        self.asked = given is not None
        self.count = count_of_types(ATOMS if given is None else given)
        self.columns = TypeColumns()
        self.there: bool | None = None  # whether graphs have types

    @staticmethod
    def of(config: Config) -> NodeTypes | None:
        """None for a network that has types of its own."""
        block = config.model["block"]
        peer = PEERS.get(str(block).lower())
        own = inspect.signature(peer).parameters if peer else ()
        options = {key: value for key, value in config.model.items() if key in own}
        return None if network_named(block, options).types else NodeTypes(config)

    def add(self, graph: Data, where: str, with_features: bool) -> None:
        """Check the types of a graph, and compare them with its features."""
        z, x = getattr(graph, "z", None), getattr(graph, "x", None) if with_features else None
        if self.there not in (None, z is not None):
            raise ValueError(
                f"z: {where} has {'none' if z is None else 'some'}, unlike those before; give "
                "every graph the types of its nodes, or ignore them with data.drop: [z]"
            )
        self.there = z is not None
        if z is None:
            return
        if not isinstance(z, Tensor) or z.is_floating_point() or z.shape != (graph.num_nodes,):
            shape = f"{z.dtype} {list(z.shape)}" if isinstance(z, Tensor) else type(z).__name__
            raise ValueError(
                f"z: {where} has {shape}; give a whole number for each node, or ignore z with "
                "data.drop: [z]"
            )
        if z.numel() and not 0 <= int(z.min()) <= int(z.max()) < self.count:
            bad = int(z.min()) if int(z.min()) < 0 else int(z.max())
            raise ValueError(
                f"z: {where} holds {bad}; model.node_types is {self.count}, for types 0 to "
                f"{self.count - 1}; give more, or ignore z with data.drop: [z]"
            )
        if x is not None and not self.asked:
            self.columns.add(z, x)

    @property
    def read(self) -> bool:
        """Whether the network has to embed the types."""
        return bool(self.there) and (self.asked or not self.columns.complete)
