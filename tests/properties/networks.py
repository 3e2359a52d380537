"""Random networks and random graphs for them, each from one seed."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

import torch
from torch import Tensor, nn
from torch_geometric.data import Data

from symgnn.geometry.symmetry import PERMUTATIONS, Symmetry
from symgnn.graphs import Topology
from symgnn.nn import (
    ARCHITECTURES,
    COORDINATE_MAPS,
    EGCN,
    PEERS,
    After,
    EGNNMap,
    Form,
    Measure,
    Model,
    NeighbourSum,
    Spec,
    build,
    initial,
    reduce,
)
from symgnn.nn.bases import bessel, cosine_cutoff, fourier, gaussians, spherical
from symgnn.nn.inputs import DOMAINS, a, d2, e, kappa, position, theta, u, v
from symgnn.nn.peers.isogcn import LAPLACIAN, SQUARED_GRADIENT
from symgnn.nn.peers.peer_forms import Linear

TASKS = ("graph", "node", "edge", "coordinates")
FEATURES = ("node_features", "edge_features", "angle_features", "graph_features")
TYPES = 4
#: Small sizes for networks that are large by default.
SMALL: dict[str, dict[str, Any]] = {
    "schnet": {"types": TYPES, "basis": 4, "filters": 3, "cutoff": 2.0},
    "dimenet": {"types": TYPES, "basis": 2, "degrees": 3, "bilinear": 2},
    "dimenet++": {
        "types": TYPES,
        "basis": 2,
        "degrees": 3,
        "interaction": 3,
        "basis_embedding": 2,
        "output_embedding": 5,
    },
}


# ------------------------------------------------------------------ graphs


def random_graph(random: Random, n: int, scale: float, generic: bool = False) -> Data:
    """Coordinates `[N, n]` and edges of all kinds; with `generic`, no two nodes in one place."""
    nodes = random.choice([5, 6, 7] if generic else [0, 1, 2, 2, 3, 3, 4, 5, 6, 7])
    generator = torch.Generator().manual_seed(random.randrange(2**31))
    pos = torch.randn(nodes, n, generator=generator, dtype=torch.float64) + random.choice([0, 0.7])
    if not generic and nodes > 1:
        place = random.random()
        if place < 0.15:  # some nodes in one place
            pos[: random.randint(2, nodes)] = pos[0]
        elif place < 0.25:  # on a line
            pos = torch.arange(nodes).unsqueeze(1) * pos[:1]
    edges = random_edges(random, nodes)
    return Data(pos=scale * pos, edge_index=edges)


def random_edges(random: Random, nodes: int) -> Tensor:
    """Directed or both ways, with self-loops, parallel edges and isolated nodes now and then."""
    kind = random.choice(["random", "random", "both ways", "both ways", "path", "star", "none"])
    pairs = [(i, j) for i in range(nodes) for j in range(nodes) if i != j]
    if kind == "none":
        chosen: list[tuple[int, int]] = []
    elif kind == "path":
        chosen = [(i, i + 1) for i in range(nodes - 1)]
    elif kind == "star":
        chosen = [(0, i) for i in range(1, nodes)]
    else:
        chosen = random.sample(pairs, min(len(pairs), random.randint(0, 3 * nodes)))
    if kind in ("both ways", "path"):
        chosen = sorted({*chosen, *((j, i) for i, j in chosen)})
    if nodes and random.random() < 0.3:
        chosen += [(i, i) for i in random.sample(range(nodes), random.randint(1, nodes))]
    if chosen and random.random() < 0.3:
        chosen += random.choices(chosen, k=2)
    random.shuffle(chosen)
    return torch.tensor(chosen, dtype=torch.long).reshape(-1, 2).T.contiguous()


def with_features(data: Data, network: Case, random: Random) -> Data:
    """The graph with the features that a network was built for."""
    generator = torch.Generator().manual_seed(random.randrange(2**31))

    def normal(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=generator, dtype=torch.float64)

    data = data.clone()
    nodes, given = data.num_nodes or 0, network.features
    if network.model.network.types:
        data.z = torch.randint(TYPES, (nodes,), generator=generator)
    elif given["node_features"]:
        data.x = normal(nodes, given["node_features"])
    if given["edge_features"]:
        data.edge_attr = normal(data.edge_index.shape[1], given["edge_features"])
    if given["angle_features"]:
        angles = Topology.build(data.edge_index, nodes).num_angles
        data.angle_attr = normal(angles, given["angle_features"])
    if given["graph_features"]:
        data.u = normal(1, given["graph_features"])
    if network.model.needs_velocity:
        data.vel = normal(nodes, data.pos.shape[1])
    return data


# ------------------------------------------------------------------ specifications


class Concatenated(Form):
    """The MLP of an update over the concatenation of all its inputs: no map is moved or folded."""

    def __init__(self, widths: Sequence[int], out: int, hidden: int) -> None:
        super().__init__(widths, out, hidden)
        sizes = [sum(widths), hidden, out]
        self.linears = nn.ModuleList(nn.Linear(*sizes[k : k + 2]) for k in range(2))

    def here(self, *values: Tensor) -> Tensor:
        first, last = self.linears
        return last(nn.functional.silu(first(torch.cat(values, -1))))


def _ray(source: Tensor, target: Tensor) -> Tensor:
    return source - target


#: Not the same for an edge and its reverse.
RAY = Measure(
    "ray", "edge", function=_ray, symmetry=PERMUTATIONS | Symmetry(["translation"]), width=None
)


def random_basis(random: Random) -> Measure:
    """One of few, so that a network often has the same one twice, or two of one name."""
    cutoff = random.choice([1.5, 4.0])
    return random.choice(
        [gaussians(3, cutoff), bessel(2, cutoff), fourier(1), cosine_cutoff(cutoff), d2, d2, RAY]
    )


def random_source(random: Random, domain: str) -> Any:
    """Something that an update of the domain can read."""
    basis = random_basis(random)
    angular = random.choice(
        [theta, theta, kappa, spherical(2, 2, 3.0), spherical(2, 2, 3.0, at="end")]
    )
    place = {
        "angle": random.choice(["vertex", "first", "second"]),
        "edge": random.choice(["source", "target"]),
    }.get(domain, "")
    ray = random.choice(["first", "second", "first in", "second in"])
    end = random.choice(["source", "target"])
    nodes = [v.at(place), v.at(place), initial(v).at(place)]
    if random.random() < 0.15:
        nodes.append(position.at(place))
    choices = {
        "angle": [
            *nodes,
            random.choice([e, initial(e), basis]).at(ray),
            basis.at(ray.removesuffix(" in")),
            random.choice([a, initial(a)]),
            angular,
            angular,
        ],
        "edge": [*nodes, e, initial(e), basis, basis, reduce(random.choice([a, angular]), end)],
        "node": [
            *nodes,
            *([reduce(e)] * 2),
            reduce(random.choice([a, angular])),
            reduce(basis),
            random.choice([LAPLACIAN, SQUARED_GRADIENT]),
        ],
        "graph": [reduce(v), reduce(v), reduce(e), reduce(a), reduce(angular), reduce(basis)],
    }[domain]
    return random.choice([*choices, random.choice([u, initial(u)])])


def random_spec(random: Random) -> Spec:
    """Updates of some domains, each with a few inputs."""
    updates = {
        domain: [random_source(random, domain) for _ in range(random.randint(1, 4))]
        for domain in DOMAINS
        if random.random() < {"angle": 0.5, "edge": 0.8, "node": 0.9, "graph": 0.5}[domain]
    }
    order = ["angle", "edge", "node", "coordinates", "graph"]
    if random.random() < 0.25:
        random.shuffle(order)
    return Spec(
        "random",
        **updates,
        inputs=random.choice([[v]] * 5 + [[v, position], [position], [v, v], []]),
        scaling=random.choice([None] * 5 + [1.0, 2.5]),
        forms={
            domain: random.choice([Linear, Concatenated])
            for domain in updates
            if random.random() < 0.15
        },
        after={
            domain: After(*(random.random() < p for p in (0.5, 0.3, 0.3)))
            for domain in updates
            if random.random() < 0.3
        },
        order=order,
    )


# ------------------------------------------------------------------ networks


@dataclass
class Case:
    """A network with what it was built from."""

    architecture: Any
    options: dict[str, Any]
    features: dict[str, int]
    model: Model = field(repr=False)

    def again(self, architecture: Any = None, **changes: Any) -> Model:
        """Another model of the same kind, or of another specification."""
        options = {**self.options, **self.features, **changes}
        return made(self.architecture if architecture is None else architecture, options)


def made(architecture: Any, options: dict[str, Any]) -> Model:
    model = build(architecture, **options).double()
    with torch.no_grad():  # some maps start as the identity
        for parameter in model.parameters():
            parameter += 0.1 * torch.randn_like(parameter)
    return model.eval()


#: Coordinate maps beyond those with a name.
MAPS = {
    "growing neighbour-sum": lambda: NeighbourSum(max_growth=None),
    "tight neighbour-sum": lambda: NeighbourSum(max_growth=1.0),
    "tight egcn": lambda: EGCN(max_growth=1.5),
    "egnn": lambda: EGNNMap(normalise=True, tanh=True),
    "egnn, scaled": lambda: EGNNMap(normalise="scaled", aggregation="sum", bias=True),
    "egnn, velocity": lambda: EGNNMap(normalise="plus one", velocity=True),
    "egnn, clamped": lambda: EGNNMap(clamp=0.5, limit=2.0, towards=True, gated=False),
}


def random_options(random: Random, name: str) -> dict[str, Any]:
    """What `build` takes, for a network of a name or for one of its own."""
    options: dict[str, Any] = {
        "task": random.choice(TASKS),
        "outputs": random.randint(1, 3),
        "hidden": random.choice([4, 4, {"node": 3, "edge": 5, "angle": 2, "graph": 4}]),
        "mlp_hidden": random.choice([None, 5, {"edge": 3, "coordinates": 6}]),
        "layers": random.choice([1, 2, 2, 3]),
        "mlp_layers": random.choice([1, 1, 1, 0, 2]),
        "readout_layers": random.choice([None, None, 0, 2]),
        "dropout": random.choice([0.0, 0.0, 0.3]),
        "aggregation": random.choice(
            [None, "sum", "mean", "max", {"e->v": "max", "a->v": "sum", "pool": "sum"}]
        ),
        "graph_state": random.random() < 0.8,
        "dimension": random.randint(1, 5),
    }
    chosen = random.choice([*COORDINATE_MAPS, *MAPS, None, "neighbour-sum", "egcn", "identity"])
    options["coordinate_map"] = MAPS[chosen]() if chosen in MAPS else chosen
    if name == "sdgn" and random.random() < 0.5:
        options["scaling"] = random.choice([0.5, 3.0])
    if name == "egnn":
        for option in ("attention", "residual", "normalise", "tanh", "velocity", "embed"):
            if random.random() < 0.3:
                options[option] = random.random() < 0.5
    return {**options, **SMALL.get(name, {})}


#: What an error of `build` starts with: the field that it is about.
FIELD = re.compile(r"^[a-z_]+(\[.*\])?: ")


def random_network(random: Random) -> tuple[Case | None, list[str]]:
    """A network, or None where it is refused for good; and all errors on the way to it.

    Features that a network has no use for are left out, and a map or task that it has not is
    replaced, as the error asks for.
    """
    own = random.random() < 0.6
    name = "" if own else random.choice([*ARCHITECTURES, *PEERS])
    options = random_options(random, name)
    features = {key: random.choice([0, 0, 1, 2, 4]) for key in FEATURES}
    errors: list[str] = []
    seed = random.randrange(2**31)
    for _ in range(12):
        try:
            architecture = random_spec(random) if own else name
            torch.manual_seed(seed)
            model = made(architecture, {**options, **features})
            return Case(architecture, options, features, model), errors
        except (ValueError, TypeError) as error:
            message = str(error)
            assert FIELD.match(message), f"the error names no field: {message!r}"
            assert "\n" not in message, message
            errors.append(message)
            at_fault = message.split(":")[0].split("[")[0]
            if at_fault in FEATURES:
                features[at_fault] = 0
            elif at_fault == "hidden":
                options["hidden"] = 4
            elif at_fault == "coordinate_map":
                options["coordinate_map"] = "neighbour-sum"
            elif at_fault == "task":
                options["task"] = "graph"
    return None, errors
