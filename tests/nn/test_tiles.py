"""An angle update in tiles is the same update."""

import pytest
import torch
from torch import Tensor, nn
from torch_geometric.data import Batch

import symgnn
from helpers import train_ensemble
from symgnn.nn._engine import sparse_dropout, tile_passes, tiles
from symgnn.nn._engine.policy import Policy, using_policy
from symgnn.train import Ensemble


@pytest.fixture
def batch() -> Batch:
    torch.manual_seed(0)
    batch = Batch.from_data_list(symgnn.data.polytopes(3))
    batch.pos = batch.pos.double() + 0.1 * torch.randn(batch.pos.shape, dtype=torch.float64)
    return batch


def model(name: str = "agn", aggregation: str = "mean", **options) -> nn.Module:
    torch.manual_seed(1)
    start = {"init": "torch"}
    options = {"hidden": 8, "layers": 3, "task": "graph", "outputs": 5, **start, **options}
    return symgnn.nn.build(name, aggregation=aggregation, **options).double()


def both(monkeypatch: pytest.MonkeyPatch, run) -> tuple:
    """What `run` gives with all angles at once, and in tiles of about 25 angles; what is random is
    the same in both.
    """
    monkeypatch.setattr(sparse_dropout, "FEWEST", 0)  # all angles at once draw as tiles do
    with using_policy(worth_tiles=2**60):
        torch.manual_seed(2)
        whole = run()
    used = []
    original = tile_passes._hidden
    monkeypatch.setattr(tile_passes, "_hidden", lambda *a: used.append(1) or original(*a))
    with using_policy(worth_tiles=0, tile=400):
        torch.manual_seed(2)
        cut = run()
    assert len(used) > 10
    return whole, cut


def close(whole: list[Tensor | None], cut: list[Tensor | None]) -> None:
    for one, other in zip(whole, cut, strict=True):
        if one is not None:
            most = float(one.detach().abs().max())
            torch.testing.assert_close(other, one, rtol=1e-10, atol=1e-11 * most)


@pytest.mark.parametrize("name", ["agn", "agn+distances", "cgn", "combined"])
@pytest.mark.parametrize("aggregation", ["mean", "sum", "max"])
@pytest.mark.parametrize(("psi", "width"), [("identity", 16), ("neighbour-sum", 8)])
def test_values_and_two_derivatives(name, aggregation, psi, width, batch, monkeypatch) -> None:
    """The second width is that of the embeddings, whose last maps are then folded."""
    net = model(name, aggregation, coordinate_map=psi, mlp_hidden=width)
    compare_derivatives(net, batch, monkeypatch)


@pytest.mark.parametrize("name", ["agn", "agn-to-edges", "combined"])
@pytest.mark.parametrize("aggregation", ["mean", "max"])
@pytest.mark.parametrize("width", [16, 8])
def test_dropout(name, aggregation, width, batch, monkeypatch) -> None:
    net = model(name, aggregation, mlp_hidden=width, dropout=0.2).train()
    assert not torch.equal(net(batch), net(batch))
    compare_derivatives(net, batch, monkeypatch)


def compare_derivatives(net: nn.Module, batch: Batch, monkeypatch: pytest.MonkeyPatch) -> None:
    """Values, first and second derivatives."""

    def run() -> list[Tensor | None]:
        data = batch.clone()
        data.pos = batch.pos.clone().requires_grad_()
        inputs = [data.pos, *net.parameters()]
        out = net(data)
        once = torch.autograd.grad(out.square().sum(), inputs, create_graph=True)
        twice = torch.autograd.grad(once[0].square().sum(), inputs, allow_unused=True)
        return [out, *once, *twice]

    close(*both(monkeypatch, run))


def test_residual_and_gate(batch, monkeypatch) -> None:
    after = {"angle": symgnn.nn.After(activation=True, gate=True)}
    net = model(symgnn.nn.AGN.replace(after=after))

    def run() -> list[Tensor]:
        out = net(batch)
        return [out, *torch.autograd.grad(out.sum(), [*net.parameters()])]

    close(*both(monkeypatch, run))


@pytest.mark.parametrize(("width", "dropout"), [(16, 0.0), (8, 0.0), (16, 0.2), (8, 0.2)])
def test_forward_mode(width, dropout, batch, monkeypatch) -> None:
    net = model("combined", mlp_hidden=width, dropout=dropout)
    batch.topology = net.topology(batch)

    def energy(pos: Tensor) -> Tensor:
        data = batch.clone()
        data.pos = pos
        return net(data)

    tangent = torch.randn_like(batch.pos)
    close(*both(monkeypatch, lambda: [*torch.func.jvp(energy, (batch.pos,), (tangent,))]))


@pytest.mark.parametrize("dropout", [0.0, 0.2])
def test_torch_func(dropout, batch, monkeypatch) -> None:
    net = model(dropout=dropout)
    batch.topology = net.topology(batch)

    def energy(pos: Tensor) -> Tensor:
        data = batch.clone()
        data.pos = pos
        return net(data).sum()

    several = torch.stack([batch.pos, 2 * batch.pos + 1, batch.pos + 0.1])
    run = torch.vmap(torch.func.grad(energy), randomness="different")
    close(*both(monkeypatch, lambda: [run(several)]))


@pytest.mark.parametrize(("width", "dropout"), [(16, 0.0), (8, 0.0), (16, 0.2), (8, 0.2)])
def test_many_initialisations(width, dropout, batch, monkeypatch) -> None:
    def make() -> nn.Module:
        return model(outputs=len(batch.y), mlp_hidden=width, dropout=dropout)

    def run() -> list[Tensor]:
        ensemble = Ensemble(make, 3)
        losses = train_ensemble(ensemble, batch, loss, 3)
        return [losses, *ensemble.parameters()]

    def loss(out: Tensor, data: Batch) -> Tensor:
        return nn.functional.cross_entropy(out, data.y)

    close(*both(monkeypatch, run))


def test_when() -> None:
    """Counting those that vmap computes at once."""
    rays, angles, seen = torch.zeros(10, 64), Policy().worth_tiles // 64, []
    with using_policy(worth_tiles=Policy().worth_tiles):  # whatever the memory is kept for
        assert not tiles.worth_tiles(rays, angles, 64)
        assert tiles.worth_tiles(rays, angles + 1, 64)
        torch.vmap(torch.vmap(lambda r: seen.append(tiles.worth_tiles(r, angles // 3, 64)) or r))(
            torch.zeros(2, 2, 10, 64)
        )
    assert seen == [True]
