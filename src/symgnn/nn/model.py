"""A stack of blocks and a read-out, for PyG's Data and Batch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import replace

import torch
from torch import Tensor, nn
from torch_geometric.data import Data
from torch_geometric.data.data import BaseData

from symgnn.geometry.part_motions import check_part
from symgnn.geometry.symmetry import Symmetry
from symgnn.graphs import Topology
from symgnn.nn.block import Block, symmetry_of, used_steps, with_after
from symgnn.nn.conformal_field import ConformalField
from symgnn.nn.coordinate_maps import CoordinateMap
from symgnn.nn.feature_checks import (
    check_dimension,
    check_features,
    check_unread_velocity,
    check_velocity,
)
from symgnn.nn.form import Width
from symgnn.nn.graph_parts import graph_of_parts
from symgnn.nn.node_types import check_types, check_unread_types
from symgnn.nn.parameters import InputModules, reset_parts
from symgnn.nn.rungs import axis_of
from symgnn.nn.spec import ANSWERS, VECTOR_TASKS, Network, first_sizes, inputs_read
from symgnn.nn.standardising import Averages, StandardisedFeatures
from symgnn.nn.state import Reference, State, start
from symgnn.nn.update import Update
from symgnn.nn.vectors import Vectors


class Model(nn.Module):
    """A network with its parameters; created by :func:`symgnn.nn.build`.

    `model(data)` returns `[G, outputs]` for the task "graph", `[N, outputs]` for "node",
    `[E, outputs]` for "edge", coordinates `[N, n]` for "coordinates", and vectors for
    "node-vectors" (`[N, n]`, or `[N, outputs, n]` for more than one) and "graph-vectors" (`[G, n]`
    or `[G, outputs, n]`), see :class:`symgnn.nn.vectors.Vectors`.

    Example:
        >>> model = symgnn.nn.build("agn", task="node", outputs=2)
        >>> model(symgnn.data.polytope("hypercube", 3)).shape
        torch.Size([8, 2])
        >>> print(model.symmetry)
        similarities, torsions, redrawings, angle flexes, permutations
    """

    def __init__(
        self,
        network: Network,
        *,
        features: Mapping[str, int],
        types: int | None = None,
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
        rays: str = "plain",
        weight: float | str | None = None,
        residual: bool = False,
        norm: bool = False,
        averages: Averages | None = None,
    ) -> None:
        super().__init__()
        self.averages = averages
        known = {} if averages is None else averages.features
        used = {value: moments for value, moments in known.items() if features[value]}
        self.standardise = nn.ModuleDict({v: StandardisedFeatures(m) for v, m in used.items()})
        axis_of(network.layer)  # raises where there are several
        self.network, self.task, self.outputs, self.layers = network, task, outputs, layers
        self.features, self.embedding, self.dimension = dict(features), embedding, dimension
        self.engine = engine
        self.field = None if weight is None else ConformalField(weight)
        self.vectors: Vectors | None = None
        if task in VECTOR_TASKS:
            velocity = any(psi is not None and psi.velocity for psi in coordinate_maps)
            of, unit = VECTOR_TASKS[task], rays == "unit"
            self.vectors = Vectors(of, outputs, layers, unit, velocity, aggregation["pool"])
        readout, answer = network.readout_of(task), ANSWERS[task]
        answers = {answer: outputs} if self.vectors is None else self.vectors.widths
        if readout is not None and self.vectors is not None:  # rays that leave have no weight
            readout = readout.replace(envelope=network.layer.envelope)
        specs = [*network.first, *[network.layer] * layers]
        maps = [*[None] * len(network.first), *coordinate_maps]
        pool = {**aggregation, "v->u": aggregation["pool"]}
        last_width = replace(width, layers=readout_layers)

        # from the end to the start: what each block has to provide
        wanted, wants = frozenset(answers), []
        asked = used_steps(readout, frozenset(), wanted)[1] if readout else wanted
        wanted = asked
        for k, (one, psi) in enumerate(zip(reversed(specs), reversed(maps), strict=True)):
            wants.append(wanted)
            _, wanted = used_steps(one, psi.reads if psi else frozenset(), wanted)
            if network.every_layer and k < layers:
                wanted |= asked
        # from the start to the end: how wide each value is
        self.types = None if types is None else nn.Embedding(types, embedding["v"])
        start_features = {**features, "v": features["v"] + (embedding["v"] if types else 0)}
        sizes = first_sizes(network.start, start_features, dimension)
        self.blocks, self.readouts = nn.ModuleList(), nn.ModuleList()
        for k, (one, psi, want) in enumerate(zip(specs, maps, reversed(wants), strict=True)):
            if k >= len(network.first):
                one = with_after(one, residual, norm, sizes, embedding)
            block = Block(one, sizes, embedding, width, aggregation, psi, want, dimension)
            self.blocks.append(block)
            sizes = block.sizes
            last = k == len(specs) - 1
            if readout and (last or (network.every_layer and k >= len(network.first) - 1)):
                inside = dict.fromkeys(embedding, outputs) if readout.forms else embedding
                out = {**inside, **answers}
                head = Block(
                    readout, sizes, out, last_width, pool, None, frozenset(answers), dimension
                )
                self.readouts.append(head)
        blocks = self._blocks()
        read = [each for block in blocks for each in block.inputs]
        self.measures = InputModules([*inputs_read(network.start, blocks[0].reads), *read])
        moving = [block.map for block in blocks if block.map is not None]
        #: Whether anything that is given or read lives on angles.
        self.needs_angles = bool(self.features.get("a")) or any(b.needs_angles for b in blocks)
        self.needs_angles |= self.field is not None  # it reads their rays
        listing = any(block.lists_angles for block in blocks)
        self._lists_angles = listing or bool(self.features.get("a"))
        #: Whether the types of the nodes, `data.z`, are read.
        self.needs_types = bool(network.types) or self.types is not None
        #: Whether a coordinate map, or the read-out of vectors, reads velocities.
        self.needs_velocity = any(psi.velocity for psi in moving) or (
            self.vectors is not None and self.vectors.velocity
        )
        #: Whether a coordinate map moves nodes within parts, `data.part`.
        self.needs_part = any(psi.within_parts for psi in moving)
        #: Whether a coordinate map reads all pairs of nodes.
        self.needs_pairs = any(psi.all_pairs for psi in moving)
        #: Whether an update computes something once for an edge and its reverse.
        self.uses_lines = any(block.uses_lines for block in blocks)
        #: Values that no option says the width of, and that this model does not read.
        self.unread = () if self.needs_types else ("z",)

    @property
    def symmetry(self) -> Symmetry:
        """The derived symmetry: invariance of scalar outputs, and equivariance of coordinates,
        vectors and conformal fields.

        Vectors transform by the derivative of a map, so they are invariant to translations.
        """
        kept = symmetry_of(self.network.start, self._blocks(), self.task == "coordinates")
        kept = kept if self.field is None else kept & self.field.symmetry
        return kept if self.vectors is None else kept & self.vectors.symmetry

    @property
    def axis(self) -> tuple[float, ...] | None:
        """The axis of UGN's heights; None for the last coordinate, or if no axis is read."""
        return axis_of(self.network.layer)

    @property
    def output_type(self) -> str | None:
        """The type of the output for an audit, such as "vector per node"; None to infer it."""
        if self.field is not None:
            return self.field.output_type
        return None if self.vectors is None else f"vector per {self.vectors.of}"

    def _blocks(self) -> list[Block]:
        return [*self.blocks, *self.readouts]

    @property
    def lists_angles(self) -> bool:
        """Whether the topology lists every angle, not only the rays."""
        return self.engine.whole and (self._lists_angles or self.engine.lists_angles)

    def topology(self, data: Data) -> Topology:
        """Compute the topology of `data`, which can be attached as `data.topology`."""
        return Topology.of(
            data,
            angles=self.needs_angles,
            whole=self.lists_angles,
            pairs=self.needs_pairs,
            lines=self.uses_lines,
        )

    def forward(
        self,
        data: Data | Tensor | None = None,
        pos: Tensor | None = None,
        edge_index: Tensor | None = None,
        edge_attr: Tensor | None = None,
        batch: Tensor | None = None,
        *,
        x: Tensor | None = None,
        z: Tensor | None = None,
        vel: Tensor | None = None,
        part: Tensor | None = None,
        angle_attr: Tensor | None = None,
        u: Tensor | None = None,
        edge_shift: Tensor | None = None,
        topology: Topology | None = None,
    ) -> Tensor:
        """Apply the model to a `Data` or `Batch`, or to tensors as PyG's layers take them.

        `model(data)`, `model(x, pos, edge_index, batch=batch)` and
        `model(z=z, pos=pos, edge_index=edge_index)` are the same computation.

        Args:
            data: A `Data` or `Batch`; or the node features x, as the first of several tensors.
            pos: Coordinates.
            edge_index: Sources and targets of the edges.
            edge_attr: Edge features, of width `edge_features` of the model.
            batch: The graph of each node; one graph if not given. The number of graphs is the
                number of rows of `u` if given, else one more than the largest value in `batch`.
            x: Node features, of width `node_features`.
            z: Types of the nodes, such as atomic numbers, for models with `node_types`.
            vel: Velocities, for coordinate maps that read them.
            angle_attr: Angle features, of width `angle_features`.
            u: Graph features, of width `graph_features`.
            edge_shift: Shifts added to the source positions of the edges, in periodic cells.
            topology: A topology of this graph, see :meth:`topology`, in place of `edge_index`.

        Shapes:
            x `[N, F]`, pos `[N, n]`, edge_index `[2, E]`, edge_attr `[E, F_e]`, batch `[N]`,
            z `[N]`, vel `[N, n]`, angle_attr `[A, F_a]`, u `[G, F_u]`, edge_shift `[E, n]`.

        Returns:
            The outputs of the task, with the shapes listed in :class:`Model`.

        Example:
            >>> import torch
            >>> from symgnn.nn import build
            >>> model = build("dgn", node_features=4, outputs=2)
            >>> x, pos = torch.randn(3, 4), torch.randn(3, 3)
            >>> edge_index = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
            >>> model(x, pos, edge_index, batch=torch.tensor([0, 0, 0])).shape
            torch.Size([1, 2])
        """
        if isinstance(data, Tensor):
            if x is not None:
                raise TypeError("x: is given twice, as the first argument and by name; give one")
            x, data = data, None
        if data is not None:
            if not isinstance(data, BaseData):
                raise TypeError(
                    f"data: is a {type(data).__name__}; give a PyG Data or Batch, or tensors: "
                    "model(x, pos, edge_index)"
                )
            parts = (pos, edge_index, edge_attr, batch, x, z, vel, angle_attr, u, part)
            if any(each is not None for each in (*parts, edge_shift, topology)):
                raise TypeError("forward takes a Data or Batch, or its parts, not both")
            if getattr(data, "edge_weight", None) is not None:
                raise ValueError("edge_weight: is not read; give it as edge_attr [E, 1] instead")
            topology = self.topology(data)
            pos, x, edge_attr = data.pos, data.x, data.edge_attr
            angle_attr, u = getattr(data, "angle_attr", None), getattr(data, "u", None)
            z, vel = getattr(data, "z", None), getattr(data, "vel", None)
            part = getattr(data, "part", None)
        else:
            pos, topology = graph_of_parts(self, pos, edge_index, batch, u, edge_shift, topology)
        check_dimension(pos, self.dimension)
        features = self.features
        if self.network.types:
            features = {**features, "v": 0}
        check_features(topology, features, x, edge_attr, angle_attr, u)
        if not self.needs_types:
            check_unread_types(z, x)
        if vel is not None and x is None and not self.needs_velocity:
            check_unread_velocity()
        x, edge_attr, angle_attr, u = self._standardised(x, edge_attr, angle_attr, u)
        if self.network.types:
            x = check_types(z, self.network.types, topology).unsqueeze(-1)
        elif self.types is not None:
            rows = self.types(check_types(z, self.types.num_embeddings, topology))
            x = rows if x is None else torch.cat([x.to(rows.dtype), rows], -1)
        answers: list[Tensor] = []
        silent = len(self.blocks) - len(self.readouts)
        engine = self.engine.session(self)
        try:
            functions = self.measures.by_input()
            state, scale = start(
                self.network.start, pos, topology, x, edge_attr, angle_attr, u, engine, functions
            )
            if self.needs_velocity:
                state.velocity = check_velocity(vel, state.x, scale)
            if self.needs_part:
                state.part = None if part is None else check_part(part, len(state.x))
            for k, block in enumerate(self.blocks):
                state = block(state)
                if k >= silent:
                    answers.append(self._read(self.readouts[k - silent](copy(state)), pos))
        finally:
            engine.close()
        if answers:
            return sum(answers[1:], answers[0])
        return (state.position if scale is None else state.position / scale).to(pos.dtype)

    def _standardised(self, *given: Tensor | None) -> list[Tensor | None]:
        """The features x, edge_attr, angle_attr and u, standardised by the averages."""
        values = list(given)
        for number, value in enumerate("veau"):
            rows = values[number]
            if rows is not None and value in self.standardise:
                values[number] = self.standardise[value](rows)
        return values

    def _read(self, state: State, pos: Tensor) -> Tensor:
        if self.vectors is not None:
            return self.vectors(state, pos)
        value = getattr(state, ANSWERS[self.task])
        rows: Tensor = value.rows
        return rows if self.field is None else self.field(rows, state, pos)

    def reset_parameters(self) -> None:
        """Re-initialise all parameters."""
        reset_parts(self)

    @torch.no_grad()
    def calibrate(self, data: Data) -> Model:
        """Rescale the weights, one update after the other, so that the values of each update have
        a root mean square of 1 on these graphs; for a network that is not trained yet.

        Args:
            data: A graph or batch in the form that the model reads.

        Returns:
            The model itself.
        """
        updates = [each for each in self.modules() if isinstance(each, Update)]
        hooks = [each.register_forward_pre_hook(_calibrate) for each in updates]
        engine, training, self.engine = self.engine, self.training, Reference()
        try:
            self.eval()
            self(data)
        finally:
            self.engine = engine
            self.train(training)
            for hook in hooks:
                hook.remove()
        return self

    def __repr__(self) -> str:
        count = sum(p.numel() for p in self.parameters())
        turns = self.task == "coordinates" or self.vectors is not None or self.field is not None
        how = "equivariant" if turns else "invariant"
        return (
            f"{self.network.name}(layers={self.layers}, hidden={self.embedding['v']}, "
            f"task={self.task!r}, "
            f"outputs={self.outputs}, parameters={count}"
            f"{'' if self.averages is None else f', {self.averages}'}), {how} to {self.symmetry}"
        )


def _calibrate(update: Update, given: tuple[State]) -> None:
    update.calibrate(*given)
