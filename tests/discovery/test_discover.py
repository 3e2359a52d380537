"""Whole searches on small sets whose symmetry is known."""

import json
from pathlib import Path

import pytest
import torch
from torch_geometric.data import Data

import symgnn
from symgnn.cli import main
from symgnn.discovery import DiscoveryReport

RING = torch.arange(7)
EDGES = torch.stack([torch.cat([RING, RING.roll(1)]), torch.cat([RING.roll(1), RING])])


def rings(count: int = 120, level: str = "graph", seed: int = 0) -> list[Data]:
    """Rings in the plane whose targets are made of the lengths of their edges."""
    generator = torch.Generator().manual_seed(seed)
    found = []
    for _ in range(count):
        size = 0.6 + torch.rand((), generator=generator, dtype=torch.float64)
        pos = size * torch.randn(7, 2, generator=generator, dtype=torch.float64)
        lengths = (pos - pos.roll(1, 0)).norm(dim=1)
        noise = 0.02 * torch.randn((), generator=generator, dtype=torch.float64)
        y = (lengths.sin().mean() + noise).reshape(1, 1)
        if level == "node":
            y = (lengths.sin() + lengths.roll(-1).sin()).unsqueeze(1)
        elif level == "edge":
            y = (pos[EDGES[0]] - pos[EDGES[1]]).norm(dim=1, keepdim=True).sin()
        elif level == "classes":
            y = (lengths.mean() > 1.8).long().reshape(1)
        elif level == "node-vectors":
            rays = lengths.unsqueeze(1) * (pos - pos.roll(1, 0))
            y = rays - rays.roll(-1, 0)
        found.append(Data(pos=pos, edge_index=EDGES, y=y))
    return found


@pytest.fixture(scope="module")
def report() -> DiscoveryReport:
    return symgnn.discover(rings(), minutes=5, level="graph", progress=False)


def test_lengths_are_found(report: DiscoveryReport) -> None:
    assert set(report.kept) == {"permutation", "translation", "rotation", "reflection", "flex"}
    broken = {"dilation", "inversion", "special-conformal", "affine"}
    assert set(report.broken) >= broken
    assert "torsion" in report.absent  # a ring has no bridge
    found = report.verdicts["dilation"]
    assert found.effect > 1.5
    assert found.interval[0] > 1
    assert found.p_value < 0.05
    assert found.decided_by == "both"
    assert found.knock_out is not None
    assert found.variation is None  # dilations are no isometries
    variation = report.verdicts["rotation"].variation
    assert variation is not None
    assert variation > 0.05


def test_the_advised_network_is_blind_to_nothing_that_matters(report: DiscoveryReport) -> None:
    model = report.build(hidden=8)
    assert report.config["model"] == {"block": "dgn"}
    assert not [kind for kind in report.broken if kind in model.symmetry]
    assert model(rings(1)[0]).shape == (1, 1)
    assert "Use `dgn`" in report.advice


def test_inputs_and_pose(report: DiscoveryReport) -> None:
    spread = report.verdicts["rotation"].spread
    assert spread is not None
    assert spread.p_value is not None
    assert spread.p_value > 0.01
    dilation = report.verdicts["dilation"].spread
    assert dilation is not None
    assert dilation.p_value is None
    assert dilation.accuracy > 0.6
    assert report.pose["size"].explained > 0.2 > report.pose["direction"].explained


def test_it_is_saved_and_resumed_alike(report: DiscoveryReport, tmp_path: Path) -> None:
    given = {"level": "graph", "progress": False, "out": tmp_path}
    first = symgnn.discover(rings(), minutes=1e-9, **given)
    assert set(first.undecided) == set(report.verdicts)
    assert first.missed
    assert "more minutes" in first.advice
    again = symgnn.discover(rings(), minutes=5, resume=True, **given)
    assert again.to_dict() == report.to_dict()
    page = again.save(tmp_path / "discover.html").read_text()
    assert "Do the targets keep the transformation?" in page
    assert page.count("data:image/png") == 2
    assert json.loads(again.save(tmp_path / "discover.json").read_text())["best"] == again.best
    with pytest.raises(ValueError, match=r"^--resume: .* other data"):
        symgnn.discover(rings(seed=1), minutes=5, resume=True, **given)
    for damage in ('{"results": {', "[1, 2]"):
        (tmp_path / "steps.json").write_text(damage)
        with pytest.raises(ValueError, match=r"^--resume: .* is damaged"):
            symgnn.discover(rings(), minutes=5, resume=True, **given)


@pytest.mark.parametrize("level", ["node", "edge", "classes"])
def test_other_targets(level: str) -> None:
    graphs = rings(150 if level == "classes" else 60, level)
    place = "graph" if level == "classes" else level
    found = symgnn.discover(graphs, minutes=5, level=place, progress=False)
    for kind in ("translation", "rotation", "reflection"):
        assert found.verdicts[kind].verdict == "kept"
    assert found.verdicts["dilation"].verdict == "broken"
    assert "dilation" not in found.build().symmetry


def test_vectors_are_tested_for_equivariance() -> None:
    found = symgnn.discover(rings(60, "node-vectors"), level="node-vectors", progress=False)
    for kind in ("translation", "rotation", "reflection"):
        assert found.verdicts[kind].verdict == "kept"
    assert found.verdicts["dilation"].verdict == "broken"
    assert "torsion" not in found.verdicts
    assert found.build().output_type == "vector per node"


def test_several_vectors_in_a_row() -> None:
    graphs = rings(60, "node-vectors")
    for graph in graphs:
        graph.y = torch.cat([graph.y, 100 * (graph.pos.roll(1, 0) - graph.pos)], 1)
    found = symgnn.discover(graphs, level="node-vectors", progress=False, questions=())
    for kind in ("translation", "rotation", "reflection"):
        assert found.verdicts[kind].verdict == "kept"
    assert found.build()(graphs[0]).shape == (7, 2, 2)
    for graph in graphs:
        graph.y[:, 2:] = torch.tensor([0.0, 1.0])  # a field, however large its neighbour
    found = symgnn.discover(graphs, level="node-vectors", progress=False, questions=())
    assert "rotation" in found.broken


def test_copies_are_left_out() -> None:
    given = rings(30)
    found = symgnn.discover(
        given + given[:10], minutes=1e-9, level="graph", progress=False, questions=()
    )
    assert found.graphs == 30
    assert "10 of 40 graphs are exact copies" in str(found)


def test_directions_that_matter_are_found() -> None:
    graphs = rings(100)
    for graph in graphs:
        graph.y = graph.pos[:, 1].tanh().mean().reshape(1, 1)
    found = symgnn.discover(graphs, level="graph", progress=False)
    assert {"translation", "rotation", "reflection"} <= set(found.broken)
    assert found.config["model"] == {"block": "gn"}


def test_noise_is_undecided() -> None:
    graphs = rings(60)
    generator = torch.Generator().manual_seed(3)
    for graph in graphs:
        graph.y = torch.randn(1, 1, generator=generator)
    found = symgnn.discover(graphs, level="graph", progress=False)
    assert not found.kept
    assert not found.broken
    assert "nothing can be said" in found.advice
    assert "There are 60 graphs" in found.warnings[0]


def test_solids_that_the_graph_alone_tells_apart_keep_everything() -> None:
    solids = symgnn.data.load("polytopes-3d", copies=10)
    found = symgnn.discover(solids, progress=False, questions=())
    assert found.graphs == 55
    assert not found.broken
    assert not found.undecided
    assert any("without coordinates" in text for text in found.warnings)


def test_features_that_hold_coordinates_are_told_of() -> None:
    graphs = rings(30)
    for graph in graphs:
        graph.x = torch.cat([torch.ones(7, 1), graph.pos @ torch.ones(2, 1).double()], 1)
        rays = graph.pos[EDGES[0]] - graph.pos[EDGES[1]]
        square = rays.square().sum(1, keepdim=True)
        graph.edge_attr = torch.cat([square, 1 / square.sqrt(), torch.ones(14, 1)], 1)
        far = (graph.pos - graph.pos.mean(0)).norm(dim=1, keepdim=True)
        graph.x = torch.cat([graph.x, far, torch.arange(7).unsqueeze(1) % 2], 1)
    found = symgnn.discover(graphs, minutes=1e-9, level="graph", progress=False)
    assert any(text.startswith("x: columns [1, 2] ") for text in found.warnings)
    assert any(text.startswith("edge_attr: columns [0, 1] ") for text in found.warnings)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda g: g[:5], r"^graphs: there are 5"),
        (lambda g: [Data(pos=d.pos, y=d.y, edge_index=EDGES[:, :0]) for d in g], r"^edge_index: g"),
        (lambda g: [Data(pos=d.pos * float("nan"), y=d.y, edge_index=EDGES) for d in g], r"^pos: "),
        (lambda g: [Data(pos=d.pos, y=torch.ones(1, 1), edge_index=EDGES) for d in g], r"^y: is t"),
        (lambda g: "nowhere", r"^data: 'nowhere' is neither"),
        (lambda g: [{"pos": 1}] * 30, r"^graphs: is a list of dict"),
        (lambda g: [Data(y=d.y, edge_index=EDGES) for d in g], r"^pos: graph 0 has no float"),
        (
            lambda g: [Data(pos=d.pos, y=d.y, edge_index=EDGES + 3) for d in g],
            r"^edge_index: .* 9,",
        ),
        (lambda g: g[:5] * 10, r"^graphs: 5 of 50 differ"),
        (lambda g: [Data(**d.to_dict(), x=d.pos * torch.nan) for d in g], r"^x: graph 0 has v"),
        (lambda g: [*g[1:], Data(**g[0].to_dict(), x=g[0].pos)], r"^x: graph 29 has it, graph 0"),
    ],
)
def test_data_that_cannot_be_judged_are_refused(change: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        symgnn.discover(change(rings(30)), level="graph", progress=False)  # type: ignore[operator]


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "found"
    assert main(["discover", "polytopes-3d", "copies=6", "--minutes", "2", "--out", str(out)]) == 0
    text = capsys.readouterr().out
    assert "transformations" in text
    assert "config.yaml" in text
    assert {path.name for path in out.iterdir()} == {
        *("discover.html", "discover.json", "config.yaml", "steps.json"),
    }
    assert main(["discover", "polytopes-3d", "--resume"]) == 2
    assert "--resume: needs --out" in capsys.readouterr().err


def test_graphs_that_cannot_be_judged_are_refused_or_told_of() -> None:
    with pytest.raises(ValueError, match="graphs: there are 0; at least 20"):
        symgnn.discover([], progress=False)
    given = rings(30)
    given[3].y[0] = torch.inf
    with pytest.raises(ValueError, match="y: graph 3 has an infinite target"):
        symgnn.discover(given, level="graph", progress=False)
    given[3].y[0] = torch.nan
    found = symgnn.discover(given, minutes=1, level="graph", progress=False, questions=())
    assert "y: targets are missing (NaN) in 1 of the graphs; they are left out." in str(found)
    for graph in given[5:]:
        graph.y[:] = torch.nan
    with pytest.raises(ValueError, match="y: 4 of 30 graphs have a target that is a number"):
        symgnn.discover(given, level="graph", progress=False)


def test_what_little_needs_is_seen_beside_what_lengths_tell() -> None:
    graphs = rings(200)
    for graph in graphs:
        graph.y = graph.y + 0.2 * graph.pos[:, 1].mean().sin().reshape(1, 1)
    found = symgnn.discover(graphs, level="graph", progress=False, questions=())
    assert {"rotation", "reflection"} <= set(found.broken)
    assert found.network is not None
    assert "rotation" not in found.network
    assert " + " in found.best


def test_directions_of_edges_are_read() -> None:
    graphs = rings(150)
    generator = torch.Generator().manual_seed(4)
    one_way = EDGES[:, :7]
    for graph in graphs:
        swap = torch.rand(7, generator=generator) < 0.5
        graph.edge_index = torch.where(swap, one_way.flip(0), one_way)
        rays = graph.pos[graph.edge_index[1]] - graph.pos[graph.edge_index[0]]
        graph.y = rays[:, 1].mean().reshape(1, 1)
    found = symgnn.discover(graphs, level="graph", progress=False, questions=())
    assert found.signal[0] > 0.5
    assert "rotation" in found.broken
    assert found.verdicts["translation"].verdict == "kept"


def test_nothing_is_kept_where_coordinates_add_nothing_and_much_is_unexplained() -> None:
    generator = torch.Generator().manual_seed(5)
    graphs = []
    for number in range(120):
        count = 4 + number % 5
        ring = torch.arange(count)
        edges = torch.stack([torch.cat([ring, ring.roll(1)]), torch.cat([ring.roll(1), ring])])
        y = count + 1.5 * torch.randn(1, 1, generator=generator)
        graphs.append(Data(pos=torch.randn(count, 2, generator=generator), edge_index=edges, y=y))
    found = symgnn.discover(graphs, level="graph", progress=False, questions=())
    assert 0.1 < found.signal[0] < 0.9
    assert "rotation" in found.undecided
    assert found.verdicts["rotation"].decided_by.startswith("coordinates add nothing")
    assert "no predictor gains by reading coordinates" in found.advice
    assert "cannot be predicted" not in found.advice
    assert found.model == {"block": "gn"}


def test_the_error_to_expect(report: DiscoveryReport) -> None:
    assert report.expected is not None
    assert report.expected.value is not None
    deviation = float(torch.cat([graph.y for graph in rings()]).std(correction=0))
    assert abs(report.expected.value - report.expected.share * deviation) < 1e-9
    assert 0.01 < report.expected.value < 0.5 * deviation  # the noise is 0.02
    assert "Expect a root mean square error" in report.advice
