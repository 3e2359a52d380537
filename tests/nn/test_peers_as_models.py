"""Peers behave as other models do, in symmetry, checks, compile and types"""

import itertools
import re

import pytest
import torch
from torch import Tensor, nn
from torch_geometric.data import Batch

import symgnn
from helpers import COMPILES, train_ensemble
from nn.peer_cases import TOLERANCE, difference
from nn.peers import molecules
from symgnn.geometry import TRANSFORMATIONS
from symgnn.graphs import knn_graph
from symgnn.nn import EGNNMap, Spec, build
from symgnn.nn.bases import gaussians
from symgnn.nn.inputs import v
from symgnn.nn.peers.isogcn import SQUARED_GRADIENT
from symgnn.train import Ensemble

SYMMETRY = {
    "schnet": "E(n), torsions, flexes, permutations",
    "dimenet": "E(n), torsions, permutations",
    "dimenet++": "E(n), torsions, permutations",
    "egnn": "E(n), permutations",
    "isogcn": "E(n), permutations",
}


@pytest.mark.parametrize("dimension", [2, 3, 4])
@pytest.mark.parametrize("name", SYMMETRY)
def test_the_symmetry_is_derived_and_kept(name: str, dimension: int) -> None:
    """In every dimension; what is not claimed is broken."""
    torch.manual_seed(6)
    options = {"node_features": 3} if name in ("egnn", "isogcn") else {}
    model = build(name, hidden=16, layers=2, **options).double()
    for parameter in model.parameters():
        if parameter.requires_grad and parameter.abs().max() < 0.01:
            nn.init.normal_(parameter, std=0.3)
    batch = molecules()
    batch.pos = torch.randn(14, dimension, generator=torch.Generator().manual_seed(7)).double()
    batch.edge_index = knn_graph(batch.pos, 3, batch.batch)
    if options:
        batch.x, batch.z = torch.randn(14, 3).double(), None
    assert str(model.symmetry) == SYMMETRY[name]
    out = model(batch)
    for kind in ("translation", "rotation", "reflection", "dilation", "inversion", "affine"):
        moved = batch.clone()
        element = TRANSFORMATIONS[kind].random(
            batch.pos, batch.edge_index, generator=torch.Generator().manual_seed(8)
        )
        moved.pos = element(batch.pos)
        change = difference(model(moved), out)
        assert change < 1e-10 if kind in model.symmetry else change > 1e-6, f"{kind}: {change}"


def test_isogcn_reads_derivatives() -> None:
    """On a linear field the squared gradient is its slope squared, and the Laplacian is 0."""
    batch = molecules()
    batch.z = None
    batch.edge_index = knn_graph(batch.pos, 4, batch.batch)
    slope = torch.tensor([[1.0, -2.0, 0.5]], dtype=torch.float64)
    model = build("isogcn", node_features=1, layers=1, mlp_layers=0, task="node", hidden=1).double()
    (linear,) = model.blocks[0].updates["node"].phi.linears
    seen = []
    model.blocks[0].updates["node"].phi.linears[0].weight.data = torch.tensor(
        [[0.0, 1.0, 1.0]]
    ).double()
    linear.bias.data.zero_()
    model.readouts[0].register_forward_pre_hook(lambda _, args: seen.append(args[0].v.rows))
    batch.x = batch.pos @ slope.T
    model(batch)
    first = batch.batch != 2  # the last graph is one atom
    assert difference(seen[0][first], slope.square().sum().expand(int(first.sum()), 1)) < 1e-10


def test_isogcn_on_the_torsion_of_its_parts() -> None:
    squared = Spec("gradients", node=[v, SQUARED_GRADIENT])
    assert str(build(squared, node_features=1).symmetry) == "E(n), torsions, permutations"


def test_egnn_moves_coordinates_with_velocities() -> None:
    torch.manual_seed(9)
    psi = EGNNMap(velocity=True)
    model = build("egnn", task="coordinates", node_features=1, coordinate_map=psi).double()
    batch = molecules()
    batch.z = None
    batch.x, batch.vel = torch.randn(14, 1).double(), torch.randn(14, 3).double()
    turn, _ = torch.linalg.qr(torch.randn(3, 3, dtype=torch.float64))
    moved = batch.clone()
    moved.pos, moved.vel = batch.pos @ turn.T + 2, batch.vel @ turn.T
    assert difference(model(moved), model(batch) @ turn.T + 2) < 1e-12
    assert difference(model(batch), batch.pos) > 1e-3
    batch.vel = None
    with pytest.raises(ValueError, match="vel: is missing"):
        model(batch)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"z": None}, "z: is missing; give the type of each node"),
        ({"z": torch.full((14,), 500)}, "z: holds 500; the model knows the types 0 to 99"),
        ({"z": torch.ones(14)}, "z: is torch.float32 [14]; it must be whole numbers [N]"),
    ],
)
def test_types_are_checked(change: dict, message: str) -> None:
    batch = molecules()
    for name, value in change.items():
        batch[name] = value
    with pytest.raises(ValueError, match=re.escape(message)):
        build("schnet", hidden=8, layers=1).double()(batch)


def test_options_of_a_peer_are_checked() -> None:
    with pytest.raises(TypeError, match="schnet takes no option 'cutof'; did you mean 'cutoff'"):
        build("schnet", cutof=3.0)
    with pytest.raises(ValueError, match="task: SchNet has no read-out for 'edge'"):
        build("schnet", task="edge")
    with pytest.raises(ValueError, match="choose 'mean' or 'sum'"):
        build("egnn", coordinates="max", node_features=1)


@pytest.mark.parametrize("name", ["schnet", "dimenet", "dimenet++"])
def test_coincident_atoms_give_numbers(name: str) -> None:
    batch = molecules()
    batch.pos[1] = batch.pos[0]
    batch.pos.requires_grad_()
    model = build(name, hidden=8, layers=1).double()
    for parameter in model.parameters():
        if parameter.abs().max() == 0:
            nn.init.normal_(parameter)
    out = model(batch)
    (force,) = torch.autograd.grad(out.sum(), batch.pos)
    assert bool(out.isfinite().all())
    assert bool(force.isfinite().all())


def test_chunks_of_angles_change_nothing() -> None:
    for name, seed in itertools.product(("dimenet", "dimenet++"), (0,)):
        outs = []
        for chunk in (None, 9):
            torch.manual_seed(seed)
            model = build(name, hidden=8, layers=2, outputs=2, chunk=chunk).double()
            for parameter in model.parameters():
                if parameter.abs().max() == 0:
                    nn.init.normal_(parameter)
            outs.append(model(molecules()))
        assert difference(*outs) < 1e-12


def of_name(name: str, **options) -> tuple[nn.Module, Batch]:
    """A small model that gives something else than 0, and what it is applied to."""
    features = {"node_features": 3} if name in ("egnn", "isogcn") else {}
    basis = {"degrees": 3, "basis": 3} if name.startswith("dimenet") else {}
    model = build(name, hidden=8, layers=2, **features, **basis, **options)
    for parameter in model.parameters():
        if parameter.abs().max() == 0:
            nn.init.normal_(parameter)
    batch = molecules(torch.float32)
    if features:
        batch.x = torch.randn(14, 3, generator=torch.Generator().manual_seed(1))
        batch.z = None
    return model, batch


@COMPILES
@pytest.mark.parametrize("name", SYMMETRY)
def test_compile_and_export(name: str) -> None:
    torch.manual_seed(0)
    model, batch = of_name(name)
    batch.topology = model.topology(batch)
    expected = model(batch)
    torch._dynamo.reset()
    compiled = torch.compile(model, fullgraph=True, dynamic=True, backend="aot_eager")
    assert difference(compiled(batch), expected) < 1e-5
    given = {"pos": batch.pos, "topology": batch.topology}
    given |= {"z": batch.z} if batch.x is None else {"x": batch.x}
    exported = torch.export.export(model, (), given)
    assert difference(exported.module()(**given), expected) < 1e-5


@pytest.mark.parametrize("name", SYMMETRY)
def test_many_initialisations(name: str) -> None:
    _, batch = of_name(name)
    batch.pos = batch.pos.double()
    batch.x = None if batch.x is None else batch.x.double()

    def loss(out: Tensor, data: Batch) -> Tensor:
        return (out - 1).square().mean()

    together = Ensemble(lambda: of_name(name)[0].double(), 3)
    alone = Ensemble(lambda: of_name(name)[0].double(), [1])
    losses, found = together.gradients(loss, batch), alone.gradients(loss, batch)
    torch.testing.assert_close(found[0], losses[1])
    pairs = [
        (both.grad[1], one.grad)
        for both, one in zip(together.parameters(), alone.parameters(), strict=True)
    ]
    largest = max(float(one.abs().max()) for _, one in pairs)
    assert all(float((both - one).abs().max()) < 1e-9 * largest for both, one in pairs)
    losses = train_ensemble(together, batch, loss, 4, learning_rate=1e-4)
    assert float(losses[-1].sum()) < float(losses[0].sum())


@pytest.mark.parametrize("name", SYMMETRY)
def test_coordinates_in_float64_with_a_float32_model(name: str) -> None:
    model, batch = of_name(name)
    expected = model(batch)
    batch.pos = batch.pos.double()
    out = model(batch)
    assert out.dtype == torch.float32
    assert difference(out, expected) < 1e-4


@pytest.mark.parametrize("name", ["schnet", "dimenet", "dimenet++"])
def test_far_beyond_the_cutoff(name: str) -> None:
    """Edges of any length give numbers, with gradients that are numbers too."""
    model, batch = of_name(name)
    batch.pos = (1e10 * batch.pos).requires_grad_()
    out = model(batch)
    (force,) = torch.autograd.grad(out.sum(), batch.pos)
    assert bool(out.isfinite().all())
    assert bool(force.isfinite().all())


@pytest.mark.parametrize("dtype", TOLERANCE)
def test_gaussians_are_never_almost_too_small(dtype: torch.dtype) -> None:
    """Processors are slow with such numbers; nothing else changes by leaving them out."""
    basis = gaussians(50, cutoff=5.0).make().to(dtype)
    x = torch.linspace(0, 30, 400, dtype=dtype).unsqueeze(1)
    found, away = basis(x, torch.zeros_like(x)), x - basis.centres
    exact = torch.exp(-0.5 * (away / (basis.centres[1] - basis.centres[0])).square())
    assert ((found == 0) | (found > 1e3 * torch.finfo(dtype).tiny)).all()
    assert (found[exact > 1e-20] > 0).all()
    assert (found - exact).abs().max() < 10 * torch.finfo(dtype).eps


def test_widths_of_nodes_edges_and_angles_may_differ() -> None:
    """Or they are refused where the network adds them."""
    data = symgnn.data.polytope("icosahedron")
    data.z = torch.ones(12, dtype=torch.long)
    hidden = {"node": 3, "edge": 5, "angle": 2}
    assert build("dimenet++", hidden=hidden, layers=2)(data).shape == (1, 1)
    assert build("dimenet", hidden={**hidden, "angle": 5}, layers=2)(data).shape == (1, 1)
    assert build("schnet", hidden=hidden, layers=2)(data).shape == (1, 1)
    with pytest.raises(ValueError, match=r"^hidden: angles have width 2 and edges 5; DimeNet"):
        build("dimenet", hidden=hidden)
