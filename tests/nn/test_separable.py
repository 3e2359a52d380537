"""Angle updates of product form, and handedness, against loops over all angles.

Values and first derivatives by all parameters, coordinates and features agree with the loops of
`separable_oracle.py` to 1e-10 of their scale in float64, and so do second derivatives.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
import torch
from torch import Tensor
from torch_geometric.data import Batch, Data

from helpers import COMPILES
from nn.oracle_blocks import BLOCKS
from nn.oracle_cases import Case, disagreement, leaves, results
from nn.separable_oracle import ConformalOracle, SeparableOracle
from symgnn.graphs import Topology
from symgnn.nn import AGN, Conv, Model, build, export
from symgnn.nn.architectures import AGN_RAW
from symgnn.nn.inputs import a
from symgnn.nn.separable import ProductForm, cosine, separable
from symgnn.nn.variants import SEPARABLE, variant_of

TOLERANCE = 1e-10
NAMES = sorted(SEPARABLE)
#: Whether nodes read handedness, and whether both rays are mapped by the same weights.
SWITCHES = pytest.mark.parametrize(
    ("chiral", "tied"),
    [(False, False), (True, False), (False, True)],
    ids=["plain", "chiral", "tied"],
)
DEGENERATE = ["multigraph", "directed", "isolated+pair+single", "star+loop", "wheel", "edgeless"]


@dataclass(frozen=True)
class Product(Case):
    """A separable model; `Case` says what is random."""

    degree: int = 3
    basis: str = "chebyshev"
    chiral: bool = False
    tied: bool = False
    engine: str = "fast"

    def model(self) -> Model:
        model = build(
            self.architecture,
            task=self.task,
            outputs=self.outputs,
            node_features=self.node,
            edge_features=self.edge,
            graph_features=self.u,
            dimension=self.dimension,
            hidden=3,
            layers=self.layers,
            mlp_hidden=self.mlp_hidden,
            mlp_layers=self.mlp_layers,
            aggregation=self.aggregation,
            coordinate_map=self.coordinate_map,
            chunk=self.chunk,
            engine=self.engine,
            degree=self.degree,
            basis=self.basis,
            chiral=self.chiral,
            tied=self.tied,
        ).double()
        random = torch.Generator().manual_seed(self.seed)
        gain = 0.5 if "sum" in str(self.aggregation) else 1.0
        with torch.no_grad():
            for p in model.parameters():
                drawn = torch.randn(p.shape, generator=random, dtype=p.dtype)
                p.copy_(gain * drawn / p.shape[1] ** 0.5 if p.dim() == 2 else 0.3 * drawn)
        return model

    def expected(self, model: Model, data: Data) -> Tensor:
        base = self.architecture.removesuffix("-separable")
        kind = ConformalOracle if base == "cgn" else SeparableOracle
        loops = kind(
            model,
            base,
            task=self.task,
            aggregation=self.aggregation,
            coordinate_map=self.coordinate_map,
        )
        return loops(data)


def check(case: Product, data: Data | None = None) -> dict[str, Tensor]:
    model, data = case.model(), case.data() if data is None else data
    expected = results(lambda d: case.expected(model, d), model, data)
    error, where = disagreement(results(model, model, data), expected)
    assert error < TOLERANCE, f"{case}: {where} is off by {error:.2e} of its scale"
    output = {"output": expected["output"]}
    with torch.no_grad():  # predictions leave out what derivatives need
        error, _ = disagreement({"output": model(data)}, output)
    assert error < TOLERANCE, f"{case}: predictions are off by {error:.2e} of their scale"
    return expected


def test_all_blocks_with_angle_updates_have_a_separable_version() -> None:
    bases = {name.removesuffix("-separable") for name in NAMES}
    assert bases == {name for name, block in BLOCKS.items() if getattr(block, "angle", None)}


@pytest.mark.parametrize("aggregation", ["sum", "mean"])
@SWITCHES
@pytest.mark.parametrize("name", NAMES)
def test_blocks(name: str, chiral: bool, tied: bool, aggregation: str) -> None:
    case = Product(name, aggregation, graph="multigraph", chiral=chiral, tied=tied, seed=3)
    expected = check(case)
    assert not {key for key, g in expected.items() if not g.abs().max() > 0}


@pytest.mark.parametrize("degree", range(7))
@pytest.mark.parametrize("dimension", range(1, 7))
def test_degrees_and_dimensions(dimension: int, degree: int) -> None:
    name = NAMES[(dimension + degree) % len(NAMES)]
    basis = ("chebyshev", "legendre")[degree % 2]
    case = Product(name, "sum", graph="wheel", layers=1, basis=basis, degree=degree)
    tied = (dimension + degree) // 2 % 2 == 1
    check(replace(case, dimension=dimension, chiral=dimension < 5 and degree == 1, tied=tied))


@pytest.mark.parametrize("name", ["agn-separable", "agn-to-edges-separable", "cgn-separable"])
@pytest.mark.parametrize("graph", DEGENERATE)
def test_graphs(graph: str, name: str) -> None:
    check(Product(name, "sum", "node", graph=graph, chiral=True, seed=2))


@pytest.mark.parametrize("task", ["edge", "coordinates", "node-vectors"])
@pytest.mark.parametrize("name", NAMES)
def test_tasks_and_moving_coordinates(name: str, task: str) -> None:
    psi = "neighbour-sum" if task == "coordinates" else "identity"
    check(Product(name, "mean", task, psi, "small+isolated", seed=5))


@SWITCHES
@pytest.mark.parametrize("name", NAMES)
def test_second_derivatives(name: str, chiral: bool, tied: bool) -> None:
    """The derivatives of a squared force by everything, as training on forces takes them."""
    case = Product(name, "mean", graph="wheel", layers=1, node=1, edge=1, u=0, chiral=chiral)
    case = replace(case, tied=tied, seed=2 if tied else case.seed)
    model, data = case.model(), case.data()
    plain = build_like(case, model, engine="reference")

    def second(out: Tensor, of: Model = model) -> dict[str, Tensor]:
        given = {**leaves(data), **dict(of.named_parameters())}
        (force,) = torch.autograd.grad(out.sum(), data.pos, create_graph=True)
        loss = force.square().sum()
        found = torch.autograd.grad(loss, list(given.values()), allow_unused=True)
        pairs = zip(given.items(), found, strict=True)
        grads = {key: torch.zeros_like(p) if g is None else g for (key, p), g in pairs}
        return {"output": force.detach(), **grads}

    expected = second(case.expected(model, data))
    assert expected["pos"].abs().max() > 1e-4
    error, where = disagreement(second(model(data)), expected)
    assert error < TOLERANCE, f"{where} is off by {error:.2e} of its scale"
    error, where = disagreement(second(plain(data), plain), expected)
    assert error < TOLERANCE, f"by angles, {where} is off by {error:.2e} of its scale"


def build_like(case: Product, model: Model, **changes: object) -> Model:
    """A model with other settings and the same parameters."""
    other = replace(case, **changes).model()
    other.load_state_dict(model.state_dict())
    return other


@pytest.mark.parametrize("name", NAMES)
def test_no_angle_is_listed(name: str) -> None:
    case = Product(name, graph="complete")
    model, data = case.model(), case.data()
    assert model.topology(data).pairs is None
    assert build_like(case, model, chunk=2).topology(data).pairs is None
    # a topology with all angles, prepared for another model, gives the same
    bare = model(data)
    data.topology = Topology.of(data)
    assert torch.equal(model(data), bare)


@SWITCHES
@pytest.mark.parametrize("name", NAMES)
def test_chunks(name: str, chiral: bool, tied: bool) -> None:
    case = Product(name, "sum", graph="multigraph+wheel", chiral=chiral, tied=tied)
    model, data = case.model(), case.data()
    parts = build_like(case, model, chunk=3)
    error, where = disagreement(results(parts, parts, data), results(model, model, data))
    assert error < 1e-12, where


@pytest.mark.parametrize("tied", [False, True])
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("place", ["coincident", "neighbours at one place", "collinear", "far"])
def test_degenerate_geometry(name: str, place: str, tied: bool) -> None:
    """All as in the loops; second derivatives are finite."""
    case = Product(name, "sum", graph="wheel", layers=1, chiral=True, tied=tied)
    data = case.data()
    with torch.no_grad():
        if place == "coincident":
            data.pos[1] = data.pos[0]
        elif place == "neighbours at one place":
            data.pos[1:] = data.pos[1]
        elif place == "collinear":
            data.pos[:] = torch.arange(5.0).unsqueeze(1) * data.pos[0]
        else:
            data.pos[1] += 100
    expected = check(case, data)
    assert all(value.isfinite().all() for value in expected.values())
    out = case.model()(data)
    (force,) = torch.autograd.grad(out.sum(), data.pos, create_graph=True)
    (twice,) = torch.autograd.grad(force.square().sum(), data.pos)
    assert force.isfinite().all()
    assert twice.isfinite().all()


@pytest.mark.parametrize("name", ["agn-separable", "cgn-separable"])
@pytest.mark.parametrize("scale", [1e-30, 1e-15, 1e15, 1e30])
def test_any_scale(name: str, scale: float) -> None:
    """Single precision: what dilations keep is the same at every scale, or nearly."""
    case = Product(name, graph="wheel", chiral=True)
    model, data = case.model().float(), case.data().apply(lambda t: t.detach())
    single = data.clone().apply(lambda t: t.float() if t.is_floating_point() else t)
    expected = model(single)
    single.pos = (data.pos * scale).float()
    assert torch.allclose(model(single), expected, rtol=1e-4, atol=1e-5)


def test_periodic_cells() -> None:
    """A cell repeated twice gives each atom what it has in the small one."""
    shift = torch.eye(2, dtype=torch.float64)
    edges = torch.zeros(2, 4, dtype=torch.long)
    small = Data(pos=torch.tensor([[0.1, 0.2]], dtype=torch.float64), edge_index=edges)
    small.edge_shift = torch.cat([shift, -shift])
    big = Data(
        pos=torch.tensor([[0.1, 0.2], [1.1, 0.2]], dtype=torch.float64),
        edge_index=torch.tensor([[1, 1, 0, 0, 0, 0, 1, 1], [0, 0, 1, 1, 0, 0, 1, 1]]),
        edge_shift=torch.tensor(
            [[0, 0], [-2, 0], [0, 0], [2, 0], [0, 1], [0, -1], [0, 1], [0, -1]],
            dtype=torch.float64,
        ),
    )
    for name in NAMES:
        case = Product(name, "mean", "node", node=0, edge=0, u=0, dimension=2, chiral=True)
        model = case.model()
        few, many = model(small), model(big)
        assert torch.allclose(many, few.expand_as(many), rtol=1e-12), name
        assert torch.allclose(build_like(case, model, engine="reference")(big), many, rtol=1e-12)


@pytest.mark.parametrize("features", [0, 2])
@SWITCHES
@pytest.mark.parametrize("name", NAMES)
def test_vmap_over_initialisations(name: str, chiral: bool, tied: bool, features: int) -> None:
    """As `train.Ensemble` runs them: outputs and gradients as one by one."""
    case = Product(name, "sum", graph="multigraph", chiral=chiral, tied=tied, node=features, u=0)
    models = [replace(case, seed=seed).model() for seed in range(3)]
    data = case.data()
    data.topology = models[0].topology(data)
    stacked, buffers = torch.func.stack_module_state(models)

    def loss(parameters: dict, given: dict) -> Tensor:
        out = torch.func.functional_call(models[0], (parameters, given), (data,))
        return out.square().sum()

    found = torch.func.vmap(torch.func.grad(loss))(stacked, buffers)
    for k, model in enumerate(models):
        model.zero_grad()
        model(data).square().sum().backward()
        for key, p in model.named_parameters():
            wanted = torch.zeros_like(p) if p.grad is None else p.grad
            scale = wanted.abs().max().clamp(min=1e-8)
            assert (found[key][k] - wanted).abs().max() < 1e-10 * scale.clamp(min=1), key


@pytest.mark.parametrize("tied", [False, True])
@pytest.mark.parametrize("name", ["agn-separable", "agn-to-edges-separable", "cgn-separable"])
def test_export(name: str, tied: bool, tmp_path: Path) -> None:
    case = Product(name, "sum", graph="wheel+small", chiral=True, tied=tied)
    model, data = case.model(), case.data()
    program = export(model, data)
    torch.export.save(program, tmp_path / "model.pt2")
    loaded = torch.export.load(tmp_path / "model.pt2").module()
    other = Batch.from_data_list(
        [case._one(kind, torch.Generator()) for kind in ("multigraph", "star", "pair")]
    )
    given = {"x": other.x, "edge_attr": other.edge_attr, "u": other.u}
    found = loaded(pos=other.pos, edge_index=other.edge_index, batch=other.batch, **given)
    assert torch.allclose(found, model(other), rtol=1e-10, atol=1e-12)


@COMPILES
@pytest.mark.parametrize("tied", [False, True])
@pytest.mark.parametrize("name", ["agn-separable", "agn-to-edges-separable", "cgn-separable"])
def test_compile(name: str, tied: bool) -> None:
    case = Product(name, "sum", graph="multigraph", chiral=True, tied=tied)
    model, data = case.model(), case.data()
    data.topology = model.topology(data)
    compiled = torch.compile(model, backend="aot_eager", fullgraph=True)
    error, where = disagreement(results(compiled, model, data), results(model, model, data))
    assert error < 1e-11, where


def test_autocast() -> None:
    """Sums over angles stay in single precision, so that little is lost."""
    for name, tied in itertools.product(NAMES, (False, True)):
        case = Product(name, "mean", graph="wheel", chiral=True, tied=tied)
        model = case.model().float()
        data = case.data().apply(lambda t: t.detach().float() if t.is_floating_point() else t)
        exact = model(data)
        with torch.autocast("cpu", dtype=torch.bfloat16):
            rough = model(data)
        rough.float().sum().backward()
        assert (rough.float() - exact).abs().max() < 0.1 * exact.abs().max().clamp(min=0.3), name
        assert all(p.grad is None or p.grad.isfinite().all() for p in model.parameters())


def test_the_switch_is_the_name() -> None:
    for name in NAMES:
        base = name.removesuffix("-separable")
        torch.manual_seed(0)
        named = build(name, degree=2)
        torch.manual_seed(0)
        switched = build(base, separable=True, degree=2)
        assert str(named.network.layer) == str(switched.network.layer)
        assert named.network.layer.forms["angle"] == ProductForm(2, "chebyshev")
        assert repr(named) == repr(switched)


def test_a_layer_for_pyg() -> None:
    case = Product("agn-separable", u=0)
    data = case.data()
    layer = Conv("agn-separable", 2, 4, edge_dim=2).double()
    assert layer(data.x, data.pos, data.edge_index, data.edge_attr).shape == (5, 4)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"architecture": "agn-separable", "aggregation": "max"}, "use 'sum' or 'mean' for a->v"),
        ({"architecture": "agn-separable", "degree": -1}, "degree: is -1; give a whole number"),
        ({"architecture": "agn-separable", "degree": 2.0}, "degree: is 2.0; give a whole number"),
        ({"architecture": "agn-separable", "basis": "fourier"}, "choose from chebyshev, legendre"),
        (
            {"architecture": "agn-separable", "angle_features": 2},
            "no update of AGN-separable reads",
        ),
        ({"architecture": "agn-separable", "separable": False}, "separable: is False, but AGN"),
        ({"architecture": "agn-raw", "separable": True}, "AGN-raw has no angle update"),
        ({"architecture": "dgn", "separable": True}, "DGN has no angle update"),
        ({"architecture": "agn", "degree": 2}, "pass separable=True"),
        ({"architecture": "agn", "separable": 1}, "separable: is 1; give True or False"),
        ({"architecture": "agn", "chiral": True}, "pass dimension=3"),
        ({"architecture": "agn", "tied": True}, "tied: is True, but AGN is not separable"),
        ({"architecture": "agn-separable", "tied": 1}, "tied: is 1; give True or False"),
        ({"architecture": "dimenet-separable", "tied": True}, "are read for different inputs"),
        (
            {"architecture": AGN.replace(angle=[a, cosine], forms={"angle": ProductForm()})},
            "angle by angle",
        ),
        (
            {"architecture": AGN_RAW.replace(angle=AGN.angle), "separable": True},
            "which needs the angles listed",
        ),
    ],
    ids=str,
)
def test_refusals(options: dict, words: str) -> None:
    with pytest.raises(ValueError, match=words) as caught:
        build(**{"layers": 2, **options})
    assert "\n" not in str(caught.value)


def test_variants_are_plain_specifications() -> None:
    assert "a" not in {each.name for each in separable(AGN).angle}
    assert variant_of(AGN) is AGN
    assert variant_of(separable(AGN, 2)).forms["angle"].degree == 2
