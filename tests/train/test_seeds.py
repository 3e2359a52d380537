"""Several initialisations as one computation."""

import platform

import pytest
import torch
from torch import Tensor, nn
from torch_geometric.data import Batch, Data
from torch_geometric.loader import DataLoader

import symgnn
from symgnn.train import Seeds, keep_memory
from symgnn.train.replay import record
from symgnn.train.seeds import _prepared


def solids() -> Batch:
    return Batch.from_data_list(symgnn.data.polytopes(3))


def make(name: str = "dgn", **options: object) -> nn.Module:
    return symgnn.nn.build(name, dimension=3, hidden=8, outputs=5, **options)  # type: ignore[arg-type]


def cross_entropy(outputs: Tensor, data: Data) -> Tensor:
    return nn.functional.cross_entropy(outputs, data.y)


@pytest.mark.parametrize("psi", ["identity", "neighbour-sum", "scale-u"])
@pytest.mark.parametrize("name", ["gn", "sdgn", "agn", "cgn"])
def test_seed_s_of_many_is_seed_s_alone(name: str, psi: str) -> None:
    """Trained together or alone, or by an ordinary loop: the same, to rounding."""
    data = solids()
    data.pos = data.pos.double()
    together = Seeds(lambda: make(name, coordinate_map=psi).double(), 3)
    losses = together.fit(data, cross_entropy, epochs=20)
    alone = Seeds(lambda: make(name, coordinate_map=psi).double(), [2])
    torch.testing.assert_close(alone.fit(data, cross_entropy, epochs=20)[:, 0], losses[:, 2])
    torch.testing.assert_close(alone(data)[0], together(data)[2])

    torch.manual_seed(2)
    model = make(name, coordinate_map=psi).double()
    optimiser = torch.optim.Adam(model.parameters(), 1e-3)
    for _ in range(20):
        optimiser.zero_grad()
        cross_entropy(model(data), data).backward()
        optimiser.step()
    torch.testing.assert_close(together(data)[2], model(data))
    other = make(name, coordinate_map=psi).double()
    other.load_state_dict(together.member(2))
    torch.testing.assert_close(other(data), model(data))


@pytest.mark.parametrize("psi", ["identity", "neighbour-sum"])
@pytest.mark.parametrize("name", ["gn", "sdgn", "agn", "cgn"])
def test_a_recorded_step_is_the_step(name: str, psi: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Replayed from a record, training is the same to the last digit."""
    losses = []
    for worth in (1, 10**6):
        monkeypatch.setattr("symgnn.train.seeds.WORTH_RECORDING", worth)
        seeds = Seeds(lambda: make(name, coordinate_map=psi), 3)
        assert worth > 1 or seeds._recorded(cross_entropy, _prepared(seeds.model, solids()))
        losses.append(seeds.fit(solids(), cross_entropy, epochs=15))
    assert torch.equal(*losses)


def test_what_depends_on_the_data_alone_is_computed_once() -> None:
    table, calls = torch.randn(4, 3), []

    class Counting(torch.utils._python_dispatch.TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):  # type: ignore[no-untyped-def]
            calls.append(func.__name__.split(".")[0])
            return func(*args, **(kwargs or {}))

    step = record(lambda p: (table.cos() @ p[0]).square().sum().unsqueeze(0), [torch.ones(3)])
    with Counting():
        losses, gradients = step([torch.ones(3)])
    assert "cos" not in calls
    assert "mv" in calls
    assert torch.allclose(losses, table.cos().sum(1).square().sum())
    assert torch.allclose(gradients[0], 2 * table.cos().T @ table.cos().sum(1))


def test_random_operations_stay_random() -> None:
    step = record(lambda p: (nn.functional.dropout(p[0], 0.5)).sum().unsqueeze(0), [torch.ones(99)])
    draws = {float(step([torch.ones(99)])[0]) for _ in range(5)}
    assert len(draws) > 1


def test_a_model_that_cannot_be_recorded_trains_all_the_same(monkeypatch) -> None:
    monkeypatch.setattr("symgnn.train.seeds.WORTH_RECORDING", 1)

    class Normed(nn.Module):
        """Has buffers, which a step may change."""

        def __init__(self) -> None:
            super().__init__()
            self.linear = nn.Linear(3, 5)
            self.register_buffer("scale", torch.ones(3))

        def forward(self, data: Data) -> Tensor:
            return self.linear(data.pos[:5] * self.scale)

    losses = Seeds(Normed, 2).fit(solids(), cross_entropy, epochs=5)
    assert bool((losses[-1] < losses[0]).all())


def test_keep_memory_says_whether_it_could() -> None:
    assert keep_memory() == (platform.libc_ver()[0] == "glibc")


def test_seeds_differ_and_the_global_generator_is_left_alone() -> None:
    torch.manual_seed(123)
    expected = torch.randn(3)
    torch.manual_seed(123)
    seeds = Seeds(make, 4)
    assert torch.equal(torch.randn(3), expected)
    outputs = seeds(solids())
    assert outputs.shape == (4, 5, 5)
    assert (outputs[0] - outputs[1]).abs().max() > 1e-3


def test_training_learns() -> None:
    seeds = Seeds(lambda: make("agn", aggregation="sum"), 2)
    epochs: list[int] = []
    losses = seeds.fit(
        solids(), cross_entropy, epochs=150, on_epoch=lambda epoch, loss: epochs.append(epoch)
    )
    assert losses.shape == (150, 2)
    assert (losses[-1] < 0.5 * losses[0]).all()
    assert epochs == list(range(150))


def test_batches_by_epoch() -> None:
    graphs = symgnn.data.polytopes(3)

    def batches(epoch: int) -> list[Batch]:
        order = torch.randperm(5, generator=torch.Generator().manual_seed(epoch)).tolist()
        return [Batch.from_data_list([graphs[k] for k in order[a : a + 2]]) for a in (0, 2, 4)]

    seeds = Seeds(make, 2)
    losses = seeds.fit(batches, cross_entropy, epochs=3)
    assert losses.shape == (3, 2)
    assert (losses > 0).all()
    loader = Seeds(make, 2).fit(DataLoader(graphs, batch_size=2), cross_entropy, epochs=3)
    assert loader.shape == (3, 2)
    assert (loader[-1] < loader[0]).all()


def test_predict_gives_mean_and_deviation() -> None:
    seeds = Seeds(lambda: make(dropout=0.3), 5)
    mean, spread = seeds.predict(solids())
    assert mean.shape == spread.shape == (5, 5)
    assert (spread > 0).all()
    again, _ = seeds.predict(solids())
    assert torch.equal(mean, again)  # dropout is off


def test_each_seed_draws_its_own_dropout() -> None:
    seeds = Seeds(lambda: make(dropout=0.5), [7, 7])
    seeds.model.train()
    first, second = seeds(solids())
    assert not torch.allclose(first, second)


def test_no_seeds_is_an_error() -> None:
    with pytest.raises(ValueError, match="seeds: is 0; give at least one"):
        Seeds(make, 0)
