"""Graphs without extent, and shifts far larger than a graph: the derived symmetry holds."""

import itertools

import pytest
import torch
from torch import Tensor, nn
from torch_geometric.data import Batch, Data

from nn.peers import molecules
from symgnn.geometry import TRANSFORMATIONS
from symgnn.nn import COORDINATE_MAPS, SDGN, CoordinateMap, EGNNMap, Model, Scale, Shift, build
from symgnn.nn.inputs import d2, e, position, reduce, u, v
from symgnn.nn.spec import Spec
from symgnn.nn.state import State

MAPS = [name for name in COORDINATE_MAPS if name != "identity"]
#: A network that scales and reads raw coordinates, which SDGN does not.
RAW = SDGN.replace(name="raw", inputs=[v, position])


def model_of(spec: str | Spec, psi: str | CoordinateMap, task: str, n: int = 3, **options) -> Model:
    """A network whose maps move nodes, in float64."""
    torch.manual_seed(4)
    sizes = {"dimension": n, "hidden": 5, "layers": 2, **options}
    model = build(spec, coordinate_map=psi, task=task, **sizes).double()
    generator = torch.Generator().manual_seed(5)
    with torch.no_grad():
        for parameter in model.parameters():
            noise = torch.randn(parameter.shape, generator=generator, dtype=torch.float64)
            parameter.add_(0.3 * noise)
    return model


def one_place(kind: str, n: int) -> Data:
    """A graph without extent: one node, or several in one place, with edges or without."""
    where = torch.tensor([0.7, -1.1, 0.3, 2.0], dtype=torch.float64)[:n]
    if kind == "at the origin":
        where = 0 * where
    nodes = 1 if kind == "one node" else 3
    edges = torch.tensor([[0, 1, 2, 2], [1, 2, 0, 2]])
    edges = (
        edges
        if kind in ("joined", "at the origin")
        else edges[:, 3:] - 2
        if kind == "loop"
        else edges[:, :0]
    )
    return Data(pos=where.repeat(nodes, 1), edge_index=edges)


KINDS = ["one node", "apart", "joined", "loop", "at the origin"]


@pytest.mark.parametrize("n", [1, 3])
@pytest.mark.parametrize("psi", MAPS)
@pytest.mark.parametrize("spec", ["sdgn", RAW], ids=["sdgn", "raw"])
@torch.no_grad()
def test_scaled_networks_commute_with_what_they_claim(spec: str | Spec, psi: str, n: int) -> None:
    for task, kind in itertools.product(("coordinates", "node", "graph"), KINDS):
        if task != "coordinates" and spec == "sdgn" and n != 3:
            continue
        model, data = model_of(spec, psi, task, n), one_place(kind, n)
        assert "dilation" in model.symmetry
        out = model(data)
        assert out.isfinite().all()
        for name in model.symmetry:
            if name not in ("translation", "rotation", "reflection", "dilation", "permutation"):
                continue
            if n == 1 and name == "rotation":
                continue
            moved = data.clone()
            turn = _about_the_origin(name, n)
            moved.pos = turn(data.pos)
            wanted = turn(out) if task == "coordinates" else out
            torch.testing.assert_close(model(moved), wanted, rtol=1e-12, atol=1e-12, msg=name)


def _about_the_origin(name: str, n: int):  # type: ignore[no-untyped-def]
    generator = torch.Generator().manual_seed(6)
    matrix = torch.linalg.qr(torch.randn(n, n, generator=generator, dtype=torch.float64))[0]
    if (torch.linalg.det(matrix) < 0) != (name == "reflection"):
        matrix[0] = -matrix[0]
    if name in ("rotation", "reflection"):
        return lambda x: x @ matrix.T
    if name == "dilation":
        return lambda x: 2.3 * x
    return (lambda x: x + 1.7) if name == "translation" else (lambda x: x)


def test_a_shift_of_sdgn_is_in_units_of_the_graph() -> None:
    """And so it is nothing for a graph without extent, as it is nearly nothing for a tiny one."""
    model = model_of("sdgn", Shift(), "coordinates")
    shifts = sum(block.map.coefficients for block in model.blocks).detach()
    line = Data(pos=torch.eye(3).double(), edge_index=torch.tensor([[0, 1], [1, 2]]))
    length = 2**0.5
    torch.testing.assert_close(model(line) - line.pos, (length * shifts).expand(3, 3))
    point = one_place("joined", 3)
    torch.testing.assert_close(model(point), point.pos, rtol=1e-15, atol=0)


@pytest.mark.parametrize("psi", MAPS)
def test_derivatives_without_extent_are_finite(psi: str) -> None:
    for task, kind in itertools.product(("coordinates", "graph"), ("joined", "at the origin")):
        model, data = model_of("sdgn", psi, task), one_place(kind, 3)
        pos = data.pos.requires_grad_()
        (first,) = torch.autograd.grad(model(data).square().sum(), pos, create_graph=True)
        assert first.isfinite().all()
        if first.requires_grad:
            (second,) = torch.autograd.grad(first.sum(), pos, allow_unused=True)
            assert second is None or second.isfinite().all()


def test_velocities_are_scaled_with_the_coordinates() -> None:
    model = model_of("sdgn", EGNNMap(velocity=True), "coordinates")
    for data in (molecules(), Batch.from_data_list([one_place("joined", 3)])):
        data.z, data.vel = None, torch.randn(data.num_nodes, 3).double()
        moved = data.clone()
        moved.pos, moved.vel = 3 * data.pos, 3 * data.vel
        torch.testing.assert_close(model(moved), 3 * model(data), rtol=1e-11, atol=1e-11)


def line(size: float) -> Data:
    """Points on a line, and the edges between neighbours."""
    pos = torch.zeros(6, 3, dtype=torch.float64)
    pos[:, 0] = size * torch.arange(6)
    forward = torch.stack([torch.arange(5), torch.arange(1, 6)])
    return Data(pos=pos, edge_index=torch.cat([forward, forward.flip(0)], 1))


@pytest.mark.parametrize("size", [1e-12, 1.0, 1e14])
@pytest.mark.parametrize("psi", ["shift", "shift-u", "rigid", "rigid-u", "scale-u"])
@pytest.mark.parametrize("block", ["dgn", "agn", "agn+distances", "combined", "cgn"])
@torch.no_grad()
def test_a_common_motion_takes_no_digits_of_distances(block: str, psi: str, size: float) -> None:
    data = line(size)
    model = model_of(block, psi, "graph", layers=3)
    out = model(data)
    for kind in ("rotation", "reflection", "translation"):
        element = TRANSFORMATIONS[kind].random(
            data.pos, data.edge_index, generator=torch.Generator().manual_seed(1)
        )
        moved = data.clone()
        moved.pos = element(data.pos)
        change = float((model(moved) - out).abs().max() / out.abs().max())
        assert change < 1e-11, f"{kind}: {change}"


@torch.no_grad()
def test_a_shift_is_seen_by_what_reads_coordinates() -> None:
    """Maps in a row, and updates that read raw coordinates: as if nothing were kept apart."""

    class Plain(Shift):
        """The same map with a forward of its own, which gives the coordinates themselves."""

        def forward(self, state: State) -> Tensor:
            return state.x + self.per_node(state)

    class Doubled(Scale):
        """Not translation-equivariant, and built on another one."""

        def forward(self, state: State) -> Tensor:
            return 2 * super().forward(state)

    graphs = molecules()
    graphs.z = None
    edge = [position.source, position.target, d2, u]
    raw = Spec("raw", edge=edge, node=[reduce(e), position], graph=[reduce(v)])
    for task in ("graph", "coordinates"):
        one, other = (model_of(raw, psi, task) for psi in (Shift(), Plain()))
        torch.testing.assert_close(one(graphs), other(graphs), rtol=1e-12, atol=1e-12)
    still = model_of(raw, "identity", "graph")(graphs)
    assert float((model_of(raw, Shift(), "graph")(graphs) - still).abs().max()) > 1e-3
    shifted, doubled = Shift(), Doubled()
    for psi, count in ((shifted, 3), (doubled, 1)):
        psi.coefficients = nn.Parameter(torch.full((count,), 3.0, dtype=torch.float64))
    state = State(build("dgn").topology(graphs), graphs.pos)
    shifted.move(state)
    torch.testing.assert_close(state.position, graphs.pos + 3)
    doubled.move(state)
    torch.testing.assert_close(state.position, 6 * (graphs.pos + 3))
