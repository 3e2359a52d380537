"""Wrong graphs and wrong options are refused in one line"""

import math

import pytest
import torch
from torch_geometric.data import Batch, Data

from helpers import (
    FEATURES,
    generic_edges,
    graph,
    random_model,
    rng,
    without_features,
)
from nn.degenerate_cases import NO_EDGES
from symgnn.graphs import Topology
from symgnn.nn import ARCHITECTURES, build

# ------------------------------------------------------------------ errors


def fit(**changes):
    """A graph that suits a model with all features, but for what is changed."""
    data = graph(generic_edges(), 3, 0, torch.float32)
    for name, value in changes.items():
        data[name] = value(data[name]) if callable(value) else value
    return data


def put(value, row=4):
    def change(pos):
        pos = pos.clone()
        pos[row, 1] = value
        return pos

    return change


BAD_GRAPHS = {
    "NaN": ({"pos": put(math.nan)}, r"^pos: row 4 is \["),
    "inf": ({"pos": put(-math.inf, 7)}, r"^pos: row 7 is \["),
    "pos flat": ({"pos": lambda p: p.flatten()}, r"^pos: has shape \[27\]"),
    "pos integer": ({"pos": lambda p: p.long()}, r"^pos: is torch.int64"),
    "pos without axes": ({"pos": lambda p: p[:, :0]}, r"^pos: has shape \[N, 0\]"),
    "pos missing": ({"pos": None}, r"^pos: the graph has no coordinates"),
    "pos in 2d": ({"pos": lambda p: p[:, :2]}, r"^pos: has 2 coordinates.*dimension=3"),
    "edges missing": ({"edge_index": None}, r"^edge_index: the graph has no edges"),
    "edges float": ({"edge_index": lambda t: t.float()}, r"^edge_index: is torch.float32"),
    "edges int32": ({"edge_index": lambda t: t.int()}, r"^edge_index: is torch.int32"),
    "edges flat": ({"edge_index": lambda t: t[0]}, r"^edge_index: has shape \[48\]"),
    "edges in threes": (
        {"edge_index": lambda t: t.flatten()[:48].view(3, 16)},
        r"^edge_index: has shape \[3, 16\]",
    ),
    "edges transposed": ({"edge_index": lambda t: t.T}, r"^edge_index: .*\[48, 2\].*\.t\(\)"),
    "edges out of range": ({"edge_index": lambda t: t + 1}, r"^edge_index: names node 9"),
    "edges negative": ({"edge_index": lambda t: t - 1}, r"^edge_index: names node -1"),
    "x missing": ({"x": None}, r"^x: is missing.*node_features=2"),
    "x narrow": ({"x": lambda t: t[:, :1]}, r"^x: has shape \[9, 1\].*\[9, 2\]"),
    "x short": ({"x": lambda t: t[:8]}, r"^x: has shape \[8, 2\].*\[9, 2\]"),
    "x flat": ({"x": lambda t: t[:, 0]}, r"^x: has shape \[9\]"),
    "x integer": ({"x": lambda t: t.long()}, r"^x: is torch.int64"),
    "edge_attr missing": ({"edge_attr": None}, r"^edge_attr: is missing.*edge_features=2"),
    "edge_attr narrow": ({"edge_attr": lambda t: t[:, :1]}, r"^edge_attr: has shape \[48, 1\]"),
    "edge_attr short": ({"edge_attr": lambda t: t[:9]}, r"^edge_attr: has shape \[9, 2\]"),
    "edge_attr flat": ({"edge_attr": lambda t: t[:, 0]}, r"^edge_attr: has shape \[48\]"),
    "u missing": ({"u": None}, r"^u: is missing.*graph_features=2"),
    "u wide": ({"u": lambda t: t.repeat(1, 2)}, r"^u: has shape \[1, 4\]"),
    "u of two graphs": ({"u": lambda t: t.repeat(2, 1)}, r"^u: has shape \[2, 2\]"),
    "u flat": ({"u": lambda t: t[0]}, r"^u: has shape \[2\]"),
}


@pytest.mark.parametrize("architecture", ["gn", "agn"])
@pytest.mark.parametrize(("changes", "message"), BAD_GRAPHS.values(), ids=BAD_GRAPHS)
def test_a_graph_that_does_not_fit_is_refused(architecture, changes, message):
    model = random_model(architecture, dimension=3, **FEATURES).float()
    assert model(fit()).isfinite().all()
    with pytest.raises(ValueError, match=message) as error:
        model(fit(**changes))
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("name", "option"),
    [("x", "node_features"), ("edge_attr", "edge_features"), ("u", "graph_features")],
)
def test_features_that_would_not_be_read_are_refused(name, option):
    model = random_model("agn", **{**FEATURES, option: 0}).float()
    assert model(fit(**{name: None})).isfinite().all()
    with pytest.raises(ValueError, match=rf"^{name}: has 2 features .*{option}=2") as error:
        model(fit())
    assert "\n" not in str(error.value)


def test_angle_features_are_checked():
    data = fit()
    angles = Topology.of(data).num_angles
    model = random_model("agn", angle_features=2, **FEATURES).float()
    assert model(fit(angle_attr=torch.zeros(angles, 2))).isfinite().all()
    for wrong, message in (
        (None, r"^angle_attr: is missing.*angle_features=2"),
        (torch.zeros(angles, 1), rf"^angle_attr: has shape \[{angles}, 1\]"),
        (torch.zeros(angles - 1, 2), rf"^angle_attr: has shape \[{angles - 1}, 2\]"),
    ):
        with pytest.raises(ValueError, match=message):
            model(fit(angle_attr=wrong))
    with pytest.raises(ValueError, match=r"^angle_attr: has 2 features .*angle_features=2"):
        random_model("agn", **FEATURES).float()(fit(angle_attr=torch.zeros(angles, 2)))


def test_edges_between_graphs_are_refused():
    batch = Batch.from_data_list([fit(), fit()])
    batch.edge_index[:, 5] = torch.tensor([2, 11])
    model = random_model("agn", **FEATURES).float()
    with pytest.raises(ValueError, match=r"^edge_index: edge 5 joins nodes \[2, 11\]"):
        model(batch)


def test_things_that_are_no_tensors_are_refused():
    model = random_model("agn", **FEATURES).float()
    with pytest.raises(TypeError, match=r"^pos: is a list"):
        Topology.of(Data(pos=[[0.0]], edge_index=NO_EDGES))
    with pytest.raises(TypeError, match=r"^edge_index: is a list"):
        model(fit(edge_index=[[0, 1], [1, 0]]))
    with pytest.raises(TypeError, match=r"forward takes a Data or Batch"):
        model()


@pytest.mark.parametrize("architecture", ARCHITECTURES)
@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_what_is_not_finite_does_not_vanish(architecture, value):
    """Coordinates are not checked where a topology is attached; then the output has to tell."""
    data = fit(pos=put(value))
    data.topology = Topology.of(fit())
    output = random_model(architecture, dimension=3, **FEATURES).float()(data)
    assert not output.isfinite().all(), f"{architecture}: {value} in, {output.tolist()} out"


BAD_OPTIONS = {
    "architecture": (
        {"architecture": "agm"},
        r"^architecture: 'agm' is not known; did you mean '.*agn'",
    ),
    "architecture near": ({"architecture": "combine"}, r"did you mean 'combined'"),
    "architecture far": (
        {"architecture": "zzz"},
        r"^architecture: 'zzz' is not known; choose from gn, dgn",
    ),
    "aggregation": (
        {"aggregation": "maen"},
        r"^aggregation: 'maen' is not known; did you mean 'mean'",
    ),
    "movement": (
        {"aggregation": {"e-v": "sum"}},
        r"^aggregation: 'e-v' is not known; did you mean 'e->v'",
    ),
    "movement's": (
        {"aggregation": {"e->v": "som"}},
        r"^aggregation: 'som' is not known; did you mean 'sum'",
    ),
    "map": (
        {"coordinate_map": "neighbor-sum"},
        r"^coordinate_map: 'neighbor-sum' is not known; did you mean 'neighbour-sum'",
    ),
    "task": ({"task": "nodes"}, r"^task: 'nodes' is not known; did you mean 'node'"),
    "hidden": ({"hidden": -3}, r"^hidden: is -3"),
    "hidden float": ({"hidden": 8.0}, r"^hidden: is 8.0"),
    "layers": ({"layers": 0}, r"^layers: is 0"),
    "outputs": ({"outputs": 0}, r"^outputs: is 0"),
    "dropout": ({"dropout": 1}, r"^dropout: is 1"),
    "dropout negative": ({"dropout": -0.1}, r"^dropout: is -0.1"),
    "mlp_layers": ({"mlp_layers": -1}, r"^mlp_layers: is -1"),
    "readout_layers": ({"readout_layers": -1}, r"^readout_layers: is -1"),
    "mlp_hidden": ({"mlp_hidden": -1}, r"^mlp_hidden: is -1"),
    "mlp_hidden zero": ({"mlp_hidden": 0}, r"^mlp_hidden: is 0"),
    "node_features": ({"node_features": -1}, r"^node_features: is -1"),
    "dimension": ({"dimension": 0}, r"^dimension: is 0"),
    "dimension of gn": ({"architecture": "gn"}, r"^dimension: .*dimension=3"),
    "dimension of shift": (
        {"coordinate_map": "shift", "task": "coordinates"},
        r"^dimension: Shift .*dimension=3",
    ),
    "chunk": ({"chunk": 0}, r"^chunk: is 0"),
    "scaling": ({"scaling": 2.0}, r"^scaling: AGN does not scale"),
    "scaling negative": ({"architecture": "sdgn", "scaling": -1.0}, r"^scaling: is -1.0"),
    "coordinates": ({"task": "coordinates"}, r"^coordinate_map: is 'identity'"),
    "egcn and angles on edges": (
        {"architecture": "agn-to-edges", "coordinate_map": "egcn"},
        r"^coordinate_map: egcn .*egcn-neighbours",
    ),
}


@pytest.mark.parametrize(("options", "message"), BAD_OPTIONS.values(), ids=BAD_OPTIONS)
def test_options_that_make_no_sense_are_refused(options, message):
    with pytest.raises(ValueError, match=message) as error:
        build(**{"architecture": "agn", **options})
    assert "\n" not in str(error.value)


def test_names_may_be_written_in_capitals():
    """Or they are refused: but `MEAN` is not `sum`."""
    data = without_features(graph(generic_edges(), 3, 0))

    def output(**options):
        return random_model("dgn", **options)(data)

    for name in ("mean", "sum", "max"):
        assert torch.equal(output(aggregation=name.upper()), output(aggregation=name)), name
        mixed = {"e->v": name}
        assert torch.equal(output(aggregation={"E->V": name}), output(aggregation=mixed)), name
    assert torch.equal(output(task="Node"), output(task="node"))
    assert torch.equal(output(coordinate_map="Scale"), output(coordinate_map="scale"))
    assert torch.equal(random_model("DGN")(data), random_model("dgn")(data))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("size", [1.0, 1e5, 1e10, 1e15])
@pytest.mark.parametrize("coordinate_map", ["scale-u", "shift-u", "rigid-u"])
def test_functions_of_a_large_u_stay_finite(coordinate_map, size, dtype):
    """u grows with squared distances, and its functions with it."""
    for architecture in ("dgn", "combined"):
        model = random_model(
            architecture, task="coordinates", dimension=3, coordinate_map=coordinate_map
        ).to(dtype)
        data = without_features(graph(generic_edges(), 3, 0))
        data.pos = (size * data.pos).to(dtype).requires_grad_()
        output = model(data)
        assert output.isfinite().all(), architecture
        output.div(size).sum().backward()
        assert data.pos.grad.isfinite().all(), architecture


def test_rigid_motions_are_rigid_however_large_the_coefficients_are():
    data = graph(generic_edges(), 3, 0)
    model = random_model(
        "dgn", task="coordinates", coordinate_map="rigid", layers=1, dimension=3, **FEATURES
    )
    for size in (1e-3, 0.05, 0.6, 10, 1e3, 1e10):
        with torch.no_grad():
            model.blocks[0].map.coefficients.copy_(size * torch.randn(6, generator=rng()))
        before, after = torch.pdist(data.pos), torch.pdist(model(data).detach())
        error = float((before - after).abs().max() / before.max())
        assert error < 1e-13 * max(size, 1) + 1e-13, f"{size}: {error}"
