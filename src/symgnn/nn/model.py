"""A stack of blocks and a read-out, for PyG's Data and Batch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from torch import Tensor, nn
from torch_geometric.data import Data

from symgnn.geometry.symmetry import Symmetry
from symgnn.nn.architectures import EDGE_READOUT, GRAPH_READOUT, NODE_READOUT
from symgnn.nn.block import Block, live, symmetry_of
from symgnn.nn.coordinate_maps import CoordinateMap
from symgnn.nn.inputs import check_dimension, check_features, first_width, start
from symgnn.nn.spec import Spec
from symgnn.nn.update import Width
from symgnn.topology import Topology

#: What a task reads after the last layer: its read-out and the value that comes out.
TASKS: dict[str, tuple[Spec | None, str]] = {
    "graph": (GRAPH_READOUT, "u"),
    "node": (NODE_READOUT, "v"),
    "edge": (EDGE_READOUT, "e"),
    "coordinates": (None, "x"),
}


class Model(nn.Module):
    """Layers of one specification, then a read-out; made by :func:`symgnn.nn.build`.

    `model(data)` gives `[G, outputs]` for the task "graph", `[N, outputs]` for "node",
    `[E, outputs]` for "edge" and coordinates `[N, n]` for "coordinates".
    """

    def __init__(
        self,
        spec: Spec,
        *,
        features: Mapping[str, int],
        embedding: int,
        layers: int,
        width: Width,
        aggregation: Mapping[str, str],
        coordinate_maps: Sequence[CoordinateMap | None],
        task: str,
        outputs: int,
        dimension: int | None,
        chunk: int | None,
    ) -> None:
        super().__init__()
        self.spec, self.task, self.outputs = spec, task, outputs
        self.features, self.embedding, self.dimension = dict(features), embedding, dimension
        self.chunk = chunk
        readout, answer = TASKS[task]
        specs = [spec] * layers + ([readout] if readout else [])
        maps = [*coordinate_maps, None][: len(specs)]

        # from the end to the start: what each block has to provide
        wanted, wants = frozenset(answer), []
        for one, psi in zip(reversed(specs), reversed(maps), strict=True):
            wants.append(wanted)
            _, wanted = live(one, psi.reads if psi else frozenset(), wanted)
        # from the start to the end: how wide each value is
        sizes = {value: features.get(value, 0) for value in "veau"}
        sizes["v"] = first_width(spec, sizes, dimension)
        self.blocks = nn.ModuleList()
        for k, (one, psi, want) in enumerate(zip(specs, maps, reversed(wants), strict=True)):
            out = dict.fromkeys("veau", embedding)
            if k == layers:
                out[answer] = outputs
            pool = {"v->u": aggregation["pool"]} if k == layers else {}
            block = Block(one, sizes, out, width, {**aggregation, **pool}, psi, want, dimension)
            self.blocks.append(block)
            sizes = block.sizes

    @property
    def symmetry(self) -> Symmetry:
        """What the model is invariant to (equivariant, for coordinates), derived from its parts."""
        return symmetry_of(self.spec, self._blocks(), self.task == "coordinates")

    def _blocks(self) -> list[Block]:
        return list(self.blocks)  # type: ignore[arg-type]

    @property
    def needs_angles(self) -> bool:
        """Whether anything that is given or read lives on angles."""
        return bool(self.features.get("a")) or any(block.needs_angles for block in self._blocks())

    @property
    def needs_pairs(self) -> bool:
        """Whether a coordinate map reads all pairs of nodes."""
        return any(block.map is not None and block.map.all_pairs for block in self._blocks())

    def topology(self, data: Data) -> Topology:
        """The part of `data` that can be prepared, and attached as `data.topology`."""
        return Topology.of(
            data, angles=self.needs_angles, whole=self.chunk is None, pairs=self.needs_pairs
        )

    def forward(
        self,
        data: Data | None = None,
        *,
        pos: Tensor | None = None,
        topology: Topology | None = None,
        x: Tensor | None = None,
        edge_attr: Tensor | None = None,
        angle_attr: Tensor | None = None,
        u: Tensor | None = None,
    ) -> Tensor:
        """Apply the model to a `Data` or `Batch`, or to its parts: `pos` and `topology`, ..."""
        if data is not None:
            if any(part is not None for part in (pos, topology, x, edge_attr, angle_attr, u)):
                raise TypeError("forward takes a Data or Batch, or its parts, not both")
            if getattr(data, "edge_weight", None) is not None:
                raise ValueError("edge_weight: is not read; give it as edge_attr [E, 1] instead")
            topology = self.topology(data)
            pos, x, edge_attr = data.pos, data.x, data.edge_attr
            angle_attr, u = getattr(data, "angle_attr", None), getattr(data, "u", None)
        if pos is None or topology is None:
            raise TypeError("forward takes a Data or Batch, or pos=... and topology=...")
        check_dimension(pos, self.dimension)
        check_features(topology, self.features, x, edge_attr, angle_attr, u)
        state, scale = start(self.spec, pos, topology, x, edge_attr, angle_attr, u, self.chunk)
        for block in self.blocks:
            state = block(state)
        answer = TASKS[self.task][1]
        if answer == "x":
            return (state.x if scale is None else state.x / scale).to(pos.dtype)
        return getattr(state, answer).rows

    def reset_parameters(self) -> None:
        """Draw all parameters anew."""
        for block in self._blocks():
            block.reset_parameters()

    def __repr__(self) -> str:
        layers = len(self.blocks) - (self.task != "coordinates")
        count = sum(p.numel() for p in self.parameters())
        how = "equivariant" if self.task == "coordinates" else "invariant"
        return (
            f"{self.spec.name}(layers={layers}, hidden={self.embedding}, task={self.task!r}, "
            f"outputs={self.outputs}, parameters={count}), {how} to {self.symmetry}"
        )
