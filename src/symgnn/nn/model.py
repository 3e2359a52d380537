"""A stack of blocks and a read-out, for PyG's Data and Batch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import replace

from torch import Tensor, nn
from torch_geometric.data import Data

from symgnn.geometry.symmetry import Symmetry
from symgnn.nn.block import Block, symmetry_of, used_steps
from symgnn.nn.coordinate_maps import CoordinateMap
from symgnn.nn.form import Width
from symgnn.nn.inputs import modules_of
from symgnn.nn.spec import ANSWERS, Network, first_sizes
from symgnn.nn.state import (
    Reference,
    State,
    check_dimension,
    check_features,
    check_types,
    check_velocity,
    start,
)
from symgnn.topology import Topology


class Model(nn.Module):
    """A network with its parameters; made by :func:`symgnn.nn.build`.

    `model(data)` gives `[G, outputs]` for the task "graph", `[N, outputs]` for "node",
    `[E, outputs]` for "edge" and coordinates `[N, n]` for "coordinates".
    """

    def __init__(
        self,
        network: Network,
        *,
        features: Mapping[str, int],
        embedding: Mapping[str, int],
        layers: int,
        width: Width,
        readout_layers: int,
        aggregation: Mapping[str, str],
        coordinate_maps: Sequence[CoordinateMap | None],
        task: str,
        outputs: int,
        dimension: int | None,
        engine: Reference,
    ) -> None:
        super().__init__()
        self.network, self.task, self.outputs, self.layers = network, task, outputs, layers
        self.features, self.embedding, self.dimension = dict(features), embedding, dimension
        self.engine = engine
        readout, answer = network.readout[task], ANSWERS[task]
        specs = [*network.first, *[network.layer] * layers]
        maps = [*[None] * len(network.first), *coordinate_maps]
        pool = {**aggregation, "v->u": aggregation["pool"]}
        last_width = replace(width, layers=readout_layers)

        # from the end to the start: what each block has to provide
        wanted, wants = frozenset(answer), []
        asked = used_steps(readout, frozenset(), wanted)[1] if readout else wanted
        wanted = asked
        for k, (one, psi) in enumerate(zip(reversed(specs), reversed(maps), strict=True)):
            wants.append(wanted)
            _, wanted = used_steps(one, psi.reads if psi else frozenset(), wanted)
            if network.every_layer and k < layers:
                wanted |= asked
        # from the start to the end: how wide each value is
        sizes = first_sizes(network.start, features, dimension)
        self.blocks, self.readouts = nn.ModuleList(), nn.ModuleList()
        for k, (one, psi, want) in enumerate(zip(specs, maps, reversed(wants), strict=True)):
            block = Block(one, sizes, embedding, width, aggregation, psi, want, dimension)
            self.blocks.append(block)
            sizes = block.sizes
            last = k == len(specs) - 1
            if readout and (last or (network.every_layer and k >= len(network.first) - 1)):
                inside = dict.fromkeys(embedding, outputs) if readout.forms else embedding
                out = {**inside, answer: outputs}
                head = Block(
                    readout, sizes, out, last_width, pool, None, frozenset(answer), dimension
                )
                self.readouts.append(head)
        blocks = self._blocks()
        inputs = [each for block in blocks for each in block.inputs]
        self.measure_names, self.measures = modules_of(inputs)
        moving = [block.map for block in blocks if block.map is not None]
        #: Whether anything that is given or read lives on angles.
        self.needs_angles = bool(self.features.get("a")) or any(b.needs_angles for b in blocks)
        #: Whether a coordinate map reads velocities, and all pairs of nodes.
        self.needs_velocity = any(psi.velocity for psi in moving)
        self.needs_pairs = any(psi.all_pairs for psi in moving)
        self.uses_lines = any(block.uses_lines for block in blocks)

    @property
    def symmetry(self) -> Symmetry:
        """What the model is invariant to (equivariant, for coordinates), derived from its parts."""
        return symmetry_of(self.network.start, self._blocks(), self.task == "coordinates")

    def _blocks(self) -> list[Block]:
        return [*self.blocks, *self.readouts]

    def topology(self, data: Data) -> Topology:
        """The part of `data` that can be prepared, and attached as `data.topology`."""
        return Topology.of(
            data,
            angles=self.needs_angles,
            whole=self.engine.whole,
            pairs=self.needs_pairs,
            lines=self.uses_lines,
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
        z: Tensor | None = None,
        vel: Tensor | None = None,
    ) -> Tensor:
        """Apply the model to a `Data` or `Batch`, or to its parts: `pos` and `topology`, ..."""
        if data is not None:
            if any(p is not None for p in (pos, topology, x, edge_attr, angle_attr, u, z, vel)):
                raise TypeError("forward takes a Data or Batch, or its parts, not both")
            if getattr(data, "edge_weight", None) is not None:
                raise ValueError("edge_weight: is not read; give it as edge_attr [E, 1] instead")
            topology = self.topology(data)
            pos, x, edge_attr = data.pos, data.x, data.edge_attr
            angle_attr, u = getattr(data, "angle_attr", None), getattr(data, "u", None)
            z, vel = getattr(data, "z", None), getattr(data, "vel", None)
        if pos is None or topology is None:
            raise TypeError("forward takes a Data or Batch, or pos=... and topology=...")
        check_dimension(pos, self.dimension)
        features = self.features
        if self.network.types:
            features = {**features, "v": 0}
        check_features(topology, features, x, edge_attr, angle_attr, u)
        if self.network.types:
            x = check_types(z, self.network.types, topology)
        functions = {each: self.measures[name] for each, name in self.measure_names.items()}
        answers: list[Tensor] = []
        silent = len(self.blocks) - len(self.readouts)
        engine = self.engine.session(self)
        try:
            state, scale = start(
                self.network.start, pos, topology, x, edge_attr, angle_attr, u, engine, functions
            )
            if self.needs_velocity:
                state.velocity = check_velocity(vel, state.x)
            for k, block in enumerate(self.blocks):
                state = block(state)
                if k >= silent:
                    answers.append(self._read(self.readouts[k - silent](copy(state))))
        finally:
            engine.close()
        if answers:
            return sum(answers[1:], answers[0])
        return (state.x if scale is None else state.x / scale).to(pos.dtype)

    def _read(self, state: State) -> Tensor:
        value = getattr(state, ANSWERS[self.task])
        return value.rows

    def reset_parameters(self) -> None:
        """Draw all parameters anew."""
        for block in self._blocks():
            block.reset_parameters()
        for measure in self.measures.values():
            if callable(reset := getattr(measure, "reset_parameters", None)):
                reset()

    def __repr__(self) -> str:
        count = sum(p.numel() for p in self.parameters())
        how = "equivariant" if self.task == "coordinates" else "invariant"
        return (
            f"{self.network.name}(layers={self.layers}, hidden={self.embedding['v']}, "
            f"task={self.task!r}, "
            f"outputs={self.outputs}, parameters={count}), {how} to {self.symmetry}"
        )
