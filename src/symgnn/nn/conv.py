"""Single blocks with the calling style of PyG's layers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from torch import Tensor, nn

from symgnn._argument_checks import check_count, check_rate
from symgnn.geometry.symmetry import Symmetry
from symgnn.graphs import Topology
from symgnn.graphs.checks import check_positions
from symgnn.nn._engine.engine import engine_of
from symgnn.nn.architectures import AGN, CGN, COMBINED, DGN, GN, SDGN
from symgnn.nn.block import Block, symmetry_of
from symgnn.nn.coordinate_maps import CoordinateMap
from symgnn.nn.feature_checks import check_dimension, check_features, check_velocity
from symgnn.nn.form import Width
from symgnn.nn.inputs import DOMAIN_OF
from symgnn.nn.named_networks import aggregations, coordinate_map_of, spec_of, widths_of
from symgnn.nn.parameters import InputModules, reset_parts
from symgnn.nn.spec import Spec, check_inputs, first_sizes, inputs_read
from symgnn.nn.state import Reference, start


class Conv(nn.Module):
    """One block as a layer: `conv(x, pos, edge_index, edge_attr=None, batch=None)`.

    Returns the new node features `[N, out_channels]`; with a coordinate map other than the
    identity, the pair of node features and new coordinates `[N, n]`.

    Args:
        architecture: A name or a specification, as for :func:`symgnn.nn.build`.
        in_channels: Width of `x`; 0 without node features (every node then starts with 1).
        out_channels: Width of the new node features.
        edge_dim: Width of `edge_attr`; None without edge features.
        hidden: Width of the block's edge and angle embeddings, or one for each domain.
        mlp_hidden: Width of the MLPs, or one for each domain; as `hidden` if not given.
        mlp_layers: How many hidden layers each MLP has.
        dropout: Rate of the dropout after each hidden layer.
        aggregation: As for :func:`symgnn.nn.build`.
        coordinate_map: As for :func:`symgnn.nn.build`.
        dimension: The number of coordinates; needed by blocks that read raw coordinates (GN).
        chunk: The maximum number of angles in memory at once; None for no limit.
        engine: As for :func:`symgnn.nn.build`.

    Shapes:
        x `[N, in_channels]`, pos `[N, n]`, edge_index `[2, E]`, edge_attr `[E, edge_dim]`,
        batch `[N]` -> `[N, out_channels]`, with a coordinate map also `[N, n]`.

    Example:
        >>> cube = symgnn.data.polytope("hypercube", 3)
        >>> conv = symgnn.nn.Conv("dgn", 4, 16)
        >>> conv(torch.randn(8, 4), cube.pos, cube.edge_index).shape
        torch.Size([8, 16])
    """

    def __init__(
        self,
        architecture: str | Spec,
        in_channels: int,
        out_channels: int,
        *,
        edge_dim: int | None = None,
        hidden: int | Mapping[str, int] = 64,
        mlp_hidden: int | Mapping[str, int] | None = None,
        mlp_layers: int = 1,
        dropout: float = 0.0,
        aggregation: str | Mapping[str, str] = "sum",
        coordinate_map: str | CoordinateMap = "identity",
        dimension: int | None = None,
        chunk: int | None = None,
        engine: str | Reference = "fast",
    ) -> None:
        super().__init__()
        self.spec = spec_of(architecture)
        check_count("in_channels", in_channels, 0)
        check_count("out_channels", out_channels, 1)
        for name, value in (("edge_dim", edge_dim), ("dimension", dimension), ("chunk", chunk)):
            if value is not None:
                check_count(name, value, 0 if name == "edge_dim" else 1)
        self.dimension = dimension
        self.in_channels, self.out_channels = in_channels, out_channels
        self.features = {"v": in_channels, "e": edge_dim or 0}
        self.engine = engine_of(engine, chunk)
        embedding = widths_of("hidden", hidden, 64)
        widths = widths_of("mlp_hidden", hidden if mlp_hidden is None else mlp_hidden, embedding)
        psi = coordinate_map_of(coordinate_map)
        self.block = Block(
            self.spec,
            first_sizes(self.spec, self.features, dimension),
            {**{value: embedding[d] for value, d in DOMAIN_OF.items()}, "v": out_channels},
            Width(widths, check_count("mlp_layers", mlp_layers, 0), check_rate("dropout", dropout)),
            aggregations(aggregation),
            psi,
            frozenset("v" if psi is None else "vx"),
            dimension,
        )
        if "node" not in self.block.steps:
            raise ValueError(
                f"architecture: {self.spec.name} has no node update, so a layer of it would give "
                f"no out_channels={out_channels}; add node=[...] to the specification"
            )
        if self.block.sizes["v"] != out_channels:
            raise ValueError(
                f"out_channels: is {out_channels}, but the form of the node update gives "
                f"{self.block.sizes['v']}; give that"
            )
        check_inputs(self.spec, "in_channels", in_channels)
        start_inputs = inputs_read(self.spec, self.block.reads)
        self.measures = InputModules([*start_inputs, *self.block.inputs])

    @property
    def symmetry(self) -> Symmetry:
        """Transformations under which features are invariant and coordinates equivariant."""
        return symmetry_of(self.spec, [self.block], self.block.map is not None)

    def forward(
        self,
        x: Tensor | None,
        pos: Tensor,
        edge_index: Tensor,
        edge_attr: Tensor | None = None,
        batch: Tensor | None = None,
        *,
        vel: Tensor | None = None,
        topology: Topology | None = None,
    ) -> Tensor | tuple[Tensor, Tensor]:
        """Apply the block; pass `topology` if several layers or steps share it."""
        if topology is None:
            check_positions(pos)
            topology = Topology.build(
                edge_index,
                len(pos),
                batch,
                angles=self.block.needs_angles,
                whole=self.engine.whole and (self.engine.lists_angles or self.block.lists_angles),
                pairs=self.block.map is not None and self.block.map.all_pairs,
                lines=self.block.uses_lines,
            )
        else:
            topology.check(edge_index, batch)
        check_dimension(pos, self.dimension)
        options = ("in_channels", "edge_dim", "", "")
        check_features(topology, self.features, x, edge_attr, options=options)
        functions = self.measures.by_input()
        engine = self.engine.session(self)
        try:
            state, scale = start(
                self.spec, pos, topology, x, edge_attr, engine=engine, functions=functions
            )
            if self.block.map is not None and self.block.map.velocity:
                state.velocity = check_velocity(vel, state.x, scale)
            state = self.block(state)
            assert state.v is not None
            rows = state.v.rows
        finally:
            engine.close()
        if self.block.map is None:
            return rows
        return rows, (state.position if scale is None else state.position / scale).to(pos.dtype)

    def reset_parameters(self) -> None:
        """Re-initialise all parameters."""
        reset_parts(self)

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}({self.in_channels}, {self.out_channels}), "
            f"invariant to {self.symmetry}"
        )


class _Named(Conv):
    """A :class:`Conv` whose architecture is that of its name."""

    of: ClassVar[Spec]

    def __init__(self, in_channels: int, out_channels: int, **options: object) -> None:
        super().__init__(self.of, in_channels, out_channels, **options)  # type: ignore[arg-type]


class GNConv(_Named):
    """The standard graph network block; it reads coordinates and needs `dimension=n`."""

    of = GN


class DGNConv(_Named):
    """The distance preserving block."""

    of = DGN


class SDGNConv(_Named):
    """The distance preserving block on coordinates scaled by the longest edge."""

    of = SDGN


class AGNConv(_Named):
    """The angle preserving block."""

    of = AGN


class CombinedConv(_Named):
    """The block that reads distances and angles."""

    of = COMBINED


class CGNConv(_Named):
    """The conformal block."""

    of = CGN
