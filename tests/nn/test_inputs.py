"""Inputs are told apart by what they are, not by their names; their parameters are the model's."""

import copy
import pickle

import pytest
import torch
from torch import nn
from torch_geometric.data import Data

from helpers import distance, generic_edges, graph, rng, without_features
from symgnn.geometry.symmetry import EUCLIDEAN
from symgnn.nn import ARCHITECTURES, PEERS, Conv, Form, Measure, Spec, build, initial, reduce
from symgnn.nn.bases import bessel, cosine_cutoff, fourier, gaussians, spherical
from symgnn.nn.inputs import a, d2, e, position, theta, v
from symgnn.nn.peers.egnn import normalised
from symgnn.nn.peers.peer_forms import Linear, Same

NODES = {"node": [v, reduce(e)]}


def cloud() -> Data:
    return without_features(graph(generic_edges(), 3, 0))


def model_of(spec: Spec, **options) -> nn.Module:
    torch.manual_seed(0)
    return build(spec, **{"hidden": 5, "task": "node", "layers": 2, **options}).double()


# ------------------------------------------------------------------ identity

BASES = {
    "gaussians": lambda c: gaussians(4, c),
    "cosine": cosine_cutoff,
    "bessel": lambda c: bessel(4, c),
    "exponent": lambda c: bessel(4, 3.0, int(c)),
}


@pytest.mark.parametrize("name", BASES)
def test_a_basis_is_equal_to_itself_alone(name: str) -> None:
    make = BASES[name]
    assert make(2.0) == make(2.0)
    assert hash(make(2.0)) == hash(make(2.0))
    assert make(2.0) != make(5.0)


def test_bases_of_other_sizes_differ() -> None:
    assert fourier(2) == fourier(2) != fourier(3)
    assert gaussians(4, 2.0) != gaussians(5, 2.0)
    assert spherical(2, 3, 2.0) == spherical(2, 3, 2.0) != spherical(2, 3, 2.0, at="end")
    assert normalised(4) == normalised(4) != normalised(4, whole=True)


@pytest.mark.parametrize("form", [False, True], ids=["mlp", "form"])
@pytest.mark.parametrize("name", BASES)
def test_two_bases_of_one_name_are_two_inputs(name: str, form: bool) -> None:
    """The update reads each in its own columns, not the last one twice."""
    first, second = BASES[name](2.0), BASES[name](5.0)
    forms = {"edge": Linear} if form else {}
    data = cloud()
    seen = {}
    for label, edge in {
        "both": [v.source, first, second],
        "first": [v.source, first, first],
        "second": [v.source, second, second],
    }.items():
        spec = Spec("s", edge=edge, **NODES, forms=forms)
        seen[label] = model_of(spec, mlp_layers=0)(data)
    assert distance(seen["both"], seen["first"]) > 1e-6
    assert distance(seen["both"], seen["second"]) > 1e-6


def test_two_bases_of_one_name_may_have_different_sizes() -> None:
    model = model_of(Spec("s", edge=[v.source, bessel(3, 2.0), bessel(5, 2.0)], **NODES))
    assert model(cloud()).shape == (9, 1)
    assert {k: m.frequencies.shape[0] for k, m in model.measures.items()} == {
        "bessel": 3,
        "bessel_2": 5,
    }


def test_two_bases_as_reductions_and_on_rays() -> None:
    """Also where they are not read on edges: columns are those of each one's own module."""
    data = cloud()
    first, second = bessel(2, 2.0), bessel(2, 4.0)
    for spec in (
        Spec("sums", edge=[v.source], node=[v, reduce(e), reduce(first), reduce(second)]),
        Spec("rays", angle=[first.first, second.second], node=[v, reduce(a)]),
    ):
        model = model_of(spec, task="graph", layers=1)
        assert list(model.measures) == ["bessel", "bessel_2"], spec
        model(data).sum().backward()
        for module in model.measures.values():
            assert float(module.frequencies.grad.abs().max()) > 0, spec


def test_measures_of_one_name_and_different_functions() -> None:
    far = Measure("d2", "edge", function=_tenfold, symmetry=EUCLIDEAN)
    seen = [
        model_of(Spec("s", edge=edge, **NODES), mlp_layers=0)(cloud())
        for edge in ([d2, far], [d2, d2], [far, far])
    ]
    assert distance(seen[0], seen[1]) > 1e-6
    assert distance(seen[0], seen[2]) > 1e-6


def _tenfold(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return 10 * (x - y).square().sum(-1)


def test_an_input_read_in_several_places_is_one_module() -> None:
    basis = bessel(3, 2.0)
    spec = Spec(
        "s",
        angle=[basis.first, bessel(3, 2.0).second, theta],
        edge=[v.source, bessel(3, 2.0)],
        node=[v, reduce(e), reduce(a), reduce(basis)],
    )
    assert list(model_of(spec).measures) == ["bessel"]
    assert list(Conv(spec, 0, 4).measures) == ["bessel"]


def test_names_in_a_state_dict() -> None:
    """Names are those of the inputs, then numbered in the order in which they are read."""
    edge = [v.source, gaussians(3, 2.0), bessel(2, 1.0), gaussians(3, 4.0), bessel(2, 3.0)]
    spec = Spec("s", edge=edge, **NODES)
    keys = [key for key in model_of(spec).state_dict() if key.startswith("measures.")]
    assert keys == [
        "measures.gaussians.centres",
        "measures.bessel.frequencies",
        "measures.gaussians_2.centres",
        "measures.bessel_2.frequencies",
    ]
    swapped = model_of(spec.replace(edge=[edge[0], *edge[3:], *edge[1:3]]))
    assert float(swapped.measures["gaussians"].centres[-1]) == 4.0


@pytest.mark.parametrize("name", ["keys", "forward", "a.b", "", "names"])
def test_any_name_can_be_that_of_a_module(name: str) -> None:
    own = Measure(name, "edge", make=_Weighed)
    model = model_of(Spec("s", edge=[v.source, own], **NODES))
    model(cloud()).sum().backward()
    again = model_of(Spec("s", edge=[v.source, own], **NODES))
    again.load_state_dict(model.state_dict())
    assert len(model.measures) == 1


class _Weighed(nn.Module):
    """A length with a parameter, and a way to draw it anew."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(1))

    def reset_parameters(self) -> None:
        nn.init.uniform_(self.weight)

    def forward(self, *ends: torch.Tensor) -> torch.Tensor:
        x = ends[0] if len(ends) == 1 else ends[0] - ends[1]
        return self.weight * x.square().sum(-1, keepdim=True)


def test_copies_and_pickles_keep_their_inputs() -> None:
    spec = Spec("s", edge=[v.source, gaussians(3, 2.0), gaussians(3, 5.0), bessel(2, 2.0)], **NODES)
    model, data = model_of(spec), cloud()
    for other in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        assert distance(model(data), other(data)) == 0.0


# ------------------------------------------------------------------ on the rays of angles


class Concatenated(Form):
    """One linear map of the concatenation, as an MLP without hidden layers."""

    def __init__(self, widths, out, hidden) -> None:
        super().__init__(widths, out, hidden)
        self.linears = nn.ModuleList([nn.Linear(sum(widths), out)])

    def here(self, *values: torch.Tensor) -> torch.Tensor:
        return self.linears[0](torch.cat(values, -1))


def _ray(source: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    return source - target


RAY = Measure("ray", "edge", function=_ray, width=3)
ON_RAYS = {
    "length": d2.first,
    "length in": d2.first.incoming,
    "basis": gaussians(3, 2.0).second,
    "basis in": gaussians(3, 2.0).second.incoming,
    "ray in": RAY.second.incoming,
    "edge": e.first,
    "edge in": e.second.incoming,
    "initial edge": initial(e).second,
}


@pytest.mark.parametrize("case", ON_RAYS)
def test_forms_and_mlps_read_the_same_on_rays(case: str) -> None:
    """Of a directed graph with parallel edges; 0 where no edge comes to the vertex."""
    spec = Spec("s", angle=[ON_RAYS[case]], edge=[e], node=[v, reduce(a), reduce(e)])
    data = graph(torch.tensor([[0, 0, 1, 3, 2, 4], [1, 1, 2, 1, 3, 2]]), 3, 0)
    data.x = data.u = None
    options = {"layers": 1, "mlp_layers": 0, "edge_features": 2}
    plain = model_of(spec, **options)
    form = model_of(spec.replace(forms={"angle": Concatenated}), **options)
    form.load_state_dict(plain.state_dict())
    assert distance(plain(data), form(data)) < 1e-13


def test_a_form_does_not_read_a_measure_in_either_direction() -> None:
    spec = Spec("s", angle=[RAY.first], node=[v, reduce(a)], forms={"angle": Concatenated})
    with pytest.raises(ValueError, match=r"^angle: a form reads ray.first, .*ray.first.incoming"):
        build(spec)


# ------------------------------------------------------------------ what nodes start with


def test_nodes_may_start_with_a_measure_that_is_learnt() -> None:
    size = Measure("size", "node", make=_Weighed, symmetry=EUCLIDEAN)
    spec = Spec("s", edge=[v.source, v.target], **NODES, inputs=[v, size])
    model = model_of(spec)
    model(cloud()).sum().backward()
    assert float(model.measures["size"].weight.grad.abs().max()) > 0
    conv = Conv(spec, 0, 4).double()
    conv(None, cloud().pos, cloud().edge_index).sum().backward()
    assert float(conv.measures["size"].weight.grad.abs().max()) > 0


def test_inputs_that_only_initial_values_carry_count_for_the_symmetry() -> None:
    """Coordinates that are read as `initial(v)` are read."""
    spec = Spec("s", edge=[d2], node=[initial(v), reduce(e)], inputs=[v, position])
    model = model_of(spec, dimension=3)
    assert "translation" not in model.symmetry
    data = cloud()
    moved = Data(pos=data.pos + 1, edge_index=data.edge_index)
    assert distance(model(data), model(moved)) > 1e-6


def test_node_features_that_no_input_reads_are_refused() -> None:
    spec = Spec("s", edge=[v.source, d2], **NODES, inputs=[position])
    unread = "is 2, but the initial node values of s do not include v"
    with pytest.raises(ValueError, match=rf"^node_features: {unread}"):
        build(spec, node_features=2, dimension=3)
    with pytest.raises(ValueError, match=rf"^in_channels: {unread}"):
        Conv(spec, 2, 4, dimension=3)


def test_a_layer_has_to_update_nodes_to_the_width_it_says() -> None:
    with pytest.raises(ValueError, match=r"^architecture: s has no node update"):
        Conv(Spec("s", edge=[v.source, d2]), 2, 4)
    same = Spec("s", node=[v], forms={"node": Same})
    with pytest.raises(ValueError, match=r"^out_channels: is 4, but .* gives 2"):
        Conv(same, 2, 4)
    assert Conv(same, 2, 2)(torch.ones(9, 2), cloud().pos, cloud().edge_index).shape == (9, 2)


# ------------------------------------------------------------------ drawn anew


def unchanged(module: nn.Module, reset) -> list[str]:
    """The parameters that `reset` leaves as they are."""
    with torch.no_grad():
        for parameter in module.parameters():
            parameter += 3 + torch.randn(parameter.shape, generator=rng(1))
    before = {name: p.clone() for name, p in module.named_parameters()}
    reset()
    return [name for name, p in module.named_parameters() if bool((p == before[name]).any())]


def everything() -> Spec:
    return Spec(
        "s",
        edge=[v.source, bessel(3, 2.0), bessel(3, 4.0)],
        node=[v, reduce(e), normalised(4)],
        inputs=[v, Measure("size", "node", make=_Weighed, symmetry=EUCLIDEAN)],
        forms={"edge": Nested},
    )


class Nested(Form):
    """Parameters inside a Sequential, which has no reset of its own."""

    def __init__(self, widths, out, hidden) -> None:
        super().__init__(widths, out, hidden)
        self.mlp = nn.Sequential(nn.Linear(sum(widths), hidden), nn.SiLU(), nn.Linear(hidden, out))

    def here(self, *values: torch.Tensor) -> torch.Tensor:
        return self.mlp(torch.cat(values, -1))


def test_a_layer_draws_all_parameters_anew() -> None:
    conv = Conv(everything(), 3, 4, hidden=4, coordinate_map="neighbour-sum")
    assert {name.split(".")[0] for name, _ in conv.named_parameters()} == {"block", "measures"}
    assert not unchanged(conv, conv.reset_parameters)


@pytest.mark.parametrize("architecture", [*ARCHITECTURES, *PEERS, "everything"])
def test_a_model_draws_all_parameters_anew(architecture: str) -> None:
    spec = everything() if architecture == "everything" else architecture
    options = {"node_features": 3} if architecture == "everything" else {}
    model = build(spec, hidden=4, layers=2, dimension=3, **options)
    assert not unchanged(model, model.reset_parameters)


@pytest.mark.parametrize("architecture", ["schnet", "dimenet", "dimenet++"])
def test_parameters_are_drawn_as_at_the_start(architecture: str) -> None:
    torch.manual_seed(0)
    model = build(architecture, hidden=32, layers=2, task="node")
    start = {name: p.detach().clone() for name, p in model.named_parameters()}
    unchanged(model, model.reset_parameters)
    for name, parameter in model.named_parameters():
        old, new = (float(p.detach().square().mean()) for p in (start[name], parameter))
        assert new == pytest.approx(old, rel=0.6), name


def test_parameters_that_cannot_be_drawn_anew_are_named() -> None:
    class Own(Form):
        def __init__(self, widths, out, hidden) -> None:
            super().__init__(widths, widths[0], hidden)
            self.gain = nn.Parameter(torch.ones(()))

        def here(self, *values: torch.Tensor) -> torch.Tensor:
            return self.gain * values[0]

    model = build(Spec("s", node=[v], forms={"node": Own}), hidden=4)
    with pytest.raises(TypeError, match=r"^reset_parameters: Own has the parameter 'gain'"):
        model.reset_parameters()

    class Plain(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.gain = nn.Parameter(torch.ones(()))

    model = build(Spec("s", edge=[Measure("m", "edge", make=Plain)], node=[reduce(e)]), hidden=4)
    with pytest.raises(TypeError, match=r"^reset_parameters: Plain \('m'\) has .*'gain'"):
        model.reset_parameters()
