"""A stack of blocks and a read-out, for PyG's Data and Batch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor, nn
from torch_geometric.data import Data

from symgnn.geometry.measures import at_least_float32, length
from symgnn.geometry.symmetry import EVERYTHING, Symmetry
from symgnn.nn.architectures import EDGE_READOUT, GRAPH_READOUT, NODE_READOUT
from symgnn.nn.block import Block, live
from symgnn.nn.coordinate_maps import CoordinateMap
from symgnn.nn.fields import AngleField, Field, accumulate, lift
from symgnn.nn.sources import Measure
from symgnn.nn.spec import Spec, width_of
from symgnn.nn.state import State
from symgnn.nn.update import Width
from symgnn.topology import Chunk, Topology
from symgnn.topology.checks import check_shape

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
        sizes["v"] = sum(width_of(s, sizes, dimension) for s in spec.inputs) or 1
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
        kept = EVERYTHING
        for block in self._blocks():
            kept &= block.symmetry
        if "v" in self._blocks()[0].reads:
            for source in self.spec.inputs:
                kept &= source.keeps or EVERYTHING
        if self.spec.scaling is not None:
            kept |= Symmetry(["dilation"])
        # a common motion of all nodes goes unnoticed only by what does not see the origin
        if self.task == "coordinates" or "translation" not in kept:
            for block in self._blocks():
                kept &= block.map.commutes if block.map is not None else EVERYTHING
        return kept

    def _blocks(self) -> list[Block]:
        return list(self.blocks)  # type: ignore[arg-type]

    @property
    def needs_angles(self) -> bool:
        """Whether anything that is read lives on angles."""
        return any(block.needs_angles for block in self._blocks())

    @property
    def needs_pairs(self) -> bool:
        """Whether a coordinate map reads all pairs of nodes."""
        return any(block.map is not None and block.map.all_pairs for block in self._blocks())

    def topology(self, data: Data) -> Topology:
        """The part of `data` that can be prepared, and attached as `data.topology`."""
        return Topology.of(data, angles=self.needs_angles, pairs=self.needs_pairs)

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
            topology = self.topology(data)
            pos, x, edge_attr = data.pos, data.x, data.edge_attr
            angle_attr, u = getattr(data, "angle_attr", None), getattr(data, "u", None)
        if pos is None or topology is None:
            raise TypeError("forward takes a Data or Batch, or pos=... and topology=...")
        state = self._start(pos, topology, x, edge_attr, angle_attr, u)
        state.x, scale = self._scaled(state.x, topology)
        self._first_nodes(state, x)
        for block in self.blocks:
            state = block(state)
        answer = TASKS[self.task][1]
        if answer == "x":
            return state.x if scale is None else (state.x / scale).to(pos.dtype)
        return getattr(state, answer).rows

    def _start(
        self,
        pos: Tensor,
        topology: Topology,
        x: Tensor | None,
        edge_attr: Tensor | None,
        angle_attr: Tensor | None,
        u: Tensor | None,
    ) -> State:
        """The state of the input, after checking what was given against what was built."""
        sizes = {
            "x": (x, "v", topology.num_nodes, "node"),
            "edge_attr": (edge_attr, "e", topology.num_edges, "edge"),
            "angle_attr": (angle_attr, "a", topology.num_angles, "angle"),
            "u": (u, "u", topology.num_graphs, "graph"),
        }
        if pos.shape[0] != topology.num_nodes:
            raise ValueError(
                f"pos: has {pos.shape[0]} rows, but the topology {topology.num_nodes} nodes; make "
                "it anew with Topology.of(data)"
            )
        if self.dimension is not None and pos.shape[1] != self.dimension:
            raise ValueError(
                f"pos: has {pos.shape[1]} coordinates; the model was built with "
                f"dimension={self.dimension}"
            )
        for name, (value, key, rows, domain) in sizes.items():
            self._check(name, value, self.features.get(key, 0), rows, domain)
        state = State(topology, at_least_float32(pos), chunk=self.chunk)
        if edge_attr is not None:
            state.e = Field(topology, "edge", edge_attr)
        if u is not None:
            state.u = Field(topology, "graph", u)
        if angle_attr is not None:
            state.a = _given_angles(topology, angle_attr, self.chunk)
        return state

    def _check(self, name: str, value: Tensor | None, width: int, rows: int, domain: str) -> None:
        option = f"{domain}_features"
        if value is None:
            if width:
                raise ValueError(
                    f"{name}: is missing, but the model was built with {option}={width}"
                )
            return
        check_shape(name, value, f"[{rows}, {width or 'F'}]")
        if not width:
            raise ValueError(
                f"{name}: has {value.shape[1]} features that the model would not read; build it "
                f"with {option}={value.shape[1]}, or set data.{name} to None"
            )
        if list(value.shape) != [rows, width]:
            raise ValueError(
                f"{name}: has shape {list(value.shape)}; the graph and {option}={width} ask for "
                f"[{rows}, {width}]"
            )

    def _scaled(self, x: Tensor, topology: Topology) -> tuple[Tensor, Tensor | None]:
        """Coordinates times scaling / (longest edge) of their graph; as they are without edges."""
        if self.spec.scaling is None:
            return x, None
        source, target = topology.edge_index
        edges = length(lift(x, source) - lift(x, target)).unsqueeze(-1)
        nodes = accumulate(edges, target, topology.num_nodes, "max")
        longest = accumulate(nodes, topology.batch, topology.num_graphs, "max")
        positive = longest > 0
        scale = torch.where(positive, self.spec.scaling / torch.where(positive, longest, 1.0), 1.0)
        scale = lift(scale, topology.batch)
        return x * scale, scale

    def _first_nodes(self, state: State, x: Tensor | None) -> None:
        """What the nodes start with: their inputs, or the constant 1 if they have none."""
        rows = []
        for source in self.spec.inputs:
            if isinstance(source, Measure):
                rows.append(state.get(source).rows)
            elif x is not None:
                rows.append(x)
        first = rows or [state.x.new_ones(state.topology.num_nodes, 1)]
        dtype = x.dtype if x is not None else state.x.dtype
        state.v = Field(state.topology, "node", torch.cat([r.to(dtype) for r in first], -1))

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


def _given_angles(topology: Topology, angle_attr: Tensor, chunk: int | None) -> AngleField:
    """Angle features `[A, w]`, in the order of `topology.angle_index`."""
    first = {}
    start = 0
    for part in topology.chunks(chunk):
        first[part.number] = start
        m, d = part.neighbours.shape
        start += m * d * (d - 1)

    def compute(part: Chunk) -> Tensor:
        m, d = part.neighbours.shape
        begin = first[part.number]
        return angle_attr[begin : begin + m * d * (d - 1)].view(m, d, d - 1, -1)

    return AngleField(topology, compute, angle_attr.new_empty(0, angle_attr.shape[1]), chunk=chunk)
