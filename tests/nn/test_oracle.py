"""The fast models against the paper's equations in plain loops (`oracle.py`).

Outputs, and gradients with respect to all parameters, the coordinates and all input features, agree
to 1e-10 of their scale in float64. The cross product of architectures and aggregations is complete;
the rest is covered in pairs, and at random by hypothesis.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch_geometric.data import Batch, Data

from nn import oracle
from nn.oracle import Oracle
from symgnn.graphs import Topology
from symgnn.nn import ARCHITECTURES, COORDINATE_MAPS, DGN, EGCN, Model, NeighbourSum, build, reduce
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
MOVING = [name for name in COORDINATE_MAPS if name != "identity"]


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


def matters(expected: dict[str, Tensor], part: str) -> None:
    """Assert that the gradients of all parameters of a part are clearly there."""
    found = {name: g.abs().max().item() for name, g in expected.items() if part in name}
    assert found, f"the model has no {part}"
    assert min(found.values()) > 1e-8, found


# ------------------------------------------------------------------ architectures, aggregations


def test_the_oracle_has_all_architectures_and_maps() -> None:
    assert set(ARCHITECTURES) == set(oracle.BLOCKS) - {"dgn+position"}
    known = {"identity", "scale", "scale-u", "shift", "shift-u", "rigid", "rigid-u"}
    assert set(COORDINATE_MAPS) == known | {"neighbour-sum", "egcn", "egcn-neighbours"}


@pytest.mark.parametrize("aggregation", AGGREGATIONS)
@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_architectures_and_aggregations(architecture: str, aggregation: str) -> None:
    case = Case(architecture, AGGREGATIONS[aggregation], graph="multigraph", angle=2, seed=3)
    expected = check(case)
    # every weight and every input has a say
    assert not {name for name, g in expected.items() if not g.abs().max() > 0}


@pytest.mark.parametrize("task", ["graph", "node", "edge", "coordinates"])
@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_tasks(architecture: str, task: str) -> None:
    psi = "neighbour-sum" if task == "coordinates" else "identity"
    check(Case(architecture, "sum", task, psi, "small+isolated", angle=1, seed=5))


@pytest.mark.parametrize("task", ["node-vectors", "graph-vectors"])
@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_vectors(architecture: str, task: str) -> None:
    """Over the rays of the input coordinates, also where the network scales or moves them."""
    case = Case(architecture, "sum", task, "neighbour-sum", "small+isolated", seed=5)
    expected = check(case)
    assert expected["output"].shape[1:] == (2, 3)
    case = replace(case, coordinate_map="identity", graph="multigraph", layers=3, outputs=1)
    expected = check(replace(case, aggregation="mean", rays="unit", dimension=2))
    assert expected["output"].shape[1:] == (2,)
    matters(expected, "readouts.0.updates.edge")
    if task == "graph-vectors":  # but for its last bias: a constant charge adds nothing
        matters(expected, "readouts.0.updates.node.phi.linears.1.weight")


@pytest.mark.parametrize("dimension", [1, 2, 5])
@pytest.mark.parametrize("layers", [1, 2])
def test_vectors_in_any_dimension_and_in_chunks(dimension: int, layers: int) -> None:
    case = Case("agn", "sum", "node-vectors", graph="wheel+single+edgeless", layers=layers)
    case = replace(case, dimension=dimension, chunk=3)
    check(case)
    check(replace(case, task="graph-vectors", graph="star+pair+single", rays="unit", seed=2))


@pytest.mark.parametrize("layers", [1, 3])
@pytest.mark.parametrize("architecture", ["gn", "dgn", "agn", "agn-to-edges", "agn-raw"])
def test_layers(architecture: str, layers: int) -> None:
    aggregation = "mean" if layers == 1 else MIXED
    check(Case(architecture, aggregation, graph="small", layers=layers, seed=7))


@pytest.mark.parametrize("aggregation", AGGREGATIONS)
@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_last_maps_folded_into_the_next_layer(architecture: str, aggregation: str) -> None:
    """The last map of edges and angles is not applied to them where it does not make them fewer."""
    case = Case(architecture, AGGREGATIONS[aggregation], graph="multigraph", angle=2, seed=4)
    case = replace(case, layers=3, mlp_hidden=2, coordinate_map="neighbour-sum")
    model = case.model()
    applied = []
    for block in model.blocks:
        for domain in {"edge", "angle"} & set(block.updates):
            last = block.updates[domain].phi.last
            last.register_forward_hook(lambda *args: applied.append(args))
    check(case, model=model)
    if "max" not in str(AGGREGATIONS[aggregation]):
        assert bool(applied) == (architecture == "agn+edges")  # which reads edges on its rays
    check(replace(case, mlp_layers=2, chunk=3 if architecture in WITH_ANGLES else None))


# ------------------------------------------------------------------ coordinate maps


@pytest.mark.parametrize("task", ["graph", "coordinates"])
@pytest.mark.parametrize("coordinate_map", COORDINATE_MAPS)
@pytest.mark.parametrize("architecture", ["dgn", "sdgn", "agn+edges", "cgn", "dgn+position"])
def test_coordinate_maps(architecture: str, coordinate_map: str, task: str) -> None:
    case = Case(architecture, "mean", task, coordinate_map, "wheel", layers=3, seed=11)
    if not case.valid:
        with pytest.raises(ValueError, match="come out as they went in"):
            case.model()
        return
    expected = check(case)
    moves_nodes_apart = "neighbour" in coordinate_map or coordinate_map == "egcn"
    if coordinate_map != "identity" and (
        task == "coordinates" or moves_nodes_apart or architecture == "dgn+position"
    ):
        # the last layer's map is only there if coordinates come out
        last = 2 if task == "coordinates" else 1
        for layer in range(last + 1):
            matters(expected, f"blocks.{layer}.map")


@pytest.mark.parametrize("graph", ["multigraph", "isolated", "single+pair+complete"])
@pytest.mark.parametrize("coordinate_map", ["neighbour-sum", "egcn", "egcn-neighbours", "rigid-u"])
@pytest.mark.parametrize("task", ["graph", "coordinates"])
def test_coordinate_maps_and_graphs(coordinate_map: str, graph: str, task: str) -> None:
    check(Case("combined", "sum", task, coordinate_map, graph, layers=2, seed=13))


@pytest.mark.parametrize("coordinate_map", MOVING)
def test_coordinate_maps_of_nothing(coordinate_map: str) -> None:
    """No features at all: the first layer has no e and no u that a map could read."""
    case = Case("dgn", "sum", "coordinates", coordinate_map, "small+path", node=0, edge=0, u=0)
    check(case)
    check(replace(case, architecture="gn", mlp_layers=0))


def test_all_pairs_read_no_angles() -> None:
    with pytest.raises(ValueError, match="reads no angles"):
        Case("agn-to-edges", coordinate_map="egcn").model()


def test_small_turns() -> None:
    case = Case("dgn", task="coordinates", coordinate_map="rigid", dimension=2, layers=1)
    model = case.model()
    torch.nn.init.constant_(model.blocks[0].map.coefficients, 0.049)
    check(case, model=model)


@pytest.mark.parametrize("task", ["graph", "coordinates"])
@pytest.mark.parametrize("coordinate_map", ["neighbour-sum", "egcn", "egcn-neighbours"])
@pytest.mark.parametrize("architecture", ["dgn", "sdgn", "agn"])
def test_bounded_growth(architecture: str, coordinate_map: str, task: str) -> None:
    """A bound that acts on some of the graphs and not on others, against the loops' bound."""
    graph = "complete+single+small+edgeless"
    case = Case(architecture, "mean", task, coordinate_map, graph, layers=3, seed=17)

    def widening(max_growth: float | None) -> Model:
        """phi_x is near 1 or -1, so that nodes move away from each other."""
        model = replace(case, max_growth=max_growth).model()
        for block in model.blocks:
            if block.map is not None:
                sign = -1.0 if coordinate_map == "neighbour-sum" else 1.0
                torch.nn.init.constant_(block.map.update.phi.linears[-1].bias, sign)
        return model

    data = case.data()
    free = check(replace(case, max_growth=None), data, widening(None))
    for max_growth in (1.0, 3.0):
        bound = check(replace(case, max_growth=max_growth), data, widening(max_growth))
        acts = disagreement(bound, free)[0] > 1e-3
        # a common factor is nothing to angles
        assert acts == (architecture != "agn" or task == "coordinates")
    unbound, far = widening(None), widening(1e9)
    error, where = disagreement(results(far, far, data), results(unbound, unbound, data))
    assert error == 0, f"{where} has changed by {error:.1e}, but the bound is far"


# ------------------------------------------------------------------ graphs, dimensions, values


@pytest.mark.parametrize("dimension", range(1, 7))
@pytest.mark.parametrize(
    ("architecture", "coordinate_map", "task"),
    [
        ("gn", "identity", "graph"),
        ("dgn+position", "rigid", "graph"),
        ("sdgn", "shift-u", "coordinates"),
        ("agn", "neighbour-sum", "node"),
        ("agn+distances", "identity", "edge"),
        ("cgn", "rigid-u", "coordinates"),
        ("cgn", "egcn", "graph"),
    ],
)
def test_dimensions(architecture: str, coordinate_map: str, task: str, dimension: int) -> None:
    check(Case(architecture, "mean", task, coordinate_map, "small", dimension, seed=dimension))


@pytest.mark.parametrize("graph", [name for name in GRAPHS if name != "empty"])
@pytest.mark.parametrize(
    ("architecture", "aggregation"),
    [
        ("gn", "mean"),
        ("sdgn", "max"),
        ("agn+edges", "mean"),
        ("agn-to-edges", "max"),
        ("cgn", "sum"),
    ],
)
def test_graphs(architecture: str, aggregation: str, graph: str) -> None:
    check(Case(architecture, aggregation, graph=graph, angle=1, seed=19))
    if graph not in ("directed", "undirected", "multigraph"):  # small ones, the other tasks too
        for task in ("node", "edge", "coordinates"):
            psi = "neighbour-sum" if task == "coordinates" else "identity"
            check(Case(architecture, "max", task, psi, graph, seed=23))


@pytest.mark.parametrize("graph", ["multigraph", "directed", "isolated", "undirected"])
@pytest.mark.parametrize("seed", range(3))
def test_angles_are_those_of_the_definition(graph: str, seed: int) -> None:
    data = Case(graph=f"{graph}+star+{graph}", seed=seed).data()
    found = [tuple(angle) for angle in Topology.of(data).angle_index.t().tolist()]
    expected = [angle for one in oracle.graphs_of(data) for angle in one.angles()]
    assert sorted(found) == sorted(expected)
    assert len(found) == len(set(found)) > 0


BATCH = "small+single+multigraph+empty+pair+isolated+edgeless+complete"


@pytest.mark.parametrize("task", ["graph", "coordinates"])
@pytest.mark.parametrize("architecture", ["gn", "sdgn", "agn+edges", "agn-to-edges", "cgn"])
def test_batches(architecture: str, task: str) -> None:
    """A batch of graphs of different size: the oracle, and the model on one at a time."""
    psi = "neighbour-sum" if task == "coordinates" else "identity"
    for aggregation in ("max", "mean"):
        case = Case(architecture, aggregation, task, psi, BATCH, seed=29)
        check(case)
        model, batch = case.model(), case.data()
        together = results(model, model, batch)["output"]
        apart = torch.cat([model(one) for one in batch.to_data_list()])
        assert (together - apart).abs().max() < TOLERANCE * apart.abs().max()


@pytest.mark.parametrize("architecture", ["dgn", "agn", "cgn"])
def test_nodes_of_a_batch_in_any_order(architecture: str) -> None:
    """A `batch` vector that is not sorted, as it may come without PyG's `Batch`."""
    for task, psi in (("graph", "egcn"), ("coordinates", "egcn"), ("edge", "neighbour-sum")):
        case = Case(architecture, MIXED, task, psi, "small+path+complete", angle=1, seed=31)
        data = case.data()
        order = torch.randperm(len(data.pos), generator=torch.Generator().manual_seed(0))
        place = torch.argsort(order)
        mixed = Data(
            pos=data.pos.detach()[order],
            x=data.x.detach()[order],
            edge_index=place[data.edge_index],
            edge_attr=data.edge_attr.detach(),
            u=data.u.detach(),
            batch=data.batch[order],
        )
        assert (mixed.batch.diff() < 0).any()
        if case.angle_features:  # now of other angles, which is as good
            mixed.angle_attr = data.angle_attr.detach()
        for value in leaves(mixed).values():
            value.requires_grad_()
        check(case, mixed)


def test_angle_features_are_batched_with_their_angles() -> None:
    case = Case("agn", "sum", angle=2, seed=37)
    star, path = replace(case, graph="star").data(), replace(case, graph="path").data()
    model = case.model()
    together, apart = model(Batch.from_data_list([star, path])), [model(star), model(path)]
    assert (together - torch.cat(apart)).abs().max() < TOLERANCE * together.abs().max()


@pytest.mark.parametrize("architecture", ["gn", "dgn", "agn+edges", "agn-to-edges"])
@pytest.mark.parametrize("present", list(itertools.product([0, 1], repeat=3)), ids=str)
def test_values_that_are_there_or_not(architecture: str, present: tuple[int, ...]) -> None:
    node, edge, u = present
    for angle in (0, 1) if architecture in WITH_ANGLES else (0,):
        case = Case(architecture, "mean", graph="small", seed=41)
        check(replace(case, node=2 * node, edge=3 * edge, angle=angle, u=2 * u))


def test_angle_features_that_nobody_reads() -> None:
    """Refused by `build` where the specification has no use for them, else taken and ignored."""
    for architecture in ("gn", "dgn", "agn-raw"):
        with pytest.raises(ValueError, match=r"angle_features: is 1, but .* reads no a"):
            build(architecture, dimension=3, angle_features=1)
    case = Case("agn", task="coordinates", coordinate_map="egcn", layers=1, angle=2)
    with_, without = case.data(), replace(case, angle=0)
    model = case.model()
    expected = without.model()
    expected.load_state_dict(model.state_dict())
    plain = with_.clone()
    plain.angle_attr = None
    assert torch.equal(model(with_), expected(plain))


@pytest.mark.parametrize("architecture", ARCHITECTURES)
@pytest.mark.parametrize("aggregation", ["mean", "max"])
def test_coordinates_alone(architecture: str, aggregation: str) -> None:
    """No features of any kind, as in the paper's polytopes."""
    check(Case(architecture, aggregation, graph="undirected+path", node=0, edge=0, u=0, seed=43))


@pytest.mark.parametrize("mlp_layers", [0, 1, 2, 3])
@pytest.mark.parametrize("aggregation", ["sum", "mean", "max"])
@pytest.mark.parametrize("architecture", ["dgn", "agn+edges", "agn-to-edges"])
def test_depth_of_phi(architecture: str, aggregation: str, mlp_layers: int) -> None:
    case = Case(architecture, aggregation, graph="small+star", mlp_layers=mlp_layers, seed=47)
    check(replace(case, coordinate_map="neighbour-sum"))


@pytest.mark.parametrize("readout_layers", [0, 1, 2])
@pytest.mark.parametrize("task", ["graph", "node", "edge"])
def test_depth_of_the_read_out(task: str, readout_layers: int) -> None:
    case = Case("agn", "mean", task, mlp_layers=1, readout_layers=readout_layers, seed=49)
    head = [p for name, p in case.model().named_parameters() if name.startswith("readouts.")]
    plain = replace(case, readout_layers=None).model()
    before = [p for name, p in plain.named_parameters() if name.startswith("readouts.")]
    mlps = 2 if task == "graph" else 1
    assert len(head) - len(before) == 2 * mlps * (readout_layers - 1)
    check(case)


@pytest.mark.parametrize("scaling", [0.3, 1.0, 7.0])
@pytest.mark.parametrize("task", ["graph", "coordinates"])
def test_scaling(scaling: float, task: str) -> None:
    for psi in ("neighbour-sum", "scale", "shift", "egcn"):
        check(
            Case("sdgn", "mean", task, psi, "small+edgeless+multigraph", scaling=scaling, seed=53)
        )


@pytest.mark.parametrize("aggregation", AGGREGATIONS)
@pytest.mark.parametrize("architecture", WITH_ANGLES)
def test_chunks(architecture: str, aggregation: str) -> None:
    """A chunk of 7 angles (a vertex of degree 3 has 6) changes neither values nor gradients."""
    case = Case(architecture, AGGREGATIONS[aggregation], graph="small+isolated", angle=1, seed=59)
    chunked, data = replace(case, chunk=7).model(), case.data()
    assert len(Topology.of(data).cuts(7)) > 1
    expected = check(case)
    error, where = disagreement(results(chunked, chunked, data), expected)
    assert error < TOLERANCE, f"{case}, chunk=7: {where} is off by {error:.2e} of its scale"
    with torch.no_grad():
        assert (chunked(data) - expected["output"]).abs().max() < TOLERANCE


def test_parts_of_a_graph() -> None:
    """`model(pos=..., topology=...)` is `model(data)`."""
    case = Case("agn+edges", MIXED, graph="small+multigraph", angle=2, seed=61)
    model, data = case.model(), case.data()

    def parts(data: Data) -> Tensor:
        topology = Topology.of(data)
        attr = {"x": data.x, "edge_attr": data.edge_attr, "angle_attr": data.angle_attr}
        return model(pos=data.pos, topology=topology, u=data.u, **attr)

    error, where = disagreement(results(parts, model, data), check(case, data))
    assert error < TOLERANCE, f"{where} is off by {error:.2e} of its scale"


@pytest.mark.parametrize("architecture", ["dgn", "agn", "agn+distances", "agn-raw", "cgn"])
@pytest.mark.parametrize("aggregation", ["sum", "mean"])
def test_coincident_points(architecture: str, aggregation: str) -> None:
    """Rays of length zero and neighbours in one place, by the conventions of `measures`."""
    case = Case(architecture, aggregation, graph="complete+star", seed=67)
    for together in ([0, 1], [1, 2], [0, 1, 2]):
        data = case.data()
        pos = data.pos.detach().clone()
        pos[together] = pos[together[0]].clone()
        data.pos = pos.requires_grad_()
        check(case, data)


# ------------------------------------------------------------------ at random


@st.composite
def cases(draw: st.DrawFn) -> Case:
    several = st.lists(
        st.sampled_from(["small", "path", "star", "pair", "single", "loop"]), max_size=2
    )
    first = draw(st.sampled_from(["directed", "multigraph", "isolated", "undirected", "complete"]))
    architecture = draw(st.sampled_from([*ARCHITECTURES, "dgn+position"]))
    aggregation = draw(
        st.fixed_dictionaries(
            {}, optional={m: st.sampled_from(["sum", "mean", "max"]) for m in MOVEMENTS}
        )
    )
    case = Case(
        architecture,
        aggregation,
        task=draw(st.sampled_from(["graph", "node", "edge", "coordinates"])),
        coordinate_map=draw(st.sampled_from(list(COORDINATE_MAPS))),
        graph="+".join([first, *draw(several)]),
        dimension=draw(st.integers(1, 6)),
        layers=draw(st.integers(1, 3)),
        mlp_layers=draw(st.integers(0, 3)),
        readout_layers=draw(st.none() | st.integers(0, 3)),
        mlp_hidden=draw(st.integers(2, 4)),
        node=draw(st.integers(0, 3)),
        edge=draw(st.integers(0, 3)),
        angle=draw(st.integers(0, 2)),
        u=draw(st.integers(0, 2)),
        scaling=draw(st.sampled_from([None, 0.5, 3.0])) if architecture == "sdgn" else None,
        chunk=draw(st.sampled_from([None, 1, 7])),
        seed=draw(st.integers(0, 2**31 - 1)),
    )
    if not case.valid:
        case = replace(case, coordinate_map="neighbour-sum")
    return case if case.model().needs_angles else replace(case, angle=0)


@given(cases())
@settings(max_examples=30, deadline=None)
def test_anything(case: Case) -> None:
    # the turns that phi(u) gives may be small: see test_small_turns
    check(case)


# ------------------------------------------------------------------ the oracle itself


def test_the_measures_of_the_oracle() -> None:
    """Against values known by hand, and the angle against the paper's cosine."""

    def point(*numbers: float) -> Tensor:
        return torch.tensor(numbers, dtype=torch.float64)

    zero, right = point(0, 0), point(0, 3)
    assert oracle.distance2(point(1, 2), point(4, -2)).item() == 25
    assert oracle.theta(point(2, 0), zero, right).item() == pytest.approx(math.pi / 2)
    third = point(0.5, math.sqrt(0.75))
    assert oracle.theta(point(5, 0), zero, third).item() == pytest.approx(math.pi / 3)
    assert oracle.theta(point(2.0), point(1.0), point(-3.0)).item() == math.pi
    assert oracle.theta(point(2.0), point(1.0), point(3.0)).item() == 0
    # |x_j - x_k| / (|x_i - x_j| |x_i - x_k|)
    assert oracle.separation(point(4, 0), zero, right).item() == pytest.approx(5 / 12)
    random = torch.Generator().manual_seed(0)
    for n in range(2, 7):
        j, i, k = torch.randn(3, n, generator=random, dtype=torch.float64)
        cosine = (j - i) @ (k - i) / ((j - i).norm() * (k - i).norm())
        assert oracle.theta(j, i, k).cos().item() == pytest.approx(cosine.item(), abs=1e-13)
        turns = torch.randn(n * (n - 1) // 2, generator=random, dtype=torch.float64)
        q = oracle.rotation(turns, n)
        assert (q @ q.t() - torch.eye(n)).abs().max() < 1e-12
    quarter = oracle.rotation(point(math.pi / 2), 2)
    assert (quarter @ point(0, 1) - point(1, 0)).abs().max() < 1e-14
    two = [point(1, -2), point(-5, 4), point(1, 1)]
    assert oracle.rho("sum", two, 2).tolist() == [-3, 3]
    assert oracle.rho("mean", two, 2).tolist() == [-1, 1]
    assert oracle.rho("max", two, 2).tolist() == [1, 4]
    assert [oracle.rho(how, [], 2).tolist() for how in ("sum", "mean", "max")] == 3 * [[0, 0]]


def test_gradients_of_the_oracle() -> None:
    """Autograd through the loops against central differences, in a random direction."""
    case = Case("combined", "mean", "graph", "neighbour-sum", "small", angle=1, seed=71)
    model, data = case.model(), case.data()
    angle_index = Topology.of(data).angle_index
    given = [*leaves(data).values(), *model.parameters()]
    random = torch.Generator().manual_seed(0)
    along = [torch.randn(p.shape, generator=random, dtype=p.dtype) for p in given]
    ask = case.oracle(model)
    grads = torch.autograd.grad(ask(data, angle_index).sum(), given)
    slope = sum((g * d).sum() for g, d in zip(grads, along, strict=True)).item()

    def at(step: float) -> float:
        with torch.no_grad():
            for p, d in zip(given, along, strict=True):
                p.add_(step * d)
            value = ask(data, angle_index).sum().item()
            for p, d in zip(given, along, strict=True):
                p.sub_(step * d)
        return value

    assert (at(1e-5) - at(-1e-5)) / 2e-5 == pytest.approx(slope, rel=1e-6)


def test_an_update_that_is_missing_is_noticed() -> None:
    """If the model leaves out what is read, the oracle does not follow."""
    for layer, name in ((0, "graph"), (0, "angle"), (1, "angle"), (1, "edge"), (1, "node")):
        case = Case("agn", graph="small")
        model, data = case.model(), case.data()
        assert list(model.blocks[1].updates) == ["angle", "edge", "node"]  # nobody reads the graph
        del model.blocks[layer].updates[name]
        with pytest.raises(AssertionError, match=f"the {name} value is read"):
            case.oracle(model)(data, Topology.of(data).angle_index)


# Oracles with one fault each. If the comparison did not notice one of them, it would be too weak
# to notice the same fault in the fast code.


class _Swapped(oracle.DGN):
    """Source and target in the wrong order."""

    def edge(self, s: oracle.State, j: int, i: int, row: int) -> tuple:
        return s.e[j, i, row], s.v[j], s.v[i], s.d2(j, i), s.u[()]


class _SwappedRays(oracle.AGN):
    def angle(self, s: oracle.State, j: int, i: int, k: int) -> tuple:
        return s.v[i], s.v[k], s.v[j], s.a[j, i, k], s.theta(j, i, k), s.u[()]


class _SwappedVertex(oracle.CGN):
    def angle(self, s: oracle.State, j: int, i: int, k: int) -> tuple:
        return s.v[j], s.v[i], s.v[k], s.a[j, i, k], s.kappa(j, i, k), s.u[()]


class _IncomingRays(oracle.AGNEdges):
    """e_ji where e_ij should be."""

    def ray(self, s: oracle.State, i: int, j: int) -> Tensor | None:
        return super().ray(s, j, i)


class _FirstOfParallel(oracle.AGNEdges):
    def ray(self, s: oracle.State, i: int, j: int) -> Tensor | None:
        return s.e[(s.graph.between(i, j) or s.graph.between(j, i))[0]]


class _OtherEnd(oracle.AGNToEdges):
    """The two ends of the edge exchanged."""

    def edge(self, s: oracle.State, j: int, i: int, row: int) -> tuple:
        e, source, target, at_target, at_source, u = super().edge(s, j, i, row)
        return e, source, target, at_source, at_target, u


class _SecondRay(oracle.AGNToEdges):
    """Angles whose second ray is the edge."""

    def edge(self, s: oracle.State, j: int, i: int, row: int) -> tuple:
        e, source, target, _, _, u = super().edge(s, j, i, row)
        ends = [[a for a in s.graph.angles_at(p) if a[2] == q] for p, q in ((i, j), (j, i))]
        return e, source, target, *(s.reduced("a->e", s.a, end) for end in ends), u


class _OtherLength(oracle.AGNDistances):
    def angle(self, s: oracle.State, j: int, i: int, k: int) -> tuple:
        *before, _, _, theta, u = super().angle(s, j, i, k)
        return *before, s.d2(j, i), s.d2(j, k), theta, u


class _GraphFirst(Oracle):
    """The graph update before the coordinates have moved."""

    def layer(self, block: torch.nn.Module, s: oracle.State) -> oracle.State:
        new, still = super().layer(block, s), oracle.copy.copy(s)
        still.a, still.e, still.v = new.a, new.e, new.v
        new.u = self.updated(block, "graph", still, s.u, [()])
        return new


class _NewMessages(Oracle):
    """EGCN's messages from the new values of the nodes."""

    def moved(self, block: torch.nn.Module, s: oracle.State, old: oracle.State) -> oracle.Values:
        old = oracle.copy.copy(old)
        old.v = s.v
        return super().moved(block, s, old)


def _drop_an_angle(patch: pytest.MonkeyPatch) -> None:
    whole = oracle.Graph.angles_at
    patch.setattr(oracle.Graph, "angles_at", lambda graph, i: whole(graph, i)[1 if i == 0 else 0 :])


def _unordered_pairs(patch: pytest.MonkeyPatch) -> None:
    whole = oracle.Graph.angles_at
    half = lambda graph, i: [a for a in whole(graph, i) if a[0] < a[2]]  # noqa: E731
    patch.setattr(oracle.Graph, "angles_at", half)


def _drop_an_edge(patch: pytest.MonkeyPatch) -> None:
    whole = oracle.Graph.into
    patch.setattr(oracle.Graph, "into", lambda graph, i: whole(graph, i)[1 if i == 0 else 0 :])


def _only_in_neighbours(patch: pytest.MonkeyPatch) -> None:
    near = lambda graph, i: [j for j in graph.nodes if j != i and graph.between(j, i)]  # noqa: E731
    patch.setattr(oracle.Graph, "neighbours", near)


def _transposed(patch: pytest.MonkeyPatch) -> None:
    rotation = oracle.rotation
    patch.setattr(oracle, "rotation", lambda turns, n: rotation(turns, n).t())


def _relu(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(oracle, "swish", torch.relu)


def _plain_s(patch: pytest.MonkeyPatch) -> None:
    s = lambda state, j, i, k: state.separations[j, i, k].reshape(1)  # noqa: E731
    patch.setattr(oracle.State, "kappa", s)


def _exterior_angle(patch: pytest.MonkeyPatch) -> None:
    theta = oracle.theta
    patch.setattr(oracle, "theta", lambda j, i, k: theta(i, j, k))


def _root(patch: pytest.MonkeyPatch) -> None:
    d2 = oracle.distance2
    patch.setattr(oracle, "distance2", lambda x, y: (d2(x, y) + 1e-300).sqrt())


WRONG: dict[str, tuple[Case, object]] = {
    "source and target swapped": (Case("dgn"), _Swapped()),
    "rays swapped": (Case("agn", angle=1), _SwappedRays()),
    "vertex and ray swapped": (Case("cgn"), _SwappedVertex()),
    "incoming edge on a ray": (Case("agn+edges", graph="undirected"), _IncomingRays()),
    "first of parallel edges": (Case("agn+edges", graph="multigraph"), _FirstOfParallel()),
    "ends of the edge swapped": (Case("agn-to-edges"), _OtherEnd()),
    "edge as second ray": (Case("agn-to-edges"), _SecondRay()),
    "third side": (Case("agn+distances"), _OtherLength()),
    "one angle dropped": (Case("agn"), _drop_an_angle),
    "one angle dropped, kappa": (Case("cgn"), _drop_an_angle),
    "one angle dropped, raw": (Case("agn-raw", "sum"), _drop_an_angle),
    "unordered pairs": (Case("agn", "sum"), _unordered_pairs),
    "in-neighbours only": (Case("agn"), _only_in_neighbours),
    "one edge dropped": (Case("gn", graph="complete"), _drop_an_edge),
    "rotation transposed": (Case("dgn", "mean", "coordinates", "rigid"), _transposed),
    "relu for swish": (Case("gn"), _relu),
    "s for kappa": (Case("cgn"), _plain_s),
    "angle at another vertex": (Case("agn"), _exterior_angle),
    "distance, not squared": (Case("dgn"), _root),
    "graph before coordinates": (Case("dgn", "mean", "graph", "neighbour-sum"), _GraphFirst),
    "new values in messages": (Case("dgn", "mean", "graph", "egcn", node=3), _NewMessages),
    "neighbours for all pairs": (
        Case("dgn", "mean", "graph", "egcn"),
        {"coordinate_map": "egcn-neighbours"},
    ),
    "not scaled": (Case("sdgn", scaling=2.0), {"scaling": 1.0}),
    "not bounded": (
        Case("dgn", "sum", "coordinates", "egcn", max_growth=1.0),
        {"max_growth": None},
    ),
    **{
        f"{movement} by max": (
            Case(name, graph="complete+multigraph"),
            {"aggregation": {movement: "max"}},
        )
        for name, movement in [
            ("gn", "e->v"),
            ("gn", "v->u"),
            ("gn", "e->u"),
            ("gn", "pool"),
            ("dgn", "x->u"),
            ("agn", "a->v"),
            ("agn", "a->u"),
            ("agn-raw", "x->v"),
            ("agn-to-edges", "a->e"),
        ]
    },
}


@pytest.mark.parametrize("fault", WRONG)
def test_a_wrong_oracle_disagrees(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    case, change = WRONG[fault]
    check(case)  # without the fault
    model, data = case.model(), case.data()
    wrong, changes = Oracle, {}
    if isinstance(change, dict):
        changes = change
    elif isinstance(change, type):
        wrong = change
    elif callable(change):
        change(monkeypatch)
    else:
        changes = {"block": change}
    angle_index = Topology.of(data).angle_index
    ask = case.oracle(model, wrong, **changes)
    expected = results(lambda d: ask(d, angle_index), model, data)
    got = results(model, model, data)
    for part in ({"output"}, expected.keys()):
        some = [{name: value[name] for name in value if name in part} for value in (got, expected)]
        error, _ = disagreement(*some)
        assert error > 1e-4, f"{fault}: the comparison sees only {error:.1e}"
