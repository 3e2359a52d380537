"""Cases of the tests test_oracle, test_oracle_graphs, test_oracle_itself."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor
from torch_geometric.data import Batch, Data

from nn.oracle import Oracle
from symgnn.graphs import Topology
from symgnn.nn import DGN, EGCN, Model, NeighbourSum, build, reduce
from symgnn.nn.inputs import e, position, u, v

TOLERANCE = 1e-10


#: Reads coordinates in every layer, so that a shift or a rotation in an earlier one shows.
DGN_POSITION = DGN.replace(name="DGN+position", node=[reduce(e), v, position, u])


MOVEMENTS = ("e->v", "a->v", "a->e", "v->u", "e->u", "a->u", "x->v", "x->u", "pool")


MIXED = dict(
    zip(MOVEMENTS, ("sum", "max", "sum", "mean", "max", "sum", "max", "max", "sum"), strict=True)
)


AGGREGATIONS = {"sum": "sum", "mean": "mean", "max": "max", "mixed": MIXED}


WITH_ANGLES = ["agn", "agn+edges", "agn+distances", "agn-to-edges", "combined", "cgn"]


# ------------------------------------------------------------------ cases


@dataclass(frozen=True)
class Case:
    """One model and one graph, or several joined by +, with all that is random in it seeded."""

    architecture: str = "dgn"
    aggregation: str | dict[str, str] = "mean"
    task: str = "graph"
    coordinate_map: str = "identity"
    graph: str = "directed"
    dimension: int = 3
    layers: int = 2
    mlp_layers: int = 1
    readout_layers: int | None = None
    mlp_hidden: int = 4
    node: int = 2
    edge: int = 2
    angle: int = 0
    u: int = 2
    scaling: float | None = None
    max_growth: float | None = 100.0
    chunk: int | None = None
    outputs: int = 2
    rays: str | None = None
    seed: int = 0

    @property
    def angle_features(self) -> int:
        """Only where there are angles: a model without refuses them."""
        return self.angle if self.architecture in WITH_ANGLES else 0

    @property
    def valid(self) -> bool:
        """Whether `build` takes it."""
        still = self.task == "coordinates" and self.coordinate_map == "identity"
        angles_of_pairs = self.architecture == "agn-to-edges" and self.coordinate_map == "egcn"
        return not still and not angles_of_pairs

    def model(self) -> Model:
        """With all parameters drawn from a normal distribution, so that everything has a say."""
        psi = self.coordinate_map
        if self.max_growth != 100 and psi == "neighbour-sum":
            psi = NeighbourSum(max_growth=self.max_growth)
        elif self.max_growth != 100:
            over = {"egcn": "all", "egcn-neighbours": "neighbours"}[psi]
            psi = EGCN(over, max_growth=self.max_growth)
        name = self.architecture
        model = build(
            DGN_POSITION if name == "dgn+position" else name,
            task=self.task,
            outputs=self.outputs,
            node_features=self.node,
            edge_features=self.edge,
            angle_features=self.angle_features,
            graph_features=self.u,
            dimension=self.dimension,
            hidden=3,
            layers=self.layers,
            mlp_hidden=self.mlp_hidden,
            mlp_layers=self.mlp_layers,
            readout_layers=self.readout_layers,
            aggregation=self.aggregation,
            coordinate_map=psi,
            scaling=self.scaling,
            chunk=self.chunk,
            rays=self.rays,
        ).double()
        random = torch.Generator().manual_seed(self.seed)
        with torch.no_grad():
            for name, p in model.named_parameters():
                drawn = torch.randn(p.shape, generator=random, dtype=p.dtype)
                if name.endswith("coefficients"):
                    p.add_(0.5 * drawn)
                else:  # sums, and coordinates that move, grow: hold them within a few powers of ten
                    gain = (
                        0.3 if ".map." in name else 0.6 if "sum" in str(self.aggregation) else 1.4
                    )
                    p.copy_(gain * drawn / p.shape[1] ** 0.5 if p.dim() == 2 else 0.3 * drawn)
        return model

    def data(self) -> Data:
        """Leaves that require gradients; `Batch` where the case has several graphs."""
        random = torch.Generator().manual_seed(self.seed + 1)
        kinds = self.graph.split("+")
        graphs = [self._one(kind, random) for kind in kinds]
        data = Batch.from_data_list(graphs) if len(graphs) > 1 else graphs[0]
        if self.angle_features:
            count = Topology.of(data).num_angles
            shape = (count, self.angle_features)
            data.angle_attr = torch.randn(shape, generator=random, dtype=torch.float64)
        for value in leaves(data).values():
            value.requires_grad_()
        return data

    def _one(self, kind: str, random: torch.Generator) -> Data:
        def normal(*shape: int) -> Tensor:
            return torch.randn(shape, generator=random, dtype=torch.float64)

        nodes, edges = GRAPHS[kind](random)
        edge_index = torch.tensor(edges, dtype=torch.int64).reshape(-1, 2).t().contiguous()
        return Data(
            pos=normal(nodes, self.dimension),
            edge_index=edge_index,
            x=normal(nodes, self.node) if self.node else None,
            edge_attr=normal(len(edges), self.edge) if self.edge else None,
            u=normal(1, self.u) if self.u else None,
            num_nodes=nodes,
        )

    def oracle(self, model: Model, kind: type[Oracle] = Oracle, **changes: object) -> Oracle:
        options = {
            "task": self.task,
            "aggregation": self.aggregation,
            "coordinate_map": self.coordinate_map,
            "scaling": self.scaling or 1.0,
            "max_growth": self.max_growth,
            "rays": self.rays or "plain",
        }
        return kind(model, self.architecture, **options | changes)


def _directed(random: torch.Generator, nodes: int = 5, share: float = 0.45) -> tuple[int, list]:
    pairs = list(itertools.permutations(range(nodes), 2))
    drawn = torch.rand(len(pairs), generator=random).tolist()
    edges = [pair for pair, number in zip(pairs, drawn, strict=True) if number < share]
    return nodes, [edges[r] for r in torch.randperm(len(edges), generator=random).tolist()]


def _undirected(random: torch.Generator) -> tuple[int, list]:
    nodes, edges = _directed(random, 5, 0.3)
    return nodes, sorted({*edges, *((i, j) for j, i in edges)})


def _multigraph(random: torch.Generator) -> tuple[int, list]:
    """Parallel edges, some of them opposite, two self-loops, in any order, and a lone node."""
    _, edges = _directed(random, 5, 0.35)
    (j, i), *_ = edges
    edges = [*edges, (j, i), (j, i), *edges[-2:], (i, j), (i, i), (j, j)]
    return 6, [edges[r] for r in torch.randperm(len(edges), generator=random).tolist()]


def _isolated(random: torch.Generator) -> tuple[int, list]:
    """Nodes 1 and 4 have no edges, and node 6 hangs on node 0."""
    _, edges = _directed(random, 4, 0.6)
    rename = (0, 2, 3, 5)
    return 7, [(rename[j], rename[i]) for j, i in edges] + [(6, 0)]


GRAPHS: dict[str, Callable[[torch.Generator], tuple[int, list]]] = {
    "directed": _directed,
    "undirected": _undirected,
    "multigraph": _multigraph,
    "isolated": _isolated,
    "small": lambda random: _directed(random, 4, 0.6),
    "complete": lambda random: (4, list(itertools.permutations(range(4), 2))),
    # a hub and a ring: all degrees are at least 3, and not all pairs are joined
    "wheel": lambda random: (
        5,
        [(0, 1), (2, 0), (0, 3), (3, 0), (4, 0), (1, 2), (3, 2), (2, 3), (3, 4), (4, 1)],
    ),
    "path": lambda random: (4, [(0, 1), (2, 1), (2, 3)]),
    "star": lambda random: (5, [(0, 1), (2, 0), (0, 3), (3, 0), (4, 0)]),
    "pair": lambda random: (2, [(1, 0)]),
    "loop": lambda random: (1, [(0, 0)]),
    "single": lambda random: (1, []),
    "edgeless": lambda random: (3, []),
    "empty": lambda random: (0, []),
}


def leaves(data: Data) -> dict[str, Tensor]:
    """What gradients are taken with respect to, beside the parameters."""
    given = {name: getattr(data, name, None) for name in ("pos", "x", "edge_attr")}
    given |= {name: getattr(data, name, None) for name in ("angle_attr", "u")}
    return {name: value for name, value in given.items() if value is not None}


# ------------------------------------------------------------------ the comparison


def results(function: Callable[[Data], Tensor], model: Model, data: Data) -> dict[str, Tensor]:
    """The output, and the gradients of a random projection of it."""
    out = function(data)
    inputs = {f"d {name}": value for name, value in leaves(data).items()}
    # a weight without entries need not ask for gradients
    inputs |= {f"d {name}": p for name, p in model.named_parameters() if p.numel()}
    random = torch.Generator().manual_seed(99)
    loss = (out * torch.randn(out.shape, generator=random, dtype=out.dtype)).sum()
    if loss.requires_grad:
        grads = torch.autograd.grad(loss, list(inputs.values()), allow_unused=True)
    else:
        grads = [None] * len(inputs)
    there = zip(inputs.items(), grads, strict=True)
    zeros = {name: torch.zeros_like(p) if g is None else g for (name, p), g in there}
    return {"output": out.detach(), **zeros}


def disagreement(got: dict[str, Tensor], expected: dict[str, Tensor]) -> tuple[float, str]:
    """The largest error and where it is.

    An error is relative to the largest entry of its tensor; for a gradient that is small (it may
    be 0 but for rounding), to a hundredth of the largest gradient.
    """
    assert got.keys() == expected.keys()
    steepest = max(
        (g.abs().max().item() for g in list(expected.values())[1:] if g.numel()), default=0.0
    )
    errors = [(0.0, "nothing")]
    for name, value in expected.items():
        assert got[name].shape == value.shape, name
        if not value.numel():
            continue
        scale = value.abs().max().item()
        if name != "output":
            scale = max(scale, 0.01 * steepest)
        error = (got[name] - value).abs().max().item() / (scale or 1.0)
        errors.append((math.inf if math.isnan(error) else error, name))
    return max(errors)


def check(
    case: Case,
    data: Data | None = None,
    model: Model | None = None,
    tolerance: float = TOLERANCE,
) -> dict[str, Tensor]:
    """Compare the model with the oracle; gives what the oracle says."""
    model = model if model is not None else case.model()
    data = data if data is not None else case.data()
    angle_index = Topology.of(data).angle_index
    expected = results(lambda d: case.oracle(model)(d, angle_index), model, data)
    error, where = disagreement(results(model, model, data), expected)
    assert error < tolerance, f"{case}: {where} is off by {error:.2e} of its scale"
    return expected
