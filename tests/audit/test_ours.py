"""Our own models: what is measured is what is derived, untrained and trained."""

from __future__ import annotations

import itertools

import pytest
import torch
from torch import nn
from torch_geometric.data import Batch, Data

from helpers import FEATURES, bridge_edges, graph, random_model
from symgnn.audit import audit, audit_map
from symgnn.audit._elements import LOCAL
from symgnn.geometry import KINDS
from symgnn.nn import ARCHITECTURES, COORDINATE_MAPS, build

TASKS = ("graph", "node", "edge", "coordinates")


def exists(architecture: str, coordinate_map: str, task: str) -> bool:
    """Whether there is such a model: two combinations are refused."""
    if task == "coordinates" and coordinate_map == "identity":
        return False
    return (architecture, coordinate_map) != ("agn-to-edges", "egcn")


def bridged() -> Data:
    """It has bridges and can bend, so that every kind of transformation exists."""
    return graph(bridge_edges(), 3, 0)


def check(model: nn.Module, data: Data, elements: int = 2) -> None:
    told = "coordinates" if model.task == "coordinates" else None
    report = audit(model, data, outputs=told, elements=elements)
    assert report.agrees, f"{model}\n{report.agrees}\n{report}"
    measured = [kind for kind in KINDS if report.findings[kind].verdict != "unmeasured"]
    assert {k for k in measured if k in report.symmetry} == {
        k for k in measured if k in model.symmetry
    }
    if data.num_edges == bridge_edges().size(1):
        # two cliques of five: their angles fix them, up to the length of the bridge and torsions
        local = ["part-motion"] if "part" in data else []
        local += [] if model.task == "coordinates" else ["torsion", "flex", "redrawing"]
        assert measured == [k for k in KINDS if k in local or k not in LOCAL]


def made(architecture: str, coordinate_map: str, task: str) -> nn.Module:
    options = {"coordinate_map": coordinate_map, "task": task, "dimension": 3, "outputs": 2}
    return random_model(architecture, noise=0.3, aggregation="sum", **options, **FEATURES).float()


FEW = [
    *((name, "identity", "graph") for name in ("gn", "dgn", "sdgn", "agn", "combined", "cgn")),
    *(("dgn", psi, "coordinates") for psi in ("shift", "neighbour-sum")),
    ("agn", "egcn-neighbours", "node"),
]
ALL = [
    case
    for case in itertools.product(ARCHITECTURES, COORDINATE_MAPS, TASKS)
    if exists(*case)
    and case not in FEW
    and (case[1] == "identity" or case[2] in ("graph", "coordinates"))
]


@pytest.mark.parametrize(
    "case",
    [*FEW, *(pytest.param(case, marks=pytest.mark.slow) for case in ALL)],
    ids=lambda case: "-".join(case),
)
def test_measured_is_derived(case: tuple[str, str, str]) -> None:
    check(made(*case), bridged())


def train(model: nn.Module, data: Data, steps: int) -> None:
    """Learn different numbers for different shapes of a graph."""
    torch.manual_seed(0)
    shapes = []
    for _ in range(8):
        shape = data.clone()
        shape.pos = data.pos + 0.5 * torch.randn_like(data.pos)
        shapes.append(shape)
    batch = Batch.from_data_list(shapes)
    goal = 3 + torch.randn(8, 2)
    optimizer = torch.optim.Adam(model.parameters(), 1e-3)
    losses = []
    for _ in range(steps):
        optimizer.zero_grad()
        loss = (model(batch) - goal).square().mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < losses[0]


TRAINED = [(name, psi) for name in ARCHITECTURES for psi in ("identity", "neighbour-sum")]


@pytest.mark.parametrize(
    ("architecture", "coordinate_map"),
    [
        ("sdgn", "identity"),
        *(
            pytest.param(*case, marks=pytest.mark.slow)
            for case in TRAINED
            if case not in (("sdgn", "identity"), ("gn", "neighbour-sum"))
        ),
    ],
)
def test_measured_is_derived_after_training(architecture: str, coordinate_map: str) -> None:
    torch.manual_seed(0)
    options = {"coordinate_map": coordinate_map, "dimension": 3, "outputs": 2}
    model = build(architecture, hidden=6, aggregation="sum", **options, **FEATURES)
    data = bridged()
    for key in ("pos", "x", "edge_attr", "u"):
        data[key] = data[key].float()
    train(model, data, 200)
    gradients = {name: p.grad.clone() for name, p in model.named_parameters()}
    check(model, data)
    assert model.training
    for name, parameter in model.named_parameters():
        assert torch.equal(parameter.grad, gradients[name])


PEERS = {
    "egnn": {},
    "schnet": {},
    "dimenet": {"degrees": 3, "basis": 4, "bilinear": 4},
    "dimenet++": {
        "degrees": 3,
        "basis": 4,
        "interaction": 8,
        "basis_embedding": 4,
        "output_embedding": 8,
    },
    "isogcn": {"node_features": 4},
}


@pytest.mark.parametrize("name", PEERS)
def test_peers_as_specifications(name: str) -> None:
    torch.manual_seed(0)
    model = build(name, hidden=8, layers=2, **PEERS[name])
    for parameter in model.parameters():
        parameter.data += 0.1 * torch.randn_like(parameter)
    data = bridged()
    z = torch.arange(data.num_nodes) % 7 + 1
    x = torch.randn(data.num_nodes, 4)
    features = {"x": x} if name == "isogcn" else {} if name == "egnn" else {"z": z}
    check(model, Data(pos=data.pos.float(), edge_index=data.edge_index, **features))


# ---------------------------------------------------------------- coordinate maps


@pytest.mark.parametrize(
    ("coordinate_map", "distances", "angles"),
    [
        ("scale", True, True),
        pytest.param("rigid", True, True, marks=pytest.mark.slow),
        pytest.param("shift", True, True, marks=pytest.mark.slow),
        ("neighbour-sum", False, False),
        pytest.param("egcn", False, False, marks=pytest.mark.slow),
    ],
)
def test_coordinate_maps_and_the_papers_definitions(coordinate_map, distances, angles) -> None:
    """The paper proves its definitions for global maps; bending a part is another matter."""
    data = bridged()
    bare = Data(pos=data.pos, edge_index=data.edge_index)
    model = random_model("dgn", dimension=3, coordinate_map=coordinate_map, task="coordinates")
    report = audit_map(model, bare, elements=2)
    assert bool(report.distance_preserving) is distances, report
    assert bool(report.angle_preserving) is angles, report
    assert report.coordinates.agrees, report.coordinates.agrees
    rigid = ("translation", "rotation", "reflection")
    assert all(report.distances.findings[kind].holds for kind in rigid), report
    if not distances:
        assert "flex" in str(report.distance_preserving) or "torsion" in str(report)
        assert "kept: translations, rotations, reflections" in str(report.distance_preserving)


@pytest.mark.parametrize("n", [2, 3])
def test_a_redrawing_refutes_a_map_that_similarities_do_not(n: int) -> None:
    """The neighbour-sum with a constant coefficient, on an irregular hexagon."""
    around = torch.arange(6)
    pairs = torch.stack([around, around.roll(-1)])
    generator = torch.Generator().manual_seed(n)
    pos = torch.randn(6, n, generator=generator, dtype=torch.float64)
    data = Data(pos=pos, edge_index=torch.cat([pairs, pairs.flip(0)], 1))

    def pulled(pos: torch.Tensor, edge_index: torch.Tensor) -> torch.Tensor:
        source, target = edge_index
        return pos + 0.3 * torch.zeros_like(pos).index_add(0, target, pos[source] - pos[target])

    report = audit_map(pulled, data, elements=4)
    assert not report.angle_preserving
    found = report.angles.findings
    kept = ("translation", "rotation", "reflection", "dilation")
    assert all(found[kind].holds for kind in kept), report
    assert found["redrawing"].absolute["angles"] > 0.1, report
    assert (found["angle-flex"].verdict == "unmeasured") is (n == 2)
    assert n == 2 or found["angle-flex"].absolute["angles"] > 0.01
    # the identity is refuted by nothing, and the answer says by what
    still = audit_map(lambda pos: pos, data, elements=2)
    flexes = "redrawings; not measured: torsions, angle flexes"
    flexes = flexes if n == 2 else "redrawings, angle flexes; not measured: torsions"
    flexes += ", motions of parts"
    assert repr(still.angle_preserving) == (
        "relative angle preserving: not refuted by translations, rotations, reflections, "
        f"dilations, {flexes}"
    )


def test_a_map_of_ones_own() -> None:
    data = bridged()

    def twice(pos: torch.Tensor) -> torch.Tensor:
        return 2 * pos

    def squashed(pos: torch.Tensor) -> torch.Tensor:
        return pos * pos.new_tensor([1.0, 1.0, 0.5])

    kept, broken = (audit_map(psi, data, elements=2) for psi in (twice, squashed))
    assert kept.distance_preserving
    assert kept.angle_preserving
    assert not broken.distance_preserving
    assert "rotations" in repr(broken.distance_preserving)
    with pytest.raises(ValueError, match=r"psi: gave \[10\]; let it give coordinates \[10, 3\]"):
        audit_map(lambda pos: pos[:, 0], data)
    with pytest.raises(ValueError, match="edge_index"):
        audit_map(twice, Data(pos=data.pos))
