"""A network in full: what runs once, the layer that is repeated, and what is read out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from symgnn.nn.architectures import EDGE_READOUT, GRAPH_READOUT, NODE_READOUT
from symgnn.nn.coordinate_maps import CoordinateMap
from symgnn.nn.spec import Spec
from symgnn.nn.vectors import VECTOR_READOUT, VECTOR_TASKS

#: The value that a task asks for; of vectors, the weights on edges.
ANSWERS = {"graph": "u", "node": "v", "edge": "e", "coordinates": "x"} | dict.fromkeys(
    VECTOR_TASKS, "e"
)

READOUTS: dict[str, Spec | None] = {
    "graph": GRAPH_READOUT,
    "node": NODE_READOUT,
    "edge": EDGE_READOUT,
    "coordinates": None,
}


@dataclass(frozen=True)
class Network:
    """Specifications in a row; a :class:`Spec` alone is the network of its layers.

    Those of `first` run once, `layer` as often as there are layers, and then the read-out of the
    task, whose forms all get the number of outputs for their width. With `every_layer` there is a
    read-out before each layer too, and they are added. With `types`, nodes are given by a whole
    number below it, `data.z`, such as the atomic number.
    """

    name: str
    layer: Spec
    first: Sequence[Spec] = ()
    readout: Mapping[str, Spec | None] = field(default_factory=lambda: READOUTS)
    every_layer: bool = False
    types: int = 0
    aggregation: str = "mean"
    coordinate_map: str | CoordinateMap = "identity"
    hidden: int | Mapping[str, int] = 32
    mlp_hidden: int | Mapping[str, int] | None = None
    layers: int = 2

    @property
    def start(self) -> Spec:
        """The specification that the input comes to."""
        return self.first[0] if self.first else self.layer

    def readout_of(self, task: str) -> Spec | None:
        """The read-out of a task; that of vectors is the same for all networks without their own.

        Raises:
            ValueError: if the network has no read-out for the task.
        """
        known = {**dict.fromkeys(VECTOR_TASKS, VECTOR_READOUT), **self.readout}
        if task not in known:
            raise ValueError(
                f"task: {self.name} has no read-out for {task!r}; choose from {', '.join(known)}"
            )
        return known[task]

    @property
    def reads(self) -> frozenset[str]:
        """Which of v, e, a, u, x are read of the input."""
        return frozenset().union(*(spec.reads for spec in (*self.first, self.layer)))


def network_of(spec: Spec | Network) -> Network:
    """A network, of the layers of a specification."""
    return spec if isinstance(spec, Network) else Network(spec.name, spec)
