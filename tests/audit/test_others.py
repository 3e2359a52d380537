"""Models that were not written here, with the symmetry that their authors say they have."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.nn.models import DimeNetPlusPlus, SchNet, ViSNet

from audit.faulty import capped_graph, molecule
from nn.peers import triplets
from symgnn.audit import audit
from symgnn.graphs import radius_graph


@pytest.fixture
def searches(monkeypatch: pytest.MonkeyPatch) -> None:
    """PyG's networks make their own graph at each call, without compiled extensions."""

    def search(pos: Tensor, r: float, batch: Tensor | None = None, loop: bool = False, **_: object):
        return radius_graph(pos.detach(), r, batch, loop=loop)

    for module in ("schnet", "dimenet", "visnet"):
        monkeypatch.setattr(f"torch_geometric.nn.models.{module}.radius_graph", search)
    monkeypatch.setattr("torch_geometric.nn.models.dimenet.triplets", triplets)
    torch.manual_seed(0)


def atoms() -> Data:
    data = molecule()
    return Data(pos=1.3 * data.pos, z=data.z)


def check(report, *, handed: bool = False) -> None:
    assert report.holds("permutations"), report
    assert report.holds("SE(n)"), report
    assert bool(report.holds("reflections")) is not handed, report
    assert not report.holds("dilations"), report
    assert not report.holds("conformal"), report


@pytest.mark.usefixtures("searches")
def test_schnet() -> None:
    model = SchNet(16, 16, 2, 10, cutoff=5.0)
    before = {name: value.clone() for name, value in model.state_dict().items()}
    report = audit(model, atoms(), elements=3)
    check(report)
    assert str(report.outputs[0]) == "invariant per graph"
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())


def test_schnet_with_a_capped_search(monkeypatch: pytest.MonkeyPatch) -> None:
    """As with the compiled search, where a cap takes the first neighbours that it finds."""
    torch.manual_seed(0)
    monkeypatch.setattr(
        "torch_geometric.nn.models.schnet.radius_graph",
        lambda pos, r, batch, max_num_neighbors: capped_graph(pos, r, max_num_neighbors),
    )
    report = audit(SchNet(16, 16, 2, 10, cutoff=5.0, max_num_neighbors=3), atoms(), elements=3)
    assert report.holds("E(n)"), report
    assert report.findings["permutation"].where.module == "interaction_graph"
    fewer = audit(SchNet(16, 16, 2, 10, cutoff=5.0), atoms(), elements=3)
    assert fewer.holds("permutations"), fewer


@pytest.mark.usefixtures("searches")
def test_dimenet_plus_plus() -> None:
    model = DimeNetPlusPlus(
        16, 1, 1, 8, 5, 8, 3, 4, cutoff=5.0, output_initializer="glorot_orthogonal"
    )
    check(audit(model, atoms(), elements=3))


@pytest.mark.usefixtures("searches")
def test_visnet_with_forces() -> None:
    model = ViSNet(hidden_channels=16, num_heads=4, num_layers=1, num_rbf=8, derivative=True)
    report = audit(model, atoms(), outputs={"0": "invariant", "1": "vector"}, elements=3)
    check(report)
    assert [str(output) for output in report.outputs] == ["invariant per graph", "vector per node"]
    inferred = audit(model, atoms(), kinds=["rotation"], elements=2)
    assert list(map(str, inferred.outputs)) == list(map(str, report.outputs))


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_egnn_pytorch() -> None:
    from egnn_pytorch import EGNN

    torch.manual_seed(0)
    layer = EGNN(dim=4, m_dim=8, init_eps=0.5)

    def dense(x: Tensor, pos: Tensor) -> tuple[Tensor, Tensor]:
        h, moved = layer(x.unsqueeze(0), pos.unsqueeze(0))
        return h[0], moved[0]

    report = audit(dense, molecule(), elements=3)
    check(report)
    assert [str(output) for output in report.outputs] == [
        "invariant per node",
        "coordinates per node",
    ]


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::UserWarning")
@pytest.mark.parametrize(
    ("irreps", "type_", "handed"),
    [
        pytest.param("2x0e", "invariant per node", False, marks=pytest.mark.slow),
        # changes its sign in a mirror
        pytest.param("1x0o", "pseudoscalar per node", False, marks=pytest.mark.slow),
        ("2x1o", "vector per node", False),
        ("1x1e", "pseudovector per node", False),  # does not, where a vector does
    ],
)
def test_e3nn(irreps: str, type_: str, handed: bool) -> None:
    network = pytest.importorskip("e3nn.nn.models.v2106.gate_points_networks").SimpleNetwork
    torch.manual_seed(0)
    lmax = 2 if irreps == "1x0o" else 1  # a signed volume needs 2
    model = network("4x0e", irreps, 3.0, 3.0, 9.0, mul=2, layers=2, lmax=lmax, pool_nodes=False)
    for parameter in model.parameters():  # new, it does not read coordinates at all
        parameter.data += 0.3 * torch.randn_like(parameter)
    report = audit(lambda x, pos: model({"x": x, "pos": pos}), molecule(6), elements=2)
    assert str(report.outputs[0]) == type_
    check(report, handed=handed)


def test_an_ase_calculator() -> None:
    pytest.importorskip("ase")
    from ase.build import bulk
    from ase.build import molecule as build
    from ase.calculators.emt import EMT

    report = audit(EMT(), build("CH3CH2OH"), elements=4)
    check(report)
    assert {o.name: str(o) for o in report.outputs} == {
        "energy": "invariant per graph",
        "forces": "vector per node",
    }
    crystal = bulk("Cu", cubic=True)
    positions = crystal.get_positions()
    kinds = ["translation", "rotation", "reflection", "inversion"]
    periodic = audit(EMT(), crystal, kinds=kinds, elements=2)
    assert periodic.holds("E(n)"), periodic  # the cell turns with the atoms
    assert "cell" in periodic.findings["inversion"].reason
    assert (crystal.get_positions() == positions).all()
